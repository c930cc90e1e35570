"""The headers of requests and responses in the OpenAPI document, from the facts of the routes."""

from __future__ import annotations

from typing import Any

from app.http import rate_limit, request_ids
from app.http.idempotency import HEADER, REPLAYED
from app.http.route_facts import RouteFacts

# By name. A header that is required is on every response for which ``of_response`` returns it.
COMPONENTS: dict[str, dict[str, Any]] = {
    request_ids.HEADER: {
        "description": "The id of the request: yours if you sent one.",
        "required": True,
        "schema": {"type": "string", "examples": ["7f3c1c9e52d04b6a8e1d4f20"]},
    },
    rate_limit.LIMIT: {
        "description": "Requests a minute, for each API key. Only if the installation has a limit.",
        "schema": {"type": "integer", "examples": [600]},
    },
    rate_limit.REMAINING: {
        "description": "How many requests are left. Only if the installation has a limit.",
        "schema": {"type": "integer", "examples": [599]},
    },
    rate_limit.RESET: {
        "description": "Seconds until more requests are available. Only if the installation has a limit.",
        "schema": {"type": "integer", "examples": [1]},
    },
    "Age": {
        "description": "The age in seconds of the oldest provider read in the answer.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0, "examples": [12]},
    },
    "Cache-Control": {
        "description": "No cache may store the answer: some answers of this kind contain secrets.",
        "required": True,
        "schema": {"const": "no-store"},
    },
    REPLAYED: {
        "description": "Only on a replayed response to a repeated request.",
        "schema": {"const": "true"},
    },
    "WWW-Authenticate": {
        "description": "`Bearer`, if the API key was rejected.",
        "schema": {"type": "string", "examples": ["Bearer"]},
    },
    "Retry-After": {
        "description": "Seconds to wait before the next attempt, if they are known.",
        "schema": {"type": "integer", "examples": [60]},
    },
    "Link": {
        "description": 'The section of the documents that explains the error (`rel="help"`).',
        "schema": {"type": "string", "examples": ['</docs/reference/errors/#404>; rel="help"']},
    },
    "Allow": {
        "description": "The methods of the path, if the status is 405.",
        "schema": {"type": "string", "examples": ["GET, HEAD, OPTIONS, POST"]},
    },
    "X-Failed-Calendars": {
        "description": "A JSON array of the calendars that could not be read, as many as fit into 3 500 "
        "characters. Only with `minDate`.",
        "schema": {"type": "string"},
    },
    "X-Failed-Calendars-Count": {
        "description": "The number of all calendars that could not be read, including those that do not fit "
        "into `X-Failed-Calendars`. Only with `minDate`.",
        "schema": {"type": "integer", "examples": [1]},
    },
}

IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "description": "Chosen by you, unique for each request. A request that is repeated within 24 hours gets "
    "the first response, and nothing is created twice. Errors are not stored: the request runs again.",
    # Without an example: the page would send it again and again, and get the first response each time.
    "schema": {"type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": 255},
}
FRESHNESS = {
    "name": "Cache-Control",
    "in": "header",
    "description": "`no-cache` requires a fresh read, `max-age=10` one that is at most ten seconds old.",
    "schema": {"type": "string"},
}

_QUOTA = (rate_limit.LIMIT, rate_limit.REMAINING, rate_limit.RESET)
_WITH_RETRY_AFTER = frozenset({"429", "502", "503"})


def of_request(facts: RouteFacts) -> list[dict[str, Any]]:
    """The header parameters that follow from the facts of a route."""
    return [
        *([IDEMPOTENCY_KEY] if facts.idempotent else []),
        *([FRESHNESS] if facts.accepts_cache_control or facts.sends_age else []),
    ]


def of_response(facts: RouteFacts, status: str, *, no_store: bool) -> dict[str, Any]:
    """References to the headers of a response; ``no_store`` is that of the route's blueprint."""
    success = status.startswith("2")
    sent = {
        request_ids.HEADER: True,
        **dict.fromkeys(_QUOTA, facts.needs_key),
        "Age": success and facts.sends_age,
        "Cache-Control": no_store,
        REPLAYED: success and facts.idempotent,
        "WWW-Authenticate": status == "401",
        "Retry-After": status in _WITH_RETRY_AFTER or (status == "409" and facts.idempotent),
        "Link": not success,
        "Allow": status == "default",
        "X-Failed-Calendars": success and facts.bare_list,
        "X-Failed-Calendars-Count": success and facts.bare_list,
    }
    return {name: {"$ref": f"#/components/headers/{name}"} for name, is_sent in sent.items() if is_sent}
