"""API keys that an API key manages: those of its organization, within its own rights.

The key that results from a creation, a change or a rotation may do no more than the managing key. Revoking
grants no right, so every key in reach can be revoked. A managing key that is read-only is refused before
this module: it sends requests that write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from sqlalchemy.orm import Session

from app.accounts import api_keys, organizations
from app.http.errors import Conflict, Forbidden, NotFound, Unauthenticated
from app.schemas.error_codes import Code
from app.services import services
from store.sql.models import ApiKey
from store.sql.queries import api_keys as rows
from store.sql.queries import audit
from store.sql.queries.api_keys import Caller

# For each organization: every key has a rate limit of its own.
MAX_KEYS = 1000

REVOKED = "The API key is unknown, revoked or expired"
REPLACED = "This API key was replaced: manage API keys with the new one"


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits of a managing key: a copy, because the key can change its own row."""

    shows_tokens: bool
    expires_at: datetime | None
    rate_limit: int | None

    @classmethod
    def of(cls, manager: ApiKey) -> Self:
        """The limits of a row, as it is now."""
        return cls(manager.shows_tokens, manager.expires_at, manager.rate_limit)


def create(
    session: Session,
    caller: Caller,
    *,
    name: str,
    organization: str | None,
    read_only: bool,
    shows_tokens: bool,
    expires_at: datetime | None,
    rate_limit: int | None,
) -> tuple[ApiKey, str]:
    """Create a key; returns it with the key itself, which is not shown again.

    None stands for what the managing key has: its organization, its expiry, its rate limit.

    :raise NotFound: when the caller does not reach the organization
    :raise Forbidden: when the key could do more than the caller, or the caller's key was replaced
    :raise Conflict: when the organization has ``MAX_KEYS``; concurrent calls may exceed it
    """
    manager = _manager(session, caller)
    organization_id, slug = manager.organization_id, organization
    if organization is not None:
        organization_id = organizations.number(session, caller, organization, keep=True)
    elif manager.organization is not None:
        slug = manager.organization.slug
    if organization_id is not None and rows.count(session, organization_id) >= MAX_KEYS:
        raise Conflict(f"The organization has {MAX_KEYS} API keys already", Code.TOO_MANY_KEYS)
    row, key = api_keys.create(
        session,
        actor=caller.visible,
        prefix=services().settings.api_key_prefix,
        name=name,
        organization_id=organization_id,
        slug=slug,
        read_only=read_only,
        shows_tokens=shows_tokens,
        expires_at=expires_at or manager.expires_at,
        rate_limit=rate_limit or manager.rate_limit,
    )
    _require_within(_Limits.of(manager), row)
    session.refresh(row, ["organization"])
    return row, key


def find(session: Session, caller: Caller, public_id: str, *, to_change: bool = False) -> ApiKey:
    """A valid key that the caller reaches.

    :raise NotFound: when there is none
    """
    key_id = ApiKey.number_of(public_id)
    row = rows.find(session, key_id, organization_id=caller.organization_id, to_change=to_change)
    if row is None:
        raise NotFound("API key not found", Code.KEY_NOT_FOUND)
    return row


def change(session: Session, caller: Caller, public_id: str, columns: Mapping[str, Any]) -> ApiKey:
    """Set these columns of a key; errors as for ``find``.

    :raise Forbidden: when the key could then do more than the caller, or the caller's key was replaced
    """
    row = find(session, caller, public_id, to_change=True)
    limits = _Limits.of(_manager(session, caller))
    before = api_keys.visible_state(row)
    for column, value in columns.items():
        setattr(row, column, value)
    if columns:
        _require_within(limits, row)
        after = api_keys.visible_state(row)
        changes = {name: (before[name], after[name]) for name in before}
        audit.record(session, actor=caller.visible, action="changeKey", subject=row.visible, changes=changes)
    return row


def rotate(session: Session, caller: Caller, public_id: str, *, overlap: timedelta) -> tuple[ApiKey, str]:
    """Replace a key; returns its row and the new key. The replaced one is valid until ``overlap`` has passed.

    :raise NotFound: when there is none that the caller reaches
    :raise Forbidden: when the key may do more than the caller, or the caller's key was replaced
    """
    row = find(session, caller, public_id)
    _require_within(_Limits.of(_manager(session, caller)), row)
    old = row.visible
    key = rows.rotate(session, row, prefix=services().settings.api_key_prefix, overlap=overlap)
    changes = {"key": (old, row.visible), "previousKeyUntil": (None, row.previous_until)}
    audit.record(session, actor=caller.visible, action="rotateKey", subject=old, changes=changes)
    return row, key


def revoke(session: Session, caller: Caller, public_id: str) -> None:
    """Revoke a key; errors as for ``find``."""
    api_keys.revoke(session, find(session, caller, public_id).id, actor=caller.visible)


def _manager(session: Session, caller: Caller) -> ApiKey:
    """The row of the caller, as it is in this transaction.

    A replaced key has the same row, but ends earlier: the keys that it makes would outlive it.

    :raise Unauthenticated: when the key has been revoked since the request began
    :raise Forbidden: when the key was replaced, also since the request began
    """
    row = rows.find(session, caller.id, organization_id=None)
    if row is None:
        raise Unauthenticated(REVOKED, Code.API_KEY_INVALID)
    if caller.replaced or caller.visible != row.visible:
        raise Forbidden(REPLACED, Code.KEY_MAY_NOT_MANAGE_KEYS)
    return row


def _require_within(manager: _Limits, row: ApiKey) -> None:
    """Reject a key that may do more than the managing key.

    :raise Forbidden: with ``param``, the field that differs
    """
    default = services().settings.rate_limit
    limit, own_limit = row.rate_limit or default, manager.rate_limit or default
    ends = manager.expires_at
    refusals = {
        "showTokens": (row.shows_tokens and not manager.shows_tokens, "it may not show tokens"),
        "expiresAt": (
            ends is not None and (row.expires_at is None or row.expires_at > ends),
            "it expires earlier",
        ),
        "rateLimit": (
            bool(own_limit) and (not limit or limit > own_limit),
            f"it is limited to {own_limit} requests a minute",
        ),
    }
    for param, (refused, because) in refusals.items():
        if refused:
            sentence = f"{param} would let this key do more than the managing API key: {because}"
            raise Forbidden(sentence, Code.KEY_EXCEEDS_MANAGER, param=param)
