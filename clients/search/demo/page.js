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

function row(result) {
  const item = document.createElement("li");
  const title = element("button", result.id);
  title.type = "button";
  title.addEventListener("click", () => open(item, title, result));
  item.append(title, " ", element("span", result.kind, "kind"));
  item.append(element("p", result.body.split("\n", 1)[0], "summary"));
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
  const query = at("query").value;
  const found = await guarded(() => ask(`/search?q=${encodeURIComponent(query)}`));
  if (!found) return;
  page = found;
  at("results").replaceChildren(...found.results.map(row));
  const late = found.by === "fallback" ? " in the engine's order: the service did not answer in time" : "";
  say(`${found.results.length} results${late}`);
}

const percent = (value) => (value === null ? "none yet" : `${(100 * value).toFixed(1)} %`);

function show(status) {
  const { middle, lower, upper } = status.ahead;
  at("documents").textContent = `${status.documents}`;
  at("engine").textContent = percent(status.engine.mean);
  at("learned").textContent = percent(status.learned.mean);
  at("difference").textContent = middle === null ? "unknown"
    : `${percent(middle)} (between ${percent(lower)} and ${percent(upper)}, at every look)`;
  at("verdict").textContent = status.verdict;
  at("rounds").textContent = `${status.version}`;
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
at("visitors").addEventListener("click", visitors);
refresh();
