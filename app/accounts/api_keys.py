"""Creating and revoking API keys, with audit records: for the command line, the dashboard and the API."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from store.sql.models import ApiKey
from store.sql.queries import api_keys, audit


def create(
    session: Session,
    *,
    actor: str,
    prefix: str,
    name: str,
    organization_id: int | None,
    slug: str | None,
    read_only: bool,
    shows_tokens: bool,
    expires_at: datetime | None,
    manages_keys: bool = False,
    rate_limit: int | None = None,
) -> tuple[ApiKey, str]:
    """Create a key, bound to the organization with this internal id and slug if they are given.

    Returns its row and the key, which is stored as a hash and cannot be shown again.
    """
    row, key = api_keys.add(
        session,
        prefix=prefix,
        name=name,
        organization_id=organization_id,
        read_only=read_only,
        shows_tokens=shows_tokens,
        manages_keys=manages_keys,
        expires_at=expires_at,
        rate_limit=rate_limit,
    )
    facts = {"organization": slug, **visible_state(row)}
    audit.record(
        session,
        actor=actor,
        action="createKey",
        subject=row.visible,
        # Missing rights are left out.
        changes={fact: (None, value or None) for fact, value in facts.items()},
    )
    return row, key


def revoke(session: Session, key_id: int, *, actor: str) -> str | None:
    """Revoke a key; returns its visible part, or None when it is not valid."""
    visible = api_keys.revoke_one(session, key_id)
    if visible is not None:
        audit.record(session, actor=actor, action="revokeKey", subject=visible)
    return visible


def visible_state(row: ApiKey) -> dict[str, object]:
    """The values of a key that can change, as the audit log shows them."""
    return {
        "name": row.name,
        "rights": "read-only" if row.read_only else "full",
        "showsTokens": row.shows_tokens,
        "managesKeys": row.manages_keys,
        "expires": row.expires_at,
        "rateLimit": row.rate_limit,
    }
