"""The pictures of the README and of the documentation, from `almanac demo`: `make pictures` writes them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from tests.browser import window
from tests.installation.processes import free_port, stop

FOLDER = Path(__file__).parents[2] / "docs/pictures"
ALMANAC = Path(sys.executable).parent / "almanac"
WIDTH, HEIGHT = 1440, 1060


@pytest.fixture
def demo() -> Iterator[str]:
    """What `almanac demo` prints, with the address of its dashboard and the password."""
    ports = [f"--{name}={free_port()}" for name in ("port", "sandbox-port", "booking-port")]
    with subprocess.Popen([ALMANAC, "demo", *ports], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed = ""
            for line in process.stdout:
                printed += line
                if "Ctrl-C" in line:
                    break
            yield printed
        finally:
            stop([process])


@pytest.mark.timeout(300)
def test_the_explorer(browser, demo: str):
    found = re.search(r"Dashboard +(\S+)\s+sign in as (\S+) with the password (\S+)", demo)
    assert found is not None, demo
    dashboard, name, password = found.groups()
    window.resize(browser, WIDTH, HEIGHT)
    window.opened(browser, f"{dashboard}/sign-in")
    for field, value in (("name", name), ("password", password)):
        browser.find_element(By.NAME, field).send_keys(value)
    browser.find_element(By.CSS_SELECTOR, "main form button").click()
    window.settled(browser)
    today = datetime.now(UTC).date()
    monday = today + timedelta(days=7 - today.weekday())
    query = f"?show=1&organization=demo&day={monday}&days=5&zone=Europe/Berlin"

    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    # The second time, the calendars are in the cache, as they mostly are.
    for _ in range(2):
        window.opened(browser, f"{dashboard}/explorer{query}")

    for theme in window.THEMES:
        window.theme(browser, theme)
        assert browser.save_screenshot(str(FOLDER / f"explorer-{theme}.png"))
