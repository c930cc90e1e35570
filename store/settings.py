"""Every setting, read once from the environment; what production needs and lacks refuses to start."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from environs import Env, EnvError, validate

from store import redirects

DAY = 86_400_000

# sockaddr_un holds 108 bytes on Linux and 104 on macOS.
LONGEST_SOCKET_PATH = 100


class SettingsError(Exception):
    """A setting is missing or cannot be read; the message names it and says how to mend it."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Addresses and client credentials of both providers; empty credentials mean "not configured"."""

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
    """What one process runs with. Times are in the unit that the name says."""

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
    busy_ttl_seconds: float
    busy_bucket_days: int
    longest_range_days: int
    most_slots: int
    public_url: str
    redirect_urls: tuple[str, ...]
    providers: ProviderSettings

    @property
    def redis_socket(self) -> Path:
        """Where the embedded Redis listens."""
        return socket_path(self.data_dir)

    @property
    def busy_bucket(self) -> int:
        """The length of a cache bucket in milliseconds."""
        return self.busy_bucket_days * DAY


def socket_path(data_dir: Path) -> Path:
    """A socket in the data folder, or in the temporary one where the data folder's name is too long."""
    inside = data_dir.resolve() / "redis.sock"
    if len(str(inside)) <= LONGEST_SOCKET_PATH:
        return inside
    name = hashlib.sha256(str(inside).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"almanac-{name}.sock"


def read_settings(data_dir: Path | None = None) -> Settings:
    """Read the environment.

    Without database and Redis addresses this is the embedded default: SQLite and a Redis of our own in
    the data folder, with secrets made at first start and kept there.

    :raise SettingsError: naming every variable that is missing or malformed
    """
    env = Env(eager=False)
    with env.prefixed("ALMANAC_"):
        folder = data_dir or Path(env.str("DATA_DIR", ".almanac") or ".almanac")
        database_url: str = env.str("DATABASE_URL", "")
        redis_url: str = env.str("REDIS_URL", "")
        broker_url: str = env.str("BROKER_URL", "")
        embedded = not database_url and not redis_url
        secret_key: str = env.str("SECRET_KEY", "")
        encryption_keys: list[str] = env.list("ENCRYPTION_KEYS", [])
        prefix: str = env.str("API_KEY_PREFIX", "alm_")
        deadline: float = env.float("FANOUT_DEADLINE", 10.0, validate=validate.Range(min=0.1, max=120))
        # Two tasks keep two worker processes busy; each pulls until the list is empty.
        tasks: int = env.int("FANOUT_TASKS", 2, validate=validate.Range(min=1, max=64))
        # With requests, a process spends about 1.5 ms of one core on a read: 64 at 200 ms fill half of it.
        in_flight: int = env.int("READS_IN_FLIGHT", 64, validate=validate.Range(min=1, max=1000))
        # The quotas of a Google project made since May 2026; older ones, and those raised on request, have
        # others.
        google: int = env.int("GOOGLE_PER_MINUTE", 10_000, validate=validate.Range(min=2))
        google_user: int = env.int("GOOGLE_PER_MINUTE_AND_USER", 600, validate=validate.Range(min=2))
        mailbox: int = env.int("MICROSOFT_PER_MAILBOX", 10_000, validate=validate.Range(min=2))
        ttl: float = env.float("BUSY_TTL", 60.0, validate=validate.Range(min=0, max=86_400))
        bucket_days: int = env.int("BUSY_BUCKET_DAYS", 7, validate=validate.Range(min=1, max=60))
        range_days: int = env.int("MAX_RANGE_DAYS", 366, validate=validate.Range(min=1, max=3660))
        most_slots: int = env.int("MAX_SLOTS", 1_000_000, validate=validate.Range(min=1))
        public_url: str = env.str("PUBLIC_URL", "").rstrip("/")
        redirect_urls: list[str] = env.list("REDIRECT_URLS", [])
        providers = _read_providers(env)
    try:
        env.seal()
    except EnvError as error:
        raise SettingsError(str(error)) from error
    if embedded:
        secret_key, encryption_keys = _embedded_secrets(folder, secret_key, encryption_keys)
    _require(
        ALMANAC_SECRET_KEY=secret_key,
        ALMANAC_ENCRYPTION_KEYS=encryption_keys,
    )
    socket = socket_path(folder)
    redis = redis_url or f"unix://{socket}"
    return Settings(
        data_dir=folder,
        database_url=_driver(database_url) or f"sqlite:///{folder.resolve() / 'almanac.db'}",
        redis_url=redis,
        broker_url=broker_url or redis_url or f"redis+socket://{socket}",
        embedded_redis=not redis_url,
        secret_key=secret_key,
        encryption_keys=tuple(_encryption_key(key) for key in encryption_keys),
        api_key_prefix=prefix,
        fanout_deadline_seconds=deadline,
        fanout_tasks=tasks,
        reads_in_flight=in_flight,
        google_per_minute=google,
        google_per_minute_and_user=google_user,
        microsoft_per_mailbox=mailbox,
        busy_ttl_seconds=ttl,
        busy_bucket_days=bucket_days,
        longest_range_days=range_days,
        most_slots=most_slots,
        public_url=_public_url(public_url),
        redirect_urls=tuple(_redirect_url(url.strip()) for url in redirect_urls),
        providers=providers,
    )


def _read_providers(env: Env) -> ProviderSettings:
    def address(name: str, default: str) -> str:
        return str(env.str(name, default)).rstrip("/")

    return ProviderSettings(
        google_client_id=env.str("GOOGLE_CLIENT_ID", ""),
        google_client_secret=env.str("GOOGLE_CLIENT_SECRET", ""),
        google_api_url=address("GOOGLE_API_URL", "https://www.googleapis.com/calendar/v3"),
        google_auth_url=address("GOOGLE_AUTH_URL", "https://accounts.google.com/o/oauth2/v2/auth"),
        google_token_url=address("GOOGLE_TOKEN_URL", "https://oauth2.googleapis.com/token"),
        google_revoke_url=address("GOOGLE_REVOKE_URL", "https://oauth2.googleapis.com/revoke"),
        google_userinfo_url=address(
            "GOOGLE_USERINFO_URL", "https://openidconnect.googleapis.com/v1/userinfo"
        ),
        microsoft_client_id=env.str("MICROSOFT_CLIENT_ID", ""),
        microsoft_client_secret=env.str("MICROSOFT_CLIENT_SECRET", ""),
        microsoft_tenant=env.str("MICROSOFT_TENANT", "common"),
        microsoft_graph_url=address("MICROSOFT_GRAPH_URL", "https://graph.microsoft.com/v1.0"),
        microsoft_login_url=address("MICROSOFT_LOGIN_URL", "https://login.microsoftonline.com"),
    )


def _public_url(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise SettingsError("ALMANAC_PUBLIC_URL must be like https://calendar.example.com")
    return url


def _redirect_url(url: str) -> str:
    if not redirects.is_entry(url):
        raise SettingsError(
            f"ALMANAC_REDIRECT_URLS: {url} must be an https URL (http on this machine only), whole or "
            "ending in /*"
        )
    return url


def _require(**values: object) -> None:
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise SettingsError(
            f"{' and '.join(missing)} must be set when ALMANAC_DATABASE_URL or ALMANAC_REDIS_URL is; "
            "`almanac keys secrets` prints fresh ones"
        )


def _driver(url: str) -> str:
    """PostgreSQL addresses as people write them, on the driver that we ship."""
    scheme, found, rest = url.partition("://")
    if scheme in ("postgres", "postgresql"):
        return f"postgresql+psycopg{found}{rest}"
    return url


def _encryption_key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, altchars=b"-_", validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise SettingsError("ALMANAC_ENCRYPTION_KEYS must hold 32 bytes in base64 for each key")
    return key


def new_secrets() -> tuple[str, str]:
    """A fresh secret key and a fresh encryption key, as their settings take them."""
    return secrets.token_urlsafe(32), base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _embedded_secrets(folder: Path, secret_key: str, keys: list[str]) -> tuple[str, list[str]]:
    """The data folder's own secrets, made once; what the environment sets goes before them."""
    if secret_key and keys:
        return secret_key, keys
    file = folder / "secrets"
    if not file.exists():
        make_data_dir(folder)
        _write_once(file, "\n".join(new_secrets()))
    stored_secret, stored_key = file.read_text().split("\n")
    return secret_key or stored_secret, keys or [stored_key]


def make_data_dir(folder: Path) -> None:
    """The folder of the embedded default: people's addresses and sealed tokens are its owner's alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _write_once(file: Path, text: str) -> None:
    """Create ``file`` whole and readable by its owner only; the first of several writers wins."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent) as draft:
        draft.write(text)
        draft.flush()
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, file)
