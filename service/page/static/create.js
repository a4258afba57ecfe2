// Make a learner: the form comes from the spec's own description in /openapi.json, so it knows every field that the server knows.

import * as api from "./api.js";
import { h } from "./dom.js";

const PLAIN = ["task", "algorithm", "labels"];
const ONE_LABEL = ["binary", "multiclass", "ordinal"]; // the tasks of `loss: matrix`
const CELLS = 12; // more labels than these make no table that anyone fills in

// What each value of an enumeration means, out of "`value`: meaning; `value`: meaning".
const meanings = (text = "") =>
  Object.fromEntries(text.split(/; (?=`)/).map((part) => /^`([^`]+)`: (.*)$/s.exec(part)).filter(Boolean).map(([, value, meaning]) => [value, meaning]));

export function createForm(nudge) {
  const outcome = h("p", { class: "outcome", role: "status" });
  const name = h("input", { id: "new-name", required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}", autocomplete: "off", title: "letters, digits, dots, dashes and underscores" });
  const task = h("select", { id: "new-task", onchange: () => { explain(); tabulate(); } });
  const algorithm = h("select", { id: "new-algorithm", onchange: explain });
  const labels = h("input", { id: "new-labels", autocomplete: "off", placeholder: "separated by commas", oninput: tabulate });
  const table = h("table", { class: "costs" });
  const costs = h("details", { hidden: true }, h("summary", null, "What each mistake costs"),
    h("p", { class: "note" }, "Empty: 0 if right, 1 if wrong."), table);
  const others = h("textarea", { id: "new-others", rows: 2, spellcheck: "false", placeholder: '{"loss": "weighted"}' });
  const meaning = h("p", { class: "note" });
  const fields = h("dl", { class: "spec" });
  const form = h("form", { class: "fields", onsubmit: submit },
    h("label", { for: "new-name" }, "Name"), name,
    h("label", { for: "new-task" }, "Task"), task,
    h("label", { for: "new-algorithm" }, "Algorithm"), algorithm, meaning,
    h("label", { for: "new-labels" }, "Labels (binary: two, negative first; ordinal: all, lowest first; else optional)"), labels, costs,
    h("label", { for: "new-others" }, "Other fields, as JSON"), others,
    h("details", null, h("summary", null, "All fields"), fields),
    h("div", { class: "row" }, h("button", null, "Create")), outcome);
  const element = h("details", { class: "card create", ontoggle: open }, h("summary", null, "New learner"), form);
  let properties = null;

  async function open() {
    if (properties || !element.open) return;
    const described = await api.description();
    properties = described.paths["/v1/learners/{name}"].put.requestBody.content["application/json"].schema.properties;
    task.replaceChildren(...properties.task.enum.map((value) => h("option", { value }, value)));
    algorithm.replaceChildren(h("option", { value: "" }, "the preset"), ...properties.algorithm.enum.map((value) => h("option", { value }, value)));
    fields.replaceChildren(...Object.entries(properties).filter(([field]) => !PLAIN.includes(field)).map(([field, { description }]) =>
      h("div", null, h("dt", null, field), h("dd", null, description ?? ""))));
    explain();
  }

  function explain() {
    const text = [meanings(properties.task.description)[task.value], meanings(properties.algorithm.description)[algorithm.value]];
    meaning.textContent = text.filter(Boolean).join(". ");
  }

  const listed = () => [...new Set(labels.value.split(",").map((part) => part.trim()).filter(Boolean))];

  // One row a truth, one column a decision; what was typed stays while labels are added.
  function tabulate() {
    const names = listed();
    const typed = new Map([...table.querySelectorAll("input")].map(({ value, dataset: { truth, decision } }) => [JSON.stringify([truth, decision]), value]));
    costs.hidden = !ONE_LABEL.includes(task.value) || names.length < 2 || names.length > CELLS;
    table.replaceChildren(
      h("thead", null, h("tr", null, h("th", null, "truth \\ decision"), ...names.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, ...names.map((truth) => h("tr", null, h("th", { scope: "row" }, truth), ...names.map((decision) =>
        h("td", null, h("input", {
          type: "number", min: "0", step: "any", "aria-label": `cost of ${decision} where ${truth} is right`,
          placeholder: truth === decision ? "0" : "1", value: typed.get(JSON.stringify([truth, decision])) ?? "",
          "data-truth": truth, "data-decision": decision,
        })))))));
  }

  function matrix() {
    const entries = new Map();
    for (const { value, dataset: { truth, decision } } of table.querySelectorAll("input"))
      if (value !== "") entries.set(truth, { ...entries.get(truth), [decision]: Number(value) });
    return Object.fromEntries(entries);
  }

  async function submit(event) {
    event.preventDefault();
    outcome.className = "outcome bad";
    try {
      const names = labels.value.split(",").map((part) => part.trim()).filter(Boolean);
      const named = costs.hidden ? {} : matrix();
      const priced = Object.keys(named).length ? { algorithm: algorithm.value || "auto", loss: "matrix", matrix: named } : {};
      const spec = { task: task.value, ...(algorithm.value && { algorithm: algorithm.value }), ...(names.length && { labels: names }), ...priced, ...JSON.parse(others.value.trim() || "{}") };
      await api.create(name.value, spec);
    } catch (error) {
      if (error instanceof SyntaxError) outcome.textContent = `That is not JSON: ${error.message}`;
      else if (error instanceof api.Problem || error instanceof api.Unreachable) outcome.textContent = error.message;
      else throw error;
      return;
    }
    outcome.className = "outcome good";
    outcome.replaceChildren("Made: ", h("a", { href: `#/learners/${encodeURIComponent(name.value)}` }, name.value));
    nudge();
  }

  return element;
}
