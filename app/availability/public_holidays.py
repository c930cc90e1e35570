"""Public holidays of countries and their subdivisions, by the package ``holidays``, cached for each year."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from types import MappingProxyType

log = logging.getLogger(__name__)


def is_known(country: str, subdivision: str | None = None) -> bool:
    """Whether the package has the holidays of a country by its ISO 3166 code, or of a subdivision of it."""
    if not (len(country) == 2 and country.isascii() and country.isupper()):
        return False
    try:
        _load(country, subdivision, 2026)
    except NotImplementedError:
        # By it the package says that it does not know the country or the subdivision.
        return False
    return True


@lru_cache(maxsize=4096)
def of_year(country: str, subdivision: str | None, year: int) -> Mapping[date, str]:
    """The name of each holiday in a year, in English where the package has it.

    Of a subdivision that this release of the package does not know, those of the whole country.

    :raise NotImplementedError: for a country that the package does not know
    """
    if not is_known(country, subdivision):
        log.error("no holidays of %s in %s are known: those of the country are used", subdivision, country)
        subdivision = None
    return MappingProxyType(_load(country, subdivision, year))


def _load(country: str, subdivision: str | None, year: int) -> dict[date, str]:
    # Imported here: it takes a quarter of a second, and few requests need it.
    import holidays

    found = holidays.country_holidays(country, subdiv=subdivision, years=year, language="en_US")
    return dict(sorted(found.items()))
