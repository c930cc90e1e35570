"""Checks the URLs in settings, and converts those of database, Redis and broker to the form of their clients.

Messages do not repeat the URL of a database, Redis or broker: it may hold a password.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from store.config.setting import SettingsError
from store.security import redirect_allowlist

_DATABASE_DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql+psycopg")
_REDIS_SCHEMES = ("redis", "rediss", "unix")
_SOCKET_SCHEMES = ("unix", "redis+socket")
_PREPARE_THRESHOLDS = re.compile(r"none|[0-9]{1,9}")
_BROKER_SCHEMES = (*_REDIS_SCHEMES, "redis+socket", "amqp", "amqps", "pyamqp")


def database(url: str) -> str:
    """The URL with the PostgreSQL driver that Almanac ships. An empty URL stays empty.

    :raise SettingsError: for another database, or a malformed URL
    """
    if not url:
        return url
    scheme, found, rest = url.partition("://")
    if scheme in ("postgres", "postgresql"):
        url = f"postgresql+psycopg{found}{rest}"
    try:
        parsed = make_url(url)
        known = parsed.drivername in _DATABASE_DRIVERS
    except (ArgumentError, ValueError):
        known = False
    if known and not _PREPARE_THRESHOLDS.fullmatch(str(parsed.query.get("prepare_threshold", "none"))):
        raise SettingsError(
            "ALMANAC_DATABASE_URL must be like postgresql://user:password@host/name?prepare_threshold=none, "
            "where the last is none or a whole number"
        )
    if not known:
        raise SettingsError(
            "ALMANAC_DATABASE_URL must be like postgresql://user:password@host/name or sqlite:///path"
        )
    return url


def redis(url: str) -> str:
    """The URL unchanged, or empty.

    :raise SettingsError: if it is not a Redis URL
    """
    if url and not _is_one_of(url, _REDIS_SCHEMES):
        raise SettingsError(
            "ALMANAC_REDIS_URL must be like redis://host:6379/0, rediss://host:6379/0 or unix:///path"
        )
    return url


def broker(url: str) -> str:
    """The URL in the form that Celery's transports take.

    :raise SettingsError: if it is neither a Redis nor a RabbitMQ URL
    """
    # One setting can hold several RabbitMQ URLs, separated by semicolons.
    if not all(_is_one_of(each, _BROKER_SCHEMES) for each in url.split(";")):
        raise SettingsError(
            "ALMANAC_BROKER_URL must be like redis://host:6379/0, unix:///path or "
            "amqp://user:password@host:5672//"
        )
    if url.startswith("rediss:") and "ssl_cert_reqs=" not in url:
        # Redis' own client verifies the certificate by default, and kombu does not.
        return f"{url}{'&' if urlsplit(url).query else '?'}ssl_cert_reqs=required"
    return _redis_socket(url) if url.startswith("unix:") else url


def public(url: str) -> str:
    """The URL of this service without a slash at its end, or empty.

    :raise SettingsError: if it has no host, or a query
    """
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise SettingsError("ALMANAC_PUBLIC_URL must be like https://calendar.example.com")
    return without_slash(url)


def without_slash(url: str) -> str:
    """The URL of a provider, to which paths are appended."""
    return url.rstrip("/")


def redirects(urls: tuple[str, ...]) -> tuple[str, ...]:
    """The entries of the allowlist of URLs that people return to.

    :raise SettingsError: naming an entry that is not safe
    """
    entries = tuple(url.strip() for url in urls)
    for url in entries:
        if not redirect_allowlist.is_entry(url):
            raise SettingsError(
                f"ALMANAC_REDIRECT_URLS: {url} must be an https URL (http on this machine only), whole or "
                "ending in /*"
            )
    return entries


def origins(urls: tuple[str, ...]) -> tuple[str, ...]:
    """Origins in the form that browsers send.

    :raise SettingsError: naming one that is not an origin
    """
    return tuple(_origin(url.strip()) for url in urls)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    whole = url == f"{parts.scheme}://{parts.netloc}" and "@" not in url
    if parts.scheme not in ("https", "http") or not parts.hostname or not whole:
        raise SettingsError(
            f"ALMANAC_CORS_ORIGINS: {url} must be an origin, like https://app.example.com or "
            "http://localhost:3000"
        )
    return url.lower()


def _is_one_of(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        # The property parses the port, and raises if it is malformed.
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in schemes or "://" not in url:
        return False
    if parts.scheme in _SOCKET_SCHEMES:
        # With two slashes, the parser takes the first part of the path for a host and drops it.
        return bool(parts.path.strip("/")) and not parts.hostname
    return True


def _redis_socket(url: str) -> str:
    """A Unix socket as kombu names it: another scheme, and other names for database and password."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    sign_in = parts.netloc
    if "password" in query or "username" in query:
        sign_in = f"{quote(query.pop('username', ''), '')}:{quote(query.pop('password', ''), '')}@"
    if "db" in query:
        query["virtual_host"] = query.pop("db")
    rest = f"?{urlencode(query)}" if query else ""
    return f"redis+socket://{sign_in}{parts.path}{rest}"
