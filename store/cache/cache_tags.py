"""Cache tags: which cached calendars an event write or a provider's notification invalidates.

Several connections may read one calendar: two users connect the same account, or one account shares a
calendar with another. A cached calendar carries a tag for its account, its mailbox, the calendar itself and,
if another mailbox shares it, that mailbox. A write invalidates every cached calendar that carries one of its
tags. Tags are made of the provider's own ids, because two connections of one mailbox may differ in the e-mail
address that a client gave for them.

Google calendar ids are global, and a main calendar has the address of its account. Graph ids are valid in
one mailbox: a calendar that is shared has another id in the other mailbox, and names its owner's address.
Ids and addresses of CalDAV are valid at one server, which the id of the account names: two servers may know
one address and one path.

Locks and held time have names that are made of the same ids (``booked_names``), so that bookings of one
calendar meet through whichever user, connection or organization they are made.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

# The providers whose calendar ids are valid in every account, and whose main calendars have the address of
# their account as id.
GLOBAL_IDS = frozenset({"google"})
PRIMARY = "primary"

# A longer name is hashed: an index of PostgreSQL takes rows of up to 2 700 bytes.
MAX_NAME = 400

USER = "user:"


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


class UserNames(NamedTuple):
    """The names under which the time of one user may be held, and those whose versions show a change.

    A change of a hold replaces the versions of the main calendars of its users too, so the version of the
    user is read only where no main calendar is.
    """

    all: tuple[str, ...]
    versioned: tuple[str, ...]


def has_global_ids(provider: str) -> bool:
    """Whether the ids of its calendars are valid in every account."""
    return provider in GLOBAL_IDS


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
    if not has_global_ids(of.provider):
        calendars += [_shared(of, each) for each in (owner, _address(of)) if each]
    return Tags((_mailbox(of, owner),) if owner else (), tuple(calendars))


def booked_names(of: Identified, calendar: str, owner: str = "") -> tuple[str, ...]:
    """The names under which a booking of this calendar is locked and held; ``owner`` as in ``read_tags``.

    The first one is enough to find what others have booked: every connection that is identified has it. At
    Google it is the calendar. At Microsoft it is the mailbox that owns the calendar, because the id of one
    calendar differs between mailboxes. A main calendar also has the name of its account.
    """
    if has_global_ids(of.provider):
        main = calendar in (PRIMARY, of.main_calendar_id) or calendar.lower() == _address(of)
        names = [*_calendar(of, PRIMARY if main else calendar)]
    else:
        main = not owner
        address = owner or _address(of)
        names = [_mailbox(of, address)] if address else []
    if main and of.account_id:
        names.append(_account(of, of.account_id))
    return tuple(map(_short, names))


def calendar_names(of: Identified, calendar: str) -> tuple[str, ...]:
    """The names by which a calendar is recognized that another connection reads too; empty if not known.

    ``calendar`` is not the main one, which is recognized by its names of ``booked_names``.
    """
    return tuple(map(_short, _calendar(of, calendar)))


def user_name(number: int) -> str:
    """The name of what is booked of a user, by the internal id: it stays when the connections change."""
    return f"{USER}{number}"


def owner_of(of: Identified, address: str) -> str:
    """The address of a calendar's owner if that is another mailbox, else ``""``."""
    address = address.lower()
    return "" if has_global_ids(of.provider) or address == _address(of) else address


def _mailboxes(of: Identified) -> tuple[str, ...]:
    account = (_account(of, of.account_id),) if of.account_id else ()
    address = _address(of)
    return (*account, _mailbox(of, address)) if address else account


def _account(of: Identified, account_id: str) -> str:
    return f"{_provider(of)}:account:{account_id}"


def _calendar(of: Identified, calendar: str) -> tuple[str, ...]:
    name = (_main_calendar(of) if calendar == PRIMARY else calendar) or ""
    if has_global_ids(of.provider):
        name = name.lower()
    return (f"{_provider(of)}:calendar:{name}",) if name else ()


def _main_calendar(of: Identified) -> str | None:
    return _address(of) if has_global_ids(of.provider) else of.main_calendar_id


def _address(of: Identified) -> str:
    """The address that the provider has reported, else the e-mail address of the connection."""
    return (of.mailbox or of.email or "").lower()


def _mailbox(of: Identified, address: str) -> str:
    return f"{_provider(of)}:mailbox:{address}"


def _shared(of: Identified, owner: str) -> str:
    return f"{_provider(of)}:shared:{owner}"


def _provider(of: Identified) -> str:
    """The provider, with the host of the account if the provider has many servers."""
    host = urlsplit(of.account_id).netloc if of.account_id and "://" in of.account_id else ""
    return f"{of.provider}@{host}" if host else of.provider


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"
