"""One-time tokens of forms: reloading the answer must not repeat the action."""

from __future__ import annotations

import hashlib
import secrets

from app.services import services

TICKET_BYTES = 16
# A browser may keep the answer open, and send the form again, for about this long.
REMEMBERED_SECONDS = 14 * 24 * 3600


def new_form_token() -> str:
    """A new token for the hidden field of a form."""
    return secrets.token_urlsafe(TICKET_BYTES)


def use(ticket: str) -> bool:
    """Use up a token; whether it was unused. Of several concurrent calls exactly one returns True."""
    return bool(services().stores.redis.set(_key(ticket), b"1", nx=True, ex=REMEMBERED_SECONDS))


def release(ticket: str) -> None:
    """Make a token usable again, because the action of its form has failed."""
    services().stores.redis.delete(_key(ticket))


def _key(ticket: str) -> str:
    return f"form:{hashlib.sha256(ticket.encode()).hexdigest()}"
