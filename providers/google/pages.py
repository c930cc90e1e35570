"""All pages of a list from Google, or an error.

https://developers.google.com/workspace/calendar/api/guides/pagination
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from providers.errors import ProviderError
from providers.google.errors import PROVIDER
from providers.http.send import Json, unreadable

# Fetches one page with a query.
Fetch = Callable[[Mapping[str, str]], Json]


def every_page(fetch: Fetch, query: Mapping[str, str], operation: str) -> Iterator[Json]:
    """The pages of a list; a short or empty page may be followed by others.

    :raise ProviderError: when the pages do not end
    """
    parameters = dict(query)
    seen: set[str] = set()
    while True:
        page = fetch(parameters)
        token = page.get("nextPageToken")
        # A missing list is not an empty one, and an invalid token is not the end.
        if not isinstance(page.get("items"), list) or not (
            token is None or (isinstance(token, str) and token)
        ):
            raise unreadable(PROVIDER, operation)
        yield page
        if token is None:
            return
        if token in seen:
            raise ProviderError(f"The pages of {PROVIDER} do not end", operation=operation)
        seen.add(token)
        parameters["pageToken"] = token
