"""The service conforms to its OpenAPI document, for generated requests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import APIOperation

from providers.sandbox.client import Sandbox
from tests import services
from tests.conftest import Api
from tests.people import grant_of
from tests.security.tenants import GRANTED

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker", "no_webhook_endpoints")]

NAMES = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
]
RANGES = [
    ("2026-12-03", "2026-12-04"),
    ("2026-12-03T09:00:00Z", "2026-12-03T17:00:00.5+01:00"),
    ("2026-W49", "2026-W50-1"),
    ("2026-337T09", "20261204T0930"),
]
WRITTEN = [("2026-12-03", "2026-12-05"), ("2026-12-03T09:00:00Z", "2026-12-03T17:00:00.5+01:00")]
# Bad data is refused with one of these; a bad body may also be too large.
REFUSALS = [400, 401, 403, 404, 405, 409, 413, 415, 422]
# Parts that take their operations in turn: processes that run the suite share them.
SHARES = 24
# Operations whose body has the URL of a webhook.
WITH_URL = {"POST /v1/webhooks", "PATCH /v1/webhooks/{webhookId}"}
# The one whose body has the address of an account, which is called; this address is refused before.
WITH_ACCOUNT, NO_ACCOUNT = "POST /v1/users/{userId}/connections", "ftp://example.com"
# The one that refuses every event of these accounts: they were invited to none.
FOR_GUESTS = "POST /v1/users/{userId}/calendar/events/{provider}/{calendarId}/{eventId}/response"
NOBODY_LISTENS = "http://127.0.0.1:9/hook"
MEETING = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}


class Real:
    """Resources that exist, so that requests succeed."""

    def __init__(
        self,
        api: Api,
        new_user: Callable[..., str],
        new_organization: Callable[[], str],
        sandbox: Sandbox,
        unique: Callable[[str], str],
    ):
        self._api, self._new_user, self._new_organization = api, new_user, new_organization
        self._keys, self._hours = itertools.count(), itertools.count()
        self.organization = new_organization()
        self._domains = {
            each: sandbox.domain(each, "acme.example", scope=scope) for each, scope in GRANTED.items()
        }
        # Mailboxes of its own: holds belong to mailboxes.
        google = sandbox.account("google", f"{unique('ada')}@example.com", events=[MEETING])
        microsoft = sandbox.account("microsoft", f"{unique('ada')}@contoso.example", events=[MEETING])
        self._addresses = {each.provider: each.email for each in (google, microsoft)}
        self.user = new_user(google, microsoft, slugs=(self.organization,))
        self._others = (
            sandbox.account("google", "eve@example.com"),
            sandbox.account("microsoft", "eve@contoso.example"),
        )

    def put_into(self, case: Case, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        """Give a generated request real identifiers; resources to change or delete are created for it."""
        # Writing events costs a user nothing that others need.
        reads = case.method == "GET" or "/scheduling" in case.path or "/calendar/" in case.path
        if "userId" in case.path_parameters:
            case.path_parameters["userId"] = self.user if reads else self._new_user(*self._others)
        if "orgSlug" in case.path_parameters:
            case.path_parameters["orgSlug"] = self.organization if reads else self._new_organization()
        if case.path_parameters.keys() >= {"orgSlug", "userId"}:
            member = {"userIds": [case.path_parameters["userId"]]}
            self._api.post(f"/organizations/{case.path_parameters['orgSlug']}/members", member)
        if case.path.endswith("/verify"):
            case.body.update(self._consent(case.path_parameters["provider"]))
        self._put_event_into(case, draw)
        if "/grants/" in case.path:
            self._put_grant_into(case)
        case.query.pop("cursor", None)
        if "start" in case.query:
            case.query["start"], case.query["end"] = draw(st.sampled_from(RANGES))
        if "at" in case.query:
            case.query["at"] = draw(st.sampled_from([each for edges in RANGES for each in edges]))
        if "Idempotency-Key" in (case.headers or {}):
            # The generator's favourite keys have all been used, with other bodies.
            case.headers["Idempotency-Key"] = f"key-{next(self._keys)}"
        if "X-Timezone" in (case.headers or {}):
            case.headers["X-Timezone"] = draw(st.sampled_from(["Europe/Berlin", "Pacific Standard Time"]))
        if isinstance(case.body, dict) and "accessToken" in case.body:
            case.body |= {"scope": ["calendar"], "expiresAt": None}
        if isinstance(case.body, dict) and "userIds" in case.body:
            case.body["userIds"] = [self.user]
        if case.path == "/v1/holds" and isinstance(case.body, dict):
            case.body |= self._free_hour()
        elif isinstance(case.body, dict) and "users" in case.body:
            for user in case.body["users"]:
                user["id"] = self.user
        if isinstance(case.body, dict) and "participants" in case.body:
            case.body["participants"] = [{"users": [self.user], "required": 1}]

    def _put_event_into(self, case: Case, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        """An existing event in an existing calendar, and a valid range of times."""
        given = case.path_parameters
        if case.path.endswith("/calendar/events"):
            edges = draw(st.sampled_from([("start", "end"), ("minDate", "maxDate")]))
            for name in ("start", "end", "minDate", "maxDate"):
                case.query.pop(name, None)
            case.query.update(zip(edges, draw(st.sampled_from(RANGES)), strict=True))
        if "calendarId" in given:
            given["calendarId"] = "primary"
        if "calendarId" in given and given.get("provider") not in self._addresses:
            # The user has accounts of these only.
            given["provider"] = draw(st.sampled_from(sorted(self._addresses)))
        if "connectionId" in given:
            (first, *_) = self._api.get(f"/users/{given['userId']}/connections").json["data"]
            given["connectionId"] = first["id"]
            if isinstance(case.body, dict):
                # The first one is the default one already.
                case.body.pop("default", None)
        if "eventId" in given:
            path = f"/users/{given['userId']}/calendar/events/{given['provider']}/primary"
            given["eventId"] = self._api.post(path, MEETING).json["data"]["id"]
        if "webhookId" in given:
            given["webhookId"] = self._api.post("/webhooks", {"url": NOBODY_LISTENS}).json["data"]["id"]
        if "keyId" in given:
            given["keyId"] = self._api.post("/keys", {"name": "billing"}).json["data"]["id"]
        if case.path.startswith("/v1/keys") and isinstance(case.body, dict):
            # The document cannot say that it lies in the future.
            case.body |= {"expiresAt": "2199-01-01"}
            if case.method == "POST":
                case.body |= {"organization": self.organization}
        if "holdId" in given:
            held = self._api.post("/holds", self._free_hour())
            assert held.status_code == 201, held.text
            given["holdId"] = held.json["data"]["id"]
        if "deliveryId" in given:
            # Writing an event creates a delivery.
            self._api.post(f"/users/{self._new_user(*self._others)}/calendar/events/google/primary", MEETING)
            log = self._api.get(f"/webhooks/{given['webhookId']}/deliveries").json["data"]
            given["deliveryId"] = log[0]["id"]
        if "metaId" in given:
            path = f"/users/{given['userId']}/calendar/events/meta"
            given["metaId"] = self._api.post(path, MEETING).json["data"]["metaId"]
        if "/events/" in case.path and isinstance(case.body, dict):
            case.body["start"], case.body["end"] = draw(st.sampled_from(WRITTEN))
            # Google's own alphabet, which the document tells in words.
            case.body.pop("id", None)

    def _free_hour(self) -> dict[str, Any]:
        """The body of a hold: an hour that no other hold has, in a year in which no hold has expired."""
        hour = datetime(2099, 1, 1, tzinfo=UTC) + timedelta(hours=next(self._hours))
        return {
            "users": [self.user],
            "start": hour.isoformat(),
            "end": (hour + timedelta(minutes=30)).isoformat(),
        }

    def _put_grant_into(self, case: Case) -> None:
        """A grant that a provider accepts, or one that is stored already."""
        accepted = {provider: grant_of(domain) for provider, domain in self._domains.items()}
        if case.method == "PUT":
            case.body = accepted[case.path.rpartition("/")[2]]
            return
        provider = case.path_parameters["provider"]
        organization = case.path_parameters["orgSlug"]
        self._api.put(f"/organizations/{organization}/grants/{provider}", accepted[provider])
        if isinstance(case.body, dict) and "members" in case.body:
            case.body["members"] = [{"userId": self._new_user(), "email": "ada@acme.example"}]

    def _consent(self, provider: str) -> dict[str, str]:
        """The query of the callback after a consent was granted."""
        link = self._api.get(f"/users/{self._new_user()}/oauth/{provider}/link").json["data"]["link"]
        came_back = requests.get(
            link, params={"login_hint": self._addresses[provider]}, allow_redirects=False, timeout=10
        ).headers["Location"]
        query = parse_qs(urlsplit(came_back).query)
        return {name: query[name][0] for name in ("code", "state")}


@pytest.fixture
def api(new_api: Callable[..., Api]) -> Api:
    """A caller with all rights."""
    return new_api(shows_tokens=True, manages_keys=True)


@pytest.fixture
def real(
    api: Api,
    new_user: Callable[..., str],
    new_organization: Callable[[], str],
    sandbox: Sandbox,
    unique: Callable[[str], str],
) -> Real:
    return Real(api, new_user, new_organization, sandbox, unique)


def spells_an_array_freely(case: Case) -> bool:
    """Whether a query has commas or empty elements, which we accept and OpenAPI cannot express."""
    for name in ("provider", "include", "calendarIds", "scope"):
        value = (case.query or {}).get(name, "one")
        elements = value if isinstance(value, list) else [value]
        if not elements or not all(isinstance(each, str) and each and "," not in each for each in elements):
            return True
    return False


def leaves_out_by_null(body: Any) -> bool:
    """Whether a field of a body is null, which means absent; the document would have to say so of each."""
    if isinstance(body, dict):
        return any(each is None or leaves_out_by_null(each) for each in body.values())
    return isinstance(body, list) and any(map(leaves_out_by_null, body))


@pytest.fixture(scope="module")
def operations(app: Flask) -> list[APIOperation]:
    """All operations of the document, which takes seconds to resolve."""
    # Every request has our API key; requests without one are tested elsewhere.
    config = SchemathesisConfig.from_dict(
        {
            "generation": {"with-security-parameters": False},
            "checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}},
        }
    )
    schema = schemathesis.openapi.from_wsgi("/v1/openapi.json", app, config=config)
    return [found.ok() for found in schema.get_all_operations()]


def keeps_its_promises(operation: APIOperation, key: str, real: Real, examples: int) -> set[int]:
    """Try an operation with good and with bad requests; returns the statuses that it answered with."""
    load_all_checks()
    checks = CHECKS.get_by_names(NAMES)
    how = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=services.IN_CI or examples < 100,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    statuses = set()

    def holds(case: Case) -> None:
        if case.meta.generation.mode is GenerationMode.POSITIVE and operation.label in WITH_URL:
            # Nothing is ever sent to addresses that a generator makes up.
            case.body["url"] = NOBODY_LISTENS
        if operation.label == WITH_ACCOUNT and isinstance(case.body, dict) and case.body.get("url"):
            case.body["url"] = NO_ACCOUNT
        # The client in the process reads no other encoding.
        headers = {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"}
        answer = case.call_and_validate(headers=headers, checks=checks)
        statuses.add(answer.status_code)

    @how
    @given(data=st.data(), case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def good(data: st.DataObject, case: Case) -> None:
        # The simplest of all requests, which comes first, is one about real things.
        if data.draw(st.integers(0, 3)) < 3:
            real.put_into(case, data.draw)
        holds(case)

    @how
    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def bad(case: Case) -> None:
        assume(not spells_an_array_freely(case))
        assume(not leaves_out_by_null(case.body))
        holds(case)

    good()
    bad()
    return statuses


@pytest.mark.parametrize("share", range(SHARES))
def test_every_operation_answers_as_documented(operations, api: Api, real, share: int):
    for operation in operations[share::SHARES]:
        # All of a few may be refused, by chance; of many, not: one in thirteen of the rarest succeeds.
        expected = {400} if operation.label == FOR_GUESTS else {200, 201}
        for examples in (5, 50, 300):
            succeeded = keeps_its_promises(operation, api.key, real, examples) & expected
            if succeeded:
                break
        assert succeeded, f"{operation.label} never succeeded"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_operation_answers_as_documented_at_length(operations, api: Api, real):
    for operation in operations:
        keeps_its_promises(operation, api.key, real, examples=300)
