"""Writes that require an etag, at both providers: another client's change is never overwritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from providers.base import Account, CalendarProvider
from providers.errors import EventChanged, EventNotFound, Unavailable
from providers.events import Day, Event, Moment
from providers.google.client import Google
from providers.microsoft import events as microsoft_events
from providers.microsoft.client import Microsoft
from providers.sandbox.client import Sandbox, SandboxAccount
from tests.app.at_provider import DELETE, SUBJECT, UPDATE, AtProvider
from tests.providers.event_calls import HOUR, NINE, TEN, TIMED, Calls
from tests.providers.sandbox.callers import google, graph

EVERY_FIELD = {
    "subject": "Other",
    "description": "Other",
    "location": "Other",
    "start": Moment(NINE + HOUR),
    "end": Moment(TEN + HOUR),
    "attendees": ("eve@example.com",),
    "meeting_url": "https://zoom.example/1",
    "meta_id": "m-1",
}


class Condition:
    """An event of Almanac's that other clients change; ``etag`` is that of the event as it was created."""

    def __init__(self, sandbox: Sandbox, provider: CalendarProvider, account: SandboxAccount, own: Account):
        self.sandbox = sandbox
        self.name = str(provider.name)
        raw = {"google": google, "microsoft": graph}[self.name](sandbox, account)
        self.calls = Calls(provider, own, raw)
        self.there = AtProvider(sandbox, account)
        self.event: Event = self.calls.create(TIMED).event

    @property
    def etag(self) -> str:
        assert self.event.etag is not None
        return self.event.etag

    def changed_by_another(self) -> None:
        self.there.patch(self.event.id, **{SUBJECT[self.name]: "Another's"})

    def lose_answer(self, operation: dict[str, str]) -> None:
        """The provider executes the next write, and its answer is lost."""
        self.sandbox.fault(operation=operation[self.name], body="reset", times=1)

    def writes(self, operation: dict[str, str]) -> int:
        return self.sandbox.requests().by_operation.get(operation[self.name], 0)


@pytest.fixture(params=["google", "microsoft"])
def condition(
    request: pytest.FixtureRequest,
    sandbox: Sandbox,
    google: Google,
    microsoft: Microsoft,
    connect: Callable[..., Account],
) -> Iterator[Condition]:
    provider: CalendarProvider = google if request.param == "google" else microsoft
    account = sandbox.account(request.param, "alice@example.com")
    made = Condition(sandbox, provider, account, connect(account))
    sandbox.forget_requests()
    yield made
    sandbox.clear_faults()


def test_each_change_gives_an_event_another_etag(condition):
    changed = condition.calls.update(condition.event.id, subject="Mine", etag=condition.etag)
    assert changed.etag not in (None, condition.etag)
    assert condition.calls.event(condition.event.id).etag == changed.etag
    (listed,) = condition.calls.listed()
    assert listed.etag == changed.etag


@pytest.mark.parametrize("form", [str, lambda etag: etag.removeprefix("W/")], ids=["weak", "strong"])
def test_an_event_with_the_required_etag_is_written(condition, form):
    changed = condition.calls.update(condition.event.id, etag=form(condition.etag), **EVERY_FIELD)
    assert (changed.subject, changed.meta_id) == ("Other", "m-1")
    condition.calls.delete(condition.event.id, etag=form(str(changed.etag)))
    assert condition.there.events() == []


@pytest.mark.parametrize("changes", [{"subject": "Mine"}, {"attendees": ("eve@example.com",)}, {}], ids=str)
def test_an_event_that_another_client_has_changed_is_not_written(condition, is_fit_for_people, changes):
    condition.changed_by_another()
    with pytest.raises(EventChanged) as raised:
        condition.calls.update(condition.event.id, etag=condition.etag, **changes)
    is_fit_for_people(raised.value)
    assert not raised.value.repeated
    now = condition.calls.event(condition.event.id)
    assert (now.subject, now.attendees) == ("Another's", ())


def test_an_event_that_another_client_has_changed_is_not_deleted(condition, is_fit_for_people):
    condition.changed_by_another()
    with pytest.raises(EventChanged) as raised:
        condition.calls.delete(condition.event.id, etag=condition.etag)
    is_fit_for_people(raised.value)
    assert condition.there.subjects() == ["Another's"]


def test_an_event_that_another_client_has_deleted_is_not_found(condition):
    condition.there.delete(condition.event.id)
    with pytest.raises(EventNotFound):
        condition.calls.update(condition.event.id, etag=condition.etag, subject="Mine")
    with pytest.raises(EventNotFound):
        condition.calls.delete(condition.event.id, etag=condition.etag)


@pytest.mark.parametrize("status", [412, 503])
def test_a_conditional_write_that_the_provider_refuses_is_not_forced(condition, status):
    """Only the write is refused: at Microsoft the etag is compared in the read before."""
    condition.sandbox.fault(operation=UPDATE[condition.name], status=status)
    condition.sandbox.fault(operation=DELETE[condition.name], status=status)
    kind = EventChanged if status == 412 else Unavailable
    with pytest.raises(kind):
        condition.calls.update(condition.event.id, etag=condition.etag, subject="Mine")
    with pytest.raises(kind):
        condition.calls.delete(condition.event.id, etag=condition.etag)
    assert condition.writes(UPDATE) == condition.writes(DELETE) == (1 if status == 412 else 3)


@pytest.mark.parametrize(
    "changes",
    [
        EVERY_FIELD,
        {"start": Day("2026-12-04"), "end": Day("2026-12-05")},
        {"meeting": True},
        {"subject": "", "attendees": ()},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_conditional_update_with_lost_answer_succeeds(condition, changes):
    condition.lose_answer(UPDATE)
    event = condition.calls.update(condition.event.id, etag=condition.etag, **changes)
    assert event == condition.calls.event(condition.event.id)
    assert event.etag != condition.etag
    # Executed without an answer, then refused for the etag that it changed itself.
    assert condition.writes(UPDATE) == 2


def test_conditional_delete_with_lost_answer_succeeds(condition):
    condition.lose_answer(DELETE)
    condition.calls.delete(condition.event.id, etag=condition.etag)
    assert condition.writes(DELETE) == 2
    assert condition.there.events() == []


def test_a_lost_answer_does_not_hide_the_change_of_another_client(condition):
    """The first attempt is lost before it reaches the provider, and another client writes."""
    # Of two faults for one operation, the newer one is first.
    for status in (412, 503):
        condition.sandbox.fault(operation=UPDATE[condition.name], status=status, times=1)
    with pytest.raises(EventChanged, match="perhaps by this request") as raised:
        condition.calls.update(condition.event.id, etag=condition.etag, subject="Mine")
    assert raised.value.repeated
    assert condition.there.subjects() == ["Review"]


def test_an_event_that_changes_just_before_its_delete_is_not_deleted(condition, monkeypatch):
    """Microsoft's etag is compared with that of a read, and once more by the delete itself."""
    compared = microsoft_events.require_etag

    def change_then(*arguments):
        compared(*arguments)
        condition.changed_by_another()

    monkeypatch.setattr(microsoft_events, "require_etag", change_then)
    if condition.name == "google":
        condition.changed_by_another()

    with pytest.raises(EventChanged):
        condition.calls.delete(condition.event.id, etag=condition.etag)

    assert condition.there.subjects() == ["Another's"]
