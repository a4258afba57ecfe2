// All learners, a page at a time or by name: how far each is, and how well it does. Only rows on the screen that have moved
// are asked about.

import * as api from "./api.js";
import { sparkline, trailing } from "./chart.js";
import { createForm } from "./create.js";
import { count, decimal, h, keyed } from "./dom.js";

const TOGETHER = 8; // rows asked about at the same time
const SHOWN = 50; // rows of a page
const TAKEN = 1000; // names that a search asks for at a time
const MOST = 20000; // names that a search looks through
const FRESH = 5000; // milliseconds for which they are not asked for again

export function learnersPage(_, { nudge }) {
  const body = h("tbody");
  const back = h("button", { type: "button", class: "quiet", onclick: () => turn(page - 1) }, "Previous");
  const where = h("span", { class: "note" });
  const forth = h("button", { type: "button", class: "quiet", onclick: () => turn(page + 1) }, "Next");
  const pager = h("div", { class: "row pager", hidden: true }, back, where, forth);
  const filter = h("input", { id: "filter", type: "search", placeholder: "Search by name", oninput: () => turn(0), autocomplete: "off" });
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
    h("div", { class: "head" }, h("h1", null, "Learners"), total, compare, h("label", { for: "filter", class: "hidden" }, "Search by name"), filter),
    health, h("section", { class: "card flush" }, table, empty), pager, createForm(nudge));
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
    nudge();
  });
  const cursors = [null]; // of each page that was reached
  let page = 0;
  let all = { at: 0, entries: [] }; // what a search looks through
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

  function turn(next) {
    page = Math.max(0, next);
    back.disabled = forth.disabled = true;
    nudge();
  }

  // The learners of this page, and whether there are more; of a search those whose names have it in them.
  async function listed() {
    const query = filter.value.trim().toLowerCase();
    if (!query) {
      const { learners, next } = await api.learners(cursors[page], SHOWN);
      if (next !== null) cursors[page + 1] = next;
      return { entries: learners, more: next !== null, total: next === null && !page ? learners.length : null };
    }
    if (Date.now() - all.at > FRESH) {
      const entries = [];
      let cursor = null;
      do {
        const { learners, next } = await api.learners(cursor, TAKEN);
        entries.push(...learners);
        cursor = next;
      } while (cursor !== null && entries.length < MOST);
      all = { at: Date.now(), entries };
    }
    const matching = all.entries.filter((one) => one.name.toLowerCase().includes(query));
    return { entries: matching.slice(page * SHOWN, (page + 1) * SHOWN), more: matching.length > (page + 1) * SHOWN, total: matching.length, query };
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
    const asked = page;
    const { entries, more, total: known, query } = await listed();
    if (asked !== page) return;
    if (!entries.length && page) return turn(page - 1); // the last ones are gone
    keyed(body, entries, (entry) => entry.name, row, (one, entry) => {
      one.entry = entry;
      one.shown.version.textContent = count(entry.version);
    });
    const [first, last] = [page * SHOWN + 1, page * SHOWN + entries.length];
    total.textContent = query ? `${count(known)} with this in their name` : known !== null ? `${count(known)} in all` : "";
    where.textContent = `${count(first)} to ${count(last)}${known !== null ? ` of ${count(known)}` : ""}`;
    pager.hidden = !more && !page;
    back.disabled = page === 0;
    forth.disabled = !more;
    table.hidden = !entries.length;
    empty.hidden = entries.length > 0 || query !== undefined;
    await fill();
  }

  return { element, update };
}
