"""Failures of a job whose cause is in Almanac, not at the provider."""

from __future__ import annotations

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from providers.base import Failed
from providers.errors import Problem, Reason

BROKEN = Failed(Reason.PROVIDER_ERROR, "Something went wrong on our side while asking this account")
DOWN = Failed(
    Reason.PROVIDER_ERROR,
    "The service was not available for a moment while asking this account",
    problem=Problem.OUT_OF_SERVICE,
)
# The failure of a job without a reply at the deadline of its request.
TIMED_OUT = Failed(Reason.PROVIDER_ERROR, "The provider did not answer in time")


def failure_from(error: Exception) -> Failed:
    """The failure for an exception: an outage of the database or Redis, or an unexpected error."""
    return DOWN if isinstance(error, SQLAlchemyError | RedisError) else BROKEN


def is_internal(failed: Failed | None) -> bool:
    """Whether the cause is in Almanac, so that it says nothing about the account."""
    return failed is not None and (failed == BROKEN or failed.problem is Problem.OUT_OF_SERVICE)
