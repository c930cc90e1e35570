"""Times and periods as answers and providers write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from tests.app.at_provider import AtProvider
from tests.soak.model import MINUTE, Period, text


def periods(items: Sequence[Any]) -> list[Period]:
    return [(instant(each["start"]), instant(each["end"])) for each in items]


def minutes(periods: Iterable[Period]) -> Iterable[int]:
    return (at for a, b in periods for at in range(a, b, MINUTE))


def instant(written: str) -> int:
    return round(datetime.fromisoformat(written).timestamp() * 1000)


def edge(there: AtProvider, at: int) -> dict[str, str]:
    if there.provider == "google":
        return {"dateTime": text(at)}
    return {"dateTime": text(at).rstrip("Z"), "timeZone": "UTC"}


def period(event: Any) -> Period:
    """Google has an offset, Graph has UTC unless it was asked for another zone."""
    edges = (event[name]["dateTime"] for name in ("start", "end"))
    start, end = (each if each.endswith("Z") or each[-6] in "+-" else f"{each[:19]}Z" for each in edges)
    return instant(start), instant(end)
