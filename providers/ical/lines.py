"""Content lines of iCalendar: unfolding, parameters and text values.

https://www.rfc-editor.org/rfc/rfc5545#section-3.1
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_PARAMETER = re.compile(r';\s*([A-Za-z0-9-]+)=((?:"[^"]*"|[^";:])*)')
# Up to the first colon outside of quotes. Possessive, so that a line without one is read once, too.
_PARAMETERS = re.compile(r'(;(?:[^":]++|"[^"]*+")*+):')
# RFC 6868: a circumflex escapes what a parameter cannot contain.
_CARET = re.compile(r"\^(['n^])")
_CARETS = {"'": '"', "n": "\n", "^": "^"}


class UnreadableLine(ValueError):
    """A content line, or a value, that cannot be parsed."""


def unfold(content: bytes) -> str:
    r"""The text with one content line in each line, and ``\n`` between them.

    Lines are joined before the text is decoded: a fold may divide a character.
    """
    ends = b"\r\n" if b"\n" in content else b"\r"
    content = content.replace(ends, b"\n")
    content = content.replace(b"\n ", b"").replace(b"\n\t", b"")
    return content.decode("utf-8-sig", "replace")


def divide(rest: str) -> tuple[str, str]:
    """Parameters and value of a content line; ``rest`` is what follows the name.

    A colon inside quotes belongs to a parameter.

    :raise Unreadable: when there is no value
    """
    if rest.startswith(":"):
        return "", rest[1:].strip()
    found = _PARAMETERS.match(rest)
    if found is None:
        raise UnreadableLine
    return found[1], rest[found.end() :].strip()


def parameters(text: str) -> dict[str, str]:
    """The parameters of a content line by name in capitals, without quotes; the first of each name counts."""
    found: dict[str, str] = {}
    for name, value in _PARAMETER.findall(text):
        plain = value.replace('"', "").strip()
        found.setdefault(name.upper(), _CARET.sub(lambda each: _CARETS[each[1]], plain))
    return found


def plain(value: str) -> str:
    """A text value without its escapes; https://www.rfc-editor.org/rfc/rfc5545#section-3.3.11."""
    if "\\" not in value:
        return value
    return _ESCAPE.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], value)
