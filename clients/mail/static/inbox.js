// The inbox: each message with the three folders it most likely belongs in. A click, or a digit, files it and teaches.

const EVERY = 5000; // milliseconds between looks
const list = document.getElementById("messages");
const account = document.getElementById("account");
const status = document.getElementById("status");
const done = document.getElementById("done");
const empty = document.getElementById("empty");
const rules = document.getElementById("rules");
const record = document.getElementById("record");
const shown = new Map();
const leaving = new Set(); // filed here, and perhaps still in a reply that was on its way
let wake = () => {};

// A message is addressed by UID and UIDVALIDITY: two may have one Message-ID.
const address = (message) => `${message.uidvalidity}/${message.uid}`;

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

async function ask(path, body) {
  const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
  const reply = await fetch(path, options).catch(() => {
    throw new Error("feedrank mail watch does not answer");
  });
  const payload = await reply.json();
  if (!reply.ok) throw new Error(payload.detail);
  return payload;
}

const say = (text, state) => {
  status.textContent = text;
  status.dataset.state = state;
};

function make(message) {
  const buttons = h("div", { class: "folders", role: "group", "aria-label": `Folders for ${message.subject}` });
  const date = message.date ? new Date(message.date) : null;
  const item = h("li", { tabindex: "-1" },
    h("div", { class: "line" },
      h("span", { class: "sender" }, message.sender || "unknown"),
      date && h("time", { datetime: message.date }, date.toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" })) || ""),
    h("div", { class: "subject" }, message.subject || "(no subject)"),
    h("p", { class: "excerpt" }, message.excerpt), buttons);
  return Object.assign(item, { message, buttons, top: [], folders: "" });
}

function fill(item, message, folders) {
  const key = JSON.stringify([message.top, folders]);
  if (item.folders === key) return;
  item.folders = key;
  item.top = message.top;
  const focused = item.buttons.contains(document.activeElement);
  const others = h("select", { "aria-label": "Another folder" }, h("option", { value: "" }, "another …"),
    ...folders.filter((name) => !message.top.includes(name)).map((name) => h("option", { value: name }, name)));
  // A choice by arrow keys must not file at once: only what is confirmed by Enter, or picked with the mouse, does.
  let picked = true;
  others.addEventListener("keydown", (event) => {
    picked = false;
    if (event.key === "Enter" && others.value) file(item, others.value);
  });
  others.addEventListener("pointerdown", () => (picked = true));
  others.addEventListener("change", () => picked && others.value && file(item, others.value));
  item.buttons.replaceChildren(
    ...message.top.map((name, i) => h("button", { type: "button", onclick: () => file(item, name) }, h("kbd", { "aria-hidden": "true" }, String(i + 1)), name)),
    ...(folders.length > message.top.length ? [others] : []));
  if (focused) item.focus();
}

// What was filed, and what is known of it: of filed mail that nobody opens only audits tell.
function told({ filed, fates, checked, right }) {
  const parts = [];
  if (filed) {
    const named = [["confirmed", "right"], ["corrected", "moved elsewhere"], ["undone", "taken back"], ["unjudged", "not opened for days: unjudged"]];
    const known = named.filter(([fate]) => fates[fate]).map(([fate, words]) => `${fates[fate]} ${words}`);
    parts.push(`Filed within a week: ${filed}${known.length ? ` (${known.join(", ")})` : ""}.`);
  }
  if (checked) parts.push(`Of ${checked} checked at random ${right} ${right === 1 ? "was" : "were"} right.`);
  return parts.join(" ");
}

function draw({ account: name, folders, rules: lines, record: counts, messages }) {
  account.textContent = name;
  record.textContent = told(counts);
  record.hidden = record.textContent === "";
  rules.hidden = lines.length === 0;
  rules.querySelector("ul").replaceChildren(...lines.map((line) => h("li", {}, line)));
  const kept = messages.filter((message) => !leaving.has(address(message)));
  const keys = new Set(kept.map(address));
  for (const [key, item] of shown) if (!keys.has(key)) drop(key, item);
  let before = list.firstElementChild;
  for (const message of kept) {
    let item = shown.get(address(message));
    if (!item) shown.set(address(message), (item = make(message)));
    item.message = message;
    fill(item, message, folders);
    if (item === before) before = before.nextElementSibling;
    else list.insertBefore(item, before);
  }
  empty.hidden = kept.length > 0;
}

function drop(key, item) {
  if (item.contains(document.activeElement)) (item.nextElementSibling ?? item.previousElementSibling)?.focus();
  item.remove();
  shown.delete(key);
}

async function file(item, folder) {
  const { uid, uidvalidity, subject } = item.message;
  const key = address(item.message);
  if (leaving.has(key)) return;
  leaving.add(key);
  item.classList.add("leaving");
  try {
    await ask("file", { uid, uidvalidity, folder });
    done.textContent = `“${subject || "(no subject)"}” is in ${folder}, and learned.`;
    drop(key, item);
  } catch (error) {
    leaving.delete(key);
    item.classList.remove("leaving");
    say(error.message, "lost");
  }
  wake();
}

const current = () => document.activeElement?.closest?.("#messages > li") ?? null;

function move(step) {
  const at = current();
  const next = at ? (step > 0 ? at.nextElementSibling : at.previousElementSibling) : list.firstElementChild;
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("select")) return;
  const item = current();
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "f") item?.querySelector("select")?.focus();
  else if (/^[123]$/.test(event.key) && item?.top[event.key - 1]) file(item, item.top[event.key - 1]);
  else return;
  event.preventDefault();
});

for (;;) {
  try {
    draw(await ask("inbox"));
    say("live", "live");
  } catch (error) {
    say(error.message, "lost");
  }
  await new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, EVERY);
  });
  if (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}
