"""Tables: Windows and IANA zone names, and colours."""

from __future__ import annotations

from zoneinfo import ZoneInfo, available_timezones

import pytest
from tzlocal.windows_tz import win_tz

from providers.colors import foreground
from providers.microsoft import parse
from scheduling.zones import iana_zone, windows_zone


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Pacific Standard Time", "America/Los_Angeles"),
        ("pacific standard time", "America/Los_Angeles"),
        ("W. Europe Standard Time", "Europe/Berlin"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("UTC", "UTC"),
        ("Coordinated Universal Time", "UTC"),
        ("tzone://Microsoft/Utc", "UTC"),
        ("Etc/GMT+5", "Etc/GMT+5"),
    ],
)
def test_a_name_of_either_kind_is_a_zone(name, zone):
    assert iana_zone(name) == zone


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            " ",
            "Customized Time Zone",
            "tzone://Microsoft/Custom",
            "America",
            "../etc/passwd",
            "/UTC",
            "\0",
        ),
        *("localtime", "posixrules", "right/UTC", "posix/Europe/Berlin"),
    ],
)
def test_any_other_name_is_none(name):
    assert iana_zone(name) is None


def test_every_windows_name_is_a_zone_that_can_be_loaded():
    for name in win_tz:
        zone = iana_zone(name)
        assert zone is not None
        ZoneInfo(zone)


def test_every_zone_has_a_windows_name_that_leads_to_a_zone():
    odd = {"Factory", "localtime"}
    for zone in available_timezones() - odd:
        name = windows_zone(zone)
        assert name is not None, zone
        assert iana_zone(name) is not None


def test_a_colour_the_user_chose_wins_over_the_name():
    assert parse.background("lightRed", "#AABBCC") == "#aabbcc"
    assert parse.background("lightRed", "") == parse.COLORS["lightRed"]
    assert parse.background("notYetInvented", "red") == parse.COLORS["auto"]


@pytest.mark.parametrize(
    ("color", "text"),
    [("#ffffff", "#000000"), ("#000000", "#ffffff"), ("#f5f37b", "#000000"), ("#1a237e", "#ffffff")],
)
def test_text_is_readable_on_its_colour(color, text):
    assert foreground(color) == text
