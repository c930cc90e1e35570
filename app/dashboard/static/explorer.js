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
function ask(user, at) {
  const moment = document.getElementById("moment");
  if (!moment) return;
  moment.querySelector("[name=person]").value = user;
  moment.querySelector("[name=at]").value = at;
  moment.querySelector("[name=moment]").value = "";
  htmx.trigger(moment, "ask");
}

/** The place of a moment along a lane, in the lane's units. */
function along(lane, at) {
  const units = lane.viewBox.baseVal && lane.viewBox.baseVal.width ? 10 : 1;
  return intoOf(lane, at) / Number(attribute(lane, "ms")) * units;
}

function shape(lane, name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [each, value] of Object.entries(attributes)) made.setAttribute(each, value);
  lane.append(made);
}

function draw(lane, at) {
  document.querySelectorAll(".cursor").forEach((line) => line.remove());
  const [one, other] = lane.dataset.axis === "x" ? ["x", "y"] : ["y", "x"];
  const place = along(lane, at);
  shape(lane, "line", { class: "cursor", [`${one}1`]: place, [`${one}2`]: place, [`${other}1`]: 0, [`${other}2`]: "100%" });
}

/** Outline a period in a lane. */
function mark(lane, period, name) {
  const [start, end] = period.split("-").map(Number);
  const days = daysOf(lane);
  const [first, last] = [along(lane, Math.max(start, days[0][0])), along(lane, Math.min(end, days.at(-1)[1] - 1))];
  if (last <= first || end <= days[0][0]) return;
  const [from, length, across, width] = lane.dataset.axis === "x" ? ["x", "width", "y", "height"] : ["y", "height", "x", "width"];
  shape(lane, "rect", { class: name, [from]: first, [length]: last - first, [across]: "3%", [width]: "94%" });
}

/** The lanes of a person; those of all people, where the picture has no lane for their shared slots. */
function lanesFor(user) {
  const lanes = [...document.querySelectorAll("[data-picture] [data-axis]")];
  const own = lanes.filter((lane) => lane.dataset.user === user);
  return own.length || user ? own : lanes;
}

function laneAt(user, at) {
  return lanesFor(user).find((lane) => daysOf(lane).some(([start, end]) => start <= at && at < end));
}

/** Mark what the explanation is about, and the next slot; return the first verdict. */
function markAnswer() {
  document.querySelectorAll(".cause, .next-slot").forEach((each) => each.remove());
  const verdicts = [...document.querySelectorAll("#because .verdict")];
  for (const { dataset, classList } of verdicts) {
    const offered = classList.contains("yes");
    // Among several people, those who are not free.
    const isSubject = verdicts.length === 1 || !dataset.lane;
    for (const lane of lanesFor(dataset.lane)) {
      if (isSubject || !offered) for (const each of dataset.causes.split(" ").filter(Boolean)) mark(lane, each, offered ? "cause offered" : "cause");
      if (isSubject && dataset.next) mark(lane, dataset.next, "next-slot");
    }
  }
  return verdicts[0];
}

/** Move the cursor to a moment, and say where an explanation opens beside it. */
function pointTo(lane, at, focus) {
  const picture = lane.closest("[data-picture]");
  cursor.lane = lanesOf(picture).indexOf(lane);
  cursor.at = at;
  draw(lane, at);
  const line = lane.querySelector(".cursor");
  // On a phone the explanation covers the lower part of the window.
  line.scrollIntoView({ block: NARROW.matches ? "start" : "nearest", inline: "center" });
  const { right, bottom } = line.getBoundingClientRect();
  return { x: right, ...besides(lane, bottom), focus };
}

/** Open the explanation that the address asks for beside its moment. */
function openAsked() {
  const verdict = markAnswer();
  const lane = verdict && laneAt(verdict.dataset.lane, Number(verdict.dataset.at));
  if (!lane) return;
  openAnswer(document.getElementById("answer"), pointTo(lane, Number(verdict.dataset.at), false));
  say(verdict.innerText);
}

/** Say the moment of the cursor and its state, which may arrive later. */
function announce(picture) {
  const lane = lanesOf(picture)[cursor.lane];
  const when = new Intl.DateTimeFormat("en-GB", { timeZone: picture.dataset.zone, weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit" });
  const state = stateAt(lane, cursor.at, () => picture.isConnected && announce(picture));
  say(`${lane.dataset.user || "Together"}, ${when.format(cursor.at)}${state ? `: ${state}` : ""}`);
}

/** The lane and the moment a day later or earlier, at the same time of the day. */
function jump(lanes, lane, by) {
  const days = daysOf(lane);
  const along = lane.dataset.axis === "x";
  const from = Math.max(0, days.findIndex(([start, end]) => start <= cursor.at && cursor.at < end));
  const into = cursor.at === null ? 2 * STEP : cursor.at - days[from][0];
  if (!along) cursor.lane = Math.min(Math.max(cursor.lane + by * lane.parentElement.querySelectorAll("[data-axis]").length, 0), lanes.length - 1);
  const later = daysOf(lanes[cursor.lane]);
  const [start, end] = later[along ? Math.min(Math.max(from + by, 0), later.length - 1) : 0];
  cursor.at = Math.min(start + into, end - STEP);
}

/** Move the cursor along the axis by 15 minutes, an hour with Shift, or a day; across it, to the next lane. */
function move(picture, event) {
  const lanes = lanesOf(picture);
  if (!lanes.length) return;
  cursor.lane = Math.min(cursor.lane, lanes.length - 1);
  let lane = lanes[cursor.lane];
  const [back, on, before, after] = lane.dataset.axis === "x"
    ? ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
  if (event.key === "Enter") {
    if (cursor.at === null) return;
    opening = pointTo(lane, cursor.at, true);
    ask(lane.dataset.user, cursor.at);
    return;
  }
  if (![back, on, before, after, "PageUp", "PageDown"].includes(event.key)) return;
  event.preventDefault();
  if (event.key.startsWith("Page")) {
    jump(lanes, lane, event.key === "PageDown" ? 1 : -1);
    return reveal(picture, lanes[cursor.lane]);
  }
  let into = cursor.at === null ? 2 * STEP : intoOf(lane, cursor.at);
  const step = event.shiftKey ? 4 * STEP : STEP;
  if (event.key === back) into -= step;
  if (event.key === on) into += step;
  if (event.key === before) cursor.lane = Math.max(0, cursor.lane - 1);
  if (event.key === after) cursor.lane = Math.min(lanes.length - 1, cursor.lane + 1);
  lane = lanes[cursor.lane];
  const last = lengthOf(lane) - STEP;
  cursor.at = momentAt(lane, Math.round(Math.min(Math.max(into, 0), last) / STEP) * STEP);
  reveal(picture, lane);
}

function reveal(picture, lane) {
  draw(lane, cursor.at);
  lane.scrollIntoView({ block: "nearest", inline: "nearest" });
  announce(picture);
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
  opening = { x: event.clientX, ...besides(lane, event.clientY), focus: false };
  ask(lane.dataset.user, cursor.at);
});

// Where the explanation that was requested last opens; null: in its place below the picture.
let opening = null;

/** Where an explanation may begin or end: a lane that runs from left to right stays visible. */
function besides(lane, y) {
  if (lane.dataset.axis !== "x") return { y };
  const { top, bottom } = lane.getBoundingClientRect();
  return { y: bottom, above: top };
}

/** Show the explanation beside the press, within the window. */
function openAnswer(answer, { x, y, above, focus }) {
  answer.classList.add("at-press");
  const { width, height } = answer.getBoundingClientRect();
  const room = document.documentElement;
  const left = x + AWAY + width + AWAY <= room.clientWidth ? x + AWAY : Math.max(AWAY, x - AWAY - width);
  const lowest = room.clientHeight - height - AWAY;
  const top = Math.max(AWAY, above !== undefined && y + AWAY > lowest ? above - AWAY - height : Math.min(y + AWAY, lowest));
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
  markAnswer();
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

// The link to the next slot explains its start.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-moment]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const at = Number(link.dataset.moment);
  const user = link.closest(".verdict").dataset.lane;
  const lane = laneAt(user, at);
  if (!lane) return;
  event.preventDefault();
  opening = pointTo(lane, at, true);
  ask(user, at);
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

const loading = document.querySelector(".loading");
if (loading) loading.textContent = "Reading calendars …";

// Unless a time zone was chosen, use the browser's.
const zone = document.querySelector("[data-own-zone]");
if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

// A new picture has the marks of its explanation; the first one opens it.
let isFirst = !document.querySelector("[data-picture]");
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "grid") return;
  if (isFirst) openAsked();
  else markAnswer();
  isFirst = false;
  if (cursor.at === null) return;
  const lane = lanesOf(event.target)[cursor.lane];
  if (lane && cursor.at >= daysOf(lane)[0][0] && cursor.at < daysOf(lane).at(-1)[1]) draw(lane, cursor.at);
});

// A picture in the page itself.
if (document.querySelector("[data-picture]")) openAsked();
