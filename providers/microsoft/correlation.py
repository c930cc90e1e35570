"""A header with the request id, by which Graph's support and a tenant's logs can find a call.

https://learn.microsoft.com/en-us/graph/best-practices-concept
"""

from __future__ import annotations

from providers.http.send import Bearer

HEADER = "client-request-id"


def correlation_header(bearer: Bearer) -> dict[str, str]:
    """The header, when the call is made for a request with an id."""
    return {} if bearer.request_id is None else {HEADER: bearer.request_id}
