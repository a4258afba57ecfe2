"use strict";

const at = (id) => document.getElementById(id);
let page = null;

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const reply = await fetch(path, options);
  const value = await reply.json();
  if (!reply.ok) throw new Error(value.error);
  return value;
}

function say(text) {
  at("message").textContent = text;
}

// Whatever comes from documents is text, never markup.
function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// The first paragraph, cut at a word, without the marks of its markup.
function summary(body) {
  const text = body.split(/\n\s*\n/, 1)[0].replaceAll("``", "").replace(/\s+/g, " ");
  return text.length <= 160 ? text : `${text.slice(0, 160).replace(/\s\S*$/, "")} …`;
}

function row(result, place) {
  const item = document.createElement("li");
  const title = element("button", result.id);
  title.type = "button";
  title.addEventListener("click", () => open(item, title, result));
  const moved = result.engine - (place + 1);
  if (moved !== 0) {
    const change = element("span", `${moved > 0 ? "▲" : "▼"} engine's ${result.engine}`, moved > 0 ? "moved up" : "moved");
    change.title = `${Math.abs(moved)} ${moved > 0 ? "above" : "below"} its place in the engine's order`;
    item.append(change);
  }
  item.append(title, " ", element("span", result.kind, "kind"));
  item.append(element("p", summary(result.body), "summary"));
  return item;
}

async function open(item, title, result) {
  const text = item.querySelector("pre");
  if (text) {
    text.remove();
    return;
  }
  item.append(element("pre", result.body));
  if (page.prediction_id === null) return;
  const done = await guarded(() => ask("/click", { prediction_id: page.prediction_id, id: result.id }));
  if (done && done.learned) {
    title.classList.add("clicked");
    await refresh();
  }
}

async function guarded(work) {
  try {
    return await work();
  } catch (error) {
    say(`That did not work: ${error.message}`);
    return null;
  }
}

async function search(event) {
  event.preventDefault();
  await find(at("query").value);
}

async function find(query) {
  const reply = await guarded(() => ask(`/search?q=${encodeURIComponent(query)}`));
  if (!reply) return;
  page = reply;
  at("results").replaceChildren(...reply.results.map(row));
  const by = {
    fallback: "in the engine's order: the service did not answer in time",
    engine: "in the engine's order",
    mixed: "interleaved from the engine's order and the learned order",
    learned: "in the learned order",
  };
  say(`${reply.results.length} results ${by[reply.by]}. Open one: the click teaches.`);
}

function tell(lesson) {
  at("lesson").hidden = !lesson;
  at("lesson").textContent = lesson || "";
}

// Evidence multiplies, so a bar of it is drawn by its logarithm: from 1, nothing, to what is needed.
function weigh(name, value, needed) {
  const part = Math.max(0, Math.min(1, Math.log(value) / Math.log(needed)));
  at(name).ariaValueNow = part.toFixed(2);
  at(name).firstElementChild.style.width = `${100 * part}%`;
}

const percent = (value, digits = 0) => (value === null ? "none yet" : `${(100 * value).toFixed(digits)} %`);

function show(status) {
  const { middle, lower, upper } = status.ahead;
  at("documents").textContent = `${status.documents}`;
  at("engine").textContent = percent(status.engine.mean, 1);
  at("learned").textContent = percent(status.learned.mean, 1);
  // All three numbers are of the order that is ahead.
  const [leader, least, most] = middle < 0 ? ["The engine", -upper, -lower] : ["Learned", lower, upper];
  at("ahead").textContent = middle === null ? "No interleaved page yet."
    : `${leader} is ahead by ${percent(Math.abs(middle), 1)} of the clicks, with 95 % confidence between ${percent(least, 1)} and ${percent(most, 1)}.`;
  const hand = status.handover;
  weigh("safety", hand.proved ? hand.needed : hand.safety, hand.needed);
  at("safe").textContent = hand.proved ? "Proved: the learned order does not lose clicks, so it is shown."
    : `Evidence ${hand.safety.toFixed(1)} of the ${hand.needed.toFixed(0)} needed to prove that the learned order does not lose clicks`;
  weigh("evidence", hand.better ? hand.needed : hand.evidence, hand.needed);
  at("better").textContent = hand.better ? "Proved: the learned order has clicked items higher up."
    : `Evidence ${hand.evidence.toFixed(1)} of ${hand.needed.toFixed(0)}`;
  const [, second, third] = hand.examination.curve;
  at("looks").textContent = hand.examination.clicks
    ? `Estimated from clicks: visitors look at position 2 about ${percent(second)} as often as at position 1, at position 3 ${percent(third)}.` : "";
  const engine = 1 - hand.drafted - hand.share;
  at("share-engine").style.flexGrow = engine;
  at("share-mixed").style.flexGrow = hand.drafted;
  at("share-learned").style.flexGrow = hand.share;
  at("pages").textContent = `${status.version}`;
  at("shares").textContent = engine === 1 ? "all in the engine's order, until 20 pages have clicks"
    : [[engine, "the engine's order"], [hand.drafted, "interleaved"], [hand.share, "learned"]]
      .filter(([share]) => share > 0).map(([share, whose]) => `${percent(share)} ${whose}`).join(", ");
  at("summary").textContent = status.learned.mean === null ? "engine against learned: no interleaved page yet"
    : `clicks: engine ${percent(status.engine.mean)}, learned ${percent(status.learned.mean)}; ${percent(hand.share)} of pages learned`;
  at("alarm").hidden = !hand.alarm;
  at("alarm").textContent = hand.alarm || "";
  tell(status.lessons[0]);
  at("past").hidden = status.lessons.length < 2;
  at("lessons").replaceChildren(...status.lessons.slice(1).map((lesson) => element("li", lesson)));
}

async function refresh() {
  const status = await guarded(() => ask("/status"));
  if (status) show(status);
}

async function visitors() {
  at("visitors").disabled = true;
  const status = await guarded(() => ask("/visitors", { count: 50 }));
  if (status) show(status);
  at("visitors").disabled = false;
}

at("form").addEventListener("submit", search);
for (const one of at("tries").querySelectorAll("button")) {
  one.addEventListener("click", () => {
    at("query").value = one.textContent;
    find(one.textContent);
  });
}
at("visitors").addEventListener("click", visitors);
refresh();
