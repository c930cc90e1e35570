"""How much one organization may use at once."""

from __future__ import annotations

from app.http.error_codes import Code
from app.http.errors import ApiError


def quota_exceeded(quota: str, retry_after: int = 1) -> ApiError:
    """The error of a request that would exceed a quota of its organization."""
    sentence = f"The organization of the API key uses as much as it may at once: {quota}"
    return ApiError(sentence, Code.QUOTA_EXCEEDED, retry_after=retry_after, extra_fields={"quota": quota})
