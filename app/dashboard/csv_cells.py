"""Cells of CSV files that people open in a spreadsheet."""

from __future__ import annotations

# Spreadsheets take a cell that begins with one of these for a formula.
# https://owasp.org/www-community/attacks/CSV_Injection
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(text: str) -> str:
    """The text; an apostrophe before it keeps a spreadsheet from calculating it."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
