"""Checks an OAuth client by how the token endpoint answers, without a user's consent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from providers.errors import ProviderError
from providers.http.send import HttpReply
from providers.oauth.token_errors import MISCONFIGURED, PASSING, error_codes


class ProbeVerdict(StrEnum):
    """The result of checking a client id and its secret."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result as a sentence for the operator who entered the OAuth client, and the next step."""

    verdict: ProbeVerdict
    sentence: str
    advice: str


class TokenEndpointError(ProviderError):
    """An error answer, kept whole so that the probe can read it."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(f"{reply.provider} refused the request", operation=reply.operation)
        self.reply = reply


_SEE = "Connect an account: that shows whether the registration works."

# Entra may reject a made-up code as malformed before it checks the secret.
SECRET_UNSEEN = Finding(
    ProbeVerdict.UNKNOWN, "Microsoft does not say in advance whether the secret is right", _SEE
)
_NO_TENANT = Finding(
    ProbeVerdict.WRONG,
    "Microsoft knows no such tenant",
    "Copy the Directory (tenant) ID from the application's overview page, or enter common for accounts of "
    "every tenant.",
)

# Microsoft may change these codes. For an unknown code, ``error`` decides.
# https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes#aadsts-error-codes
_BY_CODE = {
    7000215: Finding(
        ProbeVerdict.WRONG,
        "Microsoft does not accept the secret",
        "Copy the Value of the client secret, not its Secret ID. It is shown only once: if it is hidden by "
        "now, make a new one under Certificates & secrets.",
    ),
    7000222: Finding(
        ProbeVerdict.WRONG,
        "The secret has expired",
        "Make a new client secret under Certificates & secrets, and enter its Value.",
    ),
    700016: Finding(
        ProbeVerdict.WRONG,
        "Microsoft knows no application with this id in this tenant",
        "Compare the Application (client) ID and the Directory (tenant) ID with the application's overview "
        "page.",
    ),
    50194: Finding(
        ProbeVerdict.WRONG,
        "The application accepts accounts of its own tenant only",
        "Enter its Directory (tenant) ID, or let it accept accounts of any organization under "
        "Authentication.",
    ),
    90002: _NO_TENANT,
    900023: _NO_TENANT,
    9002313: SECRET_UNSEEN,
    90023: SECRET_UNSEEN,
}


def right(provider: str) -> Finding:
    """Client id and secret are correct."""
    return Finding(
        ProbeVerdict.RIGHT,
        f"{provider} accepts the client id and the secret",
        "Connect an account to see that the redirect address is registered too.",
    )


def unreachable(provider: str) -> Finding:
    """There was no readable answer."""
    return Finding(
        ProbeVerdict.UNKNOWN,
        f"{provider} could not be asked just now",
        f"Save again in a few minutes to have it checked. {_SEE}",
    )


def unclear(provider: str) -> Finding:
    """The answer says nothing about the OAuth client."""
    return Finding(ProbeVerdict.UNKNOWN, f"{provider} did not say whether the registration is right", _SEE)


def read(reply: HttpReply) -> Finding:
    """The finding from the error answer to a made-up code."""
    for code in error_codes(reply):
        if code in _BY_CODE:
            return _BY_CODE[code]
    match (reply.body or {}).get("error"):
        case "invalid_grant":
            # https://www.rfc-editor.org/rfc/rfc6749#section-3.2.1: the client is authenticated first.
            return right(reply.provider)
        case "invalid_tenant":
            return _NO_TENANT
        case "redirect_uri_mismatch":
            return Finding(
                ProbeVerdict.UNKNOWN,
                f"The redirect address is not registered with {reply.provider}",
                "Register exactly the address that is shown here, and save again to have the rest checked.",
            )
        case str(word) if word in MISCONFIGURED:
            return Finding(
                ProbeVerdict.WRONG,
                f"{reply.provider} does not accept this client id with this secret",
                f"Copy both once more from the same application at {reply.provider}.",
            )
        case str(word) if word not in PASSING and reply.status < 500 and reply.status not in (408, 429):
            return unclear(reply.provider)
    return unreachable(reply.provider)
