// Lines over rounds or time, drawn as SVG. A chart redraws itself when its data or its width change, and reads out the point
// under the pointer or, with the arrow keys, under the cursor.

import { ROUNDS, ticks } from "./axis.js";
import { decimal, h, svg } from "./dom.js";

const HEIGHT = 240;
const PAD = { top: 10, right: 12, bottom: 26, left: 44 };
let charts = 0;

// [[x, y], ...] in pixels, with no more than two of them for each column of the plot.
const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// The trailing mean over at least `least` rounds, out of the cumulative loss.
export function trailing(points, least) {
  const all = [{ rounds: 0, cumulative_loss: 0 }, ...points];
  let from = 0;
  return points.map((point, i) => {
    while (from < i && point.rounds - all[from + 1].rounds >= least) from += 1;
    const span = point.rounds - all[from].rounds;
    return [point.rounds, span ? (point.cumulative_loss - all[from].cumulative_loss) / span : 0];
  });
}

// series: [{ name, kind, points: [[x, y]], band: [[x, low, high]] }]; options: { axis, x, low, high, zero, from, to, describe }
export function chart(label) {
  const id = `plot-${(charts += 1)}`;
  const legend = h("dl", { class: "legend" });
  const where = h("output", { class: "where" });
  const frame = h("div", { class: "plot", tabindex: 0, role: "img", "aria-label": label });
  const element = h("figure", { class: "chart" }, h("figcaption", null, legend, where), frame);
  let data = null;
  let cursor = null;

  function draw() {
    const width = Math.max(240, frame.clientWidth || 600);
    const { series, axis = ROUNDS, low, high, zero } = data;
    const longest = series.map((one) => one.points).reduce((most, points) => ((points.at(-1)?.[0] ?? -1) > (most.at(-1)?.[0] ?? -1) ? points : most), []);
    const first = data.from ?? 0;
    const last = data.to ?? (longest.length ? longest[longest.length - 1][0] : 1);
    const X = (value) => PAD.left + ((value - first) / (last - first || 1)) * (width - PAD.left - PAD.right);
    const Y = (value) => PAD.top + ((high - value) / (high - low || 1)) * (HEIGHT - PAD.top - PAD.bottom);
    const parts = [
      svg("clipPath", { id }, svg("rect", { x: PAD.left, y: PAD.top - 2, width: width - PAD.left - PAD.right + 4, height: HEIGHT - PAD.top - PAD.bottom + 4 })),
      ticks(low, high, 4).map((value) => [
        svg("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: Y(value), y2: Y(value) }),
        svg("text", { class: "tick", x: PAD.left - 8, y: Y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(6))).replace("-", "−")),
      ]),
      axis.marks(first, last, Math.max(3, Math.floor(width / 130)))
        .map(([value, text]) => svg("text", { class: "tick", x: Math.max(4 * text.length, Math.min(X(value), width - PAD.right - 4 * text.length)), y: HEIGHT - 8, "text-anchor": "middle" }, text)),
    ];
    if (zero) parts.push(svg("line", { class: "zero", x1: PAD.left, x2: width - PAD.right, y1: Y(0), y2: Y(0) }));
    const lines = svg("g", { "clip-path": `url(#${id})` });
    for (const one of series.filter(({ points }) => points.length)) {
      if (one.band?.length) {
        const upper = one.band.map(([x, , top]) => [X(x), Y(top)]);
        const lower = one.band.map(([x, bottom]) => [X(x), Y(bottom)]).reverse();
        lines.append(svg("path", { class: `band ${one.kind}`, d: `${path([...upper, ...lower])}Z` }));
      }
      lines.append(svg("path", { class: `line ${one.kind}`, d: path(one.points.map(([x, y]) => [X(x), Y(y)])) }));
    }
    parts.push(lines);
    if (cursor !== null && longest.length) {
      const at = X(longest[Math.min(cursor, longest.length - 1)][0]);
      parts.push(svg("line", { class: "cursor", x1: at, x2: at, y1: PAD.top, y2: HEIGHT - PAD.bottom }));
    }
    frame.replaceChildren(svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" }, parts));
    frame.plot = { X, longest };
    tell(longest, axis);
  }

  // The legend doubles as the read-out: each line's value at the cursor, or now.
  function tell(longest, axis) {
    if (!longest.length) return;
    const at = longest[cursor === null ? longest.length - 1 : Math.min(cursor, longest.length - 1)][0];
    where.textContent = axis.text(at, data.x);
    legend.replaceChildren(
      ...data.series.filter((one) => one.points.length).map((one) => {
        const [, value] = one.points.findLast(([x]) => x <= at) ?? one.points[0];
        const [, bottom, top] = one.band?.findLast(([x]) => x <= at) ?? [];
        const interval = one.band ? ` [${decimal(bottom)}, ${decimal(top)}]` : "";
        return h("div", { title: one.title }, h("dt", { class: `key ${one.kind}` }, one.name), h("dd", null, (value === null ? "–" : decimal(value)) + interval));
      }),
    );
  }

  function point(event) {
    const { X, longest } = frame.plot ?? {};
    if (!longest?.length) return;
    const at = event.clientX - frame.getBoundingClientRect().left;
    let [low, high] = [0, longest.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (X(longest[middle][0]) < at) low = middle + 1;
      else high = middle;
    }
    cursor = low;
    draw();
  }
  const leave = () => {
    cursor = null;
    if (data) draw();
  };
  frame.addEventListener("pointermove", point);
  frame.addEventListener("pointerleave", leave);
  frame.addEventListener("blur", leave);
  frame.addEventListener("keydown", (event) => {
    const points = frame.plot?.longest.length ?? 0;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -16, PageDown: 16, Home: -Infinity, End: Infinity }[event.key];
    if (!step || !points) return;
    event.preventDefault();
    cursor = Math.max(0, Math.min(points - 1, (cursor ?? points - 1) + step));
    draw();
  });
  new ResizeObserver(() => data && draw()).observe(frame);

  return {
    element,
    update(next) {
      data = next;
      frame.setAttribute("aria-label", `${label}. ${next.describe ?? ""} Arrow keys read out points.`);
      draw();
    },
  };
}

// A line without axes, for a row of a table.
export function sparkline(points, describe) {
  const [width, height] = [120, 26];
  const high = Math.max(...points.map(([, y]) => y), 1e-9);
  const from = points[0]?.[0] ?? 0;
  const span = (points[points.length - 1]?.[0] ?? 1) - from || 1;
  const pixels = points.map(([x, y]) => [2 + ((x - from) / span) * (width - 6), height - 3 - (y / high) * (height - 6)]);
  const end = pixels[pixels.length - 1];
  return svg(
    "svg",
    { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe },
    pixels.length > 1 && svg("path", { class: "line mean", d: path(pixels) }),
    end && svg("circle", { class: "dot", cx: end[0], cy: end[1], r: 2.5 }),
  );
}
