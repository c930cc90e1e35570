"""The page of errors knows every status and every reason that the service answers with, and no other."""

from __future__ import annotations

import re

import pytest

from app.http.error_handlers import READABLE_STATUS
from app.http.provider_failures import STATUS_OF_PROBLEM, STATUS_OF_REASON
from app.schemas.errors import STATUS_DESCRIPTIONS
from providers.errors import Reason
from tests.docs.fences import ROOT

PAGE = (ROOT / "docs/errors.md").read_text()


def part(title: str) -> str:
    """The text of one part of the page."""
    return re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:][
        ["By status", "By reason", "Of one event"].index(title)
    ].removeprefix(title)


def headings(text: str) -> list[str]:
    return re.findall(r"^### (.*)$", text, re.MULTILINE)


def test_every_status_has_a_heading():
    answered = {status for status in STATUS_DESCRIPTIONS if isinstance(status, int)} | READABLE_STATUS.keys()

    assert headings(part("By status")) == [str(status) for status in sorted(answered)]


def test_every_reason_has_a_heading_in_the_order_in_which_they_speak():
    assert headings(part("By reason")) == [str(reason) for reason in STATUS_OF_REASON]


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_its_status_on_the_page(reason: Reason):
    told = re.search(rf"^### {reason}\n\nStatus (\d+)\.", PAGE, re.MULTILINE)

    assert told is not None
    assert int(told[1]) == STATUS_OF_REASON[reason]


def test_every_problem_of_an_event_is_in_the_table():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", part("Of one event"), re.MULTILINE)

    assert {word: int(status) for word, status in rows} == {
        str(problem): status for problem, status in STATUS_OF_PROBLEM.items()
    }
