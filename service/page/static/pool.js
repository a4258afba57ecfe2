// What a learner is made of: the experts of a pool beside the pool itself, its drift alarm, and the items of a choice.

import { along } from "./axis.js";
import { chart } from "./chart.js";
import { card, count, decimal, h } from "./dom.js";
import { interval } from "./pictures.js";

const percent = (share) => `${(100 * share).toFixed(1)} %`;

const share = (value) => {
  const bar = h("meter", { min: 0, max: 1, "aria-hidden": "true" });
  bar.value = value;
  return bar;
};

// The experts by weight, and their mean loss from the first round on; not those that had no word yet, such as of vectors.
export function poolCard(name) {
  const curves = chart(`Experts of ${name}`);
  const rows = h("tbody");
  const alarm = h("p", { class: "note", role: "status" });
  const element = card("Experts", curves.element,
    h("table", { class: "experts" },
      h("thead", null, h("tr", null, ["Expert", "Weight", "Mean loss"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title)))), rows),
    alarm);

  function update({ experts: all, drift, progress }, { experts: names, points }, axis) {
    const experts = (all ?? []).filter((one) => one.mean_loss !== null);
    element.hidden = !experts.length;
    if (element.hidden) return;
    const heard = names.map((title, i) => [title, i]).filter(([title]) => experts.some((one) => one.name === title));
    const drawn = (losses) => along(axis, points, losses).filter(([, y]) => y !== null && y !== undefined);
    const series = [
      { name: "the pool", kind: "mean", points: drawn(points.map((point) => point.mean_loss)) },
      ...heard.map(([title, i], place) => ({ name: title, kind: `more-${place + 1}`, points: drawn(points.map((point) => point.experts[i])) })),
    ];
    curves.element.hidden = !points.length;
    // As in the learning curve, the first rounds do not set the scale.
    const later = series.flatMap((one) => one.points.slice(Math.floor(one.points.length / 20)).map(([, y]) => y));
    if (points.length) curves.update({ series, axis, from: axis.from(points.map(axis.of)), low: 0, high: 1.1 * Math.max(0.02, ...later), describe: `The mean loss of the pool is ${decimal(progress.mean_loss)}.` });
    rows.replaceChildren(...experts.sort((one, two) => two.weight - one.weight).map((one) =>
      h("tr", null, h("th", { scope: "row" }, one.name, share(one.weight)), h("td", { class: "number" }, percent(one.weight)), h("td", { class: "number" }, decimal(one.mean_loss)))));
    alarm.hidden = !drift;
    alarm.className = drift?.alarms ? "outcome bad" : "note";
    alarm.textContent = drift?.alarms
      ? `Drift: the stream changed ${drift.alarms === 1 ? "once" : `${count(drift.alarms)} times`}, last detected at round ${count(drift.last_alarm)}.`
      : "No drift detected.";
  }

  return { element, update };
}

// What was chosen, what it earned, and whether the apprentice is released.
export function choiceCard() {
  const lines = h("p");
  const rows = h("tbody");
  const apprentice = h("div", { class: "guard" });
  const element = card("Choices", lines,
    h("table", { class: "chosen" }, h("thead", null, h("tr", null, ["Item", "Share", "Mean reward"].map((title, i) => h("th", { scope: "col", class: i ? "number" : null }, title)))), rows),
    apprentice);

  function update({ choice, progress }) {
    element.hidden = !choice;
    if (!choice) return;
    lines.textContent = progress.rounds ? `Mean reward ${decimal(choice.mean_reward)}; ${percent(choice.explored)} of the choices were explored.` : "No reward yet.";
    rows.replaceChildren(...choice.items.map((one) =>
      h("tr", null, h("th", { scope: "row" }, one.id, share(one.share)), h("td", { class: "number" }, percent(one.share)), h("td", { class: "number" }, decimal(one.mean_reward)))));
    const trial = choice.apprentice;
    apprentice.hidden = !trial?.share;
    if (apprentice.hidden) return;
    const summary = `mean reward minus that of your first item: between ${decimal(trial.lower)} and ${decimal(trial.upper)}`;
    apprentice.replaceChildren(
      h("p", null, trial.released ? `Released at version ${count(trial.released)}: the learner serves ${percent(trial.share)} of the rounds, your first item the others.` : `Apprentice: your first item is served in ${percent(1 - trial.share)} of the rounds.${trial.taken_back ? ` At version ${count(trial.taken_back)} the release was taken back.` : ""}`),
      interval(trial.lower, trial.upper, -0.01, summary),
      h("p", { class: "note" }, `The ${summary} (95 %, valid at every look), from ${count(trial.rounds)} rounds.`));
  }

  return { element, update };
}
