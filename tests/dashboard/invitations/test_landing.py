"""The public page of an invitation, and the consent that it begins."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from app.dashboard import invitation_landing
from store.sql.models import Membership, Organization, User, UserInvitation, now
from store.sql.queries import audit, connection_rows, connections, user_invitations, users
from store.sql.queries.user_invitations import LIFETIME, InvitationState
from tests.app.consenting import BOTH, connected, consent, query_of
from tests.conftest import connect
from tests.dashboard.visiting import words
from tests.providers.ical.texts import calendar, event
from tests.providers.ics.server import feed_server
from workers.execution.registrations import Registrations

READ_ONLY = "https://www.googleapis.com/auth/calendar.readonly"


@pytest.fixture
def guest(app):
    """A browser that never signed in."""
    return app.test_client()


def state_of(stores, user):
    with stores.database.reading() as session:
        row = session.scalars(select(UserInvitation).join(User).where(User.custom_id == user)).one()
    return user_invitations.state(row)


def shift(stores, user, **values):
    with stores.database.writing() as session:
        number = users.ids(session, [user], organization_id=None)[user]
        session.execute(update(UserInvitation).where(UserInvitation.user_id == number).values(values))


def page_of(answer):
    return BeautifulSoup(answer.get_data(as_text=True), "html.parser")


def open_consent(guest, path, provider, **query):
    answer = guest.post(f"{path}/{provider}", query_string=query)
    assert answer.status_code == 303
    return answer.headers["Location"]


def arrive(guest, url):
    parts = urlsplit(url)
    return guest.get(f"{parts.path}?{parts.query}")


@BOTH
def test_a_person_connects_by_the_link(worker, guest, api, stores, sandbox, invited, provider):
    sandbox.account(provider, "ada@example.com")
    user, path = invited()
    assert state_of(stores, user) is InvitationState.PENDING

    assert guest.get(path).status_code == 200
    assert state_of(stores, user) is InvitationState.OPENED
    answer = arrive(guest, consent(open_consent(guest, path, provider)))

    assert answer.status_code == 200
    assert words(page_of(answer).h1) == "Connected"
    assert connected(api, user, provider)["email"] == "ada@example.com"
    assert state_of(stores, user) is InvitationState.CONNECTED
    again = guest.get(path)
    assert (again.status_code, words(page_of(again).h1)) == (410, "Already connected")
    assert guest.post(f"{path}/{provider}").status_code == 410


def test_page_names_the_organization_and_the_requested_access(guest, stores, invited):
    user, path = invited("free-busy")
    with stores.database.writing() as session:
        number = users.ids(session, [user], organization_id=None)[user]
        row = Organization(slug=f"org-{user}"[:100].lower(), name="Acme <b>Corp</b>")
        session.add(row)
        session.flush()
        session.add(Membership(organization_id=row.id, user_id=number))

    page = page_of(guest.get(path))

    assert words(page.h1) == "Connect your calendar with Acme <b>Corp</b>"
    assert user in words(page)
    assert [words(each) for each in page.select(".boundary ul")[0].select("li")] == [
        "Reads when you are busy"
    ]
    assert [words(each) for each in page.find_all("button")] == [
        "Continue with Google",
        "Continue with Microsoft",
    ]
    assert "calendar.freebusy" in query_of(open_consent(guest, path, "google"))["scope"]


def test_opening_the_page_makes_no_state_and_lasts_for_days(guest, stores, invited):
    user, path = invited()
    before = set(stores.redis.scan_iter("oauth-state:*"))
    assert guest.get(path).status_code == 200
    assert set(stores.redis.scan_iter("oauth-state:*")) <= before

    shift(stores, user, created_at=now() - timedelta(days=6), expires_at=now() + LIFETIME - timedelta(days=6))
    assert guest.get(path).status_code == 200


@pytest.mark.parametrize(
    ("values", "heading"),
    [
        ({"expires_at": now() - timedelta(seconds=1)}, "This invitation has expired"),
        ({"revoked_at": now()}, "This invitation was withdrawn"),
        ({"connected_at": now()}, "Already connected"),
    ],
)
def test_invalid_link_is_410_with_a_reason(guest, stores, invited, values, heading):
    user, path = invited()
    shift(stores, user, **values)

    for answer in (guest.get(path), guest.post(f"{path}/google")):
        assert answer.status_code == 410
        assert words(page_of(answer).h1) == heading


def test_an_unknown_link_is_not_found(guest):
    answer = guest.get("/invitation/guessed")

    assert (answer.status_code, words(page_of(answer).h1)) == (404, "This invitation is not valid")


def test_consent_of_a_withdrawn_link_connects_nothing(worker, guest, api, stores, sandbox, invited):
    sandbox.account("google", "ada@example.com")
    user, path = invited()
    url = consent(open_consent(guest, path, "google"))
    shift(stores, user, revoked_at=now())

    answer = arrive(guest, url)

    assert answer.status_code == 400
    assert "This invitation has expired, or was used or withdrawn" in answer.get_data(as_text=True)
    assert api.get(f"/users/{user}/oauth").json["data"] == []


def test_a_consent_belongs_to_the_browser_that_began_it(guest, app, api, sandbox, invited):
    sandbox.account("google", "ada@example.com")
    user, path = invited()
    url = consent(open_consent(guest, path, "google"))

    assert arrive(app.test_client(), url).status_code == 400
    assert api.get(f"/users/{user}/oauth").json["data"] == []


def test_a_refusal_leads_back_to_the_invitation(guest, stores, invited):
    user, path = invited()
    state = query_of(open_consent(guest, path, "google"))["state"]

    answer = guest.get(f"/v1/oauth/google/callback?state={state}&error=access_denied")

    assert page_of(answer).find("a", string="Try again")["href"] == path
    assert guest.get(path).status_code == 200
    assert state_of(stores, user) is InvitationState.OPENED


def test_the_page_is_private_and_calls_no_other_host(guest, invited):
    answer = guest.get(invited()[1])

    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'nonce-")
    assert "form-action 'self' http" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    for outside in ("http:", "https:", "<script", "src="):
        assert outside not in answer.get_data(as_text=True)


def test_the_pages_need_no_registration(guest, monkeypatch):
    """They are shown while the database, which may have it, is down."""

    def down(_self):
        raise OperationalError("SELECT", {}, Exception("down"))

    monkeypatch.setattr(Registrations, "current", down)
    monkeypatch.setattr(user_invitations, "find", lambda *_, **__: down(None))
    answer = guest.get("/invitation/guessed")
    assert answer.status_code == 503
    assert "form-action 'self' http" in answer.headers["Content-Security-Policy"]


def test_an_address_that_opens_too_many_has_to_wait(guest, invited, monkeypatch):
    _, path = invited()
    monkeypatch.setattr(
        invitation_landing, "PER_MINUTE", invitation_landing.RateLimitItemPerMinute(3, 1, namespace="few")
    )
    here = {"environ_overrides": {"REMOTE_ADDR": "10.9.8.7"}}

    answers = [guest.get("/invitation/guessed", **here).status_code for _ in range(4)]

    assert answers == [404, 404, 404, 429]
    assert guest.get(path, **here).headers["Retry-After"] == "60"
    assert guest.get(path, environ_overrides={"REMOTE_ADDR": "10.9.8.8"}).status_code == 200


def test_the_secret_is_in_no_log_and_no_repr(guest, stores, invited, caplog):
    caplog.set_level("DEBUG")
    user, path = invited()
    secret = path.rpartition("/")[2]

    guest.get(path)
    guest.post(f"{path}/google")

    assert secret not in caplog.text
    assert secret not in repr(user_invitations.NewInvitation(user, secret))


def test_a_person_may_connect_another_account(worker, api, sandbox, stores, invited, guest):
    user, path = invited()
    for email in ("ada@example.com", "family@example.com"):
        sandbox.account("google", email)
    connect(api, user, sandbox.account("google", "ada@example.com"))

    buttons = [words(each) for each in page_of(guest.get(path)).select("button")]
    url = open_consent(guest, path, "google", account="add")
    page = arrive(guest, consent(url, "family@example.com"))

    assert buttons == [
        "Continue with Google",
        "Connect another Google account",
        "Continue with Microsoft",
    ]
    assert query_of(url)["prompt"] == "select_account consent"
    assert "family@example.com" in page.get_data(as_text=True)
    listed = api.get(f"/users/{user}/connections").json["data"]
    assert [each["email"] for each in listed] == ["ada@example.com", "family@example.com"]
    assert state_of(stores, user) is InvitationState.CONNECTED


@pytest.fixture(scope="module")
def feed():
    """The address of a feed."""
    meeting = event("DTSTART:20261201T090000Z\nDTEND:20261201T100000Z")
    with feed_server() as running:
        yield running.put(calendar(meeting))


def test_a_person_connects_by_a_form(worker, guest, api, stores, feed, invited):
    user, path = invited()
    links = {words(each): each["href"] for each in page_of(guest.get(path)).select("a.button")}
    assert list(links) == ["Connect CalDAV", "Connect Calendar feed"]
    page = page_of(guest.get(links["Connect Calendar feed"]))
    assert words(page.h1) == "Connect Calendar feed"
    assert "Reads the events of your calendars" in words(page)
    advised = page_of(guest.get(page.select_one("nav.filter a")["href"]))
    assert "Integrate calendar" in words(advised)

    refused = guest.post(page.form["action"], data={"url": f"{feed}.gone", "label": "Holiday home"})

    assert refused.status_code == 400
    form = page_of(refused)
    assert words(form.find(id="e-url")).startswith("Address leads to no calendar")
    assert form.find(id="f-label")["value"] == "Holiday home"
    assert state_of(stores, user) is InvitationState.OPENED

    answer = guest.post(page.form["action"], data={"url": feed, "label": "Holiday home"})

    assert (answer.status_code, words(page_of(answer).h1)) == (200, "Connected")
    assert "Calendar feed (Holiday home) is connected." in words(page_of(answer))
    (connection,) = api.get(f"/users/{user}/connections").json["data"]
    assert (connection["provider"], connection["alive"]) == ("ics", True)
    assert state_of(stores, user) is InvitationState.CONNECTED
    with stores.database.reading() as session:
        (record,) = [each for each in audit.page(session, limit=50) if each.subject == f"{user}/ics"]
    assert (record.actor.startswith("operator "), record.action) == (True, "storeConnection")
    # Used up.
    assert guest.get(page.form["action"]).status_code == 410
    assert guest.post(page.form["action"], data={"url": feed}).status_code == 410


def test_another_account_is_offered_where_one_is_connected(worker, guest, api, feed, invited):
    user, path = invited()
    api.post(f"/users/{user}/connections", {"provider": "ics", "url": feed})

    links = [words(each) for each in page_of(guest.get(path)).select("a.button")]

    assert links == ["Connect CalDAV", "Connect another Calendar feed"]


def test_an_ended_account_is_reconnected_by_an_invitation(worker, guest, api, stores, feed, invited):
    user, path = invited()
    body = {"provider": "ics", "url": feed, "label": "Holiday home"}
    connection = api.post(f"/users/{user}/connections", body).json["data"]["id"]
    form = f"{path}/form/ics?account={connection}"
    # Nothing of a living account is shown.
    assert words(page_of(guest.get(form)).h1) == "Connect Calendar feed"
    with stores.database.writing() as session:
        (ref,) = connection_rows.of_user(session, user, organization_id=None)
        connections.mark_dead(session, ref.id, "ended")

    links = {words(each): each["href"] for each in page_of(guest.get(path)).select("a.button")}
    page = page_of(guest.get(links["Reconnect Calendar feed (Holiday home)"]))

    assert (words(page.h1), page.find(id="f-label")["value"]) == ("Reconnect Calendar feed", "Holiday home")
    answer = guest.post(page.form["action"], data={"url": feed, "label": "Holiday home"})
    assert "Calendar feed (Holiday home) is connected again." in words(page_of(answer))
    (after,) = api.get(f"/users/{user}/connections").json["data"]
    assert (after["id"], after["alive"]) == (connection, True)


def test_an_invitation_withdrawn_meanwhile_connects_nothing(
    worker, guest, api, stores, feed, invited, monkeypatch
):
    user, path = invited()
    opened = invitation_landing.account_page.account_forms._open

    def slowly(entered):
        shift(stores, user, revoked_at=now())
        return opened(entered)

    monkeypatch.setattr(invitation_landing.account_page.account_forms, "_open", slowly)
    answer = guest.post(f"{path}/form/ics", data={"url": feed})

    assert answer.status_code == 400
    assert "Nothing is stored." in words(page_of(answer).find(role="alert"))
    assert api.get(f"/users/{user}/connections").json["data"] == []
