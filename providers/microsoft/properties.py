"""Our own properties of an event, which Graph keeps with it and shows when it is asked for them by id.

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

# The set of names that is ours. Events in people's mailboxes carry it: it must never change.
_SET = "{88975aad-e07f-4141-b505-b544a2c485b6}"

# What ties the copies of a unified event together; where it is held online, when not in Teams; which create
# has made it (see creation.py).
META_ID = f"String {_SET} Name metaId"
MEETING_URL = f"String {_SET} Name meetingUrl"
REQUEST = f"String {_SET} Name almanacRequest"

_ASKED = " or ".join(f"id eq '{each}'" for each in (META_ID, MEETING_URL, REQUEST))

# The part of $expand that asks for all of them; without a filter Graph shows none.
EXPANSION = f"{_FIELD}($filter={_ASKED})"
EXPAND = f"$expand={quote(EXPANSION, safe='')}"

_GUID = re.compile(r"\{[^}]*\}")


def carrying(property_id: str, wanted: str) -> str:
    """The part of a query for the events with a value of a property; Graph compares values in any case.

    https://learn.microsoft.com/en-us/graph/api/singlevaluelegacyextendedproperty-get
    """
    quoted = wanted.replace("'", "''")
    text = f"{_FIELD}/Any(ep: ep/id eq '{property_id}' and ep/value eq '{quoted}')"
    return f"$filter={quote(text, safe='')}"


def value(event: GraphEvent, property_id: str) -> str | None:
    """What an event has for a property, None for nothing; nothing is also what it was emptied to."""
    known = event.get("singleValueExtendedProperties") or ()
    found = (each for each in known if _folded(each["id"]) == _folded(property_id))
    return next((text(each["value"]) or None for each in found), None)


def written(values: Mapping[str, str | None]) -> list[ExtendedProperty] | None:
    """What is sent to set properties; None where there is none. Graph merges: all others stay."""
    given = [{"id": each, "value": text} for each, text in values.items() if text is not None]
    return cast("list[ExtendedProperty]", given) or None


def _folded(property_id: str) -> str:
    """For comparing: names are case-sensitive, the GUID is not."""
    return _GUID.sub(lambda guid: guid[0].lower(), property_id)
