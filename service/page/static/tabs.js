// The pages of one learner: what it has learned, how sure it can be, and what it would like to be told.

import { h } from "./dom.js";

const PAGES = [["", "Overview"], ["/sure", "How sure can I be"], ["/review", "Review"]];

// The head of a learner's page, with the way to the others; `rest` names this one.
export function learnerHead(name, rest, kind) {
  return h("div", null,
    h("div", { class: "head" }, h("div", null, h("h1", null, name), kind)),
    h("nav", { class: "tabs", "aria-label": "Pages of this learner" }, PAGES.map(([path, title]) =>
      h("a", { href: `#/learners/${encodeURIComponent(name)}${path}`, "aria-current": path === rest ? "page" : null }, title))));
}
