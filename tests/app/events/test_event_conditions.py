"""The fields of an event that the provider sets, and writes with ``If-Match``."""

from __future__ import annotations

import pytest

from tests.app.answers import error
from tests.app.at_provider import DELETE, SUBJECT, UPDATE, one
from tests.app.days import DAY, PROVIDERS, meeting, periods
from tests.app.listing import FORMS

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
ADA = "ada@example.com"
SERIES = meeting("09:00", "10:00", subject="Daily", recurrence="RRULE:FREQ=DAILY;COUNT=2")
LINK = {"google": "https://www.google.com/calendar/", "microsoft": "https://outlook.office365.com/"}
# A status at Google, and a way to show the owner at Microsoft.
TENTATIVE = {"google": "busy", "microsoft": "tentative"}
# The fields of the provider's own record.
RECORD = {
    "google": {"etag": "etag", "webLink": "htmlLink"},
    "microsoft": {"etag": "@odata.etag", "webLink": "webLink"},
}


@pytest.fixture
def changed_by_another(person):
    """Another program changes an event, and with it the event's etag."""
    return lambda event_id: person.there.patch(event_id, **{SUBJECT[person.provider]: "Another's"})


def refused(answer):
    """The message of a 412."""
    assert answer.status_code == 412, answer.text
    assert answer.json.keys() == {"data", "error", "code"}
    assert (answer.json["data"], answer.json["code"]) == (None, "eventChanged")
    assert "/docs/reference/errors/#412" in answer.headers["Link"]
    return answer.json["error"]


# --- the fields


@BOTH
def test_event_has_the_fields_that_schedulers_need(person):
    made = person.made(subject="Review")
    assert (made["status"], made["showAs"]) == ("confirmed", "busy")
    assert made["organizer"]["email"] == ADA
    assert made["organizer"]["self"] is True
    assert made["webLink"].startswith(LINK[person.provider])
    assert made["webLink"] == made["original"][RECORD[person.provider]["webLink"]]
    assert made["updatedAt"].endswith("Z")
    assert made["etag"].removeprefix("W/") == made["original"][RECORD[person.provider]["etag"]].removeprefix(
        "W/"
    )
    assert "recurringEventId" not in made
    changed = one(person.update(made["id"], location="Room 1"))
    assert changed["etag"] != made["etag"]
    assert changed["updatedAt"] >= made["updatedAt"]


@BOTH
@pytest.mark.parametrize(
    ("fields", "status", "shown"),
    [
        ({"google": {"transparency": "transparent"}, "microsoft": {"showAs": "free"}}, "confirmed", "free"),
        ({"google": {"status": "tentative"}, "microsoft": {"showAs": "tentative"}}, "tentative", TENTATIVE),
    ],
    ids=["free", "tentative"],
)
def test_the_words_of_both_providers_mean_the_same(person, fields, status, shown):
    event_id = person.there.post(**fields[person.provider])["id"]
    event = one(person.get(event_id))
    assert event["status"] == status
    assert event["showAs"] == (shown if isinstance(shown, str) else shown[person.provider])


@FORMS
@BOTH
def test_both_forms_of_the_list_have_the_fields_of_a_single_event(api, new_person, provider, form):
    person = new_person(provider, events=[SERIES])
    answer = api.get(f"/users/{person.user}/calendar/events", **(form or DAY))
    (listed,) = answer.json if isinstance(answer.json, list) else answer.json["data"]
    single = one(person.get(listed["id"]))
    names = {"status", "showAs", "organizer", "webLink", "recurringEventId", "updatedAt", "etag"}
    assert {name: listed[name] for name in names} == {name: single[name] for name in names}
    series = one(person.get(listed["recurringEventId"]))
    assert series["subject"] == "Daily"
    assert "recurringEventId" not in series


def test_each_copy_of_a_unified_event_has_its_own(api, new_user_with_two_accounts):
    user = new_user_with_two_accounts()
    body = {"subject": "Offsite", **meeting("14:00", "15:00"), "metaId": "m-1"}
    made = one(api.post(f"/users/{user}/calendar/events/meta", body), 201)
    assert (made["status"], made["showAs"]) == ("confirmed", "busy")
    assert made.keys().isdisjoint({"etag", "organizer", "webLink", "updatedAt"})
    copies = made["events"]
    assert [each["organizer"]["email"] for each in copies] == [ADA, "ada@contoso.example"]
    assert len({each["etag"] for each in copies}) == 2
    for copy in copies:
        path = f"/users/{user}/calendar/events/{copy['provider']}/primary/{copy['id']}"
        assert api.get(path).headers["ETag"] == copy["etag"]
        assert api.put(path, {"location": "Kyoto"}, headers={"If-Match": copy["etag"]}).status_code == 200


# --- conditions


@BOTH
def test_the_etag_is_in_a_header_that_compression_does_not_change(person):
    # Longer than ``app.http.responses.MIN_BYTES``.
    made = person.made(subject="Long", description="x" * 20_000)
    for accepted in ("identity", "gzip", "zstd"):
        answer = person.api.get(person.path(made["id"]), headers={"Accept-Encoding": accepted})
        assert answer.headers.get("Content-Encoding", "identity") == accepted
        assert answer.headers["ETag"] == made["etag"]


@BOTH
@pytest.mark.parametrize(
    "form",
    [str, lambda etag: etag.removeprefix("W/"), lambda etag: f" {etag} ", lambda _: "*"],
    ids=["weak", "strong", "spaces", "any"],
)
def test_an_event_that_has_not_changed_is_written(person, form):
    made = person.made(subject="Old")
    changed = one(person.update(made["id"], subject="New", headers={"If-Match": form(made["etag"])}))
    assert changed["subject"] == "New"
    assert person.delete(made["id"], headers={"If-Match": form(changed["etag"])}).status_code == 200
    assert person.there.events() == []


@BOTH
def test_an_event_that_another_client_has_changed_is_left_alone(person, changed_by_another):
    made = person.made(subject="Old")
    changed_by_another(made["id"])
    match = {"If-Match": made["etag"]}
    message = refused(person.update(made["id"], subject="New", headers=match))
    assert "has changed since it was read" in message
    assert refused(person.delete(made["id"], headers=match)) == message
    assert person.there.subjects() == ["Another's"]
    # Without the header, and with the new etag, it is written.
    assert one(person.update(made["id"], location="Room 1"))["subject"] == "Another's"
    fresh = person.get(made["id"]).headers["ETag"]
    assert person.delete(made["id"], headers={"If-Match": fresh}).status_code == 200


@BOTH
def test_of_two_updates_of_one_etag_the_second_is_refused(person):
    made = person.made(subject="Old")
    match = {"If-Match": made["etag"]}
    assert one(person.update(made["id"], subject="First", headers=match))["subject"] == "First"
    refused(person.update(made["id"], subject="Second", headers=match))
    assert person.there.subjects() == ["First"]


@BOTH
def test_a_deleted_event_is_not_found_whatever_its_etag(person):
    made = person.made()
    match = {"If-Match": made["etag"]}
    assert person.delete(made["id"], headers=match).status_code == 200
    assert error(person.delete(made["id"], headers=match), 404) == "Event not found"
    assert error(person.update(made["id"], subject="x", headers=match), 404) == "Event not found"


@pytest.mark.parametrize("provider", ["google"])
@pytest.mark.parametrize("wrong", ["1", '"a', '"a", "b"', 'w/"1"', "", '"a b"', "**"])
def test_a_header_that_is_no_etag_is_400_and_writes_nothing(sandbox, person, wrong):
    made = person.made(subject="Old")
    sandbox.forget_requests()
    for answer in (
        person.update(made["id"], subject="New", headers={"If-Match": wrong}),
        person.delete(made["id"], headers={"If-Match": wrong}),
    ):
        assert error(answer, 400) == "If-Match must be one etag in double quotes, or *"
    assert sandbox.requests().total == 0


@BOTH
def test_an_answer_that_is_lost_does_not_make_a_write_a_conflict(sandbox, person):
    made = person.made(subject="Old")
    sandbox.fault(operation=UPDATE[person.provider], body="reset", times=1)
    changed = one(person.update(made["id"], subject="New", headers={"If-Match": made["etag"]}))
    assert (changed["subject"], changed["etag"] == made["etag"]) == ("New", False)
    sandbox.fault(operation=DELETE[person.provider], body="reset", times=1)
    assert person.delete(made["id"], headers={"If-Match": changed["etag"]}).status_code == 200
    assert person.there.events() == []


@BOTH
def test_a_conflict_shows_the_change_of_the_other_client_in_busy_time(api, person):
    def busy():
        return periods(api.get(f"/users/{person.user}/calendar/busy", **DAY))

    made = person.made()
    assert busy() == [("09:00", "10:00")]
    free = {"google": {"transparency": "transparent"}, "microsoft": {"showAs": "free"}}
    person.there.patch(made["id"], **free[person.provider])
    refused(person.update(made["id"], subject="New", headers={"If-Match": made["etag"]}))
    assert busy() == []
