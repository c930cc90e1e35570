"""Idempotency keys: claims of a request's work, and stored answers for repeated requests."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, or_, select, tuple_, update
from sqlalchemy.orm import Session

from store.security.crypto import Keyring
from store.sql.database import insert_or_update
from store.sql.models import IdempotencyKey, now

# Counted from the last claim or answer.
LIFETIME = timedelta(hours=24)

_NAME = (IdempotencyKey.api_key_id, IdempotencyKey.digest)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to do the work of a key's request. ``token`` distinguishes it from other claims."""

    api_key_id: int
    digest: str
    token: str


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The work was done with this answer."""

    answer: str = field(repr=False)


class ClaimRefusal(Enum):
    """Why a key cannot be claimed."""

    UNDER_WAY = auto()
    OTHER_REQUEST = auto()


def claim(
    session: Session, keyring: Keyring, *, api_key_id: int, digest: str, fingerprint: str, until: datetime
) -> Claim | StoredResponse | ClaimRefusal:
    """Claim a key until a given time, for the request with that fingerprint.

    Expired claims, and rows older than ``LIFETIME``, do not prevent a claim.
    """
    mine = Claim(api_key_id, digest, secrets.token_hex(16))
    state: dict[str, Any] = {
        "fingerprint": fingerprint,
        "claim": mine.token,
        "claimed_until": until,
        "sealed_answer": None,
        "expires_at": now() + LIFETIME,
    }
    insert = insert_or_update(session, IdempotencyKey)
    # One statement, so that of two concurrent claims one succeeds and the other finds it.
    statement = (
        insert.values(api_key_id=api_key_id, digest=digest, **state)
        .on_conflict_do_update(index_elements=_NAME, set_=state, where=_free(fingerprint))
        .returning(IdempotencyKey.claim)
    )
    if session.scalars(statement).one_or_none() is not None:
        return mine
    return _claim_refusal(session, keyring, mine, fingerprint)


def keep(session: Session, keyring: Keyring, claim: Claim, answer: str) -> bool:
    """Store the answer of the claimed work; False when another request has claimed the key since."""
    sealed = keyring.encrypt(answer, associated_data(claim.api_key_id, claim.digest))
    return _end(session, claim, sealed_answer=sealed, expires_at=now() + LIFETIME)


def release(session: Session, claim: Claim) -> bool:
    """Release a claim, so that the same request may be retried; False when another has claimed it since."""
    return _end(session, claim)


def forget(session: Session, claim: Claim) -> None:
    """Delete the key, so that it may be used for any request."""
    session.execute(delete(IdempotencyKey).where(_is(claim)))


def purge(session: Session, *, limit: int) -> int:
    """Delete up to ``limit`` expired keys; returns how many."""
    over = IdempotencyKey.expires_at <= now()
    some = select(*_NAME).where(over).limit(limit)
    # The condition is repeated: a key that is claimed between query and deletion stays.
    gone = delete(IdempotencyKey).where(tuple_(*_NAME).in_(some), over).returning(IdempotencyKey.digest)
    return len(session.execute(gone).all())


def _free(fingerprint: str) -> ColumnElement[bool]:
    """Whether an existing key may be claimed."""
    moment = now()
    unclaimed = or_(IdempotencyKey.claimed_until.is_(None), IdempotencyKey.claimed_until <= moment)
    same = and_(IdempotencyKey.fingerprint == fingerprint, IdempotencyKey.sealed_answer.is_(None))
    return or_(IdempotencyKey.expires_at <= moment, and_(same, unclaimed))


def _claim_refusal(
    session: Session, keyring: Keyring, wanted: Claim, fingerprint: str
) -> StoredResponse | ClaimRefusal:
    """Why a key could not be claimed."""
    row = session.get(IdempotencyKey, (wanted.api_key_id, wanted.digest))
    # Deleted or released since the claim failed: a retry of the client will succeed.
    if row is None:
        return ClaimRefusal.UNDER_WAY
    if row.fingerprint != fingerprint:
        return ClaimRefusal.OTHER_REQUEST
    if row.sealed_answer is None:
        return ClaimRefusal.UNDER_WAY
    return StoredResponse(
        keyring.decrypt(row.sealed_answer, associated_data(wanted.api_key_id, wanted.digest))
    )


def _end(session: Session, claim: Claim, **state: Any) -> bool:
    ended = (
        update(IdempotencyKey)
        .where(_is(claim))
        .values(claim=None, claimed_until=None, **state)
        .returning(IdempotencyKey.digest)
    )
    return session.scalars(ended).one_or_none() is not None


def _is(claim: Claim) -> ColumnElement[bool]:
    """Selects the row if this claim is still the current one."""
    return and_(
        IdempotencyKey.api_key_id == claim.api_key_id,
        IdempotencyKey.digest == claim.digest,
        IdempotencyKey.claim == claim.token,
    )


def associated_data(api_key_id: int, digest: str) -> str:
    """The associated data of an encrypted answer."""
    return f"idempotency_keys/{api_key_id}/{digest}/answer"
