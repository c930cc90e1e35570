"""Whoever uses the pages by keyboard alone: what cannot be reached, or not be seen, cannot be used."""

from __future__ import annotations

from typing import Self

from selenium.webdriver import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from tests.browser import window
from tests.browser.visitor import Visitor

# Nobody presses Tab more often to get anywhere.
MOST = 150
MOST_OF_ALL = 600

# A ring, or what stands for one: an outline or a shadow; and the control must not be hidden or covered.
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
# What is focused now, noted as reached; null when it is the window.
NEXT = f"""
{SEE}
const each = document.activeElement;
if (each === document.body || each === null) return null;
(window.reached ??= new Set()).add(each);
return see(each);
"""
# What could be used by a pointer and was never reached; of radio buttons, one stands for its group.
MISSED = """
const all = [...document.querySelectorAll(
  "a[href], button, input:not([type=hidden]), select, textarea, summary, [onclick], [role=button]")];
const groups = new Set([...window.reached].map((each) => each.type === "radio" ? each.name : null));
return all.filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled
  && !window.reached.has(each) && !each.closest("[aria-hidden=true], [inert]")
  && !(each.type === "radio" && groups.has(each.name))).map((each) => each.outerHTML.slice(0, 160));
"""
# The labels of the radio buttons that arrows lead to from here.
ALIKE = """
const each = arguments[0];
return each.type === "radio" ? [...document.getElementsByName(each.name)].map(
  (one) => one.labels[0].innerText.trim()) : [];
"""
# What the explorer's picture of whole days is called.
PICTURE = "The days; arrow keys move a moment, Enter says why"


class Keyboard(Visitor):
    """Tab, Enter, Space, and letters: ``keys.to("Sign in").enter()``."""

    def use(self, name: str, *, near: str = "") -> Self:
        return self.to(name, near=near).enter()

    def write(self, name: str, text: str) -> Self:
        return self.to(name).type(text)

    def choose(self, name: str) -> Self:
        focused = self.to(name, group=True).focused
        # Of a group, Tab reaches one; arrows go to the others, and mark them.
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
        """Go to the control of this accessible name; on the way there, every focus has to be visible.

        ``group``: to a radio button of the same group is far enough.
        """
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
            if group and name in self._alike(focused):
                return self
            if passed.count(passed[0]) > 3 and passed.count("(the window)") > 2:
                break
        raise AssertionError(f"{name!r} cannot be reached by Tab, but {list(dict.fromkeys(passed))}")

    def everywhere(self) -> list[str]:
        """Go through the whole page, and see the focus everywhere; returns controls that were not reached."""
        # A page may begin with a field in its middle: from there to its end, and once round.
        ends = 0
        for _ in range(MOST_OF_ALL):
            self.press(Keys.TAB)
            focused = self._browser.execute_script(NEXT)
            if focused is not None:
                _assert_seen(*focused)
            elif (ends := ends + 1) == 2:
                break
        missed: list[str] = self._browser.execute_script(MISSED)
        return missed

    def enter(self) -> Self:
        """Press what is focused. A page that follows is waited for by ``at`` or ``until``."""
        return self._and_wait(Keys.ENTER)

    def space(self) -> Self:
        """Press or mark what is focused."""
        return self._and_wait(Keys.SPACE)

    def type(self, text: str) -> Self:
        """Write into the field that is focused, in the place of what is there."""
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
        """Where the focus is; the body when it is nowhere."""
        return self._browser.switch_to.active_element

    @property
    def name(self) -> str:
        """The accessible name of what is focused."""
        return self._name(self.focused)

    def _name(self, element: WebElement) -> str:
        return " ".join(element.accessible_name.split())

    def _see(self, focused: WebElement) -> None:
        _assert_seen(*self._browser.execute_script(THIS, focused))

    def _alike(self, focused: WebElement) -> list[str]:
        """The names of the radio buttons in the group of what is focused."""
        found: list[str] = self._browser.execute_script(ALIKE, focused)
        return found

    def _and_wait(self, key: str) -> Self:
        self.press(key)
        window.settled(self._browser)
        return self


def _assert_seen(ring: bool, seen: bool, told: str) -> None:
    assert ring, f"nothing shows that the focus is here: {told}"
    assert seen, f"the focus is on what cannot be seen: {told}"


def _quarters(clock: str) -> int:
    hours, minutes = map(int, clock.split(":"))
    return (hours * 60 + minutes) // 15
