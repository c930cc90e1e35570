"""Accounts at real CalDAV servers, and at a scripted one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import caldav
import pytest

from providers.base import Account, Token
from providers.caldav import identifiers
from providers.caldav.client import CalDav
from providers.caldav.form import AccountForm
from providers.definition import OpenedAccount
from providers.errors import TokenRejected
from tests.providers.caldav.scripted import Script, scripted
from tests.providers.caldav.servers import PASSWORD, USER, CalDavServer


class Stored:
    """The stored credentials of an account; ``replace`` them as a new connection does."""

    def __init__(self, token: Token) -> None:
        self.token = token

    def access_token(self, *, deadline: float) -> Token:
        return self.token

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        if rejected == self.token:
            raise TokenRejected("The server rejects the stored credentials: connect the account again")
        return self.token


def soon(seconds: float = 30.0) -> float:
    """A deadline."""
    return time.monotonic() + seconds


def opened(
    url: str,
    username: str = USER,
    password: str = PASSWORD,
    main_calendars: Mapping[str, str] = MappingProxyType({}),
) -> OpenedAccount:
    """The account behind an address in the network of the tests."""
    values = {"url": url, "username": username, "password": password}
    return AccountForm(allow_private=True).open(values, main_calendars, deadline=soon())


def account_of(found: OpenedAccount) -> Account:
    """The account as an adapter gets it."""
    return Account(found.email, frozenset(found.scope), Stored(found.credentials))


@pytest.fixture(params=["radicale", pytest.param("xandikos", marks=pytest.mark.slow)])
def server(request: pytest.FixtureRequest, servers: Callable[[str], CalDavServer]) -> CalDavServer:
    """Each of the servers."""
    return servers(request.param)


@dataclass(frozen=True, slots=True)
class Place:
    """An account, and an empty calendar of its own, through our adapter and a client that is not ours."""

    adapter: CalDav
    account: Account
    id: str
    outside: caldav.Calendar

    def write(self, text: str) -> None:
        """Store an object from outside."""
        self.outside.add_event(text, no_overwrite=True)

    def texts(self) -> list[str]:
        """The objects as the other client sees them."""
        return [each.data for each in self.outside.events()]


@pytest.fixture
def place(server: CalDavServer, unique: Callable[[str], str]) -> Place:
    """An empty calendar at each server."""
    outside = server.new_calendar(unique("calendar"))
    account = account_of(opened(server.url))
    return Place(CalDav(allow_private=True), account, identifiers.calendar_id(str(outside.url)), outside)


@pytest.fixture
def script() -> Iterator[Script]:
    """A scripted server."""
    with scripted() as found:
        yield found
