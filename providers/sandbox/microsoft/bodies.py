"""Event bodies: stored as written, returned as HTML or text; and the block of a Teams meeting.

https://learn.microsoft.com/graph/api/resources/itembody
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape, unescape
from html.parser import HTMLParser
from typing import Any

Body = Mapping[str, Any]

EMPTY: Body = {"contentType": "html", "content": ""}
HEAD = '<meta http-equiv="Content-Type" content="text/html; charset=utf-8">'
BLANK = re.compile(r"[ \t\r\n\f]+")
# HTML collapses several spaces into one.
SPACES = re.compile(r"(?<= ) |^ |(?<=\n) ")
BLOCKS = frozenset(("div", "p", "tr", "li", "ul", "ol", "table", "h1", "h2", "h3", "blockquote"))
UNSEEN = frozenset(("head", "style", "script", "title"))
RULE, PART_RULE = "_" * 80, "_" * 32


def as_json(body: Body, *, as_text: bool) -> dict[str, str]:
    """A body as JSON."""
    if as_text:
        return {"contentType": "text", "content": plain(body).replace("\n", "\r\n")}
    return {"contentType": "html", "content": page(markup(body))}


def is_text(body: Body) -> bool:
    return str(body.get("contentType") or "text").lower() == "text"


def plain(body: Body) -> str:
    """A body as text, with a line break at the end."""
    content = str(body.get("content") or "")
    if not is_text(body):
        return text_of(content)
    lines = content.replace("\r\n", "\n")
    return lines if not lines or lines.endswith("\n") else lines + "\n"


def markup(body: Body) -> str:
    """A body as HTML."""
    content = str(body.get("content") or "")
    if not is_text(body):
        return content
    spaced = SPACES.sub("&nbsp;", escape(content.replace("\r\n", "\n"), quote=False))
    return spaced.replace("\n", "<br>\r\n")


def page(content: str) -> str:
    """A whole document."""
    if not content or "<html" in content:
        return content
    return f"<html>\r\n<head>\r\n{HEAD}\r\n</head>\r\n<body>\r\n{content}\r\n</body>\r\n</html>\r\n"


def with_meeting(body: Body, url: str) -> dict[str, str]:
    """A body with the invitation to its online meeting at the end."""
    link = escape(url)
    block = f"""<div><br>\r
<br>\r
<div class="me-email-text" style="max-width:600px; color:#242424">\r
<div style="margin-bottom:24px; overflow:hidden; white-space:nowrap">{RULE}</div>\r
<div><span>Microsoft Teams</span> <a href="https://aka.ms/JoinTeamsMeeting?omkt=en-US">Need help?</a></div>\r
<div><a href="{link}" class="me-email-link">Join</a></div>\r
<div><span>Meeting ID:</span> 212 345 678 901</div>\r
<div style="overflow:hidden">{PART_RULE}</div>\r
<div><a href="{link}">System reference</a></div>\r
<div style="margin-top:24px; overflow:hidden; white-space:nowrap">{RULE}</div>\r
</div>\r
</div>"""
    before, end, after = page(markup(body) or " ").partition("\r\n</body>")
    return {"contentType": "html", "content": f"{before}\r\n{block}{end}{after}"}


def invites(body: Body, url: str) -> bool:
    """Whether a body still has the invitation: a long line of underscores, and the link below it."""
    _above, rule, below = markup(body).partition(RULE)
    return bool(rule) and url in unescape(below)


def text_of(html: str) -> str:
    """The visible text of an HTML document."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader.text


class Reader(HTMLParser):
    """Extracts text from HTML, with the URL of a link in angle brackets after its text."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.unseen = 0
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self.unseen += 1
        elif tag == "br":
            self.text += "\n"
        elif tag in BLOCKS:
            self.new_line()
        elif tag == "a":
            self.links.append(dict(attrs).get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in UNSEEN:
            self.unseen -= 1
        elif tag in BLOCKS or tag == "body":
            self.new_line()
        elif tag == "a" and self.links and (link := self.links.pop()):
            self.text += f"<{link}>"

    def handle_data(self, data: str) -> None:
        if self.unseen:
            return
        shown = BLANK.sub(" ", data)
        self.text += shown.lstrip(" ") if self.text[-1:] in ("", "\n", " ") else shown

    def new_line(self) -> None:
        self.text = self.text.rstrip(" ")
        if self.text and not self.text.endswith("\n"):
            self.text += "\n"
