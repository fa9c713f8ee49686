"use strict";
// Axes of a plot: units, ticks and ranges, in the colours of the theme.

const narrow = matchMedia("(max-width: 640px)");
const dark = matchMedia("(prefers-color-scheme: dark)");

// Units with SI prefixes (us, ms, s; kB, MB) are drawn in their base unit.
const PREFIXED = {
  us: { factor: 1e-6, base: "s" },
  s: { factor: 1, base: "s" },
  B: { factor: 1, base: "B" },
  "B/s": { factor: 1, base: "B/s" },
};
const factor = (axis) => PREFIXED[axis.unit]?.factor ?? 1;
const scaled = (axis, values) => values.map((value) => (value === null ? null : value * factor(axis)));

// Returns the format of a value in the hover label. `name` is x or y.
function reading(axis, name) {
  const prefixed = PREFIXED[axis.unit];
  if (prefixed) return `%{${name}:.4~s}${prefixed.base}`;
  const unit = axis.unit === "" ? "" : ` ${safe(axis.unit)}`;
  return `%{${name}:,.6~r}${unit}`;
}

// Escapes text, because Plotly interprets tags in names and titles.
const safe = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

let printing = false;
const theme = () => (dark.matches && !printing ? "dark" : "light");
const colour = (name) => {
  if (printing) return { text: "#000", soft: "#333", faint: "#ccc", panel: "#fff" }[name];
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
};

// ---- axes

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "\u00b5"], [1e-9, "n"]];

// Formats the label of a tick, such as 250k or 20ms.
function tickText(value, description) {
  const prefixed = PREFIXED[description.unit];
  const fitting = PREFIXES.find(([size]) => value >= size * 0.9999) ?? [1, ""];
  const [size, prefix] = prefixed || value >= 1e4 ? fitting : [1, ""];
  return Number((value / size).toPrecision(6)) + prefix + (prefixed?.base ?? "");
}

// Candidates for ticks within a decade. The first list that gives at least four ticks (three on a
// narrow screen) is used. By default, Plotly labels every digit of every decade, and the labels
// overlap.
const MANTISSAS = [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 7], [1, 1.2, 1.5, 1.7, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9]];

// Returns the ticks of a logarithmic axis. A sweep of few parameters has its ticks at `places`.
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

// Returns a list with the distinct values of a sweep, or no list if there are more than ten.
function sweep(description, values) {
  const places = [...new Set(values)].map((value) => value * factor(description));
  return places.length <= 10 ? [places] : [];
}

// Returns the ends of a logarithmic axis, as powers of ten.
function logRange(values) {
  const logs = values.filter((value) => value > 0).map(Math.log10);
  if (logs.length === 0) return [0, 1];
  const [low, high] = logs.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  const room = Math.max(0.03 * (high - low), 0.02);
  return [low - room, high + room];
}

// Returns the ends of a linear horizontal axis, with room for points at the ends.
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

// `places` is the result of `sweep`.
function numberAxis(description, scale, values, { places = [], ...more } = {}) {
  const prefixed = PREFIXED[description.unit];
  const unit = prefixed || description.unit === "" ? "" : `, ${description.unit}`;
  const format = prefixed
    ? { tickformat: "~s", ticksuffix: prefixed.base, hoverformat: ".4~s" }
    : { hoverformat: ",.6~r" };
  return axis(safe(description.label + unit), {
    type: scale,
    // A change of scale resets the zoom; no other change does.
    uirevision: scale,
    nticks: narrow.matches ? 5 : 8,
    ...format,
    ...(scale === "log" ? logAxis(description, logRange(values), places) : {}),
    ...more,
  });
}

const logAxis = (description, range, places) => ({ range, ...logTicks(description, range, places) });

// Returns the axis of a tail: one minus the share, so that each further nine has the same distance.
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

// Formats a percentile with as many digits as its nines, and one more for neighbours.
function percentile(rest) {
  const digits = Math.max(1, Math.ceil(-Math.log10(rest)));
  return `p${Number((100 * (1 - rest)).toFixed(Math.min(digits, 12)))}`;
}
