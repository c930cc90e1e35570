"""A pedantic reader of provider answers: exactly as documented, or not at all.

Independent of ``providers``. It supports less than the adapters do and tolerates nothing, so that its
results are beyond doubt.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, available_timezones

from dateutil.parser import isoparse
from tzlocal.windows_tz import win_tz

Period = tuple[int, int]

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
WALL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?", re.ASCII)
MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\dT00:00:00(\.0{1,7})?", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
SHOWN = {"free", "tentative", "busy", "oof", "workingElsewhere", "unknown"}
ANSWERED = {"none", "organizer", "tentativelyAccepted", "accepted", "declined", "notResponded"}
ZONES = available_timezones()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Garbage(Exception):
    """The answer differs from the documentation."""


def need(holds: object) -> None:
    if not holds:
        raise Garbage


def document(content: bytes) -> dict[str, Any]:
    """A JSON object, in UTF-8, in which no key stands twice."""
    try:
        read = json.loads(content.decode(), parse_constant=_no_number, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise Garbage from error
    need(isinstance(read, dict))
    found: dict[str, Any] = read
    return found


def _no_number(_: str) -> NoReturn:
    raise Garbage


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len({name for name, _ in pairs}) == len(pairs))
    return dict(pairs)


def free_busy(content: bytes, calendar: str) -> list[Period]:
    """Google's freeBusy of one calendar."""
    page = document(content)
    need(page.get("kind") == "calendar#freeBusy" and isinstance(page.get("calendars"), dict))
    entry = page["calendars"].get(calendar)
    need(isinstance(entry, dict) and entry.keys() == {"busy"} and isinstance(entry["busy"], list))
    for each in entry["busy"]:
        need(isinstance(each, dict) and each.keys() == {"start", "end"})
    return [_ordered(_instant(each["start"]), _instant(each["end"])) for each in entry["busy"]]


def google_calendars(content: bytes) -> list[str]:
    """The ids of a page of Google's calendar list, which is the only one."""
    page = document(content)
    need(page.get("kind") == "calendar#calendarList" and isinstance(page.get("items"), list))
    need("nextPageToken" not in page)
    for each in page["items"]:
        need(isinstance(each, dict) and isinstance(each.get("id"), str) and each["id"])
        need(each.get("kind") == "calendar#calendarListEntry")
        need(all(isinstance(each.get(name, False), bool) for name in ("deleted", "primary", "selected")))
    return [each["id"] for each in page["items"] if not each.get("deleted")]


def google_events(content: bytes) -> list[Period]:
    """The living events of a page of Google's."""
    page = document(content)
    need(page.get("kind") == "calendar#events" and isinstance(page.get("items"), list))
    need("nextPageToken" not in page)
    zone = page.get("timeZone")
    zone = _zone(zone)
    for each in page["items"]:
        need(isinstance(each, dict) and each.get("kind") == "calendar#event")
        need(each.get("status") in ("confirmed", "tentative", "cancelled"))
    living = [each for each in page["items"] if each["status"] != "cancelled"]
    _each_once(living)
    return [
        _ordered(_google_edge(each.get("start"), zone), _google_edge(each.get("end"), zone))
        for each in living
    ]


def _each_once(events: list[dict[str, Any]]) -> None:
    """One id is one event, which is listed once."""
    ids = [each.get("id") for each in events]
    need(all(isinstance(each, str) and each for each in ids) and len(set(ids)) == len(ids))


def _google_edge(edge: Any, zone: str) -> int:
    need(isinstance(edge, dict) and len(edge.keys() & {"date", "dateTime"}) == 1)
    if "dateTime" in edge:
        return _instant(edge["dateTime"])
    need(isinstance(edge["date"], str) and DATE.fullmatch(edge["date"]))
    return _wall(edge["date"], zone)


def parts(asked: dict[str, Any], content: bytes) -> dict[str, dict[str, Any]]:
    """The bodies of a batch's parts by their request paths; malformed parts are left out."""
    responses = document(content).get("responses")
    need(isinstance(responses, list))
    found = [each for each in responses or () if isinstance(each, dict) and isinstance(each.get("id"), str)]
    answered = Counter(each["id"] for each in found)
    by_id = {each["id"]: each for each in found if answered[each["id"]] == 1 and each.get("status") == 200}
    whole = {name: each["body"] for name, each in by_id.items() if isinstance(each.get("body"), dict)}
    return {each["url"]: whole[each["id"]] for each in asked["requests"] if each["id"] in whole}


def mailbox_zone(body: dict[str, Any]) -> str:
    """The zone in the settings of a mailbox."""
    return _zone(body.get("timeZone"))


def graph_values(page: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The entries of a page of Graph."""
    need(isinstance(page.get("value"), list) and all(isinstance(each, dict) for each in page["value"]))
    found: list[dict[str, Any]] = page["value"]
    return found


def graph_calendars(page: dict[str, Any]) -> list[str]:
    """The ids of Graph's calendars."""
    need("@odata.nextLink" not in page)
    found = list(graph_values(page))
    for each in found:
        need(isinstance(each.get("id"), str) and each["id"])
        need(isinstance(each.get("isDefaultCalendar"), bool))
    return ["primary" if each["isDefaultCalendar"] else each["id"] for each in found]


def graph_busy(page: dict[str, Any], zone: str) -> list[Period]:
    """The busy periods of a page of calendarView."""
    return [_graph_period(each, zone) for each in graph_values(page) if _blocks(each)]


def graph_events(page: dict[str, Any], zone: str) -> list[Period]:
    """The events of a page of calendarView that are not cancelled."""
    living = [each for each in graph_values(page) if not _cancelled(each)]
    _each_once(living)
    return [_graph_period(each, zone) for each in living]


def _cancelled(event: dict[str, Any]) -> bool:
    need(isinstance(event.get("isCancelled"), bool))
    return bool(event["isCancelled"])


def _blocks(event: dict[str, Any]) -> bool:
    cancelled = _cancelled(event)
    need(isinstance(event.get("showAs"), str) and event["showAs"] in SHOWN)
    response = event.get("responseStatus")
    need(isinstance(response, dict) and response.get("response") in tuple(ANSWERED))
    return not (
        cancelled or response["response"] == "declined" or event["showAs"] in ("free", "workingElsewhere")
    )


def _graph_period(event: dict[str, Any], zone: str) -> Period:
    edges = [event.get("start"), event.get("end")]
    for edge in edges:
        need(isinstance(edge, dict) and edge.keys() == {"dateTime", "timeZone"})
        need(isinstance(edge["dateTime"], str) and WALL.fullmatch(edge["dateTime"]))
    need(isinstance(event.get("isAllDay"), bool))
    if event["isAllDay"]:
        need(all(MIDNIGHT.fullmatch(edge["dateTime"]) for edge in edges))
    zones = [zone if event["isAllDay"] else _zone(edge["timeZone"]) for edge in edges]
    start, end = (_wall(edge["dateTime"], each) for edge, each in zip(edges, zones, strict=True))
    return _ordered(start, end)


def _zone(name: Any) -> str:
    need(isinstance(name, str))
    found = win_tz.get(name, name)
    need(found in ZONES)
    return str(found)


def _instant(text: Any) -> int:
    need(isinstance(text, str) and RFC3339.fullmatch(text))
    try:
        return (isoparse(text) - EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise Garbage from error


def _wall(text: str, zone: str) -> int:
    try:
        return (isoparse(text[:26]).replace(tzinfo=ZoneInfo(zone)) - EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise Garbage from error


def _ordered(start: int, end: int) -> Period:
    need(start <= end)
    return start, end


def uncovered(truth: Iterable[Period], answer: Iterable[Period], start: int, end: int) -> list[Period]:
    """The busy time within ``[start, end)`` that the answer does not cover: minutes that look free."""
    left = []
    for opens, closes in truth:
        at, until = max(opens, start), min(closes, end)
        for since, to in sorted(answer):
            if at < until and since <= at < to:
                at = to
        if at < until:
            left.append((at, until))
    return left
