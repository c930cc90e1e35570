"""The held time of the users of a request, which counts as busy for slots."""

from __future__ import annotations

from collections.abc import Sequence

from app.availability.freshness import now_ms
from app.availability.selection import CalendarRequest
from store.cache.held_times import Held
from store.sql.queries.holds import ActiveTime


def active_by_user(
    held: Held, calendar_requests: Sequence[CalendarRequest]
) -> dict[int, Sequence[ActiveTime]]:
    """The held time of each user that has not expired, by index; users without any are absent."""
    if not held:
        return {}
    moment = now_ms()
    active_of: dict[int, Sequence[ActiveTime]] = {}
    for number, calendar_request in enumerate(calendar_requests):
        times = held.get(calendar_request.connections[0].user, ()) if calendar_request.connections else ()
        if active := [each for each in times if each.expires_at > moment]:
            active_of[number] = active
    return active_of
