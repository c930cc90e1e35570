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

/** Confirm an action that cannot be undone in a dialog before the form is sent. */
function confirmThen(form) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "question");
  const question = Object.assign(document.createElement("p"), { id: "question", textContent: form.dataset.confirm });
  const no = Object.assign(document.createElement("button"), { type: "button", textContent: "Cancel" });
  const yes = Object.assign(document.createElement("button"), { type: "button", className: "danger", textContent: form.dataset.confirmYes });
  const buttons = Object.assign(document.createElement("div"), { className: "buttons" });
  buttons.append(no, yes);
  dialog.append(question, buttons);
  document.body.append(dialog);
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => { dialog.close(); form.submit(); });
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  no.focus();
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

document.addEventListener("keydown", (event) => {
  const button = document.querySelector("[data-menu][aria-expanded=true]");
  if (event.key === "Escape" && button) {
    toggleMenu(button);
    button.focus();
  }
});

/** Show an error in the place of a part of the page that could not be loaded. */
function showLoadError(event) {
  const part = event.detail.target;
  const notice = Object.assign(document.createElement("p"), { className: "notice bad", textContent: "This part could not be loaded. Reload the page to try again." });
  notice.setAttribute("role", "alert");
  part.replaceChildren(notice);
}
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, showLoadError);

// After a form was sent, focus the result: an error, or a secret that is shown once.
document.querySelector("[data-focus]")?.focus();
showTheme();
