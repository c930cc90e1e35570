"""The URL of the consent page: the authorization request to either provider.

https://developers.google.com/identity/protocols/oauth2/web-server#creatingclient
https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow#request-an-authorization-code
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """A request for a user's consent. ``verifier`` is kept secret: the URL contains only its challenge.

    ``offline`` requests a refresh token, for access while the user is away. ``login_hint`` is the address of
    the account that is already connected, if there is one.
    """

    redirect_uri: str
    scopes: Sequence[str]
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    offline: bool
    login_hint: str | None = None


def new_verifier() -> str:
    """A PKCE verifier: https://www.rfc-editor.org/rfc/rfc7636#section-4.1"""
    return secrets.token_urlsafe(48)


def google_link(auth_url: str, client_id: str, request: ConsentRequest) -> str:
    """The URL of Google's consent page.

    A refresh token is issued with the first consent only, unless ``prompt=consent`` requests another:
    https://developers.google.com/identity/protocols/oauth2/web-server#offline
    """
    return _link(
        auth_url,
        client_id,
        request,
        access_type="offline" if request.offline else "online",
        prompt="consent" if request.offline else None,
    )


def microsoft_link(auth_url: str, client_id: str, request: ConsentRequest) -> str:
    """The URL of Microsoft's consent page; a user with several accounts chooses one there."""
    return _link(
        auth_url,
        client_id,
        request,
        response_mode="query",
        prompt=None if request.login_hint else "select_account",
    )


def _link(auth_url: str, client_id: str, request: ConsentRequest, **more: str | None) -> str:
    link: str = prepare_grant_uri(
        auth_url,
        client_id,
        "code",
        redirect_uri=request.redirect_uri,
        scope=list(request.scopes),
        state=request.state,
        code_challenge=create_s256_code_challenge(request.verifier),
        code_challenge_method="S256",
        login_hint=request.login_hint,
        **more,
    )
    return link
