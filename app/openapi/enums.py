"""Names the enumerations of the OpenAPI document.

Client generators make one type for a named enumeration, but one type per use of an inline one.
"""

from __future__ import annotations

from typing import Any

from app.availability.explanation import REASONS
from app.availability.group_explanation import GROUP_REASONS
from app.http.error_codes import Code
from app.schemas.authorization import ACCESS_TYPES
from app.schemas.calendars import ROLES
from app.schemas.connections import CONNECTION_TYPES
from app.schemas.errors import REFUSED_QUOTAS
from app.schemas.organization_grants import GRANT_TYPES
from app.schemas.parameters import ALIGNMENTS, ON_FAILURE
from app.schemas.schedules import WEEKDAYS
from app.schemas.webhooks import EVENTS, RELEASES, SENT_EVENTS, STATUSES
from providers.errors import Reason
from providers.events import EventStatus, ResponseStatus, ShowAs
from providers.names import ProviderName
from providers.scopes import LEVEL_NAMES
from store.sql.queries.users import RELATIONS

MEANINGS = {
    "AccessLevel": "A level of access: `write` (events too), `read`, or `free-busy` (no contents of events). "
    "`edit` is the old name of `write`.",
    "AccessRole": "What an account may do with a calendar, from the least to the most.",
    "AccessType": "Whether access lasts while the person is away (`offline`).",
    "ConnectionType": "How an account is connected.",
    "DeliveryStatus": "The state of a delivery.",
    "ErrorCode": "What is wrong, for programs. A code is never renamed.",
    "EventStatus": "Whether an event takes place.",
    "FailureReason": "Why a provider failed; the set is closed.",
    "GrantType": "What the administrator of an organization has authorized.",
    "GroupVerdict": "Why a moment is, or is not, in a slot that groups share; the set is closed.",
    "OnFailure": "What to answer when some calendars could not be read: an error, or what was read.",
    "Provider": "A calendar provider.",
    "Quota": "What one organization may use only a share of at once.",
    "Relation": "A relation of a user.",
    "ReleaseReason": "Why a hold was released.",
    "ResponseStatus": "What an attendee has answered.",
    "SentEventType": "An event that an endpoint may receive; `webhook.test` is sent on request only.",
    "ShowAs": "Whether the owner of the calendar counts as busy during an event.",
    "SlotAlignment": "Where slots start: at the start of each free stretch, or at multiples of `slotStep` on "
    "the local clock.",
    "Verdict": "Why a moment is, or is not, offered; the set is closed.",
    "WebhookEventType": "What has happened.",
    "Weekday": "A day of the week.",
}
WORDS: dict[str, tuple[str, ...]] = {
    "AccessLevel": LEVEL_NAMES,
    "AccessRole": ROLES,
    "AccessType": ACCESS_TYPES,
    "ConnectionType": CONNECTION_TYPES,
    "DeliveryStatus": STATUSES,
    "ErrorCode": tuple(Code),
    "EventStatus": tuple(EventStatus),
    "FailureReason": tuple(Reason),
    "GrantType": GRANT_TYPES,
    "GroupVerdict": GROUP_REASONS,
    "OnFailure": ON_FAILURE,
    "Provider": tuple(ProviderName),
    "Quota": REFUSED_QUOTAS,
    "Relation": tuple(RELATIONS),
    "ReleaseReason": RELEASES,
    "ResponseStatus": tuple(ResponseStatus),
    "SentEventType": SENT_EVENTS,
    "ShowAs": tuple(ShowAs),
    "SlotAlignment": ALIGNMENTS,
    "Verdict": tuple(REASONS),
    "WebhookEventType": EVENTS,
    "Weekday": WEEKDAYS,
}
_NAMES = {frozenset(map(str, words)): name for name, words in WORDS.items()}


def named(document: dict[str, Any]) -> dict[str, Any]:
    """The document with each inline enumeration replaced by a reference to its name."""
    replaced: dict[str, Any] = _replaced(document)
    schemas = {
        name: {"type": "string", "description": MEANINGS[name], "enum": [*map(str, words)]}
        for name, words in WORDS.items()
    }
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
