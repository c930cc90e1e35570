"""Writes the table of error codes into `docs/reference/errors.md`: `python -m app.docs_site.error_codes`.

The text around the table is written by hand, in that file.
"""

from __future__ import annotations

from pathlib import Path

from app.docs_site.tables import with_table
from app.schemas.error_codes import Code

DOCUMENT = Path(__file__).parents[2] / "docs/reference/errors.md"


def document(text: str) -> str:
    """The text of `docs/reference/errors.md` with the table below the heading of the codes replaced.

    :raise ValueError: if the heading has no table
    """
    return with_table(text, "Codes", _table())


def _table() -> str:
    rows = "".join(f"| `{code}` | {code.status} | {code.meaning} | {code.action} |\n" for code in Code)
    return f"| code | status | meaning | what to do |\n|---|---|---|---|\n{rows}"


def main() -> None:
    """Write the file."""
    DOCUMENT.write_text(document(DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
