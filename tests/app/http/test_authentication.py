"""Cached rows count only under a version that Redis confirms."""

from __future__ import annotations

import pytest

from app.http.authentication import Authentication, RowsOutdated
from store.cache.versioned_cache import CachedRows
from store.sql.queries.api_keys import Caller

CALLER = Caller(1, "alm_12345678", None, read_only=False, shows_tokens=False)


@pytest.mark.parametrize(
    ("loaded", "current"),
    [(None, None), (b"one", None), (None, b"one"), (b"one", b"other")],
    ids=["both unknown", "current unknown", "loaded unknown", "another"],
)
def test_rows_of_an_unknown_or_another_version_are_outdated(app, loaded, current):
    """Without a version in Redis it is unknown whether a key was revoked since the rows were loaded."""
    authentication = Authentication(CALLER, CachedRows(loaded), verified=False)

    with app.app_context(), pytest.raises(RowsOutdated):
        authentication.verify_version(current)

    assert not authentication.verified


def test_rows_of_the_current_version_count(app):
    authentication = Authentication(CALLER, CachedRows(b"one"), verified=False)

    with app.app_context():
        authentication.verify_version(b"one")

    assert authentication.verified
