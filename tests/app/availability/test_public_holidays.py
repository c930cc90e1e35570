"""The public holidays that close days."""

from __future__ import annotations

from datetime import date

import pytest

from app.availability import public_holidays

EPIPHANY = date(2026, 1, 6)


def test_a_subdivision_has_holidays_of_its_own():
    assert EPIPHANY in public_holidays.of_year("DE", "BY", 2026)
    assert EPIPHANY not in public_holidays.of_year("DE", "HH", 2026)


def test_of_a_subdivision_that_is_not_known_the_country_closes_its_days():
    found = public_holidays.of_year("DE", "XX", 2026)
    assert found == public_holidays.of_year("DE", None, 2026)
    assert date(2026, 12, 25) in found


@pytest.mark.parametrize(("country", "subdivision"), [("XX", None), ("de", None), ("DE", "XX"), ("Ä€", None)])
def test_what_has_no_holidays_cannot_be_stored(country, subdivision):
    assert not public_holidays.is_known(country, subdivision)


def test_a_country_that_is_not_known_closes_nothing_silently():
    with pytest.raises(NotImplementedError):
        public_holidays.of_year("XX", None, 2026)
