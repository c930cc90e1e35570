"""Routes for the events of one calendar, and for the list over all calendars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import orjson
from flask import Response, request
from flask.views import MethodView

from app.api import replay_access
from app.availability import connections, parameters
from app.availability.connections import calendar_name
from app.availability.selection import CalendarSelector
from app.events import calendar_search, conditions, lists, moves, worker_calls
from app.events.bodies import changes, draft, fitted, new_meta_id
from app.events.search import matches
from app.http import idempotency, paging, parsing
from app.http.authentication import authentication
from app.http.errors import Invalid, NotFound
from app.http.parsing import freshness
from app.http.responses import json_response
from app.http.routes import Blueprint, facts_of_request, route_facts
from app.schemas.error_codes import Code
from app.schemas.event_answers import EventAnswer, EventsAnswer
from app.schemas.events import (
    ConditionHeader,
    DeleteQuery,
    EventBody,
    EventChangeBody,
    EventQuery,
    EventsQuery,
    ListZoneHeader,
    OptionalZoneHeader,
    ResponseBody,
)
from app.schemas.holds import CreateQuery, MoveQuery
from app.schemas.records import SuccessSchema
from providers.base import Failed
from providers.event_views import event_view
from providers.events import Event, ResponseStatus, Scope
from providers.events import Response as Invitation
from providers.scopes import Operation
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import (
    ChangeSeries,
    CreateEvent,
    DeleteEvent,
    DeleteSeries,
    EventWrite,
    GetEvent,
    Job,
    Reply,
    RespondToEvent,
    UpdateEvent,
)

blp = Blueprint(
    "events",
    __name__,
    metric_group="events",
    description="Events in the calendars of a user. `calendarId` is the id of a calendar, or `primary` for "
    "the main one of the account. Of several accounts with the provider, the default one is searched first, "
    "and `primary` is its main calendar.",
)

UTC = ZoneInfo("UTC")

# With these parameters the list is a bare array, and every error a bare string.
BARE = frozenset({"minDate", "maxDate"})
RANGE = frozenset({"start", "end"})
# Proxies commonly reject responses whose headers exceed 4 or 8 KB.
MAX_HEADER = 3500
NOT_CONNECTED = "User has not the needed calendars connected"


@blp.route("/users/<user_id:userId>/calendar/events")
class Events(MethodView):
    @route_facts(
        "listEvents",
        fails_with_provider=True,
        accepts_cache_control=True,
        bare_list=True,
        codes=(Code.NO_CONNECTED_CALENDARS, Code.RANGE_TOO_LARGE),
    )
    @blp.arguments(EventsQuery, location="query")
    @blp.arguments(ListZoneHeader, location="headers")
    @blp.response(200, EventsAnswer)
    def get(self, params: dict[str, Any], header: dict[str, ZoneInfo], userId: str) -> Response:
        """List a user's events, over all calendars

        Series are expanded; sorted by start. With `start` and `end` the answer is an object; calendars that
        could not be read are in `failedCalendars`. With `minDate` and `maxDate` it is a bare array, errors
        are bare strings, and calendars that could not be read are in the header `X-Failed-Calendars`. When
        none could be read, the request fails. `q` and `updatedSince` narrow the answer of the first form.
        """
        bare = _is_bare() or RANGE.isdisjoint(request.args)
        for name in ("q", "updatedSince") if bare else ():
            parsing.refuse(name, "the list with minDate and maxDate")
        start, end = _range(params, header.get("zone"), bare=bare)
        refs = connections.of_user(authentication(), userId, params)
        if not refs:
            sentence = NOT_CONNECTED if bare else connections.NO_CALENDARS
            raise NotFound(sentence, Code.NO_CONNECTED_CALENDARS)
        selector = CalendarSelector(tuple(params["calendarIds"]), primary_only=False)
        event_list = lists.find_events(refs, selector, start, end, freshness())
        if event_list.failures and not event_list.failures.something_read:
            raise event_list.failures.error()
        failed = event_list.failures.calendars()
        if bare:
            return json_response(_views(event_list.events), headers=_headers(failed))
        since = params.get("updatedSince")
        changed_since = None if since is None else since.milliseconds(header.get("zone") or UTC)
        events = [each for each in event_list.events if matches(each[1], params.get("q"), changed_since)]
        page, extra_fields = paging.cut_by_sort_key(params, events, lists.event_sort_key)
        return json_response({"data": _views(page), "failedCalendars": failed, **extra_fields})


@blp.route("/users/<user_id:userId>/calendar/events/<provider:provider>/<calendar_id:calendarId>")
class CalendarEvents(MethodView):
    @route_facts(
        "createEvent",
        replay_check=replay_access.event,
        fails_with_provider=True,
        codes=(Code.SLOT_TAKEN, Code.RANGE_TOO_LARGE),
    )
    @blp.arguments(CreateQuery, location="query")
    @blp.arguments(EventBody)
    @blp.arguments(OptionalZoneHeader, location="headers")
    @blp.response(201, EventAnswer)
    def post(
        self,
        params: dict[str, Any],
        body: dict[str, Any],
        header: dict[str, ZoneInfo],
        userId: str,
        provider: str,
        calendarId: str,
    ) -> Response:
        """Create an event

        With `ifFree=true` or `hold`, only in time that is free or held: otherwise 409 `slotTaken`, and
        nothing is written. Such an event has a `metaId` if the request has an `Idempotency-Key`. Safe to
        repeat with a `metaId` or the header `Idempotency-Key`. Microsoft always notifies guests. The error
        `outcomeUnknown` means that the event may exist although the provider's answer was lost.
        """
        content = changes(body, header.get("zone"))
        ref, calendar = _calendar(params, userId, provider, calendarId)
        connections.require(ref, Operation.INSERT_EVENT, calendar_id=calendar)
        content = fitted(content, ref, new=True)
        conditions.require_single(params, content)
        key = idempotency.key()
        if content.meta_id is None and key is not None and conditions.is_given(params):
            content = replace(content, meta_id=new_meta_id(key))
        # The draft keeps the id of the request: stored data of the account may change before a repetition.
        new = draft(content, ref, calendarId, body.get("id"), idempotency_key=key)
        repeatable = content.meta_id is not None or key is not None
        condition = conditions.condition(
            params, userId, content, header.get("zone"), [(ref, calendar)], repeatable=repeatable
        )
        with conditions.leased(authentication(), condition) as lease:
            reply = _write(ref, CreateEvent(ref.id, calendar, new), lease, repeatable=repeatable)
        return _one_event(ref, reply, calendar, status=201)


@blp.route(
    "/users/<user_id:userId>/calendar/events/<provider:provider>/<calendar_id:calendarId>/<event_id:eventId>"
)
class CalendarEvent(MethodView):
    @route_facts("getEvent", fails_with_provider=True)
    @blp.arguments(EventQuery, location="query")
    @blp.response(200, EventAnswer)
    def get(
        self, params: dict[str, Any], userId: str, provider: str, calendarId: str, eventId: str
    ) -> Response:
        """Read an event

        An event is found through its own calendar only. The header `ETag` is the `etag` of the event.
        """
        ref, calendarId = _calendar(params, userId, provider, calendarId)
        connections.require(ref, Operation.GET_EVENT, calendar_id=calendarId)
        job = GetEvent(ref.id, calendarId, eventId)
        return _one_event(ref, _read(ref, job), calendarId, with_etag=True)

    @route_facts(
        "updateEvent",
        fails_with_provider=True,
        codes=(Code.EVENT_CHANGED, Code.SLOT_TAKEN, Code.RANGE_TOO_LARGE),
    )
    @blp.arguments(MoveQuery, location="query")
    @blp.arguments(EventChangeBody)
    @blp.arguments(ConditionHeader, location="headers")
    @blp.arguments(OptionalZoneHeader, location="headers")
    @blp.response(200, EventAnswer)
    def put(
        self,
        params: dict[str, Any],
        body: dict[str, Any],
        required: dict[str, str | None],
        header: dict[str, ZoneInfo],
        userId: str,
        provider: str,
        calendarId: str,
        eventId: str,
    ) -> Response:
        """Change an event

        Only what is sent is written. `attendees` replace the list; who stays on it keeps their answer. With
        `If-Match`, only an event that no other client has changed since you read it. With `ifFree=true`, a
        new `start` or `end` is written only if the new time is free: otherwise 409 `slotTaken`, and nothing
        is written. The time that the event has now counts as free. `scope` extends the change to the series
        of an occurrence: `following` makes a new series, which is the answer; a new `start` is that of the
        occurrence, and the others move with it. The error `outcomeUnknown` means that the event may have been
        changed; the request is safe to repeat.
        """
        content = changes(body, header.get("zone"))
        ref, calendarId = _calendar(params, userId, provider, calendarId)
        connections.require(ref, Operation.UPDATE_EVENT, calendar_id=calendarId)
        content = fitted(content, ref)
        condition = None
        conditions.require_single(params, content)
        scope = Scope(params["scope"])
        takes_time = content.show_as is not None and content.show_as.blocks
        if params["ifFree"] and takes_time and not content.has_time:
            raise Invalid(
                "start and end must be given too, to show an event as busy with ifFree", param="start"
            )
        if params["ifFree"] and content.has_time:
            moved, content = moves.find(ref, calendarId, eventId, content)
            condition = conditions.condition(
                params, userId, content, header.get("zone"), [(ref, calendarId)], moved=moved
            )
        with conditions.leased(authentication(), condition) as lease:
            job = UpdateEvent(ref.id, calendarId, eventId, content, etag=required["etag"])
            if scope is not Scope.OCCURRENCE:
                job = ChangeSeries(ref.id, calendarId, eventId, content, etag=required["etag"], scope=scope)
            reply = _write(ref, job, lease)
        return _one_event(ref, reply, calendarId)

    @route_facts("deleteEvent", fails_with_provider=True, codes=(Code.EVENT_CHANGED,))
    @blp.arguments(DeleteQuery, location="query")
    @blp.arguments(ConditionHeader, location="headers")
    @blp.response(200, SuccessSchema)
    def delete(
        self,
        params: dict[str, Any],
        condition: dict[str, str | None],
        userId: str,
        provider: str,
        calendarId: str,
        eventId: str,
    ) -> dict[str, bool]:
        """Delete an event

        A second deletion is 404. `scope` extends it to the series of an occurrence. Google notifies guests
        only with `sendNotifications=true`; Microsoft always does. With `If-Match`, only an event that no
        other client has changed since you read it is deleted. The error `outcomeUnknown` means that the event
        may have been deleted; the request is safe to repeat.
        """
        ref, calendarId = _calendar(params, userId, provider, calendarId)
        connections.require(ref, Operation.DELETE_EVENT, calendar_id=calendarId)
        notify = params.get("sendNotifications")
        job, scope = DeleteEvent(ref.id, calendarId, eventId, notify, etag=condition["etag"]), params["scope"]
        if scope != Scope.OCCURRENCE:
            job = DeleteSeries(
                ref.id, calendarId, eventId, notify, etag=condition["etag"], scope=Scope(scope)
            )
        _write(ref, job)
        return {"success": True}


@blp.route(
    "/users/<user_id:userId>/calendar/events/<provider:provider>/<calendar_id:calendarId>/<event_id:eventId>"
    "/response"
)
class EventResponse(MethodView):
    @route_facts("respondToEvent", fails_with_provider=True)
    @blp.arguments(EventQuery, location="query")
    @blp.arguments(ResponseBody)
    @blp.response(200, EventAnswer)
    def post(
        self,
        params: dict[str, Any],
        body: dict[str, Any],
        userId: str,
        provider: str,
        calendarId: str,
        eventId: str,
    ) -> Response:
        """Answer an invitation

        As the account of the calendar, to an event to which it is invited: otherwise 400 `eventRefused`. The
        id of an occurrence answers for this occurrence, that of a series for all. Microsoft takes a declined
        event out of the calendar. The error `outcomeUnknown` means that the answer may have been written; the
        request is safe to repeat.
        """
        ref, calendarId = _calendar(params, userId, provider, calendarId)
        connections.require(ref, Operation.UPDATE_EVENT, calendar_id=calendarId)
        status = ResponseStatus(body["response"])
        response = Invitation(status, body.get("comment"), body.get("notify"))
        reply = _write(ref, RespondToEvent(ref.id, calendarId, eventId, response))
        return _one_event(ref, reply, calendarId)


@blp.after_request
def _bare_errors(response: Response) -> Response:
    """Turn errors of the list with ``minDate`` and ``maxDate``, or without any date, into bare strings."""
    has_no_dates = response.status_code == 400 and RANGE.isdisjoint(request.args)
    if response.status_code >= 400 and facts_of_request().bare_list and (_is_bare() or has_no_dates):
        body = orjson.loads(response.get_data())
        response.set_data(orjson.dumps(body["error"]))
    return response


def _is_bare() -> bool:
    return not BARE.isdisjoint(request.args)


def _range(params: dict[str, Any], zone: ZoneInfo | None, *, bare: bool) -> tuple[int, int]:
    """Start and end of the range in UTC milliseconds, from either pair of parameters."""
    names = ("minDate", "maxDate") if bare else ("start", "end")
    for name in names:
        if name not in params:
            raise Invalid(f"{name} is required", param=name)
    where = (params.get("timeZone") if bare else None) or zone or UTC
    return parameters.time_range(params, where, names)


def _views(events: Sequence[tuple[str, Event]]) -> list[dict[str, Any]]:
    return [event_view(event, calendar_id) for calendar_id, event in events]


def _headers(failed: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Headers with the failed calendars, for the bare array, whose body cannot name them.

    The value is JSON in ASCII. If it is too long, messages are dropped, then calendars. The count covers all
    of them.
    """
    if not failed:
        return {}
    entries = [json.dumps(each) for each in failed]
    if _length(entries) > MAX_HEADER:
        entries = [json.dumps({name: each[name] for name in each if name != "message"}) for each in failed]
    while len(entries) > 1 and _length(entries) > MAX_HEADER:
        entries.pop()
    return {"X-Failed-Calendars": f"[{', '.join(entries)}]", "X-Failed-Calendars-Count": str(len(failed))}


def _length(entries: Sequence[str]) -> int:
    return sum(map(len, entries)) + 2 * len(entries)


def _calendar(
    params: dict[str, Any], user_id: str, provider: str, calendar_id: str
) -> tuple[ConnectionRef, str]:
    """The user's connection with a calendar, and the id under which its provider knows the calendar."""
    return calendar_search.find(authentication(), user_id, provider, calendar_id, params["connection"])


def _read(ref: ConnectionRef, job: Job) -> Reply:
    return worker_calls.read_one(ref, job)


def _write(
    ref: ConnectionRef, job: EventWrite, lease: conditions.Lease | None = None, *, repeatable: bool = True
) -> Reply:
    """The reply to a write; ``lease`` has the time of the event. ``repeatable`` as for ``error``.

    :raise ApiError: when it failed, or may have failed
    """
    reply = worker_calls.send_one(ref, job, repeatable=repeatable)
    if reply.failed is not None:
        if lease is not None and worker_calls.may_have_happened(reply.failed):
            lease.keep()
        raise worker_calls.error(ref, job, reply.failed, repeatable=repeatable)
    return reply


def _one_event(
    ref: ConnectionRef, reply: Reply, calendar_id: str, *, status: int = 200, with_etag: bool = False
) -> Response:
    """The response with the one event of a reply, in the calendar that the path names.

    ``with_etag``: its etag is in a header too.

    :raise ApiError: if the job failed
    """
    if reply.failed is not None:
        raise connections.error(ref, reply.failed, calendar_id)
    (events,) = reply.events.values()
    if isinstance(events, Failed):
        raise connections.error(ref, events, calendar_id)
    event = events[0]
    headers = {"ETag": event.etag} if with_etag and event.etag is not None else {}
    return json_response({"data": event_view(event, calendar_name(ref, event.calendar_id))}, status, headers)
