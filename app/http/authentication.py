"""How a request was authenticated: its caller, and the cached database rows that identified it.

The routes pass it down, so that code below them reads no state of Flask.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.services import services
from store.cache.versioned_cache import CachedRows
from store.sql.queries.api_keys import Caller


class RowsOutdated(Exception):
    """The version under which the request loaded cached rows is no longer the current one."""


@dataclass(slots=True)
class Authentication:
    """The caller of a request, the cached rows it was found in, and whether their version was verified."""

    caller: Caller
    rows: CachedRows
    verified: bool

    @property
    def organization_id(self) -> int | None:
        """The internal id of the organization that the key is bound to; None if it reaches all."""
        return self.caller.organization_id

    def verify_version(self, version: bytes | None) -> None:
        """Check that the cached rows have this version, which was read from Redis after the request began.

        :raise RowsOutdated: if they have another one; the view then runs again
        """
        # Makes this the cache of the process, so that the next request loads fresh rows.
        services().stores.versioned_cache.switch_to(version)
        # Without a version in Redis the current one is unknown: Redis may have been flushed.
        if not self.verified and (version is None or self.rows.version != version):
            raise RowsOutdated
        self.mark_verified()

    def verify_version_now(self) -> None:
        """As ``verify_version``, in a round trip of its own."""
        if not self.verified:
            self.verify_version(services().stores.versioned_cache.current().version)

    def mark_verified(self) -> None:
        """Mark the version as verified, and count the use of the key, which is now known to be in force."""
        if not self.verified:
            self.verified = True
            services().stores.key_usage.note(self.caller.id)
