"""The paging of lists in requests and responses."""

from __future__ import annotations

from marshmallow import Schema

from app.schemas.fields import IntegerText, Text

# The highest `limit` of a list.
MAX_AT_ONCE = 1000
NEXT_CURSOR = {"description": "`cursor` of the next page. Only with `limit` or `cursor`; null at the end."}


class PageQuery(Schema):
    """Optional paging."""

    limit = IntegerText(
        least=1, most=MAX_AT_ONCE, metadata={"description": f"The longest page, 1 to {MAX_AT_ONCE}."}
    )
    cursor = Text(longest=512, metadata={"description": "`nextCursor` of the page before."})


class LongCursorQuery(PageQuery):
    """Paging of a list whose cursors contain the long ids of providers."""

    cursor = Text(longest=16_384, metadata={"description": "`nextCursor` of the page before."})
