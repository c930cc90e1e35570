"""No page offers what the role of its viewer forbids, and none hides what the role permits."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import pytest
from werkzeug.exceptions import HTTPException

from app.cli import administrator_setup
from app.http.routes import RouteFacts, declared_facts
from providers.sandbox.client import Sandbox
from store.sql.models import Role, now
from store.sql.queries import user_invitations, users, webhook_events, webhooks
from store.stores import Stores
from tests import people
from tests.browser.content import DELEGATED, UNREADABLE, filled
from tests.browser.pages import ANSWER
from tests.dashboard.installations import PASSWORD
from tests.dashboard.routes import APART, PREFIX, path, rules
from tests.dashboard.visiting import Person

pytestmark = pytest.mark.slow

# Attributes that hold an address of a request. A form without an action sends to its own page.
ASKS = {"href": "GET", "hx-get": "GET", "data-href": "GET", "hx-post": "POST", "formaction": "POST"}
# Views that no filter of a list leads to.
VIEWS = (
    *(f"/users/{name}" for name in (DELEGATED, UNREADABLE, "odd.0", "odd.1")),
    *("/organizations/odd-0", "/organizations?q=nothing-at-all", "/users?q=nothing-at-all"),
    *("/webhooks?after=ffffffff", "/keys?organization=demo", f"/explorer/grid{ANSWER}", f"/explorer{ANSWER}"),
    *("/search/palette?q=", "/search/palette?q=odd", "/nothing/here"),
)


# Only fields of forms ask for these.
PARTS_OF_FORMS = {("GET", f"{PREFIX}suggestions")}


@pytest.fixture(scope="module")
def content(settings, database, sandbox_process, administrator):
    """The content of the browser's tests, with a value for each argument of paths."""
    Sandbox(sandbox_process).reset()
    with (
        Stores(settings) as stores,
        filled(stores, sandbox_process, administrator=administrator.name) as names,
    ):
        with stores.database.writing() as session:
            found = users.find(session, names["custom_id"], organization_id=None)
            issuer = people.add_operator(session, "inviter of roles")
            ids = {names["custom_id"]: found.id}
            user_invitations.make(session, ids, scope="write", created_by="x", issuer=issuer)
            paused, _ = webhooks.create(
                session,
                stores.keyring,
                url="https://example.com/paused",
                events=(webhook_events.WebhookEvent.CALENDAR_CHANGED,),
                organization_id=None,
            )
            paused.paused_at = now()
        yield {**names, "kind": "users", "paused": paused.id}


@pytest.fixture(scope="module")
def known():
    """A cache of the links and forms on the pages, by role."""
    return {}


@pytest.fixture
def offered_to(app, browser_of, content, stores, unique, known):
    """The links and forms on the pages of a role: pairs of method and endpoint, each with its pages."""

    def read(role):
        if role in known:
            return known[role]
        person = Person(unique(role), PASSWORD)
        assert administrator_setup.create(stores, person.name, person.password, role)
        browser = browser_of(person)
        found, queue, seen = {}, [path(each, content) for each in rules(app, "GET")], set()
        queue += [f"/dashboard{each}" for each in (*VIEWS, f"/webhooks/{content['paused']}")]
        while queue:
            where = queue.pop()
            if where in seen:
                continue
            seen.add(where)
            page = browser.get(where)
            if page.answer.mimetype != "text/html":
                continue
            queue += [urljoin(where, each["href"]) for each in page.html.select("nav.filter a")]
            for method, address in asked(page.html, where):
                if (endpoint := endpoint_of(app, method, address)) is not None:
                    found.setdefault((method, endpoint), []).append(where)
        known[role] = found
        return found

    return read


def asked(html, where):
    """The method and address of each request that the page offers."""
    for attribute, method in ASKS.items():
        # Not the places of the page itself.
        for each in html.select(f"[{attribute}]:not(link, [{attribute}^='#'])"):
            yield method, urljoin(where, each[attribute])
    for each in html.select("form"):
        # The buttons of a form without an address may have their own.
        if not each.has_attr("action") and html.select(f"[formaction][form='{each.get('id')}']"):
            continue
        yield each.get("method", "get").upper(), urljoin(where, each.get("action", where))


def endpoint_of(app, method, address):
    """The route of the dashboard that takes the request; None for other addresses."""
    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/dashboard"):
        return None
    try:
        endpoint, _ = app.url_map.bind("localhost").match(parts.path, method=method)
    except HTTPException:
        raise AssertionError(f"no route takes {method} {address}") from None
    return None if endpoint in APART or not endpoint.startswith(PREFIX) else endpoint


def permits(app, role, method, endpoint):
    facts = declared_facts(app, endpoint, method) or RouteFacts()
    return not facts.needs_sign_in or role.includes(facts.role_for(method))


@pytest.mark.parametrize("role", list(Role))
def test_pages_offer_what_the_role_permits_and_no_more(app, offered_to, role):
    offered = offered_to(role)
    forbidden = {
        f"{method} {endpoint}": sorted(set(pages))
        for (method, endpoint), pages in offered.items()
        if not permits(app, role, method, endpoint)
    }
    assert forbidden == {}

    everything = offered_to(Role.ADMINISTRATOR)
    permitted = {each for each in everything if permits(app, role, *each)}
    assert permitted - set(offered) <= PARTS_OF_FORMS


# What only the answer to a form offers, or a state that the content does not have.
ELSEWHERE = {
    *("disable_second_factor", "new_recovery_codes", "sign_in", "sign_in_code", "end_session"),
    *("import_grant_members", "replay_failed_deliveries", "undo_removal"),
    # No user of the content has two accounts of one provider.
    "make_default",
    # The environment sets the registrations of the tests, which the page then cannot change.
    *("remove_registration", "save_registration"),
}


def test_the_pages_together_offer_every_action(app, offered_to):
    """Otherwise the test above would prove little."""
    actions = {each.endpoint for each in rules(app, "POST")}
    missing = actions - {endpoint for method, endpoint in offered_to(Role.ADMINISTRATOR) if method == "POST"}
    assert {each.removeprefix(PREFIX) for each in missing} == ELSEWHERE
