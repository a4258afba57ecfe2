// Which page is shown, and the one loop that keeps it up with the server.

import { Problem, Unreachable, ask } from "./api.js";
import { h } from "./dom.js";
import { comparePage } from "./compare.js";
import { experimentPage, experimentsPage } from "./experiments.js";
import { learnerPage } from "./learner.js";
import { learnersPage } from "./learners.js";
import { reviewPage } from "./review.js";
import { surePage } from "./sure.js";

const EVERY = 1000; // milliseconds between looks
const main = document.getElementById("main");
const status = document.getElementById("status");
const pages = [
  [/^#\/learners\/([^/]+)$/, learnerPage],
  [/^#\/learners\/([^/]+)\/sure$/, surePage],
  [/^#\/learners\/([^/]+)\/review$/, reviewPage],
  [/^#\/compare\/([^/]+)$/, comparePage],
  [/^#\/experiments\/([^/]+)$/, experimentPage],
  [/^#\/experiments$/, experimentsPage],
  [/^/, learnersPage],
];
let shown = 0;
let wake = () => {};

// Look again now, not at the next turn.
const nudge = () => wake();

const pause = (time) =>
  new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, time);
  });

const visible = () =>
  new Promise((resolve) => {
    if (!document.hidden) resolve();
    else document.addEventListener("visibilitychange", resolve, { once: true });
  });

// While nobody replies, an old prediction is neither new nor to be corrected.
function say(state, text) {
  for (const answer of document.querySelectorAll(".answer")) answer.inert = state === "lost" || (answer.inert && state !== "live");
  if (status.textContent !== text) status.textContent = text;
  status.dataset.state = state;
}

async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return; // a place on this page
  const turn = (shown += 1);
  const [, make, match] = pages.map(([shape, page]) => [shape, page, shape.exec(location.hash)]).find(([, , match]) => match);
  const name = match[1] && decodeURIComponent(match[1]);
  document.title = name ? `${name} · feedrank` : "feedrank";
  for (const link of document.querySelectorAll("nav a")) {
    const at = link.getAttribute("href") === "#/experiments" ? /^#\/experiments/ : /^(#\/((learners|compare).*)?)?$/;
    if (link.hash && at.test(location.hash)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const view = make(name, { nudge });
  main.replaceChildren(view.element);
  window.scrollTo(0, 0);
  let failures = 0;
  while (turn === shown) {
    try {
      await view.update();
      if (turn !== shown) return;
      failures = 0;
      say("live", "live");
    } catch (error) {
      if (turn !== shown) return;
      if (!(error instanceof Problem || error instanceof Unreachable)) throw error;
      failures += 1;
      trouble(error);
      if (error instanceof Problem && error.status >= 400 && error.status < 500) return;
    }
    await pause(EVERY * Math.min(2 ** failures, 16));
    await visible();
  }
}

// A lasting error replaces the page; one that may pass is shown beside it.
function trouble(error) {
  if (error instanceof Unreachable || error.status >= 500) return say("lost", `${error.message}; trying again`);
  say("refused", "");
  const again = async () => (await ask()) && show();
  return main.replaceChildren(
    h("section", { class: "card empty" },
      h("h1", null, { 401: "A key is needed", 403: "This key has no access to this page", 404: "Not found" }[error.status] ?? "Refused"),
      h("p", null, error.message),
      error.status === 404 ? h("a", { href: "#/" }, "All learners") : h("button", { type: "button", onclick: again }, "Enter a key")),
  );
}

addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
show();
