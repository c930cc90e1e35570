"""Every page of an answer of Google, never some of them.

https://developers.google.com/workspace/calendar/api/guides/pagination
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from providers.errors import ProviderError
from providers.google.errors import PROVIDER
from providers.http.send import Json, unreadable

# One page, by the query that asks for it.
Fetch = Callable[[Mapping[str, str]], Json]


def every_page(fetch: Fetch, query: Mapping[str, str], operation: str) -> Iterator[Json]:
    """The pages of a list; one may be short or empty and still have a next one.

    :raise ProviderError: when they do not end
    """
    asked = dict(query)
    seen: set[str] = set()
    while True:
        page = fetch(asked)
        token = page.get("nextPageToken")
        # No list is not an empty list, and a token that is none is not the end.
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
        asked["pageToken"] = token
