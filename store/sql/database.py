"""The SQL database: read sessions, write sessions, what happens at a commit, and migrations."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import URL, CursorResult, Delete, Engine, Update, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Result, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import ORMExecuteState, Session, sessionmaker

from store.config.data_folder import make_data_dir
from store.sql.models import (
    Administrator,
    ApiKey,
    AuditRecord,
    Base,
    Channel,
    DashboardSession,
    HeldName,
    HeldTime,
    Hold,
    IdempotencyKey,
    Invitation,
    RecoveryCode,
    WebhookDelivery,
    WebhookEndpoint,
)

if TYPE_CHECKING:
    # Imported where it is used: the import takes half a second, and few commands migrate.
    from alembic.config import Config

log = logging.getLogger(__name__)

# A parameter of PostgreSQL's URL.
PREPARE_THRESHOLD = "prepare_threshold"

# Connections of one process to PostgreSQL: how many it keeps open, and the most that it opens.
POOLED, MOST_CONNECTIONS = 10, 64

MIGRATIONS = Path(__file__).parent / "migrations"

# How long a migration waits for a table that requests use. PostgreSQL ends one side of a deadlock after a
# second (deadlock_timeout). So a migration gives up before a request is ended. It is tried again.
LOCK_TIMEOUT = "500ms"
# Seconds between two attempts, in which the requests that waited for the migration are served.
LOCK_PAUSE = 0.5
# Seconds after which the upgrade fails if a table was never free.
LOCK_PATIENCE = 120.0

# PostgreSQL's codes of a lock that was not granted in time, and of a deadlock.
_LOCK_ERRORS = ("55P03", "40P01")

# Execution option of a statement that changes no cached value.
UNCACHED = "uncached"

# Models whose changes invalidate nothing. Channels are cached, but a notification of an ended channel is
# still correct. Held time has versions of its own.
_NEVER_CACHED = (
    AuditRecord,
    Channel,
    HeldName,
    HeldTime,
    Hold,
    IdempotencyKey,
    Invitation,
    RecoveryCode,
    WebhookDelivery,
    WebhookEndpoint,
)
# Inserts of these invalidate nothing: the absence of a key or a session is not cached.
_NOT_WHEN_NEW = (Administrator, ApiKey, DashboardSession, *_NEVER_CACHED)

# Names in ``Session.info``.
_CHANGES = "changes"
_ENDPOINTS = "webhook endpoints"

EventsCallback = Callable[[Collection[str]], None]


class MigrationBlocked(Exception):
    """A transaction used a table of the next migration all the time. The migrations before it are kept."""


class MigrationState(Enum):
    """The state of a database's migrations, relative to this version."""

    CURRENT = "current"
    OLDER = "older"
    NEWER = "newer"


class Database:
    """The database engine of a process. Code never waits for a provider or a worker with an open session.

    ``on_cached_rows_changed`` is called before and after each commit that changes rows which processes cache.
    ``on_events_recorded`` is called after a commit with the webhook endpoints for which events were recorded.
    """

    def __init__(
        self,
        url: str,
        on_cached_rows_changed: Callable[[], None] | None = None,
        on_events_recorded: EventsCallback | None = None,
    ) -> None:
        self.url = make_url(url)
        if self.url.get_backend_name() == "sqlite":
            self.engine = _sqlite_engine(url)
        else:
            self.engine = _postgresql_engine(self.url)
        self._reads = sessionmaker(self.engine, expire_on_commit=False)
        self._writes = sessionmaker(self.engine.execution_options(writes=True), expire_on_commit=False)
        self._on_cached_rows_changed = on_cached_rows_changed
        if on_cached_rows_changed is not None:
            _invalidate_on_commit(self._writes, on_cached_rows_changed)
        if on_events_recorded is not None:
            _call_after_commit(self._writes, on_events_recorded)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for queries; it never commits."""
        with self._reads() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session that commits at the end of the block, or rolls back if it raises."""
        with self._writes.begin() as session:
            yield session

    def ping(self) -> None:
        """Raise when the database does not answer."""
        with self.engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def upgrade(self, *, patience: float = LOCK_PATIENCE) -> None:
        """Run every migration that is missing; none if a later version has migrated the database.

        Each migration is a transaction of its own, so that it holds the locks of few tables for a short time.

        :raise MigrationBlocked: if a table was in use for ``patience`` seconds
        """
        if self.url.get_backend_name() == "sqlite" and self.url.database:
            make_data_dir(Path(self.url.database).parent)
        # A newer state: a process of this version starts again during an upgrade.
        while self.migration_state() is MigrationState.OLDER:
            self._run_next_migration(time.monotonic() + patience)
        if self._on_cached_rows_changed is not None:
            self._on_cached_rows_changed()

    def _run_next_migration(self, give_up: float) -> None:
        """Run one migration, as soon as its tables are free; ``give_up`` is of ``time.monotonic()``."""
        from alembic import command

        while True:
            try:
                with self.migrating() as connection:
                    command.upgrade(alembic_config(connection), "+1")
                return
            except OperationalError as error:
                if getattr(error.orig, "sqlstate", None) not in _LOCK_ERRORS:
                    raise
                if time.monotonic() > give_up:
                    raise MigrationBlocked(
                        "A transaction uses a table that a migration changes, and does not end. "
                        "Look for it in pg_stat_activity, end it, and run the upgrade again"
                    ) from error
            log.warning("migration waits for a table in use")
            time.sleep(LOCK_PAUSE)

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """A connection for Alembic's commands, in one transaction.

        SQLite changes a table by copying and dropping it. Foreign keys are off meanwhile: dropping a table
        would delete every row that refers to it (https://www.sqlite.org/lang_altertable.html#otheralter).

        :raise RuntimeError: when a foreign key does not hold afterwards; the transaction is rolled back
        """
        with self.engine.connect().execution_options(writes=True) as connection:
            sqlite = connection.dialect.name == "sqlite"
            if sqlite:
                _sqlite_foreign_keys(connection, "OFF")
            try:
                with connection.begin():
                    if not sqlite:
                        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                    yield connection
                    if sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").all()):
                        raise RuntimeError(f"the migration breaks {len(broken)} foreign keys, of {broken[0]}")
            finally:
                if sqlite:
                    _sqlite_foreign_keys(connection, "ON")

    def migration_state(self) -> MigrationState:
        """Compare the migrations that have run with the ones of this version."""
        from alembic.runtime.migration import MigrationContext

        head, known = self._revisions
        with self.engine.connect() as connection:
            theirs = MigrationContext.configure(connection).get_current_revision()
        if theirs == head:
            return MigrationState.CURRENT
        return MigrationState.OLDER if theirs is None or theirs in known else MigrationState.NEWER

    def warm_up(self) -> None:
        """Import what ``migration_state`` needs, so that the first check is as fast as the others.

        :raise SQLAlchemyError: when the database does not answer
        """
        self.migration_state()

    @cached_property
    def _revisions(self) -> tuple[str | None, frozenset[str]]:
        """The newest revision of this version, and all of them."""
        from alembic.script import ScriptDirectory

        ours = ScriptDirectory(str(MIGRATIONS))
        return ours.get_current_head(), frozenset(script.revision for script in ours.walk_revisions())

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


def note_events(session: Session, endpoint_ids: Iterable[str]) -> None:
    """Report these endpoints when the session's transaction commits."""
    session.info.setdefault(_ENDPOINTS, set()).update(endpoint_ids)


def insert_or_update(session: Session, model: type[Base]) -> Any:
    """An INSERT that may have ON CONFLICT, which SQLAlchemy has for each dialect only."""
    dialects = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
    return dialects[session.get_bind().dialect.name](model)


def changed_rows(session: Session, statement: Update | Delete) -> int:
    """Execute a statement; returns the number of rows that it has changed. It must not return rows."""
    return cast(CursorResult[Any], session.execute(statement)).rowcount


def alembic_config(connection: Connection) -> Config:
    """What Alembic's commands need to work on ``connection``."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def _sqlite_foreign_keys(connection: Connection, value: str) -> None:
    # Directly on the driver: inside a transaction SQLite ignores this pragma.
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA foreign_keys = {value}")


def _postgresql_engine(url: URL) -> Engine:
    # psycopg takes this from its caller only. A pooler in transaction mode serves one client by several
    # connections, so that a statement which was prepared on one of them is missing on the next.
    threshold = url.query.get(PREPARE_THRESHOLD)
    arguments = {} if threshold is None else {PREPARE_THRESHOLD: _prepare_threshold(str(threshold))}
    return create_engine(
        url.difference_update_query([PREPARE_THRESHOLD]),
        connect_args=arguments,
        # The ping detects a lost connection before a request uses it.
        pool_pre_ping=True,
        pool_size=POOLED,
        max_overflow=MOST_CONNECTIONS - POOLED,
        # Error messages must not show stored values.
        hide_parameters=True,
    )


def _prepare_threshold(value: str) -> int | None:
    """How often a statement runs before it is prepared; None: never.

    :raise ValueError: for anything but ``none`` and a whole number
    """
    return None if value == "none" else int(value)


def _sqlite_engine(url: str) -> Engine:
    engine = create_engine(
        url,
        connect_args={"timeout": 10, "check_same_thread": False},
        # Error messages must not show stored values.
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        # The driver's own BEGIN comes late and is never IMMEDIATE. The listener `begin` sends it instead.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that starts with a read fails if another has written before its first write. IMMEDIATE
        # waits instead.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _invalidate_on_commit(
    sessions: sessionmaker[Session], on_cached_rows_changed: Callable[[], None]
) -> None:
    """Call it before and after each commit of ``sessions`` that changes cached rows."""

    @event.listens_for(sessions, "do_orm_execute")
    def executed(state: ORMExecuteState) -> Result[Any] | None:
        if state.is_select or state.execution_options.get(UNCACHED):
            return None
        if state.bind_mapper is not None and issubclass(state.bind_mapper.class_, _NEVER_CACHED):
            return None
        result = state.invoke_statement()
        if getattr(result, "rowcount", -1):
            state.session.info[_CHANGES] = True
        return result

    @event.listens_for(sessions, "after_flush")
    def flushed(session: Session, _context: object) -> None:
        new = [each for each in session.new if not isinstance(each, _NOT_WHEN_NEW)]
        other = [each for each in (*session.dirty, *session.deleted) if not isinstance(each, _NEVER_CACHED)]
        if new or other:
            session.info[_CHANGES] = True

    @event.listens_for(sessions, "before_commit")
    def committing(session: Session) -> None:
        if session.in_nested_transaction():
            # A savepoint: its changes are handled with the outer transaction.
            return
        session.flush()
        if session.info.get(_CHANGES):
            on_cached_rows_changed()

    @event.listens_for(sessions, "after_commit")
    def committed(session: Session) -> None:
        if not session.in_nested_transaction() and session.info.pop(_CHANGES, False):
            on_cached_rows_changed()


def _call_after_commit(sessions: sessionmaker[Session], on_events_recorded: EventsCallback) -> None:
    """Call it after each commit of ``sessions`` with the endpoints that the transaction noted."""

    @event.listens_for(sessions, "after_commit")
    def committed(session: Session) -> None:
        if not session.in_nested_transaction() and (endpoints := session.info.pop(_ENDPOINTS, None)):
            on_events_recorded(endpoints)
