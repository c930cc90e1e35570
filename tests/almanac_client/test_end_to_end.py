"""The Python clients against the real service: web server, worker and sandbox."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

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
    Unavailable,
    verify_webhook,
)
from almanac_client.records import BusyPeriod, Slot
from providers.sandbox.client import Sandbox
from tests.app.days import meeting
from tests.conftest import Api

pytestmark = pytest.mark.slow

DAY = {"start": date(2026, 12, 3), "end": date(2026, 12, 4)}
HOURS = {"earliest_time_each_day": "09:00", "latest_time_each_day": time(12), "slot_duration": 60}


@pytest.fixture
def ada(almanac: Almanac, sandbox: Sandbox, unique: Callable[[str], str]) -> str:
    """A user with both accounts, busy from 9:00 to 10:00 at Google, from 10:00 to 11:00 at Microsoft."""
    user = almanac.users.create(unique("ada")).id
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
        assert made.alive
    return user


@pytest.fixture
def team(almanac: Almanac, unique: Callable[[str], str], ada: str) -> str:
    """An organization whose one member is ada."""
    slug = almanac.organizations.create(unique("team"), name="Team").slug
    added = almanac.members.add(slug, [ada])
    assert (added.sentence, added.added) == (f"1 users added successfully to {slug}", [ada])
    return slug


def at(hour: int, minute: int = 0) -> datetime:
    """A time of the day, in UTC."""
    return datetime(2026, 12, 3, hour, minute, tzinfo=UTC)


def hours(slots: list[Slot]) -> list[int]:
    return [slot.start.hour for slot in slots]


def test_a_user_is_free_where_no_account_is_busy(almanac, ada):
    answer = almanac.scheduling.user(ada, **DAY, **HOURS)

    assert hours(answer.data.available_slots) == [11]
    assert answer.complete
    assert answer.age is not None


def test_local_times_are_those_of_the_zone(almanac, ada):
    busy = almanac.busy.user(
        ada,
        start=datetime.fromisoformat("2026-12-03T09:30"),
        end="2026-12-03T11:30",
        zone=ZoneInfo("Europe/Berlin"),
    )

    assert busy.data == [BusyPeriod(at(9), at(10, 30))]


def test_weekly_schedules_are_sent_in_the_body(almanac, ada):
    thursdays = [{"days": ["thursday"], "start": time(10), "end": "13:00"}]

    answer = almanac.scheduling.user(ada, schedules=thursdays, slot_duration=60, **DAY)

    assert hours(answer.data.available_slots) == [11, 12]


def test_an_unreadable_member_cannot_be_overlooked(almanac, ada, team, sandbox):
    sandbox.fault(provider="google", status=503)

    answer = almanac.scheduling.organization(team, max_age=0, **DAY, **HOURS)

    assert not answer.complete
    assert answer.partial.available_slots == []
    assert [each.custom_id for each in answer.failed_users] == [ada]
    assert f"INCOMPLETE. Could not be read: {ada} (" in repr(answer)
    with pytest.raises(Incomplete, match=ada) as caught:
        _ = answer.data
    assert caught.value.answer is answer
    assert (caught.value.partial, caught.value.failed_users) == (answer.partial, answer.failed_users)
    assert caught.value.code is None


def test_an_unreadable_calendar_cannot_be_overlooked(almanac, ada, sandbox):
    sandbox.fault(provider="google", status=503)

    answer = almanac.busy.user(ada, max_age=0, **DAY)

    assert [each.provider for each in answer.failed_calendars] == ["google"]
    assert "INCOMPLETE" in repr(answer)
    with pytest.raises(Incomplete, match="at google"):
        _ = answer.data
    assert answer.partial == [BusyPeriod(at(10), at(11))]


def test_one_user_raises_unless_partial_answers_are_accepted(almanac, ada, sandbox):
    sandbox.fault(provider="google", status=503)

    with pytest.raises(Unavailable) as caught:
        almanac.scheduling.user(ada, max_age=0, **DAY, **HOURS)
    assert (caught.value.status, caught.value.reason) == (502, "providerError")
    assert [each.provider for each in caught.value.failed_calendars] == ["google"]
    answer = almanac.scheduling.user(ada, on_failure="partial", max_age=0, **DAY, **HOURS)
    assert hours(answer.partial.available_slots) == [9, 11]
    assert not answer.complete


def test_lists_are_walked_page_by_page(almanac, unique):
    slug = almanac.organizations.create(unique("many")).slug
    users = [almanac.users.create(unique("walker"), organization_slugs=[slug]).id for _ in range(5)]

    assert [each.id for each in almanac.members.list(slug, limit=2)] == sorted(users)
    assert set(users) <= {each.id for each in almanac.users.list(limit=3)}


def test_events_and_calendars_come_whole_or_in_pages(almanac, ada):
    whole = almanac.events.list(ada, **DAY)
    pages = list(almanac.events.pages(ada, limit=1, **DAY))

    assert [each.start for each in whole.data] == [at(9), at(10)]
    assert [page.data for page in pages] == [[each] for each in whole.data]
    assert len(almanac.calendars.list(ada).data) == len(list(almanac.calendars.pages(ada, limit=1))) == 2


def test_an_event_is_made_changed_and_deleted(almanac, ada):
    nine = {
        "start": datetime.fromisoformat("2026-12-04T09:00"),
        "end": datetime.fromisoformat("2026-12-04T10:00"),
        "zone": "Europe/Berlin",
    }
    made = almanac.events.create(ada, "google", "primary", subject="Review", **nine)
    where = (ada, "google", "primary", made.id)
    assert made.start == datetime(2026, 12, 4, 8, tzinfo=UTC)

    assert almanac.events.change(*where, subject="Another").subject == "Another"
    assert almanac.events.get(*where).location == ""
    with pytest.raises(Conflict) as refused:
        almanac.events.change(*where, if_match=made.etag, subject="Too late")
    assert (refused.value.status, refused.value.code) == (412, "eventChanged")
    current = almanac.events.get(*where)
    assert (current.subject, current.status, current.show_as) == ("Another", "confirmed", "busy")
    almanac.events.delete(*where, send_notifications=False, if_match=current.etag)

    with pytest.raises(NotFound):
        almanac.events.get(*where)


def test_an_account_is_connected_by_a_link(almanac, unique, sandbox):
    sandbox.account("google", "eve@example.com")
    user = almanac.users.create(unique("eve")).id
    links = [
        almanac.connections.authorize(user, "google", scope="read"),
        almanac.connections.link(user, "google", scope="read"),
        {each.provider: each.link for each in almanac.connections.links(user)}["google"],
    ]
    for link in links:
        page = requests.get(link, params={"login_hint": "eve@example.com"}, timeout=10, allow_redirects=False)
        assert "code" in parse_qs(urlsplit(page.headers["Location"]).query)


@pytest.mark.usefixtures("no_webhook_endpoints")
def test_a_webhook_is_registered_received_verified_and_deleted(almanac, ada, receiver):
    endpoint = almanac.webhooks.create(receiver.url, events=["calendar.changed"])
    assert endpoint.id in {each.id for each in almanac.webhooks.list(limit=1)}
    assert endpoint.secret not in repr(endpoint)

    almanac.events.create(ada, "google", "primary", start=at(14), end=at(15))
    received = receiver.wait(1)[0]
    event = verify_webhook(received.body, received.headers, endpoint.secret)

    assert (event.type, event.data.user_id, event.data.provider) == ("calendar.changed", ada, "google")
    (delivery, *_) = list(almanac.webhooks.deliveries(endpoint.id))
    assert (delivery.id, delivery.payload) == (received.id, event)
    almanac.webhooks.replay(endpoint.id, delivery.id)
    assert receiver.wait(2)[1].id == received.id
    almanac.webhooks.delete(endpoint.id)
    with pytest.raises(NotFound):
        list(almanac.webhooks.deliveries(endpoint.id))


def test_refusals_are_named_by_what_to_do_next(almanac, ada, base_url, connect, new_api: Callable[..., Api]):
    with pytest.raises(Invalid, match="end") as caught:
        almanac.busy.user(ada, start="2026-12-04", end="2026-12-03")
    assert caught.value.request_id
    assert (caught.value.code, caught.value.param) == ("validationFailed", "start")
    with pytest.raises(Conflict, match="User already exists") as taken:
        almanac.users.create(ada)
    assert taken.value.code == "userExists"
    with pytest.raises(NotFound) as missing:
        almanac.users.get("nobody-at-all")
    assert missing.value.code == "userNotFound"
    with pytest.raises(KeyRefused) as unknown:
        connect(base_url, "alm_unknown").users.get(ada)
    assert unknown.value.code == "apiKeyInvalid"
    with pytest.raises(Forbidden, match="read-only") as read_only:
        connect(base_url, new_api(read_only=True).key).users.create("somebody")
    assert read_only.value.code == "keyReadOnly"


def test_an_ended_connection_is_not_taken_for_a_bad_key(almanac, ada, sandbox):
    sandbox.revoke("ada@example.com")

    with pytest.raises(ConnectionEnded):
        almanac.scheduling.user(ada, max_age=0, provider=["google"], **DAY)


def test_an_organization_is_granted_and_its_members_are_imported(
    almanac: Almanac, sandbox: Sandbox, unique: Callable[[str], str]
):
    slug, name = almanac.organizations.create(unique("acme")).slug, unique("ada")
    google = sandbox.domain("google", "acme.example")
    tenant = sandbox.domain("microsoft", "acme.example")

    granted = almanac.grants.store_google(
        slug, service_account_key=google.service_account_key, subject=google.subject, scope="read"
    )
    almanac.grants.store_microsoft(
        slug, tenant=tenant.tenant, client_id=tenant.client_id, client_secret=tenant.client_secret
    )
    imported = almanac.grants.import_members(
        slug, "google", [{"user_id": name, "email": f"{name}@acme.example"}]
    )
    other = almanac.connections.delegate(name, "microsoft", email=f"{name}@acme.example", organization=slug)

    assert (granted.type, granted.email, granted.alive) == ("serviceAccount", google.subject, True)
    assert [each.provider for each in almanac.grants.list(slug)] == ["google", "microsoft"]
    assert (imported.created, other.type) == ([name], "delegated")
    assert almanac.grants.get(slug, "google") == granted
    almanac.grants.delete(slug, "google")
    with pytest.raises(NotFound):
        almanac.grants.get(slug, "google")
