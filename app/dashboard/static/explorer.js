"use strict";

const STEP = 15 * 60 * 1000;
// A press stands for the five minutes around it.
const SNAP = 5 * 60 * 1000;
// The distance of an explanation from the press, and from the edges of the window, in pixels.
const AWAY = 14;
const NARROW = matchMedia("(max-width: 38rem)");
// The lane and the moment that the arrow keys move, in milliseconds.
const cursor = { lane: 0, at: null };

function lanesOf(picture) {
  return [...picture.querySelectorAll("[data-axis]")];
}

/** A data attribute of a lane, else of its picture. */
function attribute(lane, name) {
  return lane.dataset[name] ?? lane.closest("[data-picture]").dataset[name];
}

/** The days of a lane in order, as pairs of start and end in milliseconds. */
function daysOf(lane) {
  return attribute(lane, "days").split(" ").map((day) => day.split("-").map(Number));
}

function lengthOf(lane) {
  return daysOf(lane).reduce((sum, [start, end]) => sum + end - start, 0);
}

function momentAt(lane, into) {
  for (const [start, end] of daysOf(lane)) {
    if (into < end - start) return start + into;
    into -= end - start;
  }
  return daysOf(lane).at(-1)[1] - 1;
}

function intoOf(lane, at) {
  let before = 0;
  for (const [start, end] of daysOf(lane)) {
    if (at < end) return before + Math.max(0, at - start);
    before += end - start;
  }
  return before;
}

function pointed(lane, event) {
  // The box of an SVG element covers its shapes only, which may be less than the whole day.
  const box = (lane.querySelector(".whole") ?? lane).getBoundingClientRect();
  const share = lane.dataset.axis === "x" ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height;
  return momentAt(lane, Math.max(0, share) * lengthOf(lane));
}

function snapped(at) {
  return Math.floor(at / SNAP) * SNAP;
}

/** Request the explanation of a moment through the fields of its form, where the user can change it. */
function ask(lane, at) {
  const moment = document.getElementById("moment");
  if (!moment) return;
  moment.querySelector("[name=person]").value = lane.dataset.user;
  moment.querySelector("[name=at]").value = snapped(at);
  moment.querySelector("[name=moment]").value = "";
  htmx.trigger(moment, "ask");
}

function draw(lane, at) {
  document.querySelectorAll(".cursor").forEach((line) => line.remove());
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const along = intoOf(lane, at) / Number(attribute(lane, "ms"));
  const units = lane.viewBox.baseVal && lane.viewBox.baseVal.width ? 10 : 1;
  const [one, other] = lane.dataset.axis === "x" ? ["x", "y"] : ["y", "x"];
  line.setAttribute("class", "cursor");
  line.setAttribute(`${one}1`, along * units);
  line.setAttribute(`${one}2`, along * units);
  line.setAttribute(`${other}1`, 0);
  line.setAttribute(`${other}2`, "100%");
  lane.append(line);
}

function announce(picture, lane, at) {
  const when = new Intl.DateTimeFormat("en-GB", { timeZone: picture.dataset.zone, weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit" });
  document.getElementById("said").textContent = `${lane.dataset.user}, ${when.format(at)}`;
}

/** Move the cursor along the axis by 15 minutes, or an hour with Shift; across it, to the next lane. */
function move(picture, event) {
  const lanes = lanesOf(picture);
  if (!lanes.length) return;
  cursor.lane = Math.min(cursor.lane, lanes.length - 1);
  let lane = lanes[cursor.lane];
  const [back, on, before, after] = lane.dataset.axis === "x"
    ? ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
  if (event.key === "Enter") {
    if (cursor.at === null) return;
    const line = document.querySelector(".cursor").getBoundingClientRect();
    opening = { x: line.left + (lane.dataset.axis === "x" ? 0 : line.width / 2), y: line.bottom, focus: true };
    ask(lane, cursor.at);
    return;
  }
  if (![back, on, before, after].includes(event.key)) return;
  event.preventDefault();
  let into = cursor.at === null ? 2 * STEP : intoOf(lane, cursor.at);
  const step = event.shiftKey ? 4 * STEP : STEP;
  if (event.key === back) into -= step;
  if (event.key === on) into += step;
  if (event.key === before) cursor.lane = Math.max(0, cursor.lane - 1);
  if (event.key === after) cursor.lane = Math.min(lanes.length - 1, cursor.lane + 1);
  lane = lanes[cursor.lane];
  const last = lengthOf(lane) - STEP;
  cursor.at = momentAt(lane, Math.round(Math.min(Math.max(into, 0), last) / STEP) * STEP);
  draw(lane, cursor.at);
  lane.scrollIntoView({ block: "nearest", inline: "nearest" });
  announce(picture, lane, cursor.at);
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches?.("[data-picture]")) move(event.target, event);
});

document.addEventListener("click", (event) => {
  const lane = event.target.closest?.("[data-axis]");
  const picture = event.target.closest?.("[data-picture]");
  if (!lane || !picture) return;
  cursor.lane = lanesOf(picture).indexOf(lane);
  cursor.at = snapped(pointed(lane, event));
  draw(lane, cursor.at);
  opening = { x: event.clientX, y: event.clientY, focus: false };
  ask(lane, cursor.at);
});

// Where the explanation that was requested last opens; null: in its place below the picture.
let opening = null;

/** Show the explanation beside the press, within the window. */
function openAnswer(answer, { x, y, focus }) {
  answer.classList.add("at-press");
  const { width, height } = answer.getBoundingClientRect();
  const room = document.documentElement;
  const left = x + AWAY + width + AWAY <= room.clientWidth ? x + AWAY : Math.max(AWAY, x - AWAY - width);
  const top = Math.max(AWAY, Math.min(y + AWAY, room.clientHeight - height - AWAY));
  answer.style.left = `${left + scrollX}px`;
  answer.style.top = `${top + scrollY}px`;
  if (focus) answer.focus({ preventScroll: !NARROW.matches });
}

/** Put the explanation back below the picture; the focus returns to the picture. */
function closeAnswer() {
  const answer = document.querySelector(".answer.at-press");
  if (!answer) return;
  const focused = answer.contains(document.activeElement);
  answer.classList.remove("at-press");
  if (focused) document.querySelector("[data-picture]").focus({ preventScroll: true });
}

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "because") return;
  const answer = event.target.closest(".answer");
  if (opening) openAnswer(answer, opening);
  else answer.classList.remove("at-press");
  opening = null;
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeAnswer();
});

// It must not cover what has the focus.
document.addEventListener("focusin", (event) => {
  if (event.target.closest?.(".answer") || !document.querySelector(".answer.at-press")) return;
  closeAnswer();
  // Below the picture it takes room, which moves what follows.
  event.target.scrollIntoView({ block: "nearest" });
});

document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-close-answer]")) closeAnswer();
  else if (!event.target.closest?.(".answer, [data-axis]")) closeAnswer();
});

// The links to other weeks change the field of the first day, which loads the new picture.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-day]");
  const field = document.getElementById("day");
  if (!link || !field || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  field.value = link.dataset.day;
  field.dispatchEvent(new Event("change", { bubbles: true }));
});

// The picture follows the controls: no button is needed.
const showButton = document.querySelector("#question [name=show]");
if (showButton) showButton.hidden = true;

// Unless a time zone was chosen, use the browser's.
const zone = document.querySelector("[data-own-zone]");
if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

// Draw the cursor again in a new picture.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "grid" || cursor.at === null) return;
  const lane = lanesOf(event.target)[cursor.lane];
  if (lane && cursor.at >= daysOf(lane)[0][0] && cursor.at < daysOf(lane).at(-1)[1]) draw(lane, cursor.at);
});
