"""API keys."""

from __future__ import annotations

from datetime import datetime

from almanac_client.records.base import Record


class Key(Record):
    """An API key, without the key itself. ``visible`` is its beginning."""

    id: str
    name: str
    visible: str
    organization: str | None
    read_only: bool
    show_tokens: bool
    manage_keys: bool
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    rate_limit: int | None


class NewKey(Key):
    """An API key with the key itself."""

    key: str

    def __repr__(self) -> str:
        # The key must not get into logs.
        return f"<{type(self).__name__} {self.id}>"


class RotatedKey(NewKey):
    """An API key with its new key, and the time until which the replaced one is valid."""

    previous_key_until: datetime | None
