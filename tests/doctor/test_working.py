"""`almanac doctor` on an installation with a worker: healthy, or with a rejected registration."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.doctor.installation import Installation

# Starts a whole installation, which is too slow for the default run.
pytestmark = pytest.mark.long

NAMES = [
    "version",
    "settings",
    "database",
    "redis",
    "database connections",
    "redis memory",
    "redis persistence",
    "encryption keys",
    "clock",
    "broker",
    "workers",
    "provider access",
    "beat",
    "google",
    "microsoft",
    "grants",
    "accounts",
    "identity provider",
    "public URL",
    "proxies",
]


@pytest.fixture(scope="module")
def working(installation: Installation) -> Iterator[Installation]:
    """The installation with a worker."""
    with installation.worker():
        yield installation


@pytest.mark.usefixtures("stores", "sandbox")
def test_a_healthy_installation_is_ok_in_every_line(working):
    result = working.doctor()

    assert result.exit_code == 0, result.output
    lines = [re.split(r" {2,}", line, maxsplit=2) for line in result.stdout.splitlines()]
    assert [line[:2] for line in lines] == [["ok", name] for name in NAMES]
    assert "Google accepts the client id and the secret" in result.stdout


@pytest.mark.usefixtures("sandbox")
def test_a_registration_that_the_provider_does_not_know_is_wrong(working, stores):
    found = working.found(GOOGLE_CLIENT_SECRET="wrong", MICROSOFT_TENANT="wrong.example.com")

    assert found["google"]["state"] == found["microsoft"]["state"] == "wrong"
    assert found["google"]["sentence"] == "Google does not accept this client id with this secret"
    assert found["microsoft"]["sentence"] == "Microsoft knows no such tenant"
    assert found["google"]["advice"]


def test_a_provider_without_a_registration_is_a_warning(working, stores):
    found = working.found(MICROSOFT_CLIENT_ID="", MICROSOFT_CLIENT_SECRET="")

    assert found["microsoft"]["state"] == "warning"
    assert "ALMANAC_MICROSOFT_CLIENT_ID" in found["microsoft"]["advice"]


def test_a_provider_that_cannot_be_reached_is_a_warning(working, sandbox, stores):
    sandbox.fault(provider="google", status=503)

    found = working.found()

    assert found["google"]["state"] == "warning"
    assert found["google"]["sentence"] == "Google could not be asked just now"
    assert found["google"]["advice"] == "Run almanac doctor again when the provider answers"
    assert found["public URL"]["state"] == "ok"
