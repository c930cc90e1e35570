"""HTML that others have written, reduced to what can be shown anywhere: structure, emphasis and links.

https://nh3.readthedocs.io: it parses as browsers do, and keeps only what is on a list.
"""

from __future__ import annotations

import re

import nh3

# Text, groups and tables: https://html.spec.whatwg.org/multipage/#toc-semantics. The text of other elements
# stays, unless it is code.
_KEPT = frozenset(
    [
        "a",
        "abbr",
        "b",
        "blockquote",
        "br",
        "caption",
        "code",
        "dd",
        "del",
        "div",
        "dl",
        "dt",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "ins",
        "kbd",
        "li",
        "ol",
        "p",
        "pre",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "u",
        "ul",
        "var",
    ]
)
_CLEANER = nh3.Cleaner(
    tags=set(_KEPT),
    clean_content_tags={
        "script",
        "style",
        "title",
        "template",
        "svg",
        "math",
        "iframe",
        "object",
        "noscript",
    },
    attributes={"a": {"href"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)
# Tags other than those of lines and paragraphs.
_RICH = re.compile(r"<(?!/?(?:br|div|p)\b)")
_TAG = re.compile(r"<[/A-Za-z]|&(?:[A-Za-z]+|#\d+);")


def if_any(text: str) -> str | None:
    """A text as sanitized HTML if it has any; None for plain text."""
    return sanitized(text) or None if _TAG.search(text) else None


def if_rich(html: str) -> str | None:
    """Sanitized HTML that says more than its text; None if it has only lines and paragraphs."""
    found = sanitized(html)
    return found if _RICH.search(found) else None


def sanitized(html: str) -> str:
    """The HTML with elements of the list only, without attributes but the addresses of links."""
    return _CLEANER.clean(html).strip()
