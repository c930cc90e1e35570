"""Template filters: times, browser names, action names."""

from __future__ import annotations

import re
from datetime import datetime

from flask import Blueprint
from markupsafe import Markup

# Tokens in User-Agent headers, the most specific first: most browsers also name Safari.
_BROWSERS = (
    *(("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome")),
    *(("HeadlessChrome", "Chrome"), ("Safari", "Safari")),
)
_SYSTEMS = (
    *(("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows")),
    *(("Mac OS", "macOS"), ("Linux", "Linux")),
)


def install(blp: Blueprint) -> None:
    """Register the filters."""
    blp.add_app_template_filter(when)
    blp.add_app_template_filter(exactly)
    blp.add_app_template_filter(browser)
    blp.add_app_template_filter(spaced)


def when(moment: datetime | None, otherwise: str = "never") -> str:
    """A moment to the minute, in UTC."""
    return otherwise if moment is None else _time(moment, "%H:%M")


def exactly(moment: datetime) -> str:
    """A moment to the second, in UTC."""
    return _time(moment, "%H:%M:%S")


def spaced(name: str) -> str:
    """A camel-case name as words: ``createWebhook`` becomes ``Create webhook``."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return words[:1].upper() + words[1:]


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
