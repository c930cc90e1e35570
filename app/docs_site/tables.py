"""Replaces generated tables in documents. The text around a table is written by hand."""

from __future__ import annotations

import re


def with_table(text: str, heading: str, table: str) -> str:
    """The text with the table below a heading of the second level replaced.

    :raise ValueError: if the heading has no table
    """
    # Up to the first line of the table, but not into the next section.
    before = rf"(^## {re.escape(heading)}\n(?:(?!##|\|).*\n)*)"
    text, found = re.subn(rf"{before}(?:\|.*\n)+", lambda match: match[1] + table, text, flags=re.MULTILINE)
    if found != 1:
        raise ValueError(f"there must be one table below the heading {heading}")
    return text
