"""Roles by routes: what each role may do, for every route of the dashboard (docs/operate/access.md)."""

from __future__ import annotations

import pytest

from app.http.routes import SAFE_METHODS, RouteFacts, declared_facts
from store.sql.models import Role
from store.sql.queries import administrators
from tests.dashboard.audit_records import actions
from tests.dashboard.installations import PASSWORD
from tests.dashboard.routes import NOBODY, path, rules

# What operators may not touch: API keys, registrations, other people; and organizations have API keys.
ADMINISTRATORS_ONLY = {
    *("new_key", "revoke_key", "save_registration", "check_registration", "remove_registration"),
    "delete_organization",
    *("invite", "administrator", "change_role", "end_session_of", "reset_second_factor"),
    "remove_administrator",
}
# What every person may do to their own account.
EVERYONE = {
    *("sign_out", "change_password", "end_session"),
    *("enable_second_factor", "new_recovery_codes", "disable_second_factor"),
}


def routes(app):
    """Every route with its method, and what it declares."""
    for method in ("GET", "POST"):
        for rule in rules(app, method):
            yield rule, method, declared_facts(app, rule.endpoint, method)


def least(facts: RouteFacts | None, method: str) -> Role:
    return (facts or RouteFacts()).role_for(method)


def name_of(rule) -> str:
    return rule.endpoint.removeprefix("dashboard.")


def test_every_route_that_changes_something_declares_a_role(app):
    undeclared = [
        f"{method} {rule.rule}"
        for rule, method, facts in routes(app)
        if method not in SAFE_METHODS and (facts is None or (facts.needs_sign_in and facts.role is None))
    ]
    assert undeclared == []


def test_operators_cannot_change_keys_registrations_and_people(app):
    needed = {
        name_of(rule): least(facts, method)
        for rule, method, facts in routes(app)
        if facts is None or facts.needs_sign_in
    }
    assert {name for name, role in needed.items() if role is Role.ADMINISTRATOR} == ADMINISTRATORS_ONLY
    changing = {
        name_of(rule): least(facts, method)
        for rule, method, facts in routes(app)
        if method == "POST" and (facts is None or facts.needs_sign_in)
    }
    assert {name for name, role in changing.items() if role is Role.VIEWER} == EVERYONE


@pytest.mark.slow
@pytest.mark.parametrize("role", list(Role))
def test_each_role_may_do_what_its_routes_declare_and_no_more(app, browser_of, person_with, role):
    browser = browser_of(person_with(role))
    # Signing out comes last, as it ends the session.
    for rule, method, facts in sorted(routes(app), key=lambda each: name_of(each[0]) == "sign_out"):
        if facts is not None and not facts.needs_sign_in:
            continue
        where = path(rule, dict.fromkeys(rule.arguments, NOBODY) | {"provider": "google"})

        answer = browser.get(where) if method == "GET" else browser.post(where)

        assert answer.status < 500, (method, where)
        permitted = role.includes(least(facts, method))
        assert (answer.status != 403) == permitted, (role, method, where, answer.status)
        if not permitted:
            assert answer.heading == "Not permitted"


@pytest.mark.slow
@pytest.mark.parametrize("role", list(Role))
def test_an_invitation_gives_its_role(browser_of, administrator, visitor, unique, role, stores):
    page = browser_of(administrator).get("/account")
    ticket = page.html.find("input", {"name": "ticket"})["value"]
    page = browser_of(administrator).post("/account/administrators/invite", {"ticket": ticket, "role": role})
    link = page.html.find(id="link").get_text().removeprefix("http://localhost")

    assert f"Become {'a' if role is Role.VIEWER else 'an'} {role}" in visitor.get(link).text
    form = {"name": (name := unique("new")), "password": PASSWORD, "again": PASSWORD}
    assert visitor.post(link, form).status == 303

    with stores.database.reading() as session:
        assert administrators.find(session, name).role == role
    assert (visitor.get("/keys/new").status == 200) == (role is Role.ADMINISTRATOR)
    assert actions(stores, actor=f"{role} {name}") == [("createAdministrator", name)]


def id_of(stores, person) -> int:
    with stores.database.reading() as session:
        return administrators.find(session, person.name).id


def test_another_role_counts_at_once_in_every_browser(browser_of, administrator, person_with, stores):
    person = person_with(Role.OPERATOR)
    browser = browser_of(person)
    assert browser.get("/webhooks/new").status == 200
    number = id_of(stores, person)

    page = browser_of(administrator).do(f"/account/administrators/{number}/role", {"role": "viewer"})

    assert page.notices == [f"{person.name} is a viewer now. Their open links and invitations are withdrawn."]
    assert browser.get("/webhooks/new").status == 403
    assert browser.get("/users").status == 200


@pytest.mark.slow
def test_own_role_cannot_be_changed(browser_of, administrator, stores):
    browser = browser_of(administrator)

    page = browser.do(f"/account/administrators/{id_of(stores, administrator)}/role", {"role": "viewer"})

    assert page.notices == ["You cannot change your own role: another administrator can."]


def test_an_unknown_role_is_none(browser_of, administrator, person_with, stores):
    number = id_of(stores, person_with(Role.VIEWER))

    page = browser_of(administrator).do(f"/account/administrators/{number}/role", {"role": "root"})

    assert page.notices == ["Choose one of the roles."]


def test_an_administrator_ends_the_browsers_of_others_one_by_one(
    browser_of, administrator, person_with, stores
):
    person = person_with(Role.OPERATOR)
    first, second = browser_of(person), browser_of(person)
    boss = browser_of(administrator)
    page = boss.get(f"/account/administrators/{id_of(stores, person)}")
    action, _ = [each["action"] for each in page.html.select("section[aria-labelledby=browsers] form")]

    page = boss.do(action)

    assert page.notices == [f"That browser of {person.name} is signed out."]
    assert sorted(each.get("/account").status for each in (first, second)) == [200, 303]
    assert boss.do(action).notices == ["That session had ended before."]
    assert ("endSession", person.name) in actions(stores, actor=f"administrator {administrator.name}")


def test_the_session_of_one_person_is_not_ended_through_another(
    browser_of, administrator, person_with, stores
):
    person, other = person_with(Role.VIEWER), person_with(Role.VIEWER)
    browser = browser_of(person)
    boss = browser_of(administrator)
    page = boss.get(f"/account/administrators/{id_of(stores, person)}")
    action = page.html.select_one("section[aria-labelledby=browsers] form")["action"]
    wrong = action.replace(str(id_of(stores, person)), str(id_of(stores, other)))

    assert boss.do(wrong).notices == ["That session had ended before."]
    assert browser.get("/account").status == 200
