"""What a browser shows: sizes and colours, complaints, and what fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

from tests import services

SIZES = (1440, 390)
THEMES = ("light", "dark")
HEIGHT = 900
PHONE = 500

RULES = {"rules": {"target-size": {"enabled": True}}, "resultTypes": ["violations"]}
# Colours alone change with the theme.
COLOURS = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}

QUIET = """
return document.readyState === "complete"
  && !document.querySelector(".htmx-request, [aria-busy=true]")
  && [...document.querySelectorAll("[hx-trigger*=load]")].every((each) => each["htmx-internal-data"]?.loaded)
"""


def resize(browser: Chrome, width: int, height: int = HEIGHT) -> None:
    """Give the page another window, a phone's when it is narrow."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def theme(browser: Chrome, name: str) -> None:
    """Let the system have light or dark colours."""
    features = [
        {"name": "prefers-color-scheme", "value": name},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def as_it_was(browser: Chrome) -> None:
    """The browser's own window and colours."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def opened(browser: Chrome, url: str) -> None:
    """Open a page, and wait until all its parts are there."""
    browser.get(url)
    settled(browser)


def settled(browser: Chrome) -> None:
    """Wait until no part of the page is on its way."""
    WebDriverWait(browser, 20, poll_frequency=0.05).until(lambda each: each.execute_script(QUIET))


def complaints(browser: Chrome) -> list[str]:
    """What the browser had to complain of since it was last asked."""
    return [entry["message"] for entry in browser.get_log("browser")]


def width(browser: Chrome) -> int:
    """How wide the page is; wider than its window, it has to be scrolled to the side."""
    return int(browser.execute_script("return document.documentElement.scrollWidth"))


def overflowing(browser: Chrome) -> list[str]:
    """What makes the page so wide, the outermost first: without it, it would be narrower."""
    found: list[str] = browser.execute_script(
        """
        const root = document.documentElement;
        return [...document.querySelectorAll("body *")].filter((each) => {
          const [width, display] = [root.scrollWidth, each.style.display];
          each.style.display = "none";
          const narrower = root.scrollWidth < width;
          each.style.display = display;
          return narrower;
        }).map((each) => each.outerHTML.slice(0, 120))
        """
    )
    return found


def height(browser: Chrome) -> int:
    """How high the page is."""
    return int(browser.execute_script("return document.documentElement.scrollHeight"))


def findings(browser: Chrome, asked: dict[str, Any]) -> list[str]:
    """What axe-core finds on the page as it is, whatever its impact: a line for each element."""
    if not browser.execute_script("return 'axe' in window"):
        browser.execute_script(_axe())
    answer = browser.execute_async_script(
        """
        const [asked, done] = arguments;
        axe.run(document, asked).then((found) => done(found.violations), (error) => done(String(error)));
        """,
        asked,
    )
    assert isinstance(answer, list), answer
    return [
        f"{found['impact']} {found['id']}: {found['help']}\n      {node['html'][:160]}\n      "
        + json.dumps([each["message"] for each in (*node["any"], *node["all"], *node["none"])])
        for found in answer
        for node in found["nodes"]
    ]


def findings_everywhere(browser: Chrome) -> list[str]:
    """The same on a desk and on a phone: by day all rules, by night those of colours."""
    found = []
    for name, rules in zip(THEMES, (RULES, COLOURS), strict=True):
        theme(browser, name)
        for size in SIZES:
            resize(browser, size)
            found += [f"{name} {size}: {each}" for each in findings(browser, rules)]
    return found


def unfold(browser: Chrome) -> None:
    """Open what is folded up."""
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")


def _axe() -> str:
    return Path(str(services.axe().version)).read_text()
