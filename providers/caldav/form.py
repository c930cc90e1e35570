"""The form that connects a CalDAV account: an address, a user name and a password."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from providers.base import Token
from providers.caldav import calendars, discovery
from providers.caldav.client import main_calendar
from providers.caldav.credentials import basic
from providers.caldav.errors import PROVIDER
from providers.caldav.scopes import SCOPE
from providers.caldav.server import Server
from providers.definition import OpenedAccount
from providers.errors import AuthorizationInvalid, FieldRefused
from providers.http.calls import Bearer
from providers.scopes import Operation


@dataclass(frozen=True, slots=True)
class _Entered:
    """The user name and password of a form, which nothing can renew."""

    header: Token

    def access_token(self, *, deadline: float) -> Token:
        return self.header

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        raise AuthorizationInvalid(
            f"{PROVIDER} does not accept this user name and password", operation=Operation.LIST_CALENDARS
        )


class AccountForm:
    """Opens the account behind the values of the form."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    def open(
        self,
        values: Mapping[str, str],
        main_calendars: Mapping[str, str],
        *,
        reconnects: str | None = None,
        deadline: float,
    ) -> OpenedAccount:
        """Find the account and its main calendar, and read its list of calendars once."""
        username, password = values["username"].strip(), values["password"]
        if ":" in username:
            # RFC 7617, 2: the first colon ends the name.
            raise FieldRefused("username", "must not contain a colon")
        bearer = Bearer(_Entered(Token(basic(username, password))))
        server = Server(bearer, Operation.LIST_CALENDARS, deadline, self._allow_private)
        url = discovery.address(values["url"], allow_private=self._allow_private)
        known, main = discovery.discover(
            server, url, username, password, main_calendars, reconnects=reconnects
        )
        zone = calendars.time_zone(main)
        return OpenedAccount(
            account_id=known.account_id,
            email=known.addresses[0] if known.addresses else None,
            credentials=known.sealed(),
            scope=(SCOPE,),
            main=main_calendar(main.url, known, zone),
        )
