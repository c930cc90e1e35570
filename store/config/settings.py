"""Every setting, read once from the environment; what production needs and lacks refuses to start."""

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

from environs import Env, EnvError, FileAwareEnv, ValidationError, validate

from store.config import service_urls, setting_files
from store.security import redirect_allowlist

DAY = 86_400_000

TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT"

# In MiB. With less, a worker would be replaced again and again.
LEAST_MEMORY = 200

# sockaddr_un holds 108 bytes on Linux and 104 on macOS.
LONGEST_SOCKET_PATH = 100

# Almost two days in all: a receiver may be away for a night and the day after.
RETRY_SECONDS = [5.0, 30.0, 120.0, 600.0, 1800.0, 7200.0, 21_600.0, 43_200.0, 86_400.0]


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
    breaker_accounts: int
    breaker_failures: int
    breaker_pause_seconds: float
    busy_ttl_seconds: float
    busy_stale_seconds: float
    failure_ttl_seconds: float
    busy_bucket_days: int
    push_ttl_seconds: float
    push_audit_seconds: float
    longest_range_days: int
    most_slots: int
    rate_limit: int
    waiting_reads: int
    waiting_writes: int
    worker_memory: int
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
        """Where the embedded Redis listens."""
        return socket_path(self.data_dir)

    @property
    def busy_bucket(self) -> int:
        """The length of a cache bucket in milliseconds."""
        return self.busy_bucket_days * DAY

    def push_address(self, provider: str) -> str | None:
        """Where a provider is to tell us of changes; None where it cannot, or is not to.

        The real providers send to https alone; the sandbox, which is reached by http, sends to either.
        """
        apis = {"google": self.providers.google_api_url, "microsoft": self.providers.microsoft_graph_url}
        reachable = self.public_url.startswith("https:") or apis[provider].startswith("http:")
        if not self.public_url or not reachable or not self.push_ttl_seconds or not self.busy_ttl_seconds:
            return None
        return f"{self.public_url}/v1/push/{provider}"


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

    Each variable may name a file instead, by ``_FILE`` at its end: secrets of containers are files.

    :raise SettingsError: naming every variable that is missing or malformed
    """
    try:
        setting_files.check(os.environ)
    except setting_files.UnreadableFile as error:
        raise SettingsError(str(error)) from error
    env = FileAwareEnv(eager=False, strip_whitespace=True)
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
        # More accounts than fail by chance before one is answered; more failures than a hiccup makes.
        accounts: int = env.int("BREAKER_ACCOUNTS", 10, validate=validate.Range(min=0))
        failures: int = env.int("BREAKER_FAILURES", 3, validate=validate.Range(min=0))
        pause: float = env.float("BREAKER_PAUSE", 15.0, validate=validate.Range(min=0.1, max=600))
        ttl: float = env.float("BUSY_TTL", 60.0, validate=validate.Range(min=0, max=86_400))
        stale: float = env.float("BUSY_STALE", 0.0, validate=validate.Range(min=0, max=86_400))
        failure_ttl: float = env.float("FAILURE_TTL", 5.0, validate=validate.Range(min=0, max=60))
        bucket_days: int = env.int("BUSY_BUCKET_DAYS", 7, validate=validate.Range(min=1, max=60))
        push_ttl: float = env.float("PUSH_TTL", 21_600.0, validate=validate.Range(min=0, max=86_400))
        push_audit: float = env.float("PUSH_AUDIT", 3600.0, validate=validate.Range(min=1, max=86_400))
        range_days: int = env.int("MAX_RANGE_DAYS", 366, validate=validate.Range(min=1, max=3660))
        most_slots: int = env.int("MAX_SLOTS", 1_000_000, validate=validate.Range(min=1))
        # Off: keys are given to programs that are known, and a limit that nobody chose surprises them.
        rate_limit: int = env.int("RATE_LIMIT", 0, validate=validate.Range(min=0))
        # Two workers have as many threads for tasks; who comes later could only wait behind all of them.
        waiting_reads: int = env.int("WAITING_READS", 256, validate=validate.Range(min=1))
        # People write one event at a time.
        waiting_writes: int = env.int("WAITING_WRITES", 64, validate=validate.Range(min=1))
        memory: int = env.int("WORKER_MEMORY", 512, validate=[validate.Range(min=0), _room_to_start])
        metrics_token: str = env.str("METRICS_TOKEN", "")
        public_url: str = env.str("PUBLIC_URL", "").rstrip("/")
        proxies: int = env.int("TRUSTED_PROXIES", 0, validate=validate.Range(min=0, max=10))
        redirect_urls: list[str] = env.list("REDIRECT_URLS", [])
        cors_origins: list[str] = env.list("CORS_ORIGINS", [])
        allow_private: bool = env.bool("WEBHOOKS_ALLOW_PRIVATE", False)
        retries: list[float] = env.list("WEBHOOKS_RETRY_SECONDS", RETRY_SECONDS, subcast=float)
        flower_user: str = env.str("FLOWER_USER", "almanac") or "almanac"
        flower_password: str = env.str("FLOWER_PASSWORD", "")
        providers = _read_providers(env)
    traces()
    try:
        env.seal()
        redis = service_urls.redis(redis_url) or f"unix://{socket_path(folder)}"
        database = service_urls.database(database_url) or f"sqlite:///{folder.resolve() / 'almanac.db'}"
        broker = service_urls.broker(broker_url or redis)
    except (EnvError, service_urls.BadURL) as error:
        raise SettingsError(str(error)) from error
    if embedded:
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
        api_key_prefix=prefix,
        fanout_deadline_seconds=deadline,
        fanout_tasks=tasks,
        reads_in_flight=in_flight,
        google_per_minute=google,
        google_per_minute_and_user=google_user,
        microsoft_per_mailbox=mailbox,
        breaker_accounts=accounts,
        breaker_failures=failures,
        breaker_pause_seconds=pause,
        busy_ttl_seconds=ttl,
        busy_stale_seconds=stale,
        failure_ttl_seconds=failure_ttl,
        busy_bucket_days=bucket_days,
        push_ttl_seconds=push_ttl,
        push_audit_seconds=push_audit,
        longest_range_days=range_days,
        most_slots=most_slots,
        rate_limit=rate_limit,
        waiting_reads=waiting_reads,
        waiting_writes=waiting_writes,
        worker_memory=memory,
        metrics_token=metrics_token,
        public_url=_public_url(public_url),
        trusted_proxies=proxies,
        redirect_urls=tuple(_redirect_url(url.strip()) for url in redirect_urls),
        cors_origins=tuple(_origin(url.strip()) for url in cors_origins),
        webhooks_allow_private=allow_private,
        webhooks_retry_seconds=_retry_seconds(retries),
        flower_user=flower_user,
        flower_password=flower_password,
        providers=providers,
    )


def traces() -> bool:
    """Whether traces are to be sent, by the variable that OpenTelemetry itself reads.

    :raise SettingsError: when they are, and what sends them is not installed
    """
    if not os.environ.get(TRACES):
        return False
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        raise SettingsError(
            f"{TRACES} is set and OpenTelemetry is not installed: install almanac[otel], or unset it"
        )
    return True


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
    if not redirect_allowlist.is_entry(url):
        raise SettingsError(
            f"ALMANAC_REDIRECT_URLS: {url} must be an https URL (http on this machine only), whole or "
            "ending in /*"
        )
    return url


def _origin(url: str) -> str:
    """An origin as browsers write it."""
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


def _room_to_start(mebibytes: int) -> None:
    if 0 < mebibytes < LEAST_MEMORY:
        raise ValidationError(f"Must be 0 or at least {LEAST_MEMORY}: a worker that has done nothing has 120")


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
