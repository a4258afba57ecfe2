// Several intervals under each other on one scale, with 0: one row each, which may be chosen.

import { decimal, h, keyed, svg } from "./dom.js";

const [WIDTH, HEIGHT] = [400, 24];

// rows: [{ name, low, high, at, better, units }]; `choose(name)` when one is pressed, if there is anything to choose.
export function forest(choose = null) {
  const list = h("ul", { class: "forest" });
  const scale = h("p", { class: "row note scale", "aria-hidden": "true" });
  const element = h("div", null, list, scale);

  function strip({ low, high, at, better }, reach, label) {
    const X = (value) => Math.max(0, Math.min(WIDTH, ((value + reach) / (2 * reach)) * WIDTH));
    return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "strip", role: "img", "aria-label": label },
      svg("line", { class: "zero", x1: X(0), x2: X(0), y1: 0, y2: HEIGHT }),
      svg("rect", { class: better ? "sure" : "filled", x: X(low), y: 9, width: Math.max(2, X(high) - X(low)), height: 6, rx: 3 }),
      at === null ? null : svg("rect", { class: "mark", x: X(at) - 2, y: 5, width: 4, height: 14 }));
  }

  function update(rows, chosen = null) {
    const ends = rows.flatMap(({ low, high }) => [Math.abs(low), Math.abs(high)]);
    const reach = Math.max(1e-9, ...ends) * 1.02;
    keyed(list, rows, ({ name }) => name, ({ name }) => {
      const heading = choose ? h("button", { type: "button", class: "link", onclick: () => choose(name) }, name) : h("span", null, name);
      const picture = h("div");
      const figures = h("span", { class: "number" });
      return Object.assign(h("li", null, heading, picture, figures), { heading, picture, figures });
    }, (made, row) => {
      const text = row.at === null ? "no units yet" : `${decimal(row.at)} [${decimal(row.low)}, ${decimal(row.high)}]`;
      if (choose) made.heading.setAttribute("aria-pressed", String(row.name === chosen));
      made.classList.toggle("sure", Boolean(row.better));
      made.picture.replaceChildren(strip(row, reach, `${row.name}: ${text}`));
      made.figures.textContent = text;
      made.figures.title = row.units ?? "";
    });
    scale.replaceChildren(...[-reach, 0, reach].map((value) => h("span", null, decimal(value))));
  }
  return { element, update };
}
