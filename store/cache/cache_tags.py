"""Cache tags: which cached calendars an event write or a provider's notification invalidates.

Several connections may read one calendar: two users connect the same account, or one account shares a
calendar with another. A cached calendar carries a tag for its account, its mailbox, the calendar itself and,
if another mailbox shares it, that mailbox. A write invalidates every cached calendar that carries one of its
tags. Tags are made of the provider's own ids, because two connections of one mailbox may differ in the e-mail
address that a client gave for them.

Google calendar ids are global, and a main calendar has the address of its account. Graph ids are valid in
one mailbox: a calendar that is shared has another id in the other mailbox, and names its owner's address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

GOOGLE = "google"
PRIMARY = "primary"


class Identified(Protocol):
    """A connection, with what is known of its account."""

    @property
    def provider(self) -> str: ...
    @property
    def email(self) -> str | None: ...
    @property
    def account_id(self) -> str | None: ...
    @property
    def main_calendar_id(self) -> str | None: ...
    @property
    def mailbox(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Tags:
    """A tag in ``mailboxes`` covers all calendars of a connection, a tag in ``calendars`` a single one."""

    mailboxes: tuple[str, ...] = ()
    calendars: tuple[str, ...] = ()


def read_tags(of: Identified, calendar: str, owner: str = "") -> Tags:
    """The tags that a cached calendar carries. ``owner`` is the address of another mailbox that shares it."""
    calendars = [*_calendar(of, calendar)]
    if owner:
        calendars.append(_shared(of, owner))
    return Tags(_mailboxes(of), tuple(calendars))


def write_tags(of: Identified, calendar: str, owner: str = "") -> Tags:
    """The tags that an event write invalidates: the whole mailbox, and calendars of others that share it."""
    changed = change_tags(of, calendar, owner)
    return Tags((*_mailboxes(of), *changed.mailboxes), changed.calendars)


def change_tags(of: Identified, calendar: str, owner: str = "") -> Tags:
    """The tags that a notification about a calendar invalidates.

    If another mailbox owns the calendar, its id there is not known: that whole mailbox is invalidated.
    """
    calendars = [*_calendar(of, calendar)]
    if of.provider != GOOGLE:
        calendars += [_shared(of, each) for each in (owner, _address(of)) if each]
    return Tags((_mailbox(of, owner),) if owner else (), tuple(calendars))


def owner_of(of: Identified, address: str) -> str:
    """The address of a calendar's owner if that is another mailbox, else ``""``."""
    address = address.lower()
    return "" if of.provider == GOOGLE or address == _address(of) else address


def _mailboxes(of: Identified) -> tuple[str, ...]:
    account = (f"{of.provider}:account:{of.account_id}",) if of.account_id else ()
    address = _address(of)
    return (*account, _mailbox(of, address)) if address else account


def _calendar(of: Identified, calendar: str) -> tuple[str, ...]:
    name = (_main_calendar(of) if calendar == PRIMARY else calendar) or ""
    if of.provider == GOOGLE:
        name = name.lower()
    return (f"{of.provider}:calendar:{name}",) if name else ()


def _main_calendar(of: Identified) -> str | None:
    return _address(of) if of.provider == GOOGLE else of.main_calendar_id


def _address(of: Identified) -> str:
    """The address that the provider has reported, else the e-mail address of the connection."""
    return (of.mailbox or of.email or "").lower()


def _mailbox(of: Identified, address: str) -> str:
    return f"{of.provider}:mailbox:{address}"


def _shared(of: Identified, owner: str) -> str:
    return f"{of.provider}:shared:{owner}"
