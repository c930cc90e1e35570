"""Pictures of every page of the dashboard: `make screenshots` puts them into build/screenshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import window
from tests.browser.pages import View, views

FOLDER = Path(__file__).parents[2] / "build/screenshots"
# Cut off very long pages.
HIGHEST = 4000


@pytest.mark.parametrize("view", list(views()), ids=lambda view: view.name)
def test_a_picture_is_taken(browser, web, content, sign_in, view: View):
    if view.signed_in:
        sign_in()
    FOLDER.mkdir(parents=True, exist_ok=True)
    window.resize(browser, window.SIZES[0])
    window.opened(browser, web + view.path(content))

    for theme in window.THEMES:
        window.theme(browser, theme)
        for width in window.WIDTHS:
            window.resize(browser, width)
            window.resize(browser, width, max(window.HEIGHT, min(window.height(browser), HIGHEST)))
            assert browser.save_screenshot(str(FOLDER / f"{view.name}-{width}-{theme}.png"))
