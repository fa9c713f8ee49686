"use strict";
// The axes of a plot: units, ticks, ranges, in the colours of the theme.

const narrow = matchMedia("(max-width: 640px)");
const dark = matchMedia("(prefers-color-scheme: dark)");

// Units that take prefixes (us, ms, s; kB, MB) are drawn in their base unit.
const PREFIXED = {
  us: { factor: 1e-6, base: "s" },
  s: { factor: 1, base: "s" },
  B: { factor: 1, base: "B" },
  "B/s": { factor: 1, base: "B/s" },
};
const factor = (axis) => PREFIXED[axis.unit]?.factor ?? 1;
const scaled = (axis, values) => values.map((value) => (value === null ? null : value * factor(axis)));

// How a value reads under the pointer; `name` is x or y.
function reading(axis, name) {
  const prefixed = PREFIXED[axis.unit];
  if (prefixed) return `%{${name}:.4~s}${prefixed.base}`;
  const unit = axis.unit === "" ? "" : ` ${safe(axis.unit)}`;
  return `%{${name}:,.6~r}${unit}`;
}

// Plotly reads tags in names and titles: ours have none.
const safe = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

let printing = false;
const theme = () => (dark.matches && !printing ? "dark" : "light");
const colour = (name) => {
  if (printing) return { text: "#000", soft: "#333", faint: "#ccc", panel: "#fff" }[name];
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
};

// ---- axes

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "\u00b5"], [1e-9, "n"]];

// A number on an axis: 250k, 20ms.
function tickText(value, description) {
  const prefixed = PREFIXED[description.unit];
  const fitting = PREFIXES.find(([size]) => value >= size * 0.9999) ?? [1, ""];
  const [size, prefix] = prefixed || value >= 1e4 ? fitting : [1, ""];
  return Number((value / size).toPrecision(6)) + prefix + (prefixed?.base ?? "");
}

// Where ticks stand between two powers of ten: as few to the decade as give four in all, three on a
// phone. Plotly left to itself labels every digit of every decade, one over the other.
const MANTISSAS = [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 7], [1, 1.2, 1.5, 1.7, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9]];

// A sweep of few parameters has its ticks where they are: `places`.
function logTicks(description, [low, high], places) {
  const within = (value) => Math.log10(value) >= low - 1e-6 && Math.log10(value) <= high + 1e-6;
  const decades = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, n) => Math.floor(low) + n);
  const even = MANTISSAS.map((list) => decades.flatMap((e) => list.map((m) => Number(`${m}e${e}`))));
  const candidates = [...places, ...even].map((values) => values.filter(within));
  const enough = narrow.matches ? 3 : 4;
  const own = candidates.slice(0, places.length).find((values) => values.length >= 2);
  const tickvals = own ?? candidates.find((values) => values.length >= enough) ?? candidates.at(-1);
  return { tickvals, ticktext: tickvals.map((value) => tickText(value, description)) };
}

// The one list of where a sweep has its points, if they are few.
function sweep(description, values) {
  const places = [...new Set(values)].map((value) => value * factor(description));
  return places.length <= 10 ? [places] : [];
}

// The ends of a logarithmic axis, as powers of ten.
function logRange(values) {
  const logs = values.filter((value) => value > 0).map(Math.log10);
  if (logs.length === 0) return [0, 1];
  const [low, high] = logs.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  const room = Math.max(0.03 * (high - low), 0.02);
  return [low - room, high + room];
}

// The ends of a linear axis across: what lies at an end is not drawn on the frame.
function padded([low, high]) {
  const room = 0.02 * (high - low) || 1;
  return [low - room, high + room];
}

function axis(title, more) {
  return {
    title: { text: title, standoff: 12 },
    automargin: true,
    gridcolor: colour("faint"),
    linecolor: colour("text"),
    zeroline: false,
    ticks: "outside",
    tickcolor: colour("faint"),
    exponentformat: "SI",
    minexponent: 4,
    ...more,
  };
}

// `places` as `sweep` gives them.
function numberAxis(description, scale, values, { places = [], ...more } = {}) {
  const prefixed = PREFIXED[description.unit];
  const unit = prefixed || description.unit === "" ? "" : `, ${description.unit}`;
  const format = prefixed
    ? { tickformat: "~s", ticksuffix: prefixed.base, hoverformat: ".4~s" }
    : { hoverformat: ",.6~r" };
  return axis(safe(description.label + unit), {
    type: scale,
    // A change of scale forgets how far the reader had zoomed; nothing else does.
    uirevision: scale,
    nticks: narrow.matches ? 5 : 8,
    ...format,
    ...(scale === "log" ? logAxis(description, logRange(values), places) : {}),
    ...more,
  });
}

const logAxis = (description, range, places) => ({ range, ...logTicks(description, range, places) });

// Shares of a tail: one minus the share, so that every further nine is as far as the last.
function tailAxis(of, rarest) {
  const ticks = [[0.5, "p50"]];
  for (let rest = 0.1; rest > rarest * 0.9; rest /= 10) {
    ticks.push([rest, percentile(rest)]);
  }
  return axis(safe(`percentile of ${of}`), {
    type: "log",
    uirevision: "tail",
    range: [0, Math.log10(rarest) - 0.1],
    tickvals: ticks.map((tick) => tick[0]),
    ticktext: ticks.map((tick) => tick[1]),
  });
}

// As many digits as the nines have, and one to tell neighbours apart.
function percentile(rest) {
  const digits = Math.max(1, Math.ceil(-Math.log10(rest)));
  return `p${Number((100 * (1 - rest)).toFixed(Math.min(digits, 12)))}`;
}
