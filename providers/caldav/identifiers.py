"""Ids of calendars in answers and URLs of the API; pure functions."""

from __future__ import annotations

import base64
import re
from urllib.parse import urlsplit

from providers.caldav.credentials import BasicCredentials
from providers.caldav.errors import PROVIDER
from providers.errors import InvalidCalendarId

_ID = re.compile(r"[A-Za-z0-9_-]{2,2048}")
# A quoted path, without the segments that mean another folder.
_PATH = re.compile(r"/(?!/)(?!(?:.*/)?\.\.?/)[!-\"$-\[\]-~]*/")


def calendar_id(url: str) -> str:
    """The id of the calendar at an address: its path, in letters that every proxy passes in a path."""
    path = urlsplit(url).path
    whole = path if path.endswith("/") else f"{path}/"
    return base64.urlsafe_b64encode(whole.encode()).rstrip(b"=").decode()


def calendar_url(calendar: str, credentials: BasicCredentials, operation: str) -> str:
    """The address of a calendar by its id. It is always at the account's own server, which gets the password.

    :raise InvalidCalendarId: for a text that is no id
    """
    path = _decoded(calendar)
    if not _PATH.fullmatch(path) or calendar_id(f"{credentials.origin}{path}") != calendar:
        raise InvalidCalendarId(f"{PROVIDER} has no calendar with such an id", operation=operation)
    return f"{credentials.origin}{path}"


def _decoded(calendar: str) -> str:
    if not _ID.fullmatch(calendar):
        return ""
    try:
        return base64.urlsafe_b64decode(calendar + "=" * (-len(calendar) % 4)).decode("ascii")
    except ValueError:
        return ""
