// The API as /openapi.json describes it, to read. Drawn here, so that it works offline and under the same strict policy.

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
function fields(schema) {
  const shape = own(schema);
  const either = shape?.anyOf ?? shape?.oneOf;
  if (either) return either.map(fields);
  if (!shape?.properties) return shape ? [h("p", null, h("code", null, kind(schema)))] : [];
  const rows = Object.entries(shape.properties).map(([name, field]) =>
    h("tr", null,
      h("th", { scope: "row" }, h("code", null, name), shape.required?.includes(name) ? " required" : null),
      h("td", null, h("code", null, kind(field))),
      h("td", null, field.description ?? "")));
  return [h("p", { class: "note" }, shape.description ?? shape.title ?? ""), h("table", null, h("tbody", null, rows))];
}

const json = (content) => content && Object.values(content)[0];

function operation(path, method, call) {
  const body = json(call.requestBody?.content);
  const example = own(body?.schema)?.examples?.[0] ?? body?.example ?? Object.values(body?.examples ?? {})[0]?.value;
  const replies = Object.entries(call.responses ?? {}).map(([status, reply]) =>
    h("li", null, h("code", null, status), " ", own(reply)?.description ?? "",
      json(own(reply)?.content)?.schema ? [" ", h("code", null, kind(json(own(reply).content).schema))] : null));
  return h("details", { class: "operation" },
    h("summary", null, h("code", null, `${method.toUpperCase()} ${path}`), " ",
      h("span", { class: "note" }, (call.description ?? call.summary ?? "").split("\n")[0])),
    (call.parameters ?? []).length
      ? h("ul", null, call.parameters.map((one) => h("li", null, h("code", null, one.name), ` in ${one.in}: `,
          h("code", null, kind(one.schema)), " ", one.description ?? "")))
      : null,
    body ? [h("h3", null, "Body"), fields(body.schema)] : null,
    example ? h("pre", null, JSON.stringify(example, null, 2)) : null,
    h("h3", null, "Replies"), h("ul", null, replies));
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
  h("p", null, "Everything the service does, from ", h("a", { href: "openapi.json" }, "openapi.json"), "."),
  ...[...groups].map(([tag, calls]) => card(tag, calls)),
);
