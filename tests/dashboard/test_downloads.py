"""Files to save: the browser never shows them as pages, and a spreadsheet calculates none of their cells."""

from __future__ import annotations

import csv
from io import StringIO

import pytest

from store.sql.queries import audit, organizations
from tests import people
from tests.browser.pages import DOWNLOAD
from tests.dashboard.routes import NOBODY, PREFIX, path, rules
from tests.dashboard.untrusted import TEXTS

# The first is a command on old spreadsheets, the last spans several cells of a careless file.
FORMULAS = ("=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=1","=2')


@pytest.fixture
def filled(stores, sandbox, new_organization, unique):
    """An organization whose members' e-mails, and audit records whose subjects, are each of the texts."""
    slug, mark = new_organization(), unique("downloaded")
    texts = [*FORMULAS, *TEXTS]
    accounts = [sandbox.account("google", f"{text}{mark}@example.com") for text in texts]
    with stores.database.writing() as session:
        for number, account in enumerate(accounts):
            user = people.connected(session, stores.keyring, f"{mark}-{number}", account)
            organization = organizations.ids(session, [slug], organization_id=None)[slug]
            organizations.add_members(session, organization, [user.id])
        for text in texts:
            audit.record(session, actor=mark, action="createKey", subject=f"{text}{mark}")
    return slug, mark, texts


def rows(page):
    assert page.status == 200
    return list(csv.reader(StringIO(page.text, newline="")))


def test_only_routes_with_the_prefix_answer_with_a_file(app, signed_in, new_organization):
    slug = new_organization()
    names = {"provider": "google", "slug": slug, "kind": "users"}
    files = set()
    for rule in rules(app, "GET"):
        page = signed_in.get(path(rule, dict.fromkeys(rule.arguments, NOBODY) | names))
        if page.headers.get("Content-Disposition", "").startswith("attachment"):
            assert page.headers["Content-Type"] == "text/csv; charset=utf-8"
            assert page.headers["X-Content-Type-Options"] == "nosniff"
            files.add(rule.endpoint.removeprefix(PREFIX))
        else:
            assert page.answer.mimetype != "text/csv", rule.rule

    declared = {each.endpoint.removeprefix(PREFIX) for each in rules(app, "GET")}
    assert files == {name for name in declared if name.startswith(DOWNLOAD)} != set()


def test_no_cell_is_a_formula_and_every_text_is_whole(signed_in, filled):
    slug, mark, texts = filled
    expected = {f"'{each}{mark}" if each in FORMULAS else f"{each}{mark}" for each in texts}

    of_users = rows(signed_in.get("/users.csv", q=mark))
    of_members = rows(signed_in.get(f"/organizations/{slug}/members.csv"))
    of_audit_log = rows(signed_in.get("/audit/export", person=mark))

    for found, column, suffix in (
        (of_users, 1, "@example.com"),
        (of_members, 1, "@example.com"),
        (of_audit_log, 3, ""),
    ):
        assert {len(each) for each in found} == {5}
        assert {each[column] for each in found[1:]} == {f"{text}{suffix}" for text in expected}
        cells = [cell for row in found for cell in row]
        assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))] == []
