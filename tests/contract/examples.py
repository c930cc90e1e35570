"""The examples of the OpenAPI document are what rows of the contract answer.

A row is compared with the example that was recorded from it. ``make examples`` records all of them again.
Names, identifiers and moments that differ from run to run are replaced by fixed ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import orjson
from werkzeug.test import TestResponse

from app.openapi.examples import EXAMPLES, FILE
from app.schemas.fields import CONNECTION_ID, DELIVERY_ID, HOLD_ID, KEY_ID, WEBHOOK_ID
from app.schemas.fields import EXAMPLES as IDENTIFIERS
from tests.contract.world import World

RECORDING = "ALMANAC_RECORD_EXAMPLES" in os.environ

# Of the world's names, and what stands for them.
NAMES = {
    "userId": "ada",
    "lonely": "bruno",
    "new": "nova",
    "orgSlug": "acme",
    "taken": "design-team",
    "code": "4/0AVMBsJh",
    "state": "q2Vw8cJ5",
    "cursor": "AWnXo2Jt8kRkq1vSTpJ0wz",
    "robot": "almanac@acme-calendars.iam.gserviceaccount.com",
    "tenant": "3aa9e1e8-3e55-4d5c-9d57-0f5c9b8f9a10",
    "clientId": "8f6b2c1e-6d0a-4b57-9a53-2f1c7e5d9a3b",
    "clientSecret": "jrQ8Q~MfKQ9r8GKYqrTwjUPD8ILPZIo2LaL",
}
MOMENT = "2026-11-20T09:00:00.000Z"
FIXED = {
    **dict.fromkeys(
        ("createdAt", "timestamp", "updatedAt", "previousSecretUntil", "previousKeyUntil"), MOMENT
    ),
    **dict.fromkeys(("lastAttemptAt", "nextAttemptAt", "deliveredAt"), MOMENT),
    "etag": 'W/"3529324800000000"',
    "webLink": "https://www.google.com/calendar/event?eid=N2MxZjBhNmU",
    "expiresAt": "2026-11-20T10:00:00.000Z",
    "accessToken": "ya29.a0AfB_byC",
    "refreshToken": "1//0gYwVvJx",
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "private_key": "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n",
    "nextCursor": "YWRh",
    "cursor": "AWnXo2Jt8kRkq1vSTpJ0wz",
    "key": "alm_5Zb0Xq1mT8wQ0c3Jr7hKd2fLs9VyNa4e",
    **dict.fromkeys(("visible", "actor"), "alm_5Zb0Xq1m"),
    "retryAfter": 60,
    "link": "https://accounts.google.com/o/oauth2/v2/auth?client_id=almanac&state=q2Vw8cJ5",
}
PATTERNS = {
    re.compile(r"(?<=try again in )\d+(?= s\b)"): "60",
    WEBHOOK_ID: IDENTIFIERS[WEBHOOK_ID],
    DELIVERY_ID: IDENTIFIERS[DELIVERY_ID],
    HOLD_ID: IDENTIFIERS[HOLD_ID],
    KEY_ID: IDENTIFIERS[KEY_ID],
    re.compile(r"http://127\.0\.0\.1:\d+/hook"): "https://app.example.com/hooks/almanac",
    re.compile(rf"\b{CONNECTION_ID.pattern}\b"): IDENTIFIERS[CONNECTION_ID],
    # Ids that providers and this service choose.
    re.compile(r"AAMk[\w=-]{20,}"): "AAMkAGIwYjZkAAA=",
    re.compile(r"\b[a-v0-9]{20,}\b"): "5k0q7ja3hrfgt8e1u6p2m9c4db",
}
# The worker may or may not have made an attempt already, and the copies of an event change in any order.
CHANGED = {
    "userId": "ada",
    "provider": "google",
    "connectionId": IDENTIFIERS[CONNECTION_ID],
    "calendarId": "ada@example.com",
}
DELIVERED = {
    "payload": {"type": "calendar.changed", "timestamp": MOMENT, "data": CHANGED},
    "status": "delivered",
    "attempts": 1,
    "lastAttemptAt": MOMENT,
    "nextAttemptAt": None,
    "deliveredAt": MOMENT,
    "lastStatus": 200,
    "lastError": None,
}
# Operations that answer with what other tests have created too.
OF_ALL = {"listUsers", "listOrganizations"}
# The fields of a provider's record that an example shows.
OF_ORIGINAL = ("kind", "id", "summary", "subject", "name", "email", "responseStatus", "status")

recorded: dict[str, dict[str, dict[str, Any]]] = {}


def name_of(answer: Any, status: int) -> str:
    """The name of an example: an error's code, or the form of the answer."""
    if not isinstance(answer, dict):
        return "bare"
    if status >= 400:
        return str(answer.get("code", "example"))
    return "partial" if answer.get("failedCalendars") or answer.get("failedUsers") else "example"


def check_row(
    world: World, operation_id: str, row: str, request: Mapping[str, Any], answer: TestResponse
) -> None:
    """Compare the answer to a row with its example, or record it."""
    found = answer.json
    if operation_id in OF_ALL and answer.status_code == 200:
        own = [each for each in found["data"] if each.get("id", each.get("slug")) in world.names.values()]
        found = found | {"data": own}
    body = normal(found, world.names)
    if operation_id == "listDeliveries" and answer.status_code == 200:
        del body["data"][1:]
    example: dict[str, Any] = {"row": row, "answer": body}
    if answer.status_code < 400:
        example["request"] = normal(request, world.names)
    check(operation_id, str(answer.status_code), name_of(body, answer.status_code), example)


def check(operation_id: str, status: str, name: str, example: dict[str, Any]) -> None:
    """Compare an example with the recorded one of the same row; when recording, the first row counts."""
    if RECORDING:
        recorded.setdefault(operation_id, {}).setdefault(status, {}).setdefault(name, example)
        return
    known = EXAMPLES.get(operation_id, {}).get(status, {}).get(name)
    if known is None or known.get("row") == example.get("row"):
        assert known == example, "the example differs from the answer: run `make examples`"


def keep() -> None:
    """Write the recorded examples at the end of a session."""
    FILE.write_bytes(orjson.dumps(recorded, option=orjson.OPT_INDENT_2) + b"\n")


def normal(value: Any, names: Mapping[str, str]) -> Any:
    """A body with fixed values in the place of values that differ from run to run."""
    of_world = {
        re.compile(rf"(?<![\w-]){re.escape(names[name])}(?![\w-])"): known
        for name, known in NAMES.items()
        if name in names
    }
    return _normal(value, of_world | PATTERNS)


def _normal(value: Any, patterns: Mapping[re.Pattern[str], str], key: str = "") -> Any:
    match value:
        case dict() if key in ("original", "originals"):
            shown = {name: value[name] for name in OF_ORIGINAL if isinstance(value.get(name), str)}
            return _normal(shown, patterns)
        case {"lastAttemptAt": _}:
            known = {name: each for name, each in value.items() if name not in DELIVERED}
            return {name: _normal(each, patterns, name) for name, each in known.items()} | DELIVERED
        case dict():
            return {name: _normal(each, patterns, name) for name, each in value.items()}
        case list():
            return [_normal(each, patterns, key) for each in value]
        case str() | int() if key in FIXED:
            return FIXED[key]
        case int() if key == "id":
            # Of a record of the audit log.
            return 1
        case str():
            for pattern, known in patterns.items():
                value = pattern.sub(known, value)
    return value
