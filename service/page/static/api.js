// The public API of the server that this page came from. The key lives in this module and nowhere else.

let key = null;
let asking = null;
let declined = false;

export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? document.title ?? `the server replied ${status}`);
    this.status = status;
  }
}

export class Unreachable extends Error {
  constructor() {
    super("no reply from the server");
  }
}

// Ask for a key, once for all calls that wait for one. False if the person would rather not.
export function ask() {
  declined = false;
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("ask");
    const input = document.getElementById("ask-key");
    if (key !== null) document.getElementById("ask-why").textContent = "The server refused that key. Enter another one.";
    document.getElementById("ask-cancel").onclick = () => dialog.close("");
    dialog.returnValue = "";
    dialog.onclose = () => {
      if (dialog.returnValue === "ok") key = input.value.trim();
      else declined = true;
      input.value = "";
      asking = null;
      resolve(!declined);
    };
    dialog.showModal();
    input.focus();
  });
  return asking;
}

async function send(method, path, body) {
  const used = key;
  const headers = used === null ? {} : { Authorization: `Bearer ${used}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, { method, headers, body: body && JSON.stringify(body), credentials: "omit" }).catch(() => {
    throw new Unreachable();
  });
  if (reply.status === 401 && !declined) {
    if (used !== key || (await ask())) return send(method, path, body);
  }
  const payload = await reply.json().catch(() => ({ detail: `the server replied ${reply.status}` }));
  if (!reply.ok) throw new Problem(reply.status, payload);
  return payload;
}

const address = (kind, name, rest = "") => `v1/${kind}/${encodeURIComponent(name)}${rest}`;
const query = (values) => {
  const kept = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return kept.length ? `?${new URLSearchParams(kept)}` : "";
};

export const learners = (cursor, limit) => send("GET", `v1/learners${query({ limit, cursor })}`);
export const learner = (name) => send("GET", address("learners", name));
export const history = (name, points) => send("GET", address("learners", name, `/history${query({ points })}`));
export const queue = (name, values) => send("GET", address("learners", name, `/queue${query(values)}`));
export const reliability = (name) => send("GET", address("learners", name, "/reliability"));
export const labels = (name, limit) => send("GET", address("learners", name, `/labels${query({ limit })}`));
export const weights = (name, label, limit) => send("GET", address("learners", name, `/weights${query({ label, limit })}`));
export const events = (name, after, limit) => send("GET", address("learners", name, `/events${query({ after, limit })}`));
export const predict = (name, body) => send("POST", address("learners", name, "/predict"), body);
export const retract = (name, body) => send("POST", address("learners", name, "/retract"), body);
export const feedback = (name, body) => send("POST", address("learners", name, "/feedback"), body);
export const rename = (name, renames) => send("POST", address("learners", name, "/labels"), { rename: renames });
export const create = (name, spec) => send("PUT", address("learners", name), spec);
export const description = () => send("GET", "openapi.json");

// The server itself: whether it takes writes, its version and the kernel of its learners.
export async function health() {
  const [ready, metrics] = await Promise.all([fetch("readyz", { credentials: "omit" }), fetch("metrics", { credentials: "omit" })]).catch(() => {
    throw new Unreachable();
  });
  const [, kernel, version] = /^feedrank_build_info\{kernel="([^"]*)",version="([^"]*)"\}/m.exec(await metrics.text()) ?? [];
  return { ready: ready.ok, kernel, version };
}
export const experiments = (cursor) => send("GET", `v1/experiments${query({ limit: 100, cursor })}`);
export const experiment = (name) => send("GET", address("experiments", name));
export const past = (name) => send("GET", address("experiments", name, "/history"));
export const step = (name, what, body) => send("POST", address("experiments", name, `/${what}`), body);
export const define = (name, body) => send("PUT", address("experiments", name), body);
export const alias = (name, learner) => send("PUT", address("aliases", name), { learner });
export const aliases = () => send("GET", `v1/aliases${query({ limit: 1000 })}`);
