"""A zone that a provider does not know is written under another name, then as times in UTC."""

from __future__ import annotations

import json
import time
from itertools import cycle

import pytest

from providers.errors import ProviderError, ZoneRefused
from providers.events import Changes, Day, Draft, Moment
from providers.google.client import Google
from providers.microsoft.client import Microsoft
from providers.timestamps import instant
from scheduling.zones import iana_zone, renamed_zone, windows_zone
from tests.providers.addresses import google_at, microsoft_at

NINE = instant("2026-12-03T09:00:00Z")
KYIV = "Europe/Kyiv"
REFUSALS = {
    "google": [
        {"error": {"code": 400, "errors": [{"reason": "invalid", "message": each}]}}
        for each in ("Invalid time zone definition.", "Invalid value for: timeZone")
    ],
    "microsoft": [
        {"error": {"code": each, "message": ""}}
        for each in ("TimeZoneNotSupportedException", "ErrorTimeZone")
    ],
}


def created(script, account, provider, refused, **content):
    """Create an event after this number of refusals; returns the bodies that were sent."""
    for _, refusal in zip(range(refused), cycle(REFUSALS[provider]), strict=False):
        script.say(400, refusal)
    script.say(403, {"error": {"code": "ErrorAccessDenied"}})
    adapter = Google(google_at(script.url)) if provider == "google" else Microsoft(microsoft_at(script.url))
    draft = Draft(Changes(subject="S", **content), "a" * 64, "f" * 64)
    with pytest.raises(ProviderError) as raised:
        adapter.create_event(account, "primary", draft, deadline=time.monotonic() + 20)
    writes = [each for each in script.requests if b'"start"' in each["body"]]
    return [json.loads(each["body"]) for each in writes], raised.value


@pytest.mark.parametrize(
    ("provider", "second", "third"),
    [
        ("google", ("2026-12-03T09:00:00.000Z", "Europe/Kiev"), ("2026-12-03T09:00:00.000Z", "UTC")),
        ("microsoft", ("2026-12-03T11:00:00.000", "FLE Standard Time"), ("2026-12-03T09:00:00.000", "UTC")),
    ],
)
def test_other_names_are_tried_then_utc(script, scripted_account, provider, second, third):
    when = {"start": Moment(NINE, KYIV), "end": Moment(NINE + 3_600_000, KYIV)}
    bodies, _ = created(script, scripted_account, provider, 2, **when)
    starts = [(each["start"]["dateTime"], each["start"]["timeZone"]) for each in bodies[:3]]
    assert starts[0][1] == KYIV
    assert starts[1:] == [second, third]
    assert {key: bodies[2][key] for key in bodies[2] if key not in ("start", "end")} == {
        key: bodies[0][key] for key in bodies[0] if key not in ("start", "end")
    }


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_zone_that_is_refused_in_every_spelling_is_named(script, scripted_account, provider):
    when = {"start": Moment(NINE, KYIV), "end": Moment(NINE + 3_600_000, KYIV)}
    bodies, error = created(script, scripted_account, provider, 9, **when)
    assert isinstance(error, ZoneRefused)
    assert len(bodies) == 3


def test_a_day_stays_that_day(script, scripted_account):
    script.say(body={"timeZone": KYIV})
    days = {"start": Day("2026-12-03"), "end": Day("2026-12-04")}
    bodies, _ = created(script, scripted_account, "microsoft", 2, **days)
    assert [each["start"] for each in bodies[:3]] == [
        {"dateTime": "2026-12-03T00:00:00", "timeZone": zone} for zone in (KYIV, "FLE Standard Time", "UTC")
    ]


@pytest.mark.parametrize(
    ("zone", "other"),
    [("Europe/Kyiv", "Europe/Kiev"), ("Europe/Kiev", "Europe/Kyiv"), ("Asia/Kolkata", "Asia/Calcutta")],
)
def test_a_renamed_zone_has_both_names(zone, other):
    assert renamed_zone(zone) == other


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Kamchatka Standard Time", "Asia/Kamchatka"),
        ("Mid-Atlantic Standard Time", "Etc/GMT+2"),
        ("armenian standard time", "Asia/Yerevan"),
        ("Mexico Standard Time 2", "America/Chihuahua"),
        ("Yukon Standard Time", "America/Whitehorse"),
        ("South Sudan Standard Time", "Africa/Juba"),
    ],
)
def test_names_that_windows_has_dropped_or_added_are_known(name, zone):
    assert iana_zone(name) == zone
    assert windows_zone(zone) is not None
