"""The documents: their order, their folder, and their rendering as HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

GROUPS = {
    "Using it": [
        "quickstart",
        "api",
        "errors",
        "scheduling",
        "time",
        "explain",
        "groups",
        "holds",
        "webhooks",
        "organization-grants",
    ],
    "From programs": ["clients", "mcp", "migrating"],
    "Running it": ["operations", "settings", "dashboard", "push", "observability", "security", "reliability"],
    "How it is made": ["architecture", "glossary", "decisions", "benchmarks", "soak"],
}
NAMES = tuple(chain.from_iterable(GROUPS.values()))
# Markers between which programs insert generated text.
_COMMENT = re.compile(r"^<!--.*?-->$", re.MULTILINE)
# Files that documents show or link to.
FILES = frozenset({".svg", ".png", ".json"})

# In an installed package the documents are beside this file, in a checkout beside the package.
_HERE = Path(__file__).parent
FOLDER = _HERE / "documents" if (_HERE / "documents").is_dir() else _HERE.parents[1] / "docs"


@dataclass(frozen=True, slots=True)
class Document:
    """One document; ``html`` is its content, without the page around it."""

    name: str
    title: str
    html: Markup


@cache
def document(name: str) -> Document:
    """The document of one of ``NAMES``."""
    tokens = _MARKDOWN.parse(_COMMENT.sub("", (FOLDER / f"{name}.md").read_text()))
    title = next(inner.content for token, inner in pairwise(tokens) if token.tag == "h1")
    _name_sections(tokens)
    # Safe: the documents are part of the package, and the renderer escapes raw HTML in them.
    return Document(name, title, Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})))  # noqa: S704


def section(heading: str) -> str:
    """The anchor of a heading, by GitHub's rule, so that links work on GitHub and on this site."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _name_sections(tokens: list[Token]) -> None:
    for token, inner in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", section("".join(child.content for child in inner.children or ())))


class _Html(RendererHTML):
    """Rewrites links between documents, and lets wide tables and code blocks scroll on their own."""

    def link_open(self, tokens: list[Token], index: int, options: Any, env: Any) -> str:
        address = str(tokens[index].attrGet("href"))
        path, anchor = urlsplit(address).path, urlsplit(address).fragment
        if path.startswith("../"):
            # The target is only in a checkout: show the text without a link.
            del tokens[index].attrs["href"]
        elif not urlsplit(address).scheme and path.endswith(".md"):
            tokens[index].attrSet("href", path.removesuffix(".md") + (f"#{anchor}" if anchor else ""))
        return self.renderToken(tokens, index, options, env)

    def table_open(self, tokens: list[Token], index: int, options: Any, env: Any) -> str:
        return '<div class="table" tabindex="0">' + self.renderToken(tokens, index, options, env)

    def table_close(self, tokens: list[Token], index: int, options: Any, env: Any) -> str:
        return self.renderToken(tokens, index, options, env) + "</div>"

    def fence(self, tokens: Any, index: int, options: Any, env: Any) -> str:
        return super().fence(tokens, index, options, env).replace("<pre>", '<pre tabindex="0">', 1)


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Html).enable("table")
