// All learners: how far each is, and how well it does. Only rows on the screen that have moved are asked about.

import * as api from "./api.js";
import { sparkline, trailing } from "./chart.js";
import { createForm } from "./create.js";
import { count, decimal, h, keyed } from "./dom.js";

const TOGETHER = 8; // rows asked about at the same time

export function learnersPage(_, { nudge }) {
  const body = h("tbody");
  const more = h("button", { type: "button", class: "quiet", hidden: true, onclick: load }, "Show more");
  const filter = h("input", { id: "filter", type: "search", placeholder: "Filter by name", oninput: sift, autocomplete: "off" });
  const total = h("span", { class: "dim" });
  const health = h("p", { class: "note health", role: "status" });
  const compare = h("a", { class: "compare", hidden: true }, "Compare");
  const table = h("table", { class: "learners" },
    h("thead", null, h("tr", null,
      ["Learner", "Task", "Version", "Mistakes", "Recent loss", "Loss over time"].map((name, i) => h("th", { scope: "col", class: i > 1 && i < 5 ? "number" : null }, name)))),
    body);
  const empty = h("div", { class: "empty", hidden: true },
    h("p", null, "No learner yet. Create one, send feedback, and watch it here:"),
    h("pre", null, `curl -X PUT ${location.origin}/v1/learners/folders -d '{"task": "multiclass"}'\n` +
      `curl ${location.origin}/v1/learners/folders/feedback -d '{"features": ["board", "meeting"], "label": "work"}'`));
  const element = h("div", null,
    h("div", { class: "head" }, h("h1", null, "Learners"), total, compare, h("label", { for: "filter", class: "hidden" }, "Filter by name"), filter),
    health, h("section", { class: "card flush" }, table, empty), more, createForm(nudge));
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
    nudge();
  });
  const cursors = [null];
  let next = null;
  let filling = null;

  function row(entry) {
    const cells = { version: h("td", { class: "number", "data-title": "Version" }), mistakes: h("td", { class: "number", "data-title": "Mistakes" }), recent: h("td", { class: "number", "data-title": "Recent loss" }), spark: h("td", { class: "trend" }) };
    const made = h("tr", { "data-name": entry.name },
      h("th", { scope: "row" }, h("input", { type: "checkbox", "aria-label": `compare ${entry.name}`, value: entry.name, onchange: choose }), h("a", { href: `#/learners/${encodeURIComponent(entry.name)}` }, entry.name)),
      h("td", { class: "kind" }, entry.task, h("span", { class: "dim" }, entry.algorithm)),
      cells.version, cells.mistakes, cells.recent, cells.spark);
    Object.assign(made, { shown: cells, drawn: -1, entry });
    watcher.observe(made);
    return made;
  }

  // Two or more that are ticked can be looked at on one chart.
  function choose() {
    const ticked = [...body.querySelectorAll("input:checked")].map((input) => input.value);
    compare.hidden = ticked.length < 2;
    compare.href = `#/compare/${ticked.map(encodeURIComponent).join(",")}`;
    compare.textContent = `Compare ${ticked.length}`;
  }

  async function check() {
    const { ready, version, kernel } = await api.health();
    health.textContent = `${ready ? "Ready" : "Not ready: the store does not accept writes"}${version ? ` · feedrank ${version} · ${kernel} kernel` : ""}`;
    health.classList.toggle("bad", !ready);
  }

  function sift() {
    const query = filter.value.trim().toLowerCase();
    for (const one of body.children) one.hidden = !one.entry.name.toLowerCase().includes(query);
  }

  async function load() {
    cursors.push(next);
    more.disabled = true;
    await update();
    more.disabled = false;
  }

  function fill() {
    filling ??= (async () => {
      for (;;) {
        const due = [...seen].filter((one) => one.isConnected && one.drawn !== one.entry.version).slice(0, TOGETHER);
        if (!due.length) break;
        await Promise.all(due.map(look));
      }
    })().finally(() => (filling = null));
    return filling;
  }

  async function look(one) {
    const version = one.entry.version;
    one.drawn = version;
    const { progress, points } = await api.history(one.entry.name, 60).catch((error) => {
      if (error.status === 404) return { progress: {}, points: [] }; // deleted meanwhile
      throw error;
    });
    one.shown.mistakes.replaceChildren(count(progress.mistakes));
    one.shown.recent.replaceChildren(decimal(progress.recent_loss));
    const line = trailing(points, Math.max(20, (progress.rounds ?? 0) / 12));
    one.shown.spark.replaceChildren(sparkline(line, `loss over ${count(progress.rounds)} rounds, now ${decimal(line.at(-1)?.[1])}`));
  }

  async function update() {
    await check();
    const entries = [];
    for (let i = 0; i < cursors.length; i += 1) {
      const page = await api.learners(cursors[i]);
      entries.push(...page.learners);
      next = page.next;
      if (next === null) break;
    }
    keyed(body, entries, (entry) => entry.name, row, (one, entry) => {
      one.entry = entry;
      one.shown.version.textContent = count(entry.version);
    });
    total.textContent = next === null ? `${count(entries.length)} in all` : `the first ${count(entries.length)}`;
    more.hidden = next === null;
    table.hidden = !entries.length;
    empty.hidden = !!entries.length;
    sift();
    await fill();
  }

  return { element, update };
}
