"""The providers page: the state of the registrations, and its form."""

from __future__ import annotations

import logging

import pytest

from providers import registry
from store.sql.models import ProviderClient
from store.sql.queries import provider_clients
from tests.dashboard.audit_records import actions
from tests.dashboard.installations import Installation
from tests.dashboard.visiting import words

BOTH = pytest.mark.parametrize("provider", ["google", "microsoft"])
SECRET = "planted"
TENANT = "contoso.onmicrosoft.com"


@pytest.fixture(autouse=True)
def unchecked(stores):
    """A test of token requests may have left the provider's last word on the registration."""
    for name in registry.with_consent():
        stores.registration_checks.forget(name)


@pytest.fixture
def bare(install, sandbox) -> Installation:
    """An installation without registrations in its environment, with the sandbox as provider."""
    return install(registered=False)


def card(page, provider):
    return page.html.find("section", {"aria-labelledby": provider})


def badges(section):
    return [words(each) for each in section.select(".badge")]


def save(installation, provider="google", **changed):
    form = {"client_id": "ours", "client_secret": SECRET, **changed}
    return installation.browser.do(f"/settings/{provider}", form)


def saved(installation):
    with installation.stores.database.reading() as session:
        return provider_clients.load(session)


def registrations_in_audit(installation):
    found = actions(installation.stores, actor=Installation.ACTOR)
    return [each for each in found if "Registration" in each[0]]


@BOTH
def test_what_the_environment_has_is_shown_and_cannot_be_changed_here(signed_in, provider):
    section = card(signed_in.get("/settings"), provider)

    checkable = registry.definition(provider).consent.proves_secret
    assert badges(section) in (
        [["not checked yet"], ["accepted"]] if checkable else [["configured"], ["accepted"]]
    )
    variables = [f"ALMANAC_{provider.upper()}_CLIENT_{part}" for part in ("ID", "SECRET")]
    assert " and ".join(variables) in words(section)
    assert "Set by the environment" in words(section)
    # A check that never succeeds is not offered.
    checks = [f"/dashboard/settings/{provider}/check"] if checkable else []
    assert [form["action"] for form in section.find_all("form")] == checks


@BOTH
def test_what_the_environment_has_is_not_replaced(signed_in, provider):
    page = signed_in.do(f"/settings/{provider}", {"client_id": "ours", "client_secret": SECRET})

    (notice,) = page.notices
    assert "is set by the environment: change ALMANAC_" in notice
    assert page.html.select_one(".notice")["role"] == "alert"


@BOTH
def test_settings_show_what_to_enter_at_the_provider(bare, provider):
    section = card(bare.browser.get("/settings"), provider)

    assert badges(section) == ["not configured"]
    assert words(section.find(id=f"redirect-{provider}")) == f"http://localhost/v1/oauth/{provider}/callback"
    assert words(section.find(id=f"scopes-{provider}")).split() == list(
        registry.scopes(provider).every_scope()
    )
    assert len(section.select("ol.steps li")) == 3
    console = section.find("a", {"target": "_blank"})
    assert console["href"].startswith("https://")
    assert set(console["rel"]) == {"noopener", "noreferrer"}
    # Closed when done, else open.
    assert all(each.has_attr("open") for each in section.find_all("details"))


@BOTH
def test_addresses_are_those_of_the_public_url(install, provider):
    made = install(registered=False, public_url="https://almanac.example")

    section = card(made.browser.get("/settings"), provider)

    assert (
        words(section.find(id=f"redirect-{provider}"))
        == f"https://almanac.example/v1/oauth/{provider}/callback"
    )
    assert words(section.find(id=f"push-{provider}")) == f"https://almanac.example/v1/push/{provider}"


@BOTH
def test_the_public_url_must_be_set(bare, provider):
    browser, host = bare.browser, "almanac.example"
    browser.client.set_cookie("almanac", browser.cookie, domain=host, path="/dashboard")
    page = browser.open("GET", "/settings", base_url=f"http://{host}")

    section = card(page, provider)
    assert section.find(id=f"redirect-{provider}") is None
    assert "ALMANAC_PUBLIC_URL=https://calendar.example.com" in words(section.select_one(".notice"))


@pytest.mark.usefixtures("worker")
def test_a_registration_that_is_right_is_saved(bare):
    page = save(bare, client_id=" ours\n")

    assert page.notices == [
        "Saved. Google accepts the client id and the secret. Connect an account to see that the redirect "
        "address is registered too."
    ]
    assert page.html.select_one(".notice")["class"] == ["notice", "good"]
    section = card(page, "google")
    assert badges(section) == ["accepted"]
    assert "ours" in words(section.find("dl"))
    assert section.find(id="f-google-client_id")["value"] == "ours"
    assert saved(bare)["google"].client_id == "ours"
    assert registrations_in_audit(bare) == [("saveRegistration", "google")]


@pytest.mark.usefixtures("worker")
def test_the_secret_is_shown_nowhere_and_kept_sealed(bare, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "wholly-secret-word"
    for page in (save(bare, client_secret=secret), bare.browser.get("/settings")):
        assert secret not in page.text
    assert secret not in caplog.text
    assert card(bare.browser.page, "google").find(id="f-google-client_secret")["value"] == ""


@pytest.mark.usefixtures("worker")
def test_what_could_not_be_tried_is_saved_with_a_warning(bare, sandbox):
    sandbox.fault(operation="google.token", status=503)

    page = save(bare)

    (notice,) = page.notices
    assert notice.startswith("Saved. Google could not be asked just now. Save again in a few minutes")
    assert page.html.select_one(".notice")["class"] == ["notice", "warn"]
    assert list(saved(bare)) == ["google"]


@pytest.mark.usefixtures("worker")
def test_refused_registration_is_not_saved_and_form_is_kept(bare):
    page = bare.browser.post(
        "/settings/microsoft", {"client_id": "ours", "client_secret": "expired", "tenant": TENANT}
    )

    section = card(page, "microsoft")
    assert page.status == 400
    assert words(section.select_one(".notice.bad")) == (
        "Nothing was saved. The secret has expired. Make a new client secret under Certificates & secrets, "
        "and enter its Value."
    )
    fields = ("client_id", "client_secret", "tenant")
    kept = [section.find(id=f"f-microsoft-{name}")["value"] for name in fields]
    assert kept == ["ours", "", TENANT]
    assert card(page, "google").select_one(".notice.bad") is None
    assert (saved(bare), registrations_in_audit(bare)) == ({}, [])


@pytest.mark.parametrize(
    ("changed", "field", "complaint"),
    [
        ({"client_id": ""}, "client_id", "Client ID is required."),
        ({"client_id": " \n"}, "client_id", "Client ID is required."),
        ({"client_id": "a b"}, "client_id", "Client ID must be printable ASCII without spaces."),
        ({"client_id": "x" * 513}, "client_id", "Client ID must have 1 to 512 characters."),
        (
            {"client_secret": "geheim\u00fc"},
            "client_secret",
            "Client secret must be printable ASCII without spaces.",
        ),
        ({"client_secret": "  "}, "client_secret", "Client secret is required."),
        ({"client_secret": "x" * 1025}, "client_secret", "Client secret must have 1 to 1024 characters."),
        ({"tenant": "a/../b"}, "tenant", "Tenant must be the Directory (tenant) ID, a domain, or common."),
        ({"tenant": ".."}, "tenant", "Tenant must be the Directory (tenant) ID, a domain, or common."),
        ({"tenant": "x" * 254}, "tenant", "Tenant must be the Directory (tenant) ID, a domain, or common."),
    ],
)
def test_an_invalid_field_is_named(bare, changed, field, complaint):
    page = save(bare, "microsoft", **changed)

    assert page.status == 400
    assert page.error_of(f"microsoft-{field}") == complaint
    assert "Please correct the highlighted fields." in page.notices
    assert saved(bare) == {}


@pytest.mark.usefixtures("worker")
def test_saved_tenant_is_shown_and_configured_one_is_not_copied(bare):
    assert card(bare.browser.get("/settings"), "microsoft").find(id="f-microsoft-tenant")["value"] == ""

    page = save(bare, "microsoft", tenant=TENANT)

    assert card(page, "microsoft").find(id="f-microsoft-tenant")["value"] == TENANT
    page = save(bare, "microsoft")
    assert card(page, "microsoft").find(id="f-microsoft-tenant")["value"] == ""
    assert saved(bare)["microsoft"].tenant is None


@pytest.mark.usefixtures("worker")
def test_a_registration_is_removed(bare):
    section = card(save(bare), "google")
    (form,) = [each for each in section.find_all("form") if each.has_attr("data-confirm")]

    page = bare.browser.do(form["action"])

    assert page.notices == ["The registration is removed. Connected accounts work until they need it."]
    assert badges(card(page, "google")) == ["not configured"]
    assert saved(bare) == {}
    assert registrations_in_audit(bare)[-1] == ("removeRegistration", "google")
    assert bare.browser.do(form["action"]).notices == ["No registration with Google is saved."]


@pytest.mark.usefixtures("worker")
def test_a_secret_that_no_key_opens_is_to_be_entered_again(bare):
    save(bare)
    with bare.stores.database.writing() as session:
        session.get_one(ProviderClient, "google").sealed_secret = b"sealed by a key that is gone"

    section = card(bare.browser.get("/settings"), "google")

    assert badges(section) == ["secret lost"]
    assert "Enter the secret again." in words(section.select_one(".notice"))
