"""The form that subscribes to a feed: its address."""

from __future__ import annotations

from collections.abc import Mapping

from providers.base import Token
from providers.definition import OpenedAccount
from providers.errors import AddressNotPublic, AnswerTooLarge, FieldRefused, NotFound, UnknownHost
from providers.http.ssrf_guard import ForbiddenUrl
from providers.ical.bounds import InvalidCalendar
from providers.ics import address
from providers.ics.client import main_calendar
from providers.ics.feeds import Feeds
from providers.ics.scopes import SCOPE
from providers.scopes import Operation


class FeedForm:
    """Opens the feed behind an address."""

    def __init__(self, feeds: Feeds, *, allow_private: bool) -> None:
        self._feeds = feeds
        self._allow_private = allow_private

    def open(
        self,
        values: Mapping[str, str],
        main_calendars: Mapping[str, str],
        *,
        reconnects: str | None = None,
        deadline: float,
    ) -> OpenedAccount:
        """Read the feed once. A feed that is connected again may have a new address."""
        try:
            url = address.of_feed(values["url"], allow_private=self._allow_private)
        except ForbiddenUrl as error:
            raise FieldRefused("url", str(error)) from None
        operation = Operation.LIST_CALENDARS
        try:
            feed = self._feeds.read(url, None, operation, deadline=deadline)
        except AddressNotPublic:
            raise FieldRefused("url", "must not lead to a private or loopback address") from None
        except UnknownHost:
            raise FieldRefused("url", "names a host that was not found: check the spelling") from None
        except NotFound:
            raise FieldRefused("url", "leads to no calendar: the server does not know this address") from None
        except (InvalidCalendar, AnswerTooLarge) as error:
            raise FieldRefused("url", f"leads to no calendar that can be read. {error.message}") from None
        hashed = address.hashed(url)
        return OpenedAccount(hashed, None, Token(url), (SCOPE,), main_calendar(url, feed))
