"""The page of errors: the generated table of codes, and a section for every status and reason."""

from __future__ import annotations

import re

import pytest

from app.docs_site.error_codes import DOCUMENT, document
from app.http.error_handlers import READABLE_STATUS
from app.http.provider_failures import RANKING
from app.schemas.error_codes import Code
from app.schemas.errors import STATUS_DESCRIPTIONS
from providers.errors import Reason

PAGE = DOCUMENT.read_text()


def part(title: str) -> str:
    """The text of one part of the page."""
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def headings(text: str) -> list[str]:
    return re.findall(r"^### (.*)$", text, re.MULTILINE)


def test_every_status_has_a_heading():
    answered = {status for status in STATUS_DESCRIPTIONS if isinstance(status, int)} | READABLE_STATUS.keys()

    assert headings(part("By status")) == [str(status) for status in sorted(answered)]


def test_every_reason_has_a_heading_in_the_order_in_which_they_decide():
    assert headings(part("By reason")) == [str(reason) for reason in RANKING]
    assert set(RANKING) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_its_status_on_the_page(reason: Reason):
    told = re.search(rf"^### {reason}\n\nStatus (\d+)\.", PAGE, re.MULTILINE)

    assert told is not None
    assert int(told[1]) == Code[reason.name].status


def test_the_table_of_codes_is_the_one_of_the_code():
    assert document(PAGE) == PAGE
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| .+ \| .+ \|$", part("Codes"), re.MULTILINE)
    assert rows == [(str(code), str(code.status)) for code in Code]
