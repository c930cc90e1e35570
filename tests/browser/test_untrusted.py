"""Texts of users and providers appear unchanged on every page and never run as HTML or script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

import pytest
from selenium.common.exceptions import NoAlertPresentException

from tests.browser import window
from tests.browser.content import (
    ADDRESSES,
    COLLECTOR,
    EMOJI,
    HTML,
    LONG,
    NAMES,
    RTL,
    UNREAD,
    UNREAD_MAIL,
    UNREADABLE,
    next_workday,
)
from tests.browser.pages import every_rule, needs_sign_in
from tests.browser.visitor import Pointer
from tests.dashboard.routes import path

MAILS = tuple(filter(None, ADDRESSES[1:]))
ENDED = f"Google says: {HTML} {LONG}"
GRANT_ENDED = f"Microsoft says: {HTML} {LONG}"
RULES = every_rule()


@dataclass(frozen=True)
class Untrusted:
    """The untrusted ``texts`` that a page must show, with these path arguments and this query."""

    texts: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    query: Callable[[], Mapping[str, str]] = dict


def at_nine() -> dict[str, str]:
    """A query for the explanation of the moment of the events with difficult names."""
    day = f"{next_workday():%Y-%m-%d}"
    query = {"users": COLLECTOR, "day": day, "days": "1", "zone": "UTC", "person": COLLECTOR}
    return {**query, "moment": f"{day}T09:30", "calendar": "odd-0"}


NOTHING = Untrusted()
THE_USER = Untrusted((str(ADDRESSES[0]), *NAMES, UNREAD), {"custom_id": COLLECTOR})
IN_CALENDARS = Untrusted(NAMES, {"custom_id": COLLECTOR})

# Every page and every part of a page. A new page must be added here.
PAGES: Mapping[str, Untrusted] = {
    "account": Untrusted((HTML, *NAMES)),
    "account_form": NOTHING,
    "activity": NOTHING,
    # Another administrator, signed in with a browser of this name.
    "administrator": Untrusted((LONG, HTML)),
    "activity_plots": NOTHING,
    "audit_log": Untrusted(NAMES),
    # The page repeats only known sentences from its address.
    "connected": Untrusted(("it did not work this time",), query=lambda: {"error": HTML}),
    # A reload of the question leads to the first page of all users, which may be those of other tests.
    "delete_users": Untrusted(("Users",)),
    "explorer": Untrusted((f"Google ({UNREAD_MAIL})",), query=lambda: {"show": "1", "users": UNREADABLE}),
    "explorer_events": Untrusted(NAMES, query=at_nine),
    "explorer_grid": Untrusted((f"Google ({UNREAD_MAIL})",), query=lambda: {"users": UNREADABLE}),
    "explorer_periods": Untrusted(query=lambda: {"users": UNREADABLE, "person": UNREADABLE}),
    "explorer_why": Untrusted((str(ADDRESSES[0]),), query=at_nine),
    "edit_webhook": Untrusted((f"/{LONG}?token=x&b=<b>",)),
    "grant": Untrusted((HTML, str(ADDRESSES[0])), {"slug": "odd-0"}),
    "grant_members": NOTHING,
    "invitations": Untrusted((HTML,)),
    "keys": Untrusted(NAMES),
    "new_invitations": NOTHING,
    "new_key": NOTHING,
    "new_webhook": NOTHING,
    "organization": Untrusted((HTML, *MAILS, str(ADDRESSES[0]), GRANT_ENDED), {"slug": "odd-0"}),
    "organizations": Untrusted(NAMES),
    "overview": Untrusted((ENDED,)),
    "overview_day": NOTHING,
    "overview_health": NOTHING,
    "palette": Untrusted((*NAMES, str(ADDRESSES[0])), query=lambda: {"q": "odd"}),
    # The browser is sent on to the user's page.
    "reload_connect": THE_USER,
    "reload_rotate": Untrusted((f"/{LONG}?token=x&b=<b>",)),
    "second_factor": NOTHING,
    "settings": NOTHING,
    "sign_in": NOTHING,
    # Without a password before it, the sign-in.
    "sign_in_code": NOTHING,
    # Without an identity provider, the sign-in, and a page that says so.
    "sign_in_openid": NOTHING,
    "sign_in_openid_callback": NOTHING,
    "suggestions": Untrusted(NAMES, {"kind": "organizations"}, lambda: {"q": "odd"}),
    "user": THE_USER,
    "user_calendars": IN_CALENDARS,
    "user_events": Untrusted((*NAMES, f"{UNREAD} (Google)"), {"custom_id": COLLECTOR}),
    # Other tests register users too; these names share a prefix.
    "users": Untrusted((str(ADDRESSES[0]), *MAILS), query=lambda: {"q": "odd"}),
    "webhook": Untrusted((f"/{LONG}?token=x&b=<b>", HTML)),
    "webhook_log": Untrusted((f"/{LONG}?token=x&b=<b>", HTML)),
    "webhooks": Untrusted((f"/{LONG}?token=x&b=<b>",)),
    "welcome": NOTHING,
    "working_hours": IN_CALENDARS,
}

# The visible text and the values of fields, as one line.
READ = """
const fields = [...document.querySelectorAll("input:not([type=hidden], [type=password]), textarea")];
return [document.body.innerText, ...fields.map((each) => each.value)].join(" ").replace(/\\s+/g, " ");
"""
# Elements that the texts would create if they were HTML.
MADE = "return [...document.querySelectorAll('b, i, [onmouseover]')].map((each) => each.outerHTML)"


@pytest.fixture
def shown(browser, web, content, sign_in):
    """Open a page with untrusted texts, signed in if the page requires it."""

    def opened(path, name=""):
        if not name or needs_sign_in(f"dashboard.{name}"):
            sign_in()
        window.resize(browser, 1440)
        window.opened(browser, f"{web}{path}")

    return opened


def read(browser):
    """The text of a page, after a check that the untrusted texts created no elements."""
    window.unfold(browser)
    assert browser.execute_script(MADE) == []
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert
    # Without the page's head, a part does not name its icon.
    # The way back from an identity provider answers 400 when no sign-in was begun.
    expected = ("favicon", "/sign-in/openid/callback")
    assert [each for each in window.complaints(browser) if not any(known in each for known in expected)] == []
    return browser.execute_script(READ)


@pytest.mark.parametrize("name", PAGES)
def test_untrusted_text_is_shown_unchanged(browser, shown, content, name):
    expected = PAGES[name]
    query = urlencode(expected.query())
    shown(f"{path(RULES[name], {**content, **expected.names})}?{query}", name)

    text = read(browser)

    assert [each for each in expected.texts if " ".join(each.split()) not in text] == []
    assert expected.texts or "onmouseover" not in text


def test_every_page_is_tested():
    assert set(PAGES) == set(RULES)


@pytest.mark.parametrize("name", ["audit_log", "organization", "organizations", "users"])
@pytest.mark.parametrize("text", NAMES)
def test_what_is_searched_for_stands_in_its_field(browser, shown, content, name, text):
    shown(f"{path(RULES[name], content)}?{urlencode({'q': text})}")

    assert text in read(browser)


# An action with a confirmation that quotes an untrusted name.
ASKED = {
    "administrator": (
        "Remove",
        "",
        f"Remove {LONG}? All their browsers are signed out, and their open links and invitations",
    ),
    "keys": ("Revoke", HTML, f"Revoke {HTML} (alm_"),
    "webhooks": (
        "Delete",
        f"https://hooks.example.com/{LONG}?token=x&b=<b>",
        f"Delete the webhook https://hooks.example.com/{LONG}?token=x&b=<b>?",
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_question_names_things_as_they_were_named(browser, shown, content, name):
    button, near, question = ASKED[name]
    shown(path(RULES[name], content))

    if name != "administrator":
        Pointer(browser).use(f"Actions for {near}")
    Pointer(browser).use(button, near=near)

    assert Pointer(browser).text("dialog").startswith(question)
    assert question in read(browser)


def test_messages_show_names_as_they_were_entered(browser, shown, content):
    shown("/dashboard/account")
    visitor = Pointer(browser)

    visitor.use(f"Manage {EMOJI}").at(EMOJI).use("Remove").use("Remove", near="All their browsers")
    visitor.sees_notice(f"{EMOJI} is removed. Their open links and invitations are withdrawn.")
    shown("/dashboard/keys/new")
    visitor.write("Name", HTML).use("Create the key").at("Your new API key")

    assert visitor.text("h2") == HTML
    read(browser)


def test_a_form_that_is_refused_keeps_what_was_written(browser, shown, content):
    shown("/dashboard/organizations")
    visitor = Pointer(browser)

    visitor.use("Create an organization").write("Name optional", HTML).write("Slug optional", RTL)
    visitor.use("Create").sees_notice("Please correct the highlighted fields.")

    # The browser has logged only the status of the answer.
    (complaint,) = window.complaints(browser)
    assert "a status of 400" in complaint
    assert f"{HTML} {RTL}" in read(browser)
