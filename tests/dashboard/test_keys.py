"""API keys: created, shown once, and revoked."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from app.dashboard.forms import Slug
from store.security.crypto import digest
from store.sql.models import ApiKey
from store.sql.queries import api_keys
from tests.conftest import Api
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words


def make(browser, name, /, **changed):
    """Fill the form in and send it."""
    page = browser.get("/keys/new")
    ticket = page.html.find("input", {"name": "ticket"})["value"]
    return browser.post(
        "/keys/new", {"name": name, "rights": "full", "lasts": "365", "ticket": ticket} | changed
    )


def shown(page):
    return page.html.find(id="key").get_text()


def stored(stores, key):
    with stores.database.reading() as session:
        return session.query(ApiKey).filter_by(digest=digest(key)).one()


def row(page, name):
    """The row of a key in the table."""
    found = [each for each in page.html.select("tbody tr") if name in words(each.th)]
    return found[0] if found else None


def test_a_new_key_is_shown_once_with_a_command_that_works(signed_in, app, stores, unique):
    page = make(signed_in, unique("billing"))

    assert page.status == 200
    assert page.heading == "Your new API key"
    assert page.headers["Cache-Control"] == "no-store"
    key = shown(page)
    curl = page.html.find(id="curl").get_text()
    sent, address = re.fullmatch(
        r'curl -H "Authorization: Bearer (\S+)" "http://localhost(/v1/users)"', curl
    ).groups()
    answer = app.test_client().get(address, headers={"Authorization": f"Bearer {sent}"})
    assert answer.status_code == 200
    assert key not in signed_in.get("/keys").text
    assert records(stores, key[:12]) == [("administrator ada", "createKey", key[:12])]


def test_a_page_loaded_again_makes_no_second_key_and_shows_none(signed_in, stores, unique):
    name = unique("twice")
    ticket = signed_in.get("/keys/new").html.find("input", {"name": "ticket"})["value"]
    form = {"name": name, "rights": "full", "lasts": "365", "ticket": ticket}
    first = signed_in.post("/keys/new", form | {"csrf_token": signed_in.page.token})

    again = signed_in.post("/keys/new", form)

    assert again.status == 409
    assert "no second key was made" in again.notices[0]
    assert shown(first) not in again.text
    with stores.database.reading() as session:
        assert session.query(ApiKey).filter_by(name=name).count() == 1


def test_a_form_that_made_no_key_may_be_sent_again(install):
    here = install()
    ticket = here.browser.get("/keys/new").html.find("input", {"name": "ticket"})["value"]

    with here.locked():
        assert make(here.browser, "billing", ticket=ticket).status == 503
    assert make(here.browser, "billing", ticket=ticket, organization="nowhere").status == 400
    assert make(here.browser, "billing", ticket=ticket).status == 200
    assert make(here.browser, "billing", ticket=ticket).status == 409


def test_a_key_may_have_less_than_everything(signed_in, app, stores, new_organization, unique):
    slug = new_organization()

    key = shown(
        make(signed_in, unique("narrow"), organization=slug, rights="read-only", tokens="shown", lasts="30")
    )

    kept = stored(stores, key)
    assert kept.read_only
    assert kept.shows_tokens
    assert timedelta(days=29, hours=23) < kept.expires_at - datetime.now(UTC) <= timedelta(days=30)
    caller = Api(app.test_client(), key)
    assert [each["slug"] for each in caller.get("/organizations").json["data"]] == [slug]
    assert caller.post("/users", {"id": unique("nobody")}).status_code == 403


def test_a_key_can_last_through_a_day_or_for_ever(signed_in, stores, unique):
    day = datetime.now(UTC).date() + timedelta(days=5)
    through = shown(make(signed_in, unique("through"), lasts="until", until=day.isoformat()))
    ever = shown(make(signed_in, unique("ever"), lasts="ever"))

    last_moment = stored(stores, through).expires_at - timedelta(milliseconds=1)
    assert last_moment.date() == day
    assert stored(stores, ever).expires_at is None


@pytest.mark.parametrize(
    ("changed", "field", "complaint"),
    [
        ({"name": ""}, "name", "Name is required."),
        ({"name": "n" * 129}, "name", "Name must have 1 to 128 characters."),
        ({"organization": "nowhere-at-all"}, "organization", "Organization with this slug does not exist."),
        (
            {"organization": "No Slug"},
            "organization",
            f"Organization {Slug.RULE}.",
        ),
        ({"lasts": "until"}, "until", "Last day is required."),
        ({"lasts": "until", "until": "soon"}, "until", "Last day must be a date, like 2027-01-31."),
        ({"lasts": "until", "until": "2020-01-01"}, "until", "Last day must not be in the past."),
        ({"lasts": "until", "until": "9999-12-31"}, "until", "Last day must be before the year 2200."),
    ],
)
def test_refused_key_has_a_field_error_and_can_be_resubmitted(
    signed_in, stores, unique, changed, field, complaint
):
    name = unique("refused")
    page = make(signed_in, name, **changed)

    assert page.status == 400
    assert page.error_of(field) == complaint
    ticket = page.html.find("input", {"name": "ticket"})["value"]
    good = signed_in.post("/keys/new", {"name": name, "rights": "full", "lasts": "30", "ticket": ticket})
    assert good.status == 200


def test_revoked_key_is_refused_and_listed_as_ended(signed_in, app, stores, unique):
    name = unique("leaving")
    key = shown(make(signed_in, name))
    caller = Api(app.test_client(), key)
    assert caller.get("/users", limit=1).status_code == 200
    form = row(signed_in.get("/keys"), name).form
    assert form["data-confirm"].startswith(f"Revoke {name}")

    after = signed_in.do(form["action"])

    assert after.notices == [f"The key {key[:12]}… is revoked. Requests with it are rejected."]
    assert caller.get("/users", limit=1).status_code == 401
    assert row(after, name) is None
    ended = signed_in.get("/keys", show="ended")
    assert "revoked" in words(row(ended, name))
    assert row(ended, name).form is None
    assert records(stores, key[:12])[0] == ("administrator ada", "revokeKey", key[:12])


def test_a_key_is_revoked_once(signed_in, stores, unique):
    key_id = stored(stores, shown(make(signed_in, unique("once")))).id
    signed_in.do(f"/keys/{key_id}/revoke")

    again = signed_in.do(f"/keys/{key_id}/revoke")

    assert again.notices == ["That key was already revoked or expired."]


def test_expired_keys_have_ended_and_those_about_to_are_marked(signed_in, stores, unique):
    now = datetime.now(UTC)
    gone, soon = unique("gone"), unique("soon")
    with stores.database.writing() as session:
        for name, ends in ((gone, now - timedelta(1)), (soon, now + timedelta(1))):
            api_keys.create(session, prefix="alm_", name=name, expires_at=ends)

    assert "expired" in words(row(signed_in.get("/keys", show="ended"), gone))
    in_force = signed_in.get("/keys")
    assert row(in_force, gone) is None
    assert "expires soon" in words(row(in_force, soon))


def test_an_unknown_key_cannot_be_revoked(signed_in):
    assert signed_in.do("/keys/0/revoke").notices == ["That key was already revoked or expired."]
    assert signed_in.do("/keys/99999999999999999999/revoke").status in (404, 405)


def test_an_incomplete_form_is_refused_and_can_be_completed(signed_in, unique):
    page = signed_in.post("/keys/new", {"name": unique("bare"), "rights": "full", "lasts": "30"})

    assert page.status == 400
    assert page.notices == ["This form had no one-time token. Send it again."]
    assert page.html.find("input", {"name": "ticket"})["value"]
    wrong = make(signed_in, unique("bare"), rights="everything", lasts="a while")
    assert [words(each) for each in wrong.html.select(".error")] == [
        "Permissions must be one of full, read-only.",
        "Expiry must be one of 30, 90, 365, until, ever.",
    ]
