// The API as /openapi.json describes it, to read and to try. Drawn here, so that it works offline and under the same strict policy.

import { card, h } from "./dom.js";

const spec = await (await fetch("openapi.json")).json();
const named = (ref) => ref.split("/").slice(1).reduce((at, key) => at[key], spec);
const own = (schema) => (schema?.$ref ? named(schema.$ref) : schema);

// A schema in one line: what it is called, or what it is made of.
function kind(schema) {
  if (!schema) return "anything";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return either.map(kind).join(" | ");
  if (schema.type === "array") return `[${kind(schema.items)}, …]`;
  if (schema.additionalProperties && schema.additionalProperties !== true) return `{name: ${kind(schema.additionalProperties)}}`;
  return schema.type ?? "anything";
}

// The fields of a body; a body that is one of several shows those one after the other.
function fields(schema, mark) {
  const shape = own(schema);
  const either = shape?.anyOf ?? shape?.oneOf;
  if (either) return either.map((one) => fields(one, mark));
  if (!shape?.properties) return shape ? [h("p", null, h("code", null, kind(schema)))] : [];
  const rows = Object.entries(shape.properties).map(([name, field]) =>
    h("tr", { id: mark ? `${mark}-${name}` : null },
      h("th", { scope: "row" }, h("code", null, name), shape.required?.includes(name) ? " required" : null),
      h("td", null, h("code", null, kind(field))),
      h("td", null, field.description ?? "")));
  return [h("p", { class: "note" }, shape.description ?? shape.title ?? ""), h("table", null, h("tbody", null, rows))];
}

// The first example of a body or of one that it may be, else its required fields, to be filled in.
function exampleOf(schema) {
  const shape = own(schema);
  const either = (shape?.anyOf ?? shape?.oneOf ?? []).map(exampleOf).find(Boolean);
  return shape?.examples?.[0] ?? either ?? (shape?.properties && Object.fromEntries((shape.required ?? []).map((name) => [name, BLANK[own(shape.properties[name]).type] ?? null])));
}

const BLANK = { string: "", array: [], object: {}, number: 0, integer: 0, boolean: false };
const json = (content) => content && Object.values(content)[0];

// What goes out and what comes back, as it is. The key is kept in its field, and forgotten with the page.
const key = h("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false" });

function attempt(path, method, call, example) {
  const parameters = (call.parameters ?? []).map(own).filter((one) => one.in === "path" || one.in === "query");
  const inputs = parameters.map((one) => h("input", { name: one.name, required: one.in === "path", autocomplete: "off", placeholder: kind(one.schema), "aria-label": one.name }));
  const media = Object.keys(call.requestBody?.content ?? {})[0];
  const body = media && h("textarea", { rows: 5, spellcheck: "false", "aria-label": "body" });
  if (body) body.value = example ? JSON.stringify(example, null, 2) : "";
  const status = h("p", { role: "status" });
  const text = h("pre", { class: "reply", hidden: true });

  async function send(event) {
    event.preventDefault();
    const values = parameters.map((one, i) => [one, inputs[i].value.trim()]);
    const place = values.filter(([one]) => one.in === "path").reduce((at, [one, value]) => at.replace(`{${one.name}}`, encodeURIComponent(value)), path);
    const query = new URLSearchParams(values.filter(([one, value]) => one.in === "query" && value).map(([one, value]) => [one.name, value]));
    const headers = { ...(key.value && { Authorization: `Bearer ${key.value.trim()}` }), ...(media && { "Content-Type": media }) };
    const address = `${place.slice(1)}${query.size ? `?${query}` : ""}`;
    try {
      const reply = await fetch(address, { method: method.toUpperCase(), headers, body: body?.value || undefined, credentials: "omit" });
      status.textContent = `${reply.status} ${reply.statusText} · ${reply.headers.get("content-type") ?? "no body"}`;
      text.textContent = pretty(await reply.text());
    } catch {
      status.textContent = "no reply from the server";
      text.textContent = "";
    }
    text.hidden = !text.textContent;
  }

  return h("form", { class: "attempt", onsubmit: send }, h("h3", null, "Try it"),
    parameters.map((one, i) => h("label", null, `${one.name} `, inputs[i])), body, h("div", { class: "row" }, h("button", null, "Send")), status, text);
}

const MOST = 20000; // characters of a reply that are shown

function pretty(text) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: lines of a stream, metrics, a snapshot.
  }
  return shown.length > MOST ? `${shown.slice(0, MOST)}\n… ${shown.length - MOST} characters more` : shown;
}

// A reply's fields, folded away under its status.
function replied(status, answer) {
  const schema = json(own(answer)?.content)?.schema;
  const head = [h("code", null, status), " ", own(answer)?.description ?? ""];
  if (!schema) return h("li", null, head);
  return h("li", null, h("details", null, h("summary", null, head, " ", h("code", null, kind(schema))), fields(schema)));
}

function operation(path, method, call) {
  const body = json(call.requestBody?.content);
  const example = body && exampleOf(body.schema);
  const replies = Object.entries(call.responses ?? {}).map(([status, reply]) => replied(status, reply));
  return h("details", { class: "operation" },
    h("summary", null, h("code", null, `${method.toUpperCase()} ${path}`), " ",
      h("span", { class: "note" }, (call.description ?? call.summary ?? "").split("\n")[0])),
    (call.parameters ?? []).length
      ? h("ul", null, call.parameters.map((one) => h("li", null, h("code", null, one.name), ` in ${one.in}: `,
          h("code", null, kind(one.schema)), " ", one.description ?? "")))
      : null,
    body ? [h("h3", null, "Body"), fields(body.schema, path === "/v1/learners/{name}" && method === "put" ? "spec" : null)] : null,
    example ? h("pre", null, JSON.stringify(example, null, 2)) : null,
    h("h3", null, "Replies"), h("ul", null, replies),
    attempt(path, method, call, example));
}

const groups = new Map();
for (const [path, methods] of Object.entries(spec.paths)) {
  for (const [method, call] of Object.entries(methods)) {
    const tag = call.tags?.[0] ?? "other";
    groups.set(tag, [...(groups.get(tag) ?? []), operation(path, method, call)]);
  }
}
document.getElementById("main").replaceChildren(
  h("h1", null, `${spec.info.title} ${spec.info.version}`),
  h("p", null, "All calls of the service, from ", h("a", { href: "openapi.json" }, "openapi.json"), ", to read and to try on this server."),
  h("form", { onsubmit: (event) => event.preventDefault() }, h("label", { for: "key" }, "Key, if the server requires one "), key),
  ...[...groups].map(([tag, calls]) => card(tag, calls)),
);

// A field of a spec, to which the page of a learner links.
const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
if (place) {
  place.closest("details").open = true;
  place.classList.add("here");
  place.scrollIntoView();
}
