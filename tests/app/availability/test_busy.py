"""Busy periods over HTTP: which events and calendars count, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.app.days import DAY, MORNING, PROVIDERS, all_day, meeting, periods, starts

pytestmark = pytest.mark.usefixtures("worker")

TWO_CALENDARS = [{"primary": True}, {"id": "team", "subject": "Team"}]


@pytest.fixture
def busy(api):
    """Request a user's busy periods on Thursday."""
    return lambda user, headers=None, **query: api.get(
        f"/users/{user}/calendar/busy", headers=headers, **(DAY | query)
    )


@pytest.fixture
def organization_busy(api):
    """Request an organization's busy periods on Thursday."""
    return lambda slug, **query: api.get(f"/organizations/{slug}/calendar/busy", **(DAY | query))


def test_periods_of_all_calendars_and_accounts_are_merged_and_sorted(sandbox, new_user, busy):
    google = sandbox.account(
        "google",
        "ada@example.com",
        calendars=TWO_CALENDARS,
        events=[meeting("13:00", "14:00"), meeting("09:00", "10:00", calendarId="team")],
    )
    microsoft = sandbox.account("microsoft", "ada@contoso.example", events=[meeting("10:00", "11:30")])
    answer = busy(new_user(google, microsoft))
    assert periods(answer) == [("09:00", "11:30"), ("13:00", "14:00")]
    assert answer.json["failedCalendars"] == []
    assert answer.headers["Age"] == "0"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_main_calendar_that_is_named_twice_counts_once(api, sandbox, new_user, provider):
    """Also with the first request, when its id is not known yet."""
    account = sandbox.account(provider, "ada@example.com", events=[meeting("09:00", "10:00")])
    user = new_user(account, identified=False)
    named = {"calendarIds": f"primary,{account.main_calendar_id}", "maxOverlaps": "1"}

    assert starts(api.get(f"/users/{user}/scheduling", **MORNING, **named))[0] == "09:00"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_periods_are_clipped_to_the_range(sandbox, new_user, busy, provider):
    ada = sandbox.account(
        provider,
        "ada@example.com",
        events=[{"start": "2026-12-02T22:00:00Z", "end": "2026-12-03T01:00:00Z"}, meeting("07:00", "08:30")],
    )
    user = new_user(ada)
    assert periods(busy(user, end="2026-12-03T08:00:00Z")) == [("00:00", "01:00"), ("07:00", "08:00")]
    assert periods(busy(user, start="2026-12-03T01:00:00Z", end="2026-12-03T07:00:00Z")) == []


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("event", "blocks"),
    [
        ({}, True),
        ({"showAs": "tentative"}, True),
        ({"showAs": "oof"}, True),
        ({"showAs": "free"}, False),
        ({"showAs": "workingElsewhere"}, False),
        ({"isCancelled": True}, False),
        ({"responseStatus": "declined"}, False),
        ({"responseStatus": "accepted"}, True),
        ({"responseStatus": "tentative"}, True),
        ({"responseStatus": "needsAction"}, True),
    ],
)
def test_which_events_count_as_busy(sandbox, new_user, busy, provider, event, blocks):
    ada = sandbox.account(provider, "ada@example.com", events=[meeting("09:00", "10:00", **event)])
    assert periods(busy(new_user(ada))) == ([("09:00", "10:00")] if blocks else [])


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("zone", "period"),
    [
        ("Asia/Tokyo", ("2026-12-02 15:00", "15:00")),
        ("America/New_York", ("05:00", "2026-12-04 05:00")),
        ("Asia/Kolkata", ("2026-12-02 18:30", "18:30")),
        ("Pacific Standard Time", ("08:00", "2026-12-04 08:00")),
    ],
)
def test_an_all_day_event_spans_the_midnights_of_its_own_zone(
    sandbox, new_user, busy, provider, zone, period
):
    events = [all_day("2026-12-03", "2026-12-04")]
    user = new_user(sandbox.account(provider, "ada@example.com", time_zone=zone, events=events))
    wide = {"start": "2026-12-01", "end": "2026-12-06"}
    assert periods(busy(user, headers={"x-timezone": "Europe/Berlin"}, **wide)) == [period]


def test_an_all_day_event_ends_with_a_day_of_23_hours(sandbox, new_user, busy):
    events = [all_day("2026-03-29", "2026-03-30")]
    berlin = sandbox.account("microsoft", "ada@example.com", time_zone="Europe/Berlin", events=events)
    answer = busy(new_user(berlin), start="2026-03-28", end="2026-03-31")
    assert periods(answer) == [("2026-03-28 23:00", "2026-03-29 22:00")]


def test_a_plus_that_arrived_as_a_space_is_still_an_offset(api, sandbox, new_user):
    user = new_user(sandbox.account("google", "ada@example.com", events=[meeting("07:00", "09:00")]))
    query = "start=2026-12-03T10:00:00+02:00&end=2026-12-04"
    answer = api.call("GET", f"/users/{user}/calendar/busy", query_string=query)
    assert periods(answer) == [("08:00", "09:00")]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_main_calendars_alone_on_request(sandbox, new_user, busy, provider):
    ada = sandbox.account(
        provider,
        "ada@example.com",
        calendars=TWO_CALENDARS,
        events=[meeting("09:00", "10:00"), meeting("11:00", "12:00", calendarId="team")],
    )
    user = new_user(ada)
    assert periods(busy(user, primaryOnly="true")) == [("09:00", "10:00")]
    assert periods(busy(user, primaryOnly="false")) == [("09:00", "10:00"), ("11:00", "12:00")]
    assert busy(user, primaryOnly="1").status_code == 400


@pytest.mark.parametrize(
    "written", ["provider=microsoft", "provider[]=microsoft", "provider=microsoft,microsoft"]
)
def test_a_provider_filter_leaves_the_other_account_alone(api, sandbox, new_user, written):
    google = sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")])
    microsoft = sandbox.account("microsoft", "ada@contoso.example", events=[meeting("11:00", "12:00")])
    user = new_user(google, microsoft)
    query = f"start=2026-12-03&end=2026-12-04&{written}"
    answer = api.call("GET", f"/users/{user}/calendar/busy", query_string=query)
    assert periods(answer) == [("11:00", "12:00")]
    assert not [name for name in sandbox.requests().by_operation if name.startswith("google")]


def test_calendars_are_found_in_the_account_that_lists_them(sandbox, new_user, busy):
    google = sandbox.account(
        "google",
        "ada@example.com",
        calendars=TWO_CALENDARS,
        events=[meeting("08:00", "09:00"), meeting("09:00", "10:00", calendarId="team")],
    )
    microsoft = sandbox.account(
        "microsoft",
        "ada@contoso.example",
        calendars=[{"primary": True, "id": "AAMkMain"}, {"id": "AAMkSide"}],
        events=[meeting("12:00", "13:00"), meeting("14:00", "15:00", calendarId="AAMkSide")],
    )
    user = new_user(google, microsoft)
    assert periods(busy(user, calendarIds="team,AAMkSide")) == [("09:00", "10:00"), ("14:00", "15:00")]
    assert periods(busy(user, calendarIds="primary")) == [("08:00", "09:00"), ("12:00", "13:00")]
    assert periods(busy(user, calendarIds="ada@example.com")) == [("08:00", "09:00")]
    assert periods(busy(user, calendarIds="AAMkMain")) == [("12:00", "13:00")]


def test_a_gmail_calendar_answers_by_every_spelling_of_its_address(sandbox, new_user, busy):
    google = sandbox.account("google", "ada.l@gmail.com", events=[meeting("09:00", "10:00")])
    user = new_user(google)
    spellings = ("AdaL@googlemail.com", "a.da.l@gmail.com", "adal@gmail.com", "ADA.L@GMAIL.COM")
    for spelling in spellings:
        answer = busy(user, calendarIds=spelling, headers={"Cache-Control": "no-cache"})
        assert periods(answer) == [("09:00", "10:00")], spelling
        # Connected under that spelling, before Google has been asked for its own.
        other = new_user(replace(google, email=spelling), identified=False)
        assert periods(busy(other, calendarIds="ada.l@gmail.com")) == [("09:00", "10:00")], spelling
    assert busy(user, calendarIds="adal@example.com").status_code == 404


def test_a_hidden_main_calendar_is_busy(sandbox, new_user, busy):
    google = sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")])
    sandbox.fault(provider="google", wild="hiddenMain")
    assert periods(busy(new_user(google))) == [("09:00", "10:00")]


def test_a_calendar_on_no_list_is_requested_and_listed_as_failed(sandbox, new_user, busy):
    google = sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")])
    answer = busy(new_user(google), calendarIds="primary,gone@group.calendar.google.com")
    assert periods(answer) == [("09:00", "10:00")]
    assert [(each["calendarId"], each["reason"]) for each in answer.json["failedCalendars"]] == [
        ("gone@group.calendar.google.com", "notFound")
    ]


def test_calendar_id_of_thousand_characters_with_colons_is_read(sandbox, new_user, busy):
    long = "team:" * 200
    google = sandbox.account(
        "google",
        "ada@example.com",
        calendars=[{"primary": True}, {"id": long}, {"id": "team:2970"}],
        events=[
            meeting("09:00", "10:00", calendarId=long),
            meeting("11:00", "12:00", calendarId="team:2970"),
        ],
    )
    user = new_user(google)
    for _ in range(2):
        assert periods(busy(user, calendarIds=long)) == [("09:00", "10:00")]
        assert periods(busy(user, calendarIds="team:2970")) == [("11:00", "12:00")]
    assert busy(user, calendarIds="x" * 1025).status_code == 400


def test_an_account_without_calendars_was_read(sandbox, new_user, busy):
    user = new_user(sandbox.account("google", "ada@example.com", calendars=[]))
    for _ in range(2):
        answer = busy(user)
        assert (periods(answer), answer.json["failedCalendars"]) == ([], [])
        assert answer.headers["Age"] == "0"


@pytest.mark.parametrize("query", [{}, {"provider": "microsoft"}])
def test_without_an_account_there_is_nothing_to_read(sandbox, new_user, busy, query):
    accounts = [sandbox.account("google", "ada@example.com")] if query else []
    answer = busy(new_user(*accounts), **query)
    assert (answer.status_code, answer.json["error"]) == (404, "User has no connected calendars")


def test_an_unknown_user_and_an_unknown_organization_are_404(busy, organization_busy):
    assert busy("nobody").json == {"data": None, "error": "User not found", "code": "userNotFound"}
    assert organization_busy("nowhere").json == {
        "data": None,
        "error": "Organization not found",
        "code": "organizationNotFound",
    }
    assert (busy("nobody").status_code, organization_busy("nowhere").status_code) == (404, 404)


def test_an_organization_is_busy_when_any_member_is(sandbox, new_user, new_organization, organization_busy):
    slug = new_organization()
    accounts = [
        sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:30")]),
        sandbox.account(
            "microsoft",
            "bob@example.com",
            calendars=TWO_CALENDARS,
            events=[meeting("10:00", "11:00"), meeting("15:00", "16:00", calendarId="team")],
        ),
    ]
    for account in accounts:
        new_user(account, slugs=(slug,))
    new_user(slugs=(slug,))
    answer = organization_busy(slug)
    assert periods(answer) == [("09:00", "11:00"), ("15:00", "16:00")]
    assert answer.json["failedUsers"] == []
    assert periods(organization_busy(slug, primaryOnly="true")) == [("09:00", "11:00")]
    assert periods(organization_busy(slug, provider="google")) == [("09:00", "10:30")]


def test_an_organization_without_members_is_never_busy(new_organization, organization_busy):
    answer = organization_busy(new_organization())
    assert (periods(answer), answer.json["failedUsers"]) == ([], [])
    assert answer.headers["Age"] == "0"


def test_unreadable_mailbox_zone_fails_only_all_day_events(sandbox, new_user, busy):
    events = [meeting("09:00", "10:00"), all_day("2026-12-03", "2026-12-04", calendarId="days")]
    calendars = [{"primary": True}, {"id": "days"}]
    user = new_user(sandbox.account("microsoft", "ada@example.com", calendars=calendars, events=events))
    assert periods(busy(user)) == [("00:00", "2026-12-04 00:00")]
    sandbox.fault(operation="microsoft.mailboxSettings.get", status=500)
    answer = busy(user, calendarIds="primary,days", headers={"Cache-Control": "no-cache"})
    assert periods(answer) == [("09:00", "10:00")]
    assert [(each["calendarId"], each["reason"]) for each in answer.json["failedCalendars"]] == [
        ("days", "providerError")
    ]


FREE_BUSY_ONLY = "https://www.googleapis.com/auth/calendar.freebusy"


@pytest.fixture
def free_busy_only(sandbox):
    """A Google account with two calendars; its grant allows busy reads, but no listing of calendars."""
    return sandbox.account(
        "google",
        "ada@example.com",
        scope=FREE_BUSY_ONLY,
        calendars=TWO_CALENDARS,
        events=[meeting("13:00", "14:00"), meeting("09:00", "10:00", calendarId="team")],
    )


def test_a_grant_for_busy_times_alone_reads_the_main_calendar(sandbox, new_user, busy, free_busy_only):
    user = new_user(free_busy_only)
    sandbox.forget_requests()

    answer = busy(user)

    assert periods(answer) == [("13:00", "14:00")]
    assert answer.json["failedCalendars"] == []
    assert sandbox.requests().by_operation == {"google.freebusy.query": 1}
    # Also from the cache, where the main calendar has the same key.
    assert periods(busy(user, primaryOnly="true")) == periods(busy(user)) == [("13:00", "14:00")]
    assert sandbox.requests().total == 1


@pytest.mark.parametrize(
    ("ids", "expected", "failed"),
    [
        ("team", [("09:00", "10:00")], []),
        ("primary,team", [("09:00", "10:00"), ("13:00", "14:00")], []),
        ("team,nosuch", [("09:00", "10:00")], ["nosuch"]),
    ],
)
def test_free_busy_grant_reads_or_fails_named_calendars(
    new_user, busy, free_busy_only, ids, expected, failed
):
    answer = busy(new_user(free_busy_only), calendarIds=ids)

    assert periods(answer) == expected
    assert [each["calendarId"] for each in answer.json["failedCalendars"]] == failed


def test_a_free_busy_grant_does_not_limit_reads_of_other_accounts(sandbox, new_user, busy, free_busy_only):
    other = sandbox.account(
        "microsoft",
        "ada@contoso.example",
        calendars=[{"id": "AAMk-main", "primary": True}, {"id": "AAMk-side"}],
        events=[meeting("15:00", "16:00"), meeting("17:00", "18:00", calendarId="AAMk-side")],
    )

    assert periods(busy(new_user(free_busy_only, other))) == [
        ("13:00", "14:00"),
        ("15:00", "16:00"),
        ("17:00", "18:00"),
    ]


def test_such_a_member_counts_in_its_organization(
    new_user, new_organization, organization_busy, free_busy_only
):
    slug = new_organization()
    new_user(free_busy_only, slugs=(slug,))

    answer = organization_busy(slug)

    assert periods(answer) == [("13:00", "14:00")]
    assert answer.json["failedUsers"] == []


def test_such_a_grant_that_has_ended_is_named(api, sandbox, new_user, busy, free_busy_only):
    user = new_user(free_busy_only)
    sandbox.revoke("ada@example.com")

    answer = busy(user)

    assert (answer.status_code, answer.json["error"]) == (401, busy(user).json["error"])
    assert not api.get(f"/users/{user}/oauth/google").json["data"]["alive"]


def test_a_grant_for_lists_of_calendars_alone_reads_nothing(sandbox, new_user, busy):
    scope = "https://www.googleapis.com/auth/calendar.calendarlist.readonly"
    user = new_user(sandbox.account("google", "ada@example.com", scope=scope))

    answer = busy(user)

    assert (answer.status_code, answer.json["operation"]) == (403, "calendar.freebusy.query")
