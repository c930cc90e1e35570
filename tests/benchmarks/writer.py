"""Slots as JSON beside marshmallow and the json module: goal 10."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from marshmallow import Schema, fields

from scheduling.query import Slots
from scheduling.written import slots_json
from tests.benchmarks.engine import Case
from tests.benchmarks.timing import Times, interleaved


class SlotSchema(Schema):
    """A slot of the organization route, as the rest of the API would write it."""

    start = fields.AwareDateTime(format="%Y-%m-%dT%H:%M:%S.000Z")
    end = fields.AwareDateTime(format="%Y-%m-%dT%H:%M:%S.000Z")
    userId = fields.String()


def orthodox(found: Slots, ids: list[str]) -> str:
    """Marshmallow and json over one dictionary for each slot; the dictionaries are part of the work."""
    items = [
        {"start": moment(start), "end": moment(start + found.duration), "userId": ids[member]}
        for start, member in zip(found.starts.tolist(), found.members.tolist(), strict=True)
    ]
    return json.dumps(SlotSchema(many=True).dump(items), separators=(",", ":"))


def moment(time: int) -> datetime:
    return datetime.fromtimestamp(time / 1000, UTC)


def times(members: int, rounds: int = 5) -> tuple[int, Times]:
    """How many slots were written, and how long both took; they agree byte for byte."""
    found = Case.random(members, 200, 30, 0).ask()
    ids = [f"user-{member}" for member in range(members)]
    if slots_json(found, ids) != orthodox(found, ids).encode():
        raise AssertionError("the writers disagree")
    contenders = {"written": lambda: slots_json(found, ids), "marshmallow": lambda: orthodox(found, ids)}
    return len(found), interleaved(contenders, rounds)
