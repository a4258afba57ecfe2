// How sure a learner can be: accuracy by stated probability, coverage at a precision, labels and what they are taken for.

import * as api from "./api.js";
import { card, count, decimal, h } from "./dom.js";
import { learnerHead } from "./tabs.js";

const LABELS = 50; // shown
const MIXED = 3; // labels that one is taken for

const percent = (share, digits = 1) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`);

const head = (...titles) => h("thead", null, h("tr", null, titles.map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title))));

const cells = (...values) => values.map((value) => h("td", { class: "number" }, value));

const bar = (value) => {
  const meter = h("meter", { min: 0, max: 1, "aria-hidden": "true" });
  meter.value = value ?? 0;
  return meter;
};

export function surePage(name) {
  const kind = h("p", { class: "dim" });
  const none = h("p", { class: "note" });
  const bins = h("tbody");
  const stated = card("When it says so, is it so?", h("p", { class: "note" }, "Decisions by the probability that was stated for them, and how many were right."),
    h("table", { class: "stated" }, head("Stated", "Right", "Mean stated", "Decisions"), bins));
  const coverage = h("tbody");
  const covered = card("How much can it decide?", h("p", { class: "note" }, "The largest share of decisions, the surest ones, that was right so often, and the probability from which they are. Proved: with confidence 95 %, at every moment."),
    h("table", null, head("Precision", "Share", "From", "Proved"), coverage));
  const labels = h("tbody");
  const confused = card("Labels", h("table", null, head("Label", "Precision", "Recall", "Events", "Taken for"), labels));
  const losses = h("tbody");
  const beside = card("Beside knowing nothing", h("table", null, head("", "Mean loss"), losses));
  const element = h("div", null, learnerHead(name, "/sure", kind), none, h("div", { class: "columns" }, h("div", null, stated, confused), h("div", null, covered, beside)));
  let version = -1;

  async function update() {
    const { version: now } = await api.history(name, 1);
    if (now === version) return;
    const reply = await api.reliability(name);
    kind.textContent = `by the decision before each of ${count(reply.events)} events${reply.since ? `, from version ${count(reply.since)} on` : ""}`;
    none.textContent = !reply.events ? "No event yet." : reply.stated ? "" : "This learner states no probabilities: there is nothing to compare with what came true.";
    stated.hidden = covered.hidden = !reply.stated;
    bins.replaceChildren(...reply.bins.map((bin) =>
      h("tr", null, h("th", { scope: "row" }, `${percent(bin.from, 0)} to ${percent(bin.to, 0)}`, bar(bin.right)), cells(percent(bin.right), percent(bin.mean), count(bin.n)))));
    coverage.replaceChildren(...reply.coverage.map((row) =>
      h("tr", null, h("th", { scope: "row" }, percent(row.precision, 0), bar(row.share)), cells(percent(row.share), row.from === null ? "–" : decimal(row.from), percent(row.proved)))));
    losses.replaceChildren(...[["this learner", reply.loss], ["always the commonest", reply.baselines.commonest], ["as last time", reply.baselines.last]].map(([title, loss]) =>
      h("tr", null, h("th", { scope: "row" }, title), cells(decimal(loss)))));
    const rows = Object.entries(reply.labels).sort(([, one], [, two]) => two.n - one.n).slice(0, LABELS);
    confused.hidden = !rows.length;
    labels.replaceChildren(...rows.map(([label, row]) =>
      h("tr", null, h("th", { scope: "row" }, label), cells(percent(row.precision), percent(row.recall), count(row.n), Object.entries(row.taken_for).slice(0, MIXED).map(([other, n]) => `${other} ${count(n)}`).join(", ")))));
    version = now;
  }

  return { element, update };
}
