"""The parts of a call to a provider: the call, its token, and the reply. ``send`` makes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from providers.base import Account, CallReporter, Token, TokenSource
from providers.errors import AccessDenied, ProviderError, TimedOut, TokenRejected, Unreadable

# Limit for one decompressed answer: larger than any page of events, and small enough for a process that
# reads many at once. A megabyte can decompress to a gigabyte.
MAX_BYTES = 64 * 1024 * 1024

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

Json = dict[str, Any]

# Reads the content of an answer; None if that is no JSON object.
Decode = Callable[[bytes], Json | None]


# An escape of half a character, or anything else that begins with a backslash.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def json_object(content: bytes) -> Json | None:
    """The JSON object in an answer; None for anything else.

    A byte order mark is ignored (RFC 8259, 8.1). Half of a character, which programs leave behind that cut a
    text in the middle of an emoji, is replaced by U+FFFD, as are bytes that are not UTF-8.
    """
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        try:
            body = orjson.loads(_repaired(content))
        except orjson.JSONDecodeError:
            return None
    return body if isinstance(body, dict) else None


def _repaired(content: bytes) -> str:
    """JSON text without a byte order mark and without parts of characters."""
    text = content.decode("utf-8-sig", "replace")
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape[1] else escape[0], text)


class Reach(StrEnum):
    """The hosts that a call may reach: those of a provider, or of an address that a person has entered."""

    PROVIDER = "provider"
    ANY = "any"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a provider; ``provider`` and ``operation`` are its names in messages.

    ``url`` is already quoted; ``headers`` extend the default ones. ``repeatable`` is False for a call that
    must not be executed twice: it is then retried only after a 401. ``answers`` is False when success has no
    body. ``envelope``: the answer contains several replies, whose reader reports success to the
    ``CallReporter``.
    ``decode`` reads the answer, like :func:`json_object`. ``scheme`` is that of the ``Authorization`` header.
    ``reach`` and ``max_bytes``: see ``transport.exchange``.
    """

    provider: str
    operation: str
    method: str
    url: str
    body: bytes | None = None
    content_type: str = JSON
    repeatable: bool = True
    answers: bool = True
    envelope: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    decode: Decode = json_object
    scheme: str = "Bearer"
    reach: Reach = Reach.PROVIDER
    max_bytes: int = MAX_BYTES

    def __repr__(self) -> str:
        # Bodies contain secrets, URLs contain e-mail addresses.
        return f"<{self.provider} {self.operation}>"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The answer to one call or one part of a batch; ``body`` is None when unreadable.

    ``location`` is where a redirect leads, as the provider writes it. ``headers`` are those of the answer to
    one call, and know names in any case.
    """

    provider: str
    operation: str
    status: int
    body: Json | None = field(repr=False)
    retry_after: float | None = None
    location: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def proves_token(self) -> bool:
        """Whether the provider has accepted the token: a front end may answer 429 or 5xx before it looks."""
        return self.status < 500 and self.status not in (401, 408, 429)


ErrorReader = Callable[[HttpReply], ProviderError]


class Bearer:
    """The access token of one account during one operation; refreshed once at most.

    ``reporter``, ``grace`` and ``request_id`` come from the account.
    """

    def __init__(
        self,
        tokens: TokenSource,
        reporter: CallReporter | None = None,
        grace: float = 0.0,
        request_id: str | None = None,
    ) -> None:
        self.reporter = reporter
        self.grace = grace
        self.request_id = request_id
        self._tokens = tokens
        self._token: Token | None = None
        self._renewed = False
        self._accepted = False

    @classmethod
    def of(cls, account: Account) -> Bearer:
        """The bearer for an account."""
        return cls(account.tokens, account.reporter, account.grace, account.request_id)

    def end_grace(self) -> None:
        """End the grace: after the first answer, the operation must return at its deadline."""
        self.grace = 0.0

    @property
    def accepted(self) -> bool:
        """Whether the provider has accepted a token in this operation."""
        return self._accepted

    def accept(self) -> None:
        """Record an answer that only an accepted token gets, an error answer included."""
        self._accepted = True

    def answered(self) -> None:
        """Record that the provider answers."""
        if self.reporter is not None:
            self.reporter.answered()

    def token(self, *, deadline: float) -> Token:
        """The token to send, loaded on first use."""
        if self._token is None:
            self._token = self._tokens.access_token(deadline=deadline)
        return self._token

    def renew(self, provider: str, operation: str, *, deadline: float) -> None:
        """Replace a token that was answered with 401.

        :raise TokenRejected: when the rejected token itself came from a refresh, or has none
        :raise AccessDenied: when another call has shown that the grant is valid
        """
        try:
            if self._renewed or self._token is None:
                raise TokenRejected(f"{provider} no longer accepts this connection", operation=operation)
            self._token = self._tokens.renewed(self._token, deadline=deadline)
        except TokenRejected:
            if self._accepted:
                raise token_refused_here(provider, operation) from None
            raise
        self._renewed = True


def token_refused_here(provider: str, operation: str) -> AccessDenied:
    """The error for a 401 about one resource, given with a token that the provider accepts for others."""
    return AccessDenied(f"{provider} denies access", operation=operation)


def late(provider: str, operation: str, *, waited: float = 0.0, unsent: bool = False) -> TimedOut:
    """The error when no answer arrived by the deadline."""
    message = f"{provider} did not answer in time"
    return TimedOut(message, operation=operation, waited=waited, unsent=unsent)


def unreadable(provider: str, operation: str) -> Unreadable:
    """The error for an answer that cannot be parsed."""
    return Unreadable(f"{provider} gave an unreadable answer", operation=operation)
