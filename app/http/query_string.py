"""The query of a request, read once and without detours."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import flask
from werkzeug.datastructures import ImmutableMultiDict, MultiDict
from werkzeug.utils import cached_property


class Request(flask.Request):
    """Reads its query as werkzeug does, which takes three times as long."""

    @cached_property
    def args(self) -> MultiDict[str, str]:
        """The parameters of the query."""
        found: dict[str, list[str]] = {}
        for parameter in self.query_string.decode(errors="replace").split("&"):
            if parameter:
                name, _, value = parameter.partition("=")
                found.setdefault(_text(name), []).append(_text(value))
        return ImmutableMultiDict(found)


def _text(written: str) -> str:
    """A name or a value without its escapes; bytes that are no UTF-8 keep theirs."""
    spaced = written.replace("+", " ")
    if "%" not in spaced:
        return spaced
    return unquote_to_bytes(spaced).decode(errors="werkzeug.url_quote")
