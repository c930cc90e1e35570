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
