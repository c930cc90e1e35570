"""Grants of organizations over HTTP, checked by a real worker at the sandbox."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from joserfc.jwk import RSAKey
from sqlalchemy import select

from providers.base import PRIMARY
from store.cache.busy_cache import CalendarKey
from store.sql.models import AuditRecord, OrganizationGrant
from store.sql.queries import connection_rows, organization_grants, organizations
from tests import certificates, rsa_keys
from tests.conftest import stores_of
from tests.people import grant_of
from tests.store.statements import recorded

pytestmark = pytest.mark.usefixtures("worker")

PERMISSIONS = ["Calendars.Read", "MailboxSettings.Read"]


@pytest.fixture
def slug(new_organization) -> str:
    return new_organization()


@pytest.fixture
def acme(sandbox):
    """A Google domain whose administrator has authorized a service account."""
    return sandbox.domain("google", "acme.example", ["ada@acme.example"])


@pytest.fixture
def contoso(sandbox):
    """A Microsoft tenant whose administrator has given an application permissions."""
    return sandbox.domain("microsoft", "contoso.example", ["ada@contoso.example"], scope=PERMISSIONS)


def put(api, slug, provider, body):
    return api.put(f"/organizations/{slug}/grants/{provider}", body)


def refused(answer, code, param=None, status=400):
    assert (answer.status_code, answer.json["code"], answer.json.get("param")) == (status, code, param)
    return answer.json["error"]


def test_a_service_account_is_stored_and_its_key_never_shown(api, slug, acme):
    answer = put(api, slug, "google", grant_of(acme))

    assert answer.status_code == 200, answer.text
    grant = answer.json["data"]
    assert grant == {
        "provider": "google",
        "type": "serviceAccount",
        "email": acme.subject,
        "serviceAccount": acme.service_account_key["client_email"],
        "scope": ["https://www.googleapis.com/auth/calendar"],
        "alive": True,
        "createdAt": grant["createdAt"],
    }
    one = api.get(f"/organizations/{slug}/grants/google")
    every = api.get(f"/organizations/{slug}/grants")
    assert (one.json["data"], every.json["data"]) == (grant, [grant])
    assert "PRIVATE KEY" not in answer.text + one.text + every.text
    assert answer.headers["Cache-Control"] == "no-store"


def test_application_is_stored_with_permissions_of_its_token(api, slug, contoso):
    answer = put(api, slug, "microsoft", grant_of(contoso))

    assert answer.status_code == 200, answer.text
    grant = answer.json["data"]
    assert grant == {
        "provider": "microsoft",
        "type": "application",
        "tenant": contoso.tenant,
        "clientId": contoso.client_id,
        "scope": grant["scope"],
        "alive": True,
        "createdAt": grant["createdAt"],
    }
    assert set(grant["scope"]) == set(PERMISSIONS)
    assert contoso.client_secret not in answer.text


def test_scope_may_be_a_level_or_googles_own_scopes(api, slug, acme):
    scopes = ["https://www.googleapis.com/auth/calendar.readonly"]
    for sent in ("read", scopes):
        assert put(api, slug, "google", grant_of(acme) | {"scope": sent}).json["data"]["scope"] == scopes
    answer = put(api, slug, "google", grant_of(acme) | {"scope": ["openid"]})
    assert "scope" in refused(answer, "validationFailed", "scope")


def test_stored_secret_is_encrypted_and_audit_log_names_grant(api, slug, acme):
    put(api, slug, "google", grant_of(acme))
    stores = stores_of(api.client.application)
    with stores.database.reading() as session:
        row = session.scalars(select(OrganizationGrant).order_by(OrganizationGrant.created_at.desc())).first()
        records = session.scalars(select(AuditRecord).where(AuditRecord.subject == f"{slug}/google")).all()
        sealed = organization_grants.sealed(session, [row.id])[row.id]
    assert b"PRIVATE" not in row.sealed_secret
    assert [each.action for each in records] == ["storeGrant"]
    opened = organization_grants.open_credentials(sealed, stores.keyring)
    assert acme.service_account_key["private_key"][30:60] in opened.secret
    assert "token_uri" not in opened.secret


def test_grant_by_installation_registration_needs_an_unbound_key(api, new_api, slug, sandbox, settings):
    client = settings.providers.microsoft_client_id
    secret = settings.providers.microsoft_client_secret
    tenant = sandbox.domain("microsoft", "ours.example", clientId=client, clientSecret=secret).tenant

    bound = put(new_api(slug), slug, "microsoft", {"tenant": tenant})
    assert "not bound" in refused(bound, "keyBoundToOrganization", status=403)
    answer = put(api, slug, "microsoft", {"tenant": tenant})
    assert answer.status_code == 200, answer.text
    assert "clientId" not in answer.json["data"]


# --- bad input


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"type": "authorized_user"}, "type"),
        ({"type": None}, "type"),
        ({"private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}, "private_key"),
        ({"private_key": ""}, "private_key"),
        ({"private_key": 7}, "private_key"),
        ({"private_key": "x" * 9000}, "private_key"),
        ({"client_email": None}, "client_email"),
        ({"client_email": "robot"}, "client_email"),
        ({"client_email": f"{'r' * 400}@a.example"}, "client_email"),
        ({"private_key_id": {}}, "private_key_id"),
    ],
)
def test_a_key_file_that_is_none_is_refused_with_its_field(api, slug, acme, sandbox, changed, field):
    before = sandbox.requests().total
    key = {**acme.service_account_key, **changed}

    answer = put(api, slug, "google", grant_of(acme) | {"serviceAccountKey": key})

    error = refused(answer, "validationFailed", f"serviceAccountKey.{field}")
    assert error.startswith(f"serviceAccountKey.{field} ")
    assert sandbox.requests().total == before


def with_key(domain, pem: str) -> dict[str, Any]:
    return grant_of(domain) | {"serviceAccountKey": domain.service_account_key | {"private_key": pem}}


def test_a_key_over_4096_bits_is_refused_before_it_is_loaded(api, slug, acme, sandbox):
    body = with_key(acme, rsa_keys.pem(8192))
    before, began = sandbox.requests().total, time.process_time()

    answer = put(api, slug, "google", body)

    # OpenSSL's check of its factors takes seconds.
    assert time.process_time() - began < 1
    error = refused(answer, "validationFailed", "serviceAccountKey.private_key")
    assert error == "serviceAccountKey.private_key must have 1024 to 4096 bits"
    assert sandbox.requests().total == before


def test_a_key_of_4096_bits_is_tried_at_google(api, slug, acme):
    assert "make a new key" in refused(
        put(api, slug, "google", with_key(acme, rsa_keys.pem(4096))), "grantRefused"
    )


def test_a_public_key_and_another_json_file_are_no_key_files(api, slug, acme):
    public = RSAKey.generate_key(2048).as_pem(private=False).decode()
    key = {**acme.service_account_key, "private_key": public}
    refused(
        put(api, slug, "google", grant_of(acme) | {"serviceAccountKey": key}),
        "validationFailed",
        "serviceAccountKey.private_key",
    )
    for other in ("text", ["list"], None):
        answer = put(api, slug, "google", grant_of(acme) | {"serviceAccountKey": other})
        refused(answer, "validationFailed", "serviceAccountKey")


def test_a_wrong_private_key_is_refused_by_google(api, slug, acme):
    other = RSAKey.generate_key(2048).as_pem(private=True).decode()
    key = {**acme.service_account_key, "private_key": other}
    answer = put(api, slug, "google", grant_of(acme) | {"serviceAccountKey": key})
    assert "make a new key" in refused(answer, "grantRefused")
    assert api.get(f"/organizations/{slug}/grants").json["data"] == []


def test_a_subject_outside_the_domain_or_unknown_there_is_refused(api, slug, acme, sandbox):
    outside = put(api, slug, "google", grant_of(acme) | {"subject": "eve@other.example"})
    assert outside.json["code"] == "grantRefused"
    unknown = put(api, slug, "google", grant_of(acme) | {"subject": "nobody@acme.example"})
    assert "no active account" in refused(unknown, "grantRefused", "subject")


def test_scopes_that_are_not_authorized_are_refused_with_what_to_do(api, slug, sandbox):
    narrow = sandbox.domain(
        "google", "narrow.example", scope=["https://www.googleapis.com/auth/calendar.readonly"]
    )
    answer = put(api, slug, "google", grant_of(narrow) | {"scope": "write"})
    assert "Domain-wide delegation" in refused(answer, "grantRefused")


def test_wrong_secret_expired_secret_and_tenant_have_own_errors(api, slug, contoso, sandbox):
    wrong = put(api, slug, "microsoft", grant_of(contoso) | {"clientSecret": "wrong"})
    assert "Certificates & secrets" in refused(wrong, "grantRefused", "clientSecret")
    tenant = put(
        api, slug, "microsoft", grant_of(contoso) | {"tenant": "00000000-0000-4000-8000-000000000000"}
    )
    assert "tenant" in refused(tenant, "grantRefused")
    sandbox.change_domain("contoso.example", secretExpired=True)
    expired = put(api, slug, "microsoft", grant_of(contoso))
    assert "has expired" in refused(expired, "grantRefused", "clientSecret")


def test_an_application_that_reaches_no_calendar_is_refused(api, slug, sandbox):
    domain = sandbox.domain("microsoft", "mail.example", scope=["MailboxSettings.Read"])
    answer = put(api, slug, "microsoft", grant_of(domain))
    assert "Calendars.ReadBasic.All" in refused(answer, "grantRefused")


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"tenant": "common"}, "tenant"),
        ({"tenant": "Organizations"}, "tenant"),
        ({"tenant": "../evil"}, "tenant"),
        ({"tenant": "evil.example/"}, "tenant"),
        ({"tenant": "evil.example\n"}, "tenant"),
        ({"tenant": None}, "tenant"),
        ({"clientId": "a b"}, "clientId"),
        ({"clientId": None}, "clientId"),
        ({"clientSecret": None}, "clientSecret"),
    ],
)
def test_application_fields_are_checked_before_any_call(api, slug, contoso, sandbox, changed, param):
    before = sandbox.requests().total
    answer = put(api, slug, "microsoft", grant_of(contoso) | changed)
    refused(answer, "validationFailed", param)
    assert sandbox.requests().total == before


@pytest.fixture(scope="module")
def certificate():
    """A certificate and its private key."""
    return certificates.of_application()


def test_an_application_is_stored_by_its_certificate_which_is_never_shown(
    api, slug, sandbox, certificate, stores
):
    domain = sandbox.domain("microsoft", "sealed.example", ["ada@sealed.example"], certificate=certificate[0])
    digest = sha256(x509.load_pem_x509_certificate(certificate[0].encode()).public_bytes(Encoding.DER))
    body = {
        "tenant": domain.tenant,
        "clientId": domain.client_id,
        "certificate": "".join(certificate),
        "thumbprint": digest.hexdigest().upper(),
    }

    answer = put(api, slug, "microsoft", body)

    assert answer.status_code == 200, answer.json
    assert answer.json["data"]["clientId"] == domain.client_id
    assert "BEGIN" not in answer.text + api.get(f"/organizations/{slug}/grants").text
    with stores.database.reading() as session:
        rows = session.scalars(select(OrganizationGrant.sealed_secret)).all()
    assert not any(b"BEGIN" in row for row in rows if row)


def test_a_certificate_that_is_not_the_applications_is_refused(api, slug, sandbox, certificate):
    domain = sandbox.domain("microsoft", "other.example", certificate=certificates.of_application()[0])
    body = {"tenant": domain.tenant, "clientId": domain.client_id, "certificate": "".join(certificate)}

    error = refused(put(api, slug, "microsoft", body), "grantRefused", "certificate")

    assert "upload it under Certificates & secrets" in error


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"certificate": "x"}, "certificate"),
        ({"certificate": "\t"}, "certificate"),
        ({"certificate": "x" * 32_769}, "certificate"),
        ({"certificate": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----"}, "certificate"),
        ({"clientSecret": "x"}, "certificate"),
        ({"clientId": None}, "clientId"),
        ({"thumbprint": "AA"}, "thumbprint"),
        ({"thumbprint": "AB" * 20}, "thumbprint"),
        ({"certificate": None, "clientSecret": "x", "thumbprint": "AB" * 20}, "certificate"),
        ({"certificate": None}, "clientSecret"),
    ],
)
def test_the_fields_of_a_certificate_are_checked_before_any_call(
    api, slug, sandbox, certificate, changed, param
):
    body = {"tenant": "contoso.example", "clientId": "x", "certificate": "".join(certificate)}

    refused(put(api, slug, "microsoft", body | changed), "validationFailed", param)

    assert sandbox.requests().total == 0


def test_an_expired_certificate_is_refused_with_its_day(api, slug):
    expired = "".join(certificates.of_application(days=-1))
    body = {"tenant": "contoso.example", "clientId": "x", "certificate": expired}

    answer = put(api, slug, "microsoft", body)

    assert "has expired on 20" in refused(answer, "validationFailed", "certificate")


def test_a_provider_that_is_down_is_no_refusal_and_nothing_is_stored(api, slug, acme, sandbox):
    sandbox.fault(provider="google", operation="google.token", status=503, retry_after=60)
    assert refused(put(api, slug, "google", grant_of(acme)), "providerError", status=502)
    sandbox.clear_faults()
    sandbox.fault(provider="google", operation="google.token", status=429, retry_after=60)
    assert refused(put(api, slug, "google", grant_of(acme)), "rateLimited", status=429)
    assert api.get(f"/organizations/{slug}/grants").json["data"] == []


# --- members


@pytest.fixture
def granted(api, slug, acme):
    assert put(api, slug, "google", grant_of(acme)).status_code == 200
    return slug


def members(*pairs):
    return {"members": [{"userId": user, "email": email} for user, email in pairs]}


def send(api, slug, body, provider="google", **more):
    return api.post(f"/organizations/{slug}/grants/{provider}/members", body, **more)


def test_an_import_makes_users_memberships_and_connections_once(api, granted, new_user, unique):
    new, there = unique("new"), new_user()
    body = members((new, f"{new}@acme.example"), (there, f"{there}@ACME.example"))

    first, again = (send(api, granted, body) for _ in range(2))

    assert first.json["data"] == {"created": [new, there], "changed": [], "unchanged": []}
    assert again.json["data"] == {"created": [], "changed": [], "unchanged": [new, there]}
    connection = api.get(f"/users/{new}/oauth/google").json["data"]
    assert connection == {
        "provider": "google",
        "email": f"{new}@acme.example",
        "alive": True,
        "expiresAt": None,
        "scope": ["https://www.googleapis.com/auth/calendar"],
        "type": "delegated",
        "accessToken": None,
        "refreshToken": None,
    }
    listed = api.get(f"/organizations/{granted}/members").json["data"]
    assert {each["id"] for each in listed} == {new, there}
    assert {one["type"] for each in listed for one in each["oauthConnections"]} == {"delegated"}


def test_an_import_changes_another_address_and_a_personal_connection(api, granted, sandbox, new_user, unique):
    moved, account = unique("moved"), sandbox.account("google", "own@acme.example")
    personal = new_user(account, slugs=(granted,), obtained=True)
    send(api, granted, members((moved, "old@acme.example")))
    sandbox.forget_requests()

    answer = send(api, granted, members((moved, "new@acme.example"), (personal, "own@acme.example")))

    assert answer.json["data"] == {"created": [], "changed": [moved, personal], "unchanged": []}
    assert api.get(f"/users/{personal}/oauth/google").json["data"]["type"] == "delegated"
    # The person's own consent has no use any more.
    assert sandbox.requests().by_operation.get("google.revoke") == 1


@pytest.mark.parametrize(
    ("pairs", "param"),
    [
        ([("ada-x", "a@acme.example"), ("bob-x", "A@acme.example")], "members.1.email"),
        ([("ada-x", "a@acme.example"), ("ada-x", "b@acme.example")], "members.1.userId"),
        ([("ada-x", "a@acme.example"), ("bob-x", "b@other.example")], "members.1.email"),
        ([("ada-x", "a@sub.acme.example")], "members.0.email"),
        ([("ada-x", "a@acme.example@other.example")], "members.0.email"),
        ([("a", "a@acme.example")], "members.0.userId"),
        ([("ada-x", "a")], "members.0.email"),
        ([(f"user-{n}", f"u{n}@acme.example") for n in range(1001)], "members"),
    ],
)
def test_an_import_with_a_mistake_names_it_and_does_nothing(api, granted, pairs, param):
    answer = send(api, granted, members(*pairs))
    error = refused(answer, "validationFailed", param)
    first = param.split(".")[0]
    assert error.startswith(first)
    assert api.get(f"/organizations/{granted}/members").json["data"] == []
    assert api.get("/users/ada-x").status_code == 404


def test_an_import_that_breaks_in_the_middle_leaves_nothing(api, granted, unique, monkeypatch, stores):
    """The connection to the database is lost before the commit."""
    name = unique("half")

    def broken(*_: object, **__: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr("app.accounts.delegations.audit.record", broken)
        assert send(api, granted, members((name, f"{name}@acme.example"))).status_code == 500
    assert api.get(f"/users/{name}").status_code == 404
    again = send(api, granted, members((name, f"{name}@acme.example")))
    assert again.json["data"]["created"] == [name]


def test_an_import_with_an_idempotency_key_answers_as_at_first(api, granted, unique):
    name = unique("once")
    body, once = members((name, f"{name}@acme.example")), {"Idempotency-Key": unique("key")}
    first, again = (send(api, granted, body, headers=once) for _ in range(2))
    assert first.json == again.json
    assert again.headers["Idempotency-Replayed"] == "true"


def test_without_a_grant_there_is_nothing_to_import_by(api, slug):
    refused(send(api, slug, members()), "grantNotFound", status=404)
    refused(api.get(f"/organizations/{slug}/grants/google"), "grantNotFound", status=404)
    refused(api.delete(f"/organizations/{slug}/grants/google"), "grantNotFound", status=404)


def test_a_bound_key_imports_its_own_members_and_new_users_alone(
    api, new_api, granted, new_user, new_organization, unique
):
    bound = new_api(granted)
    new, own = unique("new"), new_user(slugs=(granted,))
    shared = new_user(slugs=(granted, new_organization()))
    foreign = new_user()
    pairs = [(new, f"{new}@acme.example"), (own, f"{own}@acme.example")]
    for user, code, status in (
        (foreign, "userExists", 409),
        (shared, "userInOtherOrganizations", 403),
    ):
        answer = send(bound, granted, members(*pairs, (user, f"{user}@acme.example")))
        refused(answer, code, "members.2.userId", status)
        assert api.get(f"/users/{new}").status_code == 404
    assert send(bound, granted, members(*pairs)).json["data"]["created"] == [new, own]


def test_a_thousand_members_take_as_many_statements_as_two(api, new_api, granted, unique):
    stores = stores_of(api.client.application)
    bound = new_api(granted)

    def count(by, number, domain="acme.example"):
        name = unique("many")
        pairs = [(f"{name}-{n}", f"{name}-{n}@{domain}") for n in range(number)]
        counts = []
        for _ in range(2):
            # Whether the API key is cached must not make a difference.
            stores.versioned_cache.bump_version()
            with recorded(stores.database) as statements:
                assert send(by, granted, members(*pairs)).status_code == 200
            counts.append(len(statements))
        return counts

    for by in (api, bound):
        first, again = count(by, 1000)
        assert [first, again] == count(by, 2)
        assert again < first <= 20


# --- one connection


def delegate(api, user, slug, email, provider="google"):
    body = {"type": "delegated", "email": email, "organization": slug}
    return api.post(f"/users/{user}/oauth/{provider}", body)


def test_one_member_is_connected_by_the_grant(api, granted, new_user):
    user = new_user(slugs=(granted,))
    answer = delegate(api, user, granted, "ada@acme.example")
    assert answer.status_code == 201, answer.text
    assert (answer.json["data"]["type"], answer.json["data"]["alive"]) == ("delegated", True)
    assert answer.json["data"] == api.get(f"/users/{user}/oauth/google").json["data"]
    again = delegate(api, user, granted, "ada@acme.example")
    assert again.json == answer.json


def test_a_grant_that_is_too_narrow_is_for_its_administrator_to_widen(api, slug, acme, new_user):
    assert put(api, slug, "google", grant_of(acme) | {"scope": "read"}).status_code == 200
    user = new_user(slugs=(slug,))
    assert delegate(api, user, slug, "ada@acme.example").status_code == 201
    when = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}

    answer = api.post(f"/users/{user}/calendar/events/google/primary", {"subject": "New", **when})

    assert (answer.status_code, answer.json["code"]) == (403, "insufficientScopes")
    assert answer.json["error"] == (
        "calendar.events.insert needs the scope level write: the administrator of the organization has to "
        "enter its grant again with https://www.googleapis.com/auth/calendar"
    )


def test_what_one_connection_cannot_be_made_of(api, granted, new_user, new_organization):
    user, stranger = new_user(slugs=(granted,)), new_user()
    outside = delegate(api, user, granted, "ada@other.example")
    assert "acme.example" in refused(outside, "validationFailed", "email")
    refused(delegate(api, stranger, granted, "ada@acme.example"), "memberNotFound", status=404)
    refused(delegate(api, user, "nowhere", "ada@acme.example"), "organizationNotFound", status=404)
    refused(delegate(api, user, granted, "ada@acme.example", "microsoft"), "grantNotFound", status=404)
    refused(delegate(api, user, new_organization(), "ada@acme.example"), "grantNotFound", status=404)
    delegated = {"type": "delegated", "email": "ada@acme.example", "organization": granted}
    for missing, body in (
        ("email", delegated | {"email": None}),
        ("organization", {name: delegated[name] for name in ("type", "email")}),
        ("accessToken", {"scope": ["read"]}),
        ("scope", {"accessToken": "x"}),
    ):
        refused(api.post(f"/users/{user}/oauth/google", body), "validationFailed", missing)


def test_a_delegated_connection_has_no_tokens_to_show(api, new_api, granted, new_user):
    user = new_user(slugs=(granted,))
    delegate(api, user, granted, "ada@acme.example")
    teller = new_api(shows_tokens=True)
    shown = teller.get(f"/users/{user}/oauth/google", showToken="true").json["data"]
    assert (shown["accessToken"], shown["refreshToken"]) == (None, None)
    refused(teller.get(f"/users/{user}/oauth/google/token"), "connectionDelegated", status=409)


# --- the end of grants


def test_removed_grant_removes_connections_and_revokes_nothing(api, granted, sandbox, new_user, unique):
    personal = new_user(sandbox.account("google", "own@acme.example"), slugs=(granted,), obtained=True)
    delegated = unique("ada")
    send(api, granted, members((delegated, "ada@acme.example")))
    sandbox.forget_requests()

    answer = api.delete(f"/organizations/{granted}/grants/google")

    assert answer.json == {"data": {"success": True}}
    assert api.get(f"/users/{delegated}/oauth").json["data"] == []
    assert api.get(f"/users/{personal}/oauth/google").json["data"]["type"] == "oauth2"
    assert sandbox.requests().total == 0
    assert {each["id"] for each in api.get(f"/organizations/{granted}/members").json["data"]} == {
        personal,
        delegated,
    }


def test_nothing_stays_cached_of_the_members_of_a_removed_grant(api, granted, unique):
    name = unique("ada")
    send(api, granted, members((name, "ada@acme.example")))
    assert api.get(f"/users/{name}/calendar/busy", start="2026-12-03", end="2026-12-04").status_code == 200
    stores = stores_of(api.client.application)
    with stores.database.reading() as session:
        (ref,) = connection_rows.of_user(session, name, organization_id=None)
    thursday = 1_796_256_000_000

    def cached():
        known = stores.busy.load([CalendarKey(ref.id, PRIMARY)], thursday, thursday + 1)
        return not known.missing, bool(stores.calendar_lists.load([ref.id]))

    assert cached() == (True, True)

    assert api.delete(f"/organizations/{granted}/grants/google").status_code == 200

    assert cached() == (False, False)


def test_a_connection_alone_can_be_removed_and_nothing_is_revoked(api, granted, sandbox, unique):
    name = unique("ada")
    send(api, granted, members((name, "ada@acme.example")))
    sandbox.forget_requests()
    assert api.delete(f"/users/{name}/oauth/google").status_code == 200
    assert sandbox.requests().total == 0


def test_ended_grant_has_a_reason_and_a_new_one_revives_members(api, granted, acme, unique):
    name = unique("ada")
    send(api, granted, members((name, "ada@acme.example")))
    stores = stores_of(api.client.application)
    with stores.database.writing() as session:
        number = organizations.ids(session, [granted], organization_id=None)[granted]
        (grant,) = organization_grants.of_organization(session, number)
        organization_grants.mark_dead(session, grant.id, "The delegation was withdrawn")

    shown = api.get(f"/organizations/{granted}/grants/google").json["data"]
    assert (shown["alive"], shown["endedBecause"]) == (False, "The delegation was withdrawn")
    assert "endedAt" in shown
    assert api.get(f"/users/{name}/oauth/google").json["data"]["alive"] is False
    day = {"start": "2026-12-03", "end": "2026-12-04"}
    busy = api.get(f"/users/{name}/calendar/busy", **day)
    refused(busy, "authorizationInvalid", status=401)

    assert put(api, granted, "google", grant_of(acme)).json["data"]["alive"] is True
    assert api.get(f"/users/{name}/oauth/google").json["data"]["alive"] is True


def test_the_token_of_a_replaced_grant_is_not_used_again(api, granted, acme, sandbox, new_user):
    """The next read requests a token by the new grant."""
    user = new_user(slugs=(granted,))
    assert delegate(api, user, granted, "ada@acme.example").status_code == 201
    day = {"start": "2026-12-03", "end": "2026-12-04"}

    def tokens_of_a_read() -> int:
        sandbox.forget_requests()
        fresh = {"Cache-Control": "no-cache"}
        assert api.get(f"/users/{user}/calendar/busy", headers=fresh, **day).status_code == 200
        return sandbox.requests().by_operation.get("google.token", 0)

    assert tokens_of_a_read() > 0
    assert tokens_of_a_read() == 0

    assert put(api, granted, "google", grant_of(acme)).status_code == 200

    assert tokens_of_a_read() > 0


def test_a_grant_for_another_domain_does_not_take_over_its_members(api, granted, sandbox, unique):
    other = grant_of(sandbox.domain("google", "globex.example"))
    send(api, granted, members((unique("ada"), "ada@acme.example")))

    sentence = refused(put(api, granted, "google", other), "validationFailed", "subject")
    assert (
        sentence
        == "subject must be in acme.example, the domain of the grant's members: delete the grant first"
    )
    assert api.get(f"/organizations/{granted}/grants/google").json["data"]["email"].endswith("@acme.example")

    assert api.delete(f"/organizations/{granted}/grants/google").status_code == 200
    assert put(api, granted, "google", other).status_code == 200


def test_a_grant_without_members_is_replaced_by_one_for_another_domain(api, granted, sandbox):
    other = sandbox.domain("google", "globex.example")
    answer = put(api, granted, "google", grant_of(other))
    assert (answer.status_code, answer.json["data"]["email"]) == (200, other.subject)


def test_leaving_member_loses_the_delegated_connection(api, granted, unique):
    name = unique("ada")
    send(api, granted, members((name, "ada@acme.example")))
    assert api.delete(f"/organizations/{granted}/members/{name}").status_code == 200
    assert api.get(f"/users/{name}/oauth").json["data"] == []


# --- tenancy


def test_a_key_of_another_organization_reaches_no_grant(new_api, granted, new_organization, acme):
    other = new_api(new_organization())
    for call in (
        lambda: other.get(f"/organizations/{granted}/grants"),
        lambda: other.get(f"/organizations/{granted}/grants/google"),
        lambda: other.delete(f"/organizations/{granted}/grants/google"),
        lambda: put(other, granted, "google", grant_of(acme)),
        lambda: send(other, granted, members()),
    ):
        refused(call(), "organizationNotFound", status=404)


def test_shared_member_is_not_read_by_grant_of_another_tenant(
    api, new_api, granted, new_organization, unique
):
    name, theirs = unique("ada"), new_organization()
    send(api, granted, members((name, "ada@acme.example")))
    api.post(f"/organizations/{theirs}/members", {"userIds": [name]})
    day = {"start": "2026-12-03", "end": "2026-12-04"}
    theirs_alone = new_api(theirs)
    refused(theirs_alone.get(f"/users/{name}/calendar/busy", **day), "noConnectedCalendars", status=404)
    refused(delegate(theirs_alone, name, granted, "ada@acme.example"), "userInOtherOrganizations", status=403)
