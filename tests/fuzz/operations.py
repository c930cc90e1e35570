"""Every operation of an adapter once, in an order that meets each one's preconditions."""

from __future__ import annotations

from typing import Any

from providers.base import Account, CalendarProvider
from providers.events import Changes, Day, Draft, Moment
from tests.fuzz.conversations import END, START, TEAM, Run, soon

META_ID = "meta-1"
KEY = "5a" * 32
WRITTEN = Changes(
    subject="Made",
    start=Moment(START + 43_200_000, "Europe/Berlin"),
    end=Moment(START + 46_800_000, "Europe/Berlin"),
    attendees=("eve@example.com",),
    meta_id=META_ID,
)
CHANGED = Changes(
    subject="Changed",
    description="Why",
    start=Day("2026-12-04"),
    end=Day("2026-12-05"),
    meeting_url="https://meet.example/1",
)


def busy(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    return adapter.busy(account, ["primary", TEAM[provider]], START, END, deadline=soon())


def events(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    return adapter.events(account, ["primary", TEAM[provider]], START, END, deadline=soon())


def calendars(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    return adapter.calendars(account, deadline=soon())


def create(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    draft = Draft(WRITTEN, KEY, KEY, attempt="5a" * 8)
    return adapter.create_event(account, "primary", draft, deadline=soon())


def find(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    return adapter.find_event(account, "primary", META_ID, deadline=soon())


def get(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    return adapter.event(account, "primary", _id(adapter, account, provider), deadline=soon())


def update(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    event = _id(adapter, account, provider)
    return adapter.update_event(account, "primary", event, CHANGED, deadline=soon())


def update_if(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    """Change the event only if it still has the etag that was read."""
    event = find(adapter, account, provider)
    changes = Changes(subject="Changed again", attendees=("eve@example.com",))
    return adapter.update_event(
        account, "primary", event.id, changes, etag=event.etag or '"0"', deadline=soon()
    )


def delete(adapter: CalendarProvider, account: Account, provider: str) -> Any:
    event = _id(adapter, account, provider)
    return adapter.delete_event(account, "primary", event, notify=None, deadline=soon())


def _id(adapter: CalendarProvider, account: Account, provider: str) -> str:
    return find(adapter, account, provider).id


# "create" stands twice: creating an event that exists is another conversation.
READS: dict[str, Run] = {"busy": busy, "events": events}
OPERATIONS: dict[str, Run] = READS | {
    "calendars": calendars,
    "create": create,
    "create again": create,
    "find": find,
    "get": get,
    "update": update,
    "update if": update_if,
    "delete": delete,
}
