"""The refusal of a request whose tenant uses its whole share (``store.coordination.shares``)."""

from __future__ import annotations

from app.http.error_codes import Code
from app.http.errors import ApiError, WorkersOverloaded
from workers.fanout.admission import Overloaded, TenantQueueFull

_SENTENCES = {
    "waitingReads": "Too many requests of this organization are waiting for Google and Microsoft",
    "waitingWrites": "Too many writes of this organization are waiting for Google and Microsoft",
    "heldUsers": "This organization holds time of as many users as it may",
    "bodyBytes": "Too many request bodies of this organization are arriving at once",
}


def overloaded(error: Overloaded) -> ApiError:
    """The refusal of a request that may not wait for workers."""
    return quota_exceeded(error.quota) if isinstance(error, TenantQueueFull) else WorkersOverloaded(error)


def quota_exceeded(quota: str, retry_after: int = 1) -> ApiError:
    """429: the tenant uses its whole share of this ``Quota``. ``retry_after`` is in seconds."""
    return ApiError(
        f"{_SENTENCES[quota]}; try again in {retry_after} s",
        Code.QUOTA_EXCEEDED,
        retry_after=retry_after,
        extra_fields={"quota": str(quota)},
    )
