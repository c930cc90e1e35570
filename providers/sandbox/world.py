"""The sandbox's whole state; ``DELETE /sandbox`` clears it."""

from __future__ import annotations

import itertools
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from providers.sandbox.accounts import Access, Account, Domain, Grant, Provider
from providers.sandbox.channels import Channels
from providers.sandbox.consent import Codes
from providers.sandbox.exchange import Request
from providers.sandbox.faults import Faults

# Prefixes of each provider's tokens; clients must treat tokens as opaque.
ACCESS_LOOK: dict[Provider, str] = {"google": "ya29.", "microsoft": "EwB"}
REFRESH_LOOK: dict[Provider, str] = {"google": "1//0", "microsoft": "M.C5_"}
# Lifetime of an access token, in seconds. Both providers announce one second less.
LIFETIME = 3600
# Unfinished lists to keep. The tokens of older ones have expired.
KEPT = 1000


class World:
    """Accounts, tokens, faults and request counts."""

    def __init__(self) -> None:
        # Held while a call is handled, but not while its answer is delayed or an address is asked.
        self.lock = Lock()
        self._start()

    @contextmanager
    def unlocked(self) -> Iterator[None]:
        """Let other calls be handled during the block."""
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()

    def forget(self) -> None:
        """Clear all state."""
        self.channels.discard()
        self._start()

    def _start(self) -> None:
        self.accounts: dict[tuple[Provider, str], Account] = {}
        self.domains: dict[tuple[Provider, str], Domain] = {}
        # Microsoft: the certificates of applications, by client id.
        self.certificates: dict[str, str] = {}
        self.access: dict[str, Access] = {}
        self.refresh: dict[str, Grant] = {}
        self.codes = Codes()
        self.faults = Faults()
        self.channels = Channels(self.lock, self.faults, self.count)
        self.syncs = Syncs()
        self.versions = itertools.count(1)
        self.serials = itertools.count(1)
        # The writes for which Google notified an event's guests.
        self.notices: list[dict[str, Any]] = []
        self.forget_requests()

    def forget_requests(self) -> None:
        """Count from zero."""
        # HTTP requests to either provider. A $batch is one; its parts count only by operation.
        self.total = 0
        self.by_operation: Counter[str] = Counter()
        self.faults.struck = 0

    def account(self, provider: Provider, email: str) -> Account | None:
        """The account of an address, in any case."""
        return self.accounts.get((provider, email.lower()))

    def add(self, account: Account) -> None:
        """Add an account; it replaces one with the same address and revokes its grants."""
        known = self.account(account.provider, account.email)
        if known is not None:
            known.close()
        self.accounts[account.provider, account.email.lower()] = account

    def remove(self, account: Account) -> None:
        """Delete an account as its administrator does: its channels end, and no directory lists it."""
        account.close()
        for channel in [each for each in self.channels.by_id.values() if each.account is account]:
            self.channels.close(channel)
        del self.accounts[account.provider, account.email.lower()]
        if (domain := self.domain_of(account)) is not None:
            domain.rooms = tuple(room for room in domain.rooms if room.email.lower() != account.email.lower())

    def domain_of(self, account: Account) -> Domain | None:
        """The domain that an account is a member of."""
        return self.domains.get((account.provider, account.domain_name))

    def members(self, domain: Domain) -> list[Account]:
        """The accounts of a domain, in the order of their creation."""
        return [account for account in self.accounts.values() if domain.has(account)]

    def consent(
        self, account: Account, scopes: tuple[str, ...], client_id: str, domain: Domain | None = None
    ) -> Grant:
        """A new consent of an account, or of its domain's administrator, to an application."""
        grant = Grant(account, scopes, client_id, domain=domain)
        account.grants.append(grant)
        return grant

    def access_token(
        self, grant: Grant, scopes: tuple[str, ...] | None = None, *, lifetime: int = LIFETIME
    ) -> str:
        """A new access token of a grant, for all of its scopes or some; it lives ``lifetime`` seconds."""
        token = ACCESS_LOOK[grant.account.provider] + secrets.token_urlsafe(24)
        return self.register(token, Access(grant, scopes or grant.scopes, time.time() + lifetime))

    def register(self, token: str, access: Access) -> str:
        """Accept a token from now on."""
        self.access[token] = access
        return token

    def refresh_token(self, grant: Grant) -> str:
        """A new refresh token of a grant."""
        token = REFRESH_LOOK[grant.account.provider] + secrets.token_urlsafe(24)
        self.refresh[token] = grant
        return token

    def bearer(self, request: Request, provider: Provider) -> Access | None:
        """The record of a call's access token, live or not; None if this provider never issued it."""
        access = self.access.get(bearer_token(request))
        return access if access is not None and access.grant.account.provider == provider else None

    def count(self, operation: str) -> None:
        """Count one call, or one part of a ``$batch``."""
        self.by_operation[operation] += 1


def bearer_token(request: Request) -> str:
    """The token in the Authorization header, or an empty string."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def is_live(access: Access) -> bool:
    """Whether a token is still valid."""
    return access.grant.is_valid and time.time() < access.expires_at


def new_name() -> str:
    """A name for a list."""
    return secrets.token_hex(8)


class Syncs:
    """The sync tokens that are valid, and the lists that clients have not read to the end.

    A client that has read all pages and then a sync token must miss no change. So the pages after the first
    one are of the list as it was then.
    """

    def __init__(self) -> None:
        self._expirations: Counter[str] = Counter()
        self._lists: OrderedDict[str, tuple[Sequence[Any], int]] = OrderedDict()

    def token(self, provider: Provider, version: int) -> str:
        """A sync token for a calendar whose newest event has this version."""
        return f"sync-{self._expirations[provider]}-{version}"

    def version(self, provider: Provider, token: str) -> int | None:
        """The version in a sync token; None if it has expired, or is none."""
        name, _, rest = token.partition("-")
        expirations, _, version = rest.partition("-")
        known = name == "sync" and expirations == str(self._expirations[provider]) and version.isdecimal()
        return int(version) if known else None

    def expire(self, provider: str | None) -> None:
        """Let all sync tokens and unfinished lists of a provider, or of both, expire."""
        self._expirations.update([provider] if provider else ["google", "microsoft"])
        self._lists.clear()

    def keep(self, name: str, found: Sequence[Any], version: int) -> None:
        """Keep a list of which more pages follow, under a name from ``new_name``."""
        self._lists[name] = found, version
        while len(self._lists) > KEPT:
            self._lists.popitem(last=False)

    def kept(self, name: str) -> tuple[Sequence[Any], int] | None:
        """A list that was kept, and the version of its calendar then."""
        return self._lists.get(name)
