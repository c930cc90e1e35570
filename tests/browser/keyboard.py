"""A user with only a keyboard: controls must be reachable by keys, and the focus must be visible."""

from __future__ import annotations

from typing import Self

from selenium.webdriver import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from tests.browser import window
from tests.browser.visitor import Visitor

# The most presses of Tab to reach a control, and to go through a whole page.
MOST = 150
MAX_OF_ALL = 600

# The focus must be visible: an outline or a shadow, on a control that is neither hidden nor covered.
SEE = """
const see = (each) => {
  const style = getComputedStyle(each);
  // A link of several lines is where its first line is.
  const box = each.getClientRects()[0] ?? new DOMRect();
  // Inside a date the browser itself shows which part is focused.
  const parts = ["date", "time", "datetime-local", "month", "week"].includes(each.type);
  const ring = parts || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1
    && !/rgba\\(.*, 0\\)|transparent/.test(style.outlineColor)) || style.boxShadow !== "none";
  const at = document.elementFromPoint(
    Math.min(Math.max(box.left + box.width / 2, 0), innerWidth - 1),
    Math.min(Math.max(box.top + box.height / 2, 0), innerHeight - 1));
  const seen = box.width > 1 && box.height > 1 && at !== null
    && (each.contains(at) || at.closest("label")?.control === each);
  return [ring, seen, each.outerHTML.slice(0, 160)];
};
"""
THIS = f"{SEE} return see(arguments[0]);"
# Checks the focused element and records it as reached; null if the window has the focus.
NEXT = f"""
{SEE}
const each = document.activeElement;
if (each === document.body || each === null) return null;
(window.reached ??= new Set()).add(each);
return see(each);
"""
# Controls for a pointer that were never reached by key; a reached radio button counts for its group.
MISSED = """
const all = [...document.querySelectorAll(
  "a[href], button, input:not([type=hidden]), select, textarea, summary, [onclick], [role=button]")];
const reached = window.reached ?? new Set();
const groups = new Set([...reached].map((each) => each.type === "radio" ? each.name : null));
return all.filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled
  && !reached.has(each) && !each.closest("[aria-hidden=true], [inert]")
  && !(each.type === "radio" && groups.has(each.name))).map((each) => each.outerHTML.slice(0, 160));
"""
# The labels of all radio buttons in the element's group, between which arrow keys move.
GROUP = """
const each = arguments[0];
return each.type === "radio" ? [...document.getElementsByName(each.name)].map(
  (one) => one.labels[0].innerText.trim()) : [];
"""
# The accessible name of the explorer's picture of whole days.
PICTURE = "The days; arrow keys move a moment, Enter says why"


class Keyboard(Visitor):
    """Tab, Enter, Space, arrows and letters: ``keys.to("Sign in").enter()``."""

    def use(self, name: str, *, near: str = "") -> Self:
        return self.to(name, near=near).enter()

    def write(self, name: str, text: str) -> Self:
        return self.to(name).type(text)

    def set_time(self, name: str, keys: str) -> Self:
        return self.to(name).press(keys)

    def choose(self, name: str) -> Self:
        focused = self.to(name, group=True).focused
        # Tab reaches one radio button of a group; arrows move to the others and select them.
        for _ in range(MOST):
            if self._name(focused) == name:
                break
            focused = self.press(Keys.ARROW_DOWN).focused
        return self if focused.is_selected() else self.space()

    def pick(self, name: str, option: str) -> Self:
        shown = Select(self.to(name).press(Keys.HOME).focused)
        for _ in shown.options:
            if shown.first_selected_option.text == option:
                return self
            self.press(Keys.ARROW_DOWN)
        raise AssertionError(f"{option!r} is not offered, but {[each.text for each in shown.options]}")

    def point(self, clock: str) -> Self:
        if self.name != PICTURE:
            self.to(PICTURE).press(Keys.ARROW_DOWN)
        said = self._browser.find_element("id", "said").get_attribute("textContent")
        quarters = _quarters(clock) - _quarters(said[-5:])
        self.press((Keys.ARROW_DOWN if quarters > 0 else Keys.ARROW_UP) * abs(quarters))
        return self.enter()

    def to(self, name: str, *, near: str = "", back: bool = False, group: bool = False) -> Self:
        """Move to the control with this accessible name; every focus on the way must be visible.

        With ``group``, any radio button of the same group is enough.
        """
        # A part that is replaced meanwhile would take the focus away.
        window.settled(self._browser)
        passed = []
        for _ in range(MOST):
            self.press(Keys.SHIFT + Keys.TAB if back else Keys.TAB)
            focused = self.focused
            if focused.tag_name in ("body", "html"):
                passed.append("(the window)")
                continue
            passed.append(self._name(focused))
            self._see(focused)
            if passed[-1] == name and self._near(focused, near):
                return self
            if group and name in self._group(focused):
                return self
            if passed.count(passed[0]) > 3 and passed.count("(the window)") > 2:
                break
        raise AssertionError(f"{name!r} cannot be reached by Tab, but {list(dict.fromkeys(passed))}")

    def everywhere(self) -> list[str]:
        """Move through the whole page, checking every focus; returns the controls that were not reached."""
        # A page may focus a field in its middle first: go from there to its end, and then once round.
        ends = 0
        for _ in range(MAX_OF_ALL):
            self.press(Keys.TAB)
            focused = self._browser.execute_script(NEXT)
            if focused is not None:
                _assert_seen(*focused)
            elif (ends := ends + 1) == 2:
                break
        missed: list[str] = self._browser.execute_script(MISSED)
        return missed

    def enter(self) -> Self:
        """Press Enter on the focused element. If a new page follows, wait for it by ``at`` or ``until``."""
        return self._and_wait(Keys.ENTER)

    def space(self) -> Self:
        """Press Space on the focused element, which presses or selects it."""
        return self._and_wait(Keys.SPACE)

    def type(self, text: str) -> Self:
        """Replace the text of the focused field."""
        self._chain().key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
        return self.press(text)

    def press(self, keys: str) -> Self:
        """Press keys."""
        if keys.startswith(Keys.SHIFT):
            self._chain().key_down(Keys.SHIFT).send_keys(keys[1:]).key_up(Keys.SHIFT).perform()
        else:
            self._chain().send_keys(keys).perform()
        return self

    @property
    def focused(self) -> WebElement:
        """The focused element; the body if none has the focus."""
        return self._browser.switch_to.active_element

    @property
    def name(self) -> str:
        """The accessible name of the focused element."""
        return self._name(self.focused)

    def _name(self, element: WebElement) -> str:
        return " ".join(element.accessible_name.split())

    def _see(self, focused: WebElement) -> None:
        _assert_seen(*self._browser.execute_script(THIS, focused))

    def _group(self, focused: WebElement) -> list[str]:
        """The names of the radio buttons in the element's group."""
        found: list[str] = self._browser.execute_script(GROUP, focused)
        return found

    def _and_wait(self, key: str) -> Self:
        self.press(key)
        window.settled(self._browser)
        return self


def _assert_seen(ring: bool, seen: bool, html: str) -> None:
    assert ring, f"nothing shows that the focus is here: {html}"
    assert seen, f"the focused element cannot be seen: {html}"


def _quarters(clock: str) -> int:
    hours, minutes = map(int, clock.split(":"))
    return (hours * 60 + minutes) // 15
