"""Idempotency keys: who does a request's work, and the answer that a repetition of it gets."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, or_, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from store.security.crypto import Keyring
from store.sql.models import IdempotencyKey, now

# Counted from the last time that work was begun or answered.
LIFETIME = timedelta(hours=24)

_INSERT: Mapping[str, Callable[..., Any]] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
_NAME = (IdempotencyKey.api_key_id, IdempotencyKey.digest)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to do the work of a key's request. ``token`` tells it from the claims before and after."""

    api_key_id: int
    digest: str
    token: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The work was done; this was its answer."""

    answer: str = field(repr=False)


class Refusal(Enum):
    """Why a key cannot be claimed."""

    UNDER_WAY = auto()
    OTHER_REQUEST = auto()


def claim(
    session: Session, keyring: Keyring, *, api_key_id: int, digest: str, fingerprint: str, until: datetime
) -> Claim | Answered | Refusal:
    """Claim a key until a moment, for the request of that fingerprint.

    A claim that is over counts for nothing; so does whatever is older than ``LIFETIME``.
    """
    mine = Claim(api_key_id, digest, secrets.token_hex(16))
    state: dict[str, Any] = {
        "fingerprint": fingerprint,
        "claim": mine.token,
        "claimed_until": until,
        "sealed_answer": None,
        "expires_at": now() + LIFETIME,
    }
    insert = _INSERT[session.get_bind().dialect.name](IdempotencyKey)
    # One statement: of two at once, the database lets one through, and the other finds its claim.
    statement = (
        insert.values(api_key_id=api_key_id, digest=digest, **state)
        .on_conflict_do_update(index_elements=_NAME, set_=state, where=_free(fingerprint))
        .returning(IdempotencyKey.claim)
    )
    if session.scalars(statement).one_or_none() is not None:
        return mine
    return _standing(session, keyring, mine, fingerprint)


def keep(session: Session, keyring: Keyring, claim: Claim, answer: str) -> bool:
    """Store the answer of the work that was claimed; False when the claim had passed to another."""
    sealed = keyring.encrypt(answer, place(claim.api_key_id, claim.digest))
    return _end(session, claim, sealed_answer=sealed, expires_at=now() + LIFETIME)


def release(session: Session, claim: Claim) -> bool:
    """Let the same request be made again; False when the claim had passed to another."""
    return _end(session, claim)


def forget(session: Session, claim: Claim) -> None:
    """Let the key be used for any request, as if it never had been."""
    session.execute(delete(IdempotencyKey).where(_is(claim)))


def purge(session: Session, *, limit: int) -> int:
    """Delete up to ``limit`` keys that are over; returns how many."""
    over = IdempotencyKey.expires_at <= now()
    some = select(*_NAME).where(over).limit(limit)
    # Asked twice: one that is claimed anew between the query and the deletion stays.
    gone = delete(IdempotencyKey).where(tuple_(*_NAME).in_(some), over).returning(IdempotencyKey.digest)
    return len(session.execute(gone).all())


def _free(fingerprint: str) -> ColumnElement[bool]:
    """Whether a key that is there may be claimed."""
    moment = now()
    unclaimed = or_(IdempotencyKey.claimed_until.is_(None), IdempotencyKey.claimed_until <= moment)
    same = and_(IdempotencyKey.fingerprint == fingerprint, IdempotencyKey.sealed_answer.is_(None))
    return or_(IdempotencyKey.expires_at <= moment, and_(same, unclaimed))


def _standing(session: Session, keyring: Keyring, wanted: Claim, fingerprint: str) -> Answered | Refusal:
    """What kept us from claiming."""
    row = session.get(IdempotencyKey, (wanted.api_key_id, wanted.digest))
    # Gone or given free since: whoever comes again finds it so.
    if row is None:
        return Refusal.UNDER_WAY
    if row.fingerprint != fingerprint:
        return Refusal.OTHER_REQUEST
    if row.sealed_answer is None:
        return Refusal.UNDER_WAY
    return Answered(keyring.decrypt(row.sealed_answer, place(wanted.api_key_id, wanted.digest)))


def _end(session: Session, claim: Claim, **state: Any) -> bool:
    ended = (
        update(IdempotencyKey)
        .where(_is(claim))
        .values(claim=None, claimed_until=None, **state)
        .returning(IdempotencyKey.digest)
    )
    return session.scalars(ended).one_or_none() is not None


def _is(claim: Claim) -> ColumnElement[bool]:
    """The row, as long as the claim has not passed to another."""
    return and_(
        IdempotencyKey.api_key_id == claim.api_key_id,
        IdempotencyKey.digest == claim.digest,
        IdempotencyKey.claim == claim.token,
    )


def place(api_key_id: int, digest: str) -> str:
    """What an answer is bound to."""
    return f"idempotency_keys/{api_key_id}/{digest}/answer"
