"""The second factor: codes that are replayed, early, late and guessed; recovery codes; turning it off."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from sqlalchemy import select

from app.cli import administrator_setup
from app.dashboard.sign_in import login_throttle, pages, second_factor
from store.security.crypto import Undecipherable
from store.sql.models import Administrator, RecoveryCode, now
from store.sql.queries import administrators, audit, second_factors
from tests.dashboard.audit_records import actions, records
from tests.dashboard.installations import PASSWORD

WRONG = "This code is wrong or was used before. Wait for the next one, or use a recovery code."
STEP = second_factors.STEP_SECONDS


class App:
    """An authenticator app, which knows the time that the service has."""

    def __init__(self, key: str) -> None:
        self.key = key

    def code(self, steps: int = 0) -> str:
        """The code that is shown now, or some steps later."""
        moment = int(second_factors.now().timestamp()) + steps * STEP
        made = TOTP(second_factors.b32decode(self.key), 6, SHA1(), STEP)
        return made.generate(moment).decode()


@pytest.fixture
def clock(monkeypatch):
    """Set the clock of codes to the middle of a step: ``clock(steps=2)`` later."""
    start = now().replace(second=10, microsecond=0)

    def later(steps: float = 0) -> None:
        monkeypatch.setattr(second_factors, "now", lambda: start + timedelta(seconds=steps * STEP))

    later()
    return later


@pytest.fixture
def ada(new_administrator, clock):
    return new_administrator()


def key_on(page) -> str:
    return page.html.find(id="key").get_text().replace(" ", "")


def set_up(browser, **changed) -> tuple[App, list[str]]:
    """Turn the second factor on; returns the app and the recovery codes."""
    page = browser.get("/account/second-factor")
    app = App(key_on(page))
    form = {"sealed": page.html.find("input", {"name": "sealed"})["value"], "code": app.code()}
    page = browser.post("/account/second-factor", {**form, "current": PASSWORD, **changed})
    assert page.status == 200, page.text
    return app, page.html.find(id="recovery-codes").get_text().split()


@pytest.fixture
def device(browser_of, ada, clock):
    """The app and the recovery codes of ada; the code of this moment has been used."""
    return set_up(browser_of(ada))


def with_password(browser_of, person, **at):
    browser = browser_of(**at)
    assert browser.sign_in(person).location.startswith("/dashboard/sign-in/code")
    return browser


def send(browser, code):
    return browser.post("/sign-in/code", {"code": code})


def test_it_is_turned_on_by_a_code_and_shows_recovery_codes_once(browser_of, ada, stores, clock):
    other, browser = browser_of(ada), browser_of(ada)
    page = browser.get("/account/second-factor")

    svg = page.html.select_one(".qr svg")
    assert svg is not None
    assert "style" not in svg.attrs
    app, codes = set_up(browser)

    assert len(set(codes)) == 10
    assert all(re.fullmatch(r"([a-z2-7]{4}-){3}[a-z2-7]{4}", each) for each in codes)
    assert browser.get("/account").status == 200
    assert other.get("/account").status == 303
    for each in (browser.get("/account/second-factor"), browser.get("/account")):
        assert codes[0] not in each.text
        assert app.key not in each.text.replace(" ", "")
    assert ("enableSecondFactor", ada.name) in actions(stores, actor=f"administrator {ada.name}")


def test_the_address_in_the_picture_names_the_account(ada):
    address = second_factors.address("A" * 32, account="ada: ë", issuer="Almanac")

    parts = urlsplit(address)
    assert (parts.scheme, parts.netloc) == ("otpauth", "totp")
    assert parse_qs(parts.query)["secret"] == ["A" * 32]
    assert parse_qs(parts.query)["issuer"] == ["Almanac"]


@pytest.mark.parametrize(
    ("changed", "field", "complaint"),
    [
        ({"code": "000000x"}, "code", "Code is wrong: type the one that the app shows now"),
        ({"code": ""}, "code", "Code is required."),
        ({"current": "not my password"}, "current", "This is not your password."),
    ],
)
def test_what_is_wrong_turns_nothing_on_and_keeps_the_secret(
    browser_of, ada, stores, changed, field, complaint
):
    browser = browser_of(ada)
    page = browser.get("/account/second-factor")
    key = key_on(page)
    form = {"sealed": page.html.find("input", {"name": "sealed"})["value"], "code": App(key).code()}

    page = browser.post("/account/second-factor", {**form, "current": PASSWORD, **changed})

    assert page.status == 400
    assert page.html.find(id=f"e-{field}").get_text().startswith(complaint)
    assert key_on(page) == key
    assert browser_of().sign_in(ada).location == "/dashboard/"


def test_a_secret_of_another_session_is_not_taken(browser_of, ada, new_administrator):
    page = browser_of(new_administrator()).get("/account/second-factor")
    form = {
        "sealed": page.html.find("input", {"name": "sealed"})["value"],
        "code": App(key_on(page)).code(),
        "current": PASSWORD,
    }

    page = browser_of(ada).do("/account/second-factor", form)

    assert "no longer valid" in page.notices[0]
    for odd in ("x", "é", "====", ""):
        assert (
            "no longer valid"
            in browser_of(ada).do("/account/second-factor", {**form, "sealed": odd}).notices[0]
        )


def test_the_password_alone_is_not_enough(browser_of, ada, device, stores, clock):
    before = actions(stores, actor=f"administrator {ada.name}")
    browser = with_password(browser_of, ada)

    assert browser.get("/").location.startswith("/dashboard/sign-in")
    assert browser.get("/sign-in/code").heading == "Two-factor sign-in"
    assert actions(stores, actor=f"administrator {ada.name}") == before
    clock(steps=1)
    page = send(browser, device[0].code())
    assert (page.status, page.location) == (303, "/dashboard/")
    assert browser.get("/").heading == "Overview"
    assert actions(stores, actor=f"administrator {ada.name}")[-1] == ("signIn", "127.0.0.1")


def test_signing_in_leads_to_the_requested_page(browser_of, ada, device, clock):
    clock(steps=1)
    browser = browser_of()
    browser.get("/sign-in?after=/dashboard/keys")

    page = browser.post("/sign-in?after=/dashboard/keys", {"name": ada.name, "password": PASSWORD})

    assert page.location == "/dashboard/sign-in/code?after=/dashboard/keys"
    browser.get(page.location)
    assert browser.post(page.location, {"code": device[0].code()}).location == "/dashboard/keys"


def test_a_code_works_once(browser_of, ada, device, clock, client_address):
    app, _ = device
    # The one that turned it on is used already.
    assert send(with_password(browser_of, ada, address=client_address()), app.code()).status == 401
    clock(steps=1)
    code = app.code()
    assert send(with_password(browser_of, ada, address=client_address()), code).status == 303

    page = send(with_password(browser_of, ada, address=client_address()), code)

    assert (page.status, page.notices) == (401, [WRONG])
    # Nor does an older one, once a newer one was used.
    clock(steps=3)
    later = app.code(1)
    assert send(with_password(browser_of, ada, address=client_address()), later).status == 303
    assert send(with_password(browser_of, ada, address=client_address()), app.code()).status == 401


@pytest.mark.parametrize(("steps", "status"), [(-2, 401), (-1, 303), (0, 303), (1, 303), (2, 401)])
def test_a_code_is_accepted_one_step_early_and_one_step_late(
    browser_of, ada, device, clock, client_address, steps, status
):
    clock(steps=10)

    assert (
        send(with_password(browser_of, ada, address=client_address()), device[0].code(steps)).status == status
    )


def test_guesses_of_codes_have_to_wait_even_with_the_right_password(
    browser_of, ada, device, clock, client_address, stores, caplog
):
    """The password, typed again before each guess, does not reset the failures."""
    clock(steps=5)
    right = device[0].code()
    address = client_address()
    statuses = []
    for n in range(5):
        browser = with_password(browser_of, ada, address=address)
        statuses.append(send(browser, f"{(int(right) + n + 1) % 1_000_000:06}").status)
    page = send(browser, right)

    assert statuses == [401] * 5
    assert (page.status, page.notices) == (429, ["Too many attempts. Try again in 15 minutes."])
    assert 14 * 60 < int(page.headers["Retry-After"]) <= 15 * 60 + 1
    assert browser_of(address=address).sign_in(ada).status == 429
    line = f"second factor failed: administrator {ada.name} from {address}"
    assert caplog.messages.count(line) == 5
    failed = ("not signed in", "secondFactorFailed", f"{ada.name} from {address}")
    assert records(stores, f"{ada.name} from {address}").count(failed) == 5


def test_guesses_in_a_known_browser_have_to_wait_too(browser_of, ada, device, clock, client_address):
    clock(steps=5)
    browser = with_password(browser_of, ada, address=client_address())
    assert send(browser, device[0].code()).status == 303
    assert browser.client.get_cookie(login_throttle.COOKIE, path="/dashboard")
    browser.post("/sign-out")
    for n in range(5):
        browser.sign_in(ada)
        assert send(browser, f"{n:06}").status == 401

    assert browser.sign_in(ada).status == 429


def test_guesses_of_recovery_codes_count_too(browser_of, ada, device, client_address):
    browser = with_password(browser_of, ada, address=client_address())

    assert [send(browser, f"aaaa-bbbb-cccc-ddd{n}").status for n in range(6)] == [401] * 5 + [429]


def test_a_recovery_code_works_once_and_however_it_is_written(
    browser_of, ada, device, client_address, stores
):
    _, codes = device
    browser = with_password(browser_of, ada, address=client_address())
    assert send(browser, f" {codes[0].replace('-', '').upper()} ").status == 303

    page = browser.get("/")

    assert page.notices == ["You have used a recovery code; 9 are left. Your account makes new ones."]
    assert actions(stores, actor=f"administrator {ada.name}")[-1][0] == "signInByRecoveryCode"
    assert send(with_password(browser_of, ada, address=client_address()), codes[0]).status == 401
    assert send(with_password(browser_of, ada, address=client_address()), codes[1]).status == 303


def test_new_recovery_codes_replace_the_old_ones(browser_of, ada, device, clock, client_address):
    _, codes = device
    browser = with_password(browser_of, ada, address=client_address())
    send(browser, codes[0])
    assert browser.post("/account/second-factor/recovery-codes", {"current": "wrong"}).status == 400

    page = browser.post("/account/second-factor/recovery-codes", {"current": PASSWORD})

    new = page.html.find(id="recovery-codes").get_text().split()
    assert len(new) == 10
    assert not set(new) & set(codes)
    assert send(with_password(browser_of, ada, address=client_address()), codes[1]).status == 401
    assert send(with_password(browser_of, ada, address=client_address()), new[0]).status == 303


def test_it_is_turned_off_with_the_password(browser_of, ada, device, clock, stores):
    browser = with_password(browser_of, ada)
    clock(steps=1)
    send(browser, device[0].code())
    assert browser.post("/account/second-factor/disable", {"current": "wrong"}).status == 400

    page = browser.do("/account/second-factor/disable", {"current": PASSWORD})

    assert page.notices == [second_factor.TURNED_OFF]
    assert browser_of().sign_in(ada).location == "/dashboard/"
    with stores.database.reading() as session:
        found = administrators.find(session, ada.name)
        assert second_factors.recovery_codes_left(session, found.id) == 0


def test_the_code_has_to_follow_the_password_in_time(browser_of, ada, device, clock, monkeypatch):
    clock(steps=1)
    browser = with_password(browser_of, ada)
    real = pages.time.time
    monkeypatch.setattr(pages.time, "time", lambda: real() + pages.CODE_SECONDS + 1)

    page = browser.do("/sign-in/code", {"code": device[0].code()})

    assert page.heading == "Sign in"
    assert "within five minutes" in page.notices[0]


def test_without_the_password_there_is_no_second_step(visitor):
    assert visitor.get("/sign-in/code").location.startswith("/dashboard/sign-in")


def test_another_password_ends_a_sign_in_that_waits_for_its_code(browser_of, ada, device, clock, stores):
    clock(steps=1)
    browser = with_password(browser_of, ada)
    administrator_setup.create(stores, ada.name, "eight louder calendars")

    assert browser.do("/sign-in/code", {"code": device[0].code()}).heading == "Sign in"


def test_an_administrator_resets_the_second_factor_of_another(
    browser_of, ada, device, new_administrator, stores
):
    with stores.database.reading() as session:
        number = administrators.find(session, ada.name).id
    boss = new_administrator()
    browser = browser_of(boss)
    assert "Reset two-factor sign-in" in browser.get(f"/account/administrators/{number}").text

    page = browser.do(f"/account/administrators/{number}/second-factor/reset")

    assert page.notices == [
        f"{ada.name} is signed out, and signs in with the password alone until a new second factor is set "
        "up. Their open links and invitations are withdrawn."
    ]
    assert browser_of().sign_in(ada).location == "/dashboard/"
    assert ("resetSecondFactor", ada.name) in actions(stores, actor=f"administrator {boss.name}")


def test_secret_is_encrypted_per_row_and_codes_are_hashed(ada, device, stores, new_administrator):
    app, codes = device
    bob = new_administrator()
    with stores.database.writing() as session:
        row, other = (administrators.find(session, each.name) for each in (ada, bob))
        assert app.key.encode() not in row.sealed_totp_secret
        place = second_factors.associated_data(row.id)
        assert stores.keyring.decrypt(row.sealed_totp_secret, place) == app.key
        with pytest.raises(Undecipherable):
            stores.keyring.decrypt(row.sealed_totp_secret, second_factors.associated_data(other.id))
        hashes = session.scalars(
            select(RecoveryCode.digest).where(RecoveryCode.administrator_id == row.id)
        ).all()
        assert len(hashes) == 10
        assert not [each for each in codes if each in hashes or each.replace("-", "") in hashes]
        # Copied to another row, it cannot be used to sign in.
        other.sealed_totp_secret = row.sealed_totp_secret
        session.flush()
        with pytest.raises(Undecipherable):
            second_factors.use_code(session, stores.keyring, other, app.code(1))
        session.rollback()


def test_undecipherable_secret_leaves_the_recovery_codes(
    browser_of, ada, device, stores, client_address, caplog
):
    with stores.database.writing() as session:
        row = administrators.find(session, ada.name)
        row.sealed_totp_secret = b"\x01gone" + row.sealed_totp_secret[5:]
    caplog.set_level(logging.ERROR)
    browser = with_password(browser_of, ada, address=client_address())

    page = send(browser, "123456")

    assert page.status == 503
    assert "encryption key" in page.notices[0]
    assert any("is undecipherable" in each for each in caplog.messages)
    assert send(browser, device[1][0]).status == 303


def test_no_secret_is_in_the_log_or_in_a_repr(browser_of, ada, clock, caplog, stores):
    caplog.set_level(logging.DEBUG)
    app, codes = set_up(browser_of(ada))
    browser = with_password(browser_of, ada)
    send(browser, codes[0])

    with stores.database.reading() as session:
        shown = [repr(session.scalars(select(Administrator).where(Administrator.name == ada.name)).one())]
    with stores.database.reading() as session:
        shown += [str(each.changes) + each.subject for each in audit.page(session, limit=50)]
    text = caplog.text + "".join(shown)
    for secret in (app.key, *codes):
        assert secret not in text
