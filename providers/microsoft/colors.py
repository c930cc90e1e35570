"""Colours of Microsoft's calendars: Graph's names as RGB values."""

from __future__ import annotations

import re

# Graph documents only the names; the values approximate Outlook on the web.
# https://learn.microsoft.com/en-us/graph/api/resources/calendar#calendarcolor-values
HEX = {
    "auto": "#0078d4",
    "lightBlue": "#a6d1f5",
    "lightGreen": "#87d28e",
    "lightOrange": "#fcab73",
    "lightGray": "#c0c0c0",
    "lightYellow": "#f5f37b",
    "lightTeal": "#7fd8d8",
    "lightPink": "#ef85c8",
    "lightBrown": "#bca58a",
    "lightRed": "#f88c9b",
    "maxColor": "#0078d4",
}


def background(name: str, chosen: str) -> str:
    """The colour the user has chosen, else the named colour, as ``#rrggbb``."""
    if re.fullmatch(r"#[0-9a-fA-F]{6}", chosen):
        return chosen.lower()
    return HEX.get(name, HEX["auto"])


def foreground(color: str) -> str:
    """Black or white, whichever is easier to read on ``#rrggbb``.

    Uses the contrast of https://www.w3.org/TR/WCAG21/#dfn-relative-luminance, equal for both at 0.179.
    """
    red, green, blue = (_linear(int(color[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.03928 else float(((channel + 0.055) / 1.055) ** 2.4)
