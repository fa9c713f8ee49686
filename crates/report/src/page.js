"use strict";
// Draws the figures of the report in this page. A drawing is a function of the report, of the
// reader's choices above the plot, and of the theme.

const report = JSON.parse(document.getElementById("report").textContent);

// Colours that colour-blind readers can distinguish (Okabe and Ito), lighter in the dark theme.
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b5588f", "#b07a00", "#3d9bd1", "#404040"],
  dark: ["#56b4e9", "#ff8c42", "#2ec49a", "#e59ac4", "#f0c040", "#8fb8ff", "#d0d0d0"],
};
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "star"];
const PATTERNS = ["", "/", ".", "\\", "x", "-", "|"];
const SHADES = {
  light: ["#dcebd2", "#f6e3c5"],
  dark: ["#24402c", "#4a3a1c"],
};
const nth = (list, n) => list[n % list.length];

// ---- kinds of figures: the choices of each kind, and the drawing for a choice

const KINDS = {
  lines: {
    first: (figure) => ({ x: figure.x.scale, y: figure.y.scale }),
    choices: () => ["x", "y"].map((name) => scales(name)),
    draw(figure, choice) {
      const most = Math.max(...figure.series.map((series) => series.points.length));
      const traces = figure.series.map((series, n) => ({
        ...line(n, series.name, most),
        x: scaled(figure.x, series.points.map((point) => point[0])),
        y: scaled(figure.y, series.points.map((point) => point[1])),
        ...intervals(figure.y, series, n),
        hovertemplate: reading(figure.y, "y"),
      }));
      const places = placesAcross(figure);
      const rangemode = choice.y === "linear" ? "tozero" : "normal";
      const across = all(traces, "x").filter((value) => choice.x === "linear" || value > 0);
      const ends = [Math.min(...across), Math.max(...across)];
      const level = (one) => ({ x: ends, y: scaled(figure.y, [one.value, one.value]) });
      traces.push(...published(figure, figure.y, "y", level));
      return {
        traces,
        layout: {
          xaxis: numberAxis(figure.x, choice.x, across, { places, ...(choice.x === "linear" ? { range: padded(ends) } : {}) }),
          yaxis: numberAxis(figure.y, choice.y, all(traces, "y"), { rangemode }),
          hovermode: "x unified",
          ...shades(figure, traces),
        },
      };
    },
  },
  cdf: {
    first: (figure) => ({ x: figure.x.scale, view: figure.tail ? "tail" : "share" }),
    choices: () => [scales("x"), { name: "view", label: "show", options: ["share", "tail"] }],
    draw(figure, choice) {
      const tail = choice.view === "tail";
      const rarest = figure.series.flatMap((series) => rests(series.points)).reduce((a, b) => Math.min(a, b), 0.1);
      const traces = figure.series.map((series, n) => {
        // A distribution is drawn as a smooth line, with any number of points.
        const { line: stroke, ...rest } = line(n, series.name, 0);
        return {
          ...rest,
          mode: "lines",
          line: { ...stroke, shape: tail ? "linear" : "hv" },
          x: scaled(figure.x, series.points.map((point) => point[0])),
          y: tail ? rests(series.points) : series.points.map((point) => point[1]),
          customdata: series.points.map((point) => (point[1] < 1 ? percentile(1 - point[1]) : "max")),
          hovertemplate: `%{customdata}: ${reading(figure.x, "x")}`,
        };
      });
      const upright = (one) => ({ x: scaled(figure.x, [one.value, one.value]), y: tail ? [1, rarest] : [0, 1] });
      traces.push(...published(figure, figure.x, "x", upright));
      return {
        traces,
        layout: {
          xaxis: numberAxis(figure.x, choice.x, all(traces, "x")),
          yaxis: tail
            ? tailAxis(figure.of, rarest)
            : axis(safe(`share of ${figure.of}`), { tickformat: ".0%", range: [0, 1.02], uirevision: "share" }),
          hovermode: "closest",
        },
      };
    },
  },
  // Lengths have a meaning only from zero on a linear axis. On a logarithmic axis the values are
  // dots.
  bars: {
    first: (figure) => ({ y: figure.y.scale }),
    choices: () => [scales("y")],
    draw(figure, choice) {
      const places = figure.categories.map((_, group) => group);
      const asDots = choice.y === "log";
      const traces = figure.series.map((series, n) => ({
        name: safe(series.name),
        y: scaled(figure.y, series.values),
        text: figure.categories.map(safe),
        hovertemplate: `%{text}: ${reading(figure.y, "y")}`,
        ...(asDots ? dots(places, n, figure.series.length) : bar(places, n)),
      }));
      const spans = (one) => {
        const group = figure.categories.indexOf(one.group);
        const ends = group < 0 ? [-0.5, places.length - 0.5] : [group - 0.45, group + 0.45];
        return { x: ends, y: scaled(figure.y, [one.value, one.value]) };
      };
      traces.push(...published(figure, figure.y, "y", spans));
      const groups = { tickvals: places, ticktext: figure.categories.map(safe), range: [-0.5, places.length - 0.5] };
      return {
        traces,
        layout: {
          xaxis: axis(safe(figure.over), { ...groups, showgrid: false, ticks: "" }),
          yaxis: numberAxis(figure.y, choice.y, all(traces, "y"), { rangemode: asDots ? "normal" : "tozero" }),
          barmode: "group",
          bargap: 0.25,
          bargroupgap: 0.08,
          hovermode: "closest",
        },
      };
    },
  },
};

function bar(places, n) {
  return { type: "bar", x: places, textposition: "none", marker: { color: nth(COLOURS[theme()], n), pattern: pattern(n) } };
}

// Returns dots side by side, like the bars of a group.
function dots(places, n, count) {
  const across = (n - (count - 1) / 2) * (0.75 / count);
  const marker = { color: nth(COLOURS[theme()], n), size: narrow.matches ? 8 : 11, symbol: nth(SYMBOLS, n) };
  return { type: "scatter", mode: "markers", x: places.map((place) => place + across), marker };
}

// Returns the published values as one trace, with one name in the legend. `ends` returns the ends
// of the line of a value.
function published(figure, description, name, ends) {
  const numbers = figure.published ?? [];
  if (numbers.length === 0) return [];
  const trace = { x: [], y: [], text: [] };
  for (const one of numbers) {
    const { x, y } = ends(one);
    trace.x.push(...x, null);
    trace.y.push(...y, null);
    trace.text.push(...x.map(() => safe(one.what)), "");
  }
  return [{
    ...trace,
    type: "scatter",
    mode: "lines",
    name: numbers.length === 1 ? `paper: ${safe(numbers[0].what)}` : "paper",
    line: { color: colour("text"), width: 2, dash: "4px,3px" },
    hovertemplate: `%{text}: ${reading(description, name)}`,
  }];
}

// Returns the shaded ranges, and adds an entry to the legend for each name.
function shades(figure, traces) {
  const stretches = figure.shaded ?? [];
  const names = [...new Set(stretches.map((one) => one.name))];
  const shade = (name) => nth(SHADES[theme()], names.indexOf(name));
  for (const name of names) {
    const marker = { color: shade(name), size: 14, symbol: "square", line: { width: 1, color: colour("soft") } };
    traces.push({ type: "scatter", mode: "markers", x: [null], y: [null], name: safe(name), marker, hoverinfo: "skip" });
  }
  const shape = ({ name, from, to }) => ({
    type: "rect",
    layer: "below",
    yref: "paper",
    x0: from * factor(figure.x),
    x1: to * factor(figure.x),
    y0: 0,
    y1: 1,
    fillcolor: shade(name),
    line: { width: 0 },
  });
  return { shapes: stretches.map(shape) };
}

const placesAcross = (figure) =>
  sweep(figure.x, figure.series.flatMap((series) => series.points.map((point) => point[0])));
const all = (traces, name) => traces.flatMap((trace) => trace[name]);

// Returns the share beyond each point. The share beyond the largest value is zero, which has no
// logarithm, so that point gets the share of the point before.
function rests(points) {
  let last = 1;
  return points.map((point) => (last = point[1] < 1 ? 1 - point[1] : last));
}

// Returns the confidence intervals of the points, if they are known.
function intervals(description, { ci95 }, n) {
  if (ci95 === undefined) return {};
  const color = nth(COLOURS[theme()], n);
  const array = scaled(description, ci95);
  return { error_y: { type: "data", array, color, thickness: 1.2, width: 4 } };
}

const scales = (name) => ({ name, label: `${name} axis`, options: ["linear", "log"] });

// Few points have markers. Many points are a thin line without dashes, because dashes would merge.
function line(n, name, points) {
  const color = nth(COLOURS[theme()], n);
  return {
    type: "scatter",
    mode: points <= 40 ? "lines+markers" : "lines",
    name: safe(name),
    line: { color, width: points <= 300 ? 2 : 1.5, dash: points <= 100 ? nth(DASHES, n) : "solid" },
    marker: { color, size: 7, symbol: nth(SYMBOLS, n) },
  };
}

function pattern(n) {
  const bgcolor = nth(COLOURS[theme()], n);
  // From the eighth series on, colours repeat with other patterns.
  const shape = nth(PATTERNS, n + Math.floor(n / PATTERNS.length));
  return { shape, size: 7, solidity: 0.2, fgcolor: colour("panel"), bgcolor };
}

// ---- drawing

function layout(traces) {
  const family = "system-ui, sans-serif";
  return {
    height: narrow.matches ? 400 : 440,
    // The toolbar is vertical in the margin, where it does not overlap the legend.
    margin: { l: 56, r: narrow.matches || printing ? 16 : 48, t: 16, b: 48 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family, size: narrow.matches ? 11 : 13, color: colour("text") },
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("faint"), font: { family, color: colour("text") }, namelength: -1 },
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
    // A finger scrolls the page; a mouse zooms the plot.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    separators: ".\u202f",
    uirevision: "kept",
    showlegend: traces.length > 1,
    modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: colour("soft"), activecolor: colour("text") },
  };
}

// Width of a plot in print, in pixels.
const PAPER_WIDTH = 660;

// Moves the subject of the paper to the end, as a solid thick line, so that no other series covers
// it. The legend keeps its order.
function emphasise(traces, subject) {
  traces.forEach((trace, n) => (trace.legendrank = n + 1));
  const at = traces.findIndex((trace) => subject !== undefined && trace.name === safe(subject));
  if (at < 0 || !traces[at].line) return;
  const [trace] = traces.splice(at, 1);
  trace.line = { ...trace.line, width: 3.5, dash: "solid" };
  traces.push(trace);
}

async function draw({ figure, choice, place }) {
  const { traces, layout: own } = KINDS[figure.kind].draw(figure, choice);
  emphasise(traces, figure.subject);
  const hidden = hideUnshowable(traces, "x", own.xaxis) + hideUnshowable(traces, "y", own.yaxis);
  const size = printing ? { width: PAPER_WIDTH, autosize: false } : { autosize: true };
  await Plotly.react(place.querySelector(".plot"), traces, { ...layout(traces), ...size, ...own }, {
    responsive: true,
    displaylogo: false,
    displayModeBar: narrow.matches || printing ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: figure.id },
  });
  const line = place.querySelector(".hidden-points");
  line.hidden = hidden === 0;
  line.textContent = `Values up to zero, which do not show on a logarithmic axis: ${hidden}.`;
}

// Recomputes the ticks of logarithmic axes after a zoom.
function retick({ figure, place }) {
  const plot = place.querySelector(".plot");
  const update = {};
  for (const name of ["x", "y"]) {
    const { type, range, ticktext } = plot.layout[`${name}axis`];
    if (!figure[name] || type !== "log") continue;
    const places = figure.kind === "lines" && name === "x" ? placesAcross(figure) : [];
    const ticks = logTicks(figure[name], range, places);
    if (String(ticks.ticktext) === String(ticktext)) continue;
    update[`${name}axis.tickvals`] = ticks.tickvals;
    update[`${name}axis.ticktext`] = ticks.ticktext;
  }
  if (Object.keys(update).length > 0) Plotly.relayout(plot, update);
}

// Removes the values that a logarithmic axis cannot show, and returns their number. Plotly would
// draw them at the edge.
function hideUnshowable(traces, name, { type }) {
  if (type !== "log") return 0;
  const showable = (value) => value === null || value > 0;
  const count = all(traces, name).filter((value) => !showable(value)).length;
  for (const trace of traces) trace[name] = trace[name].map((value) => (showable(value) ? value : null));
  return count;
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
      drawing.place.querySelector(".plot").on("plotly_relayout", () => retick(drawing));
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
