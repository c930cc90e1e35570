"""A code becomes a connection: its account, scopes and tokens, and what the log has for the operator."""

from __future__ import annotations

import base64
import hashlib
import logging
import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from providers.base import Token
from providers.errors import Reason
from providers.google.oauth import GoogleOAuth
from store.security.one_time_secrets import JOB_SECONDS, PendingConsent, PendingExchange
from store.sql.models import ApiKey, Organization, Role, User
from store.sql.queries import administrators, api_keys, connection_rows, connections, organizations
from store.sql.queries.connections import ProviderAccount
from store.sql.queries.issuers import Issuer
from store.sql.queries.user_invitations import ConsentRefusal
from tests import people
from tests.app.days import PROVIDERS
from workers.execution.accounts import ConnectionTokens
from workers.execution.code_exchange import exchange
from workers.execution.writes import perform
from workers.fanout.codec import pack_job
from workers.jobs import ExchangeCode, Refused
from workers.runtime import Runtime

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
ADA = "ada@example.com"
REDIRECT = "https://almanac.example.com/v1/oauth/callback"
VERIFIER = "planted-verifier-of-forty-three-characters-or-more"
CALENDAR = "https://www.googleapis.com/auth/calendar"
FULL = {
    "google": "openid email https://www.googleapis.com/auth/calendar",
    "microsoft": "openid email profile offline_access User.Read Calendars.ReadWrite",
}
AUTH = {"google": "google/o/oauth2/v2/auth", "microsoft": "microsoft/common/oauth2/v2.0/authorize"}


@pytest.fixture
def user_id(runtime, unique) -> int:
    """A user to connect."""
    with runtime.stores.database.writing() as session:
        user = User(custom_id=unique("user"))
        session.add(user)
        session.flush()
        return user.id


@pytest.fixture
def issuer(runtime, unique) -> Issuer:
    """The operator who made the link."""
    with runtime.stores.database.writing() as session:
        return people.add_operator(session, unique("operator"))


@pytest.fixture
def consented(sandbox, user_id, issuer):
    """Consent at the sandbox as a program does; returns the pending exchange for a worker."""

    def make(provider, *, scope=None, prompt="consent", **changed) -> PendingExchange:
        digest = hashlib.sha256(VERIFIER.encode()).digest()
        asked = {
            "client_id": "sandbox",
            "redirect_uri": REDIRECT,
            "response_type": "code",
            "scope": scope or FULL[provider],
            "login_hint": ADA,
            "access_type": "offline",
            "prompt": prompt,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        url = f"{sandbox.url}/{AUTH[provider]}"
        landed = requests.get(url, params=asked, allow_redirects=False, timeout=10).headers["Location"]
        code = parse_qs(urlsplit(landed).query)["code"][0]
        waiting = PendingConsent(
            user_id=user_id,
            provider=provider,
            scopes=tuple(FULL[provider].split()),
            offline=True,
            redirect_uri=REDIRECT,
            ours=True,
            return_url=None,
            asked_by="alm_12345678",
            within=None,
            verifier=VERIFIER,
            administrator_id=issuer.administrator_id,
            security_stamp=issuer.security_stamp,
        )
        return PendingExchange(replace(waiting, **changed), code)

    return make


@pytest.fixture
def run(runtime):
    """Perform a pending exchange, as the writes queue does."""

    def redeemed(redemption: PendingExchange, by: Runtime = runtime, seconds: float = 5.0):
        name = by.stores.code_exchanges.put(redemption)
        return perform(by, ExchangeCode(name), None, time.monotonic() + seconds)

    return redeemed


@pytest.fixture
def stored(runtime, user_id):
    """The connection of the user with a provider, and its tokens."""

    def find(provider):
        with runtime.stores.database.reading() as session:
            row = connections.find(session, user_id, provider)
        if row is None:
            return None
        return row, connection_rows.open_credentials(row, runtime.stores.keyring).tokens

    return find


@pytest.mark.parametrize(
    ("provider", "scope", "operations"),
    [
        (
            "google",
            "openid https://www.googleapis.com/auth/calendar",
            ["google.userinfo", "google.calendarList.get"],
        ),
        (
            "google",
            "https://www.googleapis.com/auth/calendar.readonly",
            ["google.userinfo", "google.calendarList.get"],
        ),
        ("microsoft", "offline_access User.Read Calendars.Read", ["microsoft.me.get"]),
    ],
)
def test_missing_address_in_id_token_is_read_from_the_provider(
    sandbox, consented, run, stored, provider, scope, operations
):
    sandbox.account(provider, ADA)
    waiting = consented(provider, scope=scope)
    sandbox.forget_requests()

    assert run(waiting).failed is None

    assert stored(provider)[0].email == ADA
    assert sorted(sandbox.requests().by_operation) == sorted([f"{provider}.token", *operations])


@pytest.mark.parametrize(
    ("provider", "scope"),
    [
        ("google", "https://www.googleapis.com/auth/calendar.freebusy"),
        ("microsoft", "offline_access Calendars.Read"),
    ],
)
def test_an_account_without_an_address_is_connected(sandbox, consented, run, stored, provider, scope):
    sandbox.account(provider, ADA)

    assert run(consented(provider, scope=scope)).failed is None
    assert stored(provider)[0].email is None


def test_slow_address_lookup_does_not_fail_the_connection(sandbox, consented, run, stored):
    sandbox.account("google", ADA)
    waiting = consented("google", scope="openid https://www.googleapis.com/auth/calendar")
    sandbox.fault(operation="google.userinfo", latency_ms=60_000)
    sandbox.fault(operation="google.calendarList.get", latency_ms=60_000)

    began = time.monotonic()
    assert run(waiting, seconds=2.0).failed is None

    assert time.monotonic() - began < 20
    assert stored("google")[0].email is None


@BOTH
def test_a_code_waits_for_one_worker_and_not_for_long(sandbox, consented, runtime, stored, provider):
    sandbox.account(provider, ADA)
    name = runtime.stores.code_exchanges.put(consented(provider))
    assert 0 < runtime.stores.redis.ttl(f"oauth-code:{name}") <= JOB_SECONDS

    replies = [exchange(runtime, ExchangeCode(name), time.monotonic() + 5) for _ in range(2)]

    assert [reply.refused for reply in replies] == [None, Refused(ConsentRefusal.CODE_REFUSED)]
    assert stored(provider)[0].alive


@pytest.mark.parametrize("lost", ["role", "password", "person"])
def test_a_person_who_lost_the_right_meanwhile_connects_nothing(
    sandbox, consented, run, runtime, issuer, stored, unique, lost
):
    """It is checked in the transaction that stores the connection, after the code was redeemed."""
    sandbox.account("google", ADA)
    waiting = consented("google")
    with runtime.stores.database.writing() as session:
        administrators.create(session, name=unique("root"), password_hash="nobody's")
        number = issuer.administrator_id
        if lost == "role":
            administrators.change_role(session, number, Role.VIEWER)
        elif lost == "password":
            administrators.change_password(session, number, "another")
        else:
            administrators.remove(session, number)

    assert run(waiting).refused == Refused(ConsentRefusal.PERSON_GONE)
    assert stored("google") is None


def test_a_consent_whose_maker_is_not_known_connects_nothing(sandbox, consented, run, stored):
    """Processes of an earlier version stored no maker for links of the dashboard."""
    sandbox.account("google", ADA)

    reply = run(consented("google", administrator_id=None, security_stamp=None))

    assert (reply.refused, stored("google")) == (Refused(ConsentRefusal.PERSON_GONE), None)


@pytest.mark.parametrize(
    ("ended", "refusal"),
    [
        ("key", ConsentRefusal.KEY_GONE),
        ("shared", ConsentRefusal.USER_SHARED),
        ("account", ConsentRefusal.OTHER_ACCOUNT),
        ("calendars", ConsentRefusal.NO_CALENDARS),
    ],
)
def test_consent_rights_are_checked_again_at_storage(
    sandbox, consented, run, runtime, user_id, unique, stored, ended, refusal
):
    """The web tier has checked most conditions before; they may have changed since."""
    sandbox.account("google", ADA)
    changed = {}
    with runtime.stores.database.writing() as session:
        for_key, other = (Organization(slug=unique("org")) for _ in range(2))
        session.add_all([for_key, other])
        session.flush()
        api_keys.create(session, prefix="alm_", name="key", organization_id=for_key.id)
        key = session.scalars(select(ApiKey).where(ApiKey.organization_id == for_key.id)).one()
        organizations.add_members(session, for_key.id, [user_id])
        changed = {"within": for_key.id, "key_id": key.id}
        other_id = other.id
    assert run(consented("google", **changed)).failed is None
    before = stored("google")[0].id

    with runtime.stores.database.writing() as session:
        if ended == "key":
            api_keys.revoke_one(session, changed["key_id"])
        elif ended == "shared":
            organizations.add_members(session, other_id, [user_id])
    if ended == "account":
        changed["expected_email"] = "eve@example.com"
    scope = "openid email" if ended == "calendars" else None

    assert run(consented("google", scope=scope, **changed)).refused == Refused(refusal)
    assert stored("google")[0].id == before


def test_a_grant_of_all_that_the_connection_has_replaces_it(sandbox, consented, run, stored):
    """Both consents were asked for more than the person has granted."""
    sandbox.account("google", ADA)
    reading = "openid email https://www.googleapis.com/auth/calendar.readonly"
    assert run(consented("google", scope=reading)).failed is None
    before = stored("google")[0].id

    assert run(consented("google", scope=reading)).failed is None
    assert stored("google")[0].id != before


def test_a_revocation_during_the_exchange_is_noticed(sandbox, consented, run, runtime, stored, monkeypatch):
    """The tokens that the provider has just issued may have died with it."""
    sandbox.account("google", ADA)
    redeem = GoogleOAuth.redeem

    def overtaken(*args, **named):
        answer = redeem(*args, **named)
        runtime.stores.account_locks.note_revocation(ProviderAccount("google", None, ADA))
        return answer

    monkeypatch.setattr(GoogleOAuth, "redeem", overtaken)

    assert run(consented("google")).refused == Refused(ConsentRefusal.REVOKED_MEANWHILE)
    assert stored("google") is None


@pytest.mark.parametrize("named", [True, False])
def test_unconfirmed_expected_account_is_refused(sandbox, consented, run, stored, named):
    sandbox.account("google", ADA)
    scope = None if named else "https://www.googleapis.com/auth/calendar.freebusy"

    reply = run(consented("google", scope=scope, expected_email=ADA))

    assert reply.refused == (None if named else Refused(ConsentRefusal.UNNAMED_ACCOUNT))
    assert (stored("google") is not None) == named


@pytest.mark.parametrize("posted", [True, False])
def test_a_posted_refresh_token_that_is_kept_is_still_the_callers(
    sandbox, consented, run, stored, runtime, posted
):
    sandbox.account("google", ADA)
    run(consented("google"))
    with runtime.stores.database.writing() as session:
        session.merge(stored("google")[0]).obtained = not posted

    run(consented("google", prompt=""))

    assert stored("google")[0].obtained is not posted


def test_google_sends_no_second_refresh_token_and_the_first_is_kept(sandbox, consented, run, stored):
    sandbox.account("google", ADA)
    run(consented("google"))
    before, tokens = stored("google")

    assert run(consented("google", prompt="")).failed is None

    after, kept = stored("google")
    assert after.id != before.id
    assert kept.access_token != tokens.access_token
    assert kept.refresh_token == tokens.refresh_token


@pytest.mark.parametrize("how", ["online", "another account", "another account of that address", "dead"])
def test_a_refresh_token_that_does_not_belong_to_the_new_grant_goes(
    sandbox, consented, run, stored, runtime, how
):
    sandbox.account("google", ADA)
    run(consented("google"))
    row, _ = stored("google")
    with runtime.stores.database.writing() as session:
        if how == "dead":
            connections.mark_dead(session, row.id, "the grant has ended")
        elif how == "another account":
            session.merge(row).email = "eve@example.com"
        elif how == "another account of that address":
            # The address was given to another person.
            session.merge(row).account_id = "eve"

    run(consented("google", prompt="", offline=how != "online"))

    assert stored("google")[1].refresh_token is None


def test_database_failure_after_storage_does_not_fail_consent(sandbox, consented, run, stored, monkeypatch):
    sandbox.account("google", ADA)
    assert run(consented("google")).failed is None
    first, _ = stored("google")

    def fail(*_: object, **__: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(connections, "uses_account", fail)

    assert run(consented("google")).failed is None
    assert stored("google")[0].id != first.id


@BOTH
def test_refused_registration_is_logged_with_advice_for_operators(
    sandbox, consented, run, runtime, stored, opened, provider, caplog
):
    account = sandbox.account(provider, ADA)
    run(consented(provider))
    row, _ = stored(provider)
    waiting = consented(provider)
    secret = {f"{provider}_client_secret": "wrong"}
    wrong = Runtime(replace(runtime.settings, providers=replace(runtime.settings.providers, **secret)))

    exchange = run(waiting, by=wrong).failed
    source = ConnectionTokens(wrong.stores, wrong.provider(provider).oauth, opened(row.id))
    with pytest.raises(Exception, match="refuses the registration of this installation"):
        source.renewed(Token(stored(provider)[1].access_token), deadline=time.monotonic() + 5)
    wrong.stores.close()

    assert exchange.reason is Reason.PROVIDER_ERROR
    errors = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert len(errors) == 2
    for record in errors:
        text = record.getMessage()
        assert f"ALMANAC_{provider.upper()}_CLIENT_ID" in text
        assert f"ALMANAC_{provider.upper()}_CLIENT_SECRET" in text
        assert account.refresh_token not in text
    assert stored(provider)[0].alive


def test_missing_registration_fails_without_a_call(sandbox, consented, run, runtime):
    sandbox.account("google", ADA)
    waiting = consented("google")
    sandbox.forget_requests()
    nobody = replace(runtime.settings.providers, google_client_id="")
    unregistered = Runtime(replace(runtime.settings, providers=nobody))

    failed = run(waiting, by=unregistered).failed
    unregistered.stores.close()

    assert failed.reason is Reason.PROVIDER_NOT_CONFIGURED
    assert sandbox.requests().total == 0


@BOTH
def test_no_secret_is_in_a_job_a_reply_a_log_or_redis(
    sandbox, consented, run, runtime, stored, provider, caplog
):
    caplog.set_level(logging.DEBUG)
    sandbox.account(provider, ADA)
    waiting = consented(provider)
    name = runtime.stores.code_exchanges.put(waiting)
    job = ExchangeCode(name)
    in_redis = runtime.stores.redis.get(f"oauth-code:{name}")

    reply = perform(runtime, job, None, time.monotonic() + 5)
    refused = run(replace(waiting, code="planted-code"))

    tokens = stored(provider)[1]
    shown = f"{pack_job(0, job)} {job!r} {reply!r} {refused!r} {waiting!r} {caplog.text} {in_redis!r}"
    for secret in (VERIFIER, waiting.code, "planted-code", tokens.access_token, tokens.refresh_token):
        assert secret not in shown
