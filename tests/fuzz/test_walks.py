"""Walks through the whole API, by every kind of key: the document holds, and nothing leaks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.generation.stateful.state_machine import APIStateMachine

from providers.sandbox.client import Sandbox
from tests.app.test_schemathesis import NOBODY_LISTENS, REFUSALS
from tests.conftest import Api
from tests.fuzz.counting import count

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(3600), pytest.mark.usefixtures("worker")]

CHECKED = [
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
]
KEYS = {
    "all": {},
    "read-only": {"read_only": True},
    "shows tokens": {"shows_tokens": True},
    "organization": {"organization": True},
    "organization, read-only": {"organization": True, "read_only": True},
    "organization, shows tokens": {"organization": True, "shows_tokens": True},
}
# A walk has fifty calls at the most.
WALKS = max(2, int(os.environ.get("ALMANAC_EXAMPLES", "40")) // 10)
CALLS = 50
# Known to nobody but the members of another organization.
SECRET = "Xq7planted"
NUMBERS = itertools.count()
RANGES = [("2026-12-03", "2026-12-04"), ("2026-12-03T09:00:00Z", "2026-12-03T17:00:00+01:00")]


class Place:
    """An organization with its member, and a person elsewhere of whom its keys must learn nothing."""

    def __init__(self, api: Api, sandbox: Sandbox, new_organization: Callable[[], str]) -> None:
        self._api, self._sandbox = api, sandbox
        self.own, self.foreign = new_organization(), f"{new_organization()}-{SECRET}".lower()
        made = api.post("/organizations", {"slug": self.foreign, "name": f"Name {SECRET}"})
        assert made.status_code == 200, made.text
        self.stranger = self.person(f"stranger-{SECRET}", self.foreign, SECRET)

    def person(self, name: str, organization: str, planted: str = "Ours") -> str:
        """A member with an account of each provider."""
        user = f"{name}-{next(NUMBERS)}"
        meeting = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z", "subject": planted}
        made = self._api.post("/users", {"id": user, "organizationSlugs": [organization]})
        assert made.status_code == 201, made.text
        for provider in ("google", "microsoft"):
            account = self._sandbox.account(provider, f"{user}@{provider}.example", events=[meeting])
            body = {
                "accessToken": account.access_token,
                "refreshToken": account.refresh_token,
                "email": account.email,
                "scope": account.scope.split(),
            }
            made = self._api.post(f"/users/{user}/oauth/{provider}", body)
            assert made.status_code == 201, made.text
        return user


@pytest.mark.parametrize("kind", KEYS)
def test_a_walk_keeps_to_the_document_and_learns_nothing(
    app,
    api: Api,
    new_api: Callable[..., Api],
    new_organization: Callable[[], str],
    sandbox: Sandbox,
    kind: str,
):
    place = Place(api, sandbox, new_organization)
    rights: dict[str, Any] = dict(KEYS[kind])
    bound = rights.pop("organization", False)
    key = new_api(organization=place.own if bound else None, **rights).key
    # Whoever may see it, sees it.
    assert SECRET.lower() in api.get("/users").text.lower()
    statuses: set[int] = set()
    load_all_checks()
    checks = CHECKS.get_by_names(CHECKED)
    config = SchemathesisConfig.from_dict(
        {
            "generation": {"with-security-parameters": False},
            "checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}},
        }
    )
    schema = schemathesis.openapi.from_wsgi("/v1/openapi.json", app, config=config)
    machine: type[APIStateMachine] = schema.as_state_machine()
    random = Random(kind)

    class Walk(machine):  # type: ignore[misc, valid-type]
        def setup(self) -> None:
            self.member = place.person("member", place.own)

        def before_call(self, case: Case) -> None:
            """Half of the calls are about somebody who is there."""
            given = case.path_parameters
            known = {
                "userId": random.choice((self.member, self.member, place.stranger)),
                "orgSlug": random.choice((place.own, place.own, place.foreign)),
                "calendarId": "primary",
            }
            # Nobody takes the stranger away, for that nothing would be left to leak; nor our own place.
            lasting = case.method in ("PUT", "DELETE", "POST") and "/calendar" not in case.path and not bound
            if random.random() < 0.7 and not lasting:
                given.update({name: value for name, value in known.items() if name in given})
            if random.random() < 0.7 and "start" in (case.query or {}):
                case.query["start"], case.query["end"] = random.choice(RANGES)
            if "/webhooks" in case.path and isinstance(case.body, dict) and "url" in case.body:
                # Nothing is ever sent to addresses that a generator makes up.
                case.body["url"] = NOBODY_LISTENS

        def get_call_kwargs(self, case: Case) -> dict[str, Any]:
            return {"headers": {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"}}

        def validate_response(self, response: Response, case: Case, *_: Any, **__: Any) -> None:
            count("calls of walks through the API")
            statuses.add(response.status_code)
            assert response.status_code < 500 or response.status_code in (502, 503), case.operation.label
            case.validate_response(response, checks=checks)
            if bound:
                # What a caller says itself may be told again.
                said = f"{case.path_parameters} {case.query} {case.body} {case.headers}"
                text = response.content.decode(errors="replace")
                assert SECRET in said or SECRET.lower() in said or SECRET.lower() not in text.lower()

    Walk.run(
        settings=settings(
            max_examples=WALKS,
            stateful_step_count=CALLS,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
    )
    assert statuses & {200, 201}, "no call succeeded"
