"""msgraph-sdk against the sandbox; each answer is checked with the SDK's generated models."""

from __future__ import annotations

import json
import warnings
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx
import pytest

from providers.sandbox.client import Sandbox

# The SDK's generated code uses deprecated parts of its own library.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kiota_abstractions.api_error import APIError
    from kiota_serialization_json.json_parse_node_factory import JsonParseNodeFactory
    from msgraph.generated.models.attendee import Attendee
    from msgraph.generated.models.body_type import BodyType
    from msgraph.generated.models.calendar_collection_response import CalendarCollectionResponse
    from msgraph.generated.models.email_address import EmailAddress
    from msgraph.generated.models.event import Event
    from msgraph.generated.models.event_collection_response import EventCollectionResponse
    from msgraph.generated.models.free_busy_status import FreeBusyStatus
    from msgraph.generated.models.item_body import ItemBody
    from msgraph.generated.models.o_data_errors.o_data_error import ODataError
    from msgraph.generated.models.single_value_legacy_extended_property import (
        SingleValueLegacyExtendedProperty,
    )
    from msgraph.generated.users.item.calendar.get_schedule.get_schedule_post_request_body import (
        GetSchedulePostRequestBody,
    )
    from msgraph.generated.users.item.calendar_view.calendar_view_request_builder import (
        CalendarViewRequestBuilder,
    )
    from msgraph.generated.users.item.calendars.calendars_request_builder import CalendarsRequestBuilder
    from msgraph.generated.users.item.events.item.event_item_request_builder import EventItemRequestBuilder

    from tests.clients.graph_client import Graph, run, when, with_query
    from tests.clients.graph_models import problems

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

BOB = "bob@example.com"
META = "String {66f5a359-4659-4830-9070-00047ec6ac6e} Name metaId"
CALENDARS = [{"primary": True}, *({"subject": f"Calendar {n}"} for n in range(12))]
EVENTS: list[dict[str, Any]] = [
    *(
        {
            "subject": f"{n}",
            "start": f"2026-12-03T{n:02d}:00:00",
            "end": f"2026-12-03T{n:02d}:30:00",
            "showAs": ("busy", "oof", "tentative", "free", "workingElsewhere")[n % 5],
        }
        for n in range(12)
    ),
    {"subject": "Fair", "start": "2026-12-04", "end": "2026-12-05", "allDay": True},
    {
        "subject": "Weekly",
        "start": "2026-12-01T15:00:00",
        "end": "2026-12-01T15:30:00",
        "recurrence": ["RRULE:FREQ=DAILY;COUNT=6"],
    },
    {
        "subject": "Declined",
        "start": "2026-12-05T15:00:00",
        "end": "2026-12-05T15:30:00",
        "responseStatus": "declined",
    },
]
WINDOW = {"start_date_time": "2026-12-03T00:00:00Z", "end_date_time": "2026-12-06T00:00:00Z"}


@pytest.fixture
def graph(sandbox: Sandbox) -> Callable[[Callable[[Graph], Awaitable[None]]], None]:
    """Runs a coroutine with the official client of an account."""
    sandbox.account("microsoft", "eve@example.com", events=[EVENTS[0]])
    account = sandbox.account("microsoft", BOB, time_zone="Europe/Berlin", calendars=CALENDARS, events=EVENTS)

    return partial(run, sandbox, account)


def test_calendars_are_listed_page_by_page(graph: Any) -> None:
    async def use(it: Graph) -> None:
        calendars = it.client.me.calendars
        page = await it.read(calendars.get())
        names = [calendar.name for calendar in page.value]
        while page.odata_next_link:
            page = await it.read(calendars.with_url(page.odata_next_link).get())
            names += [calendar.name for calendar in page.value]
        assert names == ["Calendar", *(f"Calendar {n}" for n in range(12))]
        query = CalendarsRequestBuilder.CalendarsRequestBuilderGetQueryParameters(top=100)
        assert len((await it.read(calendars.get(with_query(query)))).value) == 13

    graph(use)


def test_one_calendar_by_its_id(graph: Any) -> None:
    async def use(it: Graph) -> None:
        main = await it.read(it.client.me.calendar.get())
        assert main.is_default_calendar
        again = await it.read(it.client.me.calendars.by_calendar_id(main.id).get())
        assert again.id == main.id

    graph(use)


def test_a_calendar_view_page_by_page(graph: Any) -> None:
    async def use(it: Graph) -> None:
        query = CalendarViewRequestBuilder.CalendarViewRequestBuilderGetQueryParameters(**WINDOW, top=5)
        view = it.client.me.calendar_view
        page = await it.read(view.get(with_query(query, Prefer='outlook.timezone="Europe/Berlin"')))
        sizes, events = [len(page.value)], page.value
        while page.odata_next_link:
            page = await it.read(view.with_url(page.odata_next_link).get())
            sizes.append(len(page.value))
            events += page.value
        assert sizes == [5, 5, 5, 1]
        assert {event.show_as for event in events[:5]} == {
            FreeBusyStatus(word) for word in ("busy", "oof", "tentative", "free", "workingElsewhere")
        }
        # The first begins at one: midnight in Berlin was still the day before in UTC.
        assert events[0].start.date_time == "2026-12-03T01:00:00.0000000"
        assert events[0].start.time_zone == "Europe/Berlin"

    graph(use)


def test_a_calendar_view_of_one_calendar_with_some_properties(graph: Any) -> None:
    async def use(it: Graph) -> None:
        main = await it.read(it.client.me.calendar.get())
        select = ["start", "end", "showAs", "isAllDay", "isCancelled", "responseStatus"]
        query = CalendarViewRequestBuilder.CalendarViewRequestBuilderGetQueryParameters(
            **WINDOW, top=1000, select=select
        )
        view = it.client.me.calendars.by_calendar_id(main.id).calendar_view
        page = await it.read(view.get(with_query(query)))
        assert page.odata_next_link is None
        assert len(page.value) == 16
        assert {event.subject for event in page.value} == {None}
        assert [event.is_all_day for event in page.value].count(True) == 1

    graph(use)


def test_schedules_of_known_and_unknown_mailboxes(graph: Any) -> None:
    async def use(it: Graph) -> None:
        body = GetSchedulePostRequestBody(
            schedules=[BOB, "eve@example.com", "nosuch@example.com"],
            start_time=when("2026-12-03T00:00:00", "Europe/Berlin"),
            end_time=when("2026-12-03T12:00:00", "Europe/Berlin"),
            availability_view_interval=60,
        )
        answer = await it.read(it.client.me.calendar.get_schedule.post(body))
        mine, hers, unknown = answer.value
        assert mine.availability_view == "231042310423"
        assert hers.schedule_items[0].status == FreeBusyStatus.Busy
        assert hers.schedule_items[0].subject is None
        assert unknown.error.response_code == "5009"

    graph(use)


def test_the_person_and_the_mailbox(graph: Any) -> None:
    async def use(it: Graph) -> None:
        assert (await it.read(it.client.me.get())).user_principal_name == BOB
        settings = await it.read(it.client.me.mailbox_settings.get())
        assert settings.time_zone == "W. Europe Standard Time"

    graph(use)


def test_the_life_of_an_event(graph: Any) -> None:
    async def use(it: Graph) -> None:
        event = Event(
            subject="Lunch",
            body=ItemBody(content_type=BodyType.Text, content="a < b"),
            start=when("2026-12-03T12:00:00"),
            end=when("2026-12-03T13:00:00"),
            attendees=[Attendee(email_address=EmailAddress(address="eve@example.com", name="Eve"))],
            is_online_meeting=True,
            single_value_extended_properties=[SingleValueLegacyExtendedProperty(id=META, value="m-42")],
        )
        made = await it.read(it.client.me.events.post(event))
        here = it.client.me.events.by_event_id(made.id)
        query = EventItemRequestBuilder.EventItemRequestBuilderGetQueryParameters(
            expand=[f"singleValueExtendedProperties($filter=id eq '{META}')"]
        )
        seen = await it.read(here.get(with_query(query)))
        assert seen.single_value_extended_properties[0].value == "m-42"
        changed = await it.read(here.patch(Event(subject="Dinner")))
        # The invitation to the online meeting is below.
        assert (changed.subject, changed.body_preview.partition("\n")[0]) == ("Dinner", "a < b")
        await here.delete()
        with pytest.raises(ODataError) as gone:
            await here.get()
        assert gone.value.error.code == "ErrorItemNotFound"

    graph(use)


def test_events_and_their_instances(graph: Any) -> None:
    async def use(it: Graph) -> None:
        events = await it.read(it.client.me.calendar.events.get())
        assert len(events.value) == 10
        view = await it.read(
            it.client.me.calendar_view.get(
                with_query(
                    CalendarViewRequestBuilder.CalendarViewRequestBuilderGetQueryParameters(**WINDOW, top=100)
                )
            )
        )
        (occurrence, *_) = [event for event in view.value if event.series_master_id]
        await it.read(it.client.me.events.by_event_id(occurrence.id).get())

    graph(use)


def test_a_throttled_call_is_retried_after_retry_after(graph: Any, sandbox: Sandbox) -> None:
    sandbox.fault(email=BOB, status=429, retry_after=1, times=1)

    async def use(it: Graph) -> None:
        assert (await it.read(it.client.me.calendar.get())).name == "Calendar"
        assert sandbox.requests().by_operation == {"microsoft.calendars.get": 2}

    graph(use)


def test_errors_are_read_by_the_client(graph: Any, sandbox: Sandbox) -> None:
    sandbox.revoke(BOB)

    async def use(it: Graph) -> None:
        with pytest.raises(APIError) as refused:
            await it.client.me.calendars.get()
        assert isinstance(refused.value, ODataError)
        assert refused.value.error.code == "InvalidAuthenticationToken"
        assert not problems(refused.value, json.loads(it.last.content))

    graph(use)


def test_parts_of_a_batch_are_read_by_the_models(sandbox: Sandbox) -> None:
    account = sandbox.account("microsoft", BOB, events=EVENTS)
    window = f"startDateTime={WINDOW['start_date_time']}&endDateTime={WINDOW['end_date_time']}"
    parts = {
        "1": (f"/me/calendarView?{window}", EventCollectionResponse),
        "2": ("/me/calendars/AAMknosuch", ODataError),
        "3": ("/me/calendars", CalendarCollectionResponse),
    }
    answer = httpx.post(
        f"{sandbox.url}/microsoft/v1.0/$batch",
        json={"requests": [{"id": n, "method": "GET", "url": url} for n, (url, _) in parts.items()]},
        headers={"Authorization": f"Bearer {account.access_token}"},
    )
    for part in answer.json()["responses"]:
        content = json.dumps(part["body"]).encode()
        node = JsonParseNodeFactory().get_root_parse_node("application/json", content)
        assert not problems(node.get_object_value(parts[part["id"]][1]), part["body"])
