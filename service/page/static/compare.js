// Several learners on one chart: the mean loss of the last rounds of each, over its own rounds or over time.

import * as api from "./api.js";
import { along, axisOf, axisSwitch } from "./axis.js";
import { chart, trailing } from "./chart.js";
import { card, count, decimal, h } from "./dom.js";

const POINTS = 240;

export function comparePage(list) {
  const names = [...new Set(list.split(",").filter(Boolean))].slice(0, 8);
  const curves = chart(`Losses of ${names.join(", ")}`);
  const axes = axisSwitch(draw);
  const rows = h("tbody");
  let all = [];
  const element = h("div", null,
    h("div", { class: "head" }, h("h1", null, "Compare"), h("a", { href: "#/" }, "All learners")),
    card("Loss of the last rounds", axes.element, curves.element, h("p", { class: "note" }, "Losses of different tasks cannot be compared.")),
    card("Now", h("table", { class: "compared" }, h("thead", null, h("tr", null,
      ["Learner", "Rounds", "Mean loss", "Recent loss"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title)))), rows)));

  function draw() {
    const points = all.map((one) => one.points);
    const axis = axisOf(...points);
    const series = all.map(({ points, progress }, i) => ({
      name: names[i],
      kind: i ? `more-${i}` : "mean",
      points: along(axis, points, trailing(points, Math.max(20, Math.round(progress.rounds / 20))).map(([, y]) => y)),
    }));
    axes.show(...points);
    const later = series.flatMap(({ points }) => points.slice(Math.floor(points.length / 20)).map(([, y]) => y));
    const places = points.flatMap((one) => one.map(axis.of));
    const from = axis.from(places);
    curves.update({ series, axis, low: 0, high: 1.1 * Math.max(0.02, ...later), from, to: Math.max(1, ...places), describe: `${names.length} learners.` });
  }

  async function update() {
    all = await Promise.all(names.map((name) => api.history(name, POINTS)));
    draw();
    rows.replaceChildren(...all.map(({ progress }, i) =>
      h("tr", null, h("th", { scope: "row" }, h("a", { href: `#/learners/${encodeURIComponent(names[i])}` }, names[i])),
        [count(progress.rounds), decimal(progress.mean_loss), decimal(progress.recent_loss)].map((text) => h("td", { class: "number" }, text)))));
  }

  return { element, update };
}
