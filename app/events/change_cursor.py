"""The cursor of changes: the sync tokens of providers, encrypted. Nothing is stored for it."""

from __future__ import annotations

import base64
import hashlib
import zlib

import msgspec

from app.http.errors import ApiError, Invalid
from app.schemas.changes import MAX_CURSOR
from app.schemas.error_codes import Code
from store.security.crypto import Keyring, Undecipherable

OUTDATED = "This version of the service does not read this cursor any more: begin again without it"

# The public id of a connection, and the id of a calendar at the provider.
Name = tuple[str, str]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The range in milliseconds, the selected accounts and calendars, and how far each calendar was read.

    ``digests`` has the SHA-256 digests of sync tokens that would make the cursor too long. They only tell
    whether the calendar has changed.
    """

    start: int
    end: int
    providers: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    calendar_ids: tuple[str, ...] = ()
    tokens: dict[Name, str] = {}
    digests: dict[Name, bytes] = {}


class Owner(msgspec.Struct, frozen=True):
    """The requests that may use a cursor: about one user, by keys of one organization or unbound keys."""

    user_id: int
    organization_id: int | None

    @property
    def associated_data(self) -> str:
        return f"changes:{self.organization_id or ''}:{self.user_id}"


def digest(sync_token: str) -> bytes:
    """The digest of a sync token."""
    return hashlib.sha256(sync_token.encode()).digest()


def seal(cursor: Cursor, owner: Owner, keyring: Keyring) -> str:
    """The cursor as text. The longest sync tokens are replaced by their digests if it would be too long."""
    text = _sealed(cursor, owner, keyring)
    while len(text) > MAX_CURSOR and cursor.tokens:
        longest = max(cursor.tokens, key=lambda name: len(cursor.tokens[name]))
        tokens = {name: token for name, token in cursor.tokens.items() if name != longest}
        digests = cursor.digests | {longest: digest(cursor.tokens[longest])}
        cursor = msgspec.structs.replace(cursor, tokens=tokens, digests=digests)
        text = _sealed(cursor, owner, keyring)
    return text


def _sealed(cursor: Cursor, owner: Owner, keyring: Keyring) -> str:
    packed = base64.b64encode(zlib.compress(msgspec.msgpack.encode(cursor))).decode()
    ciphertext = keyring.encrypt(packed, owner.associated_data)
    return base64.urlsafe_b64encode(ciphertext).decode().rstrip("=")


def unseal(text: str, owner: Owner, keyring: Keyring) -> Cursor:
    """The cursor in a text.

    :raise Invalid: if it was not made by :func:`seal` for this owner
    :raise ApiError: if another version of Almanac has made it
    """
    try:
        ciphertext = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        packed = base64.b64decode(keyring.decrypt(ciphertext, owner.associated_data))
    except (ValueError, Undecipherable):
        raise Invalid("cursor is not one that this service gave for this user", param="cursor") from None
    try:
        return msgspec.msgpack.decode(zlib.decompress(packed), type=Cursor)
    except (msgspec.DecodeError, zlib.error):
        raise ApiError(OUTDATED, Code.CURSOR_EXPIRED) from None
