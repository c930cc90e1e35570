"""Checks an OAuth client by how the token endpoint answers, without a user's consent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from providers.errors import ProviderError
from providers.http.calls import HttpReply
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
    # The provider never says more in advance.
    usual: bool = False


class TokenEndpointError(ProviderError):
    """An error answer, kept whole so that the probe can read it."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(f"{reply.provider} refused the request", operation=reply.operation)
        self.reply = reply


SEE = "Connect an account: that shows whether the registration works."


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
        f"Save again in a few minutes to have it checked. {SEE}",
    )


def unclear(provider: str) -> Finding:
    """The answer says nothing about the OAuth client."""
    return Finding(ProbeVerdict.UNKNOWN, f"{provider} did not say whether the registration is right", SEE)


def read(reply: HttpReply, known: Mapping[object, Finding]) -> Finding:
    """The finding from the error answer to a made-up code; ``known`` has the server's own codes and words."""
    word = (reply.body or {}).get("error")
    for code in (*error_codes(reply), word):
        if isinstance(code, int | str) and code in known:
            return known[code]
    match word:
        case "invalid_grant":
            # https://www.rfc-editor.org/rfc/rfc6749#section-3.2.1: the client is authenticated first.
            return right(reply.provider)
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
