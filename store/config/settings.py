"""The settings of web and worker processes, read once from the environment.

A process does not start if a setting is malformed or a required one is missing.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from store.config import declaration, service_urls, setting_files
from store.config.setting import Setting, SettingsError, Values
from store.security import redirect_allowlist

__all__ = [
    "RETRY_SECONDS",
    "TRACES",
    "ProviderSettings",
    "Settings",
    "SettingsError",
    "empty_data_dir",
    "make_data_dir",
    "new_secrets",
    "read_settings",
    "socket_path",
    "traces",
]

DAY_MILLISECONDS = 86_400_000

TRACES = declaration.OTLP_ENDPOINT.name
RETRY_SECONDS = declaration.WEBHOOKS_RETRY_SECONDS.default

# sockaddr_un holds 108 bytes on Linux and 104 on macOS.
MAX_SOCKET_PATH = 100


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """URLs and client credentials of both providers. Empty credentials mean "not configured"."""

    google_client_id: str
    google_client_secret: str = field(repr=False)
    google_api_url: str
    google_auth_url: str
    google_token_url: str
    google_revoke_url: str
    google_userinfo_url: str
    microsoft_client_id: str
    microsoft_client_secret: str = field(repr=False)
    microsoft_tenant: str
    microsoft_graph_url: str
    microsoft_login_url: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one process. The unit of a duration is in its name."""

    data_dir: Path
    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    broker_url: str = field(repr=False)
    embedded_redis: bool
    secret_key: str = field(repr=False)
    encryption_keys: tuple[bytes, ...] = field(repr=False)
    api_key_prefix: str
    fanout_deadline_seconds: float
    fanout_tasks: int
    reads_in_flight: int
    google_per_minute: int
    google_per_minute_and_user: int
    microsoft_per_mailbox: int
    breaker_accounts: int
    breaker_failures: int
    breaker_pause_seconds: float
    busy_ttl_seconds: float
    max_age_seconds: float
    busy_stale_seconds: float
    failure_ttl_seconds: float
    busy_bucket_days: int
    push_ttl_seconds: float
    max_range_days: int
    max_slots: int
    rate_limit: int
    waiting_reads: int
    waiting_writes: int
    waiting_body_mib: int
    organization_share: int
    max_held_users: int
    metrics_token: str = field(repr=False)
    public_url: str
    trusted_proxies: int
    redirect_urls: tuple[str, ...]
    cors_origins: tuple[str, ...]
    webhooks_allow_private: bool
    webhooks_retry_seconds: tuple[float, ...]
    flower_user: str
    flower_password: str = field(repr=False)
    providers: ProviderSettings

    @property
    def redis_socket(self) -> Path:
        """The Unix socket of the embedded Redis."""
        return socket_path(self.data_dir)

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
        apis = {"google": self.providers.google_api_url, "microsoft": self.providers.microsoft_graph_url}
        reachable = self.public_url.startswith("https:") or apis[provider].startswith("http:")
        if not self.public_url or not reachable or not self.push_ttl_seconds or not self.busy_ttl_seconds:
            return None
        return f"{self.public_url}/v1/push/{provider}"


def socket_path(data_dir: Path) -> Path:
    """A socket in the data folder, or in the temporary folder if the data folder's path is too long."""
    inside = data_dir.resolve() / "redis.sock"
    if len(str(inside)) <= MAX_SOCKET_PATH:
        return inside
    name = hashlib.sha256(str(inside).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"almanac-{name}.sock"


def read_settings(data_dir: Path | None = None) -> Settings:
    """Read the environment.

    Without URLs of a database and of Redis, this is the embedded default: SQLite and an embedded Redis in
    the data folder, with secrets that are generated at the first start and kept there.

    Each variable can name a file instead, by the suffix ``_FILE``, because container secrets are files.

    :raise SettingsError: naming every variable that is missing or malformed
    """
    setting_files.check(os.environ)
    traces()
    values = Values(declaration.SETTINGS)
    folder = data_dir or Path(values[declaration.DATA_DIR])
    database_url, redis_url = values[declaration.DATABASE_URL], values[declaration.REDIS_URL]
    redis = service_urls.redis(redis_url) or f"unix://{socket_path(folder)}"
    database = service_urls.database(database_url) or f"sqlite:///{folder.resolve() / 'almanac.db'}"
    broker = service_urls.broker(values[declaration.BROKER_URL] or redis)
    secret_key, encryption_keys = values[declaration.SECRET_KEY], values[declaration.ENCRYPTION_KEYS]
    if not database_url and not redis_url:
        secret_key, encryption_keys = _embedded_secrets(folder, secret_key, encryption_keys)
    _require(
        ALMANAC_SECRET_KEY=secret_key,
        ALMANAC_ENCRYPTION_KEYS=encryption_keys,
    )
    return Settings(
        data_dir=folder,
        database_url=database,
        redis_url=redis,
        broker_url=broker,
        embedded_redis=not redis_url,
        secret_key=secret_key,
        encryption_keys=tuple(_encryption_key(key) for key in encryption_keys),
        api_key_prefix=values[declaration.API_KEY_PREFIX],
        fanout_deadline_seconds=values[declaration.FANOUT_DEADLINE],
        fanout_tasks=values[declaration.FANOUT_TASKS],
        reads_in_flight=values[declaration.READS_IN_FLIGHT],
        google_per_minute=values[declaration.GOOGLE_PER_MINUTE],
        google_per_minute_and_user=values[declaration.GOOGLE_PER_MINUTE_AND_USER],
        microsoft_per_mailbox=values[declaration.MICROSOFT_PER_MAILBOX],
        breaker_accounts=values[declaration.BREAKER_ACCOUNTS],
        breaker_failures=values[declaration.BREAKER_FAILURES],
        breaker_pause_seconds=values[declaration.BREAKER_PAUSE],
        busy_ttl_seconds=values[declaration.BUSY_TTL],
        max_age_seconds=values[declaration.MAX_AGE],
        busy_stale_seconds=values[declaration.BUSY_STALE],
        failure_ttl_seconds=values[declaration.FAILURE_TTL],
        busy_bucket_days=values[declaration.BUSY_BUCKET_DAYS],
        push_ttl_seconds=values[declaration.PUSH_TTL],
        max_range_days=values[declaration.MAX_RANGE_DAYS],
        max_slots=values[declaration.MAX_SLOTS],
        rate_limit=values[declaration.RATE_LIMIT],
        waiting_reads=values[declaration.WAITING_READS],
        waiting_writes=values[declaration.WAITING_WRITES],
        waiting_body_mib=values[declaration.WAITING_BODY_MIB],
        organization_share=values[declaration.ORGANIZATION_SHARE],
        max_held_users=values[declaration.MAX_HELD_USERS],
        metrics_token=values[declaration.METRICS_TOKEN],
        public_url=_public_url(values[declaration.PUBLIC_URL].rstrip("/")),
        trusted_proxies=values[declaration.TRUSTED_PROXIES],
        redirect_urls=tuple(_redirect_url(url.strip()) for url in values[declaration.REDIRECT_URLS]),
        cors_origins=tuple(_origin(url.strip()) for url in values[declaration.CORS_ORIGINS]),
        webhooks_allow_private=values[declaration.WEBHOOKS_ALLOW_PRIVATE],
        webhooks_retry_seconds=_retry_seconds(values[declaration.WEBHOOKS_RETRY_SECONDS]),
        flower_user=values[declaration.FLOWER_USER],
        flower_password=values[declaration.FLOWER_PASSWORD],
        providers=_read_providers(values),
    )


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


def _read_providers(values: Values) -> ProviderSettings:
    def url(setting: Setting[str]) -> str:
        return values[setting].rstrip("/")

    return ProviderSettings(
        google_client_id=values[declaration.GOOGLE_CLIENT_ID],
        google_client_secret=values[declaration.GOOGLE_CLIENT_SECRET],
        google_api_url=url(declaration.GOOGLE_API_URL),
        google_auth_url=url(declaration.GOOGLE_AUTH_URL),
        google_token_url=url(declaration.GOOGLE_TOKEN_URL),
        google_revoke_url=url(declaration.GOOGLE_REVOKE_URL),
        google_userinfo_url=url(declaration.GOOGLE_USERINFO_URL),
        microsoft_client_id=values[declaration.MICROSOFT_CLIENT_ID],
        microsoft_client_secret=values[declaration.MICROSOFT_CLIENT_SECRET],
        microsoft_tenant=values[declaration.MICROSOFT_TENANT],
        microsoft_graph_url=url(declaration.MICROSOFT_GRAPH_URL),
        microsoft_login_url=url(declaration.MICROSOFT_LOGIN_URL),
    )


def _public_url(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise SettingsError("ALMANAC_PUBLIC_URL must be like https://calendar.example.com")
    return url


def _redirect_url(url: str) -> str:
    if not redirect_allowlist.is_entry(url):
        raise SettingsError(
            f"ALMANAC_REDIRECT_URLS: {url} must be an https URL (http on this machine only), whole or "
            "ending in /*"
        )
    return url


def _origin(url: str) -> str:
    """An origin in the form that browsers send."""
    parts = urlsplit(url)
    whole = url == f"{parts.scheme}://{parts.netloc}" and "@" not in url
    if parts.scheme not in ("https", "http") or not parts.hostname or not whole:
        raise SettingsError(
            f"ALMANAC_CORS_ORIGINS: {url} must be an origin, like https://app.example.com or "
            "http://localhost:3000"
        )
    return url.lower()


def _retry_seconds(seconds: list[float]) -> tuple[float, ...]:
    if not seconds or not all(0 < each <= 7 * 86_400 for each in seconds):
        raise SettingsError(
            "ALMANAC_WEBHOOKS_RETRY_SECONDS must be seconds separated by commas, a week each at most"
        )
    return tuple(seconds)


def _require(**values: object) -> None:
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise SettingsError(
            f"{' and '.join(missing)} must be set when ALMANAC_DATABASE_URL or ALMANAC_REDIS_URL is; "
            "`almanac keys secrets` prints fresh ones"
        )


def _encryption_key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, altchars=b"-_", validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise SettingsError("ALMANAC_ENCRYPTION_KEYS must hold 32 bytes in base64 for each key")
    return key


def new_secrets() -> tuple[str, str]:
    """A new secret key and a new encryption key, in the format of their settings."""
    return secrets.token_urlsafe(32), base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _embedded_secrets(folder: Path, secret_key: str, keys: list[str]) -> tuple[str, list[str]]:
    """The secrets in the data folder, generated once. Values from the environment take precedence."""
    if secret_key and keys:
        return secret_key, keys
    file = folder / "secrets"
    if not file.exists():
        make_data_dir(folder)
        _write_once(file, "\n".join(new_secrets()))
    stored_secret, stored_key = file.read_text().split("\n")
    return secret_key or stored_secret, keys or [stored_key]


def empty_data_dir(data_dir: Path | None = None) -> Path | None:
    """The absolute data folder of the embedded default, if nothing was started in it yet; else None.

    :raise SettingsError: when a setting that decides about it is malformed
    """
    values = Values(declaration.SETTINGS)
    if values[declaration.DATABASE_URL] or values[declaration.REDIS_URL]:
        return None
    folder = (data_dir or Path(values[declaration.DATA_DIR])).resolve()
    return None if folder.is_dir() and any(folder.iterdir()) else folder


def make_data_dir(folder: Path) -> None:
    """Create the data folder for its owner only: it holds email addresses and encrypted tokens."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _write_once(file: Path, text: str) -> None:
    """Create ``file`` atomically, readable by its owner only. The first of several writers wins."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent) as draft:
        draft.write(text)
        draft.flush()
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, file)
