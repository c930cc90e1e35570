"""Checks of the database and of Redis."""

from __future__ import annotations

import time
from typing import Any

from redis.exceptions import ResponseError
from sqlalchemy import text

from app.cli.doctor.diagnosis import CheckResult, CheckState, Examination
from store.security.crypto import Undecipherable
from store.sql.database import MOST_CONNECTIONS, PREPARE_THRESHOLD, MigrationState
from store.sql.queries import connection_rows, organization_grants, provider_clients, webhooks

# The first version that has every command in use.
OLDEST_REDIS = (6, 2)

# Deadlines are instants that other hosts compare with their own clock: an offset shortens or extends
# the time of every request.
CLOCK_SECONDS = 2.0

# Above this share of its memory limit, Redis may soon refuse writes.
MEMORY_SHARE = 0.8

# At most this many connections, and as many webhooks, have their secrets decrypted.
SAMPLE = 20


def database(examination: Examination) -> CheckResult:
    """The database answers, and its schema is current."""
    database = examination.services.stores.database
    began = time.monotonic()
    database.ping()
    duration = f"{(time.monotonic() - began) * 1000:.0f} ms"
    name = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}[database.url.get_backend_name()]
    match database.migration_state():
        case MigrationState.CURRENT:
            return CheckState.OK, f"{name} answers within {duration}, every migration has run", ""
        case MigrationState.NEWER:
            return (
                CheckState.WRONG,
                f"{name} has been migrated by a later version of Almanac",
                "Start that version here too",
            )
    return CheckState.WRONG, f"{name} answers, but migrations are missing", "Run almanac db upgrade"


def connections(examination: Examination) -> CheckResult:
    """PostgreSQL allows the connections of the workers that run. How many web processes run is not known."""
    stores = examination.services.stores
    url = stores.database.url
    if url.get_backend_name() != "postgresql":
        return CheckState.OK, "SQLite needs none", ""
    if url.query.get(PREPARE_THRESHOLD) == "none":
        return CheckState.OK, "A pooler shares them, as the URL has prepare_threshold=none", ""
    with stores.database.engine.connect() as connection:
        allowed = int(connection.execute(text("SHOW max_connections")).scalar_one())
    running = len(stores.heartbeats.live_processes().workers)
    wanted = running * MOST_CONNECTIONS
    workers = "1 worker opens" if running == 1 else f"{running} workers open"
    sentence = f"PostgreSQL allows {allowed}; {workers} up to {wanted}, and web processes more"
    if wanted < allowed:
        return CheckState.OK, sentence, ""
    return (
        CheckState.WARNING,
        sentence,
        f"Set max_connections of PostgreSQL to {MOST_CONNECTIONS} for each worker and web process, or put a "
        "pooler in front",
    )


def redis(examination: Examination) -> CheckResult:
    """Redis answers, and its version is recent enough."""
    began = time.monotonic()
    server = _info(examination, "server")
    # Valkey reports the Redis version that it is compatible with, and its own version separately.
    version = str(server.get("redis_version", "0"))
    own = server.get("valkey_version")
    name = f"Valkey {own}" if own else f"Redis {version}"
    duration = f"{(time.monotonic() - began) * 1000:.0f} ms"
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        oldest = ".".join(str(part) for part in OLDEST_REDIS)
        return CheckState.WRONG, f"Redis {version} is too old", f"Run Redis {oldest} or later"
    return CheckState.OK, f"{name} answers within {duration}", ""


def memory(examination: Examination) -> CheckResult:
    """Redis evicts no keys, and has memory left."""
    info = _info(examination, "memory")
    used, limit = int(info["used_memory"]), int(info.get("maxmemory", 0))
    if not limit:
        return CheckState.OK, f"{_mib(used)} in use, without a limit", ""
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return (
            CheckState.WRONG,
            f"At {_mib(limit)} Redis evicts keys ({policy}): tasks, replies, versions of the cache",
            "Set maxmemory-policy noeviction in Redis",
        )
    if used > MEMORY_SHARE * limit:
        return (
            CheckState.WARNING,
            f"{_mib(used)} of {_mib(limit)} are in use: when it is full, requests fail",
            "Raise maxmemory in Redis",
        )
    return CheckState.OK, f"{_mib(used)} of {_mib(limit)} in use, nothing is dropped", ""


def persistence(examination: Examination) -> CheckResult:
    """Redis restarts empty: an older state would restore cached calendars without the latest events."""
    client = examination.services.stores.redis
    switched_off = {"save": "", "appendonly": "no"}
    advice = 'Start it with --save "" --appendonly no'
    try:
        enabled = [
            name for name, off in switched_off.items() if client.config_get(name).get(name, off) != off
        ]
    except ResponseError:
        return CheckState.WARNING, "This Redis does not say whether it keeps its state on disk", advice
    if enabled:
        return (
            CheckState.WARNING,
            f"Redis keeps its state on disk ({' and '.join(enabled)}): after a crash it may come back older "
            "than the events that were written since, and offer time that is taken",
            advice,
        )
    return CheckState.OK, "Nothing is kept on disk: Redis comes back empty", ""


def encryption_keys(examination: Examination) -> CheckResult:
    """The keys decrypt all registrations, the newest and oldest connections, and some webhooks."""
    stores = examination.services.stores
    with stores.database.reading() as session:
        tried, closed = connection_rows.check_decryption(session, stores.keyring, SAMPLE)
        clients = list(provider_clients.load(session).values())
        endpoints, unreadable = webhooks.check_decryption(session, stores.keyring, SAMPLE)
        grants, unusable = organization_grants.check_decryption(session, stores.keyring, SAMPLE)
    lost = [f"{closed} of {tried} connections"] if closed else []
    if unreadable:
        lost.append(f"{unreadable} of {endpoints} webhooks")
    if unusable:
        lost.append(f"{unusable} of {grants} grants of organizations")
    for client in clients:
        try:
            provider_clients.open_client(client, stores.keyring)
        except Undecipherable:
            lost.append(f"the registration with {client.provider}")
    if lost:
        return (
            CheckState.WRONG,
            f"The encryption keys do not decrypt {' and '.join(lost)}",
            "Put the key back with which they were encrypted, behind the others in ALMANAC_ENCRYPTION_KEYS",
        )
    if not (tried or clients or endpoints or grants):
        return CheckState.OK, "There are no encrypted values yet", ""
    opened = f"{tried} connections, {len(clients)} registrations, {endpoints} webhooks"
    if grants:
        opened += f", {grants} grants of organizations"
    return CheckState.OK, f"They decrypt the values that were tried: {opened}", ""


def clock(examination: Examination) -> CheckResult:
    """This host's clock agrees with those of Redis and of the database."""
    stores = examination.services.stores
    seconds, micros = stores.redis.time()
    apart = {"Redis": abs(time.time() - (int(seconds) + int(micros) / 1e6))}
    if stores.database.url.get_backend_name() == "postgresql":
        with stores.database.engine.connect() as connection:
            epoch = connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
        apart["PostgreSQL"] = abs(time.time() - float(epoch))
    worst = max(apart, key=lambda name: apart[name])
    if apart[worst] > CLOCK_SECONDS:
        return (
            CheckState.WRONG,
            f"The clocks of this host and of {worst} are {apart[worst]:.0f} seconds apart",
            "Run NTP on every host: processes on different hosts share deadlines",
        )
    return CheckState.OK, f"This host is within {max(0.1, apart[worst]):.1f} s of {' and '.join(apart)}", ""


def _info(examination: Examination, section: str) -> dict[str, Any]:
    info: dict[str, Any] = examination.services.stores.redis.info(section)
    return info


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
