"""The changes in a calendar: by sync-collection (RFC 6578), or by a comparison of etags without it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import msgspec

from providers.caldav import events, reading
from providers.caldav.collection import Collection, StoredObject
from providers.caldav.errors import PROVIDER
from providers.changes import ChangePage, Digests, changed_ids, compared, decoded, encoded
from providers.events import Event

_SUFFIX = ".ics"


class _State(msgspec.Struct, omit_defaults=True):
    """The server's token, and the UIDs of shown objects by their names; or digests for a comparison.

    A deleted object is reported by its name. Most names are ``<UID>.ics``; only the UIDs of others are kept.
    """

    token: str = ""
    uids: dict[str, str] = {}
    digests: Digests | None = None


def changes(collection: Collection, start: int, end: int, sync_token: str | None) -> ChangePage:
    """A page of changes; see ``ChangeFeed``."""
    if sync_token is None:
        return _first(collection, start, end)
    state = decoded(sync_token, _State, PROVIDER, collection.operation)
    if state.digests is not None:
        return _compared(collection, start, end, state.digests)
    return _synchronized(collection, start, end, state)


def _first(collection: Collection, start: int, end: int) -> ChangePage:
    """All events of the range. The token is read first: what changes meanwhile is on the next page too."""
    token = collection.sync_token
    if not token:
        return _compared(collection, start, end, None)
    objects = collection.between(start, end)
    found, uids = _read(collection, objects, start, end)
    return ChangePage(found, (), encoded(_State(token, _unusual(uids, found))))


def _synchronized(collection: Collection, start: int, end: int, state: _State) -> ChangePage:
    """The changes that the server reports: names of changed and of deleted objects."""
    changed, gone, token, more = collection.changed(state.token)
    found, uids = _read(collection, collection.events_at(changed), start, end)
    uids_of_gone = {name: state.uids.get(name, _usual_uid(name)) for name in map(_name, gone)}
    updated, deleted = changed_ids([*uids.values(), *uids_of_gone.values()], found)
    others = {name: uid for name, uid in state.uids.items() if name not in uids | uids_of_gone}
    following = _State(token, others | _unusual(uids, found))
    return ChangePage(updated, deleted, encoded(following), more)


def _compared(collection: Collection, start: int, end: int, known: Digests | None) -> ChangePage:
    listed = events.list_events(collection, start, end)
    updated, deleted, digests = compared(listed, lambda event: event.etag or repr(event), known)
    return ChangePage(updated, deleted, encoded(_State(digests=digests)))


def _read(
    collection: Collection, objects: Sequence[StoredObject], start: int, end: int
) -> tuple[tuple[Event, ...], dict[str, str]]:
    """The events of some objects in the range, and the UID of each object by its name."""
    text = collection.read(objects)
    uids = {_name(objects[text.content_of(each)].url): each.uid for each in reading.entries(text)}
    return events.of_objects(collection, objects, text, start, end), uids


def _unusual(uids: dict[str, str], shown: Sequence[Event]) -> dict[str, str]:
    """The UIDs that do not follow from the name, of objects with an event in the range."""
    known = {each.recurring_event_id or each.id for each in shown}
    return {name: uid for name, uid in uids.items() if uid in known and uid != _usual_uid(name)}


def _usual_uid(name: str) -> str:
    return name.removesuffix(_SUFFIX)


def _name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])
