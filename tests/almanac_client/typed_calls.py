"""Calls of both clients with the types that mypy infers; ``test_types`` has mypy check them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import UTC, datetime, time
from typing import Any, assert_type

from almanac_client import Almanac, Answer, AsyncAlmanac
from almanac_client.records import Event, Slot, User, UserSlots


def blocking(almanac: Almanac) -> list[Slot]:
    assert_type(almanac.users.get("ada"), User)
    assert_type(almanac.users.list(include=["organizations"]), Iterator[User])
    assert_type(
        almanac.events.pages("ada", start="2026-12-03", end="2026-12-04"), Iterator[Answer[list[Event]]]
    )
    answer = almanac.scheduling.user(
        "ada", start=datetime(2026, 12, 3, tzinfo=UTC), end="2026-12-04", earliest_time_each_day=time(9)
    )
    assert_type(answer, Answer[UserSlots])
    almanac.users.get("ada", including=["organizations"])  # type: ignore[call-arg]
    almanac.users.get(1)  # type: ignore[arg-type]
    almanac.scheduling.user("ada", start="2026-12-03", end="2026-12-04", align="moon")  # type: ignore[arg-type]
    return answer.data.available_slots


async def asynchronous(almanac: AsyncAlmanac) -> list[Slot]:
    assert_type(await almanac.users.get("ada"), User)
    assert_type(almanac.users.list(), AsyncIterator[User])
    answer = await almanac.scheduling.user("ada", start="2026-12-03", end="2026-12-04", slot_duration=30)
    assert_type(answer, Answer[UserSlots])
    coroutine = assert_type(almanac.users.get("ada"), Coroutine[Any, Any, User])
    await coroutine
    return answer.data.available_slots
