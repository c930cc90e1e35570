"""Signs people in to the dashboard by a code of the identity provider."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import timedelta

from sqlalchemy.exc import IntegrityError

from providers.errors import AuthorizationInvalid, ClockRefused, GrantGone, Misconfigured, ProviderError
from providers.http.calls import Json
from providers.oauth.identity import address
from providers.openid.client import NAMES, Asserted, IdentityProvider, WrongIssuer, claim
from store.security.one_time_secrets import PendingSignIn
from store.sql.models import Role, now
from store.sql.queries import audit, identities
from store.sql.queries.identities import NameTaken
from workers.jobs import FindSignInPage, Reply, SignIn, SignInRefusal, SignInResult
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# Of a name; a number may follow it.
MAX_NAME = 120


def find_page(runtime: Runtime, job: FindSignInPage, deadline: float) -> Reply:
    """The page of the identity provider to which browsers are sent."""
    provider = runtime.identity_provider
    if provider is None:
        return _refused("notSet")
    try:
        return Reply(sign_in=SignInResult(page=provider.page(deadline=deadline, fresh=job.fresh)))
    except ProviderError as error:
        return _failed(error)


def sign_in(runtime: Runtime, job: SignIn, deadline: float) -> Reply:
    """Redeem the code that is stored under ``job.secret_name``, and store the person and the role."""
    provider, pending = runtime.identity_provider, runtime.stores.sign_ins.take(job.secret_name)
    if provider is None or pending is None:
        return _refused("code")
    try:
        asserted = _redeem(provider, pending, deadline)
    except ProviderError as error:
        return _failed(error)
    role = role_of(asserted.claims, runtime)
    try:
        person = _stored(runtime, asserted, role)
    except (NameTaken, IntegrityError):
        # Another sign-in of the same person, or of a person with the same name, was stored meanwhile.
        return _refused("name")
    return _refused("role") if person is None else Reply(sign_in=SignInResult(administrator_id=person))


def role_of(claims: Json, runtime: Runtime) -> Role | None:
    """The highest role that the settings give to the values of the claim; None without any."""
    value = claim(claims, runtime.settings.oidc_role_claim)
    stated: Collection[object] = value if isinstance(value, list) else (value,)
    given = [Role(role) for name, role in runtime.settings.oidc_roles if name in stated]
    return max(given, key=list(Role).index, default=None)


def confirmed(runtime: Runtime, administrator_id: int, asserted: Asserted, old_token: str | None) -> None:
    """Store that the provider has just confirmed a person, with the refresh token for the next check."""
    stores = runtime.stores
    token = old_token if asserted.refresh_token is None else asserted.refresh_token.reveal
    until = now() + timedelta(seconds=runtime.settings.oidc_confirmed_seconds)
    with stores.database.writing() as session:
        identities.confirm(session, stores.keyring, administrator_id, refresh_token=token, until=until)


def _redeem(provider: IdentityProvider, pending: PendingSignIn, deadline: float) -> Asserted:
    return provider.redeem(
        pending.code, pending.nonce, pending.verifier, pending.redirect_uri, deadline=deadline
    )


def _stored(runtime: Runtime, asserted: Asserted, role: Role | None) -> int | None:
    """The internal id of the person, stored at the first sign-in; None without a role."""
    issuer, stores = runtime.settings.oidc_issuer, runtime.stores
    with stores.database.writing() as session:
        person = identities.find(session, issuer, asserted.subject)
        if role is None:
            if person is not None:
                identities.end(session, person.id, because="no role")
            name = _name(asserted.claims)
            audit.record(session, actor=audit.STRANGER, action="signInWithoutRole", subject=name)
            return None
        if person is None:
            name = _name(asserted.claims)
            person = identities.create(
                session, issuer=issuer, subject=asserted.subject, name=name, role=role, until=now()
            )
            changes = {"role": (None, role)}
            audit.record(
                session,
                actor=identities.DIRECTORY,
                action="createAdministrator",
                subject=person.name,
                changes=changes,
            )
        else:
            identities.change_role(session, person, role)
        administrator_id = person.id
    confirmed(runtime, administrator_id, asserted, None)
    return administrator_id


def _name(claims: Json) -> str:
    """The name for the dashboard and the audit log: as the person signs in, else the id of the account."""
    for each in NAMES:
        value = claims.get(each)
        if isinstance(value, str) and value.strip() and value.isprintable():
            return value.strip()[:MAX_NAME]
    return (address(claims, "email") or str(claims["sub"]))[:MAX_NAME]


def _failed(error: ProviderError) -> Reply:
    log.warning("sign-in by the identity provider failed: %s", error.message)
    if isinstance(error, GrantGone):
        return _refused("code")
    if isinstance(error, Misconfigured | AuthorizationInvalid) and not isinstance(error, ClockRefused):
        return _refused("client")
    if isinstance(error, ClockRefused):
        return _refused("clock")
    if isinstance(error, WrongIssuer):
        return _refused("issuer")
    return _refused("unavailable" if error.retryable else "untrusted")


def _refused(why: SignInRefusal) -> Reply:
    return Reply(sign_in=SignInResult(refused=why))
