"""Checks an answer against the generated models of the official SDK: known names and enum values only."""

from __future__ import annotations

import re
from typing import Any

from kiota_abstractions.serialization import Parsable

# The SDK's attribute names: ``iCalUId`` is ``i_cal_u_id``.
CAPITAL = re.compile(r"(?<!^)([A-Z])")


def problems(model: Any, raw: Any, path: str = "$") -> list[str]:
    """The parts of ``raw`` that the SDK did not parse into ``model``."""
    if raw is None:
        return []
    if model is None:
        return [f"{path}: {raw!r} was not understood"]
    if isinstance(raw, list):
        if len(model) != len(raw):
            return [f"{path}: {raw!r} was not understood"]
        pairs = enumerate(zip(model, raw, strict=True))
        return [problem for n, (m, r) in pairs for problem in problems(m, r, f"{path}[{n}]")]
    if not isinstance(raw, dict) or not isinstance(model, Parsable):
        return []
    known = model.get_field_deserializers()
    found = []
    for name, value in raw.items():
        if "@odata" in name:
            continue
        if name not in known:
            found.append(f"{path}.{name} is no property of {type(model).__name__}")
            continue
        attribute = CAPITAL.sub(r"_\1", name).lower().replace("-", "_")
        found += problems(getattr(model, attribute), value, f"{path}.{name}")
    return found
