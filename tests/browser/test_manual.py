"""The documentation pages meet the same rules as the dashboard."""

from __future__ import annotations

import pytest

from app.docs_site.documents import NAMES
from tests import services
from tests.browser import window
from tests.browser.keyboard import Keyboard


@pytest.mark.parametrize("name", NAMES)
def test_a_document_fits_is_in_order_and_is_accessible(browser, web, name):
    services.axe().require()
    window.resize(browser, window.SIZES[0])
    window.opened(browser, f"{web}/docs/{name}")

    assert window.complaints(browser) == []
    for size in window.SIZES:
        window.resize(browser, size)
        assert window.width(browser) <= size, window.overflowing(browser)
    findings = window.findings_everywhere(browser)
    assert not findings, "\n   ".join(["", *findings])


def test_every_control_is_reached_by_keyboard_and_shows_it(browser, web):
    window.resize(browser, window.SIZES[0])
    window.opened(browser, f"{web}/docs/errors")

    assert Keyboard(browser).everywhere() == []
