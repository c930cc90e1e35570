"""Importing users from a list or a file: all of them, or none."""

from __future__ import annotations

from io import BytesIO

import pytest

from app.schemas.organization_grants import MAX_IMPORTED
from store.sql.models import Role
from store.sql.queries.users import ids
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words


def stored(stores, *custom_ids):
    with stores.database.reading() as session:
        return set(ids(session, custom_ids, organization_id=None))


def listed_errors(page):
    return [words(each) for each in page.html.select("#import ul.rows li")]


def test_a_list_is_registered_and_joins_an_organization(
    signed_in, stores, new_user, new_organization, unique
):
    known, slug = new_user(), new_organization()
    new = [unique("import") for _ in range(2)]
    text = f"{new[0]}\r\n\r\n {new[1]} ; anything\r\n{known}\r\n"

    page = signed_in.do("/import-users", {"users": text, "organization": slug})

    assert page.notices[0] == (f"2 registered; 1 had been registered before. All 3 are members of {slug}.")
    assert {words(each) for each in page.html.select("tbody th a")} == {*new, known}
    assert ("administrator ada", "createUsers", f"2 for {slug}") in records(stores, slug)
    again = signed_in.do("/import-users", {"users": "\n".join(new)})
    assert again.notices[0] == "0 registered; 2 had been registered before."


def test_a_file_with_a_header_counts_instead_of_the_text(signed_in, stores, unique):
    one, other = unique("file"), unique("text")
    file = (BytesIO(f"\ufeffemail,userId\nx@example.com,{one}\n".encode()), "users.csv")

    signed_in.do("/import-users", {"users": other, "file": file})

    assert stored(stores, one, other) == {one}


def test_one_wrong_line_stores_nothing_and_is_named(signed_in, stores, unique):
    good = unique("good")

    page = signed_in.post("/import-users", {"users": f"{good}\n<b>no</b>\n{good}\nx"})

    assert page.status == 400
    assert page.html.find(id="import").has_attr("open")
    assert words(page.html.select_one("#import [role=alert]")) == (
        "Nothing was stored: 3 lines are wrong. Correct the list and import it again."
    )
    found = listed_errors(page)
    assert [each.split(":")[0].strip() for each in found] == ["Line 2", "Line 3", "Line 4"]
    assert "<b>no</b>" in found[0]
    assert f"“{good}” is in line 1 too" in found[1]
    assert good in page.html.find(id="f-users").text
    assert stored(stores, good) == set()


@pytest.mark.parametrize(
    ("form", "field", "error"),
    [
        ({"users": " \n;\n"}, "users", "The list has no users: write an identifier in each line."),
        (
            {"users": "\n".join(f"many-{number}" for number in range(MAX_IMPORTED + 1))},
            "users",
            f"The list has {MAX_IMPORTED + 1} users: import at most {MAX_IMPORTED} at once.",
        ),
        ({"users": "lone-import", "organization": "nobody-here"}, "of", None),
        ({"file": (BytesIO(b"\xff\xfe\x00"), "users.csv")}, "users", None),
    ],
)
def test_a_list_that_cannot_be_imported_says_why(signed_in, stores, form, field, error):
    page = signed_in.post("/import-users", form)
    assert page.status == 400
    said = page.error_of(field)
    assert said is not None
    assert error in (None, said)
    assert stored(stores, "lone-import", "many-0") == set()


def test_a_viewer_has_no_form(browser_of, person_with):
    browser = browser_of(person_with(Role.VIEWER))
    assert browser.get("/users").html.find(id="import") is None
    assert browser.post("/import-users", {"users": "viewer-import"}).status == 403
