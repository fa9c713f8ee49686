// What a reader would stumble over, written among the errors of a page. Runs in a page under test, behind its own scripts.
(async () => {
  const root = document.documentElement;
  const note = (id, text) => console.error(`${id}: ${text} (${innerWidth} px wide)`);
  while (root.dataset.figuresDrawn === undefined) await new Promise((later) => setTimeout(later, 20));
  root.dataset.width = String(innerWidth);
  root.dataset.dark = String(matchMedia("(prefers-color-scheme: dark)").matches);

  if (root.scrollWidth > innerWidth + 1) note("page", `it scrolls sideways, ${root.scrollWidth} px`);
  const meets = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const box = (element) => element.getBoundingClientRect();

  const luminance = (colour) => {
    const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => Number(part) / 255);
    const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  for (const figure of document.querySelectorAll("figure")) {
    const plot = figure.querySelector(".plot");
    const canvas = plot.querySelector(".main-svg");
    if (!canvas) continue;
    // Plotly has a group of this class for each series, with paths in it.
    const outline = (path) => /^M(?!0,0Z)/.test(path.getAttribute("d") ?? "");
    const traces = [...plot.querySelectorAll("g.trace")];
    figure.dataset.marks = String(traces.filter((one) => [...one.querySelectorAll("path")].some(outline)).length);
    const legend = plot.querySelector("g.legend");
    const toolbar = plot.querySelector(".modebar");
    if (legend && toolbar && meets(box(legend), box(toolbar))) note(figure.id, "the legend lies under the toolbar");
    if (legend && meets(box(legend), box(plot.querySelector(".nsewdrag")))) note(figure.id, "the legend lies on the plot");
    for (const text of plot.querySelectorAll("text.legendtext, text.xtitle, text.ytitle")) {
      if (box(text).right > box(canvas).right + 1 || box(text).left < box(canvas).left - 1) {
        note(figure.id, `"${text.textContent}" is cut off`);
      }
    }
    for (const selector of ["g.xaxislayer-above g.xtick", "g.yaxislayer-above g.ytick"]) {
      const ticks = [...plot.querySelectorAll(selector)].map(box).filter((one) => one.width > 0);
      // Labels that are turned have boxes that overlap.
      const turned = plot.querySelector(`${selector} text[transform*="rotate("]:not([transform*="rotate(0"])`);
      if (!turned && ticks.some((one, n) => n > 0 && meets(one, ticks[n - 1]))) note(figure.id, "labels of ticks overlap");
    }
    const bars = plot.data.some((trace) => trace.type === "bar");
    const { type, range } = plot.layout.yaxis;
    if (bars && (type === "log" || range[0] > 0)) note(figure.id, "bars do not begin at zero");
    const title = plot.querySelector("text.ytitle");
    const ground = getComputedStyle(figure).backgroundColor;
    if (title && contrast(getComputedStyle(title).fill, ground) < 4.5) note(figure.id, "its text is hardly to be seen");
  }
  for (const cell of document.querySelectorAll("td, th, p, h1, h2, figcaption")) {
    let ground = cell;
    while (ground && getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
    const behind = ground ? getComputedStyle(ground).backgroundColor : "rgb(255, 255, 255)";
    if (contrast(getComputedStyle(cell).color, behind) < 4.5) {
      note("page", `"${cell.textContent.slice(0, 40)}" is hardly to be seen`);
      break;
    }
  }
  root.dataset.looked = "1";
})();
