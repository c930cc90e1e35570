"""The events of a user over all calendars, in both forms of the list."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.app.answers import error
from tests.app.at_provider import AtProvider, bare
from tests.app.days import DAY, PROVIDERS, all_day, meeting
from tests.app.listing import ADA, BARE, FORMS, SIDE, TEAM, subjects

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)


@pytest.fixture
def listed(api):
    """Request a user's events; returns them, whatever the form of the answer."""

    def ask(user, headers=None, **query):
        answer = api.get(f"/users/{user}/calendar/events", headers=headers, **(query or DAY))
        assert answer.status_code == 200, answer.text
        return answer.json if "minDate" in query else answer.json["data"]

    return ask


def names(events):
    """Calendar and subject of each event, in the order of the answer."""
    return [(each["calendarId"], each["subject"]) for each in events]


# --- the two forms


@FORMS
def test_events_of_all_calendars_are_sorted_by_start(listed, user_with_two_accounts, form):
    assert names(listed(user_with_two_accounts, **form)) == [
        (TEAM, "g team"),
        ("AAMk-main", "m main"),
        (ADA["google"], "g main"),
        (SIDE, "m side"),
    ]


@FORMS
@BOTH
def test_every_field_of_an_event_is_as_when_it_is_read_alone(api, listed, sandbox, new_user, provider, form):
    account = sandbox.account(provider, ADA[provider])
    user = new_user(account)
    body = {
        "subject": "Review",
        "description": "Two\nlines",
        "location": "Room 1",
        "metaId": "m-1",
        "attendees": [{"email": "bob@example.com"}],
        **meeting("09:00", "10:00"),
    }
    made = api.post(f"/users/{user}/calendar/events/{provider}/primary", body).json["data"]
    (event,) = listed(user, **form)
    assert bare(event) | {"calendarId": made["calendarId"]} == bare(made)
    assert event["original"]["id"] == made["id"]
    assert event["attendees"][0]["responseStatus"] == "needsAction"


def test_with_start_and_end_the_answer_is_an_object(api, user_with_two_accounts):
    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", **DAY)
    assert answer.json.keys() == {"data", "failedCalendars"}
    assert answer.json["failedCalendars"] == []


def test_with_mindate_and_maxdate_the_answer_is_a_bare_array(api, user_with_two_accounts):
    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", **BARE)
    assert isinstance(answer.json, list)
    assert "X-Failed-Calendars" not in answer.headers


@FORMS
def test_a_user_without_events_has_an_empty_list(listed, sandbox, new_user, form):
    user = new_user(sandbox.account("google", ADA["google"]))
    assert listed(user, **form) == []


def milliseconds(text):
    return str(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000))


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        ("2026-12-03T09:30:00Z", "2026-12-03T10:00:00Z", ["g team"]),
        ("2026-12-03T10:00:00Z", "2026-12-03T11:00:00Z", ["m main"]),
        ("2026-12-03T11:00:00+02:00", "2026-12-03T10:00:00Z", ["g team"]),
        (milliseconds("2026-12-03T10:00:00"), milliseconds("2026-12-03T11:00:00"), ["m main"]),
        ("2026-12-03", milliseconds("2026-12-03T10:00:00"), ["g team"]),
        ("20261203", "2026-12-03T1000", ["g team"]),
        ("2026-W49-4", "2026337T10", ["g team"]),
        ("0", milliseconds("1970-06-01T00:00:00"), []),
    ],
)
def test_the_edges_of_the_bare_list_are_timestamps_or_milliseconds(
    api, listed, user_with_two_accounts, low, high, found
):
    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", minDate=low, maxDate=high)
    assert subjects(answer.json) == found


@pytest.mark.parametrize("edges", [("minDate", "maxDate"), ("start", "end")])
@pytest.mark.parametrize(
    ("query", "headers", "found"),
    [
        ({"timeZone": "America/New_York"}, None, ["m main"]),
        ({"timeZone": "Eastern Standard Time"}, None, ["m main"]),
        ({"timeZone": "America/New_York"}, {"X-Timezone": "Asia/Tokyo"}, ["m main"]),
        ({}, {"X-Timezone": "America/New_York"}, ["m main"]),
        ({}, None, []),
        ({"timeZone": "UTC"}, {"X-Timezone": "America/New_York"}, []),
    ],
)
def test_local_times_are_in_the_zone_of_the_request(
    listed, user_with_two_accounts, edges, query, headers, found
):
    times = dict(zip(edges, ("2026-12-03T05:00", "2026-12-03T06:00"), strict=True))
    assert subjects(listed(user_with_two_accounts, headers=headers, **times, **query)) == found


# --- which calendars


@FORMS
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"provider": "google"}, ["g team", "g main"]),
        ({"provider": "google,microsoft"}, ["g team", "m main", "g main", "m side"]),
        ({"calendarIds": "primary"}, ["m main", "g main"]),
        ({"calendarIds": f"{TEAM},{SIDE}"}, ["g team", "m side"]),
        ({"calendarIds": f"primary,AAMk-main,{ADA['google']}"}, ["m main", "g main"]),
        ({"calendarIds": "primary", "provider": "microsoft"}, ["m main"]),
        ({"calendarIds[]": SIDE}, ["m side"]),
        ({"calendarIds": ""}, ["g team", "m main", "g main", "m side"]),
    ],
    ids=str,
)
def test_calendars_are_chosen_by_provider_and_by_id(listed, user_with_two_accounts, form, query, found):
    assert subjects(listed(user_with_two_accounts, **form, **query)) == found


def test_no_cache_reads_the_list_of_calendars_again(api, listed, sandbox, new_user):
    account = sandbox.account("google", ADA["google"])
    user = new_user(account)
    # It stores the list.
    assert api.get(f"/users/{user}/calendar/busy", **DAY).status_code == 200
    team = [meeting("09:00", "10:00", subject="Team")]
    sandbox.share(sandbox.account("google", TEAM, events=team), account)

    assert subjects(listed(user)) == []
    assert subjects(listed(user, {"Cache-Control": "no-cache"})) == ["Team"]


def test_a_calendar_that_is_on_no_list_is_named(api, user_with_two_accounts):
    answer = api.get(
        f"/users/{user_with_two_accounts}/calendar/events", **DAY, calendarIds="primary,gone@example.com"
    )
    assert subjects(answer.json["data"]) == ["m main", "g main"]
    assert [(each["calendarId"], each["reason"]) for each in answer.json["failedCalendars"]] == [
        ("gone@example.com", "notFound")
    ]


@BOTH
def test_more_calendars_than_a_provider_reads_at_once_are_all_read(listed, sandbox, new_user, provider):
    ids = [f"AAMk-{number}" for number in range(45)]
    account = sandbox.account(
        provider,
        ADA[provider],
        calendars=[{"primary": True}, *({"id": each} for each in ids)],
        events=[meeting("09:00", "10:00", subject=each, calendarId=each) for each in ids],
    )
    assert sorted(subjects(listed(new_user(account)))) == sorted(ids)


# --- which events


@FORMS
def test_series_of_both_providers_are_expanded_with_their_exceptions(api, listed, sandbox, new_user, form):
    accounts = {}
    for provider, clock in (("google", "09:00"), ("microsoft", "10:00")):
        daily = meeting(clock, "11:00", subject=provider, recurrence=["RRULE:FREQ=DAILY;COUNT=4"])
        accounts[provider] = sandbox.account(provider, ADA[provider], events=[daily])
    user = new_user(*accounts.values())
    week = dict(zip(form, ("2026-12-01", "2026-12-15"), strict=True))
    first = {provider: subjects(listed(user, **week)).count(provider) for provider in PROVIDERS}
    assert first == {"google": 4, "microsoft": 4}
    ids = {p: [e["id"] for e in listed(user, **week) if e["subject"] == p] for p in PROVIDERS}
    google, graph = (AtProvider(sandbox, accounts[provider]) for provider in PROVIDERS)
    google.patch(
        ids["google"][1], start={"dateTime": "2026-12-04T12:00:00Z"}, end={"dateTime": "2026-12-04T13:00:00Z"}
    )
    google.delete(ids["google"][2])
    graph.patch(ids["microsoft"][1], subject="moved")
    graph.delete(ids["microsoft"][3])

    assert [(each["start"][8:16], each["subject"]) for each in listed(user, **week)] == [
        ("03T09:00", "google"),
        ("03T10:00", "microsoft"),
        ("04T10:00", "moved"),
        ("04T12:00", "google"),
        ("05T10:00", "microsoft"),
        ("06T09:00", "google"),
    ]


@BOTH
def test_all_day_events_lie_where_their_local_midnights_do(listed, sandbox, new_user, provider):
    account = sandbox.account(
        provider,
        ADA[provider],
        time_zone="America/New_York",
        events=[all_day("2026-12-03", "2026-12-04", subject="Fair")],
    )
    user = new_user(account)
    (event,) = listed(user)
    assert (event["start"], event["end"]) == ("2026-12-03T05:00:00.000Z", "2026-12-04T05:00:00.000Z")
    assert event["allDay"] is True
    assert subjects(listed(user, start="2026-12-04T04:59:59Z", end="2026-12-05")) == ["Fair"]
    assert listed(user, start="2026-12-04T05:00:00Z", end="2026-12-05") == []
    assert listed(user, start="2026-12-02", end="2026-12-03T05:00:00Z") == []


@BOTH
def test_cancelled_events_are_left_out_and_declined_ones_are_not(listed, sandbox, new_user, provider):
    account = sandbox.account(
        provider,
        ADA[provider],
        events=[
            meeting("08:00", "09:00", subject="off", isCancelled=True),
            meeting("09:00", "10:00", subject="no", responseStatus="declined"),
            meeting("10:00", "11:00", subject="free", showAs="free"),
            meeting("11:00", "12:00", subject="maybe", status="tentative"),
        ],
    )
    assert subjects(listed(new_user(account))) == ["no", "free", "maybe"]


@BOTH
def test_private_events_are_listed_for_their_owner(listed, sandbox, new_user, provider):
    account = sandbox.account(provider, ADA[provider])
    secret = {"google": {"summary": "Secret", "visibility": "private"}}
    secret["microsoft"] = {"subject": "Secret", "sensitivity": "private"}
    AtProvider(sandbox, account).post(**secret[provider])
    assert subjects(listed(new_user(account))) == ["Secret"]


@FORMS
def test_events_of_free_busy_calendars_have_empty_texts(listed, sandbox, new_user, form):
    account = sandbox.account(
        "google",
        ADA["google"],
        calendars=[{"primary": True}, {"id": "boss@example.com", "accessRole": "freeBusyReader"}],
        events=[meeting("09:00", "10:00", subject="Secret", calendarId="boss@example.com")],
    )
    (event,) = listed(new_user(account), **form)
    assert (event["subject"], event["description"], event["location"], event["attendees"]) == ("", "", "", [])
    assert event["start"] == "2026-12-03T09:00:00.000Z"


@BOTH
def test_every_page_is_followed(listed, sandbox, new_user, provider):
    events = [
        meeting(f"{n // 60:02d}:{n % 60:02d}", f"{n // 60 + 1:02d}:{n % 60:02d}", subject=f"{n}")
        for n in range(600)
    ]
    user = new_user(sandbox.account(provider, ADA[provider], events=events))
    assert subjects(listed(user)) == [str(number) for number in range(600)]


def test_a_list_can_be_read_by_pages(api, user_with_two_accounts):
    found, cursor = [], {}
    for _ in range(3):
        page = api.get(f"/users/{user_with_two_accounts}/calendar/events", limit=2, **DAY, **cursor).json
        assert len(page["data"]) <= 2
        found += page["data"]
        if page["nextCursor"] is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    whole = api.get(f"/users/{user_with_two_accounts}/calendar/events", **DAY).json
    assert found == whole["data"]
    assert len(found) == 4
    assert "nextCursor" not in whole


@pytest.mark.parametrize("path", ["calendar/events", "calendar", "oauth", "organizations"])
def test_an_empty_cursor_is_the_first_page(api, user_with_two_accounts, path):
    query = {"limit": 1, **(DAY if path.endswith("events") else {})}
    first = api.get(f"/users/{user_with_two_accounts}/{path}", **query)
    assert api.get(f"/users/{user_with_two_accounts}/{path}", cursor="", **query).json == first.json
    assert (first.status_code, "nextCursor" in first.json) == (200, True)


@pytest.mark.parametrize("cursor", ["x", "W10=", "WzEsMl0=", "e30=", "WyJhIl0=", "AA=="])
def test_a_cursor_that_is_not_ours_is_refused(api, user_with_two_accounts, cursor):
    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", cursor=cursor, **DAY)
    assert error(answer, 400).startswith("cursor")


# --- search


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "REVIEW"}, ["Design review"]),
        ({"q": "straße"}, ["Walk"]),
        ({"q": "grace@"}, ["Design review"]),
        ({"q": "hopper"}, ["Design review"]),
        ({"q": "nobody"}, []),
        ({"updatedSince": "2026-01-01"}, ["Design review", "Walk"]),
        ({"updatedSince": "2126-01-01"}, []),
        ({"q": "walk", "updatedSince": "2026-01-01T00:00:00Z"}, ["Walk"]),
    ],
    ids=str,
)
@BOTH
def test_a_list_is_narrowed_by_text_and_last_change(listed, new_person, provider, query, found):
    person = new_person(provider)
    guests = [{"email": "grace@example.com", "name": "Grace Hopper"}]
    person.made(subject="Design review", attendees=guests, **meeting("09:00", "10:00"))
    person.made(subject="Walk", description="Along the STRASSE", **meeting("11:00", "12:00"))

    assert [each["subject"] for each in listed(person.user, **DAY, **query)] == found
