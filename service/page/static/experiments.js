// Experiments: who is ahead, how sure that is, how it became so, and what to do about it.

import * as api from "./api.js";
import { chart } from "./chart.js";
import { card, count, decimal, h, keyed } from "./dom.js";
import { delays, interval, shares } from "./pictures.js";

const TOGETHER = 10; // verdicts asked for at a look
const PAIRS = 6; // charts drawn; the table has all pairs

const link = (name) => h("a", { href: `#/learners/${encodeURIComponent(name)}` }, name);
const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

function sentence({ verdict, more_units: units, more_rounds: rounds, status }) {
  if (verdict !== "undecided") return `${verdict} is better`;
  if (status === "stopped") return "Stopped undecided";
  if (units === null) return "Undecided";
  const more = rounds > units ? `${plural(units, "unit")}, some ${plural(rounds, "round")}` : plural(units, "unit");
  return `Undecided; about ${more} more if the difference stays the same`;
}

const ended = ({ status, promoted }) => (promoted ? `${promoted} was promoted` : status);

export function experimentsPage() {
  const list = h("ul", { class: "experiments" });
  const empty = h("p", { class: "empty", hidden: true }, "No experiment yet: PUT /v1/experiments/NAME with two arms creates one.");
  const first = h("p", { class: "note", hidden: true }, "These are the first hundred by name.");
  const element = h("div", null, h("div", { class: "head" }, h("h1", null, "Experiments")), list, empty, first);
  let turn = 0;

  async function update() {
    const { experiments, next } = await api.experiments(null);
    keyed(list, experiments, (one) => one.name, (one) => {
      const state = h("p");
      const measure = h("span", null, one.measure ?? "set by the first feedback");
      return Object.assign(h("li", { class: "card" },
        h("h2", null, h("a", { href: `#/experiments/${encodeURIComponent(one.name)}` }, one.name)),
        h("p", { class: "dim" }, `${one.arms.join(" against ")}, by ${one.method}; `, measure), state), { state, measure });
    });
    empty.hidden = experiments.length > 0;
    first.hidden = next === null;
    // A few at each look, in turns: nobody reads a hundred verdicts a second.
    for (let i = 0; i < Math.min(TOGETHER, experiments.length); i += 1) {
      const { name } = experiments[(turn + i) % experiments.length];
      const report = await api.experiment(name).catch((error) => {
        if (error.status !== 404) throw error;
        return null; // deleted meanwhile
      });
      if (!report) continue;
      const row = list.byKey.get(name);
      row.measure.textContent = report.measure_in_words;
      row.state.replaceChildren(h("strong", null, sentence(report)), h("span", { class: "dim" }, `, ${ended(report)}, ${plural(report.version, "event")}`));
    }
    turn += TOGETHER;
  }
  return { element, update };
}

// A step that cannot be taken back is asked for once more, in words that say what it does.
function confirmed(title, text, action, extra = null) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "confirm", "aria-labelledby": "confirm-title" });
    const form = h("form", { method: "dialog" },
      h("h2", { id: "confirm-title" }, title), h("p", null, text), extra,
      h("menu", null, h("button", { class: "quiet", value: "" }, "Cancel"), h("button", { value: "ok" }, action)));
    dialog.append(form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "ok");
    });
    document.body.append(dialog);
    dialog.showModal();
    form.querySelector("button").focus();
  });
}

function actions(name, done) {
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
    const undecided = promote.report.verdict === "undecided" ? " The verdict is undecided." : "";
    if (await confirmed(`Promote an arm of ${name}?`, `The alias is switched at once, on all replicas, and the experiment stops.${undecided}`, "Promote", fields)) {
      await run("promote", { arm: arms.value, alias: alias.value, ...(override.checked ? { override: true } : {}) });
    }
  } }, "Promote");
  const element = h("div", { class: "actions" }, h("div", { class: "row" }, pause, stop, promote), note);
  return {
    element,
    update(report) {
      promote.report = report;
      pause.step = report.status === "paused" ? "resume" : "pause";
      pause.textContent = report.status === "paused" ? "Resume" : "Pause";
      pause.hidden = stop.hidden = report.status === "stopped";
    },
  };
}

export function experimentPage(name) {
  const kind = h("p", { class: "dim" });
  const verdict = h("p", { class: "verdict" });
  const why = h("p", { class: "note" });
  const arms = h("tbody");
  const head = ["Arm", "Mean", "Units", "Rounds"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title));
  const means = h("p", { class: "note" });
  const pairs = h("div", { class: "pairs" });
  const ratio = h("div");
  const ratioCard = card("Share of units per arm", ratio);
  const late = h("div");
  const lateCard = card("Time until feedback", late);
  const guards = h("div");
  const guardCard = card("Guardrails", guards);
  const buttons = actions(name, () => update(true));
  const element = h("div", null,
    h("div", { class: "head" }, h("div", null, h("h1", null, name), kind)),
    h("section", { class: "card" }, h("h2", null, "Verdict"), verdict, why, buttons.element),
    pairs, guardCard,
    card("Arms", h("table", { class: "arms" }, h("thead", null, h("tr", null, head)), arms), means),
    h("div", { class: "halves" }, ratioCard, lateCard));
  let shown = "";

  async function update(anyway = false) {
    const report = await api.experiment(name);
    const now = `${report.version} ${report.status} ${report.waiting}`;
    if (now === shown && !anyway) return;
    const past = await api.past(name);
    kind.textContent = `${ended(report)}, by ${report.method}; ${report.measure_in_words}; confidence ${report.confidence}; about ${report.target}`;
    verdict.textContent = sentence(report);
    verdict.className = `verdict ${report.verdict === "undecided" ? "" : "decided"}`;
    why.textContent = report.reason;
    buttons.update(report);
    showArms(report);
    showPairs(report, past);
    showPictures(report);
    shown = now;
  }

  function showArms(report) {
    keyed(arms, Object.entries(report.arms), ([arm]) => arm, ([arm]) => {
      const numbers = [0, 1, 2].map(() => h("td", { class: "number" }));
      return Object.assign(h("tr", null, h("th", { scope: "row" }, link(arm)), numbers), { numbers });
    }, (row, [arm, { mean, units, rounds }]) => {
      row.classList.toggle("winner", report.verdict === arm);
      [decimal(mean), count(units), count(rounds)].forEach((text, i) => (row.numbers[i].textContent = text));
    });
    const each = report.rounds_per_unit === 1 ? "its first outcome" : `the mean of its first ${count(report.rounds_per_unit)} rounds`;
    const waiting = report.waiting ? ` ${plural(report.waiting, "round")} wait until their time to answer is over.` : "";
    means.textContent = (report.definition.count === "units" ? `A unit counts by ${each}.` : report.method === "split" ? "Every round counts, and so no arm can be named." : "Every round counts.") + waiting;
  }

  function showPairs(report, past) {
    const drawn = report.differences.slice(0, PAIRS).map((difference, at) => ({ ...difference, at }));
    const what = report.measure_in_words.replace(/, (lower|higher) is better$/, "");
    keyed(pairs, drawn, (one) => one.arms.join("\n"), (one) => {
      const plot = chart(`Confidence sequence of ${one.arms[0]} minus ${one.arms[1]}`);
      return Object.assign(card(`${one.arms[0]} minus ${one.arms[1]}: ${what}`, plot.element), { plot });
    }, (made, one) => {
      const moments = past.points.map((moment) => ({ events: moment.events, ...moment.differences[one.at] })).filter((moment) => moment.units > 0);
      const band = moments.map((moment) => [moment.events, moment.lower, moment.upper]);
      // The first intervals are as wide as can be; the scale is that of what they have become.
      const later = band.slice(Math.floor(band.length / 8));
      const reach = Math.min(1, Math.max(0.02, ...later.flatMap(([, low, high]) => [Math.abs(low), Math.abs(high)])) * 1.05);
      made.querySelector("h2").textContent = `${one.arms[0]} minus ${one.arms[1]}: ${what}`;
      made.plot.update({
        series: [{ name: `difference, interval at ${report.confidence}`, kind: "mean", points: moments.map((moment) => [moment.events, moment.difference]), band }],
        x: "event", low: -reach, high: reach, zero: true,
        describe: `Now ${decimal(one.difference)}, between ${decimal(one.lower)} and ${decimal(one.upper)}, by ${plural(one.units, "unit")}.`,
      });
    });
  }

  function showPictures(report) {
    const split = report.sample_ratio !== null;
    ratioCard.hidden = lateCard.hidden = !split;
    if (split) {
      ratio.replaceChildren(shares(Object.entries(report.arms).map(([arm, { units }], i) => ({ name: arm, value: units, expected: report.sample_ratio.expected[i] }))),
        h("p", { class: report.sample_ratio.mismatch ? "outcome bad" : "note" }, report.sample_ratio.mismatch
          ? "The shares of units differ from the weights: feedback of some arm is being lost."
          : `The marks show the shares set by the weights; the differences can be chance (p ${decimal(report.sample_ratio.p)}).`));
      late.replaceChildren(...Object.entries(report.arms).map(([arm, own]) => delays(arm, own)),
        h("p", { class: "note" }, "Each bar covers twice as long a time as the bar before it."));
    }
    guardCard.hidden = !report.guardrails.length;
    guards.replaceChildren(...report.guardrails.map((one) => h("div", { class: "guard" },
      h("p", null, h("strong", null, one.arm), ` against ${Object.keys(report.arms)[0]}: ${one.measure_in_words}`),
      interval(one.lower, one.upper, -one.limit, `better by ${decimal(one.lower)} to ${decimal(one.upper)}, limit ${decimal(-one.limit)}`),
      h("p", { class: one.passed ? "note" : "outcome bad" }, one.passed ? "Passed: the arm may be promoted." : one.violated ? "Violated: the arm is worse than the limit." : `May still be worse than the limit${report.promoted ? "." : ": not yet passed."}`))));
  }
  return { element, update: () => update() };
}
