"""What travels between the web tier and the workers: ids and instants one way, outcomes the other."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from providers.base import Failed, Outcome, Read
from providers.errors import Reason
from scheduling.intervals import Intervals
from store.calendar_lists import ListedCalendar

HEADER = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class ReadBusy:
    """Read the busy periods of some calendars of one connection over ``[start, end)``, in milliseconds.

    ``calendars`` None means every calendar on the account's list.
    """

    connection: str
    calendars: tuple[str, ...] | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ListCalendars:
    """Read which calendars one connection has."""

    connection: str


@dataclass(frozen=True, slots=True)
class Revoke:
    """End one connection's grant at the provider."""

    connection: str


Job = ReadBusy | ListCalendars | Revoke

KINDS: dict[str, type[Job]] = {"readBusy": ReadBusy, "listCalendars": ListCalendars, "revoke": Revoke}
NAMES = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one job. ``failed`` concerns the whole account; ``outcomes`` each calendar.

    ``listed`` is the account's calendar list when the job had to read it; ``read_at`` is the moment in
    milliseconds before the provider was asked.
    """

    read_at: int = 0
    failed: Failed | None = None
    listed: tuple[ListedCalendar, ...] | None = None
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)

    def read(self) -> Iterator[tuple[str, Intervals]]:
        """The calendars that were read, with their busy periods."""
        for calendar, outcome in self.outcomes.items():
            if isinstance(outcome, Read):
                yield calendar, outcome.busy


def pack_job(number: int, job: Job) -> bytes:
    """A job and its place in the request's list."""
    return orjson.dumps([number, NAMES[type(job)], job])


def unpack_job(data: bytes) -> tuple[int, Job]:
    """The other side of ``pack_job``."""
    number, name, fields = orjson.loads(data)
    if fields.get("calendars") is not None:
        fields["calendars"] = tuple(fields["calendars"])
    return number, KINDS[name](**fields)


def pack_reply(number: int, reply: Reply) -> bytes:
    """``length of header | header as JSON | busy periods of all calendars as int64 pairs``."""
    outcomes: list[tuple[str, int | Failed]] = []
    rows: list[bytes] = []
    for calendar, outcome in reply.outcomes.items():
        if isinstance(outcome, Read):
            outcomes.append((calendar, len(outcome.busy)))
            rows += outcome.busy.starts.astype("<i8").tobytes(), outcome.busy.ends.astype("<i8").tobytes()
        else:
            outcomes.append((calendar, outcome))
    header = orjson.dumps(
        {
            "job": number,
            "readAt": reply.read_at,
            "failed": reply.failed,
            "listed": reply.listed,
            "outcomes": outcomes,
        }
    )
    return b"".join([HEADER.pack(len(header)), header, *rows])


def unpack_reply(data: bytes) -> tuple[int, Reply]:
    """The other side of ``pack_reply``."""
    end = HEADER.size + HEADER.unpack_from(data)[0]
    header = orjson.loads(data[HEADER.size : end])
    times = np.frombuffer(data, dtype="<i8", offset=end)
    outcomes: dict[str, Outcome] = {}
    at = 0
    for calendar, result in header["outcomes"]:
        if isinstance(result, int):
            outcomes[calendar] = Read(
                Intervals(times[at : at + result], times[at + result : at + 2 * result])
            )
            at += 2 * result
        else:
            outcomes[calendar] = _failed(result)
    listed = header["listed"]
    return header["job"], Reply(
        read_at=header["readAt"],
        failed=_failed(header["failed"]) if header["failed"] else None,
        listed=tuple(ListedCalendar(**entry) for entry in listed) if listed is not None else None,
        outcomes=outcomes,
    )


def _failed(fields: dict[str, Any]) -> Failed:
    return Failed(**(fields | {"reason": Reason(fields["reason"])}))
