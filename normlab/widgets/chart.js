// Charts: lines and marks over two scales, and strips on which dots move. Places are
// percentages, so a chart is as wide as its room without being drawn anew.

/** Five or so round numbers from low to high. */
export function ticks(low, high, most = 5) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((one) => one >= rough);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** A scale that holds all values, with a little room: [low, high]. */
export function span(values, least = 1) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(high - low, least) * 0.08;
  return [low - room, high + room];
}

/** Makes `parent` hold one `tag` for each of these attributes, touching what differs. */
export function keep(parent, tag, list) {
  const nodes = parent.childNodes;
  while (nodes.length > list.length) parent.lastChild.remove();
  list.forEach((attributes, i) => {
    const node = nodes[i] ?? parent.appendChild(svgElement(tag));
    for (const [name, value] of Object.entries(attributes)) {
      if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
    }
  });
}

/**
 * A chart: `figure` is its element, and
 *
 *   draw({ label, x: [low, high], y: [low, high], xTicks, yTicks, lines, dots })
 *
 * shows it. Ticks are [place, words]; lines and dots [kind, points], where the kind is a
 * class of explorer.css and a point [x, y]. `legend` is [kind, words].
 */
export function openChart({ title, height, legend }) {
  const grid = svgElement("g");
  const lines = svgElement("g");
  const dots = svgElement("g");
  const stretched = svgElement("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", width: "100%", height: "100%" }, grid, lines);
  const svg = svgElement("svg", { class: "nl-plot", role: "img", style: `height: ${height}px` }, stretched, dots);
  const below = element("div", { class: "nl-x", "aria-hidden": "true" });
  const beside = element("div", { class: "nl-y", "aria-hidden": "true" });
  const sample = ([kind, words]) =>
    element("span", {},
      svgElement("svg", { width: kind.startsWith("dot") ? 10 : 26, height: 12, "aria-hidden": "true" },
        kind.startsWith("dot") ? svgElement("circle", { class: `nl-${kind}`, cx: 5, cy: 6, r: 4 }) : svgElement("path", { class: `nl-${kind}`, d: "M1 6H25" })),
      words);
  const figure = element("div", { class: "nl-chart" },
    element("div", { class: "nl-legend" }, element("strong", {}, title), ...legend.map(sample)),
    beside, svg, below);

  function draw({ label, x, y, xTicks, yTicks, lines: paths, dots: marks }) {
    const right = (value) => (1000 * (value - x[0])) / (x[1] - x[0]);
    const down = (value) => 1000 - (1000 * (value - y[0])) / (y[1] - y[0]);
    svg.setAttribute("aria-label", label);
    writeTicks(beside, "bottom", yTicks, y);
    writeTicks(below, "left", xTicks, x);
    const across = yTicks.map(([at]) => ({ class: "nl-grid", d: `M0 ${down(at).toFixed(1)}H1000` }));
    keep(grid, "path", across);
    keep(lines, "path", paths.map(([kind, points]) => ({
      class: `nl-${kind}`,
      d: points.map(([a, b], i) => `${i ? "L" : "M"}${right(a).toFixed(1)} ${down(b).toFixed(1)}`).join(""),
    })));
    keep(dots, "circle", marks.flatMap(([kind, points, r = 4]) => points.map(([a, b]) => ({
      class: `nl-${kind}`, cx: `${(right(a) / 10).toFixed(2)}%`, cy: `${(down(b) / 10).toFixed(2)}%`, r,
    }))));
  }
  return { figure, svg, draw };
}

/**
 * A strip: two rows of dots over one scale, each dot joined to its partner below. What
 * stays stands upright; what moves leans. `draw(above, below, [low, high])`.
 */
export function openStrip() {
  const scale = svgElement("g");
  const links = svgElement("g");
  const above = svgElement("g");
  const below = svgElement("g");
  const svg = svgElement("svg", { class: "nl-strip", "aria-hidden": "true" }, scale, links, above, below);
  const [top, bottom] = ["25%", "75%"];

  function draw(before, now, ends) {
    const place = (value) => `${percent(Math.min(Math.max(value, ends[0]), ends[1]), ends)}%`;
    keep(scale, "line", ticks(...ends, 4).map((at) => ({ class: at === 0 ? "nl-zero" : "nl-grid", x1: place(at), x2: place(at), y1: 0, y2: "100%" })));
    keep(links, "line", now.map((value, i) => ({ class: "nl-link", x1: place(before[i]), y1: top, x2: place(value), y2: bottom })));
    keep(above, "circle", before.map((value) => ({ class: "nl-dot-before", cx: place(value), cy: top, r: 3.5 })));
    keep(below, "circle", now.map((value) => ({ class: "nl-dot-now", cx: place(value), cy: bottom, r: 3.5 })));
  }
  return { svg, draw };
}

/** The numbers under strips: `draw([low, high])`. */
export function openScale() {
  const node = element("div", { class: "nl-x", "aria-hidden": "true" });
  return { node, draw: (ends) => writeTicks(node, "left", ticks(...ends, 4).map((at) => [at, formatNumber(at)]), ends) };
}

/** Symmetric ends that hold all values: a few sizes only, so that they seldom change. */
export function reach(values) {
  const most = Math.max(...values.map(Math.abs));
  const size = [4, 8, 16, 32].find((one) => one >= most) ?? Math.ceil(most / 50) * 50;
  return [-size, size];
}

const percent = (value, [low, high]) => ((100 * (value - low)) / (high - low)).toFixed(2);

function writeTicks(place, side, list, ends) {
  while (place.childNodes.length > list.length) place.lastChild.remove();
  list.forEach(([at, words], i) => {
    const node = place.childNodes[i] ?? place.appendChild(element("span"));
    node.style[side] = `${percent(at, ends)}%`;
    setText(node, words);
  });
}
