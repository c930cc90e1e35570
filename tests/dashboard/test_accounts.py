"""Several accounts of one provider on the page of a user."""

from __future__ import annotations

import re

import pytest

from tests.app.consenting import query_of
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words


@pytest.fixture
def user(sandbox, new_user):
    return new_user(
        sandbox.account("google", "ada@example.com"), sandbox.account("google", "family@example.com")
    )


def listed(api, user):
    return api.get(f"/users/{user}/connections").json["data"]


def emails(api, user):
    return [each["email"] for each in listed(api, user)]


def test_each_account_is_shown_and_one_is_the_default(signed_in, user):
    page = signed_in.get(f"/users/{user}")

    # Providers without a consent follow, and the invitation.
    first, second, microsoft, *_ = (words(each) for each in page.html.select(".connection"))
    assert first.startswith("Google (ada@example.com) connected default")
    assert second.startswith("Google (family@example.com) connected E-mail")
    assert microsoft.startswith("Microsoft not connected")
    assert "Connect another Google account" in first
    assert "Connect another" not in second
    assert "Make Google (family@example.com) the default" in second


def test_each_account_is_reconnected_alone(signed_in, api, user):
    page = signed_in.get(f"/users/{user}")

    buttons = page.html.select("button[name=account]:not([value=add])")

    assert [(words(each), each["value"]) for each in buttons] == [
        (f"Reconnect Google ({each['email']})", each["id"]) for each in listed(api, user)
    ]


def test_another_account_becomes_the_default_one(signed_in, api, stores, user):
    second = listed(api, user)[1]["id"]

    page = signed_in.do(f"/users/{user}/connections/{second}/default")

    assert page.notices == ["family@example.com is the default account of Google now."]
    assert emails(api, user) == ["family@example.com", "ada@example.com"]
    assert records(stores, user)[0] == ("administrator ada", "changeConnection", f"{user}/google")


def test_a_label_is_saved_and_removed(signed_in, api, user):
    second = listed(api, user)[1]["id"]

    page = signed_in.do(f"/users/{user}/connections/{second}/label", {"label": "Family <b>"})
    assert page.notices == ["The label is saved."]
    assert "Google (Family <b>)" in [each.get_text() for each in page.html.select("h3")]

    signed_in.do(f"/users/{user}/connections/{second}/label", {"label": ""})
    assert listed(api, user)[1]["label"] is None
    refused = signed_in.do(f"/users/{user}/connections/{second}/label", {"label": "x" * 129})
    assert refused.notices == ["A label has at most 128 characters."]


def test_one_account_is_disconnected_and_the_other_stays(worker, signed_in, api, user):
    form = (
        signed_in.get(f"/users/{user}")
        .html.select(".connection")[0]
        .find("form", action=re.compile("/disconnect/"))
    )
    assert "Disconnect Google (ada@example.com) from" in form["data-confirm"]

    signed_in.do(form["action"])

    assert emails(api, user) == ["family@example.com"]
    assert listed(api, user)[0]["default"]


def test_what_is_gone_is_said(signed_in, user):
    gone = "That account was disconnected or replaced meanwhile."
    for path in ("default", "label"):
        assert signed_in.do(f"/users/{user}/connections/{0:032x}/{path}").notices == [gone]
    connect = signed_in.do(f"/users/{user}/connect/google", {"scope": "write", "account": f"{0:032x}"})
    assert connect.notices == [gone]


def test_links_say_what_they_replace(signed_in, api, user):
    second = listed(api, user)[1]["id"]

    def made(**form):
        page = signed_in.post(f"/users/{user}/connect/google", {"scope": "write", **form})
        return words(page.html.select_one(".lead")), query_of(page.html.find(id="to-send").get_text())

    text, query = made(account="add")
    assert "beside the Google accounts that are connected" in text
    assert query["prompt"] == "select_account consent"
    text, query = made(account=second)
    assert "again: only family@example.com is accepted" in text
    assert query["login_hint"] == "family@example.com"
    text, query = made()
    assert "replaces ada@example.com" in text


def test_a_failed_read_is_shown_with_its_beginning(worker, signed_in, api, sandbox, user):
    sandbox.fault(email="family@example.com", status=404)
    api.get(f"/users/{user}/scheduling", start="2026-12-03", end="2026-12-04")

    second = words(signed_in.get(f"/users/{user}").html.select(".connection")[1])

    assert "Last read failed" in second
    assert "It has failed since" in second


def test_calendars_and_events_name_the_account(worker, signed_in, sandbox, user):
    sandbox.fault(email="family@example.com", status=404)

    page = signed_in.get(f"/users/{user}/calendars")

    assert "Google (ada@example.com)" in words(page.html.find("tbody"))
    assert "Google (family@example.com) could not be read" in words(page.html.find(class_="notice"))
