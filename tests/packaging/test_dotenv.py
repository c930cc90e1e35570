"""Settings in .env, as the containers of docker-compose.yml read them."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.cli import secrets
from store.config import log_settings
from store.config.flower_settings import FlowerSettings, read_flower_settings
from store.config.settings import Settings, SettingsError, read_settings
from tests.packaging.files import ROOT, compose, dockerfile, of

SERVICES = {name: service for name, service in compose()["services"].items() if service["image"] == "almanac"}

# Another value than the default for each setting of docs/settings.md.
SAMPLES = {
    "ALMANAC_API_KEY_PREFIX": "acme_",
    "ALMANAC_BREAKER_ACCOUNTS": "4",
    "ALMANAC_BREAKER_FAILURES": "4",
    "ALMANAC_BREAKER_PAUSE": "4",
    "ALMANAC_BROKER_URL": "amqp://rabbit//",
    "ALMANAC_BUSY_BUCKET_DAYS": "4",
    "ALMANAC_BUSY_STALE": "4",
    "ALMANAC_BUSY_TTL": "4",
    "ALMANAC_CORS_ORIGINS": "https://app.example.com",
    "ALMANAC_DATABASE_URL": "postgresql://db.example.com/almanac",
    "ALMANAC_DATA_DIR": "/data",
    "ALMANAC_ENCRYPTION_KEYS": base64.urlsafe_b64encode(bytes(32)).decode(),
    "ALMANAC_FAILURE_TTL": "4",
    "ALMANAC_FANOUT_DEADLINE": "4",
    "ALMANAC_FANOUT_TASKS": "4",
    "ALMANAC_FLOWER_PASSWORD": "another",
    "ALMANAC_FLOWER_USER": "somebody",
    "ALMANAC_LOG_FORMAT": "json",
    "ALMANAC_LOG_LEVEL": "info",
    "ALMANAC_METRICS_TOKEN": "another",
    "ALMANAC_PUBLIC_URL": "https://calendar.example.com",
    "ALMANAC_REDIRECT_URLS": "https://app.example.com/*",
    "ALMANAC_REDIS_URL": "redis://cache.example.com/0",
    "ALMANAC_SECRET_KEY": "another",
    "ALMANAC_WEBHOOKS_ALLOW_PRIVATE": "true",
    "ALMANAC_WEBHOOKS_RETRY_SECONDS": "4",
    "ALMANAC_WORKER_MEMORY": "400",
}


def sample(name: str) -> str:
    if name.endswith(("_AUTH_URL", "_TOKEN_URL", "_REVOKE_URL", "_USERINFO_URL", "_API_URL", "_GRAPH_URL")):
        return "https://provider.example"
    if name.endswith(("_LOGIN_URL", "_CLIENT_ID", "_CLIENT_SECRET", "_TENANT")):
        return "https://provider.example"
    return SAMPLES.get(name, "4")


def documented() -> list[str]:
    names = set(re.findall(r"`(ALMANAC_\w+)`", (ROOT / "docs/settings.md").read_text()))
    return sorted(name for name in names if not name.endswith("_FILE"))


def elsewhere() -> set[str]:
    """What .env.example says does not belong into .env."""
    text = (ROOT / ".env.example").read_text()
    (paragraph,) = re.findall(r"except:\n((?:#   .*\n)+)", text)
    return set(re.findall(r"ALMANAC_\w+", paragraph))


@pytest.fixture
def container(tmp_path: Path):
    """The environment of a container, with the secrets that `almanac keys secrets --to` writes."""
    secrets.write(tmp_path)

    def make(name: str, dotenv: dict[str, str]) -> dict[str, str]:
        image = dict(word.split("=", 1) for line in of(dockerfile()[-1], "ENV") for word in line.split())
        service = {
            variable: interpolated(value, dotenv).replace("/run/secrets", str(tmp_path))
            for variable, value in SERVICES[name].get("environment", {}).items()
        }
        files = SERVICES[name]["env_file"]
        assert files in ([], [{"path": ".env", "required": False}])
        # Variables of the service override the file.
        return image | (dotenv if files else {}) | service

    return make


def interpolated(value: str, dotenv: dict[str, str]) -> str:
    """``${NAME:-default}``, as compose reads it with the same .env."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: dotenv.get(found[1]) or found[2], value)


def read(environment: dict[str, str]) -> tuple[Settings, log_settings.LogSettings]:
    with only(environment):
        return read_settings(), log_settings.read_log_settings()


def read_flower(environment: dict[str, str]) -> tuple[FlowerSettings, log_settings.LogSettings]:
    with only(environment):
        return read_flower_settings(), log_settings.read_log_settings()


@contextmanager
def only(environment: dict[str, str]) -> Iterator[None]:
    """Set these variables, and no other whose name begins with ALMANAC_."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


def test_what_does_not_belong_into_it_is_a_setting():
    assert elsewhere()
    assert elsewhere() < set(documented())


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"flower"}))
def test_every_other_setting_counts_in_every_container(container, name):
    usual = read(container(name, {}))

    for setting in set(documented()) - elsewhere():
        changed = read(container(name, {setting: sample(setting)}))

        assert changed != usual, f"{setting} in .env changes nothing"


@pytest.mark.parametrize(
    "setting",
    [
        *("ALMANAC_BROKER_URL", "ALMANAC_REDIS_URL", "ALMANAC_FLOWER_USER"),
        *("ALMANAC_LOG_FORMAT", "ALMANAC_LOG_LEVEL"),
    ],
)
def test_what_flower_needs_counts_in_its_container(container, setting):
    changed = container("flower", {setting: sample(setting)})

    assert read_flower(changed) != read_flower(container("flower", {}))


SECRETS = {"ALMANAC_DATABASE_URL", "ALMANAC_SECRET_KEY", "ALMANAC_ENCRYPTION_KEYS"}


@pytest.mark.parametrize("setting", sorted(SECRETS))
def test_a_secret_in_it_is_refused_by_its_name(container, setting):
    assert setting in elsewhere()

    with pytest.raises(SettingsError, match=f"{setting} and {setting}_FILE are both set"):
        read(container("web", {setting: sample(setting)}))


@pytest.mark.parametrize(
    ("setting", "name"), [("ALMANAC_DATA_DIR", "web"), ("ALMANAC_FLOWER_PASSWORD", "flower")]
)
def test_a_setting_that_the_compose_file_fixes_is_not_read_from_it(container, setting, name):
    assert elsewhere() - SECRETS == {"ALMANAC_DATA_DIR", "ALMANAC_FLOWER_PASSWORD"}

    assert container(name, {setting: sample(setting)}) == container(name, {})
