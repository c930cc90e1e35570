"""Encodes jobs and replies in MessagePack, and names the Redis lists that carry them.

The jobs of one request are on a Redis list of its own. Workers push the replies to another. An element of
the list is one job, or a bundle: reads of several members of one organization grant, which one request to
the provider answers. Together they read at most as many calendars as one request can.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Annotated

import msgspec
import numpy as np

from providers import registry
from providers.base import Calendar, Failed, Outcome, Read
from providers.changes import ChangePage
from providers.directory import Listing
from providers.events import Event
from providers.oauth.registration_probe import Finding
from scheduling.intervals import Intervals
from store.cache.calendar_lists import ListedCalendar
from workers.jobs import FormCheck, GrantCheck, Job, ReadBusy, Refused, Reply, SignInResult

NUMBER = struct.Struct("<I")

# Bytes of a digest: enough that no two reads of one connection have the same name.
DIGEST = 15

# Seconds after which a list expires that its request has left behind.
LEFTOVER_SECONDS = 60

# Bytes of a start or an end.
TIME_BYTES = 8

# A bundle has at least one job.
NOT_EMPTY = msgspec.Meta(min_length=1)

Number = Annotated[int, msgspec.Meta(ge=0, lt=2 ** (8 * NUMBER.size))]


class DecodeError(ValueError):
    """A message that cannot be decoded; this version has not packed it."""


class Packed(msgspec.Struct, array_like=True, frozen=True):
    """A job, and its number in the request.

    ``flight``: web processes of release 0.1 wait for the end of this read under a key of this name.
    """

    number: Number
    job: Job
    flight: str | None = None


class Address(msgspec.Struct, array_like=True, frozen=True):
    """Where the reply to a job of any kind goes; fields as in :class:`Packed`."""

    number: Number
    job: msgspec.Raw


class _Body(msgspec.Struct, array_like=True, frozen=True):
    """The fields of a ``Reply``. Busy periods are int64 in little-endian order: all starts, then all ends."""

    read_at: int
    failed: Failed | None
    listed: tuple[ListedCalendar, ...] | None
    outcomes: dict[str, bytes | Failed]
    calendars: tuple[Calendar, ...]
    events: dict[str, tuple[Event, ...] | Failed]
    made: bool
    finding: Finding | None
    checked: GrantCheck | None
    # Periods of all calendars. A missing one must not become free time.
    periods: int
    refused: Refused | None = None
    form: FormCheck | None = None
    changes: ChangePage | None = None
    sign_in: SignInResult | None = None
    directory: Listing | None = None


# The fields that have the same form in both.
_AS_THEY_ARE = tuple({each.name for each in fields(Reply)} - {"outcomes", "events"})

_encoder = msgspec.msgpack.Encoder()
_jobs = msgspec.msgpack.Decoder(Packed)
_bundles: msgspec.msgpack.Decoder[tuple[Packed, ...]] = msgspec.msgpack.Decoder(
    Annotated[tuple[Packed, ...], NOT_EMPTY]
)
_addresses = msgspec.msgpack.Decoder(Address)
_bundled_addresses: msgspec.msgpack.Decoder[tuple[Address, ...]] = msgspec.msgpack.Decoder(
    Annotated[tuple[Address, ...], NOT_EMPTY]
)
_bodies = msgspec.msgpack.Decoder(_Body)


def work_list(fanout: str) -> str:
    """The Redis list of jobs that no worker has taken."""
    return f"fanout:{fanout}:work"


def reply_list(fanout: str) -> str:
    """The Redis list of replies that the request has not read."""
    return f"fanout:{fanout}:replies"


def pack_job(number: int, job: Job) -> bytes:
    """Encode a job and its number in the request."""
    return _encoder.encode(Packed(number, job))


def pack_jobs(jobs: Sequence[Packed]) -> bytes:
    """Encode a bundle of jobs: the jobs that one request to a provider can answer."""
    return _encoder.encode(jobs)


def elements(jobs: Iterable[Packed]) -> list[bytes]:
    """The elements of a work list for these jobs: bundles, and single jobs."""
    groups: dict[Hashable, list[list[Packed]]] = {}
    for each in jobs:
        size, key = _size_and_key(each)
        chunks = groups.setdefault(key, [[]])
        if chunks[-1] and sum(map(_calendars, [*chunks[-1], each])) > size:
            chunks.append([])
        chunks[-1].append(each)
    return [_element(chunk) for chunks in groups.values() for chunk in chunks]


def _size_and_key(packed: Packed) -> tuple[int, Hashable]:
    """How many calendars fit into the element of this job, and what its jobs have in common."""
    job: Job = packed.job
    if not isinstance(job, ReadBusy) or job.grant is None or job.calendars is None:
        return 0, packed.number
    return registry.definition(job.grant.provider).costs.calendars_of_members, (
        job.grant.id,
        job.start,
        job.end,
    )


def _calendars(packed: Packed) -> int:
    job: Job = packed.job
    return len(job.calendars or ()) if isinstance(job, ReadBusy) else 0


def _element(jobs: Sequence[Packed]) -> bytes:
    if len(jobs) == 1:
        return pack_job(jobs[0].number, jobs[0].job)
    return pack_jobs(jobs)


def unpack_jobs(data: bytes) -> tuple[Packed, ...]:
    """Decode the result of ``pack_job`` or ``pack_jobs``.

    :raise DecodeError: for any other input
    """
    with suppress(msgspec.DecodeError, ValueError):
        return (_jobs.decode(data),)
    try:
        return _bundles.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise DecodeError("not a job") from error


def addresses(data: bytes) -> tuple[Address, ...]:
    """The addresses of one job or a bundle, of any kind; none if they cannot be decoded."""
    with suppress(msgspec.DecodeError, ValueError):
        return (_addresses.decode(data),)
    with suppress(msgspec.DecodeError, ValueError):
        return _bundled_addresses.decode(data)
    return ()


def read_digest(job: Job) -> str:
    """A digest that is equal for equal jobs."""
    return hashlib.blake2s(_encoder.encode(job), digest_size=DIGEST).hexdigest()


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
    return NUMBER.unpack_from(data)[0], unpack_body(memoryview(data)[NUMBER.size :])


def pack_body(reply: Reply) -> bytes:
    """Encode a reply without the number of its job."""
    outcomes: dict[str, bytes | Failed] = {}
    periods = 0
    for calendar, outcome in reply.outcomes.items():
        if isinstance(outcome, Read):
            times = np.concatenate((outcome.busy.starts, outcome.busy.ends))
            outcomes[calendar] = times.astype("<i8", copy=False).tobytes()
            periods += len(outcome.busy)
        else:
            outcomes[calendar] = outcome
    as_they_are = {name: getattr(reply, name) for name in _AS_THEY_ARE}
    body = _Body(outcomes=outcomes, events=dict(reply.events), periods=periods, **as_they_are)
    return _encoder.encode(body)


def unpack_body(data: bytes | memoryview) -> Reply:
    """Decode the result of ``pack_body``.

    :raise DecodeError: for any other input; periods that are missing are never free time
    """
    try:
        body = _bodies.decode(data)
        outcomes: dict[str, Outcome] = {
            calendar: each if isinstance(each, Failed) else _read(each)
            for calendar, each in body.outcomes.items()
        }
    except (msgspec.DecodeError, ValueError) as error:
        raise DecodeError("not a reply") from error
    as_they_are = {name: getattr(body, name) for name in _AS_THEY_ARE}
    reply = Reply(outcomes=outcomes, events=body.events, **as_they_are)
    if sum(len(busy) for _, busy in reply.read()) != body.periods:
        raise DecodeError("not all periods of a reply")
    return reply


def _read(periods: bytes) -> Read:
    if len(periods) % (2 * TIME_BYTES):
        raise ValueError("not the same number of starts and ends")
    starts, ends = np.frombuffer(periods, "<i8").reshape(2, -1)
    return Read(Intervals(starts, ends))
