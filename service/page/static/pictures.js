// Small pictures without axes, as SVG that scales with its card: shares, delays, an interval with a limit.

import { count, decimal, h, svg } from "./dom.js";

const WIDTH = 400;

// Bars of shares, each with a mark at the share that is expected.
export function shares(parts) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  return h("ul", { class: "picture" }, parts.map(({ name, value, expected }) => {
    const share = whole ? value / whole : 0;
    const summary = `${name}: ${count(value)} units, ${(100 * share).toFixed(1)} %, expected ${(100 * expected).toFixed(0)} %`;
    return h("li", null, h("span", { class: "row" }, h("span", { class: "word" }, name), h("span", { class: "number dim" }, `${count(value)}, ${(100 * share).toFixed(1)} %`)),
      svg("svg", { viewBox: `0 0 ${WIDTH} 12`, preserveAspectRatio: "none", class: "strip", role: "img", "aria-label": summary },
        svg("rect", { class: "ground", width: WIDTH, height: 12, rx: 2 }),
        svg("rect", { class: "filled", width: Math.max(1, share * WIDTH), height: 12, rx: 2 }),
        svg("rect", { class: "mark", x: expected * WIDTH - 1, width: 2, height: 12 })));
  }));
}

const seconds = (value) => (value === null ? "–" : value < 60 ? `${Number(value.toPrecision(2))} s` : value < 3600 ? `${Math.round(value / 60)} min` : `${Number((value / 3600).toPrecision(2))} h`);

// How many answers came within half a second, one, two, four, ...
export function delays(name, { served, answered, delays: buckets, delay_median: median, delay_90: most }) {
  const last = buckets.reduce((last, value, i) => (value ? i : last), 0);
  const kept = buckets.slice(0, Math.max(8, last + 1));
  const high = Math.max(1, ...kept);
  const wide = WIDTH / kept.length;
  const summary = answered ? `half within ${seconds(median)}, nine in ten within ${seconds(most)}` : "no answer yet";
  return h("div", { class: "picture" },
    h("span", { class: "row" }, h("span", { class: "word" }, name), h("span", { class: "number dim" }, `${count(answered)} of ${count(served)} answered`)),
    svg("svg", { viewBox: `0 0 ${WIDTH} 44`, preserveAspectRatio: "none", class: "histogram", role: "img", "aria-label": `${name}: ${summary}` },
      kept.map((value, i) => svg("rect", { class: value ? "filled" : "ground", x: i * wide + 1, y: 44 - Math.max(1, (value / high) * 42), width: wide - 2, height: Math.max(1, (value / high) * 42) }))),
    h("p", { class: "note" }, summary));
}

// An interval, with 0 and a limit.
export function interval(low, high, limit, label) {
  const reach = Math.max(0.05, Math.abs(low), Math.abs(high), Math.abs(limit)) * 1.1;
  const X = (value) => ((value + reach) / (2 * reach)) * WIDTH;
  return svg("svg", { viewBox: `0 0 ${WIDTH} 20`, preserveAspectRatio: "none", class: "strip", role: "img", "aria-label": label },
    svg("rect", { class: "ground", y: 7, width: WIDTH, height: 6, rx: 3 }),
    svg("rect", { class: "filled", x: X(low), y: 5, width: Math.max(2, X(high) - X(low)), height: 10, rx: 3 }),
    svg("rect", { class: "mark", x: X(0) - 0.75, width: 1.5, height: 20 }),
    svg("rect", { class: "limit", x: X(limit) - 1, width: 2, height: 20 }));
}
