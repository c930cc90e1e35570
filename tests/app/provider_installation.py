"""An installation that providers can reach: web server, worker and Redis, with the session's sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from app.services import EXTENSION
from providers.sandbox.client import Sandbox, SandboxAccount
from store.cache.busy_cache import CLOCK_MARGIN, GAP_KEY, CalendarKey
from store.config.settings import Settings
from store.sql.queries import connection_rows
from store.stores import Stores
from tests.app.at_provider import AtProvider
from tests.conftest import Api, application, connect
from tests.installation import builder
from tests.installation.processes import free_port
from tests.waiting import until
from workers.celery_app import Almanac

READ = {"google": "google.freebusy.query", "microsoft": "microsoft.calendarView.list"}

# Short enough to wait for, and long enough to distinguish expiry from invalidation.
TTL = 1.5

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).date()
DAY = {"start": f"{TOMORROW}", "end": f"{TOMORROW + timedelta(days=1)}"}


def when(hour: int) -> str:
    return f"{TOMORROW}T{hour:02d}:00:00"


@dataclass
class Installation:
    """The parts that tests use."""

    api: Api
    settings: Settings
    stores: Stores
    celery: Almanac

    def person(self, sandbox: Sandbox, user: str, account: SandboxAccount) -> Person:
        assert self.api.post("/users", {"id": user}).status_code == 201
        connect(self.api, user, account)
        with self.stores.database.reading() as session:
            (ref,) = connection_rows.of_user(session, user, organization_id=None) or []
        return Person(self, sandbox, user, account, ref.id)

    def keep(self) -> None:
        """Send the task that beat sends periodically."""
        self.celery.send_task("upkeep.keep_channels")


@dataclass
class Person:
    """A user with one account, in the API and at the provider."""

    installation: Installation
    sandbox: Sandbox
    user: str
    account: SandboxAccount
    connection: str

    @property
    def there(self) -> AtProvider:
        return AtProvider(self.sandbox, self.account)

    @property
    def key(self) -> CalendarKey:
        return CalendarKey(self.connection, "primary")

    def busy(self) -> list[str]:
        """The starts of tomorrow's busy periods."""
        answer = self.installation.api.get(f"/users/{self.user}/calendar/busy", **DAY)
        assert answer.status_code == 200, answer.text
        return [each["start"][11:16] for each in answer.json["data"]]

    def meet(self, hour: int) -> None:
        """Create an event of one hour as another program does."""
        utc = {} if self.account.provider == "google" else {"timeZone": "UTC"}
        suffix = "" if utc else "Z"
        self.there.post(
            start={"dateTime": when(hour) + suffix, **utc}, end={"dateTime": when(hour + 1) + suffix, **utc}
        )

    def count(self, operation: str) -> int:
        return self.sandbox.requests().by_operation.get(operation, 0)

    @property
    def reads(self) -> int:
        """The number of reads at the provider."""
        return self.count(READ[self.account.provider])

    @property
    def channel(self) -> str | None:
        """The channel that watches the calendar."""
        return self.installation.stores.busy.watched([self.key])[0]

    def is_watched(self) -> bool:
        return self.channel is not None

    def settle(self) -> None:
        """Read once, wait for the channel, and read again to fill the cache.

        A read shortly after the start of the web tier counts as unwatched.
        """
        self.busy()
        until(self.is_watched)
        redis = self.installation.stores.redis
        until(lambda: time.time() * 1000 > int(redis.get(GAP_KEY)) + CLOCK_MARGIN)
        self.installation.stores.busy.invalidate_calendar(self.key)
        self.busy()
        self.sandbox.forget_requests()


def kept(installation: Installation, holds: Callable[[], Any]) -> Any:
    """As ``until``, while beat's task is sent repeatedly: one during another does nothing."""

    def after_a_round() -> Any:
        installation.keep()
        time.sleep(0.2)
        return holds()

    return until(after_a_round)


@contextmanager
def installed(environment: dict[str, str], folder: Path, **more: str) -> Iterator[Installation]:
    """Start the installation, with ``more`` variables of the environment."""
    port = free_port()
    changed = {
        "ALMANAC_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "ALMANAC_BUSY_TTL": str(TTL),
    } | more
    with (
        builder.installed(environment, folder, port=port, **changed) as made,
        application(made.settings) as app,
    ):
        celery = app.extensions[EXTENSION].celery
        yield Installation(Api(app.test_client(), made.key), made.settings, made.stores, celery)
