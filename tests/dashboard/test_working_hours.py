"""The page of what counts for a user: the week, dates, holidays, calendars and margins."""

from __future__ import annotations

import pytest

from app.events import lists
from app.schemas.availability import WEEKDAYS
from store.sql.models import Role
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words
from workers.fanout.admission import NoWorker

WORKDAYS = list(WEEKDAYS[:5])
STATED = {
    "timeZone": "Asia/Tokyo",
    "schedules": [
        {"days": WORKDAYS, "start": "09:00", "end": "12:00"},
        {"days": ["monday"], "start": "13:00", "end": "17:30"},
    ],
    "overrides": [
        {"date": "2026-12-24", "windows": []},
        {
            "date": "2026-12-30",
            "windows": [{"start": "10:00", "end": "11:00"}, {"start": "14:00", "end": "15:00"}],
        },
    ],
    "calendars": None,
    "paddingBefore": 10,
    "paddingAfter": None,
    "minimumNotice": 60,
    "holidays": {"country": "JP"},
}
NOTHING = dict.fromkeys(STATED)


def path_of(user):
    return f"/users/{user}/availability"


def stored(api, user):
    return api.get(path_of(user)).json["data"]


def store(api, user, body):
    assert api.put(path_of(user), body).status_code == 200


def values_of(page):
    """The form as a browser sends it: a list of values for each name."""
    form = page.html.find(
        "form", method="post", action=page.html.find("fieldset").find_parent("form")["action"]
    )
    found = {}
    for each in form.select("input[name]"):
        if each.get("type") not in ("checkbox", "radio") or each.has_attr("checked"):
            found.setdefault(each["name"], []).append(each.get("value", ""))
    return found


def test_a_profile_is_shown_and_sent_back_unchanged(signed_in, api, stores, new_user):
    user = new_user()
    store(api, user, STATED)
    before = records(stores, user)

    sent = values_of(signed_in.get(path_of(user)))
    page = signed_in.do(path_of(user), sent)

    assert page.notices == [f"The working hours of {user} are saved."]
    assert stored(api, user) == STATED
    assert records(stores, user) == before


def test_hours_can_be_changed_while_no_worker_runs(signed_in, api, sandbox, new_user, monkeypatch):
    def none(*_):
        raise NoWorker

    user = new_user(sandbox.account("google", "alone@example.com"))
    store(api, user, STATED)
    monkeypatch.setattr(lists, "find_calendars", none)
    shown = signed_in.get(path_of(user))
    assert "The calendars could not be listed just now" in words(shown.html)
    sent = values_of(shown)
    page = signed_in.do(path_of(user), sent | {"minimumNotice": ["30"]})
    assert page.notices == [f"The working hours of {user} are saved."]
    assert stored(api, user)["minimumNotice"] == 30


def test_hours_are_stored_as_by_the_api(signed_in, api, stores, new_user):
    user = new_user()
    form = {
        "hours": "these",
        "timeZone": "Europe/Berlin",
        **{f"{day}From": ["09:00", ""] for day in WORKDAYS},
        **{f"{day}To": ["17:00", ""] for day in WORKDAYS},
        "mondayFrom": ["08:00", "13:00"],
        "mondayTo": ["12:00", "00:00"],
        "date": ["2026-12-24", "2026-12-31", "2026-12-31", ""],
        "dateFrom": ["", "09:00", "13:00", ""],
        "dateTo": ["", "10:00", "14:00", ""],
        "country": "de",
        "subdivision": "BY",
        "minimumNotice": "90",
        "counting": "main",
    }

    signed_in.do(path_of(user), form)

    assert stored(api, user) == {
        **NOTHING,
        "timeZone": "Europe/Berlin",
        "schedules": [
            {"days": ["monday"], "start": "08:00", "end": "12:00"},
            {"days": ["monday"], "start": "13:00", "end": "00:00"},
            {"days": WORKDAYS[1:], "start": "09:00", "end": "17:00"},
        ],
        "overrides": [
            {"date": "2026-12-24", "windows": []},
            {
                "date": "2026-12-31",
                "windows": [{"start": "09:00", "end": "10:00"}, {"start": "13:00", "end": "14:00"}],
            },
        ],
        "minimumNotice": 90,
        "holidays": {"country": "DE", "subdivision": "BY"},
    }
    assert records(stores, user)[0] == ("administrator ada", "changeAvailability", user)


def test_any_time_and_main_calendars_are_not_stated(signed_in, api, new_user):
    user = new_user()
    store(api, user, STATED)

    signed_in.do(
        path_of(user), {"hours": "any", "counting": "main", "mondayFrom": "09:00", "mondayTo": "17:00"}
    )

    assert stored(api, user) == NOTHING


@pytest.mark.parametrize(
    ("form", "field", "complaint"),
    [
        ({"hours": "these", "mondayFrom": "09:00", "mondayTo": ""}, "monday", "Monday end must be a time"),
        ({"hours": "these", "fridayFrom": "09:00", "fridayTo": "09:00"}, "friday", "Friday end must differ"),
        ({"timeZone": "Mars"}, "timeZone", "Time zone must be a time zone name"),
        ({"country": "QQ"}, "country", "Country of holidays must be the ISO 3166 code"),
        (
            {"country": "DE", "subdivision": "QQ"},
            "subdivision",
            "State or province must be the ISO 3166 code",
        ),
        ({"subdivision": "BY"}, "country", "Country of holidays is required"),
        ({"paddingBefore": "soon"}, "paddingBefore", "Minutes free before events must be an integer"),
        ({"paddingAfter": "-1"}, "paddingAfter", "Minutes free after events must be"),
        ({"minimumNotice": "9" * 5000}, "minimumNotice", "Minutes of notice must be between"),
        ({"counting": "these"}, "calendars", "Calendars must be chosen, at least one"),
        (
            {"counting": "these", "calendar": "nothing/of/theirs"},
            "calendars",
            "Calendars must be the id of a",
        ),
        ({"date": "2026-02-30", "dateFrom": "", "dateTo": ""}, "date-0", "Its date must be a date"),
        (
            {"date": ["", "2026-12-24"], "dateFrom": ["", "09:00"], "dateTo": ["", ""]},
            "date-0",
            "Its end must be a time",
        ),
    ],
)
def test_an_error_is_beside_its_field(signed_in, api, new_user, form, field, complaint):
    user = new_user()
    store(api, user, STATED)

    page = signed_in.post(path_of(user), form)

    assert page.status == 400
    assert page.error_of(field).startswith(complaint)
    assert page.notices[0] == "Please correct the highlighted fields."
    assert stored(api, user) == STATED


def test_all_errors_are_shown_and_all_values_kept(signed_in, new_user):
    form = {"hours": "these", "sundayFrom": "10:00", "sundayTo": "", "timeZone": "Mars", "country": "DE"}

    page = signed_in.post(path_of(new_user()), form)

    assert page.error_of("sunday")
    assert page.error_of("timeZone")
    sent = values_of(page)
    assert {name: sent[name][0] for name in form} == form


def test_calendars_that_count_are_chosen(worker, signed_in, api, sandbox, new_user, unique):
    address = f"{unique('ada')}@example.com"
    calendars = [{"primary": True, "id": address, "subject": "Ada"}, {"id": "family", "subject": "Family"}]
    user = new_user(sandbox.account("google", address, calendars=calendars))

    page = signed_in.get(path_of(user))
    boxes = {words(each.find_next("label")): each for each in page.html.select("input[type=checkbox]")}
    assert list(boxes) == ["Ada Google main", "Family Google"]
    # The main calendar counts now, and is not lost when another one is added.
    assert [name for name, box in boxes.items() if box.has_attr("checked")] == ["Ada Google main"]

    signed_in.do(path_of(user), {"counting": "these", "calendar": [box["value"] for box in boxes.values()]})

    (connection,) = api.get(f"/users/{user}/connections").json["data"]
    assert stored(api, user)["calendars"] == [
        {"connectionId": connection["id"], "calendarId": address},
        {"connectionId": connection["id"], "calendarId": "family"},
    ]
    assert "Calendars that count 2" in words(signed_in.get(f"/users/{user}").html.main)


def test_a_main_calendar_keeps_its_stored_name(worker, signed_in, api, sandbox, new_user):
    user = new_user(sandbox.account("google", "ada@example.com"))
    (connection,) = api.get(f"/users/{user}/connections").json["data"]
    chosen = [{"connectionId": connection["id"], "calendarId": each} for each in ("primary", "gone")]
    store(api, user, {**NOTHING, "calendars": chosen})

    page = signed_in.get(path_of(user))
    checked = [words(each.find_next("label")) for each in page.html.select("input[type=checkbox][checked]")]
    signed_in.do(path_of(user), values_of(page))

    assert checked[1] == "gone Google"
    assert stored(api, user)["calendars"] == chosen


def test_a_change_of_another_person_is_not_overwritten_unseen(signed_in, api, stores, new_user):
    user = new_user()
    values = values_of(signed_in.get(path_of(user)))
    store(api, user, {"paddingBefore": 30})
    theirs = stored(api, user)

    page = signed_in.post(path_of(user), {**values, "paddingBefore": "10"})

    assert page.status == 412
    (notice,) = page.notices
    assert notice.startswith("Nothing is saved yet: another person has changed these hours")
    assert page.html.find(id="f-paddingBefore")["value"] == "10"
    assert stored(api, user) == theirs

    # Saved again, after the notice.
    page = signed_in.do(path_of(user), values_of(page))
    assert page.notices == [f"The working hours of {user} are saved."]
    assert stored(api, user)["paddingBefore"] == 10


def test_hours_are_copied_from_another_user(signed_in, api, new_user):
    user, other = new_user(), new_user()
    store(api, other, STATED)
    store(api, user, {"timeZone": "Europe/Paris", "holidays": {"country": "FR"}, "paddingAfter": 5})

    page = signed_in.get(path_of(user), **{"from": other})

    assert page.notices[0].startswith(f"These are the hours of {other} .")
    assert stored(api, user)["schedules"] is None
    signed_in.do(path_of(user), values_of(page))
    assert stored(api, user) == {**STATED, "timeZone": "Europe/Paris", "holidays": {"country": "FR"}}


@pytest.mark.parametrize("source", ["nobody-at-all", "<b>", "a b"])
def test_copying_from_an_unknown_user_is_refused(signed_in, new_user, source):
    page = signed_in.get(path_of(new_user()), **{"from": source})

    assert page.error_of("from") == "Copy from another person is not the identifier of a user."


def test_an_unknown_user_is_404(signed_in):
    assert signed_in.get(path_of("nobody-at-all")).status == 404
    assert signed_in.post(path_of("nobody-at-all"), {}).status == 404


def test_a_viewer_sees_and_cannot_change(browser_of, api, new_user, person_with):
    user = new_user()
    store(api, user, STATED)
    reader = browser_of(person_with(Role.VIEWER))

    page = reader.get(path_of(user))

    assert page.html.select_one("fieldset.working-hours").has_attr("disabled")
    assert page.html.select("main form") == []
    assert [each["value"] for each in page.html.select("[name=mondayFrom]")] == ["09:00", "13:00"]
    assert reader.post(path_of(user), {"hours": "any"}).status == 403
    assert stored(api, user) == STATED


def test_the_page_of_the_user_sums_it_up(signed_in, api, new_user):
    user = new_user()
    assert "Any time counts as working time" in signed_in.get(f"/users/{user}").text
    store(api, user, STATED)

    text = words(signed_in.get(f"/users/{user}").html.find("section", {"aria-labelledby": "hours"}))

    assert text == (
        "Working hours Week Mon, Tue, Wed, Thu, Fri 09:00 to 12:00; Mon 13:00 to 17:30 "
        "Time zone Asia/Tokyo Dates that differ 2 Public holidays JP Minutes before events 10 "
        "Minutes of notice 60 Change the working hours"
    )
