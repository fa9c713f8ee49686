"use strict";
// Draws the figures of the report in this page. What is drawn is a function of the report, of what
// the reader chose above the plot, and of the theme.

const report = JSON.parse(document.getElementById("report").textContent);
const narrow = matchMedia("(max-width: 640px)");
const dark = matchMedia("(prefers-color-scheme: dark)");

// After Okabe and Ito: told apart by colour-blind readers; the dark ones are lighter.
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b5588f", "#b07a00", "#3d9bd1", "#404040"],
  dark: ["#56b4e9", "#ff8c42", "#2ec49a", "#e59ac4", "#f0c040", "#8fb8ff", "#d0d0d0"],
};
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "star"];
const PATTERNS = ["", "/", ".", "\\", "x", "-", "|"];
const nth = (list, n) => list[n % list.length];

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

const theme = () => (dark.matches && !printing ? "dark" : "light");
let printing = false;
const colour = (name) => {
  if (printing) return { text: "#000", faint: "#ccc", panel: "#fff" }[name];
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
};

// ---- axes

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

function numberAxis(description, scale, more = {}) {
  const prefixed = PREFIXED[description.unit];
  const unit = prefixed || description.unit === "" ? "" : `, ${description.unit}`;
  const format = prefixed ? { tickformat: "~s", ticksuffix: prefixed.base } : {};
  return axis(safe(description.label + unit), {
    type: scale,
    // A change of scale forgets how far the reader had zoomed; nothing else does.
    uirevision: scale,
    nticks: narrow.matches ? 5 : 10,
    ...format,
    ...more,
  });
}

// Shares of a tail: one minus the share, so that every further nine is as far as the last.
function tailAxis(of, rarest) {
  const ticks = [[1, "min"], [0.5, "p50"]];
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

// Ten digits cover every nine a run of a billion operations can show, and hide what binary adds.
const percentile = (rest) => `p${Number((100 * (1 - rest)).toFixed(8))}`;

// ---- kinds of figures: what can be chosen, and what is drawn for a choice

const KINDS = {
  lines: {
    first: (figure) => ({ x: figure.x.scale, y: figure.y.scale }),
    choices: () => ["x", "y"].map((name) => scales(name)),
    draw(figure, choice) {
      const most = Math.max(...figure.series.map((series) => series.points.length));
      return {
        traces: figure.series.map((series, n) => ({
          ...line(n, series.name, most <= 40),
          x: scaled(figure.x, series.points.map((point) => point[0])),
          y: scaled(figure.y, series.points.map((point) => point[1])),
          hovertemplate: reading(figure.y, "y"),
        })),
        layout: {
          xaxis: numberAxis(figure.x, choice.x, { unifiedhovertitle: { text: `${safe(figure.x.label)} ${reading(figure.x, "x")}` } }),
          yaxis: numberAxis(figure.y, choice.y, choice.y === "linear" ? { rangemode: "tozero" } : {}),
          hovermode: "x unified",
        },
      };
    },
  },
  cdf: {
    first: (figure) => ({ x: figure.x.scale, view: figure.tail ? "tail" : "share" }),
    choices: () => [scales("x"), { name: "view", label: "show", options: ["share", "tail"] }],
    draw(figure, choice) {
      const tail = choice.view === "tail";
      const rests = figure.series.flatMap((series) => series.points.map((point) => 1 - point[1]));
      const rarest = Math.min(0.1, ...rests.filter((rest) => rest > 0));
      return {
        traces: figure.series.map((series, n) => {
          const points = tail ? series.points.filter((point) => point[1] < 1) : series.points;
          return {
            ...line(n, series.name, false),
            line: { ...line(n, series.name, false).line, shape: tail ? "linear" : "hv" },
            x: scaled(figure.x, points.map((point) => point[0])),
            y: points.map((point) => (tail ? 1 - point[1] : point[1])),
            customdata: points.map((point) => (point[1] < 1 ? percentile(1 - point[1]) : "max")),
            hovertemplate: `%{customdata}: ${reading(figure.x, "x")}`,
          };
        }),
        layout: {
          xaxis: numberAxis(figure.x, choice.x),
          yaxis: tail
            ? tailAxis(figure.of, rarest)
            : axis(safe(`share of ${figure.of}`), { tickformat: ".0%", range: [0, 1.02], uirevision: "share" }),
          hovermode: "closest",
        },
      };
    },
  },
  bars: {
    first: (figure) => ({ y: figure.y.scale }),
    choices: () => [scales("y")],
    draw(figure, choice) {
      return {
        traces: figure.series.map((series, n) => ({
          type: "bar",
          name: safe(series.name),
          x: figure.categories.map(safe),
          y: scaled(figure.y, series.values),
          marker: {
            color: nth(COLOURS[theme()], n),
            pattern: { shape: nth(PATTERNS, n), size: 7, solidity: 0.25, fgcolor: colour("panel"), fillmode: "overlay", bgcolor: nth(COLOURS[theme()], n), fgopacity: 0.55 },
          },
          hovertemplate: reading(figure.y, "y"),
        })),
        layout: {
          xaxis: axis(safe(figure.over), { type: "category", showgrid: false, ticks: "" }),
          yaxis: numberAxis(figure.y, choice.y),
          barmode: "group",
          bargap: 0.25,
          bargroupgap: 0.08,
          hovermode: "x unified",
        },
      };
    },
  },
};

const scales = (name) => ({ name, label: `${name} axis`, options: ["linear", "log"] });

function line(n, name, marked) {
  const color = nth(COLOURS[theme()], n);
  return {
    type: "scatter",
    mode: marked ? "lines+markers" : "lines",
    name: safe(name),
    line: { color, width: 2, dash: nth(DASHES, n) },
    marker: { color, size: 7, symbol: nth(SYMBOLS, n) },
  };
}

// ---- drawing

function layout() {
  return {
    height: narrow.matches ? 400 : 440,
    margin: { l: 56, r: 16, t: 16, b: 48 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: narrow.matches ? 11 : 13, color: colour("text") },
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("faint"), font: { color: colour("text") }, namelength: -1 },
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
    // One finger scrolls the page; a mouse has the plot.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    separators: ".\u202f",
    uirevision: "kept",
    showlegend: true,
  };
}

// A wish to print makes the width that of paper.
const PAPER_WIDTH = 660;

async function draw({ figure, choice, place }) {
  const { traces, layout: own } = KINDS[figure.kind].draw(figure, choice);
  const size = printing ? { width: PAPER_WIDTH, autosize: false } : { autosize: true };
  await Plotly.react(place.querySelector(".plot"), traces, { ...layout(), ...size, ...own }, {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: figure.id },
  });
  tellHidden(place, traces, own);
}

// Says what a logarithmic axis cannot show, instead of letting it vanish.
function tellHidden(place, traces, { xaxis, yaxis }) {
  const lost = (axis, values) => (axis.type === "log" ? values.filter((v) => v !== null && v <= 0).length : 0);
  const count = traces.reduce((sum, trace) => sum + lost(xaxis, trace.x) + lost(yaxis, trace.y), 0);
  const line = place.querySelector(".hidden-points");
  line.hidden = count === 0;
  line.textContent = `${count} of the values are zero or less and do not show on a logarithmic axis.`;
}

function addChoices(drawing) {
  const views = drawing.place.querySelector(".views");
  for (const { name, label, options } of KINDS[drawing.figure.kind].choices()) {
    const group = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = label;
    group.append(legend);
    for (const option of options) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = option;
      const show = () => button.setAttribute("aria-pressed", String(drawing.choice[name] === option));
      button.addEventListener("click", () => {
        drawing.choice[name] = option;
        for (const other of group.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
        draw(drawing);
      });
      show();
      group.append(button);
    }
    views.append(group);
  }
}

const drawings = report.figures.map((figure) => ({
  figure,
  choice: KINDS[figure.kind].first(figure),
  place: document.getElementById(figure.id),
}));
const drawAll = () => Promise.all(drawings.map(draw));

async function begin() {
  let drawn = 0;
  for (const drawing of drawings) {
    try {
      addChoices(drawing);
      await draw(drawing);
      drawn += 1;
    } catch (error) {
      console.error(`${drawing.figure.id}: ${error}`);
      drawing.place.querySelector(".plot").textContent = "This plot could not be drawn; its numbers are below.";
    }
  }
  document.documentElement.dataset.figuresDrawn = String(drawn);
  for (const query of [dark, narrow]) query.addEventListener("change", drawAll);
  const print = (on) => () => {
    printing = on;
    drawAll();
  };
  addEventListener("beforeprint", print(true));
  addEventListener("afterprint", print(false));
}

begin();
