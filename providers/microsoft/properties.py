"""Our own extended properties of an event, which Graph stores and returns when they are requested by id.

https://learn.microsoft.com/en-us/graph/api/resources/extended-properties-overview
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from providers.http.json_validation import text
from providers.microsoft.payloads import ExtendedProperty, GraphEvent

_FIELD = "singleValueExtendedProperties"

# Our property set. Stored events have it, so it must never change.
_SET = "{88975aad-e07f-4141-b505-b544a2c485b6}"

# metaId links the copies of a unified event; the others are the URL of a meeting outside Teams, the create
# that made the event (see creation.py), and the request that split a series for it, whichever copy made it.
META_ID = f"String {_SET} Name metaId"
MEETING_URL = f"String {_SET} Name meetingUrl"
REQUEST = f"String {_SET} Name almanacRequest"
FOLLOWING = f"String {_SET} Name almanacFollowing"

_ASKED = " or ".join(f"id eq '{each}'" for each in (META_ID, MEETING_URL, REQUEST, FOLLOWING))

# The part of $expand that requests all of them; without a filter Graph returns none.
EXPANSION = f"{_FIELD}($filter={_ASKED})"
EXPAND = f"$expand={quote(EXPANSION, safe='')}"

_GUID = re.compile(r"\{[^}]*\}")


def filter_by_property(property_id: str, wanted: str) -> str:
    """The $filter for events with a value of a property; Graph ignores letter case in values.

    https://learn.microsoft.com/en-us/graph/api/singlevaluelegacyextendedproperty-get
    """
    quoted = wanted.replace("'", "''")
    text = f"{_FIELD}/Any(ep: ep/id eq '{property_id}' and ep/value eq '{quoted}')"
    return f"$filter={quote(text, safe='')}"


def value(event: GraphEvent, property_id: str) -> str | None:
    """The value of a property; None when missing or emptied."""
    known = event.get("singleValueExtendedProperties") or ()
    found = (each for each in known if _folded(each["id"]) == _folded(property_id))
    return next((text(each["value"]) or None for each in found), None)


def written(values: Mapping[str, str | None]) -> list[ExtendedProperty] | None:
    """The JSON that sets properties; None when there are none. Graph merges: others stay unchanged."""
    given = [{"id": each, "value": text} for each, text in values.items() if text is not None]
    return cast("list[ExtendedProperty]", given) or None


def _folded(property_id: str) -> str:
    """For comparison: names are case-sensitive, the GUID is not."""
    return _GUID.sub(lambda guid: guid[0].lower(), property_id)
