"""Why a provider could not be read: the closed set of reasons, one exception for each thing to do next."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The words of the API for a failure; clients switch on them, so the set is closed."""

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
    """What the reasons, made for calendars, do not say: what is wrong with one event, or with ourselves."""

    EVENT_NOT_FOUND = "eventNotFound"
    EVENT_EXISTS = "eventExists"
    EVENT_REFUSED = "eventRefused"
    EVENT_UNREADABLE = "eventUnreadable"
    OUTCOME_UNKNOWN = "outcomeUnknown"
    OUT_OF_SERVICE = "outOfService"


class ProviderError(Exception):
    """A provider did not do what was asked.

    ``message`` is fit for an end user: it names no token, URL, address or internal.
    ``operation`` is the provider call in the API's words (``calendar.freebusy.query``), when known.
    ``repeated``: the call had been sent before without an answer, and may have been done then.
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
    """The provider is down, slow or unreadable just now; the same call may work in a moment.

    ``retry_after`` is how many seconds it asks us to wait, None when it does not say.
    """

    retryable = True

    def __init__(
        self, message: str, *, operation: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, operation=operation)
        self.retry_after = retry_after


class NoAnswer(Unavailable):
    """The call failed at the level of the connection: no HTTP answer was received."""

    def __init__(self, message: str, *, operation: str | None = None, unsent: bool = False) -> None:
        super().__init__(message, operation=operation)
        self.unsent = unsent


class TimedOut(NoAnswer):
    """No answer came within ``waited`` seconds."""

    def __init__(
        self, message: str, *, operation: str | None = None, waited: float = 0.0, unsent: bool = False
    ) -> None:
        super().__init__(message, operation=operation, unsent=unsent)
        self.waited = waited


class LocalResourceExhausted(Unavailable):
    """This machine lacks what a call needs, and the provider has no part in that."""

    problem = Problem.OUT_OF_SERVICE


class OutcomeUnknown(Unavailable):
    """A create was sent without a usable answer, and the event was not seen afterwards: it may exist."""

    problem = Problem.OUTCOME_UNKNOWN


class RateLimited(Unavailable):
    """The provider throttles us."""

    reason = Reason.RATE_LIMITED


class ProjectRateLimited(RateLimited):
    """The provider throttles every account of one Google Cloud project.

    ``project`` is its number, None when the provider does not say. A token that a caller handed in may be
    that of another project than ours.
    """

    project: str | None = None


class AccessDenied(ProviderError):
    """The account may not see this calendar or do this; only its owner can mend it."""

    reason = Reason.ACCESS_DENIED


class InsufficientScopes(AccessDenied):
    """The grant is alive but too narrow for this operation."""

    reason = Reason.INSUFFICIENT_SCOPES


class AuthorizationInvalid(ProviderError):
    """The provider rejected the token even after a refresh, or there is nothing to refresh it with."""

    reason = Reason.AUTHORIZATION_INVALID


class GrantGone(AuthorizationInvalid):
    """The provider says that the grant itself is gone: the user has to connect the account again."""


class NotFound(ProviderError):
    """The calendar or event does not exist, or the account cannot see that it does."""

    reason = Reason.NOT_FOUND


class EventNotFound(NotFound):
    """The calendar is there, the event is not."""

    problem = Problem.EVENT_NOT_FOUND


class EventExists(ProviderError):
    """The id, or the metaId, belongs to another event."""

    problem = Problem.EVENT_EXISTS


class EventRefused(ProviderError):
    """The provider finds fault with what was to be written; the caller has to mend it."""

    problem = Problem.EVENT_REFUSED


class EventUnreadable(ProviderError):
    """The provider did what was asked, and its answer cannot be read as an event."""

    problem = Problem.EVENT_UNREADABLE


class InvalidCalendarId(ProviderError):
    """The provider cannot parse the calendar id."""

    reason = Reason.INVALID_CALENDAR_ID


class MailboxUnavailable(ProviderError):
    """The account has no mailbox or calendar service behind it."""

    reason = Reason.MAILBOX_UNAVAILABLE


class TooManyCalendars(ProviderError):
    """More calendars were asked for than the provider reads at once."""

    reason = Reason.TOO_MANY_CALENDARS


class ProviderNotConfigured(ProviderError):
    """No client id and secret for this provider: the operator has to set them."""

    reason = Reason.PROVIDER_NOT_CONFIGURED


class Misconfigured(ProviderError):
    """The provider refuses our registration itself; connections are as good as before."""
