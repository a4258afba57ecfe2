// Try a learner: what it says of an instance like those that it was taught with, what spoke for what, and the correction
// on the spot.

import * as api from "./api.js";
import { card, decimal, h, signed } from "./dom.js";

const TOP = 8;
const WORDS = 10;
const UNUSED = ["id", "truth", "ignore"]; // roles of columns that nothing is predicted from
const listed = (task) => task === "subset-ranking" || task === "choice";
const ITEMS = '[{"id": "a", "features": {"x": 1}},\n {"id": "b", "features": {"x": 0.5, "y": 1}}]';

export const linear = ({ kernel }) => !kernel || kernel === "linear";

// How an instance is typed in, by what the learner was taught with: raw text, its fields, items, or features.
const FORMS = {
  text: { caption: "Text", rows: 3, hint: "cheap flights to the board meeting" },
  fields: { caption: "" },
  items: { caption: "Items as JSON", rows: 6 },
  row: { caption: "" },
  vector: { caption: "Vector: a list of numbers, or the base64 of float32", rows: 3, hint: "[0.12, -0.5, 0.33]" },
  features: { caption: "Words, or features as JSON", rows: 3, hint: "cheap flights to the board meeting" },
};

const formOf = ({ task, input }, taught) => {
  if (input) return "row";
  if (listed(task)) return "items";
  if (taught?.vector !== undefined && taught.text === undefined && taught.features === undefined) return "vector";
  if (taught?.text === undefined) return "features";
  return typeof taught.text === "string" ? "text" : "fields";
};

// Words as people write them, or features as the API takes them.
export function instance(text, many) {
  const trimmed = text.trim();
  if (many || /^[[{]/.test(trimmed)) {
    const value = JSON.parse(trimmed);
    return value.features || value.items || value.text || value.vector ? value : { [many ? "items" : "features"]: value };
  }
  const counts = {};
  for (const word of trimmed.toLowerCase().match(/[\p{L}\p{N}]+(?:[._'@-][\p{L}\p{N}]+)*/gu) ?? []) counts[word] = (counts[word] ?? 0) + 1;
  return { features: counts };
}

// A list of numbers, base64, or a whole instance that has a vector in it.
const vectorOf = (text) => (text.startsWith("{") ? JSON.parse(text) : { vector: text.startsWith("[") ? JSON.parse(text) : text });

export function tryCard(name, nudge) {
  const field = h("textarea", { id: "instance", rows: 3, spellcheck: "false" });
  const fields = h("div", { class: "text-fields", hidden: true });
  const caption = h("label", { for: "instance" }, FORMS.features.caption);
  const outcome = h("p", { class: "outcome", role: "status" });
  const answer = h("form", { class: "answer" });
  const form = h("form", { onsubmit: submit }, caption, field, fields, h("div", { class: "row" }, h("button", null, "Predict"), h("span", { class: "note" }, "or Ctrl+Enter")));
  const element = card("Try it", form, outcome, answer);
  let task = "";
  let shape = "";
  let additive = true; // else there is nothing to explain: a kernel's score is no sum over features
  let current = null;
  let served = null;

  form.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && form.requestSubmit());
  answer.addEventListener("submit", (event) => {
    event.preventDefault();
    teach(marked());
  });

  const say = (text, kind = "") => {
    outcome.textContent = text;
    outcome.className = `outcome ${kind}`;
  };

  // `taught` is an instance that it has learned from, if one can be seen. What is being typed stays.
  function know({ spec }, taught) {
    task = spec.task;
    additive = linear(spec) && task !== "choice";
    const next = formOf(spec, taught);
    if (next === shape || (shape && !taught)) return;
    shape = next;
    const { caption: title, rows, hint = "" } = FORMS[shape];
    caption.textContent = title;
    caption.hidden = !title;
    const inParts = shape === "fields" || shape === "row";
    field.hidden = inParts;
    fields.hidden = !inParts;
    if (inParts) {
      const parts = shape === "fields" ? Object.keys(taught.text) : Object.keys(spec.input).filter((column) => !UNUSED.includes(spec.input[column]));
      fields.replaceChildren(...parts.map((part, i) =>
        h("div", null, h("label", { for: `field-${i}` }, part), h("textarea", { id: `field-${i}`, rows: i ? 2 : 1, "data-field": part }))));
      return;
    }
    field.rows = rows;
    field.placeholder = hint;
    if (shape === "items") field.value ||= taught?.items ? JSON.stringify(taught.items, null, 1) : ITEMS;
  }

  function typed() {
    if (shape === "fields") return { text: Object.fromEntries([...fields.querySelectorAll("[data-field]")].map((one) => [one.dataset.field, one.value])) };
    if (shape === "row") return { row: Object.fromEntries([...fields.querySelectorAll("[data-field]")].filter((one) => one.value.trim()).map((one) => [one.dataset.field, one.value])) };
    if (shape === "vector") return vectorOf(field.value.trim());
    return shape === "text" ? { text: field.value } : instance(field.value, shape === "items");
  }

  async function submit(event) {
    event.preventDefault();
    try {
      current = typed();
    } catch (error) {
      say(`That is not JSON: ${error.message}`, "bad");
      return;
    }
    if (await look()) say(strange(served.coverage));
  }

  // Predict; false if it was refused.
  async function look() {
    try {
      served = await api.predict(name, { ...current, top: TOP, explain: additive, coverage: true });
    } catch (error) {
      refused(error);
      answer.inert = true; // what is there was not said of this
      return false;
    }
    render();
    return true;
  }

  function refused(error) {
    if (!(error instanceof api.Problem || error instanceof api.Unreachable)) throw error;
    say(error.message, "bad");
  }

  // What the learner cannot know of the input.
  const strange = ({ features, known }) => (known || !features ? "" : "The learner knows no feature of this input: it gives the same prediction for every unknown input.");

  const single = () => ["binary", "multiclass", "ordinal"].includes(task);
  const closed = () => ["binary", "ordinal"].includes(task);

  function render() {
    const largest = Math.max(...served.ranking.map((entry) => Math.abs(entry.score)), 1e-12);
    const decided = served.labels ?? (served.label === undefined || served.label === null ? [] : [served.label]);
    const verdict = single() ? (served.abstained ? "The learner abstains" : served.label ?? "No label yet") : task === "multilabel" ? decided.join(", ") || "No label" : task === "choice" ? served.choice : null;
    const parts = [
      verdict && h("p", { class: "decision" }, h("strong", null, verdict), served.margin != null && h("span", { class: "dim" }, ` margin ${decimal(served.margin)}`), served.probability != null && h("span", { class: "dim" }, ` drawn with probability ${decimal(served.probability)}`)),
      h("ol", { class: "ranking" }, served.ranking.map((entry, i) => place(entry, i, largest, decided))),
      !closed() && !listed(task) && other(),
      task === "choice" && h("label", { class: "grade" }, "reward ", h("input", { type: "number", step: "any", value: "1", id: "reward" })),
      !single() && h("button", null, "Send feedback"),
    ];
    answer.replaceChildren(...parts.filter(Boolean));
    answer.inert = false;
  }

  function place(entry, i, largest, decided) {
    const title = entry.label ?? entry.id;
    const bar = h("meter", { min: 0, max: largest, value: Math.max(0, entry.score), "aria-hidden": "true" });
    const spoke = Object.entries(entry.contributions ?? {}).sort((one, two) => Math.abs(two[1]) - Math.abs(one[1]));
    const control = single()
      ? h("button", { type: "button", class: "quiet", "data-label": title, onclick: () => teach({ label: title }), "aria-label": `${title} is correct` }, "Correct")
      : task === "choice" ? h("span", { class: "dim number" }, `p ${decimal(entry.probability)}`)
      : task === "subset-ranking"
        ? h("label", { class: "grade" }, "grade ", h("input", { type: "number", min: 0, step: "any", value: "0", "data-id": title, "aria-label": `grade of ${title}` }))
        : h("label", { class: "grade" }, h("input", { type: "checkbox", "data-name": title, checked: task === "multilabel" && decided.includes(title), "aria-label": `${title} is correct` }), " correct");
    return h("li", { class: decided.includes(title) || (!decided.length && !i && !single()) ? "first" : null },
      h("div", { class: "row" }, h("span", { class: "name" }, title), bar, h("span", { class: "number" }, decimal(entry.score)), control),
      spoke.length > 0 && h("ul", { class: "spoke", "aria-label": `features for and against ${title}` },
        spoke.slice(0, WORDS).map(([word, part]) => h("li", { class: part < 0 ? "against" : "for" }, word, " ", h("span", { class: "number" }, signed(part)))),
        spoke.length > WORDS && h("li", { class: "dim" }, `and ${spoke.length - WORDS} more`)));
  }

  function other() {
    const input = h("input", { id: "other", autocomplete: "off", placeholder: single() ? "another label" : "others, separated by commas" });
    return h("div", { class: "row" }, h("label", { for: "other", class: "hidden" }, "Another label"), input, single() && h("button", { class: "quiet" }, "Correct"));
  }

  function marked() {
    const text = answer.querySelector("#other")?.value.trim() ?? "";
    if (single()) return text ? { label: text } : null;
    if (task === "choice") return { reward: Number(answer.querySelector("#reward").value) };
    if (task === "subset-ranking") {
      const grades = [...answer.querySelectorAll("[data-id]")].map((input) => [input.dataset.id, Number(input.value)]);
      return { relevance: Object.fromEntries(grades) };
    }
    const ticked = [...answer.querySelectorAll("[data-name]:checked")].map((input) => input.dataset.name);
    return { labels: [...new Set([...ticked, ...text.split(",").map((part) => part.trim()).filter(Boolean)])] };
  }

  async function teach(truth) {
    if (!truth || !served) return;
    let done;
    try {
      done = await api.feedback(name, { prediction_id: served.prediction_id, ...truth });
    } catch (error) {
      refused(error);
      return;
    }
    // The new ranking first: it replaces the field for another label, and whoever reads the outcome may type there at once.
    await look();
    say(done.mistake ? `A mistake (loss ${decimal(done.loss)})${done.updated ? "; the weights were updated" : "; no update"}. Now at version ${done.version}.`
      : `Correct${done.updated ? "; the weights were updated" : "; no update needed"}. Now at version ${done.version}.`, done.mistake ? "bad" : "good");
    nudge();
  }

  return { element, know };
}
