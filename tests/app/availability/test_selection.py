"""Which account has a calendar that a request names, from lists that are known already."""

from __future__ import annotations

from dataclasses import replace

from app.availability.selection import distinct, listed_targets, main_calendar, targets_by_id
from store.cache.cache_tags import booked_names
from store.cache.calendar_lists import CalendarList, ListedCalendar
from store.sql.queries.connection_rows import ConnectionRef

ADA = ConnectionRef("c-ada", "ada", "google", "ada@example.com", frozenset(), True)
WORK = ConnectionRef("c-work", "ada", "microsoft", "ada@work.example", frozenset(), True)
TEAM = "Team-1@group.calendar.google.com"
GRAPH = "AAMkAGVlZTk="
LISTS = {
    ADA.id: CalendarList(0, (ListedCalendar("ada@example.com", True), ListedCalendar(TEAM, False))),
    WORK.id: CalendarList(0, (ListedCalendar("AAMkMain=", True), ListedCalendar(GRAPH, False))),
}


def found(*ids: str) -> list[tuple[str, str, str]]:
    targets = targets_by_id(ids, [WORK, ADA], LISTS)
    return [(each.connection.id, each.key.calendar, each.shown) for each in targets]


def test_a_listed_address_is_found_in_any_spelling_and_once():
    assert found(TEAM.upper()) == [(ADA.id, TEAM, TEAM)]
    assert found(TEAM, TEAM.lower()) == [(ADA.id, TEAM, TEAM)]


def test_an_opaque_id_is_found_only_as_it_is_spelled():
    assert found(GRAPH) == [(WORK.id, GRAPH, GRAPH)]
    # Another calendar: Graph's ids differ in the case of their letters.
    assert found(GRAPH.lower()) == [(WORK.id, GRAPH.lower(), GRAPH.lower())]


def test_an_id_on_no_list_goes_to_an_account_whose_ids_have_its_form():
    assert found("other@example.com") == [(ADA.id, "other@example.com", "other@example.com")]
    assert found("AAMkOther=") == [(WORK.id, "AAMkOther=", "AAMkOther=")]


def at_server(host: str) -> ConnectionRef:
    """An account with the same address, and calendars at the same paths, as at another server."""
    own = {"account_id": f"https://{host}/principals/ada/", "main_calendar_id": "L2NhbC8"}
    made = ConnectionRef(f"c-{host}", "ada", "caldav", "ada@example.com", frozenset(), True, **own)
    return replace(made, main_names=booked_names(made, "primary"))


def test_accounts_at_two_servers_are_two_even_with_one_address_and_the_same_paths():
    connections = [at_server("home.example"), at_server("work.example")]
    listed = [ListedCalendar("L2NhbC8", True), ListedCalendar("L3dvcms", False)]

    assert len(distinct([main_calendar(each) for each in connections])) == 2
    assert len(distinct([one for each in connections for one in listed_targets(each, listed)])) == 4
    twice = [*connections, replace(connections[0], id="c-again")]
    assert len(distinct([main_calendar(each) for each in twice])) == 2
