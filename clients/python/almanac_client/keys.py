"""API keys, for keys that may manage keys."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict, Unpack

from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, data, nothing, rows
from almanac_client.parameters import When, body, camel, value_of
from almanac_client.records import Key, NewKey, RotatedKey
from almanac_client.resources import Resource, TransportT, listing, operation


class KeyChange(TypedDict, total=False):
    """The fields of a key that can change; None removes the expiry or the rate limit."""

    name: str
    read_only: bool
    show_tokens: bool
    expires_at: datetime | str | None
    rate_limit: int | None


class Keys(Resource[TransportT]):
    """API keys. The client's own key must be one that may manage keys."""

    @listing
    def list(self, *, limit: int = PAGE) -> Listing[Key]:
        """Every key in force that the managing key reaches, in pages of ``limit``.

        >>> [each.name for each in almanac.keys.list()]
        """
        return Listing(Request.get("/keys"), limit, rows(list[Key]))

    @operation
    def create(
        self,
        name: str,
        *,
        organization: str | None = None,
        read_only: bool | None = None,
        show_tokens: bool | None = None,
        expires_at: When | None = None,
        rate_limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> Operation[NewKey]:
        """Create a key, which may do no more than the managing key; it is returned only once.

        >>> secret = almanac.keys.create("billing", organization="acme", read_only=True).key
        """
        fields = body(
            name=name,
            organization=organization,
            read_only=read_only,
            show_tokens=show_tokens,
            expires_at=expires_at,
            rate_limit=rate_limit,
        )
        return Operation(Request.create("/keys", fields, idempotency_key=idempotency_key), data(NewKey))

    @operation
    def get(self, key_id: str) -> Operation[Key]:
        """A key, without the key itself.

        >>> almanac.keys.get(key.id).last_used_at
        """
        return Operation(Request.get(path("/keys/{}", key_id)), data(Key))

    @operation
    def change(self, key_id: str, **changes: Unpack[KeyChange]) -> Operation[Key]:
        """Change the given fields of a key.

        >>> almanac.keys.change(key.id, rate_limit=600)
        """
        # Not ``body``, which leaves None out.
        fields = {camel(name): value_of(value) for name, value in changes.items()}
        return Operation(Request("PATCH", path("/keys/{}", key_id), body=fields), data(Key))

    @operation
    def rotate(
        self, key_id: str, *, overlap_seconds: int | None = None, idempotency_key: str | None = None
    ) -> Operation[RotatedKey]:
        """Replace a key; the replaced one is valid for ``overlap_seconds`` too (default: a day).

        >>> secret = almanac.keys.rotate(key.id).key
        """
        where, fields = path("/keys/{}/rotate", key_id), body(overlap_seconds=overlap_seconds)
        return Operation(Request.create(where, fields, idempotency_key=idempotency_key), data(RotatedKey))

    @operation
    def delete(self, key_id: str) -> Operation[None]:
        """Revoke a key.

        >>> almanac.keys.delete(key.id)
        """
        return Operation(Request("DELETE", path("/keys/{}", key_id)), nothing)
