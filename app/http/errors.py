"""HTTP errors: a status, a code, one readable sentence, and further fields of the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.schemas.error_codes import Code
from providers import registry
from workers.fanout.admission import NoWorker, Overloaded, TenantQueueFull


class ApiError(Exception):
    """A response other than success.

    The status is that of the code, unless ``status`` is given. ``param`` is the path of the invalid field.
    ``retry_after`` is in seconds; it is sent in the header ``Retry-After`` and in the body. ``extra_fields``
    are further fields of the body.
    """

    def __init__(
        self,
        error: str,
        code: Code,
        *,
        status: int | None = None,
        param: str | None = None,
        retry_after: int | None = None,
        extra_fields: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.error = error
        self.code = code
        self.status = status or code.status
        self.param = param
        self.retry_after = retry_after
        self.extra_fields = dict(extra_fields or {})
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)

    def body(self) -> dict[str, Any]:
        """The body of the response."""
        optional = {"param": self.param, "retryAfter": self.retry_after}
        given = {name: value for name, value in optional.items() if value is not None}
        return {"data": None, "error": self.error, "code": self.code, **given, **self.extra_fields}

    def reworded(self, error: str, code: Code | None = None, **extra_fields: Any) -> ApiError:
        """This error with another sentence, perhaps another code, and with these fields added."""
        return ApiError(
            error,
            code or self.code,
            status=self.status,
            param=self.param,
            retry_after=self.retry_after,
            extra_fields={**self.extra_fields, **extra_fields},
            headers=self.headers,
        )


class Invalid(ApiError):
    """400: a parameter or a field of the body is invalid. The message names it, and ``param`` is its path."""

    def __init__(self, error: str, *, param: str) -> None:
        super().__init__(error, Code.VALIDATION_FAILED, param=param)


class Unauthenticated(ApiError):
    """401: the request has no API key, or one that is not valid."""

    def __init__(self, error: str, code: Code) -> None:
        super().__init__(error, code, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(ApiError):
    """403: the API key does not allow this."""


class NotFound(ApiError):
    """404: the resource does not exist, or the API key does not reach it."""


class Conflict(ApiError):
    """409: the identifier is taken, or a limit on the number of resources is reached."""


class PreconditionFailed(ApiError):
    """412: the resource has changed since the client read it."""


PROVIDERS = registry.titles("and")


class WorkersOverloaded(ApiError):
    """503: the queue for workers is full, or no worker is running. Nothing was read or written."""

    def __init__(self, overloaded: Overloaded) -> None:
        seconds = overloaded.retry_after
        code, sentence = Code.OVERLOADED, f"Too much is waiting for {PROVIDERS} just now"
        if isinstance(overloaded, NoWorker):
            code, sentence = Code.NO_WORKER, f"No worker is running, so {PROVIDERS} cannot be asked"
        super().__init__(f"{sentence}; try again in {seconds} s", code, retry_after=seconds)


class ServiceUnavailable(ApiError):
    """503: our own database, Redis or broker is down."""

    def __init__(self) -> None:
        super().__init__(
            "The service is not available for a moment; try again", Code.SERVICE_UNAVAILABLE, retry_after=1
        )


_QUOTA_SENTENCES = {
    "waitingReads": f"Too many requests of this organization are waiting for {PROVIDERS}",
    "waitingWrites": f"Too many writes of this organization are waiting for {PROVIDERS}",
    "heldUsers": "This organization holds time of as many users as it may",
    "bodyBytes": "Too many request bodies of this organization are arriving at once",
    "requestsPerMinute": "The API keys of this organization have used up its requests of this minute",
}


def overloaded(error: Overloaded) -> ApiError:
    """The refusal of a request that may not wait for workers."""
    return quota_exceeded(error.quota) if isinstance(error, TenantQueueFull) else WorkersOverloaded(error)


def quota_exceeded(quota: str, retry_after: int = 1) -> ApiError:
    """429: the tenant uses its whole share of this ``Quota``. ``retry_after`` is in seconds."""
    return ApiError(
        f"{_QUOTA_SENTENCES[quota]}; try again in {retry_after} s",
        Code.QUOTA_EXCEEDED,
        retry_after=retry_after,
        extra_fields={"quota": str(quota)},
    )
