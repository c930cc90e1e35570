"""Parses the explorer's picture: the intervals and slots that it shows for each user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bs4 import Tag

from app.dashboard.explorer.svg import LANE_HEIGHT, UNITS
from scheduling.windows import MINUTE
from tests.dashboard.visiting import Page

PIECE = re.compile(r"M(\d+) (\d+)h(\d+)")
# Positions are whole tenths of a pixel.
ROUNDED = 0.51
# Drawn by a pattern, and not by a class.
PATTERNS = ("hatch", "held", "night")

Pair = tuple[int, int]


def pieces(path: str) -> list[Pair]:
    """The strokes of a path as pairs of start and end; an error if the path holds anything else."""
    found = PIECE.findall(path)
    assert "".join(f"M{x} {y}h{w}" for x, y, w in found) == path
    assert {int(y) for _, y, _ in found} <= {LANE_HEIGHT * UNITS // 2}
    return [(int(x), int(x) + int(w)) for x, _, w in found]


def dashed(path: str, pattern: str) -> list[list[tuple[float, float]]]:
    """The dashes that a browser draws for each stroke; each stroke starts the pattern again."""
    dash, gap = map(float, pattern.split())
    assert dash > 0
    assert gap >= 0
    rows = []
    for start, end in pieces(path):
        # A length below the rounding errors of both ends is no dash.
        count = max(1, int((end - start - 2 * ROUNDED) // (dash + gap)) + 1)
        firsts = [start + n * (dash + gap) for n in range(count)]
        rows.append([(first, min(first + dash, end)) for first in firsts])
    return rows


def slots_of(page: Page) -> dict[str, list[int]]:
    """The starts of each user's slots, rounded to the minute, in milliseconds; no key for unread users."""
    found: dict[str, list[int]] = {}
    for lane in page.html.select("[data-axis]"):
        if lane.select_one(".unread") is None:
            found.setdefault(lane["data-user"], []).extend(at for at, _ in stretches(lane, "slot"))
    return found


def layer_of(page: Page, user: str, kind: str) -> list[Pair]:
    """One user's intervals of a kind (``busy``, ``tolerated``, ``hatch``), rounded to the minute."""
    lanes = page.html.select(f'[data-axis][data-user="{user}"]')
    return [each for lane in lanes for each in stretches(lane, kind)]


def stretches(lane: Tag, kind: str) -> Iterator[Pair]:
    """The intervals of a kind in one lane. Slots have exact starts, and ends a little early."""
    picture = lane if lane.get("data-days") else lane.find_parent(attrs={"data-picture": True})
    per_pixel = float(picture["data-ms"])
    days = [tuple(map(int, day.split("-"))) for day in picture["data-days"].split()]
    in_lane = lane["data-axis"] == "x"
    for start, end in _of_lane(lane, kind) if in_lane else _of_column(lane, kind):
        unit = UNITS if in_lane else 1
        yield _moment(days, start / unit * per_pixel), _moment(days, end / unit * per_pixel)


def _of_lane(lane: Tag, kind: str) -> list[Any]:
    paths = lane.select(f'path[stroke="url(#{kind}10)"]' if kind in PATTERNS else f"path.{kind}")
    if kind == "slot":
        return [dash for path in paths for row in dashed(path["d"], path["stroke-dasharray"]) for dash in row]
    return [piece for path in paths for piece in pieces(path["d"])]


def _of_column(lane: Tag, kind: str) -> list[tuple[float, float]]:
    # Skip the rest of a slot that started on the day before.
    found = lane.select(f'rect[fill="url(#{kind})"]' if kind in PATTERNS else f"rect.{kind}:not(.rest)")
    tops = [float(each["y"]) for each in found]
    return [(top, top + float(each["height"])) for top, each in zip(tops, found, strict=True)]


def _moment(days: list[tuple[int, ...]], into: float) -> int:
    """The time at an offset in milliseconds along the days, rounded to the minute."""
    for start, end in days:
        # Up to half a minute beyond a day is a rounding error.
        if into <= end - start + MINUTE / 2:
            return round((start + into) / MINUTE) * MINUTE
        into -= end - start
    raise AssertionError("drawn beyond the picture")
