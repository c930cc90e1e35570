"""Grants of organizations on the pages: entered and tested by a real worker, shown, replaced and removed."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from io import BytesIO

import pytest

from providers.microsoft.certificates import load
from store.sql.queries import organization_grants, organizations
from tests import certificates
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words
from tests.people import grant_of

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", ["google", "microsoft"])


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
    return sandbox.domain("microsoft", "contoso.example", ["ada@contoso.example"])


def google_form(domain, **changed):
    grant = grant_of(domain)
    return {
        "key": json.dumps(grant["serviceAccountKey"]),
        "subject": domain.subject,
        "scope": "write",
    } | changed


def microsoft_form(domain, **changed):
    return grant_of(domain) | changed


def path(slug, provider="google"):
    return f"/organizations/{slug}/grants/{provider}"


def card(page, title):
    """The part of an organization's page that shows the grant of a provider."""
    (found,) = [
        each for each in page.html.select("section[aria-labelledby=grants] .connection") if title in each.h3
    ]
    return found


def facts(section):
    return {words(each): words(each.find_next("dd")) for each in section.find_all("dt")}


def stored(stores, slug):
    with stores.database.reading() as session:
        number = organizations.ids(session, [slug], organization_id=None)[slug]
        return organization_grants.of_organization(session, number)


def end(stores, slug, because):
    with stores.database.writing() as session:
        for each in stored(stores, slug):
            organization_grants.mark_dead(session, each.id, because)


def test_an_organization_without_grants_offers_to_enter_them(signed_in, slug):
    page = signed_in.get(f"/organizations/{slug}")

    for title in ("Google", "Microsoft"):
        section = card(page, title)
        assert words(section.select_one(".badge")) == "no grant"
        link = section.find("a", href=f"/dashboard{path(slug, title.lower())}")
        assert words(link) == f"Enter a grant of {title}"
        assert section.find("form") is None
        assert signed_in.get(link["href"]).heading == f"Grant of {title}"


def test_a_service_account_is_tested_stored_and_shown_without_its_key(signed_in, stores, slug, acme):
    page = signed_in.do(path(slug), google_form(acme, subject=f" {acme.subject} "))

    assert page.notices == [
        "Google accepts the grant, and it is stored. Access: Calendars and events: reading and writing. "
        "Import its members next."
    ]
    section = card(page, "Google")
    assert words(section.select_one(".badge")) == "active"
    shown = facts(section)
    assert shown.pop("First stored")
    assert shown == {
        "Subject": acme.subject,
        "Service account": acme.service_account_key["client_email"],
        "Access": "Calendars and events: reading and writing",
        "Scopes": "https://www.googleapis.com/auth/calendar",
        "Members": "0 delegated connections",
    }
    assert records(stores, f"{slug}/google") == [("administrator ada", "storeGrant", f"{slug}/google")]
    again = signed_in.get(path(slug))
    assert again.heading == "Replace the grant of Google"
    assert again.html.find(id="f-subject")["value"] == acme.subject
    assert "PRIVATE KEY" not in page.text + again.text


def test_the_key_file_may_be_uploaded(signed_in, stores, slug, acme):
    content = b"\xef\xbb\xbf" + json.dumps(acme.service_account_key).encode()
    form = google_form(acme, key="", keyFile=(BytesIO(content), "key.json"), scope="free-busy")

    page = signed_in.do(path(slug), form)

    assert "Access: Free and busy times only" in page.notices[0]
    selected = signed_in.get(path(slug)).html.select_one("#f-scope option[selected]")
    assert selected["value"] == "free-busy"


def test_an_application_is_tested_stored_and_shown_without_its_secret(signed_in, slug, contoso):
    page = signed_in.do(path(slug, "microsoft"), microsoft_form(contoso))

    assert page.notices[0].startswith("Microsoft accepts the grant, and it is stored.")
    shown = facts(card(page, "Microsoft"))
    assert (shown["Tenant"], shown["Application"]) == (contoso.tenant, contoso.client_id)
    assert "Calendars.ReadWrite" in shown["Permissions"]
    again = signed_in.get(path(slug, "microsoft"))
    assert again.html.find(id="f-tenant")["value"] == contoso.tenant
    assert again.html.find(id="f-clientSecret")["value"] == ""
    assert contoso.client_secret not in page.text + again.text


@pytest.fixture(scope="module")
def certificate():
    """A certificate of an application, and its private key."""
    return certificates.of_application()


@pytest.fixture
def certified(sandbox, certificate):
    """A Microsoft tenant that knows an application by a certificate."""
    return sandbox.domain("microsoft", "sealed.example", ["ada@sealed.example"], certificate=certificate[0])


def certificate_form(domain, pem, **changed):
    return {"tenant": domain.tenant, "clientId": domain.client_id, "certificate": pem} | changed


@pytest.mark.parametrize("how", ["pasted", "a file", "with its thumbprint"])
def test_an_application_is_stored_by_its_certificate(
    signed_in, stores, slug, certified, certificate, sandbox, how
):
    pem = "\r\n".join("".join(certificate).split("\n"))
    form = certificate_form(certified, pem)
    if how == "a file":
        form["certificateFile"] = (BytesIO(form.pop("certificate").encode()), "application.pem")
    elif how == "with its thumbprint":
        form["thumbprint"] = load(pem).thumbprints[1].upper()

    page = signed_in.do(path(slug, "microsoft"), form)

    assert page.notices[0].startswith("Microsoft accepts the grant, and it is stored.")
    assert facts(card(page, "Microsoft"))["Application"] == certified.client_id
    (grant,) = stored(stores, slug)
    assert grant.tenant == certified.tenant
    again = signed_in.get(path(slug, "microsoft"))
    assert again.html.find(id="f-certificate").get_text() == ""
    for secret in (certificate[1][60:100], "PRIVATE KEY-----"):
        assert secret not in page.text + again.text


def test_a_certificate_that_microsoft_refuses_has_its_error_beside_it(signed_in, slug, certified, caplog):
    caplog.set_level(logging.DEBUG)
    other = certificates.of_application()

    page = refused(signed_in, slug, "microsoft", certificate_form(certified, "".join(other)))

    assert "Microsoft does not know the certificate" in page.error_of("certificate")
    assert page.error_of("clientSecret") is None
    assert page.html.find(id="f-clientId")["value"] == certified.client_id
    assert other[1][60:100] not in page.text + caplog.text


def test_installation_registration_is_used_without_a_client_id(signed_in, slug, sandbox, settings):
    ours = {
        "clientId": settings.providers.microsoft_client_id,
        "clientSecret": settings.providers.microsoft_client_secret,
    }
    tenant = sandbox.domain("microsoft", "ours.example", **ours).tenant

    page = signed_in.do(path(slug, "microsoft"), {"tenant": tenant})

    assert facts(card(page, "Microsoft"))["Application"] == "the registration of this installation"


def test_without_a_registration_an_application_is_required(
    browser_of, administrator, new_app, settings, slug
):
    bare = new_app(providers=replace(settings.providers, microsoft_client_id=""))
    browser = browser_of(administrator, at=bare)

    page = browser.get(path(slug, "microsoft"))

    assert "This installation has no registration with Microsoft" in words(page.html.find(id="h-clientId"))
    assert page.html.find(id="f-clientId").has_attr("required")
    page = refused(browser, slug, "microsoft", {"tenant": "contoso.example"})
    assert page.error_of("clientId").startswith(
        "Client ID is required: this installation has no registration"
    )


# --- refused


def refused(signed_in, slug, provider, form, status=400):
    """The page with the form again, after checks that no secret is in it."""
    page = signed_in.post(path(slug, provider), form)
    assert page.status == status, page.text
    assert page.html.select_one(".notice[role=alert]") is not None
    for name in ("key", "clientSecret", "certificate"):
        field = page.html.find(id=f"f-{name}")
        assert field is None or not (field.get("value") or field.get_text())
    return page


def test_unauthorized_service_account_is_refused_with_advice(signed_in, stores, slug, sandbox, acme):
    sandbox.withdraw("acme.example")

    page = refused(signed_in, slug, "google", google_form(acme))

    assert page.notices == ["Nothing was stored: Google refuses the grant."]
    assert "under Domain-wide delegation in the Admin console" in page.error_of("key")
    assert page.html.find(id="f-subject")["value"] == acme.subject
    assert stored(stores, slug) == []


def test_a_refusal_is_beside_the_field_that_it_concerns(signed_in, slug, sandbox, acme, contoso):
    page = refused(signed_in, slug, "google", google_form(acme, subject="nobody@acme.example"))
    assert "check the address" in page.error_of("subject")
    assert page.error_of("key") is None

    sandbox.change_domain("contoso.example", secretExpired=True)
    page = refused(signed_in, slug, "microsoft", microsoft_form(contoso))
    assert "has expired" in page.error_of("clientSecret")
    assert page.html.find(id="f-clientId")["value"] == contoso.client_id


@pytest.mark.parametrize(
    ("changed", "field", "error"),
    [
        ({"key": ""}, "key", "Key file is required"),
        ({"key": "{"}, "key", "Key file is no JSON"),
        ({"key": "[]"}, "key", "Key file is no JSON"),
        ({"key": '{"type": "authorized_user"}'}, "key", "Key file: type is not service_account"),
        ({"key": '{"type": "service_account"}'}, "key", "Key file: client_email is missing"),
        ({"subject": ""}, "subject", "Subject is required."),
        ({"subject": "ada"}, "subject", "Subject must be an e-mail address"),
        ({"scope": "all"}, "scope", "Access must be one of"),
    ],
)
def test_form_error_is_shown_without_a_call_to_google(signed_in, slug, acme, sandbox, changed, field, error):
    before = sandbox.requests().total

    page = refused(signed_in, slug, "google", google_form(acme, **changed))

    assert page.error_of(field).startswith(error)
    assert page.notices == ["Please correct the highlighted fields."]
    assert sandbox.requests().total == before


@pytest.mark.parametrize(
    ("changed", "field", "error"),
    [
        ({"tenant": ""}, "tenant", "Tenant is required."),
        ({"tenant": "common"}, "tenant", "Tenant must be one tenant"),
        ({"tenant": "../evil"}, "tenant", "Tenant must be the Directory (tenant) ID or a domain."),
        ({"clientId": ""}, "clientId", "Client ID is required: enter"),
        ({"clientSecret": ""}, "clientSecret", "Client secret is required: enter"),
    ],
)
def test_form_error_is_shown_without_a_call_to_microsoft(
    signed_in, slug, contoso, sandbox, changed, field, error
):
    before = sandbox.requests().total

    page = refused(signed_in, slug, "microsoft", microsoft_form(contoso, **changed))

    assert page.error_of(field).startswith(error)
    assert sandbox.requests().total == before


@pytest.mark.parametrize(
    ("changed", "field", "error"),
    [
        ({"certificate": "none"}, "certificate", "Certificate must hold a certificate and its private key"),
        ({"certificate": "é"}, "certificate", "Certificate must be PEM."),
        ({"certificateFile": b"\xff\x00"}, "certificate", "Certificate must be PEM."),
        ({"expired": True}, "certificate", "Certificate has expired on"),
        ({"clientSecret": "one"}, "certificate", "Certificate must be absent beside a client secret"),
        ({"clientId": ""}, "clientId", "Client ID is required: enter"),
        ({"thumbprint": "ab"}, "thumbprint", "Thumbprint must be the SHA-1 or SHA-256"),
        ({"thumbprint": "ab" * 20}, "thumbprint", "Thumbprint is not that of the certificate"),
        (
            {"certificate": "", "clientSecret": "one", "thumbprint": "ab" * 20},
            "certificate",
            "Certificate is required with a thumbprint",
        ),
        ({"certificate": ""}, "clientSecret", "Client secret is required: enter"),
    ],
)
def test_a_form_with_a_wrong_certificate_is_shown_without_a_call_to_microsoft(
    signed_in, slug, certified, certificate, sandbox, changed, field, error
):
    before, changed = sandbox.requests().total, dict(changed)
    pem = "".join(certificates.of_application(days=-1) if changed.pop("expired", False) else certificate)
    if content := changed.get("certificateFile"):
        changed |= {"certificate": "", "certificateFile": (BytesIO(content), "application.pem")}

    page = refused(signed_in, slug, "microsoft", certificate_form(certified, pem, **changed))

    assert page.error_of(field).startswith(error)
    assert certificate[1][60:100] not in page.text
    assert sandbox.requests().total == before


def test_a_provider_that_is_down_is_no_refusal(signed_in, stores, slug, acme, sandbox):
    sandbox.fault(provider="google", operation="google.token", status=503, retry_after=60)

    page = refused(signed_in, slug, "google", google_form(acme), 502)

    (notice,) = page.notices
    assert notice.startswith("Nothing was stored. ")
    assert notice.endswith("Try again in a moment.")
    assert page.html.find(id="f-subject")["value"] == acme.subject
    assert stored(stores, slug) == []


@BOTH
def test_secrets_are_not_logged(signed_in, slug, acme, contoso, sandbox, caplog, provider):
    caplog.set_level(logging.DEBUG)
    form = google_form(acme) if provider == "google" else microsoft_form(contoso)
    for _ in range(2):
        signed_in.do(path(slug, provider), form)
        sandbox.withdraw("acme.example")
        sandbox.withdraw("contoso.example")

    assert acme.service_account_key["private_key"][30:60] not in caplog.text
    assert contoso.client_secret not in caplog.text


# --- replaced, ended, removed


@pytest.fixture
def granted(signed_in, slug, acme) -> str:
    assert signed_in.post(path(slug), google_form(acme)).status == 303
    return slug


def test_ended_grant_shows_a_reason_and_can_be_entered_again(signed_in, stores, granted, acme):
    end(stores, granted, "The delegation was withdrawn")

    section = card(signed_in.get(f"/organizations/{granted}"), "Google")

    assert words(section.select_one(".badge")) == "ended"
    notice = words(section.select_one(".notice"))
    assert notice.startswith("Google has refused this grant since ")
    assert "The delegation was withdrawn . It has to be entered again to be used." in notice
    link = section.find("a", href=f"/dashboard{path(granted)}")
    assert words(link) == "Enter again the grant of Google"

    signed_in.do(path(granted), google_form(acme))
    assert words(card(signed_in.get(f"/organizations/{granted}"), "Google").select_one(".badge")) == "active"


def test_removing_a_grant_is_confirmed_with_its_connection_count(signed_in, stores, api, granted, unique):
    users = [unique("ada"), unique("bruno")]
    text = "\n".join(f"{each},{each}@acme.example" for each in users)
    page = signed_in.do(f"{path(granted)}/members/import", {"members": text})
    section = card(page, "Google")
    (form,) = section.find_all("form")

    assert facts(section)["Members"] == "2 delegated connections"
    questions = [each["data-confirm"] for each in page.html.select("form[data-confirm]")]
    leaving = "from this organization? The user stays, and is not read by the organization's grant any more."
    assert [f"Remove {each} {leaving}" in questions for each in users] == [True, True]
    assert "and the grants with 2 delegated connections. The users stay." in questions[-1]
    assert form["data-confirm"].startswith(
        "Remove the grant of Google? 2 delegated connections are deleted with it. Users and memberships stay."
    )

    page = signed_in.do(form["action"])

    assert page.notices[0].startswith("The grant of Google is removed, with its delegated connections.")
    assert words(card(page, "Google").select_one(".badge")) == "no grant"
    assert api.get(f"/users/{users[0]}/oauth").json["data"] == []
    assert {each["id"] for each in api.get(f"/organizations/{granted}/members").json["data"]} == set(users)
    assert records(stores, f"{granted}/google")[0] == (
        "administrator ada",
        "deleteGrant",
        f"{granted}/google",
    )
    assert signed_in.do(form["action"]).notices == ["The grant of Google was already removed."]


# --- who may


def test_unknown_organizations_and_providers_are_no_pages(signed_in):
    for where in (path("nowhere-at-all"), path("<b>"), f"{path('nowhere-at-all')}/members"):
        assert signed_in.get(where).status == 404
        assert signed_in.post(where).status == 404
    assert signed_in.post(f"{path('nowhere-at-all')}/remove").status == 404
    assert signed_in.get(path("nowhere-at-all", "yahoo")).status == 404
