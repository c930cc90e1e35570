"""The settings of web and worker processes, read once from the environment.

A process does not start if a setting is malformed or a required one is missing.
"""

from __future__ import annotations

import base64
import os
import secrets
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from store.config import data_folder, declaration, openid, service_urls
from store.config.declaration import RETRY_SECONDS, TRACES, LogSettings, ProviderSettings
from store.config.setting import SettingsError, read

__all__ = [
    "RETRY_SECONDS",
    "TRACES",
    "FlowerSettings",
    "LogSettings",
    "ProviderSettings",
    "Settings",
    "SettingsError",
    "empty_data_dir",
    "new_secrets",
    "read_flower_settings",
    "read_log_settings",
    "read_settings",
    "traces",
]

DAY_MILLISECONDS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class Settings(
    declaration.Storage,
    declaration.Secrets,
    declaration.Accounts,
    declaration.SignIn,
    declaration.Branding,
    declaration.Network,
    declaration.Webhooks,
    declaration.Reading,
    declaration.Observability,
    declaration.Push,
    declaration.Flower,
    declaration.Limits,
    declaration.Shares,
):
    """The settings of one process. The unit of a duration is in its name."""

    # URLs and secrets are the complete ones here, those of the embedded default included.
    embedded_redis: bool = False
    providers: ProviderSettings

    @property
    def redis_socket(self) -> Path:
        """The Unix socket of the embedded Redis."""
        return data_folder.socket_path(self.data_dir)

    @property
    def busy_bucket(self) -> int:
        """The length of a cache bucket in milliseconds."""
        return self.busy_bucket_days * DAY_MILLISECONDS

    @property
    def watched_seconds(self) -> float:
        """How long the busy periods of a calendar are used while its provider sends notifications."""
        return min(self.push_ttl_seconds, self.max_age_seconds)

    def push_address(self, provider: str) -> str | None:
        """The URL for a provider's change notifications; None if push is off or cannot work.

        The real providers send to https URLs only. The sandbox, whose API URL is http, sends to either.
        """
        own = self.providers.of(provider)
        # That of the API is the first one.
        api = next((value for name, value in own.items() if name.endswith("_url")), "")
        reachable = self.public_url.startswith("https:") or api.startswith("http:")
        if not self.public_url or not reachable or not self.push_ttl_seconds or not self.busy_ttl_seconds:
            return None
        return f"{self.public_url}/v1/push/{provider}"


def read_settings(providers: type[ProviderSettings], data_dir: Path | None = None) -> Settings:
    """Read the environment; ``providers`` has the settings of the providers as fields.

    Without URLs of a database and of Redis, this is the embedded default: SQLite and an embedded Redis in
    the data folder, with secrets that are generated at the first start and kept there.

    Each variable can name a file instead, by the suffix ``_FILE``, because container secrets are files.

    :raise SettingsError: naming every variable that is missing or malformed
    """
    traces()
    given = read(Settings, providers=read(providers))
    openid.check(
        given.oidc_issuer,
        {
            "ALMANAC_OIDC_CLIENT_ID": given.oidc_client_id,
            "ALMANAC_OIDC_CLIENT_SECRET": given.oidc_client_secret,
            "ALMANAC_OIDC_ROLES": given.oidc_roles,
        },
        passwords=given.password_sign_in,
    )
    folder = data_dir or given.data_dir
    redis = service_urls.redis(given.redis_url) or _embedded_redis(folder)
    secret_key, encryption_keys = given.secret_key, given.encryption_keys
    if not given.database_url and not given.redis_url and not (secret_key and encryption_keys):
        stored_secret, stored_keys = data_folder.stored_secrets(folder, new_secrets)
        secret_key = secret_key or stored_secret
        encryption_keys = encryption_keys or declaration.encryption_keys(
            stored_keys.split(","), f"The second line of {data_folder.secrets_file(folder)}"
        )
    _require(ALMANAC_SECRET_KEY=secret_key, ALMANAC_ENCRYPTION_KEYS=encryption_keys)
    return replace(
        given,
        data_dir=folder,
        database_url=service_urls.database(given.database_url)
        or f"sqlite:///{folder.resolve() / 'almanac.db'}",
        redis_url=redis,
        broker_url=service_urls.broker(given.broker_url or redis),
        embedded_redis=not given.redis_url,
        secret_key=secret_key,
        encryption_keys=encryption_keys,
    )


def _embedded_redis(folder: Path) -> str:
    return f"unix://{data_folder.socket_path(folder)}"


def _require(**values: object) -> None:
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise SettingsError(
            f"{' and '.join(missing)} must be set when ALMANAC_DATABASE_URL or ALMANAC_REDIS_URL is; "
            "for stored data, as they were when it was stored; `almanac keys secrets` prints fresh ones"
        )


def new_secrets() -> tuple[str, str]:
    """A new secret key and a new encryption key, in the format of their settings."""
    return secrets.token_urlsafe(32), base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def empty_data_dir(data_dir: Path | None = None) -> Path | None:
    """The absolute data folder of the embedded default, if nothing was started in it yet; else None.

    :raise SettingsError: when a setting that decides about it is malformed
    """
    given = read(declaration.Storage)
    if given.database_url or given.redis_url:
        return None
    folder = (data_dir or given.data_dir).resolve()
    return None if any((folder / each).exists() for each in data_folder.STARTED) else folder


def read_log_settings() -> LogSettings:
    """Read the environment. Each variable can name a file instead, as for other settings.

    :raise SettingsError: naming the variable that is malformed, or whose file cannot be read
    """
    return read(LogSettings)


@dataclass(frozen=True, kw_only=True)
class FlowerSettings(declaration.Flower):
    """The settings of Flower's process: the broker and the sign-in, but no secret of the installation."""

    broker_url: str = field(repr=False)


def read_flower_settings(data_dir: Path | None = None) -> FlowerSettings:
    """Read the environment. The secret key, the encryption keys and the database are not needed.

    :raise SettingsError: for a file that cannot be read, or a URL that no broker has
    """
    given = read(declaration.Storage)
    url = given.broker_url or given.redis_url or _embedded_redis(data_dir or given.data_dir)
    return read(FlowerSettings, broker_url=service_urls.broker(url))


def traces() -> bool:
    """Whether traces are sent: whether the variable that OpenTelemetry itself reads is set.

    :raise SettingsError: if it is, and the exporter is not installed
    """
    if not os.environ.get(TRACES):
        return False
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        raise SettingsError(
            f"{TRACES} is set and OpenTelemetry is not installed: install almanac[otel], or unset it"
        )
    return True
