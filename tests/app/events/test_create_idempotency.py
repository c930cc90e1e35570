"""A repeated create makes one event: by the client's id, by metaId, by idempotency key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from app.events.bodies import changes, draft
from app.schemas.timestamps import parse
from store.sql.queries.connection_rows import ConnectionRef
from tests.app.answers import error
from tests.app.at_provider import INSERT, bare, one
from tests.app.days import PROVIDERS
from tests.conftest import connect

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
KEY = {"Idempotency-Key": "one"}


@pytest.fixture
def person(new_person, provider):
    return new_person(provider, calendars=[{"primary": True}, {"id": "AAMk-team"}])


# --- the client's own id


@pytest.mark.parametrize("provider", ["google"])
def test_own_event_id_is_used_at_google_and_never_reused(person):
    made = person.made(id="a0b1c2d3e4", subject="Mine")
    assert made["id"] == "a0b1c2d3e4"
    taken = "id belongs to another event of this calendar"
    assert error(person.create(id="a0b1c2d3e4", subject="Other"), 409) == taken
    assert person.there.subjects() == ["Mine"]
    assert person.delete("a0b1c2d3e4").status_code == 200
    error(person.create(id="a0b1c2d3e4", subject="Other"), 409)
    assert person.there.subjects() == []
    # Ids are unique within a calendar only.
    assert person.made(id="a0b1c2d3e4", calendar="AAMk-team")["id"] == "a0b1c2d3e4"


@pytest.mark.parametrize("provider", ["google"])
@pytest.mark.parametrize("own", ["A0B1C2", "a-b-c-d-e", "wxyz12", "abc", "ä" * 5])
def test_an_id_that_google_does_not_take_is_400(person, own):
    assert "5 to 1024 characters of a-v and 0-9" in error(person.create(id=own), 400)
    assert person.there.events() == []


@pytest.mark.parametrize("provider", ["google"])
def test_an_id_of_no_characters_or_too_many_is_refused_unseen(sandbox, person):
    for own in ("", "a" * 1025):
        assert error(person.create(id=own), 400).startswith("id must have 1 to 1024 characters")
    assert sandbox.requests().total == 0


@pytest.mark.parametrize("provider", ["microsoft"])
def test_microsoft_makes_its_own_ids(person):
    first, second = person.made(id="a0b1c2d3e4"), person.made(id="a0b1c2d3e4")
    assert len({"a0b1c2d3e4", first["id"], second["id"]}) == 3


# --- metaId


@BOTH
def test_repeated_create_with_same_metaid_returns_the_event(person):
    first = person.made(metaId="m-1", subject="Once")
    again = person.made(metaId="m-1", subject="Once")
    assert bare(again) == bare(first)
    assert person.there.subjects() == ["Once"]


@BOTH
@pytest.mark.parametrize(
    "other", [{"subject": "Other"}, {"end": "2026-12-03T11:00:00Z"}, {"location": "x"}], ids=str
)
def test_another_request_with_the_same_metaid_is_409(person, other):
    person.made(metaId="m-1", subject="Once")
    message = error(person.create(**({"metaId": "m-1", "subject": "Once"} | other)), 409)
    assert message == "metaId belongs to another event of this calendar"
    assert person.there.subjects() == ["Once"]


@BOTH
def test_a_metaid_is_exact_and_is_of_one_calendar(person):
    first, second = person.made(metaId="m-a"), person.made(metaId="M-A")
    third = person.made(metaId="m-a", calendar="AAMk-team")
    assert len({first["id"], second["id"], third["id"]} | {person.made(metaId="m-a")["id"]}) in (2, 3)
    assert len(person.there.events()) == 2
    assert len(person.there.events("AAMk-team")) == 1
    assert (first["metaId"], second["metaId"]) == ("m-a", "M-A")


@BOTH
def test_a_metaid_that_an_event_was_given_later_is_taken(person):
    made = person.made(subject="Once")
    assert one(person.update(made["id"], metaId="m-1"))["metaId"] == "m-1"
    error(person.create(metaId="m-1", subject="Other"), 409)
    assert person.there.subjects() == ["Once"]


@BOTH
def test_create_ignores_event_with_a_changed_metaid(person):
    made = person.made(metaId="m-1", subject="Once")
    assert one(person.update(made["id"], metaId="m-2"))["metaId"] == "m-2"
    error(person.create(metaId="m-1", subject="Once"), 409)
    error(person.create(metaId="m-2", subject="Other"), 409)
    assert person.there.subjects() == ["Once"]


def test_a_metaid_is_taken_by_whatever_id_its_event_has(new_person):
    person = new_person("google")
    person.made(id="0chosen0", metaId="m-1", subject="Once")
    error(person.create(metaId="m-1", subject="Other"), 409)
    # The account has another address now, as after a rename: it is still the same event.
    connect(person.api, person.user, person.account, email=None)
    error(person.create(metaId="m-1", subject="Other"), 409)
    assert person.there.subjects() == ["Once"]


@BOTH
def test_a_metaid_is_free_again_after_a_delete(person):
    for round_ in range(3):
        made = person.made(metaId="m-1", subject=f"{round_}")
        assert person.delete(made["id"]).status_code == 200
    person.made(metaId="m-1", subject="0")
    assert person.there.subjects() == ["0"]


@BOTH
@pytest.mark.parametrize("meta_id", ["it's", "a/b#c%20?d=e", "日本 🗓", "x" * 1024, " ", "a=b"])
def test_a_metaid_is_any_text(person, meta_id):
    made = person.made(metaId=meta_id)
    assert made["metaId"] == meta_id
    assert one(person.get(made["id"]))["metaId"] == meta_id
    assert person.made(metaId=meta_id)["id"] == made["id"]


@BOTH
@pytest.mark.parametrize("damage", ["truncated", "html"])
def test_a_create_whose_answer_is_lost_is_repeated_without_a_second_event(sandbox, person, damage):
    sandbox.fault(operation=INSERT[person.provider], body=damage)
    lost = person.create(metaId="m-1", subject="Once")
    # 422 for an unreadable answer; after a broken one, the event is found.
    assert lost.status_code == (422 if damage == "html" else 201)
    assert person.there.subjects() == ["Once"]
    sandbox.clear_faults()
    assert person.made(metaId="m-1", subject="Once")["subject"] == "Once"
    assert person.there.subjects() == ["Once"]


# --- Idempotency-Key


@BOTH
def test_a_request_that_is_repeated_with_its_key_gets_the_same_answer(person):
    first = person.create(subject="Once", headers=KEY)
    again = person.create(subject="Once", headers=KEY)
    assert (again.status_code, again.json) == (201, first.json)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert person.there.subjects() == ["Once"]


@BOTH
def test_a_key_of_another_request_is_422_and_writes_nothing(person):
    person.made(subject="Once", headers=KEY)
    message = error(person.create(subject="Other", headers=KEY), 422)
    assert "Idempotency-Key" in message
    assert person.there.subjects() == ["Once"]


@BOTH
def test_a_key_counts_for_one_user_and_one_calendar(person):
    person.made(subject="Once", headers=KEY)
    assert person.create(subject="Once", calendar="AAMk-team", headers=KEY).status_code == 422


@BOTH
def test_a_create_that_failed_before_it_was_done_is_done_by_the_next(sandbox, person):
    sandbox.fault(operation=INSERT[person.provider], status=403)
    assert person.create(subject="Once", headers=KEY).status_code == 403
    sandbox.clear_faults()
    assert "Idempotency-Replayed" not in person.create(subject="Once", headers=KEY).headers
    assert person.there.subjects() == ["Once"]


@BOTH
def test_two_creates_without_a_key_are_two_events(person):
    assert person.made()["id"] != person.made()["id"]
    assert len(person.there.events()) == 2


ADA = ConnectionRef(
    id="c-1", user="ada", provider="google", email="ada@example.com", scope=frozenset({"openid"}), alive=True
)
BODY = {
    "start": parse("2026-12-03T09:00:00Z"),
    "end": parse("2026-12-03T10:00:00Z"),
    "metaId": "m-1",
    "subject": "Review",
}


def of(ref=ADA, calendar="primary", own_id=None, **body):
    return draft(changes(BODY | body, None), ref, calendar, own_id)


def test_a_key_has_64_hexadecimal_digits_which_google_takes_as_an_id():
    assert len(of().key) == 64
    assert set(of().key) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "same",
    [
        of(),
        of(calendar="ada@example.com"),
        of(calendar="ADA@example.com"),
        of(replace(ADA, email="Ada@Example.com")),
        # A new connection, or another user's connection, to the same calendar.
        of(replace(ADA, id="c-2", user="bob")),
    ],
)
def test_the_same_metaid_in_the_same_calendar_is_one_key(same):
    assert same.key == of().key


@pytest.mark.parametrize(
    "other",
    [
        of(metaId="M-1"),
        of(calendar="team@group.calendar.google.com"),
        of(replace(ADA, provider="microsoft")),
        of(replace(ADA, email="eve@example.com")),
        of(replace(ADA, email=None)),
    ],
)
def test_another_metaid_calendar_or_account_is_another_key(other):
    assert other.key != of().key


@pytest.mark.parametrize(
    "other",
    [of(subject="Other"), of(end=parse("2026-12-03T11:00:00Z")), of(own_id="abcde"), of(attendees=[])],
)
def test_another_request_with_the_same_metaid_has_another_fingerprint(other):
    assert other.key == of().key
    assert other.fingerprint != of().fingerprint


def test_the_same_moment_written_otherwise_is_the_same_request():
    written = of(start=parse("2026-12-03T10:00:00+01:00"))
    assert (written.key, written.fingerprint) == (of().key, of().fingerprint)


def test_a_request_has_the_fingerprint_of_release_0_1():
    """A create that is repeated after an upgrade is still the same create."""
    made = of()
    before = {
        "subject": "Review",
        "description": None,
        "location": None,
        "start": {"type": "Moment", "at": 1_796_288_400_000, "zone": None},
        "end": {"type": "Moment", "at": 1_796_292_000_000, "zone": None},
        "attendees": None,
        "meeting": False,
        "meeting_url": None,
        "meta_id": "m-1",
        "notify": None,
    }

    text = json.dumps([before, None], separators=(",", ":"))
    assert made.fingerprint == hashlib.sha256(f"{made.key}\n{text}".encode()).hexdigest()
