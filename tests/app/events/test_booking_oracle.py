"""Holds, creates, moves, deletions and slots agree with a slow model, for users who share mailboxes."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from providers.sandbox.client import Sandbox
from store.sql.models import Hold
from store.sql.queries import api_keys
from tests import people
from tests.app.days import PROVIDERS
from tests.app.events.booking_model import Margin, Model, Period
from tests.conftest import Api, stores_of

# A failing sequence is made shorter for minutes.
pytestmark = [pytest.mark.usefixtures("worker"), pytest.mark.timeout(600)]

# Three users share two mailboxes: the second one has both.
CONNECTED = {"first": ["google"], "both": ["google", "microsoft"], "last": ["microsoft"]}
# Minutes of the day: bookings begin in the first range, and slots are read in the second.
MORNING, ASKED = (120, 300), (60, 360)
EXAMPLES = int(os.environ.get("ALMANAC_EXAMPLES", "15"))
# Each example has a day of its own.
_days = itertools.count(30)

users = st.sampled_from(sorted(CONNECTED))
tens = st.integers(MORNING[0] // 10, MORNING[1] // 10 - 1).map(lambda ten: ten * 10)
periods = st.builds(lambda start, length: (start, start + length), tens, st.sampled_from((10, 20, 30, 60)))
paddings = st.sampled_from((0, 0, 10, 20))
margins = st.builds(Margin, paddings, paddings, st.sampled_from((0, 0, 1, 2)))
durations = st.sampled_from((10, 20, 30))
# Chooses among what exists, by the remainder.
number = st.integers(0, 11)

holds = st.tuples(st.just("hold"), st.lists(users, min_size=1, max_size=3, unique=True), periods, margins)
creates = st.tuples(st.just("create"), users, number, periods, margins)
moves = st.tuples(st.just("move"), users, number, periods, margins)
deletes = st.tuples(st.just("delete"), users, number)
releases = st.tuples(st.just("release"), number)
expiries = st.tuples(st.just("expire"), number)
slots = st.tuples(st.just("slots"), users, durations, margins)

Step = tuple[Any, ...]


@dataclass
class Bookings:
    """Steps over HTTP on one day of three users, each compared with the model."""

    api: Api
    names: dict[str, str]
    day: datetime
    model: Model = field(default_factory=lambda: Model(CONNECTED))

    def do(self, step: Step) -> None:
        getattr(self, step[0])(*step[1:])

    def hold(self, wanted: list[str], period: Period, margin: Margin) -> None:
        body = {"users": [self.names[each] for each in wanted], **self._body(period), **margin.query()}
        free = all(self.model.is_free(each, period, margin) for each in wanted)
        answer = self._agree(self.api.post("/holds", body), free, 201)
        if free:
            self.model.hold(answer["id"], wanted, period)

    def create(self, user: str, chosen: int, period: Period, margin: Margin) -> None:
        mailbox = _chosen(CONNECTED[user], chosen)
        answer = self.api.post(
            self._events(user, mailbox), self._body(period), query_string=self._if_free(margin)
        )
        free = self.model.is_free(user, period, margin)
        made = self._agree(answer, free, 201)
        if free:
            self.model.mailboxes[mailbox].events[made["id"]] = period

    def move(self, user: str, chosen: int, period: Period, margin: Margin) -> None:
        mailbox, event = self._event(user, chosen)
        if event is None:
            return
        answer = self.api.put(
            f"{self._events(user, mailbox)}/{quote(event, safe='')}",
            self._body(period),
            query_string=self._if_free(margin),
        )
        free = self.model.is_free(user, period, margin, but=event)
        self._agree(answer, free, 200)
        if free:
            self.model.mailboxes[mailbox].events[event] = period

    def delete(self, user: str, chosen: int) -> None:
        mailbox, event = self._event(user, chosen)
        if event is not None:
            path = f"{self._events(user, mailbox)}/{quote(event, safe='')}"
            assert self.api.delete(path).status_code == 200
            del self.model.mailboxes[mailbox].events[event]

    def release(self, chosen: int) -> None:
        if self.model.holds:
            hold = _chosen(sorted(self.model.holds), chosen)
            assert self.api.delete(f"/holds/{hold}").status_code == 200
            del self.model.holds[hold]

    def expire(self, chosen: int) -> None:
        """A hold expires now."""
        if not self.model.holds:
            return
        hold = _chosen(sorted(self.model.holds), chosen)
        wanted = self.api.get(f"/holds/{hold}").json["data"]["users"]
        with stores_of(self.api.client.application).database.writing() as session:
            session.execute(update(Hold).where(Hold.id == hold).values(expires_at=1))
        del self.model.holds[hold]
        # Processes do not watch the database: they load held time again after another hold of the same users.
        body = {"users": wanted, **self._body((1200, 1210))}
        other = self.api.post("/holds", body)
        assert other.status_code == 201, other.json
        assert self.api.delete(f"/holds/{other.json['data']['id']}").status_code == 200

    def slots(self, user: str, duration: int, margin: Margin) -> None:
        query = {**self._body(ASKED), **margin.query(), "slotDuration": duration}
        answer = self.api.get(f"/users/{self.names[user]}/scheduling", **query)
        assert answer.status_code == 200, answer.json
        found = [(each["start"], each["end"]) for each in answer.json["data"]["availableSlots"]]
        expected = self.model.slots(user, ASKED, duration, margin)
        assert found == [(self._written(start), self._written(end)) for start, end in expected]

    def clear(self) -> None:
        """Delete what is left."""
        while self.model.holds:
            self.release(0)
        for user in ("first", "last"):
            while self.model.mailboxes[CONNECTED[user][0]].events:
                self.delete(user, 0)

    def _agree(self, answer: Any, free: bool, status: int) -> Any:
        assert answer.status_code == (status if free else 409), (free, answer.json)
        assert free or answer.json["code"] == "slotTaken"
        return answer.json["data"]

    def _event(self, user: str, chosen: int) -> tuple[str, str | None]:
        """An event in a mailbox of a user. Another user may have created it."""
        known = [
            (name, each) for name in CONNECTED[user] for each in sorted(self.model.mailboxes[name].events)
        ]
        return _chosen(known, chosen) if known else ("", None)

    def _events(self, user: str, mailbox: str) -> str:
        return f"/users/{self.names[user]}/calendar/events/{mailbox}/primary"

    def _if_free(self, margin: Margin) -> dict[str, Any]:
        return {"ifFree": "true", **margin.query()}

    def _body(self, period: Period) -> dict[str, str]:
        return {"start": self._written(period[0]), "end": self._written(period[1])}

    def _written(self, minute: int) -> str:
        return f"{self.day + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%S.000Z}"


def _chosen(known: Any, chosen: int) -> Any:
    return known[chosen % len(known)]


@dataclass
class Place:
    """A client, and the ids of the three users."""

    api: Api
    names: dict[str, str]

    def run(self, steps: list[Step]) -> None:
        """Take the steps on a new day, then read the slots of all users."""
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        bookings = Bookings(self.api, self.names, midnight + timedelta(days=next(_days)))
        try:
            for step in steps:
                bookings.do(step)
            for user in CONNECTED:
                for margin in (Margin(), Margin(10, 20, 1)):
                    bookings.slots(user, 10, margin)
        finally:
            bookings.clear()


@pytest.fixture(scope="module")
def place(app, sandbox_process) -> Place:
    sandbox = Sandbox(sandbox_process)
    # The test before may have left its faults.
    sandbox.reset()
    accounts = {
        provider: sandbox.account(provider, f"oracle-{provider}@example.com") for provider in PROVIDERS
    }
    stores = stores_of(app)
    names = {name: f"oracle-{name}" for name in CONNECTED}
    with stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="oracle")
        for name, mailboxes in CONNECTED.items():
            people.connected(session, stores.keyring, names[name], *(accounts[each] for each in mailboxes))
    return Place(Api(app.test_client(), key), names)


@settings(max_examples=EXAMPLES)
@example([("hold", ["first"], (120, 150), Margin()), ("create", "both", 0, (130, 160), Margin())])
@example([("create", "both", 0, (120, 150), Margin()), ("hold", ["first"], (150, 160), Margin(after=10))])
@given(st.lists(st.one_of(holds, creates, deletes, releases, expiries, slots), min_size=1, max_size=8))
def test_holds_creates_and_slots_agree_with_the_model(place, steps):
    place.run(steps)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@example([("create", "both", 0, (120, 180), Margin()), ("move", "both", 0, (150, 210), Margin())])
@given(st.lists(st.one_of(holds, creates, moves, releases, slots), min_size=1, max_size=8))
def test_moves_agree_with_the_model(place, steps):
    place.run(steps)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(
    st.lists(st.one_of(holds, creates, moves, deletes, releases, expiries, slots), min_size=15, max_size=40)
)
def test_long_sequences_agree_with_the_model(place, steps):
    place.run(steps)
