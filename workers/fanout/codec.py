"""Encodes jobs and replies, and names the Redis lists that carry them.

The jobs of one request are on a Redis list of its own. Workers push the replies to another.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Annotated, NamedTuple, get_args

import msgspec
import numpy as np
import orjson

from providers.base import Calendar, Failed, Outcome, Read
from providers.events import Event
from providers.oauth.registration_probe import Finding
from scheduling.intervals import Intervals
from store.cache.calendar_lists import ListedCalendar
from workers.fanout.jobs import Job, Reply

HEADER = struct.Struct("<I")
NUMBER = struct.Struct("<I")

# Bytes of a digest: enough that no two reads of one connection have the same name.
DIGEST = 15

# Seconds after which a list expires that its request has left behind.
LEFTOVER_SECONDS = 60

KINDS: dict[str, type[Job]] = {kind.__name__: kind for kind in get_args(Job)}


class DecodeError(ValueError):
    """A message that cannot be decoded; this version has not packed it."""


# Errors from decoding a message of another format.
_SHAPE_ERRORS = (struct.error, KeyError, TypeError, ValueError, OverflowError, msgspec.ValidationError)


def work_list(fanout: str) -> str:
    """The Redis list of jobs that no worker has taken."""
    return f"fanout:{fanout}:work"


def reply_list(fanout: str) -> str:
    """The Redis list of replies that the request has not read."""
    return f"fanout:{fanout}:replies"


class Address(NamedTuple):
    """Where the reply to a job goes: its number in the request, and the flight that it leads, if any."""

    number: Annotated[int, msgspec.Meta(ge=0, lt=2 ** (8 * NUMBER.size))]
    flight: str | None = None


class Packed(NamedTuple):
    """A decoded job; ``number`` and ``flight`` as in :class:`Address`."""

    number: int
    job: Job
    flight: str | None = None


def pack_job(number: int, job: Job, flight: str | None = None) -> bytes:
    """Encode a job, its number in the request, and its flight."""
    return msgspec.json.encode([number, type(job).__name__, job, flight])


def unpack_job(data: bytes) -> Packed:
    """Decode the result of ``pack_job``.

    :raise DecodeError: for any other input
    """
    try:
        number, name, fields, *flight = orjson.loads(data)
        to = msgspec.convert((number, *flight), Address)
        return Packed(to.number, msgspec.convert(fields, KINDS[name]), to.flight)
    except _SHAPE_ERRORS as error:
        raise DecodeError("not a job") from error


def address(data: bytes) -> Address | None:
    """The address of a job of any kind; None if it cannot be decoded."""
    try:
        number, _, _, *flight = orjson.loads(data)
        return msgspec.convert((number, *flight), Address)
    except _SHAPE_ERRORS:
        return None


def same_read(job: Job) -> str:
    """A digest that is equal for equal jobs."""
    encoded = msgspec.json.encode([type(job).__name__, job])
    return hashlib.blake2s(encoded, digest_size=DIGEST).hexdigest()


def pack_reply(number: int, reply: Reply) -> bytes:
    """Encode a reply: the number of its job, then the body."""
    return numbered(number, pack_body(reply))


def numbered(number: int, body: bytes) -> bytes:
    """An encoded reply from a number and an encoded body."""
    return NUMBER.pack(number) + body


def unpack_reply(data: bytes) -> tuple[int, Reply]:
    """Decode the result of ``pack_reply``.

    :raise DecodeError: for any other input
    """
    if len(data) < NUMBER.size:
        raise DecodeError("not a reply")
    return NUMBER.unpack_from(data)[0], unpack_body(data[NUMBER.size :])


def pack_body(reply: Reply) -> bytes:
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
            "readAt": reply.read_at,
            "failed": reply.failed,
            "listed": reply.listed,
            "outcomes": outcomes,
            "calendars": reply.calendars,
            "events": reply.events,
            "made": reply.made,
            "finding": reply.finding,
        }
    )
    return b"".join([HEADER.pack(len(header)), header, *rows])


def unpack_body(data: bytes) -> Reply:
    """Decode the result of ``pack_body``.

    :raise DecodeError: for any other input; periods that are missing are never free time
    """
    try:
        return _unpack_body(data)
    except _SHAPE_ERRORS as error:
        raise DecodeError("not a reply") from error


def _unpack_body(data: bytes) -> Reply:
    end = HEADER.size + HEADER.unpack_from(data)[0]
    header = orjson.loads(data[HEADER.size : end])
    times = np.frombuffer(data, dtype="<i8", offset=end)
    outcomes: dict[str, Outcome] = {}
    at = 0
    for calendar, result in header["outcomes"]:
        if isinstance(result, int):
            if result < 0 or at + 2 * result > times.size:
                raise ValueError("fewer periods than were packed")
            outcomes[calendar] = Read(
                Intervals(times[at : at + result], times[at + result : at + 2 * result])
            )
            at += 2 * result
        else:
            outcomes[calendar] = msgspec.convert(result, Failed)
    if at != times.size:
        raise ValueError("more periods than were packed")
    return Reply(
        read_at=msgspec.convert(header["readAt"], int),
        failed=msgspec.convert(header["failed"], Failed | None),
        listed=msgspec.convert(header["listed"], tuple[ListedCalendar, ...] | None),
        outcomes=outcomes,
        calendars=msgspec.convert(header["calendars"], tuple[Calendar, ...]),
        events=msgspec.convert(header["events"], dict[str, tuple[Event, ...] | Failed]),
        made=msgspec.convert(header["made"], bool),
        finding=msgspec.convert(header["finding"], Finding | None),
    )
