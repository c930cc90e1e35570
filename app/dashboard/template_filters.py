"""Template filters: times, browser names, action names."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from flask import Blueprint
from markupsafe import Markup

from store.sql.models import now

# Tokens in User-Agent headers, the most specific first: most browsers also name Safari.
_BROWSERS = (
    *(("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome")),
    *(("HeadlessChrome", "Chrome"), ("Safari", "Safari")),
)
_SYSTEMS = (
    *(("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows")),
    *(("Mac OS", "macOS"), ("Linux", "Linux")),
)

# Seconds in each unit of a distance in time, the longest first.
_UNITS = (
    *((31_557_600, "year"), (2_629_800, "month"), (86_400, "day")),
    *((3_600, "hour"), (60, "minute")),
)


def install(blp: Blueprint) -> None:
    """Register the filters."""
    blp.add_app_template_filter(when)
    blp.add_app_template_filter(exactly)
    blp.add_app_template_filter(relative)
    blp.add_app_template_filter(browser)
    blp.add_app_template_filter(spaced)


def when(moment: datetime | None, otherwise: str = "never") -> str:
    """A moment to the minute, in UTC."""
    return otherwise if moment is None else _time(moment, "%H:%M")


def exactly(moment: datetime) -> str:
    """A moment to the second, in UTC."""
    return _time(moment, "%H:%M:%S")


def relative(moment: datetime | None, otherwise: str = "never") -> str:
    """A moment as people say it, like ``3 minutes ago`` or ``in 2 days``; its title has the exact one in UTC.

    A script writes the title in the viewer's time zone.
    """
    if moment is None:
        return otherwise
    return Markup('<time datetime="{}" title="{}" data-relative>{}</time>').format(
        f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        f"{moment.day} {moment:%b %Y, %H:%M:%S} UTC",
        _distance(moment - now()),
    )


def spaced(name: str) -> str:
    """A camel-case name as words: ``createWebhook`` becomes ``Create webhook``."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return words[:1].upper() + words[1:]


def _distance(distance: timedelta) -> str:
    """A distance from now in its largest unit: rounded down if it is past, to the nearest if it is ahead."""
    ahead = distance > timedelta()
    seconds = abs(distance).total_seconds()
    if seconds < _UNITS[-1][0]:
        return "in less than a minute" if ahead else "just now"
    # 365 days, and a moment less, are a year too.
    length, unit = next(
        (length, unit) for length, unit in _UNITS if seconds >= (0.99 if ahead else 1) * length
    )
    number = round(seconds / length) if ahead else int(seconds / length)
    words = f"{number} {unit}{'' if number == 1 else 's'}"
    return f"in {words}" if ahead else f"{words} ago"


def _time(moment: datetime, clock: str) -> str:
    return Markup('<time datetime="{}">{}</time>').format(
        f"{moment:%Y-%m-%dT%H:%M:%SZ}", f"{moment.day} {moment:%b %Y}, {moment:{clock}} UTC"
    )


def browser(agent: str) -> str:
    """The browser and its system, such as ``Firefox on Linux``; an unknown User-Agent is shown as it is."""
    name = next((title for word, title in _BROWSERS if re.search(rf"\b{word}/", agent)), None)
    system = next((title for word, title in _SYSTEMS if word in agent), None)
    if name is None:
        return agent[:60] or "unknown"
    return f"{name} on {system}" if system else name
