"""The stored part of a connected account: address, user name, password, and where its calendars are.

It is one secret text, which ``Account.tokens`` supplies as OAuth tokens are. The places of the calendars are
found when the account is connected, which saves every later operation these calls.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

import msgspec

from providers.base import Account, Token, TokenSource
from providers.errors import AuthorizationInvalid

# A column of the database has this length.
_MAX_ACCOUNT_ID = 256


class BasicCredentials(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A user name and a password, and where the calendars are.

    ``url`` is the address as it was entered. ``homes`` are the addresses of the collections that have the
    calendars, all at one host; ``calendar`` is the one calendar that ``url`` named, if any; ``main`` is the
    main one. ``principal`` is the account itself at its server, and ``addresses`` are its e-mail addresses.
    """

    url: str
    username: str
    password: str
    principal: str
    homes: tuple[str, ...]
    main: str
    calendar: str | None = None
    addresses: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "<credentials>"

    @property
    def origin(self) -> str:
        """Scheme, host and port of all calendars."""
        parts = urlsplit(self.homes[0])
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def account_id(self) -> str:
        """The account at its server: its address in one spelling, because servers quote differently.

        Of an address that is too long, the server and a hash remain.
        """
        server = urlsplit(self.principal)
        parts = server.path.rstrip("/").split("/")
        path = "/".join(quote(unquote(each), safe="@") for each in parts) + "/"
        query = f"?{server.query}" if server.query else ""
        whole = f"{server.scheme}://{server.netloc}{path}{query}"
        if len(whole) <= _MAX_ACCOUNT_ID:
            return whole
        return f"{server.scheme}://{server.netloc}/{hashlib.sha256(whole.encode()).hexdigest()}"

    def sealed(self) -> Token:
        """The text to store."""
        return Token(msgspec.json.encode(self).decode())


def basic(username: str, password: str) -> str:
    """The content of the header ``Authorization``, after its scheme (RFC 7617, 2)."""
    return base64.b64encode(f"{username}:{password}".encode()).decode()


def opened(token: Token) -> BasicCredentials:
    """The credentials of a stored text.

    :raise AuthorizationInvalid: when it is not one
    """
    try:
        return msgspec.json.decode(token.reveal, type=BasicCredentials)
    except (msgspec.DecodeError, UnicodeError):
        raise AuthorizationInvalid(
            "The stored credentials cannot be read; connect the account again"
        ) from None


@dataclass(slots=True)
class BasicTokens:
    """A ``TokenSource`` that supplies user name and password in the form of the header."""

    tokens: TokenSource
    _sent: Token | None = field(default=None, repr=False)

    @classmethod
    def of(cls, account: Account) -> BasicTokens:
        """Those of a connected account."""
        return cls(account.tokens)

    def credentials(self, *, deadline: float) -> BasicCredentials:
        """The stored credentials of the account."""
        self._sent = self.tokens.access_token(deadline=deadline)
        return opened(self._sent)

    def access_token(self, *, deadline: float) -> Token:
        """The stored user name and password."""
        known = self.credentials(deadline=deadline)
        return Token(basic(known.username, known.password))

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        """The credentials that were stored since, in place of the rejected ones.

        :raise AuthorizationInvalid: when there are none
        """
        sent = self._sent or self.tokens.access_token(deadline=deadline)
        known = opened(self.tokens.renewed(sent, deadline=deadline))
        return Token(basic(known.username, known.password))
