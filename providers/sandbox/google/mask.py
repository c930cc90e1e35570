"""Partial answers: the ``fields`` parameter, and ``prettyPrint``.

https://developers.google.com/workspace/calendar/api/guides/performance#partial-response
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from providers.sandbox.exchange import Answer, Request
from providers.sandbox.google.errors import refusal

# The selected fields: each name with the mask of its own fields; an empty mask selects all.
Mask = dict[str, "Mask"]
WORDS = re.compile(r"[^,/()]+|[,/()]")


def masked(request: Request, answer: Answer) -> Answer:
    """The answer reduced to the requested fields."""
    query = request.query
    if not query:
        return answer
    if request.one("prettyPrint") == "false":
        answer.indent = False
    if (text := request.one("fields")) and answer.status == 200 and isinstance(answer.document, dict):
        answer.document = kept(answer.document, mask(text))
    return answer


def mask(text: str) -> Mask:
    """Parse ``items(id,start/dateTime),nextPageToken``."""
    words = iter([*WORDS.findall(text), ")"])
    try:
        return _group(words)
    except (StopIteration, KeyError) as error:
        raise refusal("invalidParameter", f"Invalid field selection {text}", parameter="fields") from error


def _group(words: Iterator[str]) -> Mask:
    whole: Mask = {}
    here = whole
    for word in words:
        if word == "/":
            continue
        if word == "(":
            here.update(_group(words))
        elif word in ",)":
            here = whole
            if word == ")":
                return whole
        else:
            here = here.setdefault(word, {})
    raise StopIteration


def kept(document: Any, wanted: Mask) -> Any:
    """The part of a document that a mask selects."""
    if not wanted:
        return document
    if isinstance(document, list):
        return [kept(item, wanted) for item in document]
    if not isinstance(document, dict):
        return document
    if "*" in wanted:
        return {name: kept(value, wanted["*"]) for name, value in document.items()}
    return {name: kept(value, wanted[name]) for name, value in document.items() if name in wanted}
