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
from store.config.settings import (
    FlowerSettings,
    LogSettings,
    Settings,
    SettingsError,
    read_flower_settings,
    read_log_settings,
)
from tests import certificates
from tests.packaging.files import ROOT, compose, dockerfile, of
from workers.settings import SETTINGS, read_settings

SERVICES = {name: service for name, service in compose()["services"].items() if service["image"] == "almanac"}

# For each declared setting a value that differs from the default; "4" for the others.
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
    "ALMANAC_CALDAV_ALLOW_PRIVATE": "true",
    "ALMANAC_DATA_DIR": "/data",
    "ALMANAC_ENCRYPTION_KEYS": base64.urlsafe_b64encode(bytes(32)).decode(),
    "ALMANAC_FAILURE_TTL": "4",
    "ALMANAC_FANOUT_DEADLINE": "4",
    "ALMANAC_FANOUT_TASKS": "5",
    "ALMANAC_FLOWER_PASSWORD": "another",
    "ALMANAC_FLOWER_USER": "another",
    "ALMANAC_ICS_ALLOW_PRIVATE": "true",
    "ALMANAC_ICS_MAX_BYTES": "4096",
    "ALMANAC_LOG_FORMAT": "json",
    "ALMANAC_LOG_LEVEL": "info",
    "ALMANAC_METRICS_TOKEN": "another",
    # A line of `.env` has no line ends.
    "ALMANAC_MICROSOFT_CLIENT_CERTIFICATE": " ".join("".join(certificates.of_application()).split("\n")),
    "ALMANAC_OIDC_CHECK_SECONDS": "400",
    "ALMANAC_OIDC_CONFIRMED_SECONDS": "400",
    "ALMANAC_OIDC_ISSUER": "https://login.example.com",
    "ALMANAC_OIDC_ROLES": "staff=viewer",
    "ALMANAC_OIDC_SCOPES": "openid",
    "ALMANAC_PASSWORD_SIGN_IN": "false",
    "ALMANAC_OPERATOR_COLOUR": "2f55c8",
    "ALMANAC_PUBLIC_URL": "https://calendar.example.com",
    "ALMANAC_REDIRECT_URLS": "https://app.example.com/*",
    "ALMANAC_REDIS_URL": "redis://cache.example.com/0",
    "ALMANAC_SECRET_KEY": "another",
    "ALMANAC_WEBHOOKS_ALLOW_PRIVATE": "true",
    "ALMANAC_WEBHOOKS_RETRY_SECONDS": "4",
}


# The settings that a setting needs besides.
OF_OPENID = dict.fromkeys(("ALMANAC_OIDC_CLIENT_ID", "ALMANAC_OIDC_CLIENT_SECRET"), "x") | {
    "ALMANAC_OIDC_ROLES": "staff=viewer"
}
NEEDED = {
    "ALMANAC_OIDC_ISSUER": OF_OPENID,
    "ALMANAC_PASSWORD_SIGN_IN": OF_OPENID | {"ALMANAC_OIDC_ISSUER": "https://login.example.com"},
}


def sample(name: str) -> str:
    if name.endswith(("_AUTH_URL", "_TOKEN_URL", "_REVOKE_URL", "_USERINFO_URL", "_API_URL", "_GRAPH_URL")):
        return "https://provider.example"
    if name.endswith(("_LOGIN_URL", "_CLIENT_ID", "_CLIENT_SECRET", "_TENANT")):
        return "https://provider.example"
    return SAMPLES.get(name, "4")


DECLARED = {setting.name for setting in SETTINGS}
# docker-compose.yml sets these itself.
OF_COMPOSE = {setting.name for setting in SETTINGS if not setting.in_dotenv}


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
    """Replace ``${NAME:-default}``, as compose does with the same .env."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: dotenv.get(found[1]) or found[2], value)


def read(environment: dict[str, str]) -> tuple[Settings, LogSettings]:
    with only(environment):
        return read_settings(), read_log_settings()


def read_flower(environment: dict[str, str]) -> tuple[FlowerSettings, LogSettings]:
    with only(environment):
        return read_flower_settings(), read_log_settings()


@contextmanager
def only(environment: dict[str, str]) -> Iterator[None]:
    """Set these variables, and remove all others whose names start with ALMANAC_."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"flower"}))
def test_every_other_setting_takes_effect_in_every_container(container, name):
    for setting in sorted(DECLARED - OF_COMPOSE):
        needed = NEEDED.get(setting, {})
        changed = read(container(name, needed | {setting: sample(setting)}))

        assert changed != read(container(name, needed)), f"{setting} in .env has no effect"


@pytest.mark.parametrize(
    "setting",
    [
        *("ALMANAC_BROKER_URL", "ALMANAC_REDIS_URL", "ALMANAC_FLOWER_USER"),
        *("ALMANAC_LOG_FORMAT", "ALMANAC_LOG_LEVEL"),
    ],
)
def test_settings_of_flower_take_effect_in_its_container(container, setting):
    changed = container("flower", {setting: sample(setting)})

    assert read_flower(changed) != read_flower(container("flower", {}))


EXAMPLE = dict(re.findall(r"^# (\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_line_of_the_example_can_be_used_at_once(container, name):
    environment = container(name, EXAMPLE)

    (read_flower if name == "flower" else read)(environment)
    assert environment["ALMANAC_REDIS_URL"] == EXAMPLE["ALMANAC_REDIS_URL"]


SECRETS = {"ALMANAC_DATABASE_URL", "ALMANAC_SECRET_KEY", "ALMANAC_ENCRYPTION_KEYS"}


@pytest.mark.parametrize("setting", sorted(SECRETS))
def test_a_secret_in_dotenv_is_rejected_by_its_name(container, setting):
    assert setting in OF_COMPOSE

    with pytest.raises(SettingsError, match=f"{setting} and {setting}_FILE are both set"):
        read(container("web", {setting: sample(setting)}))
