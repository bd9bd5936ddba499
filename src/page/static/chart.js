// Calls over time as bars, one colour a state; answered beside verified as two lines.

import { h, svg, said, percent } from "./dom.js";
import { STATES } from "./words.js";

const WIDTH = 720, HEIGHT = 168, LEFT = 34, BOTTOM = 20, TOP = 8;
const order = Object.keys(STATES).reverse();

/** Minutes gathered into at most sixty bars that end now. */
function bars(minutes, span, now) {
  const step = Math.max(1, Math.ceil(span / 60));
  const end = Math.floor(Math.max(now / 60000, ...minutes.map((m) => Number(m.start) / 60e9)) / step) * step + step;
  const count = Math.ceil(span / step);
  const all = Array.from({ length: count }, (_, at) => (
    { start: (end - (count - at) * step) * 60000, attempts: 0, protocol: 0, verified: 0, states: {} }));
  for (const minute of minutes) {
    const bar = all[count - Math.ceil((end - Number(minute.start) / 60e9) / step)];
    if (!bar) continue;
    bar.attempts += minute.attempts;
    bar.protocol += minute.protocol_success;
    bar.verified += minute.verified_success;
    for (const [state, n] of Object.entries(minute.states)) bar.states[state] = (bar.states[state] ?? 0) + n;
  }
  return all;
}

const hour = (at) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });

function ceiling(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return [1, 2, 5, 10].map((times) => times * power).find((top) => top >= most) ?? most;
}

function axis(all, top, label) {
  const floor = HEIGHT - BOTTOM;
  const every = Math.max(1, Math.round(all.length / 5));
  const wide = (WIDTH - LEFT) / all.length;
  return [
    [0, 0.5, 1].map((part) => {
      const y = floor - part * (floor - TOP);
      return [svg("line", { class: "rule", x1: LEFT, x2: WIDTH, y1: y, y2: y }),
        svg("text", { class: "tick", x: LEFT - 5, y: y + 4, "text-anchor": "end" }, label(top * part))];
    }),
    all.map((bar, at) => at % every === 0 && svg("text", { class: "tick", x: LEFT + at * wide, y: HEIGHT - 5 }, hour(bar.start))),
  ];
}

function picture(summary, ...contents) {
  return svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": summary }, ...contents);
}

export function states(minutes, span, now) {
  const all = bars(minutes, span, now);
  const top = ceiling(Math.max(...all.map((bar) => bar.attempts), 1));
  const floor = HEIGHT - BOTTOM, wide = (WIDTH - LEFT) / all.length;
  const calls = all.reduce((sum, bar) => sum + bar.attempts, 0);
  const columns = all.map((bar, at) => {
    let y = floor;
    const title = [hour(bar.start), ...order.filter((s) => bar.states[s]).map((s) => `${said(s)} ${bar.states[s]}`)].join("\n");
    return svg("g", {}, svg("title", {}, title), order.filter((state) => bar.states[state]).map((state) => {
      const tall = Math.max((bar.states[state] / top) * (floor - TOP), 1.5);
      y -= tall;
      return svg("rect", { class: `f-${state}`, x: LEFT + at * wide + 0.6, y, width: Math.max(wide - 1.2, 1), height: tall });
    }));
  });
  const seen = order.filter((state) => all.some((bar) => bar.states[state])).reverse();
  return h("figure", {},
    picture(`${calls} calls by state over time`, axis(all, top, (n) => (Number.isInteger(n) ? String(n) : "")), columns),
    h("figcaption", { class: "legend" }, seen.map((state) => h("span", {}, h("i", { class: `key b-${state}`, "aria-hidden": "true" }), said(state)))));
}

export function success(minutes, span, now) {
  const all = bars(minutes, span, now);
  const floor = HEIGHT - BOTTOM, wide = (WIDTH - LEFT) / all.length;
  const line = (kind, name) => {
    const points = all.map((bar, at) => {
      // Of this bar and the four before it: single calls make no saw.
      const some = all.slice(Math.max(0, at - 4), at + 1);
      const attempts = some.reduce((total, other) => total + other.attempts, 0);
      const part = some.reduce((total, other) => total + other[kind], 0);
      return bar.attempts ? { n: at, x: LEFT + (at + 0.5) * wide, y: floor - (part / attempts) * (floor - TOP), start: bar.start, part, attempts } : null;
    }).filter(Boolean);
    // No line over a time in which nobody called.
    const runs = [];
    for (const point of points) {
      if (runs.length && point.n - runs.at(-1).at(-1).n <= 6) runs.at(-1).push(point);
      else runs.push([point]);
    }
    return svg("g", { class: `line-${kind}` },
      runs.map((run) => svg("polyline", { points: run.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" ") })),
      points.map((p) => svg("circle", { cx: p.x, cy: p.y, r: 2.6 },
        svg("title", {}, `until ${hour(p.start)}: ${name} ${percent(p.part, p.attempts)} of ${p.attempts}`))));
  };
  const sum = (kind) => all.reduce((total, bar) => total + bar[kind], 0);
  const attempts = sum("attempts");
  return h("figure", {},
    picture(`answered ${percent(sum("protocol"), attempts)}, verified ${percent(sum("verified"), attempts)} of ${attempts} calls`,
      axis(all, 100, (n) => `${n}%`), line("protocol", "answered"), line("verified", "verified")),
    h("figcaption", { class: "legend" },
      h("span", {}, h("i", { class: "key k-protocol", "aria-hidden": "true" }), "answered (protocol success)"),
      h("span", {}, h("i", { class: "key k-verified", "aria-hidden": "true" }), "verified (somebody checked the outcome)")));
}
