"""The directory of an organization, read by its grant when it is asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from app.accounts import organization_grants as grants
from app.http.provider_failures import most_telling, request_failed
from app.services import services
from providers.directory import KINDS, Entry, Kind
from store.sql.queries import organization_grants
from store.sql.queries.api_keys import Caller
from workers.jobs import ReadDirectory
from workers.queues import Queue


class ListedEntry(NamedTuple):
    """An entry of a directory; ``user_id`` is the member whom the grant reads under its address."""

    entry: Entry
    user_id: str | None


class DirectoryList(NamedTuple):
    """Entries by address; ``more``: the directory has others, which are left out."""

    entries: list[ListedEntry]
    more: bool


def listed(
    caller: Caller,
    slug: str,
    provider: str,
    kinds: Sequence[Kind] = KINDS,
    part: str = "",
    *,
    seconds: float | None = None,
) -> DirectoryList:
    """The people and rooms whose names or addresses have a part, in any case.

    ``seconds`` is how long a worker may take, by default as long as for any request. Do not call this within
    a transaction, because it waits for a worker.

    :raise ApiError: without a grant, and when one of the kinds cannot be read: part of a directory looks like
        all of it
    """
    stores = services().stores
    with stores.database.reading() as session:
        grant = grants.find(session, caller, slug, provider)
    jobs = [ReadDirectory(grant.id, kind, part) for kind in kinds]
    deadline = services().deadline() if seconds is None else time.monotonic() + seconds
    replies = services().fanout.gather(jobs, queue=Queue.WRITES, deadline=deadline)
    failed = [reply.failed for reply in replies if reply.failed is not None]
    if failed:
        raise request_failed(most_telling(failed))
    listings = [reply.directory for reply in replies if reply.directory is not None]
    if len(listings) != len(jobs):
        raise RuntimeError("a directory was not read")
    with stores.database.reading() as session:
        members = organization_grants.members_by_address(session, grant.id)
    found = sorted(
        (entry for listing in listings for entry in listing.entries),
        key=lambda entry: (entry.email.lower(), entry.kind, entry.id),
    )
    entries = [ListedEntry(entry, members.get(entry.email.lower())) for entry in found]
    return DirectoryList(entries, any(listing.more for listing in listings))
