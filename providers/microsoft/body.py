"""The body of an event: the description, and below it the block with which Teams invites to its meeting.

The block reaches from one long line of underscores to the next, with the join link between. An event whose
body has no block stops being an online meeting, so a new description is put above the block:
https://learn.microsoft.com/en-us/graph/api/event-update#notes-for-updating-specific-properties
"""

from __future__ import annotations

import re
from html import escape, unescape
from itertools import zip_longest

# Shorter lines, of 32, divide the block itself.
RULE = "_" * 80
_RULE = re.compile(r"_{60,}")

# Hosts of links in the block; a match suffices, because the event's own link may have been rewritten.
_HOSTS = ("teams.microsoft.com", "teams.live.com", "aka.ms/JoinTeamsMeeting")

# Opening tags directly before the upper line, and closing tags directly after the lower.
_OPENED = re.compile(r"(?:<[A-Za-z][^>]*>\s*)+\Z")
_CLOSED = re.compile(r"(?:\s*</[^>]*>)*")
# How far before the upper line opening tags are searched, in characters.
_NEAR = 2000

_CONTENT = re.compile(r"<body[^>]*>(.*)</body>", re.IGNORECASE | re.DOTALL)
_SPACE = re.compile(r"^ | (?= )| $", re.MULTILINE)


def without_block(text: str, join_url: str | None) -> str:
    """The description in a text body, with the original spaces."""
    # Graph converts spaces that HTML would collapse into this.
    text = text.replace("\xa0", " ")
    span = _span(text, join_url)
    if span is None:
        return text
    parts = text[: span[0]].rstrip(), text[span[1] :].strip()
    return "\n".join(part for part in parts if part)


def above_block(description: str, html: str, join_url: str | None) -> str:
    """The body as HTML, with a new description above the block of ``html``, the existing body.

    Without a block in ``html``, one is built from the link.
    """
    block = _block(html, join_url)
    return f"<html><body>\r\n<div>{as_html(description)}</div>\r\n{block}\r\n</body></html>"


def as_html(text: str) -> str:
    """Plain text as HTML that preserves lines and spaces."""
    return _SPACE.sub("&nbsp;", escape(text, quote=False)).replace("\n", "<br>\r\n")


def _block(html: str, join_url: str | None) -> str:
    body = _CONTENT.search(html)
    content = body[1] if body else html
    span = _tagged_span(content, join_url)
    if span is None:
        return _made(join_url) if join_url else ""
    return content[span[0] : span[1]]


def without_html_block(html: str, join_url: str | None) -> str:
    """The body as HTML without the block."""
    span = _tagged_span(html, join_url)
    return html if span is None else html[: span[0]] + html[span[1] :]


def _tagged_span(content: str, join_url: str | None) -> tuple[int, int] | None:
    """The block with the tags around its lines."""
    span = _span(content, join_url)
    if span is None:
        return None
    start, end = span
    opened = _OPENED.search(content, max(0, start - _NEAR), start)
    closed = _CLOSED.match(content, end)
    return opened.start() if opened else start, closed.end() if closed else end


def _made(join_url: str) -> str:
    link = escape(join_url)
    return f'<div>{RULE}</div>\r\n<div><a href="{link}">{link}</a></div>\r\n<div>{RULE}</div>'


def _span(content: str, join_url: str | None) -> tuple[int, int] | None:
    """From the line above the link to the line below it, or to the end."""
    rules = list(_RULE.finditer(content))
    for rule, below in zip_longest(rules, rules[1:]):
        between = content[rule.end() : below.start() if below else None]
        if _invites(unescape(between), join_url):
            return rule.start(), below.end() if below else len(content)
    return None


def _invites(text: str, join_url: str | None) -> bool:
    return bool(join_url and join_url in text) or any(host in text for host in _HOSTS)
