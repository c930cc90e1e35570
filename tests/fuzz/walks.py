"""Walks through the API: valid, nearly valid or made-up calls, in a tenant that each walk creates."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core import NOT_SET
from schemathesis.schemas import APIOperation

from tests.app.openapi.test_schemathesis import NOBODY_LISTENS
from tests.conftest import Api
from tests.fuzz.counting import count
from tests.security.matrix import NAME, ROWS, Row
from tests.security.tenants import Tenant, consent

CHECKED = [
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
]
BY_LABEL = {row.operation.replace(" ", " /v1", 1): row for row in ROWS}
# The names that a successful call provides: the name, and its path in the answer.
GIVES = {
    "POST /users": ("userId", "id"),
    "PUT /users/{userId}": ("userId", "id"),
    "POST /users/{userId}/calendar/events/{provider}/{calendarId}": ("eventId", "id"),
    "POST /users/{userId}/calendar/events/meta": ("metaId", "metaId"),
    "POST /webhooks": ("webhookId", "id"),
}
# Half of the operations: that many calls fit into what Hypothesis is willing to choose for one example.
CALLS = 24


class How(StrEnum):
    """How a call is composed."""

    MEANT = "as it should be"
    NEARLY = "made up, about things that are there"
    MADE_UP = "made up"


@dataclass(frozen=True)
class Step:
    """All choices of a call; earlier answers have no part in them."""

    operation: APIOperation
    how: How = How.MEANT
    foreign: bool = False
    made_up: Case | None = None


def steps(operation: APIOperation) -> st.SearchStrategy[Step]:
    """Half of the calls are valid, and a third name resources of another tenant."""
    made_up = st.sampled_from(GenerationMode).flatmap(
        lambda mode: operation.as_strategy(generation_mode=mode)
    )
    foreign = st.sampled_from((False, False, True))
    return st.one_of(
        st.builds(Step, st.just(operation), st.just(How.MEANT), foreign),
        st.builds(Step, st.just(operation), st.sampled_from((How.NEARLY, How.MADE_UP)), foreign, made_up),
    )


def walks(operations: list[APIOperation]) -> st.SearchStrategy[list[Step]]:
    """Calls of different operations, in any order."""
    orders = st.permutations(operations).map(lambda order: order[:CALLS])
    return orders.flatmap(lambda order: st.tuples(*map(steps, order)).map(list))


def put_together(step: Step, row: Row, names: Mapping[str, str]) -> Case:
    """The call, with these names filled in."""
    there = {name: names[name] for name in NAME.findall(row.path)}
    more = row.request(names)[2]
    query, body = more["query_string"], more.get("json", NOT_SET)
    case = step.made_up
    if case is None:
        kind = "application/json" if row.body is not None else None
        return step.operation.Case(path_parameters=there, query=query, body=body, media_type=kind)
    if step.how is How.NEARLY:
        case.path_parameters = {**(case.path_parameters or {}), **there}
        case.query = {**(case.query or {}), **query}
        if isinstance(case.body, dict) and isinstance(body, dict):
            case.body |= body
    if isinstance(case.body, dict) and "url" in case.body:
        # No request is sent to generated addresses.
        case.body["url"] = NOBODY_LISTENS
    return case


@dataclass
class Walker:
    """A client with a key. ``answered`` are the statuses of each operation, by its label in the document."""

    api: Api
    foreign: Tenant
    # Whether the key must learn nothing of the other organization.
    bound: bool
    answered: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        load_all_checks()
        self._checks = CHECKS.get_by_names(CHECKED)
        self._numbers = itertools.count()

    def walk(self, own: Tenant, chosen: list[Step], key: str) -> None:
        """Makes the calls in order, starting with the tenant's first resources."""
        names = own.names | consent(self.api, own)
        for step in chosen:
            names["new"] = f"{own.names['new']}-{next(self._numbers)}"
            self._call(step, names, key)

    def _call(self, step: Step, names: dict[str, str], key: str) -> None:
        row = BY_LABEL[step.operation.label]
        theirs = {name: each for name, each in self.foreign.names.items() if name != "new"}
        case = put_together(step, row, names | theirs if step.foreign else names)
        answer = case.call(headers={"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"})
        count("calls of walks through the API")
        count(f"calls of walks that were answered with {answer.status_code // 100}xx")
        assert answer.status_code < 500 or answer.status_code in (502, 503), (step, answer.text)
        self.answered[step.operation.label].add(answer.status_code)
        case.validate_response(answer, checks=self._checks)
        shown = f"{answer.headers} {answer.content.decode(errors='replace')}"
        said = f"{case.path_parameters} {case.query} {case.body} {case.headers}"
        assert not self.bound or not set(self._leaks(shown, said)), (step, shown)
        if answer.status_code in (200, 201) and not step.foreign and row.operation in GIVES:
            name, where = GIVES[row.operation]
            names[name] = answer.json()["data"][where]

    def _leaks(self, shown: str, said: str) -> Iterator[str]:
        """Words of the other organization that were not in the request."""
        for name in self.foreign.names.values():
            if name in said:
                shown = shown.replace(name, "")
        return (word for word in self.foreign.words if word in shown)
