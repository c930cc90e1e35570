"use strict";
// Comboboxes by the ARIA pattern: fields with suggestions, and the command palette.

let optionCount = 0;

const listOf = (input) => document.getElementById(input.dataset.list);
const isPalette = (input) => input.closest("#palette") !== null;
const optionsOf = (input) => [...listOf(input).querySelectorAll("[role=option]")];
const activeOf = (input) => document.getElementById(input.getAttribute("aria-activedescendant") ?? "");

/** The part of the text that suggestions complete: in a field for several values, the last one. */
function lastPart(input) {
  return "several" in input.dataset ? input.value.split(/[\s,;]+/).at(-1) : input.value;
}

function activate(input, option) {
  for (const each of optionsOf(input)) each.setAttribute("aria-selected", String(each === option));
  if (option) {
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  } else {
    input.removeAttribute("aria-activedescendant");
  }
}

function closeList(input) {
  if (isPalette(input)) return;
  listOf(input).hidden = true;
  input.setAttribute("aria-expanded", "false");
  activate(input, null);
}

/** Show what the service has suggested, unless the focus has moved on. */
function showList(input) {
  const options = optionsOf(input);
  for (const each of options) each.id ||= `option-${++optionCount}`;
  const shown = options.length > 0 && document.activeElement === input;
  listOf(input).hidden = !shown;
  input.setAttribute("aria-expanded", String(shown));
  activate(input, isPalette(input) && shown ? options[0] : null);
  if (isPalette(input)) document.getElementById("palette-none").hidden = options.length > 0;
  if (document.activeElement === input) {
    say(options.length ? `${options.length} ${options.length === 1 ? "suggestion" : "suggestions"}` : "No suggestions");
  }
}

function choose(input, option) {
  if (isPalette(input)) {
    location.assign(option.dataset.href);
    return;
  }
  const before = input.value.slice(0, input.value.length - lastPart(input).length);
  input.value = before + option.dataset.value + ("several" in input.dataset ? " " : "");
  closeList(input);
  input.focus();
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

function move(input, step) {
  const options = optionsOf(input);
  if (listOf(input).hidden || options.length === 0) {
    htmx.trigger(input, "suggest");
    return;
  }
  const next = options.indexOf(activeOf(input)) + step;
  activate(input, options.at(next < 0 ? -1 : next % options.length));
}

function keyPressed(input, event) {
  const option = activeOf(input);
  if (event.key === "ArrowDown") move(input, 1);
  else if (event.key === "ArrowUp") move(input, option ? -1 : 0);
  else if (event.key === "Enter" && option) choose(input, option);
  else if (event.key === "Enter" && isPalette(input)) ;
  else if (event.key === "Escape" && !isPalette(input) && !listOf(input).hidden) closeList(input);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function prepare(input) {
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", input.dataset.list);
  input.setAttribute("aria-expanded", "false");
  input.autocomplete = "off";
  input.addEventListener("keydown", (event) => keyPressed(input, event));
  input.addEventListener("blur", () => closeList(input));
  const list = listOf(input);
  // The field keeps the focus while an option is pressed.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose(input, option);
  });
  list.addEventListener("htmx:afterSwap", () => showList(input));
}

const unprepared = "input[data-list]:not([role=combobox])";
for (const each of document.querySelectorAll(unprepared)) prepare(each);
document.addEventListener("htmx:load", (event) => {
  for (const each of event.target.querySelectorAll?.(unprepared) ?? []) prepare(each);
});
document.addEventListener("htmx:configRequest", (event) => {
  if (!event.detail.elt.matches("input[data-list]")) return;
  event.detail.parameters = { q: lastPart(event.detail.elt) };
  // A day and a time in the palette are those of the user's clock.
  if (isPalette(event.detail.elt)) event.detail.parameters.zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
});

function openPalette() {
  const source = document.getElementById("palette-source");
  if (!source || document.querySelector("dialog[open]")) return;
  const palette = source.content.firstElementChild.cloneNode(true);
  const opener = document.activeElement;
  palette.addEventListener("close", () => { palette.remove(); opener?.focus(); });
  document.body.append(palette);
  const input = palette.querySelector("input");
  prepare(input);
  htmx.process(palette);
  palette.showModal();
  input.focus();
  htmx.trigger(input, "suggest");
}

document.addEventListener("keydown", (event) => {
  const inText = event.target.closest?.("input, textarea, select, [contenteditable]");
  const asked = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
  const slash = event.key === "/" && !inText && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (asked || slash) {
    event.preventDefault();
    openPalette();
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-palette]")) openPalette();
  // A press beside the open palette closes it.
  else if (event.target.id === "palette") event.target.close();
});
