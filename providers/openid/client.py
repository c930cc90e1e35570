"""The client of an identity provider: discovery, sign-in by a code with PKCE, and the check of an identity.

https://openid.net/specs/openid-connect-core-1_0.html
"""

from __future__ import annotations

import base64
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import quote_plus, urlencode, urlsplit

from providers.base import Token
from providers.errors import Misconfigured, ProviderError, Unavailable
from providers.http import errors
from providers.http.calls import FORM, Call, HttpReply, Json, unreadable
from providers.http.send import send
from providers.oauth import token_errors
from providers.openid import id_tokens
from providers.openid.id_tokens import Untrusted

TITLE = "The identity provider"
DISCOVER, KEYS, REDEEM, REFRESH, USERINFO = (
    f"openid.{name}" for name in ("discover", "keys", "redeem", "refresh", "userinfo")
)
# In seconds: for so long, the metadata and the keys of the provider are not read again.
KEPT = 3600.0
# In seconds: for so long, unknown keys are not looked for again.
KEYS_KEPT = 30.0
MAX_SUBJECT = 255
# The claims that a person is shown by.
NAMES = ("preferred_username", "name")
BASIC, POST = "client_secret_basic", "client_secret_post"


class WrongIssuer(ProviderError):
    """The setting names another issuer than the provider calls itself, or no provider."""


@dataclass(frozen=True, slots=True)
class ClientRegistration:
    """This installation at the identity provider. ``role_claim`` is asked for if an id token lacks it."""

    issuer: str
    client_id: str
    secret: Token
    role_claim: str


@dataclass(frozen=True, slots=True)
class Asserted:
    """The claims of the provider about a person. Without a refresh token, it cannot be asked again.

    ``names_roles``: the provider was asked for the claim with the roles, so that a missing one means none.
    """

    subject: str
    claims: Json = field(repr=False)
    refresh_token: Token | None
    names_roles: bool = True


class IdentityProvider:
    """Thread-safe. Metadata and keys are kept for an hour."""

    def __init__(self, registration: ClientRegistration) -> None:
        self._registered = registration
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Json]] = {}

    def page(self, *, deadline: float, fresh: bool = False) -> str:
        """The address of the provider's page, to which browsers are sent by ``providers.oauth.consent.link``.

        ``fresh``: ask the provider, although its metadata are cached.

        :raise WrongIssuer: when there is no provider with this issuer
        :raise Unavailable: when the provider does not answer
        """
        return self._endpoint("authorization_endpoint", deadline, 0.0 if fresh else KEPT)

    def redeem(self, code: str, nonce: str, verifier: str, redirect_uri: str, *, deadline: float) -> Asserted:
        """The person who signed in. Never retried: a code can be used once.

        :raise GrantGone: when the code was used before or has expired
        :raise Misconfigured: when the provider refuses client id or secret
        :raise ClockRefused, Untrusted: when the id token is not valid
        :raise Unavailable: when the provider does not answer
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
        }
        answer = self._tokens(REDEEM, form, deadline, repeatable=False)
        claims = self._checked(answer, nonce, deadline)
        return self._asserted(claims, answer, deadline)

    def check(self, subject: str, refresh_token: Token, *, deadline: float) -> Asserted:
        """The claims of the provider about a person at this moment.

        :raise GrantGone: when the person or the session there has ended
        :raise ProviderError: as for ``redeem``
        """
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token.reveal}
        answer = self._tokens(REFRESH, form, deadline)
        claims: Json = {"sub": subject}
        if answer.get("id_token"):
            # It has no nonce, or that of the sign-in.
            claims = self._checked(answer, None, deadline)
        if claims["sub"] != subject:
            raise Untrusted("The identity provider answered for another person")
        return self._asserted(claims, answer, deadline)

    def _asserted(self, claims: Json, answer: Json, deadline: float) -> Asserted:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable():
            raise Untrusted("The id token has a wrong or missing claim: sub")
        userinfo = self._metadata(deadline).get("userinfo_endpoint")
        named = any(name in claims for name in NAMES)
        if userinfo and (not named or claim(claims, self._registered.role_claim) is None):
            more = self._userinfo(str(answer["access_token"]), deadline)
            # https://openid.net/specs/openid-connect-core-1_0.html#UserInfoResponse
            if more.get("sub") != subject:
                raise Untrusted("The identity provider answered for another person")
            claims = more | claims
        refresh = answer.get("refresh_token")
        return Asserted(
            subject,
            claims,
            Token(refresh) if isinstance(refresh, str) and refresh else None,
            names_roles=bool(answer.get("id_token") or userinfo),
        )

    def _checked(self, answer: Json, nonce: str | None, deadline: float) -> Json:
        registered = self._registered
        return id_tokens.check(
            answer.get("id_token"),
            lambda fresh: self._read_json(
                KEYS, self._endpoint("jwks_uri", deadline), deadline, KEYS_KEPT if fresh else KEPT
            ),
            issuer=registered.issuer,
            client_id=registered.client_id,
            nonce=nonce,
            access_token=str(answer["access_token"]),
        )

    def _tokens(self, operation: str, form: dict[str, str], deadline: float, repeatable: bool = True) -> Json:
        """The answer of the token endpoint, which has an access token.

        A provider may take the secret in the header, as is the default, or in the form, or either.
        """
        known = self._metadata(deadline).get("token_endpoint_auth_methods_supported")
        methods = known if isinstance(known, list) else [BASIC]
        refused: ProviderError = Misconfigured(f"{TITLE} takes no client secret")
        for method in (BASIC, POST):
            if method not in methods:
                continue
            try:
                answer = self._request_tokens(operation, form, method == POST, deadline, repeatable)
            except Misconfigured as error:
                refused = error
                continue
            if not isinstance(answer.get("access_token"), str):
                raise unreadable(TITLE, operation)
            return answer
        raise refused

    def _request_tokens(
        self, operation: str, form: dict[str, str], posted: bool, deadline: float, repeatable: bool
    ) -> Json:
        client_id, secret = self._registered.client_id, self._registered.secret.reveal
        headers = {}
        if posted:
            form = form | {"client_id": client_id, "client_secret": secret}
        else:
            # https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
            pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        call = Call(
            TITLE,
            operation,
            "POST",
            self._endpoint("token_endpoint", deadline),
            urlencode(form).encode(),
            content_type=FORM,
            repeatable=repeatable,
            headers=headers,
        )
        return send(call, token_errors.error_for, deadline=deadline)

    def _userinfo(self, access_token: str, deadline: float) -> Json:
        call = Call(
            TITLE,
            USERINFO,
            "GET",
            self._endpoint("userinfo_endpoint", deadline),
            headers={"Authorization": f"Bearer {access_token}"},
        )
        return send(call, _refusal, deadline=deadline)

    def _endpoint(self, name: str, deadline: float, kept: float = KEPT) -> str:
        """An address of the provider, which is https if that of the issuer is."""
        address = self._metadata(deadline, kept).get(name)
        schemes = ("https",) if self._registered.issuer.startswith("https:") else ("https", "http")
        try:
            parts = urlsplit(address if isinstance(address, str) else "")
            valid = parts.scheme in schemes and bool(parts.hostname) and parts.username is None
        except ValueError:
            valid = False
        if not valid:
            raise WrongIssuer(f"{TITLE} states no valid {name}")
        return str(address)

    def _metadata(self, deadline: float, kept: float = KEPT) -> Json:
        # Its package loads all of OpenID Connect, which most workers do not use.
        from authlib.oidc.discovery import get_well_known_url

        issuer = self._registered.issuer
        found = self._read_json(DISCOVER, get_well_known_url(issuer, external=True), deadline, kept)
        # https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfigurationValidation
        if found.get("issuer") != issuer:
            # They may be right a moment later, so they are not kept.
            with self._lock:
                self._kept.pop(DISCOVER, None)
            raise WrongIssuer(f"{TITLE} at this address calls itself by another issuer")
        return found

    def _read_json(self, operation: str, url: str, deadline: float, kept: float) -> Json:
        with self._lock:
            at, found = self._kept.get(operation, (float("-inf"), {}))
        if time.monotonic() - at < kept:
            return found
        found = send(Call(TITLE, operation, "GET", url), _refusal, deadline=deadline)
        with self._lock:
            self._kept[operation] = time.monotonic(), found
        return found


def claim(claims: Json, name: str) -> object:
    """A claim by its name, which may be a path of names with dots, as in ``realm_access.roles``."""
    if name in claims:
        return claims[name]
    value: object = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _refusal(reply: HttpReply) -> ProviderError:
    if reply.operation == DISCOVER and 400 <= reply.status < 500 and reply.status not in (408, 429):
        return WrongIssuer(f"{TITLE} is not at this address, status {reply.status}")
    if reply.status >= 500:
        return Unavailable(f"{TITLE} is not available just now", operation=reply.operation)
    return errors.error(reply.provider, errors.by_status(reply.status), operation=reply.operation)
