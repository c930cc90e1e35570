"""The generated table of what each provider has."""

from __future__ import annotations

from app.docs_site.providers import DOCUMENT, document


def test_the_page_has_the_table_of_the_definitions():
    assert document(DOCUMENT.read_text()) == DOCUMENT.read_text(), "run `make settings`"


def test_the_table_tells_the_providers_apart():
    lines = DOCUMENT.read_text().splitlines()
    head = next(line for line in lines if "(`google`)" in line)
    rows = {line.split(" | ")[0]: line for line in lines[lines.index(head) + 2 : lines.index(head) + 10]}
    assert [name in head for name in ("(`microsoft`)", "(`caldav`)", "(`ics`)")] == [True] * 3
    assert rows["| push"] == "| push | yes | yes | no | no |"
    assert rows["| events are written"] == "| events are written | yes | yes | yes | no |"
    assert rows["| reminders of an event"] == "| reminders of an event | up to 5 | up to 1 | up to 5 |  |"
