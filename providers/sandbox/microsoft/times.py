"""Times as Graph writes and reads them: a wall clock with seven digits, and a separate zone.

https://learn.microsoft.com/graph/api/resources/datetimetimezone
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from providers.sandbox.exchange import Request
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.times import instant, moment, zone
from scheduling.zones import iana_zone

PREFERRED = re.compile(r'outlook\.timezone\s*=\s*"?([^",;]+)"?', re.IGNORECASE)
AS_TEXT = re.compile(r'outlook\.body-content-type\s*=\s*"?text"?', re.IGNORECASE)
# Graph writes seven digits of a second; Python reads six.
FRACTION = re.compile(r"(\.\d{6})\d+")


def preferred_zone(request: Request) -> tuple[str, str] | None:
    """The zone of ``Prefer: outlook.timezone``: as spelled, and its IANA name."""
    found = PREFERRED.search(request.headers.get("prefer", ""))
    return (found[1], known_zone(found[1])) if found else None


def prefers_text(request: Request) -> bool:
    """Whether ``Prefer: outlook.body-content-type`` asks for plain text."""
    return AS_TEXT.search(request.headers.get("prefer", "")) is not None


def known_zone(name: str) -> str:
    """The IANA name of a zone in either spelling."""
    known = iana_zone(name)
    if known is None:
        raise refusal(
            "TimeZoneNotSupportedException",
            "A valid TimeZone value must be specified. The following TimeZone value is not supported: "
            f"'{name}'.",
        )
    return known


def clock(ms: int, where: str) -> str:
    """An instant on the clock of a zone, without offset."""
    return f"{moment(ms, where):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}0000"


def stamp(ms: int) -> str:
    """``createdDateTime`` and similar fields: UTC."""
    return clock(ms, "UTC") + "Z"


def parsed(text: str) -> datetime:
    """A time with or without offset.

    :raise ValueError: for any other text
    """
    return datetime.fromisoformat(FRACTION.sub(r"\1", text.upper()))


def query_instant(request: Request, name: str) -> int:
    """``startDateTime`` or ``endDateTime``; without an offset they are in UTC."""
    text = next((values[-1] for key, values in request.query.items() if key.lower() == name.lower()), "")
    if not text:
        raise refusal(
            "ErrorInvalidParameter",
            "This request requires a time window specified by the query string parameters StartDateTime and "
            "EndDateTime.",
        )
    try:
        when = parsed(text)
    except ValueError as error:
        raise refusal(
            "ErrorInvalidParameter", f"The value '{text}' of parameter '{name}' is invalid."
        ) from error
    return instant(when if when.tzinfo else when.replace(tzinfo=UTC))


def body_instant(value: Any, name: str) -> tuple[int, str]:
    """The instant of a ``dateTimeTimeZone``, and its zone as spelled."""
    if not isinstance(value, dict) or not isinstance(value.get("dateTime"), str):
        raise refusal("ErrorPropertyValidationFailure", f"{name} has no dateTime.")
    spelt = value.get("timeZone") or "UTC"
    where = known_zone(spelt)
    try:
        when = parsed(value["dateTime"])
    except ValueError as error:
        raise refusal("ErrorPropertyValidationFailure", f"{name} is not a time.") from error
    return instant(when if when.tzinfo else when.replace(tzinfo=zone(where))), spelt
