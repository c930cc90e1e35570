"""The browser's window: sizes, colours, log messages, overflow and accessibility checks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

from tests import services

SIZES = (1440, 390)
# The widths of the pictures, and those at which no page may be cut: a desk, a laptop, a tablet, a phone.
WIDTHS = (1440, 1024, 768, 390)
THEMES = ("light", "dark")
HEIGHT = 900
PHONE = 500

RULES = {"rules": {"target-size": {"enabled": True}}, "resultTypes": ["violations"]}
# The only rules that depend on the theme.
COLOURS = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}

QUIET = """
return document.readyState === "complete"
  && !document.querySelector(".htmx-request, .htmx-settling, [aria-busy=true]")
  && [...document.querySelectorAll("[hx-trigger*=load]")].every((each) => each["htmx-internal-data"]?.loaded)
"""

UNREACHABLE = """
const controls = "a[href], button, input:not([type=hidden]), select, textarea, summary";
const missed = [];
for (const each of document.querySelectorAll(".row-menu")) each.open = false;
for (const each of document.querySelectorAll(".at-press")) each.classList.remove("at-press");
for (const each of document.querySelectorAll(controls)) {
  if (!each.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || each.disabled) continue;
  if (each.closest("[aria-hidden=true], [inert]") || each.matches(".skip, .hidden, .hidden *")) continue;
  each.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
  const box = each.getClientRects()[0] ?? new DOMRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const at = document.elementFromPoint(x, y);
  const free = at && (each.contains(at) || at.closest("label")?.control === each);
  if (box.left < -1 || box.right > innerWidth + 1 || !free) {
    const above = at ? at.outerHTML.slice(0, 80) : "nothing";
    missed.push(`${each.outerHTML.slice(0, 120)} at ${Math.round(x)}, ${Math.round(y)} below ${above}`);
  }
}
return missed;
"""


def resize(browser: Chrome, width: int, height: int = HEIGHT) -> None:
    """Set the size of the window; a narrow one emulates a phone."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def theme(browser: Chrome, name: str) -> None:
    """Emulate a system with light or dark colours."""
    features = [
        {"name": "prefers-color-scheme", "value": name},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def as_it_was(browser: Chrome) -> None:
    """Reset the window's size and colours."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def opened(browser: Chrome, url: str) -> None:
    """Open a page, and wait until all its parts are loaded."""
    browser.get(url)
    settled(browser)


def settled(browser: Chrome) -> None:
    """Wait until no part of the page is loading."""
    wait(browser, lambda each: each.execute_script(QUIET), seconds=20)


def wait(browser: Chrome, done: Callable[[Chrome], Any], *, seconds: float = 15) -> Any:
    """Wait until ``done`` returns something true, and return it. Repeats while the page replaces elements."""
    replaced = (StaleElementReferenceException,)
    return WebDriverWait(browser, seconds, poll_frequency=0.05, ignored_exceptions=replaced).until(done)


def complaints(browser: Chrome) -> list[str]:
    """The messages in the browser's log since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")]


def width(browser: Chrome) -> int:
    """The width of the page; if it exceeds the window's, the page scrolls sideways."""
    return int(browser.execute_script("return document.documentElement.scrollWidth"))


def overflowing(browser: Chrome) -> list[str]:
    """The elements that make the page too wide, the outermost first."""
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


def unreachable(browser: Chrome) -> list[str]:
    """The controls that cannot be scrolled into the window, or are covered; menus and answers are closed."""
    found: list[str] = browser.execute_script(UNREACHABLE)
    return found


def cut(browser: Chrome) -> list[str]:
    """The tables with columns that do not fit."""
    found: list[str] = browser.execute_script(
        """
        const tables = [...document.querySelectorAll(".table")];
        return tables.filter((each) => each.scrollWidth > each.clientWidth + 1).map(
          (each) => `${each.scrollWidth} px in ${each.clientWidth} px: ${each.outerHTML.slice(0, 120)}`)
        """
    )
    return found


def height(browser: Chrome) -> int:
    """The height of the page."""
    return int(browser.execute_script("return document.documentElement.scrollHeight"))


def findings(browser: Chrome, options: dict[str, Any]) -> list[str]:
    """The violations that axe-core finds, of any impact: a line for each element."""
    if not browser.execute_script("return 'axe' in window"):
        browser.execute_script(_axe())
    answer = browser.execute_async_script(
        """
        const [options, done] = arguments;
        axe.run(document, options).then((found) => done(found.violations), (error) => done(String(error)));
        """,
        options,
    )
    assert isinstance(answer, list), answer
    return [
        f"{found['impact']} {found['id']}: {found['help']}\n      {node['html'][:160]}\n      "
        + json.dumps([each["message"] for each in (*node["any"], *node["all"], *node["none"])])
        for found in answer
        for node in found["nodes"]
    ]


def findings_everywhere(browser: Chrome) -> list[str]:
    """The violations in both window sizes: all rules in the light theme, rules on colours in the dark one."""
    found = []
    for name, rules in zip(THEMES, (RULES, COLOURS), strict=True):
        theme(browser, name)
        for size in SIZES:
            resize(browser, size)
            # The fixed parts of a page cover others while it is scrolled.
            browser.execute_script("scrollTo(0, 0)")
            found += [f"{name} {size}: {each}" for each in findings(browser, rules)]
    return found


def unfold(browser: Chrome) -> None:
    """Open all collapsed details."""
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")


def _axe() -> str:
    return Path(str(services.axe().version)).read_text()
