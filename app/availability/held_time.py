"""The held time of the users of a request, which counts as busy for slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from app.availability.parameters import now_ms
from app.availability.selection import CalendarRequest, Lists, Target, is_main
from app.services import services
from providers import registry
from providers.base import PRIMARY
from store.cache.busy_cache import CalendarKey
from store.cache.cache_tags import UserNames, booked_names, user_name
from store.cache.versioned_cache import ActiveTime, CachedRows, Held, HeldNames
from store.sql.queries.connection_rows import ConnectionRef

# The owners of calendars that another mailbox shares, by connection and calendar.
Owners = Mapping[tuple[str, str], str]

NO_OWNERS: Owners = {}

_NOBODY = UserNames((), ())


def names_of(
    calendar_requests: Sequence[CalendarRequest],
    targets: Iterable[Sequence[Target]],
    owners: Owners = NO_OWNERS,
) -> HeldNames:
    """The names under which the time of each user of a request may be held.

    They are the user, and what is booked with each calendar that is read for the user: others may have booked
    it through connections of their own.
    """
    return HeldNames(
        [
            _of_user(calendar_request, user_targets, owners)
            for calendar_request, user_targets in zip(calendar_requests, targets, strict=True)
        ]
    )


def active_by_user(names: HeldNames, held: Held) -> dict[int, Sequence[ActiveTime]]:
    """The held time of each user that has not expired, by index; users without any are absent."""
    if not held:
        return {}
    moment = now_ms()
    active_of: dict[int, Sequence[ActiveTime]] = {}
    for number, each in enumerate(names.of_users):
        if active := [time for time in held.get(each, ()) if time.expires_at > moment]:
            active_of[number] = active
    return active_of


def owners(rows: CachedRows, targets: Iterable[Sequence[Target]], lists: Lists) -> Owners:
    """The owners of those calendars that another mailbox may share, as far as they are known."""
    found: dict[tuple[str, str], str] = {}
    unknown: dict[str, list[str]] = {}
    for connection, key, _ in chain.from_iterable(targets):
        if _has_one_owner(connection, key.calendar):
            continue
        if connection.id in lists:
            listed = lists[connection.id].calendars
            found[key] = next((each.owner for each in listed if each.id == key.calendar), "")
        elif (owner := rows.get(("owner", key))) is not None:
            found[key] = owner
        else:
            unknown.setdefault(connection.id, []).append(key.calendar)
    for connection_id, calendars in unknown.items():
        known = services().stores.calendar_lists.owners(connection_id, calendars)
        for calendar, owner in known.items():
            key = CalendarKey(connection_id, calendar)
            # A calendar never changes its owner.
            found[key] = owner
            rows.put(("owner", key), owner)
    return found


def cached_owners(rows: CachedRows, targets: Iterable[Target]) -> Owners | None:
    """As ``owners`` for the calendars of one user, from the cache of this process; None if one is absent."""
    found: dict[tuple[str, str], str] = {}
    for connection, key, _ in targets:
        if _has_one_owner(connection, key.calendar):
            continue
        owner = rows.get(("owner", key))
        if owner is None:
            return None
        found[key] = owner
    return found


def _has_one_owner(connection: ConnectionRef, calendar: str) -> bool:
    """Whether the id of a calendar is enough to name it: the main calendar, or one with a global id."""
    return is_main(connection, calendar) or registry.definition(connection.provider).global_ids


def _of_user(calendar_request: CalendarRequest, targets: Sequence[Target], owners: Owners) -> UserNames:
    if not calendar_request.connections:
        return _NOBODY
    if len(targets) == 1 and targets[0].key.calendar == PRIMARY:
        of_main = targets[0].connection.held_names
        if of_main is not None:
            return of_main
    booked: list[str] = []
    reads_main = False
    for connection, key, _ in targets:
        main = is_main(connection, key.calendar)
        of_calendar = (
            connection.main_names if main else booked_names(connection, key.calendar, owners.get(key, ""))
        )
        # The first name is enough to find the holds of others.
        booked += of_calendar[:1]
        reads_main = reads_main or (main and bool(of_calendar))
    user = user_name(calendar_request.connections[0].user_id)
    names = (user, *dict.fromkeys(booked))
    return UserNames(names, names[1:] if reads_main else names)
