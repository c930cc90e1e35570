"""Every route by every kind of key: a key of one organization reaches its members, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from store.stores import Stores
from tests.conftest import Api
from tests.security import keys
from tests.security.keys import BOUND, ENDED, IN_FORCE, IN_QUERY, REFUSED, Headers, Kind
from tests.security.matrix import FOREIGN, OPEN, ROWS, Row, strangers
from tests.security.tenants import Settle, consent, digest, leaks, of_nobody

# Headers that depend on the request or the time.
OWN_HEADERS = {"X-Request-Id", "Date", "Age"}
READ_ONLY = {"error": "This API key is read-only", "code": "keyReadOnly"}
NO_KEYS = {"error": "This API key may not manage API keys", "code": "keyMayNotManageKeys"}
NO_TOKENS = {"error": "This API key may not show tokens", "code": "keyMayNotShowTokens"}
# They have an entry for each user of the body.
OF_USERS = {f"POST /users/{each}" for each in ("scheduling", "calendar/busy", "scheduling/explain")}
ONE_OF_EACH = pytest.mark.parametrize("provider", ["google", "microsoft"])


def ask(api: Api, row: Row, names: Mapping[str, str], headers: Headers | None = None) -> TestResponse:
    method, path, more = row.request(names)
    if headers is None:
        return api.call(method, path, **more)
    return api.client.open(f"/v1{path}", method=method, headers=headers, **more)


def judged(answer: TestResponse, names: Mapping[str, str]) -> tuple[int, str, dict[str, str]]:
    """The content of an answer, without the names that were sent."""
    text = answer.get_data(as_text=True)
    for name, value in names.items():
        text = text.replace(value, f"<{name}>")
    kept = {name: value for name, value in answer.headers.items() if name not in OWN_HEADERS}
    return answer.status_code, text, kept


def test_every_route_is_in_the_matrix(app):
    rows = [row.operation for row in ROWS]
    names = {f"<{word}>": f"{{{word}}}" for word in _words(app)}
    there = {
        f"{method} {_braced(rule.rule, names).removeprefix('/v1')}"
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/v1/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }

    assert there == set(rows) | OPEN.keys()
    assert len(rows) == len(set(rows))


def _words(app: Flask) -> set[str]:
    return {name for rule in app.url_map.iter_rules() for name in rule.arguments}


def _braced(rule: str, names: Mapping[str, str]) -> str:
    bare = re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"<\1>", rule)
    for name, braced in names.items():
        bare = bare.replace(name, braced)
    return bare


# --- without a key in force


@pytest.fixture(params=[*REFUSED, *ENDED])
def refused(request, stores, api, new_organization) -> Headers:
    """The headers sent in the place of a key."""
    kind = request.param
    if kind in REFUSED:
        return REFUSED[kind](keys.create(stores, Kind(shows_tokens=True)))
    ended = {
        "revoked": keys.revoked,
        "expired": keys.expired,
        "of a deleted organization": lambda stores: keys.orphaned(stores, new_organization()),
    }
    return {"Authorization": f"Bearer {ended[kind](stores)}"}


@pytest.fixture
def nobodys() -> dict[str, str]:
    names = {"userId": "nobody", "orgSlug": "nowhere", "metaId": "x", "eventId": "x", "calendarId": "primary"}
    ids = {"webhookId": f"wh_{0:024x}", "deliveryId": f"msg_{0:032x}", "holdId": f"hold_{0:024x}"}
    ids |= {"keyId": "key_999999999", "connectionId": "0" * 32}
    application = {"tenant": "x", "clientId": "x", "clientSecret": "x"}
    grant = {"robot": "x", "privateKey": "x", "subject": "x", "domain": "x", **application}
    return names | ids | {"provider": "google", "new": "new"} | grant | {"code": "x", "state": "x"}


@pytest.mark.security
def test_without_a_key_in_force_no_route_answers_anything(api, refused: Headers, nobodys, stores):
    before = digest(stores)
    sentences = set()

    for row in ROWS:
        answer = ask(api, row, nobodys, refused)
        assert answer.status_code == 401, row
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        sentences.add(answer.get_data(as_text=True))

    assert len(sentences) == 1
    assert digest(stores) == before


@pytest.mark.parametrize("name", IN_QUERY)
def test_a_key_in_the_query_is_none(api, nobodys, name: str):
    for row in ROWS:
        method, path, more = row.request(nobodys)
        more["query_string"] = {**more["query_string"], name: api.key}
        answer = api.client.open(f"/v1{path}", method=method, **more)
        assert answer.status_code == 401, row
        assert api.key not in answer.text


def test_routes_without_a_key_reveal_no_user(api, nobodys):
    for operation, status in OPEN.items():
        answer = ask(api, Row(operation), nobodys, {})
        assert answer.status_code == status, operation


# --- with one


@pytest.fixture
def caller(app: Flask, stores: Stores) -> Callable[..., Api]:
    """Make a client with a key of some kind, of a tenant when it is bound."""
    return lambda kind, tenant: Api(app.test_client(), keys.create(stores, kind, tenant.slug))


@pytest.mark.security
@pytest.mark.parametrize("kind", BOUND)
def test_what_is_foreign_does_not_exist(caller, new_tenant: Settle, api, stores, kind: str):
    own, theirs = new_tenant(), new_tenant()
    bearer = caller(BOUND[kind], own)
    other = theirs.names | consent(api, theirs)
    # The first request that presents a state consumes it; the code that belongs to it is always sent along.
    mine = own.names | consent(api, own) | {"code": other["code"]}
    before = digest(stores)

    for row in FOREIGN:
        for names in strangers(row, mine, other):
            unknown = names | of_nobody({n: v for n, v in names.items() if v != mine.get(n)})
            foreign, none = (ask(bearer, row, each) for each in (names, unknown))
            assert list(leaks(foreign, theirs.words, str(row.request(names)))) == [], (row, foreign.text)
            assert judged(foreign, names) == judged(none, unknown), row
            expected(BOUND[kind], row, foreign, names)

    assert digest(stores) == before


@pytest.mark.security
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_no_calendar_of_a_foreign_connection_counts_for_a_user(
    caller, new_tenant: Settle, api, stores, method: str
):
    """Neither to a key of the organization nor to one of all: the connection is another user's."""
    own, theirs = new_tenant(), new_tenant()
    foreign = theirs.names["connectionId"]
    unknown = of_nobody({"connectionId": foreign})["connectionId"]
    bearers = (api, caller(Kind(bound=True), own))
    before = digest(stores)

    for bearer in bearers:
        answers = []
        for each in (foreign, unknown):
            body = {"calendars": [{"connectionId": each, "calendarId": "primary"}]}
            answers.append(bearer.call(method, f"/users/{own.user}/availability", json=body))
            assert list(leaks(answers[-1], theirs.words, str(body))) == []
        assert [each.status_code for each in answers] == [400, 400]
        assert answers[0].json == answers[1].json

    assert digest(stores) == before


def expected(rights: Kind, row: Row, answer: TestResponse, names: Mapping[str, str]) -> None:
    """A key without the right gets 403 for everything; one with it gets 404."""
    if not rights.may(row.kind):
        refusal = {"show": NO_TOKENS, "list keys": NO_KEYS, "change keys": NO_KEYS}.get(row.kind, READ_ONLY)
        if row.kind == "change keys" and rights.read_only:
            refusal = READ_ONLY
        assert (answer.status_code, answer.json) == (403, {"data": None, **refusal}), row
        return
    assert answer.status_code == row.foreign, (row, answer.text)
    if row.operation in OF_USERS:
        nobody = {
            "status": "error",
            "error": "User not found",
            "code": "userNotFound",
            "failedCalendars": [],
        }
        assert answer.json == {"data": [{"userId": names["userId"], **nobody}]}
    elif row.foreign == 200:
        assert answer.json is not None
        (nobody,) = answer.json["failedUsers"]
        assert (nobody["userId"], nobody["message"]) == (names["userId"], "User not found")


@pytest.mark.security
@pytest.mark.parametrize("kind", IN_FORCE)
def test_own_resources_are_answered_within_rights_of_the_key(
    caller, new_tenant: Settle, api, stores, kind: str
):
    """The same calls by keys that own the resources: the refusals above depend on the owner alone."""
    rights, own = IN_FORCE[kind], new_tenant()
    bearer = caller(rights, own)

    before = digest(stores)
    for row in ROWS:
        if not rights.may(row.kind):
            assert ask(bearer, row, own.names | {"code": "x", "state": "x"}).status_code == 403, row
    assert digest(stores) == before
    for row in ROWS:
        if rights.may(row.kind):
            names = own.names | (consent(api, own) if "state" in row.names else {})
            answer = ask(bearer, row, names)
            assert answer.status_code == (row.bound if rights.bound and row.bound else row.status), (
                row,
                answer.text,
            )
            if row.ends:
                own = new_tenant()
                bearer = caller(rights, own)
