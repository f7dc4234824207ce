// A picture of a tensor's cells: which are drawn, where they stand, how they are
// coloured, and how pointer and keyboard reach them.

const GAPS = [1, 9, 26]; // between cells, between blocks of cells, between outer blocks
const SKIPS = [6, 16, 30]; // the same, where an abridged axis leaves indices out
const HEAD = 15; // height of a row of indices above the blocks
const SIDE = 32; // width of a column of indices left of them
const LARGEST = 26; // side of a cell, at most
const TINTS = 4; // colours of the sets that are not picked; COLOUR_STEPS: base.py

// ---------------------------------------------------------------------- arrangement

/**
 * The indices drawn along each axis. A large tensor is abridged: the first and the last
 * of an axis stand for all, so that at most 2,000 cells are drawn.
 */
export function shownIndices(shape) {
  const inner = shape.length - 2; // the last two axes run inside a block
  const counts = shape.map((size, axis) => Math.min(size, axis >= inner ? 48 : 24));
  const cells = (axes) => axes.reduce((total, axis) => total * counts[axis], 1);
  const all = shape.map((_, axis) => axis);
  const oneWay = (turn) => all.filter((axis) => (shape.length - 1 - axis) % 2 === turn);
  while (cells(all) > 2000 || cells(oneWay(0)) > 100 || cells(oneWay(1)) > 100) {
    counts[counts.indexOf(Math.max(...counts))] -= 1;
  }
  return counts.map((count, axis) => {
    const first = Math.ceil(count / 2);
    return Array.from({ length: count }, (_, k) =>
      k < first ? k : shape[axis] - count + k,
    );
  });
}

/**
 * Where the cells stand. Counted from the last, axes run: right inside a block, down
 * inside it, right over the blocks, down over them, right over all. Where that leaves too
 * little room, the outer ones change places.
 */
export function arrange(shown, width) {
  const ways = ["rdrdr", "rddrd"].map((way) => {
    const axes = (turn) =>
      shown
        .map((_, axis) => axis)
        .filter((axis) => way[shown.length - 1 - axis] === turn);
    return fitCells(shown, axes("r"), axes("d"), width, width > 560 ? 470 : 640);
  });
  return ways[0].size < 8 && ways[1].size > ways[0].size ? ways[1] : ways[0];
}

function fitCells(shown, rightAxes, downAxes, width, height) {
  const side = SIDE * Math.max(0, downAxes.length - 1);
  const head =
    HEAD * Math.max(0, rightAxes.length - 1) + (rightAxes.length > 1 ? 4 : 0);
  const bare = [track(shown, rightAxes, 0), track(shown, downAxes, 0)];
  const room = [width - side - 3, height - head - 3];
  const sizes = bare.map((line, i) => (room[i] - line.extent) / line.positions.length);
  const size = Math.max(2, Math.floor(Math.min(LARGEST, ...sizes) * 2) / 2);
  const right = track(shown, rightAxes, size);
  const down = track(shown, downAxes, size);
  const cells = [];
  down.positions.forEach(([downAt, y], row) => {
    right.positions.forEach(([rightAt, x], column) => {
      const cell = shown.map((_, axis) => rightAt[axis] ?? downAt[axis]);
      cells.push({ cell, row, column, x: x + side + 1, y: y + head + 1 });
    });
  });
  const extent = [right.extent + side + 2, down.extent + head + 2];
  const inner = [rightAxes, downAxes].map((axes) => shown[axes.at(-1)]?.length ?? 1);
  return {
    size,
    cells,
    right,
    down,
    side,
    head,
    inner,
    width: extent[0],
    height: extent[1],
  };
}

// The places along one direction, for axes that run along it from outside to inside.
function track(shown, axes, size) {
  let positions = [[{}, 0]]; // the indices along these axes, and how far along they lie
  let heads = []; // the blocks, with their index
  let skips = [];
  let extent = size;
  [...axes].reverse().forEach((axis, depth) => {
    const next = { positions: [], heads: [], skips: [] };
    let start = 0;
    shown[axis].forEach((index, k) => {
      const skipped = k > 0 && index !== shown[axis][k - 1] + 1;
      if (k > 0) start += extent + (skipped ? SKIPS : GAPS)[depth];
      if (skipped && depth > 0)
        next.skips.push({ depth, at: start - SKIPS[depth] / 2 });
      positions.forEach(([at, offset]) =>
        next.positions.push([{ ...at, [axis]: index }, start + offset]),
      );
      heads.forEach((head) => next.heads.push({ ...head, start: head.start + start }));
      skips.forEach((skip) => next.skips.push({ ...skip, at: skip.at + start }));
      if (depth > 0) next.heads.push({ axis, index, depth, start, extent });
    });
    extent += start;
    ({ positions, heads, skips } = next);
  });
  return { positions, heads, skips, extent };
}

/** One of four colours for each set; neighbours along any kept axis differ. */
export function colourOf(keptIndex) {
  const steps = COLOUR_STEPS.slice(0, keptIndex.length).reverse();
  return keptIndex.reduce((sum, at, i) => sum + at * steps[i], 0) % TINTS;
}

// ------------------------------------------------------------------------- the view

/**
 * Makes the picture: `place` is its element, and
 *
 *   draw({ axes, shape, setOf, colourOf, cell, set })
 *
 * shows the tensor, every cell coloured by its set, the set `set` picked out and one
 * `cell` marked. Only what differs from the last drawing is touched. `onPoint(cell)` is
 * called as the pointer moves (null when it leaves), `onPick(cell)` for a press or an
 * arrow key.
 */
export function openCells({ onPoint, onPick }) {
  const layer = (name, ...children) =>
    svgElement("g", { class: `nl-${name}` }, ...children);
  const outline = svgElement("path");
  const mark = svgElement("rect", { rx: 2 });
  const layers = {
    heads: layer("heads"),
    ground: layer("ground"),
    cells: layer("cells"),
    numbers: layer("numbers"),
  };
  // One path for each colour, whatever the number of cells: recolouring five shapes is
  // much faster than recolouring two thousand. The last is that of the picked set.
  const paths = Array.from({ length: TINTS }, (_, i) =>
    svgElement("path", { class: `nl-set-${i} nl-other` }),
  );
  paths.push(svgElement("path", { class: "nl-set-picked" }));
  layers.cells.append(...paths);
  const ground = svgElement("path");
  layers.ground.append(ground);
  const svg = svgElement("svg", { "aria-hidden": "true" }, ...Object.values(layers));
  svg.append(layer("outline", outline), layer("mark", mark));
  const place = element(
    "div",
    {
      class: "nl-picture",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "picture of a tensor",
    },
    svg,
  );

  let plan = null;
  let planned = ""; // what the plan was made for
  let squares = []; // the piece of path that draws each cell
  let width = 0;
  let atPlace = new Map(); // which cell stands in a row and column
  let atCell = new Map();
  let latest = null;

  function build({ axes, shape }) {
    plan = arrange(shownIndices(shape), width);
    const { size, cells } = plan;
    svg.setAttribute("width", plan.width);
    svg.setAttribute("height", plan.height);
    const square = (x, y, side) => `M${x} ${y}h${side}v${side}h-${side}z`;
    squares = cells.map(({ x, y }) => square(x, y, size));
    const borders = cells.map(({ x, y }) => square(x - 1, y - 1, size + 2));
    ground.setAttribute("d", borders.join(""));
    layers.numbers.replaceChildren();
    layers.heads.replaceChildren(...headings(axes));
    atPlace = new Map(cells.map(({ row, column }, i) => [`${row},${column}`, i]));
    atCell = new Map(cells.map(({ cell }, i) => [cell.join(), i]));
    mark.setAttribute("width", size);
    mark.setAttribute("height", size);
  }

  // "C 0" above the blocks, "N 0" at their left; dots where indices are left out.
  function headings(axes) {
    const { right, down, side, head } = plan;
    const text = (x, y, words, anchor = "middle") =>
      svgElement("text", { x, y, "text-anchor": anchor }, words);
    const deepest = (heads) => Math.max(0, ...heads.map(({ depth }) => depth));
    const above = right.heads.map(({ axis, index, depth, start, extent }) => {
      const fits = (words) => words.length * 6.5 <= extent + GAPS[1];
      const words = [`${axes[axis]} ${index}`, String(index)].find(fits);
      const y = HEAD * (deepest(right.heads) - depth) + 12;
      return words && text(side + 1 + start + extent / 2, y, words);
    });
    const left = down.heads.map(({ axis, index, depth, start, extent }) => {
      const x = SIDE * (deepest(down.heads) - depth);
      return (
        extent >= 10 &&
        text(x, head + 5 + start + extent / 2, `${axes[axis]} ${index}`, "start")
      );
    });
    const dots = [
      ...right.skips.map(({ depth, at }) =>
        text(side + 1 + at, HEAD * (deepest(right.heads) - depth) + 12, "⋯"),
      ),
      ...down.skips.map(({ depth, at }) =>
        text(SIDE * (deepest(down.heads) - depth) + 10, head + 5 + at, "⋮"),
      ),
    ];
    return [...above, ...left, ...dots].filter(Boolean);
  }

  function draw(next = latest) {
    latest = next;
    if (!width || !next) return; // not on the page yet: the observer below draws then
    const plannedNow = JSON.stringify([next.axes, next.shape, width]);
    if (plannedNow !== planned) {
      build(next);
      planned = plannedNow;
    }
    const sets = plan.cells.map(({ cell }) => next.setOf(cell));
    const drawn = paths.map(() => "");
    const colours = sets.map((set, i) =>
      set === next.set ? "picked" : next.colourOf(plan.cells[i].cell),
    );
    colours.forEach((colour, i) => {
      drawn[colour === "picked" ? TINTS : colour] += squares[i];
    });
    paths.forEach((path, i) => path.setAttribute("d", drawn[i]));
    outline.setAttribute("d", border(sets, next.set));
    writeNumbers(sets, colours);
    const marked = plan.cells[atCell.get(next.cell.join())];
    mark.toggleAttribute("hidden", !marked);
    if (marked) {
      mark.setAttribute("x", marked.x);
      mark.setAttribute("y", marked.y);
    }
  }

  // The cell in that row and column, if it touches cell i and is of the same set.
  function joined(sets, i, row, column) {
    const j = atPlace.get(`${row},${column}`);
    if (j === undefined || sets[j] !== sets[i]) return false;
    const [one, two] = [plan.cells[i], plan.cells[j]];
    return Math.abs(one.x - two.x) + Math.abs(one.y - two.y) <= plan.size + GAPS[0];
  }

  // The edges of the picked set's cells towards cells of other sets, or outside.
  function border(sets, picked) {
    let path = "";
    plan.cells.forEach(({ row, column, x, y }, i) => {
      if (sets[i] !== picked) return;
      const [left, top] = [x - 0.5, y - 0.5];
      const [right, bottom] = [left + plan.size + 1, top + plan.size + 1];
      if (!joined(sets, i, row - 1, column)) path += `M${left} ${top}H${right}`;
      if (!joined(sets, i, row + 1, column)) path += `M${left} ${bottom}H${right}`;
      if (!joined(sets, i, row, column - 1)) path += `M${left} ${top}V${bottom}`;
      if (!joined(sets, i, row, column + 1)) path += `M${right} ${top}V${bottom}`;
    });
    return path;
  }

  // The number of its set, once in every block where there is room: colours repeat.
  function writeNumbers(sets, colours) {
    const { size, cells, inner } = plan;
    const written = new Set();
    const texts = [];
    cells.forEach(({ row, column, x, y }, i) => {
      const block = [Math.floor(row / inner[1]), Math.floor(column / inner[0])];
      const key = `${block},${sets[i]}`;
      if (written.has(key) || texts.length > 500) return;
      written.add(key);
      let [wide, high] = [1, 1];
      while (
        joined(sets, atPlace.get(`${row},${column + wide - 1}`), row, column + wide)
      )
        wide += 1;
      while (
        joined(sets, atPlace.get(`${row + high - 1},${column}`), row + high, column)
      )
        high += 1;
      const [width, height] = [wide, high].map(
        (count) => count * (size + GAPS[0]) - GAPS[0],
      );
      const words = String(sets[i]);
      if (height < 10 || width < 7 * words.length) return;
      texts.push([x + width / 2, y + height / 2 + 4, words, `nl-on-${colours[i]}`]);
    });
    const nodes = layers.numbers.childNodes;
    while (nodes.length < texts.length)
      layers.numbers.append(svgElement("text", { "text-anchor": "middle" }));
    while (nodes.length > texts.length) layers.numbers.lastChild.remove();
    texts.forEach(([x, y, words, kind], i) => {
      Object.entries({ x, y, class: kind }).forEach(([name, value]) => {
        if (nodes[i].getAttribute(name) !== String(value))
          nodes[i].setAttribute(name, value);
      });
      setText(nodes[i], words);
    });
  }

  // The cell under a pointer, or the nearest if it is in a gap or under a fingertip.
  function cellNear(event) {
    const box = svg.getBoundingClientRect();
    const [x, y] = [
      event.clientX - box.left - plan.size / 2,
      event.clientY - box.top - plan.size / 2,
    ];
    let best = null;
    let least = plan.size / 2 + 14;
    for (const spot of plan.cells) {
      const distance = Math.max(Math.abs(spot.x - x), Math.abs(spot.y - y));
      if (distance < least) [best, least] = [spot.cell, distance];
    }
    return best;
  }

  function cellByKey({ key, ctrlKey }) {
    const { row, column } = plan.cells[atCell.get(latest.cell.join())] ?? plan.cells[0];
    const { row: lastRow, column: lastColumn } = plan.cells.at(-1);
    const moves = {
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      Home: [ctrlKey ? 0 : row, 0],
      End: [ctrlKey ? lastRow : row, lastColumn],
    };
    if (!(key in moves)) return null;
    const stays = plan.cells[atPlace.get(`${row},${column}`)];
    return (plan.cells[atPlace.get(moves[key].join())] ?? stays).cell;
  }

  place.addEventListener("pointermove", (event) => {
    if (plan && event.pointerType !== "touch") onPoint(cellNear(event));
  });
  place.addEventListener("pointerleave", () => onPoint(null));
  place.addEventListener("click", (event) => {
    const cell = plan && cellNear(event);
    if (cell) onPick(cell);
  });
  place.addEventListener("keydown", (event) => {
    const cell = plan && cellByKey(event);
    if (!cell) return;
    event.preventDefault();
    onPick(cell);
  });
  // The width is taken from the observer: asking the element would lay the page out anew.
  const observer = new ResizeObserver(([{ contentRect }]) => {
    width = Math.floor(contentRect.width);
    draw();
  });
  observer.observe(place);
  return { place, draw, close: () => observer.disconnect() };
}
