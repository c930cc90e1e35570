"""Forms that count once: a page that is loaded again must not do anew what was done."""

from __future__ import annotations

import hashlib
import secrets

from app.services import services

TICKET_BYTES = 16
# For as long as a browser may keep the answer open that would send the form again.
REMEMBERED_SECONDS = 14 * 24 * 3600


def ticket() -> str:
    """What a form takes along, another each time that it is shown."""
    return secrets.token_urlsafe(TICKET_BYTES)


def take(ticket: str) -> bool:
    """Whether a form comes for the first time. Of several at the same moment one does."""
    return bool(services().stores.redis.set(_key(ticket), b"1", nx=True, ex=REMEMBERED_SECONDS))


def give_back(ticket: str) -> None:
    """What the form asked for has failed: it may come again."""
    services().stores.redis.delete(_key(ticket))


def _key(ticket: str) -> str:
    return f"form:{hashlib.sha256(ticket.encode()).hexdigest()}"
