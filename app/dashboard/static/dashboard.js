"use strict";

const THEMES = ["system", "light", "dark"];

/** Tell those who do not see it what has just happened. */
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
    // Without the right to the clipboard: marked, so that it can be copied by hand.
    getSelection().selectAllChildren(source);
    label.textContent = "Marked";
    say("Marked: copy it with your keyboard");
  }
  setTimeout(() => { label.textContent = "Copy"; }, 2000);
}

/** Ask once more, in a dialog of the page, before a form does what cannot be undone. */
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

/** A form whose answer takes a while says so on its button, and is not sent twice. */
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

// Gone back to, a page is as it was left.
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

/** A part of a page that could not be had says so, in its own place. */
function tellMissing(event) {
  const part = event.detail.target;
  const told = Object.assign(document.createElement("p"), { className: "notice bad", textContent: "This part could not be loaded. Reload the page to try again." });
  told.setAttribute("role", "alert");
  part.replaceChildren(told);
}
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, tellMissing);

// What the page is about, after a form was answered: a complaint, or a secret that is shown once.
document.querySelector("[data-focus]")?.focus();
showTheme();
