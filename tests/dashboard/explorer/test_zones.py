"""How the clocks of people differ from the picture's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dashboard.explorer import svg
from app.dashboard.explorer.zones import MINUS, of_users, person_zone
from scheduling.windows import zone_exists
from store.sql.queries.connection_rows import ConnectionRef
from tests.dashboard.explorer_queries import explorer_queries, explorer_query

NOW = int(datetime(2026, 11, 24, 9, 15, tzinfo=UTC).timestamp() * 1000)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Etc/GMT+5")


def shown(name, zone="UTC", first=date(2026, 12, 3), days=7):
    found = svg.days(explorer_query(zone, first, days, None), whole=True)
    return person_zone(name, ZoneInfo(zone), found, NOW)


@pytest.mark.parametrize(
    ("name", "zone", "place", "difference", "words"),
    [
        ("America/New_York", "Europe/Berlin", "New York", f"{MINUS}6 h", "6 hours behind"),
        ("Europe/Lisbon", "Europe/Berlin", "Lisbon", f"{MINUS}1 h", "1 hour behind"),
        ("Asia/Kathmandu", "UTC", "Kathmandu", "+5:45 h", "5 hours 45 minutes ahead"),
        ("Australia/Eucla", "Australia/Perth", "Eucla", "+0:45 h", "45 minutes ahead"),
        ("Asia/Calcutta", "UTC", "Kolkata", "+5:30 h", "5 hours 30 minutes ahead"),
        ("America/Argentina/Salta", "UTC", "Salta", f"{MINUS}3 h", "3 hours behind"),
        # Its sign says the opposite of what people mean.
        ("Etc/GMT+5", "UTC", "Etc/GMT+5", f"{MINUS}5 h", "5 hours behind"),
        ("Pacific/Kiritimati", "Pacific/Pago_Pago", "Kiritimati", "+25 h", "25 hours ahead"),
    ],
)
def test_the_place_and_the_difference_are_named(name, zone, place, difference, words):
    found = shown(name, zone)

    assert (found.name, found.city) == (name, place)
    assert (found.difference.replace("\N{NO-BREAK SPACE}", " "), found.words) == (difference, words)
    assert found.clock == f"{datetime.fromtimestamp(NOW / 1000, ZoneInfo(name)):%H:%M}"


def account(zone, *, alive=True):
    return ConnectionRef(
        "id", "ada", "google", None, frozenset(), alive, main_calendar_id="ada@example.com", time_zone=zone
    )


@pytest.mark.parametrize(
    ("connections", "place"),
    [
        ([account("Asia/Tokyo"), account("Europe/Berlin")], "Tokyo"),
        ([account(None), account("Europe/Berlin")], "Berlin"),
        ([account("Asia/Tokyo", alive=False), account("Europe/Berlin")], "Berlin"),
        ([account(None), account("Europe/Berlin", alive=False)], None),
        ([], None),
    ],
)
def test_zone_of_a_user_is_from_first_live_connection_with_one(connections, place):
    days = svg.days(explorer_query("UTC", date(2026, 12, 3), 7, None), whole=True)
    found = of_users({"ada": connections}, ZoneInfo("UTC"), days, NOW)
    assert [each.city for each in found.values()] == ([] if place is None else [place])


def test_when_one_of_both_clocks_changes_both_differences_are_named():
    # Berlin leaves summer time on 25 October, New York a week later.
    found = shown("America/New_York", "Europe/Berlin", date(2026, 10, 29), 7)
    assert found.words == "5 hours behind, then 6 hours behind"
    # London leaves it, and Lagos has none.
    found = shown("Africa/Lagos", "Europe/London", date(2026, 10, 22), 7)
    assert found.words == "the same time, then 1 hour ahead"


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("Europe/Paris", "Europe/Berlin"),
    ],
)
def test_equal_clocks_are_one_zone(name, zone):
    assert shown(name, zone) is None


@given(
    st.text() | st.sampled_from(["localtime", "posixrules", "right/UTC", "../UTC", "/etc/passwd", "America"])
)
def test_a_name_that_no_zone_has_is_not_shown(name):
    if not zone_exists(name):
        assert shown(name) is None


@given(explorer_queries(), st.sampled_from(ZONES))
def test_a_zone_is_shown_if_a_clock_differs_at_an_edge_of_a_day(chosen, name):
    days = svg.days(chosen, whole=False)
    edges = [datetime.fromtimestamp(at / 1000, UTC) for day in days for at in (day.start, day.end - 1)]
    differs = any(
        at.astimezone(ZoneInfo(name)).utcoffset() != at.astimezone(chosen.zone).utcoffset() for at in edges
    )

    assert (person_zone(name, chosen.zone, days, NOW) is not None) == differs
