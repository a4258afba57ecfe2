// Elements without markup: text only ever becomes text nodes and attributes.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Let the children of `parent` be those of `items`: each made once, updated when shown again, so that focus stays.
export function keyed(parent, items, name, make, update) {
  const byKey = (parent.byKey ??= new Map());
  const names = new Set(items.map(name));
  for (const [key, child] of byKey) {
    if (!names.has(key)) {
      child.remove();
      byKey.delete(key);
    }
  }
  let before = parent.firstElementChild;
  for (const item of items) {
    let child = byKey.get(name(item));
    if (!child) byKey.set(name(item), (child = make(item)));
    update?.(child, item);
    if (child === before) before = before.nextElementSibling;
    else parent.insertBefore(child, before);
  }
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// 12345 -> 12,345; null -> a dash.
export const count = (value) => (value === null || value === undefined ? "–" : whole.format(value));

// Two or three significant digits.
export function decimal(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  const text = size >= 1e5 || size < 1e-3 ? size.toExponential(1) : size < 0.1 ? size.toPrecision(2) : size.toFixed(digits);
  return value < 0 ? `−${text}` : text;
}

export const signed = (value) => (value < 0 ? "−" : "+") + decimal(Math.abs(value));

export const card = (title, ...children) =>
  h("section", { class: "card" }, h("h2", null, title), ...children);
