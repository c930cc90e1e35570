"""Errors of the token endpoints for organization grants.

https://developers.google.com/identity/protocols/oauth2/service-account#error-codes
https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes#aadsts-error-codes
"""

from __future__ import annotations

from providers.errors import (
    ClientRefused,
    ClockRefused,
    GrantRefused,
    ProviderError,
    RateLimited,
    SubjectRefused,
    Unavailable,
)
from providers.http.send import HttpReply
from providers.oauth.token_errors import LOOP, LOOP_PAUSE, PASSING, error_codes

_AUTHORIZE = (
    "Google has not authorized the service account for these scopes: the administrator adds its client id "
    "and the scopes under Domain-wide delegation in the Admin console"
)
_KEY = "Google does not accept the key of the service account: make a new key and enter it"
_CLOCK = "Google finds the time of this server wrong: correct its clock"
_SUBJECT = (
    "Google knows no active account with this address in the domain: check the address, and whether the "
    "account is suspended"
)

_BY_WORD = {
    "unauthorized_client": _AUTHORIZE,
    "access_denied": _AUTHORIZE,
    "invalid_scope": _AUTHORIZE,
    "admin_policy_enforced": "A policy of the Google Workspace domain blocks these scopes: the administrator "
    "allows them for the service account",
    "org_internal": "The Google Cloud project of the service account is internal to another organization: "
    "use a service account of your own organization",
    "disabled_client": "The service account is disabled: enable it in the Google Cloud console",
    "invalid_client": _KEY,
}

# Google has one error word for the key, the clock and the account. Its description tells them apart.
_BY_DESCRIPTION: tuple[tuple[str, type[GrantRefused], str], ...] = (
    ("short-lived token", ClockRefused, _CLOCK),
    ("reasonable timeframe", ClockRefused, _CLOCK),
    ("Invalid JWT", GrantRefused, _KEY),
    ("account not found", GrantRefused, _KEY),
)

_WRONG_CREDENTIALS = (
    "Microsoft does not accept the client secret: make a new one under Certificates & secrets, and enter its "
    "Value"
)
_APPLICATION = (
    "Microsoft knows no such application in this tenant: the tenant's administrator grants it admin consent, "
    "or corrects the client id"
)
_TENANT = "Microsoft knows no such tenant: enter the Directory (tenant) ID"
_CONSENT = "The tenant's administrator has to grant admin consent to the application"

_BY_CODE: dict[object, tuple[type[GrantRefused], str]] = {
    7000215: (ClientRefused, _WRONG_CREDENTIALS),
    7000222: (
        ClientRefused,
        "The client secret of the application has expired: make a new one under Certificates & secrets, and "
        "enter its Value",
    ),
    700016: (GrantRefused, _APPLICATION),
    7000229: (GrantRefused, _APPLICATION),
    7000112: (GrantRefused, "The application is disabled in this tenant: its administrator enables it"),
    90002: (GrantRefused, _TENANT),
    900023: (GrantRefused, _TENANT),
}
_MICROSOFT_BY_WORD: dict[str, tuple[type[GrantRefused], str]] = {
    "invalid_client": (ClientRefused, _WRONG_CREDENTIALS),
    "unauthorized_client": (GrantRefused, _APPLICATION),
    "invalid_tenant": (GrantRefused, _TENANT),
    "access_denied": (GrantRefused, _CONSENT),
    "invalid_grant": (GrantRefused, _CONSENT),
}


def google_error(reply: HttpReply) -> ProviderError:
    """The exception for an error answer to an assertion."""
    body = reply.body or {}
    word, description = body.get("error"), body.get("error_description")
    if passing := _passing(reply, word):
        return passing
    if isinstance(word, str) and word in _BY_WORD:
        return GrantRefused(_BY_WORD[word], operation=reply.operation)
    if word == "invalid_grant":
        text = description if isinstance(description, str) else ""
        for part, kind, sentence in _BY_DESCRIPTION:
            if part in text:
                return kind(sentence, operation=reply.operation)
        # "Invalid email or User ID", "Not a valid email". For an unknown description, one account fails
        # and not the whole domain.
        return SubjectRefused(_SUBJECT, operation=reply.operation)
    return _refused(reply)


def microsoft_error(reply: HttpReply) -> ProviderError:
    """The exception for an error answer to client credentials."""
    word = (reply.body or {}).get("error")
    if passing := _passing(reply, word):
        return passing
    known = next((_BY_CODE[code] for code in error_codes(reply) if code in _BY_CODE), None)
    if known is None and isinstance(word, str):
        known = _MICROSOFT_BY_WORD.get(word)
    if known is None:
        return _refused(reply)
    kind, sentence = known
    return kind(sentence, operation=reply.operation)


def _passing(reply: HttpReply, word: object) -> ProviderError | None:
    """The error when the same request may succeed later, whatever the grant is."""
    call = {"operation": reply.operation}
    if LOOP in error_codes(reply):
        return RateLimited(f"{reply.provider} asks us to slow down", **call, retry_after=LOOP_PAUSE)
    if reply.status == 429:
        return RateLimited(f"{reply.provider} asks us to slow down", **call, retry_after=reply.retry_after)
    if word in PASSING or reply.status >= 500 or reply.status == 408 or not isinstance(word, str):
        return Unavailable(
            f"{reply.provider} is not available just now", **call, retry_after=reply.retry_after
        )
    return None


def _refused(reply: HttpReply) -> ProviderError:
    return ProviderError(f"{reply.provider} refused the request", operation=reply.operation)
