"use strict";

// How long the pointer rests on a lane before its periods are loaded, in milliseconds.
const REST = 120;
const KINDS = { busy: "Busy", held: "Held", slot: "Slot", away: "Outside working hours", closed: "Closed" };
// The periods of each person in this picture; a promise while they are loaded.
let periodsOf = new Map();
let resting = null;
let hint = null;

function hintBox() {
  if (!hint) {
    hint = document.createElement("div");
    hint.className = "hint-box";
    // Screen readers hear the moment from the keys, and the explanation from Enter.
    hint.setAttribute("aria-hidden", "true");
    document.body.append(hint);
  }
  return hint;
}

function hideHint() {
  clearTimeout(resting);
  if (hint) hint.hidden = true;
}

/** The periods of a lane's person, or an empty list until they are loaded. */
function periods(lane, loaded) {
  const user = lane.dataset.user;
  const found = periodsOf.get(user);
  if (Array.isArray(found)) return found;
  clearTimeout(resting);
  if (!found) resting = setTimeout(() => load(user, loaded), REST);
  return [];
}

/** What a lane says about a moment, in a word or two; empty until it is known. */
function stateAt(lane, at, loaded) {
  if (lane.dataset.unread || !lane.dataset.user) return lane.dataset.unread ?? "";
  const found = periodsOf.get(lane.dataset.user);
  if (!found) load(lane.dataset.user, loaded);
  if (!Array.isArray(found)) return "";
  const kinds = found.filter(([start, end]) => start <= at && at < end).map(([, , kind]) => kind);
  return kinds.includes("slot") ? "offered" : kinds.includes("held") ? "held" : kinds.includes("busy") ? "busy" : kinds.includes("away") ? "outside working hours" : "free, not offered";
}

async function load(user, loaded) {
  const form = new URLSearchParams(new FormData(document.getElementById("question")));
  form.set("person", user);
  for (const name of ["at", "moment", "fresh", "show"]) form.delete(name);
  const mine = periodsOf;
  mine.set(user, "loading");
  try {
    const answer = await fetch(`/dashboard/explorer/periods?${form}`, { headers: { Accept: "application/json" } });
    mine.set(user, answer.ok && !answer.redirected ? await answer.json() : []);
  } catch {
    mine.set(user, []);
  }
  loaded();
}

/** What the hint says: the time, and each period that covers it, with its calendar. */
function sentence(lane, at, zone) {
  const day = new Intl.DateTimeFormat("en-GB", { timeZone: zone, weekday: "short", day: "numeric", month: "short" });
  const clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" });
  const lines = [`${day.format(at)}, ${clock.format(at)}`];
  for (const [start, end, kind, name] of periods(lane, () => shown && show(shown))) {
    if (start <= at && at < end) lines.push(`${KINDS[kind]} ${clock.format(start)}–${clock.format(end)}${name ? ` · ${name}` : ""}`);
  }
  return lines.join("\n");
}

// The last position of the pointer over a lane.
let shown = null;

function show({ lane, x, y }) {
  if (!lane.isConnected) return hideHint();
  const at = snapped(pointed(lane, { clientX: x, clientY: y }));
  const box = hintBox();
  box.textContent = sentence(lane, at, lane.closest("[data-picture]").dataset.zone);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const room = document.documentElement;
  const left = Math.min(x + 16, room.clientWidth - width - 8);
  const top = y + 20 + height <= room.clientHeight ? y + 20 : y - height - 12;
  box.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
}

document.addEventListener("pointermove", (event) => {
  const lane = event.pointerType === "touch" ? null : event.target.closest?.("[data-axis]");
  if (!lane) {
    shown = null;
    hideHint();
    return;
  }
  shown = { lane, x: event.clientX, y: event.clientY };
  show(shown);
});

document.addEventListener("pointerdown", () => { shown = null; hideHint(); });
document.addEventListener("scroll", hideHint, { capture: true, passive: true });

// A new picture has other periods.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.target.id === "grid") {
    periodsOf = new Map();
    hideHint();
  }
});
