"""Everything that a person or an API key has made is worth nothing once its maker has lost the right.

Each test makes every kind of link, invitation, state and session, then ends the rights of the maker, tries
each over HTTP and prints a table. `docs/operate/security.md` has the same kinds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from argon2 import PasswordHasher
from bs4 import BeautifulSoup
from flask import Flask
from sqlalchemy import select, update
from werkzeug.test import TestResponse

from app.accounts import consent_refusals
from app.cli import administrator_setup
from app.dashboard.sign_in import passwords
from providers.sandbox.client import Sandbox
from store.security import one_time_secrets
from store.sql.models import ApiKey, Role, now
from store.sql.queries import administrators
from store.stores import Stores
from tests.app.consenting import ADA, OWN, arrive, consent, query_of
from tests.conftest import Api
from tests.dashboard.sign_in.test_second_factor import set_up
from tests.dashboard.visiting import Browser, Person, words
from tests.security import keys
from tests.security.keys import Kind

pytestmark = [pytest.mark.security, pytest.mark.usefixtures("quick_passwords", "worker")]

PASSWORD, NEW = "eight louder calendars", "nine even louder calendars"
PERSON_GONE = "This link was withdrawn; ask the person who sent it for a new one"
KEY_GONE = "The API key that made this link is no longer in force"


# The kinds of links, states and sessions of a person and of an API key, in the order of the tables.
OF_PEOPLE = (
    "consent link for this browser",
    "consent link to send",
    "link of the page after a refused consent",
    "invitation of a user",
    "button of an invitation of a user",
    "consent that an invitation began",
    "invitation to the dashboard",
    "session of another browser",
    "sign-in whose code is pending",
)
OF_KEYS = (
    "consent link by authorize",
    "consent link by link",
    "consent link by links",
    "link of the page after a refused consent",
    "consent by redirectUrl, verified by another key",
    "stored answer of an Idempotency-Key",
)


class Answer(NamedTuple):
    """The result of an attempt: whether it was let in, the status, and the sentence to read."""

    let_in: bool
    status: int
    sentence: str


class Made(NamedTuple):
    """Something that the maker has made, and a way to try it."""

    kind: str
    attempt: Callable[[], Answer]


def tried(title: str, made: list[Made]) -> list[Answer]:
    """Try each, and print the table."""
    answers = [each.attempt() for each in made]
    rows = zip(made, answers, strict=True)
    table = [f"  {each.kind:44} {answer.status}  {answer.sentence}" for each, answer in rows]
    sys.stdout.write("\n".join(["", title, *table, ""]))
    return answers


@pytest.fixture
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_hasher", PasswordHasher(time_cost=1, memory_cost=16, parallelism=1))


@pytest.fixture
def allowing(new_app: Callable[..., Flask]) -> Flask:
    return new_app(redirect_urls=(OWN,))


@pytest.fixture
def root(allowing: Flask, stores: Stores, unique: Callable[[str], str]) -> Iterator[Browser]:
    """The browser of another administrator."""
    person = Person(unique("root"), PASSWORD)
    administrator_setup.create(stores, person.name, person.password)
    browser = Browser(allowing.test_client())
    assert browser.sign_in(person).status == 303
    yield browser
    with stores.database.writing() as session:
        found = administrators.find(session, person.name)
        assert found is not None
        if administrators.count(session) > 1:
            administrators.remove(session, found.id)


def paragraph(answer: TestResponse) -> str:
    """The heading and the first sentence of a page, or the error of an answer in JSON."""
    if answer.is_json:
        return str((answer.json or {}).get("error"))
    page = BeautifulSoup(answer.get_data(as_text=True), "html.parser")
    return " / ".join(words(each) for each in page.select("h1, main p, .notice")[:2]) or words(page)[:120]


def landing(client: Any, url: str, connected: Callable[[], bool]) -> Callable[[], Answer]:
    """An attempt to finish a consent to which the account's owner has agreed."""

    def attempt() -> Answer:
        answer = arrive(Api(client, ""), url)
        back = query_of(answer.headers["Location"]) if answer.status_code == 302 else {}
        # The dashboard gets a code, a client the sentence.
        refusal = consent_refusals.of_word(back.get("refusal", ""))
        shown = consent_refusals.sentence(refusal, "Google", []) if refusal else paragraph(answer)
        sentence = back.get("error") or shown
        return Answer(connected(), answer.status_code, sentence)

    return attempt


# --- people


class Maker:
    """An administrator with a second factor and several browsers."""

    def __init__(self, app: Flask, stores: Stores, name: str) -> None:
        self.person = Person(name, PASSWORD)
        self.app = app
        administrator_setup.create(stores, name, PASSWORD)
        self.browser = Browser(app.test_client())
        assert self.browser.sign_in(self.person).status == 303
        _, self.codes = set_up(self.browser, current=PASSWORD)

    def with_password(self) -> Browser:
        """Another browser, in which the code of the second factor is missing."""
        browser = Browser(self.app.test_client())
        assert browser.sign_in(self.person).location.startswith("/dashboard/sign-in/code")
        return browser

    def signed_in(self) -> Browser:
        browser = self.with_password()
        assert browser.post("/sign-in/code", {"code": self.codes.pop()}).status == 303
        return browser


def made_by(maker: Maker, api: Api, new_user: Callable[..., str]) -> list[Made]:
    """One of every kind that a person can make; the owners of the accounts have agreed already."""
    browser, made = maker.browser, []

    def is_connected(user: str) -> Callable[[], bool]:
        return lambda: api.get(f"/users/{user}/oauth").json["data"] != []

    def add_consent(kind: str, client: Any, link: str, user: str) -> None:
        made.append(Made(kind, landing(client, consent(link), is_connected(user))))

    def links_for(user: str) -> tuple[str, str]:
        page = browser.post(f"/users/{user}/connect/google", {"scope": "write"})
        return page.html.select_one(".shown-once a.button")["href"], page.html.find(id="to-send").get_text()

    user = new_user()
    add_consent("consent link for this browser", browser.client, links_for(user)[0], user)

    user = new_user()
    add_consent("consent link to send", maker.app.test_client(), links_for(user)[1], user)

    user, stranger = new_user(), maker.app.test_client()
    link = repeated(stranger, links_for(user)[1])
    add_consent("link of the page after a refused consent", stranger, link, user)

    user, guest = new_user(), maker.app.test_client()
    path = invite(browser, user)
    made.append(Made("invitation of a user", lambda: opened(guest, path)))
    made.append(Made("button of an invitation of a user", lambda: sent(guest, f"{path}/google")))

    user, invited = new_user(), maker.app.test_client()
    begun = invited.post(f"{invite(browser, user)}/google")
    assert begun.status_code == 303
    add_consent("consent that an invitation began", invited, begun.headers["Location"], user)

    ticket = browser.get("/account").html.find("input", {"name": "ticket"})["value"]
    page = browser.post("/account/administrators/invite", {"ticket": ticket, "role": "viewer"})
    welcome = urlsplit(page.html.find(id="link").get_text()).path
    fellow = Browser(maker.app.test_client())
    form = {"name": f"{maker.person.name} the second", "password": PASSWORD, "again": PASSWORD}
    made.append(Made("invitation to the dashboard", lambda: entered(fellow, welcome, form)))

    other, half = maker.signed_in(), maker.with_password()
    made.append(Made("session of another browser", lambda: administers(other)))
    code = maker.codes.pop()
    made.append(Made("sign-in whose code is pending", lambda: signs_in(half, code)))
    assert tuple(each.kind for each in made) == OF_PEOPLE
    return made


def repeated(client: Any, link: str) -> str:
    """Refuse a consent; returns the link of the page that follows."""
    refused = client.get(
        "/v1/oauth/google/callback", query_string={"state": query_of(link)["state"], "error": "access_denied"}
    )
    return str(BeautifulSoup(refused.text, "html.parser").find("a", string="Try again")["href"])


def invite(browser: Browser, user: str) -> str:
    ticket = browser.get("/invitations/new").html.find("input", {"name": "ticket"})["value"]
    page = browser.post("/invitations/new", {"users": user, "scope": "write", "ticket": ticket})
    return urlsplit(page.html.find(id="link").get_text()).path


def opened(client: Any, path: str) -> Answer:
    answer = client.get(path)
    return Answer(answer.status_code == 200, answer.status_code, paragraph(answer))


def sent(client: Any, path: str) -> Answer:
    answer = client.post(path)
    sentence = "to the provider" if answer.status_code == 303 else paragraph(answer)
    return Answer(answer.status_code == 303, answer.status_code, sentence)


def entered(browser: Browser, path: str, form: dict[str, str]) -> Answer:
    page = browser.post(path, form)
    return Answer(page.status == 303, page.status, "registered" if page.status == 303 else page.heading)


def administers(browser: Browser) -> Answer:
    """Whether the session may still do what only administrators may."""
    page = browser.get("/keys/new")
    return Answer(page.status == 200, page.status, page.location or page.heading)


def signs_in(browser: Browser, code: str) -> Answer:
    page = browser.post("/sign-in/code", {"code": code})
    page = browser.get("/account")
    return Answer(page.status == 200, page.status, page.location or page.heading)


def removed(maker: Maker, root: Browser, number: int, stores: Stores) -> None:
    assert root.post(f"/account/administrators/{number}/remove").status == 303


def demoted_to(role: Role) -> Callable[..., None]:
    def demote(maker: Maker, root: Browser, number: int, stores: Stores) -> None:
        assert root.post(f"/account/administrators/{number}/role", {"role": role}).status == 303

    return demote


def new_password(maker: Maker, root: Browser, number: int, stores: Stores) -> None:
    form = {"current": PASSWORD, "password": NEW, "again": NEW}
    assert maker.browser.post("/account/password", form).status == 303


def new_password_by_command(maker: Maker, root: Browser, number: int, stores: Stores) -> None:
    assert not administrator_setup.create(stores, maker.person.name, NEW)


def second_factor_reset(maker: Maker, root: Browser, number: int, stores: Stores) -> None:
    assert root.post(f"/account/administrators/{number}/second-factor/reset").status == 303


def second_factor_turned_off(maker: Maker, root: Browser, number: int, stores: Stores) -> None:
    assert maker.browser.post("/account/second-factor/disable", {"current": PASSWORD}).status == 303


ENDS_OF_PEOPLE = {
    "removed": removed,
    "demoted to operator": demoted_to(Role.OPERATOR),
    "demoted to viewer": demoted_to(Role.VIEWER),
    "new password": new_password,
    "new password, by the command line": new_password_by_command,
    "second factor reset by another administrator": second_factor_reset,
    "second factor turned off": second_factor_turned_off,
}


@pytest.fixture
def maker(allowing: Flask, stores: Stores, unique: Callable[[str], str], sandbox: Sandbox) -> Maker:
    sandbox.account("google", ADA)
    return Maker(allowing, stores, unique("maker"))


def number_of(stores: Stores, maker: Maker) -> int:
    with stores.database.reading() as session:
        found = administrators.find(session, maker.person.name)
        assert found is not None
        return found.id


@pytest.mark.parametrize("end", ENDS_OF_PEOPLE)
def test_what_a_person_made_ends_with_their_rights(
    maker: Maker, root: Browser, api: Api, new_user, stores: Stores, end: str
):
    made = made_by(maker, api, new_user)

    ENDS_OF_PEOPLE[end](maker, root, number_of(stores, maker), stores)
    answers = tried(f"A person, {end}:", made)

    assert [each.kind for each, answer in zip(made, answers, strict=True) if answer.let_in] == []
    assert all(answer.sentence for answer in answers)
    consents = [a for each, a in zip(made, answers, strict=True) if each.kind.startswith("consent link")]
    assert all(PERSON_GONE in answer.sentence for answer in consents)


def test_what_a_person_made_works_while_they_have_their_rights(
    maker: Maker, root: Browser, api: Api, new_user, stores: Stores
):
    """Also when another person is removed, and when the maker gets more rights."""
    with stores.database.writing() as session:
        other = administrators.create(session, name=f"other of {maker.person.name}", password_hash="-").id
    made = made_by(maker, api, new_user)

    assert root.post(f"/account/administrators/{other}/remove").status == 303
    answers = tried("A person in force:", made)

    assert [each.kind for each, answer in zip(made, answers, strict=True) if not answer.let_in] == []


def test_a_promotion_withdraws_nothing(root: Browser, allowing: Flask, stores: Stores, unique, new_user):
    person = Person(unique("operator"), PASSWORD)
    administrator_setup.create(stores, person.name, PASSWORD, Role.OPERATOR)
    browser, guest = Browser(allowing.test_client()), allowing.test_client()
    assert browser.sign_in(person).status == 303
    path = invite(browser, new_user())
    with stores.database.reading() as session:
        number = administrators.find(session, person.name).id

    assert root.post(f"/account/administrators/{number}/role", {"role": "administrator"}).status == 303

    assert guest.get(path).status_code == 200


def test_open_links_of_the_command_line_end_with_an_administrator(
    maker: Maker, root: Browser, stores: Stores, allowing: Flask
):
    """They name no maker, and may have been sent to the person who is removed."""
    path = urlsplit(administrator_setup.link(stores, "http://localhost")).path
    assert Browser(allowing.test_client()).get(path).status == 200

    removed(maker, root, number_of(stores, maker), stores)

    assert Browser(allowing.test_client()).get(path).status == 404


# --- keys


@pytest.fixture
def bound(allowing: Flask, stores: Stores, new_organization) -> tuple[Api, str]:
    """A client with a key of one organization, and the organization."""
    slug = new_organization()
    return Api(allowing.test_client(), keys.create(stores, Kind(bound=True), slug)), slug


def made_with(key: Api, slug: str, api: Api, new_user: Callable[..., str]) -> list[Made]:
    """One of every kind that an API key can make."""
    app, made = key.client.application, []

    def path_of(user: str) -> str:
        return f"/users/{user}/oauth"

    def is_connected(user: str) -> Callable[[], bool]:
        return lambda: api.get(path_of(user)).json["data"] != []

    def add(kind: str, link_of: Callable[[str], str]) -> None:
        user, client = new_user(slugs=(slug,)), app.test_client()
        made.append(Made(kind, landing(client, consent(link_of(user)), is_connected(user))))

    def by_link(user: str) -> str:
        return str(key.get(f"{path_of(user)}/google/link").json["data"]["link"])

    def by_authorize(user: str) -> str:
        return str(key.post(f"{path_of(user)}/google/authorize", {}).json["data"]["link"])

    add("consent link by authorize", by_authorize)
    add("consent link by link", by_link)
    add("consent link by links", lambda user: key.get(f"{path_of(user)}/links").json["data"][0]["link"])
    add("link of the page after a refused consent", lambda user: repeated(app.test_client(), by_link(user)))

    waiting = new_user(slugs=(slug,))
    body = {"redirectUrl": OWN}
    own = query_of(consent(key.post(f"{path_of(waiting)}/google/authorize", body).json["data"]["link"]))
    sent = {"code": own["code"], "state": own["state"]}
    verifier = Api(app.test_client(), api.key)

    def verified() -> Answer:
        answer = verifier.post("/users/oauth/google/verify", sent)
        return Answer(answer.status_code == 200, answer.status_code, paragraph(answer))

    made.append(Made("consent by redirectUrl, verified by another key", verified))

    name, once = new_user(), {"Idempotency-Key": "once"}
    create = {"id": f"{name}-of-key"}
    assert key.post("/users", create, headers=once).status_code == 201

    def again() -> Answer:
        answer = key.post("/users", create, headers=once)
        return Answer(answer.status_code == 201, answer.status_code, paragraph(answer))

    made.append(Made("stored answer of an Idempotency-Key", again))
    assert tuple(each.kind for each in made) == OF_KEYS
    return made


def number_of_key(stores: Stores, key: Api) -> int:
    with stores.database.reading() as session:
        return session.scalars(select(ApiKey.id).order_by(ApiKey.id.desc()).limit(1)).one()


def revoked(key: Api, slug: str, root: Browser, stores: Stores, api: Api) -> None:
    assert root.post(f"/keys/{number_of_key(stores, key)}/revoke").status == 303


def expired(key: Api, slug: str, root: Browser, stores: Stores, api: Api) -> None:
    with stores.database.writing() as session:
        ended = update(ApiKey).where(ApiKey.id == number_of_key(stores, key))
        session.execute(ended.values(expires_at=now() - timedelta(seconds=1)))


def without_organization(key: Api, slug: str, root: Browser, stores: Stores, api: Api) -> None:
    assert api.delete(f"/organizations/{slug}").status_code == 200


ENDS_OF_KEYS = {"revoked": revoked, "expired": expired, "organization deleted": without_organization}


@pytest.mark.parametrize("end", [*ENDS_OF_KEYS, "in force"])
def test_what_a_key_made_ends_with_it(
    bound, root: Browser, api: Api, new_user, sandbox: Sandbox, stores: Stores, end: str
):
    """A key is rotated by making another one and revoking it."""
    sandbox.account("google", ADA)
    key, slug = bound
    made = made_with(key, slug, api, new_user)

    if end in ENDS_OF_KEYS:
        ENDS_OF_KEYS[end](key, slug, root, stores, api)
    answers = tried(f"A key, {end}:", made)

    let_in = [each.kind for each, answer in zip(made, answers, strict=True) if answer.let_in]
    assert let_in == ([] if end in ENDS_OF_KEYS else [each.kind for each in made])
    if end in ENDS_OF_KEYS:
        assert all(KEY_GONE in answer.sentence for answer in answers[:-1])


# --- the lifetime of a state


def test_a_refused_consent_can_be_repeated_until_its_first_deadline_only(
    api: Api, new_user, sandbox: Sandbox, stores: Stores, allowing: Flask, monkeypatch: pytest.MonkeyPatch
):
    sandbox.account("google", ADA)
    user, client = new_user(), allowing.test_client()
    before = set(stores.redis.scan_iter("oauth-state:*"))
    link = api.get(f"/users/{user}/oauth/google/link").json["data"]["link"]

    for passed in (200, 400, 597):
        clock = SimpleNamespace(time=lambda passed=passed: time.time() + passed)
        monkeypatch.setattr(one_time_secrets, "time", clock, raising=False)
        link = repeated(client, link)
        (name,) = set(stores.redis.scan_iter("oauth-state:*")) - before
        assert 0 < stores.redis.ttl(name) <= one_time_secrets.STATE_SECONDS - passed

    monkeypatch.setattr(
        one_time_secrets, "time", SimpleNamespace(time=lambda: time.time() + 600), raising=False
    )
    last = client.get(
        "/v1/oauth/google/callback", query_string={"state": query_of(link)["state"], "error": "access_denied"}
    )
    assert BeautifulSoup(last.text, "html.parser").find("a", string="Try again") is None
    assert "ask for a new link" in words(BeautifulSoup(last.text, "html.parser"))
