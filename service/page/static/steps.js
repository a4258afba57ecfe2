// What can be done with an experiment: pause, stop, promote an arm, and take a promotion back.

import * as api from "./api.js";
import { confirmed } from "./confirm.js";
import { h } from "./dom.js";

export function actions(name, done) {
  const note = h("output", { class: "outcome" });
  const run = async (step, body) => {
    try {
      await api.step(name, step, body);
      note.className = "outcome";
      note.textContent = "";
      await done();
    } catch (error) {
      note.className = "outcome bad";
      note.textContent = error.message;
    }
  };
  const pause = h("button", { class: "quiet", onclick: () => run(pause.step) }, "Pause");
  const stop = h("button", { class: "quiet", onclick: async () => {
    if (await confirmed(`Stop ${name}?`, "From now on nothing counts, and this cannot be undone. The learners are kept, and the first arm serves all units.", "Stop")) await run("stop");
  } }, "Stop");
  const promote = h("button", { onclick: async () => {
    const arms = h("select", { id: "promote-arm" }, Object.keys(promote.report.arms).map((arm) => h("option", { selected: arm === promote.report.verdict }, arm)));
    const alias = h("input", { id: "promote-alias", value: promote.report.definition.alias ?? "", required: true, spellcheck: "false" });
    const override = h("input", { type: "checkbox", id: "promote-override" });
    const guarded = promote.report.guardrails.some((one) => !one.passed);
    const fields = h("div", { class: "fields" }, h("label", { for: "promote-arm" }, "Arm"), arms, h("label", { for: "promote-alias" }, "Alias that apps call"), alias,
      guarded ? h("label", { class: "row", for: "promote-override" }, override, "promote even though a guardrail has not passed") : null);
    const change = h("p", { class: "note" });
    // What apps get by the alias now, and what they would get.
    const explain = async () => {
      const { aliases } = await api.aliases();
      const now = aliases.find((one) => one.name === alias.value);
      change.textContent = alias.value ? `${alias.value} ${now ? `serves ${now.learner} now` : "is new"}, and would serve ${arms.value}.` : "";
    };
    arms.addEventListener("change", explain);
    alias.addEventListener("change", explain);
    fields.append(change);
    explain();
    const undecided = promote.report.verdict === "undecided" ? " The verdict is undecided." : "";
    if (await confirmed(`Promote an arm of ${name}?`, `The alias is switched at once, on all replicas, and the experiment stops.${undecided}`, "Promote", fields)) {
      await run("promote", { arm: arms.value, alias: alias.value, ...(override.checked ? { override: true } : {}) });
    }
  } }, "Promote");
  const back = h("button", { class: "quiet", hidden: true, onclick: async () => {
    const { alias, replaced } = promote.report.promotion;
    if (!(await confirmed(`Take the promotion back?`, `${alias} serves ${replaced} again, at once and on all replicas. The experiment stays stopped.`, "Roll back"))) return;
    try {
      await api.alias(alias, replaced);
      note.className = "outcome good";
      note.textContent = `${alias} serves ${replaced} again.`;
    } catch (error) {
      note.className = "outcome bad";
      note.textContent = error.message;
    }
  } }, "Roll back");
  const element = h("div", { class: "actions" }, h("div", { class: "row" }, pause, stop, promote, back), note);
  return {
    element,
    update(report) {
      promote.report = report;
      pause.step = report.status === "paused" ? "resume" : "pause";
      pause.textContent = report.status === "paused" ? "Resume" : "Pause";
      pause.hidden = stop.hidden = report.status === "stopped";
      promote.className = report.verdict === "undecided" || report.promoted ? "quiet" : "";
      const { replaced = null, arm = null } = report.promotion ?? {};
      back.hidden = replaced === null || replaced === arm;
    },
  };
}
