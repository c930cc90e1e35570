"use strict";

const THEMES = ["system", "light", "dark"];

/** Announce a change to screen readers. */
function say(sentence) {
  document.getElementById("said").textContent = sentence;
}

function showTheme() {
  const theme = document.documentElement.dataset.theme || "system";
  for (const name of document.querySelectorAll("[data-theme-name]")) name.textContent = `Colours: ${theme}`;
}

function nextTheme() {
  const root = document.documentElement;
  const theme = THEMES[(THEMES.indexOf(root.dataset.theme || "system") + 1) % THEMES.length];
  if (theme === "system") {
    delete root.dataset.theme;
    localStorage.removeItem("theme");
  } else {
    root.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }
  showTheme();
  say(`Colours: ${theme}`);
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const label = button.querySelector("span");
  try {
    await navigator.clipboard.writeText(source.textContent);
    label.textContent = "Copied";
    say("Copied");
  } catch {
    // Without permission for the clipboard: select the text, so that the user can copy it.
    getSelection().selectAllChildren(source);
    label.textContent = "Marked";
    say("Marked: copy it with your keyboard");
  }
  setTimeout(() => { label.textContent = "Copy"; }, 2000);
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Confirm an action that cannot be undone in a dialog before the form is sent; some ask for a text first. */
function confirmThen(form) {
  const { confirm, confirmYes, confirmTyped } = form.dataset;
  const no = element("button", { type: "button", textContent: "Cancel" });
  const yes = element("button", { className: "danger", textContent: confirmYes });
  const typed = element("input", { name: "confirm", autocomplete: "off", spellcheck: false, autocapitalize: "none", required: true });
  const asked = element("form", { method: "dialog" }, element("p", { id: "question", textContent: confirm }));
  if (confirmTyped) {
    const label = element("label", {}, "Type ", element("strong", { textContent: confirmTyped }), " to confirm", typed);
    asked.append(element("div", { className: "field" }, label));
    yes.disabled = true;
    typed.addEventListener("input", () => { yes.disabled = typed.value.trim() !== confirmTyped; });
  }
  asked.append(element("div", { className: "buttons" }, no, yes));
  const dialog = element("dialog", {}, asked);
  dialog.setAttribute("aria-labelledby", "question");
  document.body.append(dialog);
  // An action of a row is in a menu that has closed by then: its button takes the focus.
  const opener = form.closest(".row-menu")?.querySelector("summary") ?? document.activeElement;
  no.addEventListener("click", () => dialog.close());
  asked.addEventListener("submit", () => {
    if (confirmTyped) form.append(element("input", { type: "hidden", name: "confirm", value: typed.value.trim() }));
    form.submit();
  });
  dialog.addEventListener("close", () => { dialog.remove(); opener?.focus(); });
  dialog.showModal();
  (confirmTyped ? typed : no).focus();
}

/** While a slow form is sent, disable its button, which prevents a second submission, and say so on it. */
function showBusy(form) {
  const button = form.querySelector("button:not([type=button])");
  button.dataset.label = button.textContent;
  button.textContent = form.dataset.busy;
  button.disabled = true;
  say(form.dataset.busy);
}

function showIdle(button) {
  button.textContent = button.dataset.label;
  button.disabled = false;
}

function toggleMenu(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  document.body.classList.toggle("menu-open", open);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("copy" in button.dataset) copy(button);
  else if ("themeSwitch" in button.dataset) nextTheme();
  else if ("menu" in button.dataset) toggleMenu(button);
});

document.addEventListener("submit", (event) => {
  if (event.target.dataset.confirm) {
    event.preventDefault();
    confirmThen(event.target);
  } else if (event.target.dataset.busy) {
    showBusy(event.target);
  }
});

// The back button restores the page as it was left: enable its buttons again.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) for (const button of document.querySelectorAll("button[data-label]")) showIdle(button);
});

/** Put an open menu of a row beside its button, over everything else: tables cut off what is outside. */
function placeMenu(menu) {
  const [button, items] = [menu.querySelector("summary").getBoundingClientRect(), menu.querySelector(".items")];
  items.classList.add("placed");
  const below = button.bottom + items.offsetHeight + 4 <= innerHeight || button.top < items.offsetHeight;
  items.style.top = `${below ? button.bottom + 4 : button.top - items.offsetHeight - 4}px`;
  items.style.left = `${Math.max(8, button.right - items.offsetWidth)}px`;
}

function closeMenus(except = null) {
  for (const each of document.querySelectorAll(".row-menu[open]")) if (each !== except) each.open = false;
}

// "toggle" does not bubble.
document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.(".row-menu[open]")) return;
  closeMenus(event.target);
  placeMenu(event.target);
}, true);
document.addEventListener("click", (event) => closeMenus(event.target.closest(".row-menu")));
document.addEventListener("focusin", (event) => {
  if (!event.target.closest("dialog")) closeMenus(event.target.closest(".row-menu"));
});
addEventListener("resize", () => closeMenus());
document.addEventListener("scroll", (event) => { if (!event.target.closest?.(".items")) closeMenus(); }, true);
document.addEventListener("keydown", (event) => {
  const open = event.target.closest?.(".row-menu[open]");
  if (event.key !== "Escape" || !open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

/** The rows that are selected for a form of several rows. */
const boxesOf = (id) => [...document.querySelectorAll(`input[type=checkbox][form="${id}"]`)];

function showChosen(form) {
  const boxes = boxesOf(form.id);
  const chosen = boxes.filter((each) => each.checked).length;
  form.querySelector("button").disabled = chosen === 0;
  form.querySelector("[data-chosen]").textContent = chosen ? `${chosen} selected` : "";
  const all = document.querySelector(`[data-select-all="${form.id}"]`);
  all.hidden = false;
  all.checked = chosen > 0 && chosen === boxes.length;
  all.indeterminate = chosen > 0 && chosen < boxes.length;
}

for (const form of document.querySelectorAll("form[data-bulk]")) {
  document.addEventListener("change", (event) => {
    if (event.target.dataset.selectAll === form.id) {
      for (const each of boxesOf(form.id)) each.checked = event.target.checked;
    }
    showChosen(form);
  });
  // The back button restores the boxes.
  window.addEventListener("pageshow", () => showChosen(form));
  showChosen(form);
}

/** Exact times in the zone of the viewer, as titles of relative ones. */
function showExactTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, {
    year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
  });
  for (const each of root.querySelectorAll("time[data-relative]")) each.title = format.format(new Date(each.dateTime));
}
document.addEventListener("htmx:load", (event) => showExactTimes(event.target));
showExactTimes(document);

document.addEventListener("keydown", (event) => {
  const button = document.querySelector("[data-menu][aria-expanded=true]");
  if (event.key === "Escape" && button) {
    toggleMenu(button);
    button.focus();
  }
});

// A part that refreshes itself stays as it is while something in it is open or has the focus.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.target;
  if ("keepsOpen" in part.dataset && part.querySelector("details[open], :focus")) event.preventDefault();
});

/** Show an error in the place of a part of the page that could not be loaded. */
function showLoadError(event) {
  const part = event.detail.target;
  // Fields take a value without suggestions too.
  if (part.matches("[role=listbox]")) return;
  const notice = Object.assign(document.createElement("p"), { className: "notice bad", textContent: "This part could not be loaded. Reload the page to try again." });
  notice.setAttribute("role", "alert");
  part.replaceChildren(notice);
}
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, showLoadError);

// After a form was sent, focus the result: an error, or a secret that is shown once.
document.querySelector("[data-focus]")?.focus();
showTheme();
