"""The explorer shows when people do not work, and counts their profiles as the API does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.schemas.availability import WEEKDAYS
from tests.app.days import meeting
from tests.dashboard.picture import layer_of, slots_of
from tests.dashboard.visiting import words

WEEK = {"day": "2026-11-30", "days": "7", "zone": "Europe/Berlin", "whole": "1"}
HOURS = [{"days": list(WEEKDAYS[:5]), "start": "09:00", "end": "17:00"}]
TOKYO = {"timeZone": "Asia/Tokyo", "schedules": HOURS}
PROFILE = {
    **TOKYO,
    "overrides": [
        {"date": "2026-12-02", "windows": []},
        {"date": "2026-12-05", "windows": [{"start": "10:00", "end": "12:00"}]},
    ],
    "holidays": {"country": "PT"},
    "paddingBefore": 15,
}
# On the Tuesday.
HOLIDAY = "Restoration of Independence Day"


def at(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def shown(stretches):
    """Stretches in UTC: ``Mon 08:00``."""
    return [
        tuple(f"{datetime.fromtimestamp(rounded(each) / 1000, UTC):%a %H:%M}" for each in pair)
        for pair in stretches
    ]


def rounded(moment):
    """A moment to five minutes: in lanes of a week, a tenth of a pixel is more than a minute."""
    return round(moment / 300_000) * 300_000


@pytest.fixture(params=[False, True], ids=["columns", "lanes"])
def picture(request, signed_in, api, ada, lanes):
    """The picture of a person with a profile: ``picture(profile, events, **query)``, and the person."""

    def made(profile, *events, **query):
        slug = lanes() if request.param else None
        user = ada(*events, slugs=(slug,) if slug else ())
        assert api.put(f"/users/{user}/availability", profile).status_code == 200
        who = {"organization": slug} if slug else {"users": user}
        page = signed_in.get("/explorer/grid", **who, **WEEK, **query)
        assert bool(page.html.select(".lane")) == request.param
        return page, user

    return made


def merged(stretches):
    """Touching stretches of two days as one."""
    found = []
    for start, end in sorted(stretches):
        if found and found[-1][1] >= start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


@pytest.mark.usefixtures("worker")
def test_the_night_of_a_person_is_shaded_in_the_zone_of_the_profile(picture):
    page, user = picture({**TOKYO, "overrides": PROFILE["overrides"]})

    # Nine to five in Tokyo is midnight to eight in the morning in UTC; the week of Berlin begins at 23:00.
    assert shown(merged(layer_of(page, user, "night"))) == [
        ("Sun 23:00", "Mon 00:00"),
        ("Mon 08:00", "Tue 00:00"),
        ("Tue 08:00", "Thu 00:00"),
        ("Thu 08:00", "Fri 00:00"),
        ("Fri 08:00", "Sat 01:00"),
        ("Sat 03:00", "Sun 23:00"),
    ]
    assert "outside the person's working hours" in [words(each) for each in page.html.select(".legend li")]
    assert "Tokyo" in words(page.html.select_one(".person-zone"))


@pytest.mark.usefixtures("worker")
def test_closed_days_have_their_names_and_screen_readers_hear_them(picture):
    page, _ = picture(PROFILE)

    assert {words(each) for each in page.html.select(".closed-day")} == {HOLIDAY, "closed"}
    spoken = " ".join(each["aria-label"] for each in page.html.select("[role=img][aria-label]"))
    assert HOLIDAY in spoken
    assert "closed" in spoken
    assert "outside working hours" in spoken


@pytest.mark.usefixtures("worker")
def test_a_holiday_is_a_day_of_the_zone_of_the_profile(picture):
    page, user = picture({"timeZone": "Asia/Tokyo", "holidays": {"country": "PT"}})

    assert shown(merged(layer_of(page, user, "night"))) == [("Mon 15:00", "Tue 15:00")]


@pytest.mark.usefixtures("worker")
def test_without_a_profile_nothing_is_shaded(signed_in, ada):
    page = signed_in.get("/explorer/grid", users=ada(), **WEEK)

    assert page.html.select(".closed-day, [stroke='url(#night10)'], rect[fill='url(#night)'][y]") == []
    assert "working hours" not in words(page.html.select_one(".legend"))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("window", ["none", "workdays"])
def test_slots_are_those_of_the_api(picture, api, window):
    page, user = picture(PROFILE, meeting("01:00", "02:00"), meeting("10:00", "11:00"), window=window)

    schedules = {"schedules": HOURS} if window == "workdays" else None
    week = {"start": "2026-11-30", "end": "2026-12-07", "slotDuration": 30, "timeZone": "Europe/Berlin"}
    path = f"/users/{user}/scheduling"
    answer = api.get(path, **week) if schedules is None else api.post(path, schedules, query_string=week)

    offered = answer.json["data"]["availableSlots"]
    assert offered
    assert [rounded(each) for each in slots_of(page)[user]] == [
        at(each["start"].removesuffix("Z")) for each in offered
    ]


@pytest.mark.usefixtures("worker")
def test_shared_slots_and_explanations_use_the_hours_of_each(signed_in, api, ada):
    user, other = ada(), ada(name="bruno")
    assert api.put(f"/users/{user}/availability", TOKYO).status_code == 200
    query = {"users": f"{user},{other}", **WEEK, "window": "none", "together": "all", "days": "1"}

    page = signed_in.get("/explorer/grid", **query, person=user, moment="2026-11-30T12:00")

    times = [words(each.span) for each in page.html.select(".together li")]
    assert (times[0], times[-1]) == ("01:00", "08:30")
    assert f"outside {user}'s working hours (09:00 to 17:00 in Asia/Tokyo)" in words(
        page.html.main or page.html
    )


@pytest.mark.usefixtures("worker")
def test_hints_have_the_night_and_the_closed_days(signed_in, api, ada):
    user = ada()
    assert api.put(f"/users/{user}/availability", PROFILE).status_code == 200

    periods = signed_in.get("/explorer/periods", users=user, person=user, **WEEK).answer.json

    assert [name for _, _, kind, name in periods if kind == "closed"] == [HOLIDAY, ""]
    away = shown([(start, end) for start, end, kind, _ in periods if kind == "away"])
    assert ("Mon 08:00", "Thu 00:00") in away
