// Several learners on one chart: the mean loss of the last rounds of each, over its own rounds.

import * as api from "./api.js";
import { chart, trailing } from "./chart.js";
import { card, count, decimal, h } from "./dom.js";

const POINTS = 240;

export function comparePage(list) {
  const names = [...new Set(list.split(",").filter(Boolean))].slice(0, 8);
  const curves = chart(`Losses of ${names.join(", ")}`);
  const rows = h("tbody");
  const element = h("div", null,
    h("div", { class: "head" }, h("h1", null, "Compare"), h("a", { href: "#/" }, "All learners")),
    card("Loss of the last rounds", curves.element, h("p", { class: "note" }, "Losses of different tasks have different scales.")),
    card("Now", h("table", { class: "compared" }, h("thead", null, h("tr", null,
      ["Learner", "Rounds", "Mean loss", "Recent loss"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title)))), rows)));

  async function update() {
    const all = await Promise.all(names.map((name) => api.history(name, POINTS)));
    const series = all.map(({ points, progress }, i) => ({
      name: names[i],
      kind: i ? `more-${i}` : "mean",
      points: trailing(points, Math.max(20, Math.round(progress.rounds / 20))),
    }));
    const later = series.flatMap(({ points }) => points.slice(Math.floor(points.length / 20)).map(([, y]) => y));
    const last = Math.max(1, ...all.map(({ progress }) => progress.rounds));
    curves.update({ series, x: "round", low: 0, high: 1.1 * Math.max(0.02, ...later), to: last, describe: `${names.length} learners.` });
    rows.replaceChildren(...all.map(({ progress }, i) =>
      h("tr", null, h("th", { scope: "row" }, h("a", { href: `#/learners/${encodeURIComponent(names[i])}` }, names[i])),
        [count(progress.rounds), decimal(progress.mean_loss), decimal(progress.recent_loss)].map((text) => h("td", { class: "number" }, text)))));
  }

  return { element, update };
}
