"""HTTP errors: a status, one readable sentence, and further fields of the body."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from workers.fanout.admission import NoWorker, Overloaded


class Code(StrEnum):
    """Values of the field ``code``, which distinguishes errors of one status. A value is never renamed."""

    OUTCOME_UNKNOWN = "outcomeUnknown"


class ApiError(Exception):
    """A response other than success. ``extra_fields`` are added to ``data`` and ``error`` in the body.

    ``section`` is the anchor on the documentation page of errors; it defaults to the status.
    """

    status = 500

    def __init__(
        self,
        error: str,
        *,
        status: int | None = None,
        extra_fields: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        section: str | None = None,
        code: Code | None = None,
    ) -> None:
        super().__init__(error)
        self.error = error
        self.status = status or self.status
        self.extra_fields = dict(extra_fields or {})
        self.headers = dict(headers or {})
        self.section = section or str(self.status)
        self.code = code

    def body(self) -> dict[str, Any]:
        """The body of the response."""
        code = {} if self.code is None else {"code": self.code}
        return {"data": None, "error": self.error, **code, **self.extra_fields}


class Invalid(ApiError):
    """The request cannot be understood; the message names the field."""

    status = 400


class Unauthenticated(ApiError):
    """The request has no API key, or one that is not valid."""

    status = 401

    def __init__(self, error: str) -> None:
        super().__init__(error, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(ApiError):
    """The API key does not allow this."""

    status = 403


class NotFound(ApiError):
    """The resource does not exist, or the API key does not reach it."""

    status = 404


class Conflict(ApiError):
    """The identifier is taken, or a limit on the number of resources is reached."""

    status = 409


class Busy(ApiError):
    """The queue for workers is full, or no worker is running: nothing was read or written."""

    status = 503

    def __init__(self, overloaded: Overloaded) -> None:
        seconds = str(overloaded.retry_after)
        sentence = f"Too much is waiting for Google and Microsoft just now; try again in {seconds} s"
        if isinstance(overloaded, NoWorker):
            sentence = f"Nobody is there to ask Google and Microsoft just now; try again in {seconds} s"
        super().__init__(sentence, headers={"Retry-After": seconds})


class OutOfService(ApiError):
    """Our own database, Redis or broker is down."""

    status = 503

    def __init__(self, extra_fields: Mapping[str, Any] | None = None) -> None:
        sentence = "The service is not available for a moment; try again"
        super().__init__(sentence, extra_fields=extra_fields, headers={"Retry-After": "1"})
