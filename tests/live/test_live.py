"""The live tests against the sandbox instead of the providers, and the recorded answers beside its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.server.supervisor import sandbox_environment
from providers.base import Token
from providers.sandbox.client import Sandbox, SandboxAccount
from tests.app.at_provider import AtProvider
from tests.conftest import settings_of
from tests.installation.processes import free_port
from tests.live import credentials
from tests.live.__main__ import RECORDED, bases, record
from tests.live.comparing import differences
from tests.live.credentials import LiveAccount
from tests.live.recording import Recorder
from tests.live.sanitizing import Leak, Sanitizer
from tests.live.suite import MARKER, Suite
from tests.packaging.files import ROOT

PROVIDERS = ("google", "microsoft")
EMAIL = "ada.lovelace@company.test"

# A person's own events, around those of the suite.
OWN = {"subject": "Private: dentist", "start": "2026-12-24T09:00:00", "end": "2026-12-24T10:00:00"}


class Given:
    """The environment of ``make test-live`` with accounts of the sandbox."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.accounts: dict[str, SandboxAccount] = {}
        port = free_port()
        self.environment = sandbox_environment(sandbox.url) | {
            "ALMANAC_DATA_DIR": str(folder),
            "ALMANAC_LIVE_PUSH_URL": f"http://127.0.0.1:{port}/hook",
            "ALMANAC_LIVE_PUSH_PORT": str(port),
        }
        for provider in PROVIDERS:
            account = self.accounts[provider] = sandbox.account(provider, EMAIL, events=[OWN])
            self._set(provider, "CLIENT_ID", "sandbox")
            self._set(provider, "CLIENT_SECRET", "sandbox")
            self._set(provider, "REFRESH_TOKEN", account.refresh_token)
        google = sandbox.domain("google", "acme.test", [{"email": "grace@acme.test"}])
        key_file = folder / "key.json"
        key_file.write_text(json.dumps(google.service_account_key))
        self._set("google", "GRANT_KEY_FILE", str(key_file))
        self._set("google", "GRANT_MEMBER", google.members[0])
        microsoft = sandbox.domain("microsoft", "globex.test", [{"email": "hedy@globex.test"}])
        self._set("microsoft", "GRANT_TENANT", microsoft.tenant)
        self._set("microsoft", "GRANT_CLIENT_ID", microsoft.client_id)
        self._set("microsoft", "GRANT_CLIENT_SECRET", microsoft.client_secret)
        self._set("microsoft", "GRANT_MEMBER", microsoft.members[0])

    def _set(self, provider: str, name: str, value: str) -> None:
        self.environment[f"{credentials.PREFIX}{provider.upper()}_{name}"] = value

    def live(self, provider: str) -> LiveAccount:
        there = settings_of(self.environment).providers
        (found,) = [
            each for each in credentials.accounts(self.environment, there) if each.provider == provider
        ]
        return found

    def at(self, provider: str) -> AtProvider:
        return AtProvider(self.sandbox, self.accounts[provider])

    def secrets(self) -> list[str]:
        tokens = [
            each for account in self.accounts.values() for each in (account.access_token, account.email)
        ]
        return [*credentials.secrets_of(self.environment), *tokens]


@pytest.fixture
def given(sandbox: Sandbox, tmp_path: Path) -> Given:
    return Given(sandbox, tmp_path)


@pytest.fixture
def recorded(given: Given, tmp_path: Path) -> Callable[[str], Path]:
    """Runs the suite and returns the file with the recorded answers."""

    def run(provider: str) -> Path:
        live = given.live(provider)
        recorder = Recorder(bases(live))
        outcomes = Suite(live, recorder, patience=15).run()
        assert not [each for each in outcomes if each.fault]
        return record(live, recorder, given.secrets(), tmp_path / "recorded")

    return run


def start(environment: dict[str, str], to: Path) -> subprocess.CompletedProcess[str]:
    """``python -m tests.live``."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    command = [sys.executable, "-m", "tests.live", "--to", str(to), "--patience", "15"]
    return subprocess.run(
        command, cwd=ROOT, env=clean | environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_whole_command_passes_records_and_leaves_nothing(given, tmp_path):
    done = start(given.environment, tmp_path / "recorded")

    assert done.returncode == 0, done.stdout + done.stderr
    for provider in PROVIDERS:
        for step in ("create an event", "a change is notified", "busy periods by an organization grant"):
            assert f"{provider}: {step}: passed" in done.stdout
        assert given.at(provider).subjects() == [OWN["subject"]]
        assert not [each for each in given.sandbox.channels() if each["provider"] == provider]
        text = (tmp_path / f"recorded/{provider}.json").read_text()
        for secret in [*given.secrets(), "ada.lovelace", "company.test", "dentist", "acme", "globex", MARKER]:
            assert secret not in text, secret


@pytest.mark.slow
def test_run_without_credentials_lists_the_required_ones(tmp_path):
    done = start({"ALMANAC_DATA_DIR": str(tmp_path)}, tmp_path / "recorded")

    assert done.returncode == 2
    for names in [*credentials.ACCOUNT.values(), *credentials.GRANT.values(), credentials.PUSH]:
        assert all(credentials.PREFIX + name in done.stdout for name in names)
    assert not (tmp_path / "recorded").exists()


@pytest.mark.slow
def test_a_revoked_refresh_token_is_one_sentence(given, tmp_path):
    given.sandbox.revoke(EMAIL)

    done = start(given.environment, tmp_path / "recorded")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "is the refresh token still valid?" in done.stderr


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_sandbox_answers_as_the_provider_has(recorded, provider):
    """With what `make test-live` has recorded from real accounts."""
    file = RECORDED / f"{provider}.json"
    if not file.exists():
        pytest.skip(f"no answers of {provider} are recorded yet: make test-live")

    assert differences(json.loads(file.read_bytes()), json.loads(recorded(provider).read_bytes())) == []


@pytest.mark.parametrize(
    "text", ['{"a": "the-refresh-token"}', '{"a": "4a5f0c4a5f0c"}', '{"a": "ada@company.test"}']
)
def test_a_leak_is_an_error(text):
    sanitizer = Sanitizer([Token("the-refresh-token").reveal])
    sanitizer.clean({"id": "4a5f0c4a5f0c"})

    with pytest.raises(Leak):
        sanitizer.check(text.encode())
