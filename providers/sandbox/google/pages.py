"""Pages of a list, as irregular as Google's may be.

A page may have fewer items than requested, or none, and still be followed by another: only the token shows
that. https://developers.google.com/workspace/calendar/api/v3/reference/events/list (``maxResults``)
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import orjson

from providers.sandbox.exchange import Request
from providers.sandbox.google.errors import refusal

# Parameters that may differ between the pages of one list.
FREE = {"pageToken", "maxResults", "prettyPrint", "alt", "key", "quotaUser", "fields"}


def page(
    request: Request, items: Sequence[Any], default: int, largest: int, kept: str = ""
) -> tuple[Sequence[Any], str]:
    """One page of ``items`` and the token of the next, empty at the end; ``kept`` is a name in the token.

    The first of several pages is one item short, and an empty page follows it.
    """
    size = page_size(request, default, largest)
    number, offset = position(request)
    if number == 1:
        return (), token(request, 2, offset, kept)
    several = number > 0 or len(items) > size
    taken = items[offset : offset + (size - 1 if several and number == 0 and size > 1 else size)]
    after = offset + len(taken)
    return taken, token(request, number + 1, after, kept) if after < len(items) else ""


def page_size(request: Request, default: int, largest: int) -> int:
    """``maxResults``, limited to the range of the method."""
    text = request.one("maxResults", str(default))
    if not text.isdecimal() or int(text) < 1:
        raise refusal("invalidParameter", f"Invalid value '{text}'.", parameter="maxResults")
    return min(int(text), largest)


def token(request: Request, number: int, offset: int, kept: str) -> str:
    state = [number, offset, question(request), kept]
    return base64.urlsafe_b64encode(orjson.dumps(state)).decode()


def position(request: Request) -> tuple[int, int]:
    """The number of the requested page, and the index of its first item."""
    if not request.one("pageToken"):
        return 0, 0
    number, offset, requested, _ = decoded(request)
    # All other parameters must be those of the first page.
    if requested != question(request):
        raise refusal("invalid", parameter="pageToken")
    return int(number), int(offset)


def kept_name(request: Request) -> str:
    """The name of the list that the first page has kept; empty without one."""
    return str(decoded(request)[3]) if request.one("pageToken") else ""


def decoded(request: Request) -> list[Any]:
    try:
        number, offset, requested, kept = orjson.loads(base64.urlsafe_b64decode(request.one("pageToken")))
    except (ValueError, TypeError) as error:
        raise refusal("invalid", parameter="pageToken") from error
    return [number, offset, requested, kept]


def question(request: Request) -> list[list[str]]:
    return sorted([name, *values] for name, values in request.query.items() if name not in FREE)
