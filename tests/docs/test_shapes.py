"""The comparison of shown answers with real ones finds what differs."""

from __future__ import annotations

import pytest

from tests.docs.shapes import difference, shown_json


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ('{"a": 1, …}', {"a": 2, "b": None}),
        ('{"a": …}', {"a": [1]}),
        ('{"a": {…}}', {"a": {"b": 1}}),
        ("[…]", []),
        ("[1, …]", [1, 2]),
        ('"2026-11-23T09:00:00.000Z"', "2030-01-01T00:00:00.000Z"),
        ('"wh_…"', "wh_12"),
        ('"10:00 on Monday 23 November 2026 (UTC)"', "10:00 on Monday 7 May 2026 (UTC)"),
    ],
)
def test_what_is_shown_covers_it(shown: str, real: object):
    assert difference(shown_json(shown), real) is None


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ('{"a": 1}', {"a": 1, "b": 2}),
        ('{"a": 1, …}', {"b": 1}),
        ("[1]", [1, 2]),
        ("[1, 2, …]", [1]),
        ("[]", [1]),
        ("1", True),
        ("1", "1"),
        ("true", False),
        ("null", 0),
        ('"wh_…"', "msg_12"),
        ('"ada"', "bruno"),
        ('"2026-11-23T09:00:00.000Z"', "2026-11-23"),
        ('{"a": [{"b": "c"}]}', {"a": [{"b": "d"}]}),
    ],
)
def test_a_difference_from_the_shown_answer_is_found(shown: str, real: object):
    assert difference(shown_json(shown), real) is not None
