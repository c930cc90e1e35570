"""Users whose busy periods are cached, without a provider."""

from __future__ import annotations

from datetime import datetime
from random import Random

from app.availability.parameters import now_ms
from app.schemas.timestamps import EPOCH, MILLISECOND
from scheduling.intervals import Intervals
from scheduling.windows import MINUTE
from store.cache.busy_cache import BusyRead, CalendarKey
from store.sql.models import Membership, Organization, User
from store.sql.queries import connections
from store.sql.queries.connection_rows import Tokens
from store.stores import Stores
from tests.scheduling import oracle

SEED = 20_261_121

# Around the changes of clocks in Europe and America: days of 23, 24 and 25 hours.
MONDAYS = ("2026-10-19", "2026-10-26", "2027-03-08", "2027-03-22")
MAX_PERIODS = 30


class Person:
    """A user with one connection, and the cached periods of its main calendar."""

    def __init__(self, random: Random, custom_id: str) -> None:
        self.id = custom_id
        self.connection = ""
        self.busy: list[tuple[int, int]] = []
        for monday in MONDAYS:
            at = milliseconds(monday)
            for _ in range(random.randrange(MAX_PERIODS)):
                at += random.randrange(1, 900) * MINUTE
                self.busy.append((at, at + random.choice((5, 15, 30, 60, 1440)) * MINUTE))
                at = self.busy[-1][1] + MINUTE


def milliseconds(day: str) -> int:
    return (datetime.fromisoformat(f"{day}T00:00:00+00:00") - EPOCH) // MILLISECOND


def create(stores: Stores, slug: str, person: Person) -> None:
    with stores.database.writing() as session:
        organization = session.query(Organization).filter_by(slug=slug).one_or_none()
        organization = organization or Organization(slug=slug, name=None)
        user = User(custom_id=person.id)
        session.add_all([organization, user])
        session.flush()
        session.add(Membership(organization_id=organization.id, user_id=user.id))
        row, _ = connections.replace(
            session,
            stores.keyring,
            user_id=user.id,
            provider="google",
            email=f"{person.id}@plain.example",
            scope=["https://www.googleapis.com/auth/calendar.readonly"],
            tokens=Tokens("unused", None, None),
        )
        # As the first read stores it.
        row.main_calendar_id = row.mailbox = f"{person.id}@plain.example"
    person.connection = row.id


def cache(stores: Stores, person: Person, *, age: int = 0) -> None:
    """Cache the periods of a user over all of the days that tests use, as read ``age`` milliseconds ago."""
    start, end = stores.busy.hull(milliseconds("2026-09-01"), milliseconds("2027-06-01"))
    busy = Intervals.of(oracle.merged(person.busy, MINUTE))
    generation = stores.busy.begin_reads([person.connection], {})[person.connection]
    key = CalendarKey(person.connection, "primary")
    with stores.redis.pipeline(transaction=False) as pipe:
        read_at = now_ms() - age
        stores.busy.store(pipe, [BusyRead(key, busy, start, end, read_at=read_at, generation=generation)])
        pipe.execute()
