"""The scope of a feed: it can be read, and not changed."""

from __future__ import annotations

from providers.scopes import Level, one_scope

SCOPE = "read"
SCOPES = one_scope(
    SCOPE, Level.READ, unchangeable="A subscribed calendar cannot be changed: it can only be read"
)
