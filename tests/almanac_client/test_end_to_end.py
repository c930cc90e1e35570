"""The Python client against the real service: web server, worker and sandbox."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from almanac_client import (
    Almanac,
    Conflict,
    ConnectionEnded,
    Forbidden,
    Incomplete,
    Invalid,
    KeyRefused,
    NotFound,
    ScopesMissing,
    Unavailable,
)
from providers.sandbox.client import Sandbox
from tests.app.days import meeting
from tests.conftest import Api

DAY = {"start": date(2026, 12, 3), "end": date(2026, 12, 4)}
HOURS = {"earliest_time_each_day": "09:00", "latest_time_each_day": "12:00", "slot_duration": 60}
READ_ONLY = "https://www.googleapis.com/auth/calendar.readonly"


@pytest.fixture
def ada(almanac: Almanac, sandbox: Sandbox, unique: Callable[[str], str]) -> str:
    """A user with both accounts, busy from 9:00 to 10:00 at Google, from 10:00 to 11:00 at Microsoft."""
    user = almanac.users.create(unique("ada"))["id"]
    for provider, email, busy in (
        ("google", "ada@example.com", ("09:00", "10:00")),
        ("microsoft", "ada@contoso.example", ("10:00", "11:00")),
    ):
        account = sandbox.account(provider, email, events=[meeting(*busy)])
        made = almanac.connections.store(
            user,
            provider,
            access_token=account.access_token,
            refresh_token=account.refresh_token,
            email=account.email,
            expires_at=account.expires_at,
            scope=account.scope.split(),
        )
        assert made["alive"]
    return user


@pytest.fixture
def team(almanac: Almanac, unique: Callable[[str], str], ada: str) -> str:
    """An organization whose one member is ada."""
    slug = almanac.organizations.create(unique("team"), name="Team")["slug"]
    assert almanac.members.add(slug, [ada]) == f"1 users added successfully to {slug}"
    return slug


def hours(slots: list) -> list[str]:
    return [slot["start"][11:16] for slot in slots]


def test_a_user_is_free_where_no_account_is_busy(almanac, ada):
    answer = almanac.scheduling.user(ada, **DAY, **HOURS)

    assert hours(answer.data["availableSlots"]) == ["11:00"]
    assert answer.complete
    assert answer.age is not None


def test_local_times_are_those_of_the_zone(almanac, ada):
    busy = almanac.busy.user(
        ada, start=datetime.fromisoformat("2026-12-03T09:30"), end="2026-12-03T11:30", zone="Europe/Berlin"
    )

    assert busy.data == [{"start": "2026-12-03T09:00:00.000Z", "end": "2026-12-03T10:30:00.000Z"}]


def test_an_instant_is_the_same_in_any_zone(almanac, ada):
    edges = {"start": datetime(2026, 12, 3, 9, 30, tzinfo=UTC), "end": datetime(2026, 12, 3, 12, tzinfo=UTC)}

    assert almanac.busy.user(ada, zone="Asia/Tokyo", **edges).data == [
        {"start": "2026-12-03T09:30:00.000Z", "end": "2026-12-03T11:00:00.000Z"}
    ]


def test_weekly_schedules_are_asked_with_a_body(almanac, ada):
    thursdays = [{"days": ["thursday"], "start": "10:00", "end": "13:00"}]

    answer = almanac.scheduling.user(ada, schedules=thursdays, slot_duration=60, **DAY)

    assert hours(answer.data["availableSlots"]) == ["11:00", "12:00"]


def test_an_unreadable_member_cannot_be_overlooked(almanac, ada, team, sandbox):
    sandbox.fault(provider="google", status=503)

    answer = almanac.scheduling.organization(team, max_age=0, **DAY, **HOURS)

    assert not answer.complete
    assert answer.partial["availableSlots"] == []
    assert [each["customId"] for each in answer.failed_users] == [ada]
    assert f"INCOMPLETE. Could not be read: {ada} (" in repr(answer)
    with pytest.raises(Incomplete, match=ada) as caught:
        _ = answer.data
    assert caught.value.answer is answer


def test_an_unreadable_calendar_cannot_be_overlooked(almanac, ada, sandbox):
    sandbox.fault(provider="google", status=503)

    answer = almanac.busy.user(ada, max_age=0, **DAY)

    assert [each["provider"] for each in answer.failed_calendars] == ["google"]
    assert "INCOMPLETE" in repr(answer)
    with pytest.raises(Incomplete, match="at google"):
        _ = answer.data
    assert answer.partial == [{"start": "2026-12-03T10:00:00.000Z", "end": "2026-12-03T11:00:00.000Z"}]


def test_one_user_fails_closed_unless_a_partial_answer_is_asked_for(almanac, ada, sandbox):
    sandbox.fault(provider="google", status=503)

    with pytest.raises(Unavailable) as caught:
        almanac.scheduling.user(ada, max_age=0, **DAY, **HOURS)
    assert (caught.value.status, caught.value.reason) == (502, "providerError")
    assert [each["provider"] for each in caught.value.failed_calendars] == ["google"]
    answer = almanac.scheduling.user(ada, on_failure="partial", max_age=0, **DAY, **HOURS)
    assert hours(answer.partial["availableSlots"]) == ["09:00", "11:00"]
    assert not answer.complete


def test_of_several_users_one_without_an_answer_is_among_those_who_failed(almanac, ada):
    answer = almanac.scheduling.users([ada, {"id": "nobody-at-all"}], **DAY, slot_duration=60)

    assert [each["status"] for each in answer.partial] == ["ok", "error"]
    assert [(each["customId"], each["message"]) for each in answer.failed_users] == [
        ("nobody-at-all", "User not found")
    ]
    assert not answer.complete


def test_an_explanation_tells_what_could_not_be_read_as_a_reason(almanac, ada, team, sandbox):
    at = "2026-12-03T09:30:00Z"
    explained = almanac.explain.user(ada, at=at, **DAY, **HOURS)
    assert (explained.data["reason"], explained.data["offered"]) == ("busy", False)
    sandbox.fault(provider="google", status=503)

    of_team = almanac.explain.organization(team, at=at, max_age=0, **DAY, **HOURS)

    assert [each["reason"] for each in of_team.data["members"]] == ["calendarUnread"]
    assert "INCOMPLETE" in repr(of_team)


def test_lists_are_walked_page_by_page(almanac, unique):
    slug = almanac.organizations.create(unique("many"))["slug"]
    users = [almanac.users.create(unique("walker"), organization_slugs=[slug])["id"] for _ in range(5)]

    assert [each["id"] for each in almanac.members.list(slug, limit=2)] == sorted(users)
    assert set(users) <= {each["id"] for each in almanac.users.list(limit=3)}


def test_events_and_calendars_come_whole_or_in_pages(almanac, ada):
    whole = almanac.events.list(ada, **DAY)
    pages = list(almanac.events.pages(ada, limit=1, **DAY))

    assert [each["start"][11:16] for each in whole.data] == ["09:00", "10:00"]
    assert [page.data for page in pages] == [[each] for each in whole.data]
    assert len(almanac.calendars.list(ada).data) == len(list(almanac.calendars.pages(ada, limit=1))) == 2


def test_an_event_is_made_changed_and_deleted(almanac, ada):
    nine = {
        "start": datetime.fromisoformat("2026-12-04T09:00"),
        "end": datetime.fromisoformat("2026-12-04T10:00"),
        "zone": "Europe/Berlin",
    }
    made = almanac.events.create(ada, "google", "primary", subject="Review", **nine)
    where = (ada, "google", "primary", made["id"])
    assert made["start"] == "2026-12-04T08:00:00.000Z"

    assert almanac.events.change(*where, subject="Another")["subject"] == "Another"
    assert almanac.events.get(*where)["location"] == ""
    almanac.events.delete(*where, send_notifications=False)

    with pytest.raises(NotFound):
        almanac.events.get(*where)


def test_a_unified_event_is_in_every_account(almanac, ada):
    made = almanac.unified_events.create(ada, subject="All", start="2026-12-04T09:00", end="2026-12-04T10:00")
    where = (ada, made["metaId"])

    assert {each["provider"] for each in almanac.unified_events.get(*where).data["events"]} == {
        "google",
        "microsoft",
    }
    assert almanac.unified_events.change(*where, location="Here")["location"] == "Here"
    almanac.unified_events.delete(*where)
    with pytest.raises(NotFound):
        almanac.unified_events.get(*where)


def test_the_same_idempotency_key_creates_once(almanac, ada):
    nine = {"start": "2026-12-05T09:00:00Z", "end": "2026-12-05T10:00:00Z", "idempotency_key": f"once-{ada}"}

    first, second = (almanac.events.create(ada, "google", "primary", **nine) for _ in range(2))

    assert first["id"] == second["id"]
    assert len(almanac.events.list(ada, start="2026-12-05", end="2026-12-06").data) == 1


def test_an_account_is_connected_by_a_link(almanac, unique, sandbox):
    sandbox.account("google", "eve@example.com")
    user = almanac.users.create(unique("eve"))["id"]
    links = [
        almanac.connections.authorize(user, "google", scope="read"),
        almanac.connections.link(user, "google", scope="read"),
        {each["provider"]: each["link"] for each in almanac.connections.links(user)}["google"],
    ]
    for link in links:
        page = requests.get(link, params={"login_hint": "eve@example.com"}, timeout=10, allow_redirects=False)
        assert "code" in parse_qs(urlsplit(page.headers["Location"]).query)


def test_tokens_are_shown_to_a_key_that_may(almanac, ada, base_url, new_api):
    assert almanac.connections.get(ada, "google")["accessToken"] is None
    shown = almanac.connections.get(ada, "google", show_token=True)["accessToken"]
    assert almanac.connections.access_token(ada, "google") == shown
    assert [each["provider"] for each in almanac.connections.list(ada, limit=1)] == ["google", "microsoft"]
    almanac.connections.delete(ada, "google")
    with pytest.raises(NotFound, match="OAuth connection"):
        almanac.connections.get(ada, "google")


def test_users_and_organizations_are_renamed_and_deleted(almanac, ada, team, unique):
    renamed = almanac.users.rename(ada, unique("ada-renamed"))["id"]
    assert [each["slug"] for each in almanac.users.organizations(renamed)] == [team]
    assert "organizations" not in almanac.users.get(renamed, include=["oauthConnections"])
    assert almanac.organizations.change(team, name=None)["name"] is None
    assert almanac.members.remove(team, [renamed]) == f"Users removed successfully from {team}"
    assert almanac.organizations.get(team)["members"] == []
    assert almanac.organizations.delete(team)["slug"] == team
    assert almanac.users.delete(renamed)["id"] == renamed
    with pytest.raises(NotFound, match="User not found"):
        almanac.users.get(renamed)


def test_webhooks_are_registered_and_deleted(almanac):
    made = almanac.webhooks.create("http://127.0.0.1:9/hook", events=["calendar.changed"])

    assert made["secret"].startswith("whsec_")
    assert made["id"] in {each["id"] for each in almanac.webhooks.list(limit=1)}
    assert list(almanac.webhooks.deliveries(made["id"])) == []
    almanac.webhooks.delete(made["id"])
    with pytest.raises(NotFound):
        list(almanac.webhooks.deliveries(made["id"]))


def test_refusals_are_named_by_what_to_do_next(almanac, ada, base_url, new_api: Callable[..., Api]):
    with pytest.raises(Invalid, match="end") as caught:
        almanac.busy.user(ada, start="2026-12-04", end="2026-12-03")
    assert caught.value.request_id
    with pytest.raises(Conflict, match="User already exists"):
        almanac.users.create(ada)
    with Almanac(base_url, "alm_unknown") as stranger, pytest.raises(KeyRefused):
        stranger.users.get(ada)
    with (
        Almanac(base_url, new_api(read_only=True).key) as reader,
        pytest.raises(Forbidden, match="read-only"),
    ):
        reader.users.create("somebody")


def test_an_ended_connection_is_not_taken_for_a_bad_key(almanac, ada, sandbox):
    sandbox.revoke("ada@example.com")

    with pytest.raises(ConnectionEnded):
        almanac.scheduling.user(ada, max_age=0, provider=["google"], **DAY)


def test_missing_scopes_are_named(almanac, sandbox, unique):
    account = sandbox.account("google", "reader@example.com", scope=READ_ONLY)
    user = almanac.users.create(unique("reader"))["id"]
    almanac.connections.store(user, "google", access_token=account.access_token, scope=[READ_ONLY])

    with pytest.raises(ScopesMissing) as caught:
        almanac.events.create(user, "google", "primary", start="2026-12-03T09:00", end="2026-12-03T10:00")

    assert caught.value.operation == "calendar.events.insert"
    assert "https://www.googleapis.com/auth/calendar" in caught.value.valid_scopes
