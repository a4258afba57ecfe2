// Define an experiment: what most need as fields, all else as JSON.

import * as api from "./api.js";
import { h } from "./dom.js";

const DAY = 86400;
const VALUES = {
  "": "its first outcome",
  mean: "the mean of its values",
  total: "their total, up to a cap",
  any: "whether any was above 0",
  returns: "whether it returns",
};

export function defineForm(nudge) {
  const outcome = h("p", { class: "outcome", role: "status" });
  const name = h("input", { id: "plan-name", required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,127}", autocomplete: "off", title: "letters, digits, dots, dashes and underscores" });
  const known = h("datalist", { id: "plan-learners" });
  const arms = h("input", { id: "plan-arms", required: true, autocomplete: "off", spellcheck: "false", list: "plan-learners", placeholder: "old, new" });
  const method = h("select", { id: "plan-method", onchange: explain }, ["split", "interleave"].map((value) => h("option", { value }, value)));
  const measure = h("input", { id: "plan-measure", autocomplete: "off", spellcheck: "false", placeholder: "reward, loss, clicks@10, metric:revenue" });
  const value = h("select", { id: "plan-value", onchange: explain }, Object.entries(VALUES).map(([one, text]) => h("option", { value: one }, text)));
  const days = h("input", { id: "plan-days", type: "number", min: "0", step: "any", value: "7" });
  const cap = h("input", { id: "plan-cap", type: "number", min: "0", step: "any", value: "100" });
  const alias = h("input", { id: "plan-alias", autocomplete: "off", spellcheck: "false" });
  const share = h("input", { id: "plan-share", type: "number", min: "0", max: "100", step: "any", value: "100" });
  const others = h("textarea", { id: "plan-others", rows: 2, spellcheck: "false", placeholder: '{"guardrails": [{"measure": "zero-one", "limit": 0.02}]}' });
  const windowed = h("div", { class: "fields" }, h("label", { for: "plan-days" }, "Days since its first exposure"), days);
  const capped = h("div", { class: "fields" }, h("label", { for: "plan-cap" }, "Largest total that counts"), cap);
  const counted = h("div", { class: "fields" }, h("label", { for: "plan-value" }, "A unit counts by"), value, windowed, capped);
  const form = h("form", { class: "fields", onsubmit: submit },
    h("label", { for: "plan-name" }, "Name"), name,
    h("label", { for: "plan-arms" }, "Arms: learners of one task, separated by commas; the first serves whoever does not take part"), arms, known,
    h("label", { for: "plan-method" }, "Method: each unit has one arm, or every list is mixed from all arms"), method,
    h("label", { for: "plan-measure" }, "Measure; if empty, it follows the feedback"), measure, counted,
    h("label", { for: "plan-share" }, "Share of the units that takes part, in percent"), share,
    h("label", { for: "plan-alias" }, "Alias that a promotion switches (optional)"), alias,
    h("label", { for: "plan-others" }, "Other fields, as JSON"), others,
    h("div", { class: "row" }, h("button", null, "Start")), outcome);
  const element = h("details", { class: "card create", ontoggle: open }, h("summary", null, "New experiment"), form);
  explain();

  async function open() {
    if (!element.open || known.children.length) return;
    const { learners } = await api.learners(null);
    known.replaceChildren(...learners.map((one) => h("option", { value: one.name })));
  }

  function explain() {
    counted.hidden = method.value !== "split";
    windowed.hidden = !value.value;
    capped.hidden = value.value !== "total";
  }

  function definition() {
    const per = { window: Number(days.value) * DAY, value: value.value, ...(value.value === "total" && { cap: Number(cap.value) }) };
    return {
      arms: arms.value.split(",").map((part) => part.trim()).filter(Boolean),
      method: method.value,
      ...(measure.value.trim() && { measure: measure.value.trim() }),
      ...(method.value === "split" && value.value && { per }),
      ...(alias.value.trim() && { alias: alias.value.trim() }),
      share: Number(share.value) / 100,
      ...JSON.parse(others.value.trim() || "{}"),
    };
  }

  async function submit(event) {
    event.preventDefault();
    outcome.className = "outcome bad";
    try {
      await api.define(name.value, definition());
    } catch (error) {
      if (error instanceof SyntaxError) outcome.textContent = `That is not JSON: ${error.message}`;
      else if (error instanceof api.Problem || error instanceof api.Unreachable) outcome.textContent = error.message;
      else throw error;
      return;
    }
    outcome.className = "outcome good";
    outcome.replaceChildren("Started: ", h("a", { href: `#/experiments/${encodeURIComponent(name.value)}` }, name.value));
    nudge();
  }

  return element;
}
