"""Holds in the database: one taker of each time, expiry, claims, and events."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from store.cache.cache_tags import user_name
from store.sql.models import HeldTime, Hold, Membership, Organization, WebhookDelivery
from store.sql.queries import deliveries, holds, organizations, users, webhooks
from store.sql.queries.holds import NewHold, TakenHold
from store.sql.queries.webhook_events import WebhookEvent
from tests import people

MINUTE = 60_000
NOW = 1_800_000_000_000
TEN = NOW + 600 * MINUTE
ALL_EVENTS = [WebhookEvent.HOLD_CREATED, WebhookEvent.HOLD_EXPIRED, WebhookEvent.HOLD_RELEASED]


@pytest.fixture
def team(fresh_database):
    """The numbers of three users; ada and bob are members of acme."""
    with fresh_database.writing() as session:
        numbers = {name: people.add_user(session, name).id for name in ("ada", "bob", "eve")}
        acme = Organization(slug="acme")
        session.add(acme)
        session.flush()
        for name in ("ada", "bob"):
            session.add(Membership(organization_id=acme.id, user_id=numbers[name]))
    return numbers | {"acme": acme.id}


@pytest.fixture
def take(fresh_database, team):
    """Take half an hour of some users at ``starts``."""

    def take(*names, starts=TEN, now=NOW, request="r", lasts=5 * MINUTE, by=None, booked=(), **more):
        new = NewHold(starts, starts + 30 * MINUTE, now + lasts, request, "lunch", by and team[by])
        with fresh_database.writing() as session:
            found = holds.take(session, {team[name]: booked for name in names}, new, now=now, **more)
            if not isinstance(found, TakenHold):
                session.rollback()
            return found

    return take


@pytest.fixture
def promised(fresh_database, take):
    def promised(*names, now=NOW, lasts=5 * MINUTE, **more):
        hold_id = take(*names, now=now, **more).id
        with fresh_database.writing() as session:
            return holds.promise(session, hold_id, expires_at=now + lasts, now=now)

    return promised


def taken_of(found, team):
    """The times that are taken, by user."""
    assert not is_taken(found)
    name_of = {team[name]: name for name in ("ada", "bob", "eve")}
    return {name_of[number]: [(each.starts, each.ends) for each in times] for number, times in found.items()}


def is_taken(found):
    return isinstance(found, TakenHold)


def events(database):
    with database.reading() as session:
        rows = session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.id)).all()
    return [(row.endpoint_id, row.event, row.payload["data"]) for row in rows]


def test_of_two_overlapping_holds_of_a_user_the_first_one_counts(take, team):
    assert is_taken(take("ada", "bob"))

    refused = take("bob", "eve", starts=TEN + 29 * MINUTE, request="other")
    assert taken_of(refused, team) == {"bob": [(TEN, TEN + 30 * MINUTE)]}
    assert is_taken(take("bob", starts=TEN + 30 * MINUTE, request="after"))
    # The refused one holds nothing.
    assert is_taken(take("eve", request="eve"))


def test_expired_time_can_be_taken_before_any_upkeep(fresh_database, take):
    take("ada")

    assert is_taken(take("ada", now=NOW + 5 * MINUTE, request="next"))
    with fresh_database.reading() as session:
        assert [row.request_key for row in session.scalars(select(Hold))] == ["next"]


def test_a_repeated_request_replaces_its_own_hold(fresh_database, take):
    first, second = take("ada", lasts=6 * MINUTE), take("ada")

    assert first.id != second.id
    assert [first.repeated, second.repeated] == [False, True]
    with fresh_database.reading() as session:
        (row,) = session.scalars(select(Hold)).all()
    # The first one may still be in use, so its time does not end earlier.
    assert (row.id, row.expires_at) == (second.id, NOW + 6 * MINUTE)


def test_of_concurrent_takers_exactly_one_wins(fresh_database, team):
    gate = threading.Barrier(8)

    def one(number):
        # Each has another user too, and the order of the users differs.
        names = ["ada", "bob"][:: 1 if number % 2 else -1]
        new = NewHold(TEN + number, TEN + 30 * MINUTE, NOW + MINUTE, f"r{number}")
        gate.wait(timeout=10)
        with fresh_database.writing() as session:
            found = holds.take(session, {team[name]: () for name in names}, new, now=NOW)
            if not is_taken(found):
                session.rollback()
            return found

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(one, range(8)))

    assert sum(map(is_taken, found)) == 1
    with fresh_database.reading() as session:
        assert len(session.scalars(select(HeldTime)).all()) == 2


def test_what_is_booked_is_held_through_every_user(take, team):
    assert is_taken(take("ada", booked=["google:calendar:room"], request="ada"))

    assert taken_of(take("bob", booked=["google:calendar:room"], request="bob"), team) == {
        "bob": [(TEN, TEN + 30 * MINUTE)]
    }
    assert is_taken(take("bob", booked=["google:calendar:other"], request="bob"))


def test_others_may_overlap_and_count_once_each(take, team):
    """Through the user and two names of what is booked."""
    names = ["google:calendar:room", "google:account:7"]
    first = take("ada", booked=names, request="1", max_overlaps=1)
    second = take("ada", booked=names, request="2", max_overlaps=1)

    assert (first.others, [each.hold for each in second.others[team["ada"]]]) == ({}, [first.id])
    third = take("ada", booked=names, request="3", max_overlaps=2)
    assert {each.hold for each in third.others[team["ada"]]} == {first.id, second.id}


def test_users_of_a_hold_are_counted_by_organization(fresh_database, take, team):
    take("ada", "bob", request="1", by="acme")
    take("ada", starts=TEN + 60 * MINUTE, request="2", by="acme")
    take("eve", request="3")

    with fresh_database.reading() as session:
        assert holds.held_users(session, team["acme"], now=NOW) == 3
        assert holds.held_users(session, None, now=NOW) == 1
        assert holds.most_held_users(session, now=NOW) == 3
        assert holds.held_users(session, team["acme"], now=NOW + 5 * MINUTE) == 0
        assert holds.most_held_users(session, now=NOW + 5 * MINUTE) == 0


# SQLite has one writer.
@pytest.mark.parametrize("fresh_database", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("first", "second"),
    [(("ada", ()), ("ada", ())), (("ada", ["google:calendar:room"]), ("bob", ["google:calendar:room"]))],
    ids=["one user", "one calendar"],
)
def test_a_taker_waits_for_the_one_before(fresh_database, team, first, second):
    """Otherwise neither would see the hold of the other before it commits."""

    def take(session, taker, request):
        user, names = taker
        new = NewHold(TEN, TEN + MINUTE, NOW + MINUTE, request)
        return holds.take(session, {team[user]: names}, new, now=NOW)

    def later():
        with fresh_database.reading() as session:
            return take(session, second, "second")

    with ThreadPoolExecutor(1) as threads:
        with fresh_database.writing() as session:
            assert is_taken(take(session, first, "first"))
            waiting = threads.submit(later)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.3)
        assert not is_taken(waiting.result(timeout=10))


def test_only_promised_time_is_public(fresh_database, take, promised, team):
    take("ada", request="lock")
    view = promised("bob", "eve", request="hold")

    assert (view.users, view.starts, view.ends, view.note) == (
        ("bob", "eve"),
        TEN,
        TEN + 30 * MINUTE,
        "lunch",
    )
    with fresh_database.reading() as session:
        names = {name: user_name(team[name]) for name in ("ada", "bob", "eve")}
        found = holds.active(session, names.values(), now=NOW)
        assert found.keys() == {names["bob"], names["eve"]}
        assert found[names["bob"]] == [(view.id, TEN, TEN + 30 * MINUTE, NOW + 5 * MINUTE)]
        assert holds.active(session, names.values(), now=NOW + 5 * MINUTE) == {}
        assert holds.listed(session, ["ada"], organization_id=None, now=NOW) == []
        assert holds.listed(session, ["bob"], organization_id=None, now=NOW) == [view]
        assert holds.find(session, view.id, organization_id=None, now=NOW + 5 * MINUTE) is None


def test_a_hold_that_expired_before_its_answer_is_not_promised(fresh_database, take):
    hold_id = take("ada").id

    with fresh_database.writing() as session:
        late = NOW + 5 * MINUTE
        assert holds.promise(session, hold_id, expires_at=late + MINUTE, now=late) is None


def test_an_organization_sees_its_own_holds_of_its_members_only(fresh_database, team, promised):
    own = promised("ada", "bob", request="own", by="acme")
    other = promised("ada", starts=TEN + 30 * MINUTE, request="other")

    def listed(organization):
        with fresh_database.reading() as session:
            return holds.listed(session, ["ada"], organization_id=organization, now=NOW)

    assert (listed(team["acme"]), listed(None)) == ([own], [own, other])
    with fresh_database.writing() as session:
        organizations.remove_members(session, team["acme"], [team["bob"]])
    assert [each.users for each in listed(team["acme"])] == [("ada",)]
    assert [each.users for each in listed(None)] == [("ada", "bob"), ("ada",)]


def test_the_holds_of_a_deleted_organization_end_with_it(fresh_database, team, promised):
    promised("ada", by="acme")

    with fresh_database.writing() as session:
        session.delete(session.get(Organization, team["acme"]))

    with fresh_database.reading() as session:
        assert holds.active(session, [user_name(team["ada"])], now=NOW) == {}


def claim(database, hold, user="ada", starts=TEN, ends=TEN + MINUTE, token="t", now=NOW):
    with database.writing() as session:
        return holds.claim(
            session,
            hold.id,
            user,
            starts,
            ends,
            token=token,
            expires_at=now + 9 * MINUTE,
            organization_id=None,
            now=now,
        )


def test_a_claim_extends_a_hold_until_it_is_given_back(fresh_database, promised):
    hold = promised("ada", "bob")
    claimed = claim(fresh_database, hold)

    assert claim(fresh_database, hold, token="other") is None
    assert claim(fresh_database, hold, now=NOW + 6 * MINUTE) is not None
    with fresh_database.writing() as session:
        assert not holds.release(session, hold.id, reason="deleted", now=NOW)
        holds.release_claim(session, claimed, token="t")
    with fresh_database.reading() as session:
        found = holds.find(session, hold.id, organization_id=None, now=NOW)
        assert found == hold
    assert claim(fresh_database, hold, token="other", now=NOW + 5 * MINUTE) is None


def test_a_late_end_of_a_claim_leaves_that_of_another_request(fresh_database, promised):
    """Two attempts of one request have claimed the hold; the second one ends after others have claimed it."""
    hold = promised("ada")
    attempts = [claim(fresh_database, hold, token="t") for _ in range(2)]
    with fresh_database.writing() as session:
        holds.release_claim(session, attempts[0], token="t")
    assert claim(fresh_database, hold, token="other") is not None

    with fresh_database.writing() as session:
        holds.release_claim(session, attempts[1], token="t")

    assert claim(fresh_database, hold, token="third") is None


def test_a_claim_does_not_shorten_a_hold(fresh_database, promised):
    """A create that is killed must not end the hold that a client was promised."""
    hold = promised("ada", lasts=60 * MINUTE)
    assert claim(fresh_database, hold) is not None

    with fresh_database.reading() as session:
        assert holds.find(session, hold.id, organization_id=None, now=NOW).expires_at == hold.expires_at


def test_a_claim_has_to_lie_inside_the_hold_and_name_its_user(fresh_database, promised):
    hold = promised("ada")

    assert claim(fresh_database, hold, user="bob") is None
    assert claim(fresh_database, hold, starts=TEN - 1) is None
    assert claim(fresh_database, hold, ends=TEN + 30 * MINUTE + 1) is None
    assert claim(fresh_database, hold, ends=TEN + 30 * MINUTE) is not None


def test_the_request_that_is_using_a_hold_does_not_replace_it(fresh_database, take, promised, team):
    claim(fresh_database, promised("ada"))

    assert taken_of(take("ada"), team) == {"ada": [(TEN, TEN + 30 * MINUTE)]}


def test_events_go_to_endpoints_that_name_them(fresh_database, keyring, team, promised, take):
    with fresh_database.writing() as session:
        made = [
            webhooks.create(
                session, keyring, url="https://a.example", events=names, organization_id=organization_id
            )[0].id
            for names, organization_id in (
                (ALL_EVENTS, None),
                (ALL_EVENTS, team["acme"]),
                ([WebhookEvent.CALENDAR_CHANGED], None),
            )
        ]
    everything, acme, _ = made
    first = promised("ada", "eve", request="1", by="acme")
    second = promised("bob", request="2", by="acme")
    promised("ada", starts=TEN + 90 * MINUTE, request="unbound")
    take("eve", starts=TEN + 60 * MINUTE, request="lock")
    with fresh_database.writing() as session:
        assert holds.release(session, second.id, reason="deleted", now=NOW)
        assert not holds.release(session, second.id, reason="deleted", now=NOW)
    with fresh_database.writing() as session:
        late = NOW + 5 * MINUTE
        assert holds.purge(session, now=late - 1, limit=10) == 0
        assert holds.purge(session, now=late, limit=10) == 3
        assert holds.purge(session, now=late, limit=10) == 0

    found = events(fresh_database)
    assert sorted((each, event, tuple(data["users"])) for each, event, data in found) == sorted(
        [
            (everything, "hold.created", ("ada", "eve")),
            (acme, "hold.created", ("ada",)),
            (everything, "hold.created", ("ada",)),
            (everything, "hold.expired", ("ada",)),
            (everything, "hold.created", ("bob",)),
            (acme, "hold.created", ("bob",)),
            (everything, "hold.released", ("bob",)),
            (acme, "hold.released", ("bob",)),
            (everything, "hold.expired", ("ada", "eve")),
            (acme, "hold.expired", ("ada",)),
        ]
    )
    # The organization hears nothing of the holds of others.
    assert {data["holdId"] for each, _, data in found if each == acme} == {first.id, second.id}
    assert {data.get("reason") for _, event, data in found if event == "hold.released"} == {"deleted"}


def test_a_deleted_user_is_no_longer_held(fresh_database, team, promised):
    hold = promised("ada", "bob")

    with fresh_database.writing() as session:
        users.remove(session, team["ada"])

    with fresh_database.reading() as session:
        assert holds.find(session, hold.id, organization_id=None, now=NOW).users == ("bob",)


def test_an_event_names_only_users_who_are_members_when_it_is_sent(fresh_database, keyring, team, promised):
    with fresh_database.writing() as session:
        made = {
            organization: webhooks.create(
                session, keyring, url="https://a.example", events=ALL_EVENTS, organization_id=organization
            )[0].id
            for organization in (None, team["acme"])
        }
    promised("ada", "bob", request="both", by="acme")
    promised("bob", starts=TEN + 60 * MINUTE, request="bob", by="acme")

    with fresh_database.writing() as session:
        organizations.remove_members(session, team["acme"], [team["bob"]])

    def sent(endpoint):
        until = datetime.now(UTC) + timedelta(minutes=1)
        with fresh_database.writing() as session:
            while (claimed := deliveries.claim(session, endpoint, until=until)) is not None:
                yield claimed.payload["data"]["users"]
                deliveries.delivered(session, claimed, deliveries.AttemptResult(204, None), most_attempts=10)

    assert sorted(sent(made[None])) == [["ada", "bob"], ["bob"]]
    assert list(sent(made[team["acme"]])) == [["ada"]]
    with fresh_database.reading() as session:
        log = deliveries.page(session, made[team["acme"]])
        assert sorted((row.payload["data"]["users"], row.last_error) for row in log) == [
            ([], "no longer a member"),
            (["ada"], None),
        ]
