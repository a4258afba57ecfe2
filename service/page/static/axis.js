// What a curve runs over: rounds, or the time of the events. One choice for all charts of the visit.

import { count, h } from "./dom.js";

const [MINUTE, HOUR, DAY] = [60, 3600, 86400];
const STEPS = [1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY];

// About `most` round numbers from low to high.
export function ticks(low, high, most) {
  const raw = (high - low || 1) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) ticks.push(Math.abs(at) < step / 1e6 ? 0 : at);
  return ticks;
}

const day = (at) => at.toLocaleDateString([], { day: "numeric", month: "short" });
const clock = (at, seconds) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined });

// Moments that people would choose, counted from midnight here, each with its text.
function moments(low, high, most) {
  const step = STEPS.find((seconds) => (high - low) / seconds <= most) ?? 365 * DAY;
  const midnight = new Date(1000 * low);
  midnight.setHours(0, 0, 0, 0);
  const start = midnight.getTime() / 1000;
  const ticks = [];
  for (let at = start + Math.ceil((low - start) / step) * step; at <= high; at += step) {
    const when = new Date(1000 * at);
    ticks.push([at, step >= DAY || (when.getHours() === 0 && when.getMinutes() === 0 && step >= HOUR) ? day(when) : clock(when, step < MINUTE)]);
  }
  return ticks;
}

export const ROUNDS = {
  marks: (low, high, most) => ticks(low, high, most).filter((value) => Number.isInteger(value) && value > 0).map((value) => [value, count(value)]),
  text: (value, name = "round") => `${name} ${count(value)}`,
  of: (point) => point.rounds,
  from: () => 0,
};

export const TIME = {
  marks: moments,
  text: (value) => {
    const at = new Date(1000 * value);
    return `${day(at)}, ${clock(at, true)}`;
  },
  of: (point) => point.at,
  from: (places) => Math.min(...places),
};

let axis = ROUNDS;

// The axis of these points ([{ rounds, at }, ...]): time only where it was chosen and every curve has times.
export const axisOf = (...curves) => (axis === TIME && timed(...curves) ? TIME : ROUNDS);
export const timed = (...curves) => curves.some((points) => points.length) && curves.every((points) => points.every((point) => point.at !== null));

// [[x, y], ...] of points and their values in the same order.
export const along = (where, points, values) => points.map((point, i) => [where.of(point), values[i]]);

// Two buttons; `redraw` is called when the choice has changed.
export function axisSwitch(redraw) {
  const buttons = [["Rounds", ROUNDS], ["Time", TIME]].map(([title, value]) =>
    Object.assign(h("button", { type: "button", class: "link", onclick: () => choose(value) }, title), { axis: value }));
  const element = h("div", { class: "axes", role: "group", "aria-label": "Horizontal axis" }, buttons);

  function show(...curves) {
    element.hidden = !timed(...curves);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.axis === axis));
  }

  function choose(value) {
    axis = value;
    redraw();
  }

  return { element, show };
}
