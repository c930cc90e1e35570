"""Whose call it is, told to Graph: its support finds a call by this header, and so do the logs of a tenant.

https://learn.microsoft.com/en-us/graph/best-practices-concept
"""

from __future__ import annotations

from providers.http.send import Bearer

HEADER = "client-request-id"


def correlation(bearer: Bearer) -> dict[str, str]:
    """The header, when the call is made for a request that has an id."""
    return {} if bearer.request_id is None else {HEADER: bearer.request_id}
