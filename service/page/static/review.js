// Answer what the learner would like to be told: least sure first, by keys, several people at once by lease.

import * as api from "./api.js";
import { card, count, h } from "./dom.js";
import { learnerHead } from "./tabs.js";

const PAGE = 10;
const LEASE = 120; // seconds in which nobody else gets what is shown here
const KEYS = 9;

const percent = (share) => (share === null || share === undefined ? "" : `${(100 * share).toFixed(0)} %`);

// An instance as people read it.
function shown({ text, row, features, vector }) {
  if (text !== undefined) return typeof text === "string" ? [text] : Object.values(text);
  if (row !== undefined) return Object.entries(row).map(([column, value]) => `${column}: ${value}`);
  if (vector !== undefined) return ["a vector"];
  return [Array.isArray(features) ? features.join(" ") : Object.entries(features ?? {}).map(([name, value]) => (value === 1 ? name : `${name} ${value}`)).join(" ")];
}

export function reviewPage(name, { nudge }) {
  const kind = h("p", { class: "dim" });
  const body = h("div", { class: "instance" });
  const why = h("p", { class: "note" });
  const choices = h("ol", { class: "choices" });
  const other = h("input", { autocomplete: "off", placeholder: "another label", "aria-label": "Another label" });
  const form = h("form", { class: "row", onsubmit: named }, other, h("button", { class: "quiet" }, "Answer"));
  const undone = h("button", { type: "button", class: "quiet", onclick: undo }, "Undo (u)");
  const skip = h("button", { type: "button", class: "quiet", onclick: () => advance() }, "Skip (s)");
  const outcome = h("p", { class: "outcome", role: "status" });
  const sheet = card("What is it?", body, why, choices, form, h("div", { class: "row pager" }, skip, undone));
  const element = h("div", null, learnerHead(name, "/review", kind), outcome, sheet);
  let info = null;
  let waiting = [];
  let current = null;
  let labels = [];
  let busy = false;
  const answered = []; // ids, the last one last
  const keys = (event) => {
    if (!element.isConnected) return document.removeEventListener("keydown", keys);
    if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    if (event.key === "u") return undo();
    if (event.key === "s") return advance();
    if (labels[Number(event.key) - 1] !== undefined) return teach(labels[Number(event.key) - 1]);
    return undefined;
  };
  document.addEventListener("keydown", keys);

  const say = (text, mood = "") => {
    outcome.textContent = text;
    outcome.className = `outcome ${mood}`;
  };

  async function update() {
    info = await api.learner(name);
    const { task } = info.spec;
    kind.textContent = `${task}; what is shown to you is kept from others for ${LEASE / 60} minutes`;
    if (current === null && !busy) await fetchMore();
  }

  async function fetchMore() {
    if (["subset-ranking", "choice"].includes(info.spec.task)) return empty("Lists are answered where they are shown, by clicks or rewards.");
    const { queue } = await api.queue(name, { limit: PAGE, lease: LEASE });
    waiting = queue;
    if (!waiting.length) return empty("Nothing waits for an answer. Predictions that are remembered appear here.");
    return advance();
  }

  function empty(text) {
    current = null;
    sheet.hidden = true;
    if (!outcome.textContent || !outcome.classList.contains("good")) say(text);
  }

  function advance() {
    current = waiting.shift() ?? null;
    if (current === null) return nudge();
    sheet.hidden = false;
    body.replaceChildren(...shown(current.instance).map((part) => h("p", null, part)));
    const guess = current.label ?? current.labels?.join(", ") ?? current.ranking?.[0] ?? null;
    why.textContent = guess === null || guess === "" ? "The learner has no guess." : `The learner's guess: ${guess}${current.probability === null ? "" : `, ${percent(current.probability)} sure`}.`;
    const first = [current.label, ...(current.labels ?? []), ...(current.ranking ?? [])].filter((label) => label !== null && label !== undefined);
    labels = [...new Set([...first, ...info.labels])].slice(0, KEYS);
    choices.replaceChildren(...labels.map((label, i) =>
      h("li", null, h("button", { type: "button", class: i ? "quiet" : null, "data-label": label, onclick: () => teach(label) }, h("kbd", null, String(i + 1)), " ", label))));
    form.hidden = ["binary", "ordinal"].includes(info.spec.task) && info.labels.length <= KEYS;
    undone.hidden = !answered.length;
    return undefined;
  }

  function named(event) {
    event.preventDefault();
    const label = other.value.trim();
    other.value = "";
    if (label) teach(label);
  }

  async function teach(label) {
    if (busy || current === null) return;
    busy = true;
    const { prediction_id: id } = current;
    try {
      await api.feedback(name, { prediction_id: id, ...(["multilabel", "label-ranking"].includes(info.spec.task) ? { labels: label.split(",").map((part) => part.trim()).filter(Boolean) } : { label }) });
      answered.push(id);
      if (!info.labels.includes(label)) info.labels.push(label);
      say(`${label}. ${count(answered.length)} answered.`, "good");
      advance();
    } catch (error) {
      if (!(error instanceof api.Problem || error instanceof api.Unreachable)) throw error;
      say(error.message, "bad");
    } finally {
      busy = false;
    }
  }

  async function undo() {
    const id = answered.pop();
    if (busy || id === undefined) return;
    busy = true;
    try {
      await api.retract(name, { prediction_id: id });
      undone.hidden = !answered.length;
      say("The last answer was retracted: the learner is as if it had never come.", "good");
    } catch (error) {
      if (!(error instanceof api.Problem || error instanceof api.Unreachable)) throw error;
      answered.push(id);
      say(error.message, "bad");
    } finally {
      busy = false;
    }
  }

  return { element, update };
}
