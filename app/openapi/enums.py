"""Names the enumerations of the OpenAPI document.

Client generators make one type for a named enumeration, but one type per use of an inline one.
"""

from __future__ import annotations

from typing import Any

from app.availability.explanation import REASONS
from app.http.errors import Code
from app.schemas.authorization import ACCESS_TYPES
from app.schemas.availability import ALIGNMENTS, ENTRY_STATUSES, ON_FAILURE, WEEKDAYS
from app.schemas.calendars import ROLES
from app.schemas.records import CONNECTION_TYPES
from app.schemas.webhooks import EVENTS, STATUSES
from providers.errors import Reason
from providers.events import ResponseStatus
from providers.names import ProviderName
from providers.scopes import LEVEL_NAMES
from store.sql.queries.users import RELATIONS

WORDS: dict[str, tuple[str, ...]] = {
    "AccessLevel": LEVEL_NAMES,
    "AccessRole": ROLES,
    "AccessType": ACCESS_TYPES,
    "ConnectionType": CONNECTION_TYPES,
    "DeliveryStatus": STATUSES,
    "EntryStatus": ENTRY_STATUSES,
    "ErrorCode": tuple(Code),
    "FailureReason": tuple(Reason),
    "OnFailure": ON_FAILURE,
    "Provider": tuple(ProviderName),
    "Relation": tuple(RELATIONS),
    "ResponseStatus": tuple(ResponseStatus),
    "SlotAlignment": ALIGNMENTS,
    "Verdict": tuple(REASONS),
    "WebhookEventType": EVENTS,
    "Weekday": WEEKDAYS,
}
_NAMES = {frozenset(map(str, words)): name for name, words in WORDS.items()}


def named(document: dict[str, Any]) -> dict[str, Any]:
    """The document with each inline enumeration replaced by a reference to its name."""
    replaced: dict[str, Any] = _replaced(document)
    schemas = {name: {"type": "string", "enum": [*map(str, words)]} for name, words in WORDS.items()}
    replaced["components"]["schemas"] |= schemas
    return replaced


def _replaced(node: Any) -> Any:
    if isinstance(node, list):
        return [_replaced(child) for child in node]
    if not isinstance(node, dict):
        return node
    name = _NAMES.get(frozenset(node["enum"])) if isinstance(node.get("enum"), list) else None
    if name is None:
        return {key: _replaced(child) for key, child in node.items()}
    rest = {key: child for key, child in node.items() if key not in ("type", "enum")}
    return {"$ref": f"#/components/schemas/{name}", **rest}
