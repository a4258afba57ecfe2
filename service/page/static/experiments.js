// Experiments: who is ahead, how sure that is, how it became so, and what to do about it.

import * as api from "./api.js";
import { chart } from "./chart.js";
import { card, count, decimal, h, keyed } from "./dom.js";
import { defineForm } from "./define.js";
import { forest } from "./forest.js";
import { delays, interval, shares } from "./pictures.js";
import { actions } from "./steps.js";

const TOGETHER = 10; // verdicts asked for at a look

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

// Means of the arms by day: a row a day, the last fourteen.
function byDay(title) {
  const head = h("tr");
  const rows = h("tbody");
  const element = card(title, h("table", null, h("thead", null, head), rows));
  function update(each, names) {
    element.hidden = each.length < 2;
    head.replaceChildren(h("th", { scope: "col" }, "Day"), ...names.map((arm) => h("th", { scope: "col", class: "number" }, arm)));
    rows.replaceChildren(...each.slice(-14).map((one) => h("tr", null, h("th", { scope: "row" }, count(one.day + 1)),
      names.map((arm) => h("td", { class: "number", title: plural(one.units[arm], "unit") }, decimal(one.means[arm]))))));
  }
  return { element, update };
}

export function experimentsPage() {
  const list = h("ul", { class: "experiments" });
  const empty = h("p", { class: "empty", hidden: true }, "No experiment yet. Two learners of one task make one.");
  const first = h("p", { class: "note", hidden: true }, "These are the first hundred by name.");
  const element = h("div", null, h("div", { class: "head" }, h("h1", null, "Experiments")), list, empty, first, defineForm(() => update()));
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

export function experimentPage(name) {
  const kind = h("p", { class: "dim" });
  const verdict = h("p", { class: "verdict" });
  const said = h("p");
  const why = h("p", { class: "note" });
  const arms = h("tbody");
  const opens = h("th", { scope: "col", class: "number", hidden: true }, "Open");
  const head = ["Arm", "Mean", "Units", "Rounds"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title));
  const means = h("p", { class: "note" });
  let chosen = null;
  const choose = (pair) => {
    chosen = pair;
    if (latest) draw(...latest);
  };
  const pairs = forest(choose);
  const plot = chart("Confidence sequence");
  const pairCard = card("Differences", pairs.element, h("p", { class: "note" }, "First arm minus second. An interval without 0 names the better one. Press a pair to see how its interval became narrower."));
  const plotCard = card("", plot.element);
  const parts = forest();
  const partCard = card("Segments named in advance", parts.element);
  const days = byDay("By day of the first exposure");
  const ages = byDay("By day since a unit's first exposure");
  const ratio = h("div");
  const ratioCard = card("Share of units per arm", ratio);
  const late = h("div");
  const lateCard = card("Time until feedback", late);
  const guards = h("div");
  const guardCard = card("Guardrails", guards);
  const buttons = actions(name, () => update(true));
  const element = h("div", null,
    h("div", { class: "head" }, h("div", null, h("h1", null, name), kind)),
    h("section", { class: "card" }, h("h2", null, "Verdict"), verdict, said, why, buttons.element),
    card("Arms", h("table", { class: "arms" }, h("thead", null, h("tr", null, head, opens)), arms), means),
    pairCard, plotCard, guardCard, partCard, days.element, ages.element,
    h("div", { class: "halves" }, ratioCard, lateCard));
  let shown = "";
  let latest = null;

  async function update(anyway = false) {
    const report = await api.experiment(name);
    const now = `${report.version} ${report.status} ${report.waiting}`;
    if (now === shown && !anyway) return;
    latest = [report, await api.past(name)];
    kind.textContent = `${ended(report)}, by ${report.method}; ${report.measure_in_words}; confidence ${report.confidence}; ${report.share < 1 ? `${decimal(100 * report.share)} % of the units take part; ` : ""}about ${report.target}`;
    verdict.textContent = sentence(report);
    verdict.className = `verdict ${report.verdict === "undecided" ? "" : "decided"}`;
    said.textContent = report.verdict === "undecided" ? "" : report.sentence;
    why.textContent = report.reason;
    buttons.update(report);
    showArms(report);
    draw(...latest);
    showParts(report);
    showPictures(report);
    shown = now;
  }

  function showArms(report) {
    opens.hidden = !report.definition.per;
    keyed(arms, Object.entries(report.arms), ([arm]) => arm, ([arm]) => {
      const numbers = [0, 1, 2, 3].map(() => h("td", { class: "number" }));
      return Object.assign(h("tr", null, h("th", { scope: "row" }, link(arm)), numbers), { numbers });
    }, (row, [arm, { mean, units, rounds, open }]) => {
      row.classList.toggle("winner", report.verdict === arm);
      [decimal(mean), count(units), count(rounds), count(open)].forEach((text, i) => (row.numbers[i].textContent = text));
      row.numbers[3].hidden = opens.hidden;
    });
    const each = report.rounds_per_unit === 1 ? "its first outcome" : `the mean of its first ${count(report.rounds_per_unit)} rounds`;
    const waiting = report.waiting ? ` ${plural(report.waiting, "round")} wait until their time to answer is over.` : "";
    means.textContent = report.definition.per
      ? `A unit counts once, when its window is over; what never came is 0.${report.waiting ? ` ${plural(report.waiting, "unit")} still open.` : ""}`
      : (report.definition.count === "units" ? `A unit counts by ${each}.` : report.method === "split" ? "Every round counts, and so no arm can be named." : "Every round counts.") + waiting;
  }

  const pairName = ({ arms: [one, other] }) => `${one} minus ${other}`;

  function draw(report, past) {
    const measured = report.differences.some((one) => one.difference !== null);
    pairCard.hidden = plotCard.hidden = !measured;
    if (!measured) return;
    pairs.update(report.differences.map((one) => ({
      name: pairName(one), low: one.lower, high: one.upper, at: one.difference, better: one.better, units: plural(one.units, "unit"),
    })), (chosen ??= pairName(report.differences[0])));
    const at = Math.max(0, report.differences.findIndex((one) => pairName(one) === chosen));
    const one = report.differences[at];
    const moments = past.points.map((moment) => ({ events: moment.events, ...moment.differences[at] })).filter((moment) => moment.units > 0);
    const band = moments.map((moment) => [moment.events, moment.lower, moment.upper]);
    // The first intervals are as wide as can be; the scale is that of what they have become.
    const later = band.slice(Math.floor(band.length / 8));
    const reach = Math.max(1e-6, ...later.flatMap(([, low, high]) => [Math.abs(low), Math.abs(high)])) * 1.05;
    const what = report.measure_in_words.replace(/, (lower|higher) is better$/, "");
    plotCard.querySelector("h2").textContent = `${pairName(one)} over time: ${what}`;
    plot.update({
      series: [{ name: `difference, interval at ${report.confidence}`, kind: "mean", points: moments.map((moment) => [moment.events, moment.difference]), band }],
      x: "event", low: -reach, high: reach, zero: true,
      describe: `Now ${decimal(one.difference)}, between ${decimal(one.lower)} and ${decimal(one.upper)}, by ${plural(one.units, "unit")}.`,
    });
  }

  function showParts(report) {
    partCard.hidden = !report.segments.length;
    parts.update(report.segments.map((one) => ({
      name: `${one.segment} ${one.value}: ${pairName(one)}`, low: one.lower, high: one.upper, at: one.difference, better: one.better, units: plural(one.units, "unit"),
    })));
    days.update(report.days, Object.keys(report.arms));
    ages.update(report.ages, Object.keys(report.arms));
  }

  function showPictures(report) {
    const split = report.sample_ratio !== null;
    const seen = Object.values(report.arms).some((own) => own.exposed ?? own.units);
    ratioCard.hidden = !split || !seen;
    lateCard.hidden = !split || !Object.values(report.arms).some((own) => own.answered);
    if (split) {
      ratio.replaceChildren(shares(Object.entries(report.arms).map(([arm, { units, exposed }], i) => ({ name: arm, value: exposed ?? units, expected: report.sample_ratio.expected[i] }))),
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
