"""Slots as JSON beside marshmallow and the json module: goal 10."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import orjson
from marshmallow import Schema, fields

from scheduling.json_render import slots_json
from scheduling.query import Slots
from tests.benchmarks.cases import Case
from tests.benchmarks.timing import Times, interleaved


class SlotSchema(Schema):
    """A slot of the organization route, as the rest of the API would write it."""

    start = fields.AwareDateTime(format="%Y-%m-%dT%H:%M:%S.000Z")
    end = fields.AwareDateTime(format="%Y-%m-%dT%H:%M:%S.000Z")
    userId = fields.String()


def with_marshmallow(found: Slots, ids: list[str]) -> str:
    """Marshmallow and json over one dictionary for each slot; the dictionaries are part of the work."""
    items = [
        {"start": moment(start), "end": moment(start + found.duration), "userId": ids[member]}
        for start, member in zip(found.starts.tolist(), found.members.tolist(), strict=True)
    ]
    return json.dumps(SlotSchema(many=True).dump(items), separators=(",", ":"))


def moment(time: int) -> datetime:
    return datetime.fromtimestamp(time / 1000, UTC)


def times(members: int, rounds: int) -> tuple[int, Times]:
    """How many slots were written, and how long both took; both say the same."""
    found = Case.random(members, 200, 30, 0).ask()
    ids = [f"user-{member}" for member in range(members)]
    contenders: dict[str, Callable[[], bytes | str]] = {
        # It comes in pieces, which a server would send one by one.
        "written": lambda: b"".join(slots_json(found, ids)),
        "marshmallow": lambda: with_marshmallow(found, ids),
    }
    if orjson.loads(contenders["written"]()) != orjson.loads(contenders["marshmallow"]()):
        raise AssertionError("the writers disagree")
    return len(found), interleaved(contenders, rounds)
