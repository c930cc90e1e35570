"""The drawings of the page on scheduling, made by the engine: ``python -m tests.docs.drawings``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from xml.sax.saxutils import escape

import numpy as np

from scheduling.intervals import Groups
from scheduling.query import Query, busy_periods, free, slots
from scheduling.windows import MINUTE, Window
from tests.docs.fences import ROOT

FOLDER = ROOT / "docs/reference/scheduling"

Pair = tuple[int, int]
Scale = Callable[[int], float]

# A Monday; the drawings show minutes of it.
_MIDNIGHT = int(datetime(2026, 11, 23, tzinfo=UTC).timestamp() * 1000)

_LEFT, _WIDTH, _ROW = 116, 700, 30
# In between: visible on white and on black.
_INK = "#808080"
_BUSY, _PADDING, _FREE, _SLOT, _WINDOW = "#e3702d", "#e3702d55", "#2da44e55", "#2f81f7", "#a371f755"


def minute(clock: str) -> int:
    """The minute of the day, by the clock."""
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def span(text: str) -> Pair:
    """``09:00-10:00`` in milliseconds."""
    start, end = (_MIDNIGHT + minute(clock) * MINUTE for clock in text.split("-"))
    return start, end


@dataclass(frozen=True)
class Drawing:
    """One query: the calendars of one person, the parameters, and the expected slots."""

    name: str
    title: str
    range: str
    calendars: Sequence[Sequence[str]]
    duration: int = 30
    options: dict[str, object] = field(default_factory=dict)
    windows: Sequence[str] = ()

    def query(self) -> Query:
        """The query to the engine."""
        start, end = span(self.range)
        windows = tuple(
            Window.daily(*(minute(clock) for clock in window.split("-"))) for window in self.windows
        )
        options = {
            name: value if name in ("max_overlaps", "align_clock") else value * MINUTE
            for name, value in self.options.items()
        }
        return Query(start, end, self.duration * MINUTE, windows=windows or None, **options)  # type: ignore[arg-type]

    def answer(self) -> tuple[list[list[Pair]], list[Pair], list[Pair]]:
        """The blocked periods of each calendar, the free stretches, and the slots."""
        query = self.query()
        calendars = Groups.of([[span(busy) for busy in calendar] for calendar in self.calendars])
        owners = np.zeros(len(self.calendars), np.int64)
        counted = busy_periods(query, calendars)
        bounds = zip(counted.offsets, counted.offsets[1:], strict=False)
        periods = [
            list(zip(counted.starts[a:b].tolist(), counted.ends[a:b].tolist(), strict=True))
            for a, b in bounds
        ]
        found = slots(query, calendars, owners, 1)
        cut = [(start, start + query.duration) for start in found.starts.tolist()]
        return periods, free(query, calendars, owners, 1).flat().pairs(), cut


DRAWINGS = (
    Drawing("remainder", "slotDuration=30", "09:00-12:00", [["10:00-10:20"]]),
    Drawing(
        "padding",
        "slotDuration=30, padding=10",
        "09:00-12:00",
        [["10:00-10:20"]],
        options={"padding_before": 10, "padding_after": 10},
    ),
    Drawing(
        "padding-after",
        "slotDuration=30, paddingAfter=20",
        "09:00-12:00",
        [["10:00-10:20"]],
        options={"padding_after": 20},
    ),
    Drawing(
        "overlaps",
        "slotDuration=30, maxOverlaps=1",
        "09:00-12:00",
        [["09:30-11:00"], ["10:00-11:30"]],
        options={"max_overlaps": 1},
    ),
    Drawing(
        "overlaps-padding",
        "slotDuration=30, maxOverlaps=1, padding=15",
        "09:00-12:00",
        [["09:30-10:30"], ["10:30-11:00"]],
        options={"max_overlaps": 1, "padding_before": 15, "padding_after": 15},
    ),
    Drawing(
        "windows",
        "slotDuration=30, earliestTimeEachDay=09:00, latestTimeEachDay=11:45",
        "08:00-13:00",
        [["09:45-10:15"]],
        windows=["09:00-11:45"],
    ),
    Drawing("step", "slotDuration=60, slotStep=20", "09:00-12:00", [["10:40-11:00"]], 60, {"step": 20}),
    Drawing(
        "clock",
        "slotDuration=30, align=clock",
        "09:00-12:00",
        [["10:00-10:20"]],
        options={"align_clock": True},
    ),
)


def svg(drawing: Drawing) -> str:
    """One drawing, legible on light and on dark pages."""
    query = drawing.query()
    calendars, stretches, cut = drawing.answer()
    x = _scale(query.start, query.end)
    parts = [_text(_LEFT, 16, drawing.title, anchor="start")]
    y = 28
    if drawing.windows:
        parts += _row(y, "window", query.open_intervals().pairs(), x, _WINDOW)
        y += _ROW
    for number, periods in enumerate(calendars, 1):
        name = "busy" if len(calendars) == 1 else f"calendar {number}"
        padded = [(start - query.padding_before, end + query.padding_after) for start, end in periods]
        parts += _row(y, name, padded if query.is_padded else (), x, _PADDING)
        parts += _row(y, "", periods, x, _BUSY)
        y += _ROW
    parts += _row(y, "free", stretches, x, _FREE)
    y += _ROW
    lanes = _lanes(cut)
    for number, lane in enumerate(lanes):
        parts += _row(y, "slots" if not number else "", lane, x, _SLOT, told=True)
        y += _ROW
    parts += _axis(query.start, query.end, y, x)
    height = y + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 24} {height}" role="img" '
        f'font-family="sans-serif" font-size="13">\n<title>{escape(_told(drawing, cut))}</title>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _scale(start: int, end: int) -> Scale:
    return lambda at: round(_LEFT + _WIDTH * (min(max(at, start), end) - start) / (end - start), 1)


def _lanes(cut: Iterable[Pair]) -> list[list[Pair]]:
    """Slots that overlap, below each other."""
    lanes: list[list[Pair]] = []
    for slot in cut:
        lane = next((lane for lane in lanes if lane[-1][1] <= slot[0]), None)
        if lane is None:
            lanes.append([slot])
        else:
            lane.append(slot)
    return lanes


def _row(y: int, name: str, spans: Iterable[Pair], x: Scale, color: str, *, told: bool = False) -> list[str]:
    parts = [_text(_LEFT - 10, y + 16, name, anchor="end")] if name else []
    for start, end in spans:
        left, right = x(start), x(end)
        parts.append(
            f'<rect x="{left}" y="{y}" width="{round(right - left, 1)}" height="22" rx="3" fill="{color}"/>'
        )
        if told:
            parts.append(
                f'<text x="{round((left + right) / 2, 1)}" y="{y + 16}" text-anchor="middle" fill="#fff">'
                f"{_clock(start)}</text>"
            )
    return parts


def _axis(start: int, end: int, y: int, x: Scale) -> list[str]:
    parts = []
    for at in range(start, end + 1, 30 * MINUTE):
        parts.append(f'<path d="M{x(at)} 26V{y}" stroke="{_INK}" stroke-opacity=".35"/>')
        if at % (60 * MINUTE) == 0:
            parts.append(_text(x(at), y + 16, _clock(at), anchor="middle"))
    return parts


def _text(x: float, y: int, text: str, *, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{_INK}">{escape(text)}</text>'


def _clock(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%H:%M}"


def _told(drawing: Drawing, cut: Iterable[Pair]) -> str:
    return f"{drawing.title}: slots at {', '.join(_clock(start) for start, _ in cut)}"


def write() -> None:
    """Write every drawing."""
    FOLDER.mkdir(exist_ok=True)
    for drawing in DRAWINGS:
        (FOLDER / f"{drawing.name}.svg").write_text(svg(drawing))


if __name__ == "__main__":
    write()
