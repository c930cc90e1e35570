"""The calendars that a question about slots is answered from: a user's, or those of all members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.accounts import connections
from app.availability import request
from app.availability.lookup import BusyResult, CalendarRequest, look_up
from app.http.errors import NotFound
from scheduling.query import Query


class Members(NamedTuple):
    """Everybody in an organization, and those whose calendars are in the picture: ask ``i`` is of
    ``connected[i]``."""

    everybody: Sequence[str]
    connected: Sequence[str]
    picture: BusyResult


def of_user(query: Mapping[str, Any], question: Query, user: str) -> BusyResult:
    """The calendars of a user.

    :raise NotFound: for a user that the key does not reach, or without calendars
    """
    request.check_size({question: 1})
    refs = connections.of_user(user, query)
    if not refs:
        raise NotFound(connections.NO_CALENDARS)
    ask = CalendarRequest(refs, request.wanted(query, primary_only=True))
    return look_up([ask], *question.busy_range(), request.freshness())


def of_members(query: Mapping[str, Any], question: Query, slug: str) -> Members:
    """The calendars of every member of an organization.

    :raise NotFound: for an organization that the key does not reach, or without members
    """
    wanted = request.wanted(query, primary_only=True)
    members = connections.of_members(slug)
    if not members:
        raise NotFound("Organization has no members")
    asks = {
        user: CalendarRequest(refs, wanted)
        for user, connected in members.items()
        if (refs := request.of_provider(connected, query))
    }
    request.check_size({question: len(asks)})
    picture = look_up(list(asks.values()), *question.busy_range(), request.freshness())
    return Members(list(members), list(asks), picture)
