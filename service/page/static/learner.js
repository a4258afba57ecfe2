// One learner: its curve beside what theory promises, its labels and their features, its log, and a form to try it.

import * as api from "./api.js";
import { along, axisOf, axisSwitch } from "./axis.js";
import { chart, trailing } from "./chart.js";
import { card, count, decimal, h, keyed, signed } from "./dom.js";
import { choiceCard, poolCard } from "./pool.js";
import { renameForm } from "./rename.js";
import { learnerHead } from "./tabs.js";
import { linear, tryCard } from "./try.js";

const POINTS = 240;
const LABELS = 1000; // asked for
const SHOWN = 20; // at a time

const tile = (name) => {
  const value = h("dd", null, "–");
  return { element: h("div", { class: "tile" }, h("dt", null, name), value), set: (text) => (value.textContent = text) };
};

// The most mistakes up to now that theory allows: each adds lambda to the dual objective D where the lemma's condition
// held, and on any instances their share of what was `promised`. It holds for all earlier rounds too, as mistakes only grow.
export function bound({ lambda, dual_objective: objective, condition_held: held, promised, mistakes }) {
  if (held && lambda > 0) return objective / lambda;
  return promised > 1e-9 ? (objective * mistakes) / promised : null;
}

export function learnerPage(name, { nudge }) {
  const kind = h("p", { class: "dim" });
  const tiles = Object.fromEntries(["Version", "Rounds", "Mistakes", "Mean loss", "Recent loss", "Features"].map((title) => [title, tile(title)]));
  const curve = chart(`Learning curve of ${name}`);
  const axes = axisSwitch(drawCurves);
  const proof = h("p", { class: "note" });
  const labels = h("tbody");
  const labelled = card("Labels", h("table", { class: "labels" },
    h("thead", null, h("tr", null, ["Label", "Events", "Mistakes"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title)))), labels));
  const more = h("p", { class: "note" });
  const search = h("input", { id: "label-search", type: "search", placeholder: "Search labels", autocomplete: "off", "aria-label": "Search labels", oninput: () => turn(0) });
  const back = h("button", { type: "button", class: "quiet", onclick: () => turn(page - 1) }, "Previous");
  const forth = h("button", { type: "button", class: "quiet", onclick: () => turn(page + 1) }, "Next");
  const pager = h("div", { class: "row pager" }, back, more, forth);
  const rename = renameForm(name, nudge);
  labelled.insertBefore(search, labelled.children[1]);
  labelled.append(pager, rename.element);
  const pool = poolCard(name);
  const choices = choiceCard();
  const features = h("ol", { class: "weights" });
  const chosen = h("span", { class: "tag" });
  const featured = card("Strongest features", h("p", { class: "note" }, "Features for and against ", chosen), features);
  const log = h("ol", { class: "events" });
  const logged = card("Recent events", log);
  const curved = card("Learning curve", axes.element, curve.element, proof);
  const example = h("pre", { hidden: true }, `curl ${location.origin}/v1/learners/${encodeURIComponent(name)}/feedback -d '{"features": ["board", "meeting"], "label": "work"}'`);
  const first = card("No event yet", h("p", { class: "note" }, "The curve, the labels and the features come with the first feedback. Try the learner below, or send an event."),
    example);
  const spec = h("dl", { class: "spec" });
  const trial = tryCard(name, nudge);
  const element = h("div", null,
    learnerHead(name, "", kind),
    h("dl", { class: "tiles" }, Object.values(tiles).map((one) => one.element)),
    h("div", { class: "columns" },
      h("div", null, first, curved, pool.element, choices.element, trial.element, logged),
      h("div", null, labelled, featured, card("Settings", spec))));
  let version = -1;
  let label = null;
  let info = null;
  let past = null;
  let counts = { labels: [], total: 0 };
  let page = 0;

  async function update() {
    const { version: now } = await api.history(name, 1);
    if (now === version) return;
    const [learner, history, latest] = await Promise.all([api.learner(name), api.history(name, POINTS), api.labels(name, LABELS)]);
    info = learner;
    past = history;
    counts = latest;
    const { task, algorithm } = learner.spec;
    kind.textContent = learner.name === name ? `${task}, ${algorithm}` : `${task}, ${algorithm}; an alias of ${learner.name}`;
    const { rounds, mistakes, mean_loss: mean, recent_loss: recent } = history.progress;
    tiles.Version.set(count(history.version));
    tiles.Rounds.set(count(rounds));
    tiles.Mistakes.set(rounds ? `${count(mistakes)} (${((100 * mistakes) / rounds).toFixed(1)} %)` : "–");
    tiles["Mean loss"].set(decimal(mean));
    tiles["Recent loss"].set(decimal(recent));
    tiles.Features.set(count(learner.features));
    drawCurves();
    showLabels();
    choices.update(learner);
    first.hidden = rounds > 0;
    example.hidden = task !== "multiclass" || learner.spec.input !== undefined;
    curved.hidden = !rounds;
    spec.replaceChildren(...Object.entries(learner.spec).filter(([field]) => field !== "labels").map(([field, value]) =>
      h("div", null, h("dt", null, h("a", { href: `docs#spec-${field}` }, field)), h("dd", null, Array.isArray(value) ? value.join(", ") : value && typeof value === "object" ? JSON.stringify(value) : String(value)))));
    await Promise.all([showWeights(), showEvents(history.version)]);
    version = history.version;
  }

  function drawCurves() {
    const axis = axisOf(past.points);
    axes.show(past.points);
    drawCurve(axis);
    pool.update(info, past, axis);
  }

  function drawCurve(axis) {
    const [{ progress, points }, { certificate }] = [past, info];
    const rounds = progress.rounds;
    const least = Math.max(20, Math.round(rounds / 20));
    const mean = along(axis, points, points.map((point) => point.mean_loss));
    const recent = along(axis, points, trailing(points, least).map(([, y]) => y));
    const most = rounds ? bound(certificate) : null;
    const proved = most !== null && most < rounds ? most : null; // more mistakes than rounds say nothing
    // The first rounds are all or nothing: the scale is that of what follows.
    const later = Math.floor(points.length / 20);
    const reached = Math.max(...mean.slice(later).map(([, y]) => y), ...recent.slice(later).map(([, y]) => y), 0.02);
    const near = proved !== null && proved / rounds < 4 * reached; // else the curve would be lost at the bottom
    const top = 1.1 * (near ? Math.max(reached, (1.2 * proved) / rounds) : reached);
    const series = [
      { name: "mean so far", kind: "mean", points: mean },
      { name: `last ${count(Math.min(least, rounds))}`, kind: "recent", points: recent, title: "mean of the last rounds" },
    ];
    if (proved !== null) series.push({ name: "proved bound", kind: "bound", points: along(axis, points, points.map((point) => proved / point.rounds)) });
    curve.element.hidden = !rounds;
    curve.update({ series, axis, from: axis.from(points.map(axis.of)), low: 0, high: top, describe: rounds ? `After ${count(rounds)} rounds the mean loss is ${decimal(progress.mean_loss)}.` : "No rounds yet." });
    proof.textContent = proved !== null ? `Proved: at most ${decimal(proved)} mistakes in these ${count(rounds)} rounds. There were ${count(certificate.mistakes)}.`
        : certificate.bound < rounds ? `Proved: its ${certificate.measure} is at most ${decimal(certificate.bound)} above that of the best expert over ${count(rounds)} rounds; so far the difference is ${signed(certificate.regret)}.`
          : "";
  }

  function turn(next) {
    page = next;
    showLabels();
  }

  // The labels that are searched for, a page of them at a time.
  function showLabels() {
    const { labels: all, total } = counts;
    labelled.hidden = ["subset-ranking", "choice"].includes(info.spec.task) || !counts.labels.length;
    const query = search.value.trim().toLowerCase();
    const matching = all.filter((one) => one.label.toLowerCase().includes(query));
    const pages = Math.max(1, Math.ceil(matching.length / SHOWN));
    page = Math.min(Math.max(page, 0), pages - 1);
    const shown = matching.slice(page * SHOWN, (page + 1) * SHOWN);
    const most = Math.max(1, ...all.map((one) => one.events));
    if (label === null || !all.some((one) => one.label === label)) label = all[0]?.label ?? null;
    keyed(labels, shown, (one) => one.label, (one) => {
      const bar = h("meter", { min: 0, "aria-hidden": "true" });
      const button = h("button", { type: "button", class: "link", onclick: () => choose(one.label) }, one.label);
      const made = h("tr", null, h("th", { scope: "row" }, button, bar), h("td", { class: "number" }), h("td", { class: "number" }));
      return Object.assign(made, { bar, button });
    }, (made, one) => {
      Object.assign(made.bar, { max: most, value: one.events });
      made.children[1].textContent = count(one.events);
      made.children[2].textContent = count(one.mistakes);
    });
    mark();
    search.hidden = all.length <= SHOWN;
    back.hidden = forth.hidden = pages < 2;
    back.disabled = page === 0;
    forth.disabled = page === pages - 1;
    more.textContent = !matching.length ? "No label contains this text."
        : pages > 1 || total > all.length ? `${count(page * SHOWN + 1)} to ${count(page * SHOWN + shown.length)} of ${count(query ? matching.length : total)}` : "";
  }

  function mark() {
    for (const row of labels.children) row.button.setAttribute("aria-pressed", String(row.button.textContent === label));
    rename.update(label, counts.labels.map((one) => one.label));
  }

  async function choose(next) {
    label = next;
    mark();
    await showWeights();
  }

  async function showWeights() {
    const listed = info.spec.task === "subset-ranking";
    featured.hidden = (!listed && label === null) || !linear(info.spec) || info.version === 0;
    if (featured.hidden) return;
    chosen.textContent = listed ? "any item" : label;
    const current = label;
    const { features: strongest } = await api.weights(name, listed ? null : label, 16);
    if (current !== label) return;
    const largest = Math.max(...strongest.map((one) => Math.abs(one.weight)), 1e-12);
    features.replaceChildren(...strongest.map(({ feature, weight }) => {
      const bar = h("span", { class: "bar" });
      bar.style.setProperty("--share", `${(50 * Math.abs(weight)) / largest}%`);
      return h("li", { class: weight < 0 ? "against" : "for" }, h("span", { class: "word" }, feature), bar, h("span", { class: "number" }, signed(weight)));
    }));
    if (!strongest.length) features.replaceChildren(h("li", { class: "dim" }, "All weights are 0."));
  }

  async function showEvents(now) {
    let events;
    try {
      events = (await api.events(name, Math.max(0, now - 12), 12)).events;
      trial.know(info, events.findLast((one) => one.instance)?.instance);
    } catch (error) {
      if (error.status !== 403 && error.status !== 410) throw error;
      trial.know(info);
      log.replaceChildren(h("li", { class: "dim" }, error.status === 403 ? "To see the log, use a key with the scope admin." : error.message));
      return;
    }
    logged.hidden = !events.length;
    keyed(log, events.reverse(), (one) => one.version, line, (made, one) => made.classList.toggle("gone", !!one.retracted));
  }

  return { element, update };
}

const names = (features) => (Array.isArray(features) ? features.map(String) : Object.keys(features ?? {}));

// Of a list, or of the base64 of float32.
const lengthOf = (vector) => (typeof vector === "string" ? Math.floor((vector.replace(/=+$/, "").length * 3) / 16) : vector.length);

// An instance in a few words.
function shortly({ text, items, features, row, vector }) {
  if (row !== undefined) return Object.values(row).filter((value) => value !== null).join(" ").slice(0, 200);
  if (vector !== undefined && text === undefined && features === undefined && !items) return `a vector of ${count(lengthOf(vector))} numbers`;
  if (text !== undefined) return (typeof text === "string" ? text : Object.values(text).join(" ")).slice(0, 200);
  if (!items) return names(features).slice(0, 24).join(" ");
  const ids = items.ids ?? items.map((item) => item.id);
  return `${ids.length} items: ${ids.slice(0, 8).join(", ")}`;
}

// What a truth says, in a few words.
function truthText({ label, labels, relevance, clicks, reward }) {
  if (reward !== undefined) return `reward ${decimal(reward)}`;
  if (label !== undefined) return label;
  if (labels) return labels.join(", ") || "none";
  if (clicks) return `clicked ${clicks.join(", ") || "nothing"}`;
  return Object.entries(relevance ?? {}).map(([name, grade]) => `${name} ${grade}`).join(", ");
}

const renames = (pairs) => Object.entries(pairs).map(([old, now]) => `renamed ${old} to ${now}`).join(", ");

function line(event) {
  const { instance = {}, truth, served } = event;
  const shown = served?.label ?? served?.labels?.join(", ") ?? served?.id;
  const at = new Date(event.at * 1000);
  return h("li", null,
    h("span", { class: "number dim" }, count(event.version)),
    h("time", { class: "dim", datetime: at.toISOString() }, at.toLocaleTimeString()),
    h("span", { class: "truth" }, truth ? h("span", { class: "tag" }, truthText(truth)) : event.rename ? renames(event.rename) : event.kind === "erased" ? "erased" : `retracted ${event.retracts}`,
      truth && shown && shown !== truthText(truth) && h("span", { class: "dim" }, ` served ${shown}`)),
    h("span", { class: "words dim" }, shortly(instance)));
}
