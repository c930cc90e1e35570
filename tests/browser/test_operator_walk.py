"""An operator with 500 users finds 40 problems, from the overview alone, by pointer and by keyboard."""

from __future__ import annotations

import sys
import time
from collections import defaultdict

import pytest
from selenium.webdriver.common.by import By

from app.cli import administrator_setup
from tests.browser import window
from tests.dashboard import planted

PASSWORD = "seven quiet calendars"
# Five minutes are for a person, who also reads.
SECONDS = 300

# The rows of the list that a page shows, by the names in their first column.
ROWS = """
return [...document.querySelectorAll("tbody th[scope=row]")].map(
  (each) => each.querySelector("a, bdi").innerText)
"""
NEXT = "return document.querySelector('nav.pager a[rel=next]') !== null"


@pytest.fixture
def installation(new_web):
    """The URL of the planted installation, with the administrator ``ada``."""
    url, stores = new_web
    planted.plant(stores)
    administrator_setup.create(stores, "ada", PASSWORD)
    yield url
    planted.forget(stores)


class Walk:
    """The pages that an operator opens, counted, and what each line of the overview has led to."""

    def __init__(self, browser, visitor) -> None:
        self._browser, self._visitor = browser, visitor
        self.loads = 0
        self.found = defaultdict(set)

    def enter(self, url) -> None:
        window.opened(self._browser, f"{url}/")
        self._visitor.at("Sign in").write("Name", "ada").write("Password", PASSWORD).use("Sign in")
        self._visitor.at("Overview")
        self.loads += 2

    def everything(self) -> None:
        """Follow each line of the overview, and come back for the next."""
        lines = self._browser.find_elements(By.CSS_SELECTOR, ".attention > li")
        for kind in [each.get_attribute("id").removeprefix("attention-") for each in lines]:
            link = self._link(kind)
            if link is not None:
                assert link.startswith("Show all")
                self._follow(kind, link)
                self._visitor.use("Overview").at("Overview")
                self.loads += 1
            else:
                self.found[kind] |= set(self._named(kind))

    def _follow(self, kind, link) -> None:
        self._visitor.use(link)
        self.loads += 1
        self._visitor.until(lambda each: not each.current_url.rstrip("/").endswith("/dashboard"))
        window.settled(self._browser)
        while True:
            self.found[kind] |= set(self._browser.execute_script(ROWS))
            if not self._browser.execute_script(NEXT):
                return
            self._visitor.use("Next")
            self.loads += 1

    def _link(self, kind) -> str | None:
        """The accessible name of the link to the list of a kind."""
        links = self._browser.find_elements(By.CSS_SELECTOR, f"#attention-{kind} .actions a:not(.button)")
        return " ".join(links[0].accessible_name.split()) if links else None

    def _named(self, kind) -> list[str]:
        links = self._browser.find_elements(By.CSS_SELECTOR, f"#attention-{kind} .plain-list a")
        return [each.text for each in links]


def test_an_operator_finds_every_planted_problem_and_nothing_else(installation, browser, visitor, capsys):
    walk = Walk(browser, visitor)
    began = time.monotonic()
    walk.enter(installation)
    total = visitor.text("#attention .badge")
    walk.everything()
    seconds = time.monotonic() - began

    assert {kind: set(names) for kind, names in walk.found.items()} == {
        kind: set(names) for kind, names in planted.PROBLEMS.items()
    }
    assert total == "40"
    with capsys.disabled():
        found = sum(map(len, walk.found.values()))
        sys.stdout.write(
            f"\n{type(visitor).__name__}: {found} problems in {seconds:.0f} s with {walk.loads} pages\n"
        )
    assert seconds < SECONDS
    assert window.complaints(browser) == []
