// A label gets another name, or is merged into another label: those that it is often taken for are proposed.

import * as api from "./api.js";
import { confirmed } from "./confirm.js";
import { count, h } from "./dom.js";

const PROPOSED = 3;

export function renameForm(name, nudge) {
  let label = null;
  let labels = [];
  const old = h("span", { class: "tag" });
  const now = h("input", { id: "label-new", required: true, maxlength: 1000, autocomplete: "off", list: "label-names", placeholder: "New name", "aria-label": "New name" });
  const names = h("datalist", { id: "label-names" });
  const proposed = h("p", { class: "note row proposed", hidden: true });
  const note = h("output", { class: "outcome" });
  const form = h("form", { class: "row", onsubmit: send }, "Rename ", old, " to ", now, names, h("button", { type: "submit", class: "quiet" }, "Rename"));
  const element = h("div", { class: "rename", hidden: true }, form, proposed, note);

  async function send(event) {
    event.preventDefault();
    const [from, to] = [label, now.value];
    const merges = labels.includes(to);
    const sure = await confirmed(
      merges ? `Merge ${from} into ${to}?` : `Rename ${from} to ${to}?`,
      `The learner becomes what it would be had ${from} always been called ${to}. ${merges ? "The two cannot be told apart again" : `The name ${from} does not come back`}.`,
      merges ? "Merge" : "Rename",
    );
    if (!sure) return;
    try {
      const done = await api.rename(name, { [from]: to });
      note.className = "outcome good";
      note.textContent = done.state === "done" ? `${from} is now ${to}.` : `${from} becomes ${to}: the learner is being rebuilt.`;
      now.value = "";
      nudge();
    } catch (error) {
      note.className = "outcome bad";
      note.textContent = error.message;
    }
  }

  // What the label was taken for, and what was taken for it, most often first.
  async function propose(chosen) {
    const { labels: stated } = await api.reliability(name);
    if (chosen !== label) return;
    const mixed = new Map(Object.entries(stated[chosen]?.taken_for ?? {}));
    for (const [other, row] of Object.entries(stated)) if (row.taken_for[chosen]) mixed.set(other, (mixed.get(other) ?? 0) + row.taken_for[chosen]);
    const most = [...mixed].filter(([other]) => labels.includes(other)).sort(([, one], [, two]) => two - one).slice(0, PROPOSED);
    proposed.hidden = !most.length;
    proposed.replaceChildren("Often taken for each other: ", ...most.map(([other, n]) =>
      h("button", { type: "button", class: "link", onclick: () => { now.value = other; now.focus(); } }, `${other} (${count(n)})`)));
  }

  return {
    element,
    // The label that is chosen, and all labels.
    update(chosen, all) {
      labels = all;
      element.hidden = chosen === null;
      names.replaceChildren(...all.filter((one) => one !== chosen).map((one) => h("option", { value: one })));
      if (chosen === label) return;
      label = chosen;
      old.textContent = chosen;
      proposed.hidden = true;
      if (chosen !== null) propose(chosen).catch(() => {}); // a proposal is not worth an error
    },
  };
}
