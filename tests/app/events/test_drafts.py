"""When two creates are the same create: the key and the fingerprint of a draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.events.bodies import changes, draft
from app.schemas.timestamps import parse
from store.sql.queries.connection_rows import ConnectionRef

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
