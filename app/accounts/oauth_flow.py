"""The OAuth flow: ``begin`` makes the link to a provider's consent page, ``finish`` exchanges the code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from app.accounts import consent_cookie
from app.accounts.consent_cookie import ConsentCookie
from app.accounts.consent_refusals import ConsentRefused
from app.accounts.ownership import CONNECTION, own_user
from app.http.errors import ApiError, Invalid, NotFound
from app.http.provider_failures import request_failed
from app.schemas.error_codes import Code
from app.services import services
from providers import registry
from providers.base import Failed
from providers.definition import Provider
from providers.errors import Reason
from providers.oauth.consent import ConsentRequest, new_verifier
from store.security import redirect_allowlist
from store.security.crypto import digest
from store.security.one_time_secrets import STATE_SECONDS, PendingConsent, PendingExchange
from store.sql.models import OAuthConnection
from store.sql.queries import connections, user_invitations, users
from store.sql.queries.api_keys import Caller
from store.sql.queries.connections import ReplacedConnection
from store.sql.queries.user_invitations import ConsentRefusal
from workers.execution.consent_gaps import join_names, missing_permissions
from workers.jobs import ExchangeCode

CALLBACK = "/v1/oauth/{provider}/callback"


def current_provider(name: str) -> Provider:
    """A provider with its current registration; the web tier uses it to make links only."""
    return services().registrations.current(name)


def offered() -> list[str]:
    """The names of the providers whose accounts a person can connect by consent now."""
    return [name for name in registry.with_consent() if current_provider(name).configured]


@dataclass(frozen=True, slots=True)
class InvitationRef:
    """The invitation that a consent begins with, and the path of its page, which contains a secret."""

    id: str
    path: str = field(repr=False)


class ConsentLink(NamedTuple):
    """The link of a consent, and the cookie of the browser that it is bound to, if any."""

    link: str
    cookie: ConsentCookie | None


def begin(caller: Caller, custom_id: str, name: str, options: Mapping[str, Any], *, site: str | None) -> str:
    """The link with which a user connects an account; ``options`` as in ``LinkQuery``.

    ``site`` is the base URL of this service, None if it is unknown.

    :raise ApiError: for a user that the caller may not change, a provider that is not configured, or a URL
        that is not allowed
    """
    return _begin(caller, custom_id, name, options, site=site, back=None, browser=None).link


def begin_here(
    caller: Caller,
    custom_id: str,
    name: str,
    options: Mapping[str, Any],
    *,
    site: str | None,
    host_url: str,
    back: str | None = None,
    invitation: InvitationRef | None = None,
) -> ConsentLink:
    """As ``begin``, for this browser; afterwards it is redirected to ``back``, a path of this service.

    Without ``back`` it gets a page with the result, from which an ``invitation`` can be opened again.

    Only this browser can finish the consent, if the callback has the host of ``host_url``, which this browser
    uses now. Otherwise it would not send the cookie to the callback, and any browser can finish the consent.
    """
    sends_cookie = site is not None and _same_host(site, host_url)
    browser = consent_cookie.new_value() if sends_cookie else None
    return _begin(
        caller, custom_id, name, options, site=site, back=back, browser=browser, invitation=invitation
    )


def _same_host(one: str, other: str) -> bool:
    """Whether two URLs have the same host, in any case. Cookies ignore the port (RFC 6265, 8.5)."""
    return urlsplit(one).hostname == urlsplit(other).hostname


def _begin(
    caller: Caller,
    custom_id: str,
    name: str,
    options: Mapping[str, Any],
    *,
    site: str | None,
    back: str | None,
    browser: str | None,
    invitation: InvitationRef | None = None,
) -> ConsentLink:
    provider = name
    registered = current_provider(provider)
    oauth = registered.oauth
    if oauth is None or not registered.configured:
        title = registry.title(provider)
        sentence = f"{title} is not configured: this installation is not registered there"
        raise NotFound(sentence, Code.PROVIDER_NOT_CONFIGURED)
    redirect_uri, ours = _redirect(callback(provider, site), options["redirectUrl"], options["returnUrl"])
    stores = services().stores
    with stores.database.writing() as session:
        user_id = own_user(session, caller, custom_id, otherwise=CONNECTION).id
        connected = _connected(session, caller, user_id, provider, options["account"])
    offline = options["accessType"] == "offline"
    scopes = registry.scopes(provider).to_request(options["scope"], offline=offline)
    verifier, issuer = new_verifier(), caller.issuer
    state = stores.oauth_states.put(
        PendingConsent(
            user_id=user_id,
            provider=provider,
            scopes=tuple(scopes),
            offline=offline,
            redirect_uri=redirect_uri,
            ours=ours,
            return_url=back or options["returnUrl"],
            asked_by=caller.visible,
            within=caller.organization_id,
            verifier=verifier,
            key_id=issuer.key_id,
            administrator_id=issuer.administrator_id,
            security_stamp=issuer.security_stamp,
            expected_email=options["expectedEmail"],
            browser_digest=None if browser is None else digest(browser),
            invitation_id=None if invitation is None else invitation.id,
            retry_path=None if invitation is None else invitation.path,
            expires_at=time.time() + STATE_SECONDS,
            account=options["account"],
        )
    )
    login_hint = options["expectedEmail"] or (connected.email if connected else None)
    chooses = options["account"] == ReplacedConnection.ADD
    link = oauth.link(ConsentRequest(redirect_uri, scopes, state, verifier, offline, login_hint, chooses))
    return ConsentLink(link, None if browser is None else ConsentCookie.of(state, browser))


def provider_of(caller: Caller, custom_id: str, account: str) -> str | None:
    """The provider of the connection that ``account`` (``ReplacedConnection``) names; None if it names none.

    :raise NotFound: for a user that the caller does not reach, or an id of none of the user's connections
    """
    if account in list(ReplacedConnection):
        return None
    with services().stores.database.reading() as session:
        user = users.find(session, custom_id, organization_id=caller.organization_id)
        if user is None:
            raise NotFound("User not found", Code.USER_NOT_FOUND)
        row = connections.find_one(session, user.id, account, organization_id=caller.organization_id)
    if row is None:
        raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)
    return row.provider


def _connected(
    session: Session, caller: Caller, user_id: int, provider: str, account: str
) -> OAuthConnection | None:
    """The connection that a consent is to replace, as far as that is known before.

    :raise NotFound: when ``account`` is the id of none of the user's connections with the provider
    """
    if account == ReplacedConnection.ADD:
        return None
    only = caller.organization_id
    if account == ReplacedConnection.DEFAULT:
        return connections.find(session, user_id, provider, organization_id=only)
    row = connections.find_one(session, user_id, account, organization_id=only)
    if row is None or row.provider != provider:
        raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)
    return row


def callback(provider: str, site: str | None) -> str | None:
    """The URL of the callback for a provider; None if ``site``, the base URL of this service, is unknown."""
    return None if site is None else f"{site}{CALLBACK.format(provider=provider)}"


def take(state: str, provider: str) -> PendingConsent | None:
    """Consume a state: the pending consent at this provider. A state of another provider is consumed too."""
    consent = services().stores.oauth_states.take(state)
    return consent if consent is not None and consent.provider == provider else None


def check_browser(consent: PendingConsent, state: str, cookies: Mapping[str, str]) -> None:
    """Reject a browser, by its cookies, other than the one that the consent is bound to, if any.

    :raise ApiError: for another browser
    """
    if not consent_cookie.may_finish(consent, state, cookies):
        raise ConsentRefused(ConsentRefusal.OTHER_BROWSER)


def check_still_allowed(consent: PendingConsent) -> None:
    """Reject a consent whose API key or person could not make its link any more.

    :raise ApiError: when the key or the person may not make it any more, the user is gone, the key does not
        reach the user any more, or other organizations share the user
    """
    with services().stores.database.writing() as session:
        found = user_invitations.check_consent(session, consent)
    if isinstance(found, ConsentRefusal):
        raise ConsentRefused(found)


def check_reach(caller: Caller, consent: PendingConsent) -> None:
    """Reject a key that may not change the user of a consent.

    :raise ApiError: when the key does not reach the user; the error is that of an unknown state
    :raise Forbidden: when other organizations share the user
    """
    with services().stores.database.writing() as session:
        user = users.by_number(session, consent.user_id, organization_id=caller.organization_id)
        if user is None:
            raise ConsentRefused(ConsentRefusal.STALE)
        own_user(session, caller, user.custom_id, otherwise=CONNECTION)


def finish(consent: PendingConsent, code: str) -> None:
    """Have a worker exchange the code and store the connection.

    :raise ApiError: if that fails, or if the API key or the person could not make the link any more
    """
    # The worker checks again when it stores the connection; this check avoids a useless exchange.
    check_still_allowed(consent)
    job = ExchangeCode(services().stores.code_exchanges.put(PendingExchange(consent, code)))
    # The state is consumed: after a rejection by admission, the person would have to start again.
    reply = services().ask(job, bypass_admission=True)
    if reply.refused is not None:
        raise ConsentRefused(reply.refused.refusal, missing=reply.refused.missing)
    if reply.failed is not None:
        raise _not_exchanged(reply.failed)


def _not_exchanged(failed: Failed) -> ApiError:
    """The error for a code that could not be exchanged."""
    if failed.reason is Reason.AUTHORIZATION_INVALID:
        # No connection is affected, so this is not the 401 of one.
        return ApiError(failed.message, Code.CONSENT_FAILED)
    return request_failed(failed)


def again(consent: PendingConsent) -> str | None:
    """A link to give the same consent again, after one that failed or granted less than requested.

    For consents that any browser may finish and that end with a page of this service. The link works until
    the first one would have ended; None if that moment has come.
    """
    if consent.retry_path is not None:
        return consent.retry_path
    if consent.seconds_left < 1:
        return None
    if (oauth := current_provider(consent.provider).oauth) is None:
        return None
    verifier = new_verifier()
    state = services().stores.oauth_states.put(replace(consent, verifier=verifier), consent.seconds_left)
    scopes = list(consent.scopes)
    login_hint = consent.expected_email
    chooses = consent.account == ReplacedConnection.ADD
    return oauth.link(
        ConsentRequest(consent.redirect_uri, scopes, state, verifier, consent.offline, login_hint, chooses)
    )


def not_granted(consent: PendingConsent, scopes: Sequence[str]) -> str | None:
    """The requested access that the granted scopes lack, in words; None if they lack nothing."""
    provider = consent.provider
    missing = missing_permissions(
        registry.scopes(provider).permitted(consent.scopes), registry.scopes(provider).permitted(scopes)
    )
    return join_names(missing) if missing else None


def can_be_repeated(consent: PendingConsent, error: ApiError) -> bool:
    """Whether the person can correct a failed consent by giving it again."""
    return isinstance(error, ConsentRefused) and error.repeatable and _any_browser(consent)


def _any_browser(consent: PendingConsent) -> bool:
    """Whether a link on a page of this service can repeat a consent."""
    if consent.return_url is not None:
        return False
    return consent.retry_path is not None or consent.browser_digest is None


def granted(consent: PendingConsent) -> tuple[str | None, Sequence[str]]:
    """The e-mail address and the scopes of the connection that was just made."""
    with services().stores.database.reading() as session:
        row = connections.newest(session, consent.user_id, consent.provider)
    return (row.email, row.scope) if row else (None, ())


def _redirect(own: str | None, redirect_url: str | None, return_url: str | None) -> tuple[str, bool]:
    """The URL that the provider sends the code to, and whether it is ``own``, our callback."""
    settings = services().settings
    target = own if redirect_url is None else redirect_url
    if target is None:
        sentence = "redirectUrl is required: this installation has no ALMANAC_PUBLIC_URL of its own"
        raise Invalid(sentence, param="redirectUrl")
    ours = target == own
    if not ours and return_url is not None:
        sentence = "returnUrl cannot be combined with redirectUrl: the browser comes back to the latter"
        raise Invalid(sentence, param="returnUrl")
    for name, url in (("redirectUrl", None if ours else redirect_url), ("returnUrl", return_url)):
        if url is not None and not redirect_allowlist.allowed(url, settings.redirect_urls):
            raise Invalid(f"{name} is not an address that ALMANAC_REDIRECT_URLS allows", param=name)
    return target, ours
