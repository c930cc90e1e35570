"""Holds in the database: one taker of each time, expiry, claims, and events."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from store.sql.models import HeldTime, Hold, Membership, Organization, WebhookDelivery
from store.sql.queries import holds, users, webhooks
from store.sql.queries.holds import ActiveTime, NewHold, Overlap, TakenHold
from store.sql.queries.webhooks import WebhookEvent
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

    def take(*names, starts=TEN, now=NOW, request="r", lasts=5 * MINUTE, **more):
        new = NewHold(starts, starts + 30 * MINUTE, now + lasts, request, note="lunch")
        with fresh_database.writing() as session:
            return holds.take(session, [team[name] for name in names], new, now=now, **more)

    return take


@pytest.fixture
def promised(fresh_database, take):
    def promised(*names, now=NOW, lasts=5 * MINUTE, **more):
        hold_id = take(*names, now=now, **more).id
        with fresh_database.writing() as session:
            return holds.promise(session, hold_id, expires_at=now + lasts, now=now)

    return promised


def is_taken(found):
    return isinstance(found, TakenHold)


def events(database):
    with database.reading() as session:
        rows = session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.id)).all()
    return [(row.endpoint_id, row.event, row.payload["data"]) for row in rows]


def test_of_two_overlapping_holds_of_a_user_the_first_one_counts(take):
    assert is_taken(take("ada", "bob"))

    assert take("bob", "eve", starts=TEN + 29 * MINUTE, request="other") == [
        Overlap("bob", TEN, TEN + 30 * MINUTE)
    ]
    assert is_taken(take("bob", starts=TEN + 30 * MINUTE, request="after"))
    # The refused one holds nothing.
    assert is_taken(take("eve", request="eve"))


def test_padding_widens_held_time(take):
    take("ada")
    later = TEN + 40 * MINUTE

    assert take("ada", starts=later, request="x", after=11 * MINUTE)
    assert is_taken(take("ada", starts=later, request="x", after=10 * MINUTE))
    earlier = TEN - 40 * MINUTE
    assert take("ada", starts=earlier, request="y", before=11 * MINUTE)
    assert is_taken(take("ada", starts=earlier, request="y", before=10 * MINUTE))


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
            return holds.take(session, [team[name] for name in names], new, now=NOW)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(one, range(8)))

    assert sum(map(is_taken, found)) == 1
    with fresh_database.reading() as session:
        assert len(session.scalars(select(HeldTime)).all()) == 2


# SQLite has no exclusion constraints.
@pytest.mark.parametrize("fresh_database", ["postgresql"], indirect=True)
def test_postgresql_itself_refuses_overlapping_rows(fresh_database, team, take):
    take("ada")

    with fresh_database.writing() as session:
        session.add(Hold(id="h", starts=TEN, ends=TEN + 1, expires_at=NOW + 1, request_key="x"))
    with fresh_database.reading() as session:
        session.add(HeldTime(hold_id="h", user_id=team["ada"], starts=TEN, ends=TEN + 1))
        with pytest.raises(IntegrityError, match="ex_held_times_user_id"):
            session.flush()


def test_only_promised_time_is_public(fresh_database, take, promised):
    take("ada", request="lock")
    view = promised("bob", "eve", request="hold")

    assert (view.users, view.starts, view.ends, view.note) == (
        ("bob", "eve"),
        TEN,
        TEN + 30 * MINUTE,
        "lunch",
    )
    with fresh_database.reading() as session:
        assert holds.active(session, now=NOW) == [
            ActiveTime(each, TEN, TEN + 30 * MINUTE, NOW + 5 * MINUTE) for each in ("bob", "eve")
        ]
        assert holds.active(session, now=NOW + 5 * MINUTE) == []
        assert holds.listed(session, "ada", organization_id=None, now=NOW) == []
        assert holds.listed(session, "bob", organization_id=None, now=NOW) == [view]
        assert holds.find(session, view.id, organization_id=None, now=NOW + 5 * MINUTE) is None


def test_a_hold_that_expired_before_its_answer_is_not_promised(fresh_database, take):
    hold_id = take("ada").id

    with fresh_database.writing() as session:
        late = NOW + 5 * MINUTE
        assert holds.promise(session, hold_id, expires_at=late + MINUTE, now=late) is None


def test_an_organization_sees_the_holds_of_its_members_only(fresh_database, team, promised):
    own = promised("ada", "bob", request="own")
    mixed = promised("ada", "eve", starts=TEN + 30 * MINUTE, request="mixed")

    with fresh_database.reading() as session:
        assert holds.listed(session, "ada", organization_id=team["acme"], now=NOW) == [own]
        assert holds.listed(session, "ada", organization_id=None, now=NOW) == [own, mixed]
        assert holds.find(session, mixed.id, organization_id=team["acme"], now=NOW) is None


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


def test_a_claim_has_to_lie_inside_the_hold_and_name_its_user(fresh_database, promised):
    hold = promised("ada")

    assert claim(fresh_database, hold, user="bob") is None
    assert claim(fresh_database, hold, starts=TEN - 1) is None
    assert claim(fresh_database, hold, ends=TEN + 30 * MINUTE + 1) is None
    assert claim(fresh_database, hold, ends=TEN + 30 * MINUTE) is not None


def test_the_request_that_is_using_a_hold_does_not_replace_it(fresh_database, take, promised):
    claim(fresh_database, promised("ada"))

    assert take("ada") == [Overlap("ada", TEN, TEN + 30 * MINUTE)]


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
    first = promised("ada", "eve", request="1")
    second = promised("bob", request="2")
    take("eve", starts=TEN + 60 * MINUTE, request="lock")
    with fresh_database.writing() as session:
        assert holds.release(session, second.id, reason="deleted", now=NOW)
        assert not holds.release(session, second.id, reason="deleted", now=NOW)
    with fresh_database.writing() as session:
        late = NOW + 5 * MINUTE
        assert holds.purge(session, now=late, limit=10) == 2
        assert holds.purge(session, now=late, limit=10) == 0

    found = events(fresh_database)
    assert sorted((each, event, tuple(data["users"])) for each, event, data in found) == sorted(
        [
            (everything, "hold.created", ("ada", "eve")),
            (acme, "hold.created", ("ada",)),
            (everything, "hold.created", ("bob",)),
            (acme, "hold.created", ("bob",)),
            (everything, "hold.released", ("bob",)),
            (acme, "hold.released", ("bob",)),
            (everything, "hold.expired", ("ada", "eve")),
            (acme, "hold.expired", ("ada",)),
        ]
    )
    assert {data["holdId"] for _, event, data in found if event == "hold.expired"} == {first.id}
    assert {data.get("reason") for _, event, data in found if event == "hold.released"} == {"deleted"}


def test_a_deleted_user_is_no_longer_held(fresh_database, team, promised):
    hold = promised("ada", "bob")

    with fresh_database.writing() as session:
        users.remove(session, team["ada"])

    with fresh_database.reading() as session:
        assert holds.find(session, hold.id, organization_id=None, now=NOW).users == ("bob",)
