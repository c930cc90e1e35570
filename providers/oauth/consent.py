"""The URL of a consent page: the authorization request (RFC 6749, 4.1.1) with PKCE (RFC 7636)."""

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
    the account that is already connected, if there is one. ``chooses_account``: the person is asked which
    account to connect, even if only one is signed in.
    """

    redirect_uri: str
    scopes: Sequence[str]
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    offline: bool = False
    login_hint: str | None = None
    chooses_account: bool = False


def new_verifier() -> str:
    """A PKCE verifier: https://www.rfc-editor.org/rfc/rfc7636#section-4.1"""
    return secrets.token_urlsafe(48)


def link(auth_url: str, client_id: str, request: ConsentRequest, **more: str | None) -> str:
    """The URL of a consent page; ``more`` are the parameters of its provider alone."""
    url: str = prepare_grant_uri(
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
    return url
