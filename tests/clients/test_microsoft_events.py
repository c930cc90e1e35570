"""Events between our service and msgraph-sdk: each reads what the other wrote."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from providers.microsoft import properties
from providers.sandbox.client import Sandbox, SandboxAccount
from tests.app.days import periods
from tests.conftest import Api

# The SDK's generated code uses deprecated parts of its own library.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from msgraph.generated.models.attendee import Attendee
    from msgraph.generated.models.body_type import BodyType
    from msgraph.generated.models.day_of_week import DayOfWeek
    from msgraph.generated.models.email_address import EmailAddress
    from msgraph.generated.models.event import Event
    from msgraph.generated.models.item_body import ItemBody
    from msgraph.generated.models.location import Location
    from msgraph.generated.models.o_data_errors.o_data_error import ODataError
    from msgraph.generated.models.patterned_recurrence import PatternedRecurrence
    from msgraph.generated.models.recurrence_pattern import RecurrencePattern
    from msgraph.generated.models.recurrence_pattern_type import RecurrencePatternType
    from msgraph.generated.models.recurrence_range import RecurrenceRange
    from msgraph.generated.models.recurrence_range_type import RecurrenceRangeType
    from msgraph.generated.models.response_status import ResponseStatus
    from msgraph.generated.models.response_type import ResponseType
    from msgraph.generated.models.single_value_legacy_extended_property import (
        SingleValueLegacyExtendedProperty,
    )
    from msgraph.generated.models.week_index import WeekIndex
    from msgraph.generated.users.item.calendar_view.calendar_view_request_builder import (
        CalendarViewRequestBuilder,
    )
    from msgraph.generated.users.item.events.item.event_item_request_builder import EventItemRequestBuilder

    from tests.clients.graph_client import Graph, run, when, with_query

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("worker"),
]

ADA, BOB = "ada@contoso.example", "bob@example.com"
WEEK = {"start": "2026-12-01", "end": "2026-12-08"}
BERLIN = 'outlook.timezone="Europe/Berlin"'
TIMED = {
    "subject": "Review 日本",
    "description": "a < b\nc & d",
    "location": "Room 1",
    "start": "2026-12-03T10:00",
    "end": "2026-12-03T11:30",
    "attendees": [{"email": BOB}, {"email": ADA}],
    "metaId": "m-42",
}


@pytest.fixture
def account(sandbox: Sandbox) -> SandboxAccount:
    return sandbox.account("microsoft", ADA, time_zone="Europe/Berlin")


@pytest.fixture
def user(account: SandboxAccount, new_user: Callable[..., str]) -> str:
    return new_user(account)


@pytest.fixture
def ours(api: Api, user: str) -> Callable[..., Any]:
    """Call our service for the events of the main calendar; returns the answer."""

    def call(method: str, path: str = "/microsoft/primary", body: Any = None, **query: str) -> Any:
        answer = api.call(
            method,
            f"/users/{user}/calendar/events{path}",
            headers={"X-Timezone": "Europe/Berlin"},
            query_string=query,
            **({} if body is None else {"json": body}),
        )
        assert answer.status_code in (200, 201), answer.text
        assert answer.json is not None
        return answer.json["data"]

    return call


async def stored(it: Graph, event_id: str) -> Any:
    """An event as the SDK reads it, in Berlin's time, as text, with our own property."""
    query = EventItemRequestBuilder.EventItemRequestBuilderGetQueryParameters(
        expand=[f"singleValueExtendedProperties($filter=id eq '{properties.META_ID}')"]
    )
    prefer = f'{BERLIN}, outlook.body-content-type="text"'
    return await it.read(it.client.me.events.by_event_id(event_id).get(with_query(query, Prefer=prefer)))


def test_a_timed_event_of_ours_is_read_by_the_sdk(
    sandbox: Sandbox, account: SandboxAccount, ours: Callable[..., Any]
) -> None:
    made = ours("POST", body=TIMED)

    async def use(it: Graph) -> None:
        found = await stored(it, made["id"])
        assert (found.subject, found.location.display_name) == ("Review 日本", "Room 1")
        assert found.body.content.split() == ["a", "<", "b", "c", "&", "d"]
        assert (found.start.date_time, found.start.time_zone) == (
            "2026-12-03T10:00:00.0000000",
            "Europe/Berlin",
        )
        assert found.end.date_time == "2026-12-03T11:30:00.0000000"
        assert found.original_start_time_zone == "W. Europe Standard Time"
        assert [each.email_address.address for each in found.attendees] == [BOB, ADA]
        assert [each.value for each in found.single_value_extended_properties] == ["m-42"]
        assert not found.is_all_day

    run(sandbox, account, use)


def test_what_we_change_and_delete_is_changed_and_gone(
    sandbox: Sandbox, account: SandboxAccount, ours: Callable[..., Any]
) -> None:
    made = ours("POST", body=TIMED)
    here = f"/microsoft/primary/{made['id']}"
    ours("PUT", here, {"subject": "Later", "start": "2026-12-04", "end": "2026-12-05"})

    async def changed(it: Graph) -> None:
        found = await stored(it, made["id"])
        assert (found.subject, found.is_all_day) == ("Later", True)
        assert (found.location.display_name, len(found.attendees)) == ("Room 1", 2)
        assert [each.value for each in found.single_value_extended_properties] == ["m-42"]

    async def gone(it: Graph) -> None:
        with pytest.raises(ODataError) as refused:
            await it.client.me.events.by_event_id(made["id"]).get()
        assert refused.value.error.code == "ErrorItemNotFound"

    run(sandbox, account, changed)
    ours("DELETE", here)
    run(sandbox, account, gone)


def test_what_the_sdk_wrote_is_read_by_us(
    sandbox: Sandbox, account: SandboxAccount, user: str, ours: Callable[..., Any], api: Api
) -> None:
    made: list[str] = []

    async def use(it: Graph) -> None:
        accepted = ResponseStatus(response=ResponseType.Accepted)
        event = Event(
            subject="Made",
            body=ItemBody(content_type=BodyType.Html, content="<p>By <b>another</b> program</p>"),
            location=Location(display_name="Room 2"),
            start=when("2026-12-03T10:00:00", "W. Europe Standard Time"),
            end=when("2026-12-03T11:00:00", "W. Europe Standard Time"),
            attendees=[
                Attendee(email_address=EmailAddress(address=BOB, name="Bob"), status=accepted),
                Attendee(email_address=EmailAddress(address=ADA)),
            ],
            single_value_extended_properties=[
                SingleValueLegacyExtendedProperty(id=properties.META_ID, value="m-7")
            ],
        )
        made.append((await it.read(it.client.me.events.post(event))).id)
        fair = Event(
            subject="Fair",
            is_all_day=True,
            start=when("2026-12-05T00:00:00", "Europe/Berlin"),
            end=when("2026-12-06T00:00:00", "Europe/Berlin"),
        )
        await it.read(it.client.me.events.post(fair))

    run(sandbox, account, use)

    read = ours("GET", f"/microsoft/primary/{made[0]}")
    assert (read["subject"], read["location"]) == ("Made", "Room 2")
    assert read["description"].split() == ["By", "another", "program"]
    assert (read["start"], read["end"]) == ("2026-12-03T09:00:00.000Z", "2026-12-03T10:00:00.000Z")
    assert [(each["email"], each["self"], each["responseStatus"]) for each in read["attendees"]] == [
        (BOB, False, "accepted"),
        (ADA, True, "accepted"),
    ]
    assert [copy["id"] for copy in ours("GET", "/meta/m-7")["events"]] == made
    assert [(each["start"], each["subject"]) for each in ours("GET", "", **WEEK)] == [
        ("2026-12-03T09:00:00.000Z", "Made"),
        ("2026-12-04T23:00:00.000Z", "Fair"),
    ]
    busy = api.get(f"/users/{user}/calendar/busy", **WEEK)
    assert periods(busy) == [("09:00", "10:00"), ("2026-12-04 23:00", "2026-12-05 23:00")]


SERIES = {
    "subject": "Weekly",
    "start": "2026-10-22T09:00",
    "end": "2026-10-22T10:00",
    "timeZone": "Europe/Berlin",
    "recurrence": ["RRULE:FREQ=WEEKLY;BYDAY=TH;COUNT=4"],
}
AUTUMN = {"start": "2026-10-20", "end": "2026-11-30"}


async def occurrences(it: Graph) -> list[tuple[str, str, str | None]]:
    """The occurrences of autumn as the SDK reads them: when, what, and of which series."""
    query = CalendarViewRequestBuilder.CalendarViewRequestBuilderGetQueryParameters(
        start_date_time="2026-10-20T00:00:00Z", end_date_time="2026-11-30T00:00:00Z", top=100
    )
    found = await it.read(it.client.me.calendar_view.get(with_query(query, Prefer=BERLIN)))
    return [(each.start.date_time[:16], each.subject, each.series_master_id) for each in found.value]


def test_a_series_of_ours_is_read_by_the_sdk(
    sandbox: Sandbox, account: SandboxAccount, ours: Callable[..., Any]
) -> None:
    made = ours("POST", body=SERIES)
    later: dict[str, Any] = {}

    async def use(it: Graph) -> None:
        found = (await stored(it, made["id"])).recurrence
        assert found.pattern.type == RecurrencePatternType.Weekly
        assert [str(each.value) for each in found.pattern.days_of_week] == ["thursday"]
        assert found.range.type == RecurrenceRangeType.Numbered
        assert (found.range.number_of_occurrences, str(found.range.start_date)) == (4, "2026-10-22")
        days = ["2026-10-22", "2026-10-29", "2026-11-05", "2026-11-12"]
        assert await occurrences(it) == [(f"{each}T09:00", "Weekly", made["id"]) for each in days]

        third = f"/microsoft/primary/{ours('GET', '', **AUTUMN)[2]['id']}"
        later.update(ours("PUT", third, {"subject": "Later"}, scope="following"))
        assert await occurrences(it) == [
            *((f"{each}T09:00", "Weekly", made["id"]) for each in days[:2]),
            *((f"{each}T09:00", "Later", later["id"]) for each in days[2:]),
        ]
        ended = (await stored(it, made["id"])).recurrence.range
        assert (ended.type, str(ended.end_date)) == (RecurrenceRangeType.EndDate, "2026-11-04")
        ours("DELETE", f"/microsoft/primary/{ours('GET', '', **AUTUMN)[3]['id']}", scope="series")
        assert len(await occurrences(it)) == 2

    run(sandbox, account, use)


def test_a_series_of_the_sdk_is_read_by_us(
    sandbox: Sandbox, account: SandboxAccount, ours: Callable[..., Any]
) -> None:
    async def use(it: Graph) -> None:
        pattern = RecurrencePattern(
            type=RecurrencePatternType.RelativeMonthly,
            interval=1,
            days_of_week=[DayOfWeek.Thursday],
            index=WeekIndex.Last,
        )
        limits = RecurrenceRange(
            type=RecurrenceRangeType.Numbered, number_of_occurrences=2, start_date=date(2026, 10, 29)
        )
        event = Event(
            subject="Theirs",
            start=when("2026-10-29T09:00:00", "W. Europe Standard Time"),
            end=when("2026-10-29T10:00:00", "W. Europe Standard Time"),
            recurrence=PatternedRecurrence(pattern=pattern, range=limits),
        )
        made = await it.read(it.client.me.events.post(event))
        read = ours("GET", f"/microsoft/primary/{made.id}")
        assert read["recurrence"] == ["RRULE:FREQ=MONTHLY;BYDAY=-1TH;COUNT=2"]
        assert read["timeZone"] == "Europe/Berlin"
        assert [each["start"][:16] for each in ours("GET", "", **AUTUMN)] == [
            "2026-10-29T08:00",
            "2026-11-26T08:00",
        ]

    run(sandbox, account, use)
