// Experiments: who is ahead, how sure that is, and how it became so.

import * as api from "./api.js";
import { chart } from "./chart.js";
import { card, count, decimal, h, keyed } from "./dom.js";

const TOGETHER = 10; // verdicts asked for at a look
const PAIRS = 6; // charts drawn; the table has all pairs

const link = (name) => h("a", { href: `#/learners/${encodeURIComponent(name)}` }, name);

function sentence({ verdict, more_rounds: more, status }) {
  if (verdict !== "undecided") return `${verdict} is better`;
  if (status === "stopped") return "Stopped undecided";
  return more === null ? "Undecided" : `Undecided; about ${count(more)} more rounds at the present effect`;
}

export function experimentsPage() {
  const list = h("ul", { class: "experiments" });
  const empty = h("p", { class: "empty", hidden: true }, "No experiment yet: PUT /v1/experiments/NAME with two arms makes one.");
  const first = h("p", { class: "note", hidden: true }, "These are the first hundred by name.");
  const element = h("div", null, h("div", { class: "head" }, h("h1", null, "Experiments")), list, empty, first);
  let turn = 0;

  async function update() {
    const { experiments, next } = await api.experiments(null);
    keyed(list, experiments, (one) => one.name, (one) => {
      const state = h("p");
      return Object.assign(h("li", { class: "card" },
        h("h2", null, h("a", { href: `#/experiments/${encodeURIComponent(one.name)}` }, one.name)),
        h("p", { class: "dim" }, `${one.arms.join(" against ")}, by ${one.method}, measured by ${one.measure}`), state), { state });
    });
    empty.hidden = experiments.length > 0;
    first.hidden = next === null;
    // A few at each look, in turns: nobody reads a hundred verdicts a second.
    for (let i = 0; i < Math.min(TOGETHER, experiments.length); i += 1) {
      const { name } = experiments[(turn + i) % experiments.length];
      const told = await api.experiment(name).catch((error) => {
        if (error.status !== 404) throw error;
        return null; // deleted meanwhile
      });
      if (told) list.held.get(name).state.replaceChildren(h("strong", null, sentence(told)), h("span", { class: "dim" }, `, ${told.status}, ${count(told.version)} events`));
    }
    turn += TOGETHER;
  }
  return { element, update };
}

export function experimentPage(name) {
  const kind = h("p", { class: "dim" });
  const verdict = h("p", { class: "verdict" });
  const why = h("p", { class: "note" });
  const arms = h("tbody");
  const head = ["Arm", "Mean", "Units", "Rounds", "Share of units"].map((title, i) => h("th", { scope: "col", class: i && i < 4 ? "number" : null }, title));
  const pairs = h("div", { class: "pairs" });
  const element = h("div", null,
    h("div", { class: "head" }, h("div", null, h("h1", null, name), kind)),
    h("section", { class: "card" }, h("h2", null, "Verdict"), verdict, why),
    pairs,
    card("Arms", h("table", { class: "arms" }, h("thead", null, h("tr", null, head)), arms)));
  let version = -1;
  let status = "";

  async function update() {
    const told = await api.experiment(name);
    if (told.version === version && told.status === status) return;
    const past = await api.past(name);
    const { definition } = told;
    kind.textContent = `${told.status}, by ${told.method}, measured by ${told.measure} (${told.better} is better), confidence ${told.confidence}`;
    verdict.textContent = sentence(told);
    verdict.className = `verdict ${told.verdict === "undecided" ? "" : "decided"}`;
    why.textContent = told.reason + (told.promoted ? `; ${told.promoted} was promoted` : "");
    showArms(told, definition);
    showPairs(told, past);
    version = told.version;
    status = told.status;
  }

  function showArms(told, { weights, method }) {
    const units = Object.values(told.arms).reduce((sum, arm) => sum + arm.units, 0);
    const whole = Object.values(weights ?? {}).reduce((sum, weight) => sum + weight, 0);
    keyed(arms, Object.entries(told.arms), ([arm]) => arm, ([arm]) => {
      const bar = h("meter", { min: 0, max: 1, "aria-hidden": "true" });
      const share = h("span", { class: "dim" });
      const numbers = [0, 1, 2].map(() => h("td", { class: "number" }));
      return Object.assign(h("tr", null, h("th", { scope: "row" }, link(arm)), numbers, h("td", { class: "share" }, bar, share)), { bar, share, numbers });
    }, (row, [arm, { mean, units: own, rounds }]) => {
      row.classList.toggle("winner", told.verdict === arm);
      [decimal(mean), count(own), count(rounds)].forEach((text, i) => (row.numbers[i].textContent = text));
      row.bar.value = units ? own / units : 0;
      const meant = method === "split" && whole ? `, meant ${((100 * (weights[arm] ?? 0)) / whole).toFixed(0)} %` : "";
      row.share.textContent = units ? `${((100 * own) / units).toFixed(1)} %${meant}` : "–";
    });
  }

  function showPairs(told, past) {
    const drawn = told.differences.slice(0, PAIRS).map((difference, at) => ({ ...difference, at }));
    keyed(pairs, drawn, (one) => one.arms.join("\n"), (one) => {
      const plot = chart(`Confidence sequence of ${one.arms[0]} less ${one.arms[1]}`);
      return Object.assign(card(`${one.arms[0]} less ${one.arms[1]}`, plot.element), { plot });
    }, (made, one) => {
      const moments = past.points.map((moment) => moment.differences[one.at]).filter((moment) => moment.rounds > 0);
      const band = moments.map((moment) => [moment.rounds, moment.lower, moment.upper]);
      // The first intervals are as wide as can be; the scale is that of what they have become.
      const later = band.slice(Math.floor(band.length / 8));
      const reach = Math.min(1, Math.max(0.02, ...later.flatMap(([, low, high]) => [Math.abs(low), Math.abs(high)])) * 1.05);
      made.plot.update({
        series: [{ name: `difference, interval at ${told.confidence}`, kind: "mean", points: moments.map((moment) => [moment.rounds, moment.difference]), band }],
        x: "round", low: -reach, high: reach, zero: true,
        describe: `Now ${decimal(one.difference)}, between ${decimal(one.lower)} and ${decimal(one.upper)}, after ${count(one.rounds)} rounds.`,
      });
    });
  }
  return { element, update };
}
