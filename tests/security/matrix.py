"""Every call of the API, as one that succeeds for the owner of the resources that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

DAY = {"start": "2026-12-03", "end": "2026-12-04"}
MOMENT = DAY | {"at": "2026-12-03T09:00:00Z"}
NINE = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
WEEKLY = {"schedules": [{"days": ["thursday"], "start": "09:00", "end": "17:00"}]}
TOKENS = {"accessToken": "access", "refreshToken": "refresh", "scope": ["openid"]}
CONSENT = {"code": "{code}", "state": "{state}"}
MEMBERS = {"userIds": ["{userId}"]}
URL = "http://127.0.0.1:9/hook"

KEY_FILE = {"type": "service_account", "client_email": "{robot}", "private_key": "{privateKey}"}
SERVICE_ACCOUNT = {"serviceAccountKey": KEY_FILE, "subject": "{subject}"}
APPLICATION = {"tenant": "{tenant}", "clientId": "{clientId}", "clientSecret": "{clientSecret}"}
IMPORT = {"members": [{"userId": "{new}", "email": "{new}@{domain}"}]}
# Parameters that name no resources: words, and credentials that any holder may use.
OWN_WORDS = {
    *("provider", "new", "code", "domain"),
    *("robot", "privateKey", "subject", "tenant", "clientId", "clientSecret"),
}

GROUPS = {"participants": [{"users": ["{userId}"]}]}
# In a year in which no hold has expired when the tests run.
HELD = {"users": ["{userId}"], "start": "2099-01-05T09:00:00Z", "end": "2099-01-05T10:00:00Z"}

NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Row:
    """``status`` is the owner's answer, ``foreign`` the answer to a key of another organization.

    ``kind`` is the right that a key needs: to ``read``, to ``write``, to ``show`` tokens, to ``list keys`` or
    to ``change keys``. ``bound`` is the answer to a key of the owner's organization where it differs from
    that of an unbound key. ``ends``: the call moves or deletes the named resource. In ``query`` and ``body``,
    names in braces stand for the owner's resources.
    """

    operation: str
    status: int = 200
    foreign: int = 404
    bound: int | None = None
    kind: str = "read"
    ends: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def method(self) -> str:
        return self.operation.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.operation.partition(" ")[2]

    @property
    def names(self) -> set[str]:
        """The owner's resources that it names."""
        return set(NAME.findall(f"{self.path} {self.query} {self.body}")) - OWN_WORDS

    def request(self, names: Mapping[str, str]) -> tuple[str, str, dict[str, Any]]:
        """Method, path below ``/v1`` and the rest, in such names."""
        escaped = {name: quote(value, safe="") for name, value in names.items()}
        more: dict[str, Any] = {"query_string": _filled(dict(self.query), names)}
        if self.body is not None:
            more["json"] = _filled(self.body, names)
        return self.method, self.path.format(**escaped), more


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, names) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, names) for each in value]
    return NAME.sub(lambda found: names[found[1]], value) if isinstance(value, str) else value


def read(operation: str, **more: Any) -> Row:
    return Row(operation, **more)


def write(operation: str, status: int = 200, **more: Any) -> Row:
    return Row(operation, status, kind="write", **more)


def list_keys(operation: str, **more: Any) -> Row:
    return Row(operation, kind="list keys", **more)


def change_keys(operation: str, status: int = 200, **more: Any) -> Row:
    return Row(operation, status, kind="change keys", **more)


USER, ORG = "/users/{userId}", "/organizations/{orgSlug}"
OAUTH = USER + "/oauth/{provider}"
CONNECTIONS = USER + "/connections"
CONNECTION = CONNECTIONS + "/{connectionId}"
AVAILABILITY = USER + "/availability"
EVENTS = USER + "/calendar/events"
EVENT = EVENTS + "/{provider}/{calendarId}/{eventId}"
META = EVENTS + "/meta/{metaId}"
HOOK = "/webhooks/{webhookId}"
KEY = "/keys/{keyId}"

ROWS = (
    read("GET /users"),
    write("POST /users", 201, ends=True, body={"id": "{new}", "organizationSlugs": ["{orgSlug}"]}),
    read(f"GET {USER}"),
    write(f"PUT {USER}", ends=True, body={"userId": "{new}"}),
    write(f"DELETE {USER}", ends=True),
    # Organizations share a person, whose data are also of others.
    read(f"GET {USER}/export", foreign=403, bound=403),
    read(f"GET {USER}/organizations"),
    read("GET /organizations"),
    write("POST /organizations", ends=True, bound=403, body={"slug": "{new}", "name": "New"}),
    read(f"GET {ORG}"),
    write(f"PUT {ORG}", body={"name": "Renamed"}),
    write(f"DELETE {ORG}", ends=True, bound=403),
    read(f"GET {ORG}/members"),
    write(f"POST {ORG}/members", body=MEMBERS),
    write(f"DELETE {ORG}/members", ends=True, body=MEMBERS),
    write(f"DELETE {ORG}/members/{{userId}}", ends=True),
    read(f"GET {ORG}/grants"),
    write(f"PUT {ORG}/grants/google", body=SERVICE_ACCOUNT),
    write(f"PUT {ORG}/grants/microsoft", body=APPLICATION),
    read(f"GET {ORG}/grants/{{provider}}"),
    write(f"DELETE {ORG}/grants/{{provider}}", ends=True),
    write(f"POST {ORG}/grants/{{provider}}/members", ends=True, body=IMPORT),
    read(f"GET {ORG}/grants/{{provider}}/directory"),
    read(f"GET {USER}/oauth"),
    read(f"GET {OAUTH}"),
    write(f"POST {OAUTH}", 201, ends=True, body=TOKENS),
    write(f"DELETE {OAUTH}", ends=True),
    write(f"POST {OAUTH}/authorize", body={}),
    # Their answers allow a change of a connection.
    write(f"GET {OAUTH}/link"),
    write(f"GET {USER}/oauth/links"),
    write(
        "POST /users/oauth/{provider}/verify",
        ends=True,
        foreign=400,
        body={"code": "{code}", "state": "{state}"},
    ),
    read(f"GET {OAUTH}/token", kind="show"),
    read(f"GET {CONNECTIONS}"),
    # Calendars are read of every account, so of this one too, which the provider does not know.
    write(f"POST {CONNECTIONS}", 201, ends=True, body={"provider": "{provider}", **TOKENS}),
    read(f"GET {CONNECTION}"),
    write(f"PATCH {CONNECTION}", body={"label": "Renamed"}),
    write(f"DELETE {CONNECTION}", ends=True),
    read(f"GET {AVAILABILITY}"),
    write(f"PUT {AVAILABILITY}", body={"minimumNotice": 5}),
    write(f"PATCH {AVAILABILITY}", body={"paddingAfter": 5}),
    write(f"DELETE {AVAILABILITY}"),
    read(f"GET {USER}/calendar"),
    read(f"GET {USER}/calendar/busy", query=DAY),
    read(f"GET {EVENTS}", query=DAY),
    read(f"GET {USER}/calendar/changes", query=DAY),
    write(f"POST {EVENTS}/{{provider}}/{{calendarId}}", 201, body=NINE),
    read(f"GET {EVENT}"),
    write(f"PUT {EVENT}", body={"subject": "Changed"}),
    # The account was not invited to its own event.
    write(f"POST {EVENT}/response", 400, body={"response": "accepted"}),
    write(f"DELETE {EVENT}", ends=True),
    write(f"POST {EVENTS}/meta", 201, body=NINE),
    read(f"GET {META}"),
    write(f"PUT {META}", body={"subject": "Changed"}),
    write(f"DELETE {META}", ends=True),
    read(f"GET {ORG}/calendar/busy", query=DAY),
    read(f"GET {ORG}/scheduling", query=DAY),
    read(f"GET {USER}/scheduling", query=DAY),
    # They take a body and change nothing.
    read(f"POST {USER}/scheduling", query=DAY, body=WEEKLY),
    *(
        read(f"POST /users/{route}", foreign=200, query=query, body={"users": [{"id": "{userId}"}]})
        for route, query in (("scheduling", DAY), ("calendar/busy", DAY), ("scheduling/explain", MOMENT))
    ),
    read(f"POST {ORG}/scheduling", query=DAY, body=WEEKLY),
    read("POST /scheduling", foreign=200, query=DAY, body=GROUPS),
    read("POST /scheduling/explain", foreign=200, query=MOMENT, body=GROUPS),
    read(f"GET {USER}/scheduling/explain", query=MOMENT),
    read(f"POST {USER}/scheduling/explain", query=MOMENT, body=WEEKLY),
    read(f"GET {ORG}/scheduling/explain", query=MOMENT),
    read("GET /holds", query={"user": "{userId}"}),
    # Held time is free no more, so the next request of the same needs another tenant.
    write("POST /holds", 201, ends=True, body=HELD),
    read("GET /holds/{holdId}"),
    write("DELETE /holds/{holdId}", ends=True),
    read("GET /webhooks"),
    write("POST /webhooks", 201, body={"url": URL}),
    read(f"GET {HOOK}"),
    write(f"PATCH {HOOK}", body={"paused": False}),
    write(f"DELETE {HOOK}", ends=True),
    write(f"POST {HOOK}/secret", body={}),
    write(f"POST {HOOK}/test"),
    read(f"GET {HOOK}/deliveries"),
    write(f"POST {HOOK}/deliveries/{{deliveryId}}/replay"),
    list_keys("GET /keys"),
    change_keys("POST /keys", 201, body={"name": "new", "organization": "{orgSlug}"}),
    list_keys(f"GET {KEY}"),
    change_keys(f"PATCH {KEY}", body={"name": "Renamed"}),
    change_keys(f"POST {KEY}/rotate", body={}),
    change_keys(f"DELETE {KEY}", ends=True),
)

# Routes without an API key by design: their other credential, and the status without it.
OPEN = {
    "GET /oauth/{provider}/callback": 400,
    "POST /push/google": 404,
    "POST /push/microsoft": 400,
    "GET /openapi.json": 200,
    "GET /docs": 200,
    "GET /docs/swagger-ui.js": 200,
}

FOREIGN = tuple(row for row in ROWS if row.names)


def strangers(row: Row, own: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Names for requests to foreign resources: all of them foreign, and one foreign among the own."""
    whole = {name: theirs[name] for name in row.names if theirs[name] != own.get(name)}
    yield {**own, **whole}
    if len(whole) > 1:
        for name, value in whole.items():
            yield {**own, name: value}
