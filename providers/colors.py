"""Readable colours for calendars."""

from __future__ import annotations


def foreground(color: str) -> str:
    """Black or white, whichever is easier to read on ``#rrggbb``.

    Uses the contrast of https://www.w3.org/TR/WCAG21/#dfn-relative-luminance, equal for both at 0.179.
    """
    red, green, blue = (_linear(int(color[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.03928 else float(((channel + 0.055) / 1.055) ** 2.4)
