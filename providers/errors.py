"""Provider failures: a closed set of reasons, and one exception for each way to handle one."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reason words of the API. Clients switch on them, so the set is closed."""

    ACCESS_DENIED = "accessDenied"
    AUTHORIZATION_INVALID = "authorizationInvalid"
    INSUFFICIENT_SCOPES = "insufficientScopes"
    INVALID_CALENDAR_ID = "invalidCalendarId"
    MAILBOX_UNAVAILABLE = "mailboxUnavailable"
    NOT_FOUND = "notFound"
    PROVIDER_ERROR = "providerError"
    PROVIDER_NOT_CONFIGURED = "providerNotConfigured"
    RATE_LIMITED = "rateLimited"
    TOO_MANY_CALENDARS = "tooManyCalendars"


class Problem(StrEnum):
    """Detail that the reasons do not express: a problem with one event, or inside Almanac."""

    EVENT_NOT_FOUND = "eventNotFound"
    EVENT_EXISTS = "eventExists"
    EVENT_REFUSED = "eventRefused"
    EVENT_UNREADABLE = "eventUnreadable"
    EVENT_CHANGED = "eventChanged"
    CURSOR_EXPIRED = "cursorExpired"
    OUTCOME_UNKNOWN = "outcomeUnknown"
    OUT_OF_SERVICE = "outOfService"


class ProviderError(Exception):
    """A provider did not execute a call.

    ``message`` is fit for an end user: it contains no token, URL, address or internal name.
    ``operation`` is the API's name of the provider call (``calendar.freebusy.query``), when known.
    ``repeated``: an earlier attempt got no answer, so the provider may have executed it.
    ``unsent``: no connection was opened for the call, so the provider has not received it.
    """

    reason = Reason.PROVIDER_ERROR
    problem: Problem | None = None
    retryable = False
    repeated = False
    unsent = False

    def __init__(self, message: str, *, operation: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation


class Unavailable(ProviderError):
    """The provider is down, slow or sends unreadable answers; the same call may succeed later.

    ``retry_after``: seconds that the provider asks to wait, None when it does not say.
    """

    retryable = True

    def __init__(
        self, message: str, *, operation: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, operation=operation)
        self.retry_after = retry_after


class NoAnswer(Unavailable):
    """The connection failed: no HTTP answer was received."""

    def __init__(self, message: str, *, operation: str | None = None, unsent: bool = False) -> None:
        super().__init__(message, operation=operation)
        self.unsent = unsent


class UnknownHost(NoAnswer):
    """The resolver knows no host of this name."""


class TimedOut(NoAnswer):
    """No answer came within ``waited`` seconds."""

    def __init__(
        self, message: str, *, operation: str | None = None, waited: float = 0.0, unsent: bool = False
    ) -> None:
        super().__init__(message, operation=operation, unsent=unsent)
        self.waited = waited


class LocalResourceExhausted(Unavailable):
    """This machine has run out of a resource that a call needs (files, memory); not the provider's fault."""

    problem = Problem.OUT_OF_SERVICE


class Unreadable(Unavailable):
    """The provider answered, and the answer cannot be parsed."""


class AnswerTooLarge(Unreadable):
    """The answer is longer than this service reads; the same call would get it again."""

    retryable = False


class AddressNotPublic(ProviderError):
    """The address that a person has entered, or a redirect, leads to a private network. Nothing was sent."""


class OutcomeUnknown(Unavailable):
    """A write got no usable answer, so the provider may have executed it.

    After a create, the event was not found; it may still exist.
    """

    problem = Problem.OUTCOME_UNKNOWN


class RateLimited(Unavailable):
    """The provider limits the rate of our calls."""

    reason = Reason.RATE_LIMITED


class ProjectRateLimited(RateLimited):
    """The provider limits the rate of all accounts of one Google Cloud project.

    ``project`` is the project number, None when the provider does not say. A token that a client passed in
    may belong to another project than ours.
    """

    project: str | None = None


class AccessDenied(ProviderError):
    """The account may not see this calendar or do this; only the calendar's owner can change that."""

    reason = Reason.ACCESS_DENIED


class InsufficientScopes(AccessDenied):
    """The grant is valid but its scopes do not allow this operation."""

    reason = Reason.INSUFFICIENT_SCOPES


class AuthorizationInvalid(ProviderError):
    """The provider rejected the token even after a refresh, or there is no refresh token."""

    reason = Reason.AUTHORIZATION_INVALID


class TokenRejected(AuthorizationInvalid):
    """The provider rejects an access token that it has just issued, or a password, which nothing can renew.

    One such answer does not show that the grant has ended: providers give it in incidents too.
    """


class GrantGone(AuthorizationInvalid):
    """The grant itself has ended: the user has to connect the account again."""


class GrantRefused(AuthorizationInvalid):
    """The provider refuses an organization grant itself; the administrator has to correct it there."""


class ScopesRefused(GrantRefused):
    """The administrator has not authorized the requested scopes, or no scopes any more."""


class ClientRefused(GrantRefused):
    """The provider refuses the client id or secret with which an organization grant is used."""


class ClockRefused(GrantRefused):
    """The clock of this host is wrong, so that the provider refuses what it signs; the grant is valid."""


class FieldRefused(ProviderError):
    """There is no calendar behind the value of a field of a form; ``field`` is its name.

    ``message`` follows the name of the field, as in "url leads to no calendar".
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class SubjectRefused(AuthorizationInvalid):
    """The organization grant is valid, but not for this account: it does not exist or is suspended."""


class NotFound(ProviderError):
    """The calendar or event does not exist, or is invisible to the account."""

    reason = Reason.NOT_FOUND


class EventNotFound(NotFound):
    """The calendar exists, the event does not."""

    problem = Problem.EVENT_NOT_FOUND


class EventExists(ProviderError):
    """The id, or the metaId, belongs to another event."""

    problem = Problem.EVENT_EXISTS


class EventRefused(ProviderError):
    """The provider rejects the content of a write; the client has to correct it.

    ``param`` is the field of the API that has to be corrected, when known.
    """

    problem = Problem.EVENT_REFUSED

    def __init__(self, message: str, *, operation: str | None = None, param: str | None = None) -> None:
        super().__init__(message, operation=operation)
        self.param = param


class ZoneRefused(EventRefused):
    """The provider does not know the zone of an event as it is spelled."""


class EventUnreadable(ProviderError):
    """The provider executed the write, and its answer cannot be parsed as an event."""

    problem = Problem.EVENT_UNREADABLE


class EventChanged(ProviderError):
    """The event no longer has the etag that the write requires: another client has changed it."""

    problem = Problem.EVENT_CHANGED


class SyncTokenExpired(ProviderError):
    """The provider no longer knows what has changed since a sync token: the calendar has to be read again."""

    problem = Problem.CURSOR_EXPIRED


class InvalidCalendarId(ProviderError):
    """The provider cannot parse the calendar id."""

    reason = Reason.INVALID_CALENDAR_ID


class MailboxUnavailable(ProviderError):
    """The account has no mailbox or calendar service."""

    reason = Reason.MAILBOX_UNAVAILABLE


class TooManyCalendars(ProviderError):
    """More calendars were requested than the provider reads at once."""

    reason = Reason.TOO_MANY_CALENDARS


class ProviderNotConfigured(ProviderError):
    """No client id and secret are set for this provider: the operator has to set them."""

    reason = Reason.PROVIDER_NOT_CONFIGURED


class Misconfigured(ProviderError):
    """The provider rejects our OAuth client; existing connections remain valid."""


def connection_ended(title: str) -> str:
    """The message for a revoked grant; ``title`` is that of the provider.

    A worker learns it from the provider. The web tier repeats it for later requests, without a call.
    """
    return f"{title} says that this connection has ended"


# The same for the grant of an organization, by which its members are read.
GRANT_ENDED = "The organization's grant has ended; its administrator has to enter it again"
