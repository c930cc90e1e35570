"""Users who cannot be booked now: one state for the overview, lists, pages of users and the explorer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from redis.exceptions import RedisError
from sqlalchemy import ColumnElement

from app.services import services
from providers.errors import Reason
from store.cache.last_reads import LastRead
from store.sql.queries import attention

log = logging.getLogger(__name__)

# The value of ``show`` for these users, the title of the filter, and the word of the badge of an account that
# has not ended.
SHOW, TITLE, WORD = "unread", "Cannot be booked now", "cannot be read"

# At most this many failed accounts count, the newest failures first: SQL gets their ids as parameters.
MOST = 10_000

_UNKNOWN = "failed reads are not shown: %s"

_CONNECT = "Connect the account again."
_PROVIDER = "The next read may succeed. If other accounts of the provider are read, check this one there."
_ADVICE = {
    Reason.ACCESS_DENIED: "Check the sharing of the calendar, or connect the account again.",
    Reason.AUTHORIZATION_INVALID: _CONNECT,
    Reason.INSUFFICIENT_SCOPES: "Connect the account again, and allow access to calendars.",
    Reason.MAILBOX_UNAVAILABLE: "Check that the mailbox exists and has a license.",
    Reason.NOT_FOUND: "Check that the account and its calendar still exist at the provider.",
    Reason.PROVIDER_NOT_CONFIGURED: "Enter the registration of the provider.",
    Reason.RATE_LIMITED: "The provider limits the calls, and is asked again after a pause.",
}
# Of an account that the grant of an organization reads: no person can connect it again.
_ENTER_GRANT = "Enter the grant of the organization again, on the organization's page."
# At Google this may be one account's own failure.
_OR_ACCOUNT = " If its other members are read, correct the address or activate the account instead."
BY_GRANT = {
    Reason.ACCESS_DENIED: "The organization's grant does not reach this mailbox. At Microsoft, add it to the "
    "group of the management scope or of the access policy.",
    Reason.AUTHORIZATION_INVALID: _ENTER_GRANT + _OR_ACCOUNT,
    Reason.INSUFFICIENT_SCOPES: _ENTER_GRANT,
}


def failing() -> list[str]:
    """The ids of the connections whose last read failed, ended ones among them; the newest failure first."""
    try:
        return services().stores.last_reads.failing(MOST)
    except RedisError as error:
        log.warning(_UNKNOWN, type(error).__name__)
        return []


def missing() -> int:
    """How many accounts have not been read yet, as upkeep has counted them."""
    try:
        return services().stores.last_reads.missing()
    except RedisError as error:
        log.warning(_UNKNOWN, type(error).__name__)
        return 0


def last_reads(connection_ids: Sequence[str]) -> dict[str, LastRead]:
    """The last reads of these connections that failed."""
    try:
        found = services().stores.last_reads.load(connection_ids)
    except RedisError as error:
        log.warning(_UNKNOWN, type(error).__name__)
        return {}
    return {each: read for each, read in found.items() if not read.ok}


def of_users() -> ColumnElement[bool]:
    """The condition that a user cannot be booked now."""
    return attention.cannot_be_booked(failing())


def advice(read: LastRead, *, delegated: bool) -> str:
    """What to do about a failed read; ``delegated``: of an account that an organization's grant reads."""
    if read.reason not in list(Reason):
        return _PROVIDER
    return (_ADVICE | BY_GRANT if delegated else _ADVICE).get(Reason(read.reason), _PROVIDER)
