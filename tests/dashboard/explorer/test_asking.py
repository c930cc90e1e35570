"""Questions of the command palette: names, a day and a time, and where they are answered."""

from __future__ import annotations

from datetime import date
from urllib.parse import parse_qs, urlsplit

import pytest

from app.dashboard.explorer import asking

# A Friday.
TODAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("text", "names", "day", "clock"),
    [
        ("ada tue 14:00", ["ada"], (12, 1), "14:00"),
        ("ada tuesday 9:05", ["ada"], (12, 1), "09:05"),
        ("14:00 tue ada", ["ada"], (12, 1), "14:00"),
        ("ada at 2pm", ["ada"], (11, 27), "14:00"),
        ("ada fri 12am", ["ada"], (11, 27), "00:00"),
        ("ada, bruno and chiara tomorrow 12:30PM", ["ada", "bruno", "chiara"], (11, 28), "12:30"),
        ("ada 2026-12-03 14:00", ["ada"], (12, 3), "14:00"),
        # Names may look like days and numbers.
        ("sun sat 14:00", ["sun"], (11, 28), "14:00"),
        ("room 12 thu 8am", ["room", "12"], (12, 3), "08:00"),
    ],
)
def test_a_question_is_names_a_day_and_a_time(text, names, day, clock):
    assert asking.parse(text, TODAY) == (names, date(2026, *day), clock)


@pytest.mark.parametrize(
    "text",
    ["", "ada", "ada tue", "14:00", "tue 14:00", "ada 25:00", "ada 13pm", "ada 14", "a " * 9 + "14:00"],
)
def test_other_texts_are_no_questions(text):
    assert asking.parse(text, TODAY) is None


def test_the_palette_answers_a_question_first(signed_in, new_user, new_organization, unique):
    mark = unique("ask")
    ada, bruno = (new_user(name=f"{mark}-{each}") for each in ("ada", "bruno"))
    slug = new_organization()

    def asked(text):
        answer = signed_in.get("/search/palette", q=text, zone="Asia/Tokyo").html
        (option, *_) = answer.select("[role=option]") or [None]
        if option is None or "Is it offered" not in option.text:
            return None
        return {name: each for name, (each,) in parse_qs(urlsplit(option["data-href"]).query).items()}

    # The hours of the people decide, not those of the chart.
    moment = {"window": "none", "zone": "Asia/Tokyo", "moment": "2026-12-01T14:00"}
    assert asked(f"{mark}-a 2026-12-01 14:00") == {"users": ada, **moment}
    together = {"users": f"{ada} {bruno}", "together": "all", **moment}
    assert asked(f"{ada} {bruno} 2026-12-01 14:00") == together
    assert asked(f"{slug} 2026-12-01 14:00") == {"organization": slug, **moment}
    assert asked(f"{mark}-nobody 2026-12-01 14:00") is None
    assert asked(ada) is None
    # An exact name comes before a name that contains it.
    new_user(name=f"{slug}-desk")
    new_user(name=ada.upper())
    assert asked(f"{slug} 2026-12-01 14:00") == {"organization": slug, **moment}
    assert asked(f"{ada} 2026-12-01 14:00") == {"users": ada, **moment}


def test_a_moment_in_a_late_year_opens_today(signed_in, new_user):
    page = signed_in.get("/explorer/grid", users=new_user(), moment="9999-12-31T14:00")
    assert page.html.select("svg")
