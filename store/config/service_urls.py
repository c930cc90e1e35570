"""The addresses of database, Redis and broker: checked, and written as their clients take them."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

_DATABASE_DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql+psycopg")
_REDIS_SCHEMES = ("redis", "rediss", "unix")
_SOCKET_SCHEMES = ("unix", "redis+socket")
_BROKER_SCHEMES = (*_REDIS_SCHEMES, "redis+socket", "amqp", "amqps", "pyamqp")


class BadURL(ValueError):
    """An address that its setting does not take. The message does not repeat it: it may hold a password."""


def database(url: str) -> str:
    """PostgreSQL addresses as people write them, on the driver that we ship; the empty one as it is.

    :raise BadURL: for another database, or what cannot be parsed
    """
    if not url:
        return url
    scheme, found, rest = url.partition("://")
    if scheme in ("postgres", "postgresql"):
        url = f"postgresql+psycopg{found}{rest}"
    try:
        known = make_url(url).drivername in _DATABASE_DRIVERS
    except (ArgumentError, ValueError):
        known = False
    if not known:
        raise BadURL(
            "ALMANAC_DATABASE_URL must be like postgresql://user:password@host/name or sqlite:///path"
        )
    return url


def redis(url: str) -> str:
    """The address as it is, or empty.

    :raise BadURL: when it is not one of Redis
    """
    if url and not _is_one_of(url, _REDIS_SCHEMES):
        raise BadURL(
            "ALMANAC_REDIS_URL must be like redis://host:6379/0, rediss://host:6379/0 or unix:///path"
        )
    return url


def broker(url: str) -> str:
    """The address as Celery's transports take it.

    :raise BadURL: when it is neither of Redis nor of RabbitMQ
    """
    # Several of RabbitMQ may stand in one setting, separated by semicolons.
    if not all(_is_one_of(each, _BROKER_SCHEMES) for each in url.split(";")):
        raise BadURL(
            "ALMANAC_BROKER_URL must be like redis://host:6379/0, unix:///path or "
            "amqp://user:password@host:5672//"
        )
    return _redis_socket(url) if url.startswith("unix:") else url


def _is_one_of(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        # Parsed when it is read: this raises for a port that is none.
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in schemes or "://" not in url:
        return False
    if parts.scheme in _SOCKET_SCHEMES:
        # With two slashes, the first part of the path would be taken for a host and dropped.
        return bool(parts.path.strip("/")) and not parts.hostname
    return True


def _redis_socket(url: str) -> str:
    """A Unix socket in the words of kombu: another scheme, and other names for database and password."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    sign_in = parts.netloc
    if "password" in query or "username" in query:
        sign_in = f"{quote(query.pop('username', ''), '')}:{quote(query.pop('password', ''), '')}@"
    if "db" in query:
        query["virtual_host"] = query.pop("db")
    rest = f"?{urlencode(query)}" if query else ""
    return f"redis+socket://{sign_in}{parts.path}{rest}"
