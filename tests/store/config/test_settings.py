"""Settings: the embedded default, required settings, and error messages that name the setting."""

from __future__ import annotations

import base64
import logging
import os
import stat
from pathlib import Path

import pytest

from store.config.settings import LogSettings, SettingsError, new_secrets, read_log_settings
from workers.settings import read_settings

KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
PRODUCTION = {
    "DATABASE_URL": "postgresql://almanac:planted-password@db/almanac",
    "REDIS_URL": "redis://cache/0",
    "SECRET_KEY": "planted-secret",
    "ENCRYPTION_KEYS": KEY,
}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
        monkeypatch.delenv(name)


def set_environment(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"ALMANAC_{name}", value)


def test_the_default_keeps_everything_in_the_data_folder(tmp_path: Path):
    settings = read_settings(tmp_path)

    assert settings.database_url == f"sqlite:///{tmp_path / 'almanac.db'}"
    assert settings.redis_url == f"unix://{tmp_path / 'redis.sock'}"
    assert settings.broker_url == f"redis+socket://{tmp_path / 'redis.sock'}"
    assert settings.embedded_redis


def test_embedded_secrets_are_generated_once_and_private(tmp_path: Path):
    first, second = read_settings(tmp_path), read_settings(tmp_path)

    assert first.secret_key == second.secret_key
    assert first.encryption_keys == second.encryption_keys
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o600
    assert read_settings(tmp_path / "another").secret_key != first.secret_key


def test_keys_are_rotated_in_the_file_of_the_data_folder(tmp_path: Path):
    first = read_settings(tmp_path)
    file, (_, new) = tmp_path / "secrets", new_secrets()

    file.write_text(f"{file.read_text()}, {new}\n\n")
    second = read_settings(tmp_path)

    assert second.secret_key == first.secret_key
    assert second.encryption_keys[0] == first.encryption_keys[0]
    assert len(second.encryption_keys) == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("one line", "must have two lines: the secret key, and the encryption keys by commas"),
        ("secret\nkey", "must hold 32 bytes in base64 for each key"),
    ],
)
def test_a_file_of_secrets_that_cannot_be_read_is_named(tmp_path: Path, text: str, error: str):
    (tmp_path / "secrets").write_text(text)

    with pytest.raises(SettingsError, match=rf"{tmp_path / 'secrets'} {error}"):
        read_settings(tmp_path)


def test_the_socket_path_is_short_for_a_long_data_folder(tmp_path: Path):
    deep = tmp_path / ("d" * 120)

    assert len(str(read_settings(deep).redis_socket)) < 104
    assert read_settings(deep).redis_socket != read_settings(tmp_path / ("e" * 120)).redis_socket


@pytest.mark.parametrize("missing", ["SECRET_KEY", "ENCRYPTION_KEYS"])
def test_production_without_a_secret_refuses_to_start(monkeypatch, missing):
    set_environment(monkeypatch, **{name: value for name, value in PRODUCTION.items() if name != missing})

    with pytest.raises(SettingsError, match=f"ALMANAC_{missing} must be set"):
        read_settings()


def test_production_settings_are_read(monkeypatch):
    set_environment(monkeypatch, **PRODUCTION)

    settings = read_settings()

    assert settings.database_url == "postgresql+psycopg://almanac:planted-password@db/almanac"
    assert settings.broker_url == settings.redis_url == "redis://cache/0"
    assert not settings.embedded_redis


def test_the_broker_can_be_another_server(monkeypatch):
    set_environment(monkeypatch, **PRODUCTION, BROKER_URL="amqp://rabbit//")

    assert read_settings().broker_url == "amqp://rabbit//"


def test_several_encryption_keys_keep_their_order(monkeypatch):
    older = base64.urlsafe_b64encode(bytes(32)).decode()
    set_environment(monkeypatch, **PRODUCTION | {"ENCRYPTION_KEYS": f"{KEY},{older}"})

    assert read_settings().encryption_keys == (bytes(range(32)), bytes(32))


@pytest.mark.parametrize("key", ["short", base64.b64encode(bytes(31)).decode(), "ü" * 44])
def test_an_encryption_key_of_the_wrong_size_is_refused(monkeypatch, key):
    set_environment(monkeypatch, **PRODUCTION | {"ENCRYPTION_KEYS": key})

    with pytest.raises(SettingsError, match="ALMANAC_ENCRYPTION_KEYS"):
        read_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FANOUT_DEADLINE", "soon"),
        ("FANOUT_DEADLINE", "0"),
        ("MAX_SLOTS", "many"),
        ("TRUSTED_PROXIES", "11"),
        ("WEBHOOKS_RETRY_SECONDS", "0"),
        ("WEBHOOKS_RETRY_SECONDS", "5,soon"),
    ],
)
def test_a_malformed_setting_is_named(monkeypatch, tmp_path, name, value):
    set_environment(monkeypatch, **{name: value})

    with pytest.raises(SettingsError, match=name):
        read_settings(tmp_path)


def test_push_needs_an_https_url_for_the_real_providers(monkeypatch, tmp_path):
    def push_urls(**environment):
        set_environment(monkeypatch, **environment)
        settings = read_settings(tmp_path)
        return {settings.push_address(provider) for provider in ("google", "microsoft")}

    assert push_urls() == {None}
    assert push_urls(PUBLIC_URL="http://calendar.example.com") == {None}
    expected = {f"https://calendar.example.com/v1/push/{name}" for name in ("google", "microsoft")}
    assert push_urls(PUBLIC_URL="https://calendar.example.com") == expected
    assert push_urls(PUSH_TTL="0") == {None}


def test_urls_for_browsers_lose_spaces_and_trailing_slashes(monkeypatch, tmp_path):
    urls = "https://app.example.com/connected, http://localhost:3000/*"
    set_environment(monkeypatch, PUBLIC_URL="https://calendar.example.com/", REDIRECT_URLS=urls)

    settings = read_settings(tmp_path)

    assert settings.public_url == "https://calendar.example.com"
    assert settings.redirect_urls == ("https://app.example.com/connected", "http://localhost:3000/*")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUBLIC_URL", "calendar.example.com"),
        ("PUBLIC_URL", "ftp://calendar.example.com"),
        ("PUBLIC_URL", "https://"),
        ("PUBLIC_URL", "https://calendar.example.com/?x=1"),
        ("REDIRECT_URLS", "https://app.example.com/connected,*"),
        ("REDIRECT_URLS", "http://app.example.com/connected"),
        ("REDIRECT_URLS", "https://*.example.com/connected"),
    ],
)
def test_an_unsafe_url_for_browsers_is_rejected(monkeypatch, tmp_path, name, value):
    set_environment(monkeypatch, **{name: value})

    with pytest.raises(SettingsError, match=f"ALMANAC_{name}"):
        read_settings(tmp_path)


def test_settings_show_no_secret(monkeypatch):
    set_environment(monkeypatch, **PRODUCTION, GOOGLE_CLIENT_SECRET="planted-client")

    shown = repr(read_settings())

    assert "planted" not in shown
    assert KEY not in shown


def test_new_secrets_are_valid_settings(monkeypatch):
    secret, encryption = new_secrets()
    set_environment(monkeypatch, **PRODUCTION | {"SECRET_KEY": secret, "ENCRYPTION_KEYS": encryption})

    assert len(read_settings().encryption_keys[0]) == 32


def test_no_proxy_is_trusted_by_default(tmp_path):
    assert read_settings(tmp_path).trusted_proxies == 0


def test_every_malformed_setting_is_named_at_once(monkeypatch, tmp_path):
    set_environment(monkeypatch, MAX_SLOTS="many", TRUSTED_PROXIES="yes")

    with pytest.raises(SettingsError, match=r"(?s)MAX_SLOTS.*TRUSTED_PROXIES|TRUSTED_PROXIES.*MAX_SLOTS"):
        read_settings(tmp_path)


def test_logs_are_text_at_level_warning_by_default():
    assert read_log_settings() == LogSettings("text", logging.WARNING)


def test_log_settings_are_accepted_in_any_case(monkeypatch):
    set_environment(monkeypatch, LOG_FORMAT="JSON", LOG_LEVEL="Debug")

    assert read_log_settings() == LogSettings("json", logging.DEBUG)


def test_an_unknown_choice_is_rejected_with_the_list_of_choices(monkeypatch):
    set_environment(monkeypatch, LOG_LEVEL="loud")

    with pytest.raises(SettingsError, match="ALMANAC_LOG_LEVEL must be one of debug, info, warning, error"):
        read_log_settings()


@pytest.mark.parametrize(
    ("redis", "broker"),
    [
        ("redis://cache:6379/1", "redis://cache:6379/1"),
        ("rediss://:p%40ss@cache/1", "rediss://:p%40ss@cache/1?ssl_cert_reqs=required"),
        ("rediss://cache/1?ssl_ca_certs=/ca", "rediss://cache/1?ssl_ca_certs=/ca&ssl_cert_reqs=required"),
        ("rediss://cache/1?ssl_cert_reqs=none", "rediss://cache/1?ssl_cert_reqs=none"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock"),
        ("unix:///run/redis.sock?db=3", "redis+socket:///run/redis.sock?virtual_host=3"),
        ("unix://ada:p%40ss@/run/redis.sock", "redis+socket://ada:p%40ss@/run/redis.sock"),
        (
            "unix:///run/redis.sock?password=p%40ss&db=2",
            "redis+socket://:p%40ss@/run/redis.sock?virtual_host=2",
        ),
    ],
)
def test_redis_is_the_default_broker(monkeypatch, redis, broker):
    set_environment(monkeypatch, **PRODUCTION | {"REDIS_URL": redis})

    settings = read_settings()

    assert (settings.redis_url, settings.broker_url) == (redis, broker)


def test_a_broker_can_be_a_unix_socket(monkeypatch):
    set_environment(monkeypatch, **PRODUCTION, BROKER_URL="unix:///run/broker.sock")

    assert read_settings().broker_url == "redis+socket:///run/broker.sock"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "cache:6379"),
        ("REDIS_URL", "redis://planted@cache:70000/0"),
        ("REDIS_URL", "amqp://planted@rabbit//"),
        # One slash is missing: the client would open /redis.sock.
        ("REDIS_URL", "unix://run/redis.sock"),
        ("REDIS_URL", "unix://"),
        ("BROKER_URL", "sqs://planted@"),
        ("BROKER_URL", "amqp:rabbit"),
        ("DATABASE_URL", "mysql://planted@db/almanac"),
        ("DATABASE_URL", "almanac.db"),
        ("DATABASE_URL", "postgresql://planted@db:port/almanac"),
        ("DATABASE_URL", "postgresql://planted@db/almanac?prepare_threshold=never"),
    ],
)
def test_an_unsupported_url_is_rejected_and_not_shown(monkeypatch, name, value):
    set_environment(monkeypatch, **PRODUCTION | {name: value})

    with pytest.raises(SettingsError, match=f"ALMANAC_{name} must be like") as refused:
        read_settings()
    assert "planted" not in str(refused.value)
