"""All pages of a list from Graph, or an error."""

from __future__ import annotations

from collections.abc import Sequence

from providers.errors import ProviderError
from providers.http.send import Json
from providers.microsoft.batch import Batches, Part
from providers.microsoft.errors import PROVIDER

# All pages of one part, or the error that prevented reading them.
Pages = list[Json] | ProviderError


def every_page(batches: Batches, parts: Sequence[Part]) -> dict[str, Pages]:
    """The pages of each part by its id; links to next pages become parts of further batches.

    https://learn.microsoft.com/en-us/graph/paging
    """
    found: dict[str, list[Json]] = {part.id: [] for part in parts}
    failed: dict[str, ProviderError] = {}
    prefer = {part.id: part.prefer for part in parts}
    seen = {part.path for part in parts}
    while parts:
        following = []
        for part_id, answer in batches.fetch(parts).items():
            try:
                path = _next(batches, answer, seen)
            except ProviderError as error:
                failed[part_id] = error
            else:
                found[part_id] += [answer] if isinstance(answer, dict) else []
                following += [Part(part_id, path, prefer[part_id])] if path else []
        parts = following
    return found | failed


def relative(link: str, base: str, operation: str) -> str:
    """The path of a nextLink, which is absolute.

    :raise ProviderError: when it names another host: the token must not be sent there
    """
    path = link.removeprefix(base)
    if not link.startswith(base) or not path.startswith("/"):
        raise ProviderError(f"{PROVIDER} sent a page link that leads elsewhere", operation=operation)
    return path


def _next(batches: Batches, answer: Json | ProviderError, seen: set[str]) -> str | None:
    """The path of the next page, if there is one."""
    if isinstance(answer, ProviderError):
        raise answer
    link = answer.get("@odata.nextLink")
    if link is None:
        return None
    path = relative(str(link), batches.base, batches.operation)
    if path in seen:
        raise ProviderError(f"The pages of {PROVIDER} do not end", operation=batches.operation)
    seen.add(path)
    return path
