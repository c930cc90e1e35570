"""Actions of a user on the pages, the same for pointer and keyboard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from tests.browser import window

# Whether the dialog, row, entry or card around a control contains a text.
NEAR = "return (arguments[0].closest('dialog, tr, li, .card')?.innerText ?? '').includes(arguments[1])"


class Visitor(ABC):
    """Finds controls by their accessible names; text that is ``near`` selects among controls of one name."""

    def __init__(self, browser: Chrome) -> None:
        self._browser = browser

    @abstractmethod
    def use(self, name: str, *, near: str = "") -> Self:
        """Follow a link, press a button, open or close a part. ``at`` waits for a page that follows."""

    @abstractmethod
    def write(self, name: str, text: str) -> Self:
        """Replace the text of a field."""

    @abstractmethod
    def set_time(self, name: str, keys: str) -> Self:
        """Type a time, such as ``0930AM``, into a field of times."""

    @abstractmethod
    def choose(self, name: str) -> Self:
        """Select a checkbox or a radio button."""

    @abstractmethod
    def pick(self, name: str, option: str) -> Self:
        """Choose an option of a select field."""

    @abstractmethod
    def point(self, clock: str) -> Self:
        """Explain a quarter of an hour in the explorer's picture of one day and one user."""

    def until(self, done: Callable[[Chrome], Any]) -> Self:
        """Wait until ``done`` returns something true."""
        window.wait(self._browser, done)
        return self

    def at(self, heading: str) -> Self:
        """Wait for the page with this heading, and for all its parts."""
        self.until(
            lambda each: each.execute_script("return document.querySelector('h1')?.innerText") == heading
        )
        window.settled(self._browser)
        return self

    def sees_notice(self, sentence: str) -> Self:
        """Wait until the page shows this message at its top."""
        return self.until(lambda _: sentence in self.notices)

    @property
    def notices(self) -> list[str]:
        """The messages of the page, also about parts that failed to load."""
        found: list[str] = self._browser.execute_script(
            "return [...document.querySelectorAll('.notice')].map((each) => each.innerText.trim())"
        )
        return found

    def text(self, selector: str = "main") -> str:
        """The current text; read in one step, as the element may be replaced at any time."""
        found: str = self._browser.execute_script(
            "return document.querySelector(arguments[0])?.innerText ?? ''", selector
        )
        return found

    def _near(self, control: WebElement, text: str) -> bool:
        return not text or bool(self._browser.execute_script(NEAR, control, text))

    def _chain(self) -> ActionChains:
        return ActionChains(self._browser, duration=0)


class Pointer(Visitor):
    """A user with a mouse or a touch screen: covered controls, or those off the window, cannot be pressed."""

    def use(self, name: str, *, near: str = "") -> Self:
        self._find("a[href], button, summary", name, near).click()
        window.settled(self._browser)
        return self

    def write(self, name: str, text: str) -> Self:
        self._find("input, textarea", name).click()
        self._chain().key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys(text).perform()
        return self

    def set_time(self, name: str, keys: str) -> Self:
        # A click would focus the part of the time that it hits.
        self._find("input[type=time]", name).send_keys(keys)
        return self

    def choose(self, name: str) -> Self:
        self._find("input[type=checkbox], input[type=radio]", name).click()
        return self

    def pick(self, name: str, option: str) -> Self:
        Select(self._find("select", name)).select_by_visible_text(option)
        return self

    def point(self, clock: str) -> Self:
        x, y = self._browser.execute_script(PLACE, *map(int, clock.split(":")))
        actions = self._chain()
        actions.w3c_actions.pointer_action.move_to_location(int(x), int(y))
        actions.click().perform()
        window.settled(self._browser)
        return self

    def _find(self, kind: str, name: str, near: str = "") -> WebElement:
        """The visible control. A search in which a part of the page is replaced is repeated."""
        found: WebElement = window.wait(self._browser, lambda _: self._search(kind, name, near))
        return found

    def _search(self, kind: str, name: str, near: str) -> WebElement:
        scope = "dialog[open] " if self._browser.find_elements(By.CSS_SELECTOR, "dialog[open]") else ""
        selector = ", ".join(f"{scope}{each}" for each in kind.split(", "))
        names = []
        for each in self._browser.find_elements(By.CSS_SELECTOR, selector):
            if each.is_displayed():
                names.append(" ".join(each.accessible_name.split()))
                if names[-1] == name and self._near(each, near):
                    return each
        raise AssertionError(f"{name!r} is not to be seen, but {names}")


# The position of a time in a day's drawing. One pixel is two minutes, so the click is slightly later.
PLACE = """
const lane = document.querySelector("[data-axis]"), whole = lane.closest("svg.day");
whole.scrollIntoView({ block: "center" });
const [first, last] = lane.dataset.days.split("-").map(Number);
const box = whole.getBoundingClientRect();
const at = new Date(first).setUTCHours(arguments[0], arguments[1]) + 120000;
return [box.left + box.width / 2, box.top + (at - first) / (last - first) * box.height];
"""
