// The notation of normlab.axes, for the page: patterns, sets, layers, statistics. It
// says what Python says, word for word; tests/browser/test_same_numbers.py compares them.
// LAYERS and POSITIONS come from normlab.axes.

/** A pattern that cannot be read, or does not fit a shape; the message points at why. */
export class NotationError extends Error {
  constructor(reason, text, start, end, fix) {
    const column = [...text.slice(0, start)].length;
    const width = Math.max(1, [...text.slice(start, end)].length);
    super(
      `${reason}\n    ${text}\n    ${" ".repeat(column)}${"^".repeat(width)}\n${fix}`,
    );
    Object.assign(this, { reason, start, end, fix });
  }
}

const quote = (text) =>
  text.includes("'") && !text.includes('"')
    ? `"${text}"`
    : `'${text.replace(/['\\]/g, "\\$&")}'`;
const tuple = (numbers) =>
  numbers.length === 1 ? `(${numbers[0]},)` : `(${numbers.join(", ")})`;
const product = (numbers) => numbers.reduce((total, n) => total * n, 1);
const capital = (flag) => (flag ? "True" : "False");

// ---------------------------------------------------------------------- the pattern

/** One dimension of the split tensor: { label: "C/G", axis: "C", reduced: true }. */
export class Pattern {
  constructor(dims) {
    this.dims = dims;
    this.axes = [...new Set(dims.map((dim) => dim.axis))];
    this.reduced = dims.filter((dim) => dim.reduced).map((dim) => dim.label);
    this.kept = dims.filter((dim) => !dim.reduced).map((dim) => dim.label);
    const part = dims.find((dim) => dim.label.includes("/"));
    this.groups = part ? part.label.split("/")[1] : null;
    this.splitAxis = part ? part.axis : null;
    this.spans = [];
    this.text = "";
    dims.forEach((dim, i) => {
      this.text += (i ? " " : "") + (dims[i + 1]?.axis === dim.axis ? "(" : "");
      this.text += dim.reduced && !this.#shareBrackets(i - 1) ? "[" : "";
      this.spans.push([this.text.length, this.text.length + dim.label.length]);
      this.text += dim.label + (dim.reduced && !this.#shareBrackets(i) ? "]" : "");
      this.text += dims[i - 1]?.axis === dim.axis ? ")" : "";
    });
  }

  #shareBrackets(i) {
    const one = this.dims[i];
    const two = this.dims[i + 1];
    if (!one?.reduced || !two?.reduced) return false;
    return one.axis === two.axis || ![one.axis, two.axis].includes(this.splitAxis);
  }

  get batchAxis() {
    const first = this.axes[0];
    const isBatch =
      !this.axes.includes("N") && first !== "C" && !POSITIONS.includes(first);
    return isBatch ? first : "N";
  }

  get reducesBatch() {
    return this.dims.some((dim) => dim.reduced && dim.axis === this.batchAxis);
  }

  /** The same pattern with the dimension `label` reduced, or kept again. */
  press(label) {
    const turn = (dim) =>
      dim.label === label ? { ...dim, reduced: !dim.reduced } : dim;
    return new Pattern(this.dims.map(turn));
  }

  parameterAxes(parameters) {
    const names = parameters.split(/\s+/).filter(Boolean);
    for (const found of parameters.matchAll(/\S+/g)) {
      if (this.axes.includes(found[0])) continue;
      const reason = `parameters: ${quote(found[0])} is no axis of '${this.text}'.`;
      const fix = `Name some of its axes, in their order: ${this.axes.join(" ")}.`;
      throw new NotationError(
        reason,
        parameters,
        found.index,
        found.index + found[0].length,
        fix,
      );
    }
    const ordered = this.axes.filter((axis) => names.includes(axis));
    if (names.join(" ") !== ordered.join(" ")) {
      const reason = "parameters: the axes are not in the pattern's order.";
      const fix = `Write '${ordered.join(" ")}'.`;
      throw new NotationError(reason, parameters, 0, parameters.length, fix);
    }
    return names;
  }

  /** The pattern applied to a shape; `groups` is the number of groups, if it has some. */
  on(shape, groups = null) {
    return new Sets(this, shape, groups);
  }

  /** The row of LAYERS that this pattern is, or null. */
  layer(center = true, parameters = null) {
    const wanted = this.parameterAxes(parameters ?? "").join(" ");
    let best = null;
    let most = -1;
    for (const row of LAYERS) {
      if (row.center !== center || !fits(row, this)) continue;
      if (wanted && wanted !== parametersIn(row, this).join(" ")) continue;
      const shared = namesShared(row, this);
      if (shared > most) [best, most] = [row, shared];
    }
    return best;
  }
}

// ----------------------------------------------------------------------- the parser

const TOKEN = /\s*(?:\.\.\.|[A-Za-z]\w*(?:\/[A-Za-z]\w*)?|[[\]()])/y;

/** Read a pattern such as "[N] C [H W]"; throws NotationError. */
export function parse(text) {
  const fail = (reason, start, end, fix) => {
    throw new NotationError(`pattern: ${reason}`, text, start, end, fix);
  };
  if (!text.trim())
    fail("it is empty.", 0, 1, "Name every axis, for example [N] C [H W].");
  const dims = [];
  const seen = new Set();
  let opened = null;
  let held = false;
  let split = null;

  const add = (name, start, end) => {
    if (seen.has(name)) {
      const dots = name === "...";
      const fix = dots
        ? "Keep one ... and name the other axes."
        : "Give every axis a name of its own.";
      fail(`${quote(name)} stands twice.`, start, end, fix);
    }
    seen.add(name);
  };

  for (const [token, start, end] of tokens(text, fail)) {
    if (token === "[") {
      if (opened !== null) {
        const fix =
          "Close the first pair before the second opens, or write all in one: [H W].";
        fail("brackets cannot stand inside brackets.", start, end, fix);
      }
      [opened, held] = [start, false];
    } else if (token === "]") {
      if (opened === null) {
        const fix = "Put a [ before the first axis to reduce, or leave the ] out.";
        fail("this ] closes nothing.", start, end, fix);
      }
      if (!held) {
        fail(
          "these brackets are empty.",
          opened,
          end,
          "Put the axes to reduce inside, or leave the pair out.",
        );
      }
      opened = null;
    } else if (token === "(") {
      if (split !== null) {
        fail(
          "parentheses cannot stand inside parentheses.",
          start,
          end,
          "Close the first pair before the second opens.",
        );
      }
      if (opened !== null) {
        const fix = "Reduce the whole axis ([C]), or one part inside: (G [C/G]).";
        fail("a split cannot stand inside brackets.", start, end, fix);
      }
      if (dims.some((dim) => dim.label.includes("/"))) {
        fail(
          "only one axis can be split.",
          start,
          end,
          "Leave all but one of the axes whole.",
        );
      }
      split = { start, parts: [] };
    } else if (token === ")") {
      if (split === null) {
        const fix = "Put a ( before the group, as in (G [C/G]), or leave the ) out.";
        fail("this ) closes nothing.", start, end, fix);
      }
      if (opened !== null) {
        fail(
          "this [ is still open.",
          opened,
          opened + 1,
          "Close the brackets first, as in (G [C/G]).",
        );
      }
      dims.push(...splitDims(split, end, fail, add));
      split = null;
    } else {
      held = true;
      if (split !== null) {
        split.parts.push([token, opened !== null]);
        continue;
      }
      if (token.includes("/")) {
        const fix = `Write both parts: (${token.split("/")[1]} [${token}]).`;
        fail(`${quote(token)} is a part of a split axis.`, start, end, fix);
      }
      add(token, start, end);
      dims.push({ label: token, axis: token, reduced: opened !== null });
    }
  }
  if (split !== null)
    fail("this ( is never closed.", split.start, split.start + 1, "Add the missing ).");
  if (opened !== null)
    fail("this [ is never closed.", opened, opened + 1, "Add the missing ].");
  return new Pattern(dims);
}

function* tokens(text, fail) {
  const endOfText = text.trimEnd().length;
  let position = 0;
  while (position < endOfText) {
    TOKEN.lastIndex = position;
    const match = TOKEN.exec(text);
    if (match === null) {
      const rest = text.slice(position);
      const start = position + rest.length - rest.trimStart().length;
      const culprit = String.fromCodePoint(text.codePointAt(start));
      const fix = "Use axis names, [ ] for reduced, ( ) for a split, and '...'.";
      fail(
        `${quote(culprit)} is not part of the notation.`,
        start,
        start + culprit.length,
        fix,
      );
    }
    position = TOKEN.lastIndex;
    const token = match[0].trimStart();
    yield [token, position - token.length, position];
  }
}

function splitDims({ start, parts }, end, fail, add) {
  const part = parts.map(([name]) => name).find((name) => name.includes("/"));
  const [axis, groups] = part ? part.split("/") : ["C", "G"];
  const names = parts.map(([name]) => name).sort();
  if (names.join(" ") !== [groups, `${axis}/${groups}`].sort().join(" ")) {
    const fix = `Write the number of groups and the size of each: (${groups} [${axis}/${groups}]).`;
    fail("parentheses split one axis in two parts.", start, end, fix);
  }
  if (axis === groups) {
    const fix = `Give the groups a name of their own: (G [${axis}/G]).`;
    fail(`${quote(axis)} names both the axis and its groups.`, start, end, fix);
  }
  add(axis, start, end);
  add(groups, start, end);
  return parts.map(([label, reduced]) => ({ label, axis, reduced }));
}

// ------------------------------------------------------------------------- the sets

/** A pattern applied to a shape, by arithmetic on sizes; throws NotationError. */
export class Sets {
  constructor(pattern, shape, groups) {
    Object.assign(this, { pattern, shape, dims: pattern.dims, groups });
    this.splitShape = fit(pattern, shape, groups);
    const sized = this.dims.map((dim, i) => [dim, this.splitShape[i]]);
    this.statisticsShape = sized.map(([dim, size]) => (dim.reduced ? 1 : size));
    this.keptShape = sized.filter(([dim]) => !dim.reduced).map(([, size]) => size);
    this.reducedDims = sized.map(([,], i) => i).filter((i) => this.dims[i].reduced);
    this.numSets = product(this.keptShape);
    this.valuesPerSet = product(this.reducedDims.map((i) => this.splitShape[i]));
    this.sizes = Object.fromEntries(pattern.axes.map((axis, i) => [axis, shape[i]]));
    sized.forEach(([dim, size]) => (this.sizes[dim.label] = size));
    // How far apart neighbours along a dimension lie, in the tensor and among the sets.
    this.strides = strides(this.splitShape);
    const setStrides = strides(this.statisticsShape);
    this.setStrides = this.dims.map((dim, i) => (dim.reduced ? 0 : setStrides[i]));
  }

  /** The index along each dimension of the split tensor, for a cell of the tensor. */
  splitIndex(cell) {
    const index = [];
    this.pattern.axes.forEach((axis, i) => {
      const at = this.dims.findIndex((dim) => dim.axis === axis);
      if (axis !== this.pattern.splitAxis) return index.push(cell[i]);
      const second = this.splitShape[at + 1];
      return index.push(Math.floor(cell[i] / second), cell[i] % second);
    });
    return index;
  }

  /** The number of the set that a cell (one index for each axis) belongs to. */
  setOf(cell) {
    return this.splitIndex(cell).reduce((id, at, i) => id + at * this.setStrides[i], 0);
  }

  /** Positions in the flat tensor of all values of one set, in their order. */
  members(set) {
    const found = new Float64Array(this.valuesPerSet);
    this.dims.forEach((dim, i) => {
      if (dim.reduced) return;
      const at = Math.floor(set / this.setStrides[i]) % this.splitShape[i];
      found[0] += at * this.strides[i];
    });
    let count = 1;
    for (const i of this.reducedDims) {
      const size = this.splitShape[i];
      // From the back, so that nothing is overwritten before it is read.
      for (let j = count - 1; j >= 0; j--) {
        for (let k = size - 1; k >= 0; k--)
          found[j * size + k] = found[j] + k * this.strides[i];
      }
      count *= size;
    }
    return found;
  }

  parameterShape(parameters) {
    return this.pattern.parameterAxes(parameters).map((axis) => this.sizes[axis]);
  }

  describe(center = true) {
    const one = center ? "mean" : "root mean square";
    const count = `${this.numSets} ${one}${this.numSets === 1 ? "" : "s"} in all`;
    if (!this.reducedDims.length)
      return `Nothing is reduced, so each value is its own ${one}: ${count}.`;
    const share = this.valuesPerSet === 1 ? "value makes" : "values share";
    return `${this.valuesPerSet} ${share} each ${one}: ${this.#reducedWords().join(" x ")}; ${count}.`;
  }

  #reducedWords() {
    const counts = []; // [word, sizes]; neighbouring positions are counted together
    for (const i of this.reducedDims) {
      const kind = word(this.dims[i], this.pattern);
      const last = counts.at(-1);
      if (kind === "position" && last?.[0] === kind) last[1].push(this.splitShape[i]);
      else counts.push([kind ?? `along ${this.dims[i].label}`, [this.splitShape[i]]]);
    }
    return counts.map(([kind, sizes]) => {
      const one = (sizes.length === 1 && sizes[0] === 1) || kind.startsWith("along");
      return `${sizes.join(" x ")} ${kind}${one ? "" : "s"}`;
    });
  }

  torchLine(center = true, parameters = null) {
    const row = this.pattern.layer(center, parameters);
    return row && `torch.nn.${call(row, this, parameters)}`;
  }

  normlabLine(center = true, parameters = null) {
    const row = this.pattern.layer(center, parameters);
    if (row) return `normlab.${call(row, this, parameters)}`;
    const parts = [quote(this.pattern.text)];
    let needed = this.pattern.groups ? [this.pattern.groups] : [];
    if (parameters) {
      const names = this.pattern.parameterAxes(parameters);
      parts.push(quote(names.join(" ")));
      needed = [...names, ...needed];
    }
    if (!center) parts.push("center=False");
    const sizes = needed.map((name) => `${quote(name)}: ${this.sizes[name]}`);
    if (sizes.length) parts.push(`sizes={${sizes.join(", ")}}`);
    return `normlab.Norm(${parts.join(", ")})`;
  }
}

function strides(shape) {
  const steps = [];
  let step = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    steps.unshift(step);
    step *= shape[i];
  }
  return steps;
}

function fit(pattern, shape, groups) {
  const fail = (reason, start, end, fix) => {
    throw new NotationError(reason, pattern.text, start, end, fix);
  };
  const { axes, text, spans, dims } = pattern;
  if (axes.length !== shape.length) {
    const names = `${axes.length} ${axes.length === 1 ? "axis" : "axes"}`;
    const reason = `the pattern names ${names}, but the shape ${tuple(shape)} has ${shape.length}.`;
    if (shape.length > axes.length) {
      fail(
        reason,
        text.length,
        text.length + 1,
        "Name the other axes too, or put ... for any number of them.",
      );
    }
    const missing =
      spans[dims.findIndex((dim) => axes.indexOf(dim.axis) >= shape.length)];
    fail(
      reason,
      ...missing,
      "Take out the axes that the tensor lacks, or pass one that has them.",
    );
  }
  return dims.map((dim, i) => {
    const size = shape[axes.indexOf(dim.axis)];
    if (dim.label === dim.axis) return size;
    if (groups === null) {
      const fix = `Pass it by name, ${pattern.groups}=..., a divisor of ${dim.axis} = ${size}.`;
      fail(`the number of groups ${pattern.groups} is missing.`, ...spans[i], fix);
    }
    if (groups === 0 || size % groups) {
      const nearest = divisorsNear(size, groups)
        .slice(0, 2)
        .sort((a, b) => a - b);
      const fix = `${pattern.groups} = ${nearest.join(" or ")} would fit.`;
      fail(
        `${dim.axis} has ${size} elements, which ${groups} groups do not divide.`,
        ...spans[i],
        fix,
      );
    }
    return dim.label.includes("/") ? size / groups : groups;
  });
}

/** Whole numbers that divide `size`, smallest first. */
export function divisors(size) {
  const found = Array.from({ length: size }, (_, i) => i + 1).filter(
    (n) => size % n === 0,
  );
  return found.length ? found : [1];
}

/** The divisors of a size, those nearest to a number of groups first. */
export function divisorsNear(size, groups) {
  const byDistance = (a, b) => Math.abs(a - groups) - Math.abs(b - groups) || a - b;
  return divisors(size).sort(byDistance);
}

/** What one step along a dimension is called; null when its name says nothing. */
export function word(dim, pattern) {
  if (dim.label === pattern.groups) return "group";
  if (dim.axis === "D" && !pattern.axes.includes("H")) return "feature";
  if (POSITIONS.includes(dim.axis)) return "position";
  return { N: "sample", C: "channel" }[dim.axis] ?? null;
}

// ----------------------------------------------------------------------- the layers

/** BatchNorm for BatchNorm2d. */
export const normOf = (row) => row.name.replace(/\dd$/, "");

// Rows are asked for at every change, and parsed once.
const parsedRows = new Map();

export function patternOf(row) {
  if (!parsedRows.has(row)) parsedRows.set(row, parse(row.statistics));
  return parsedRows.get(row);
}

const ANY_RANK = { LayerNorm: /^k*r+$/, RMSNorm: /^k*r+$/, GroupNorm: /^kgr*$/ };

function fits(row, pattern) {
  const known = ANY_RANK[normOf(row)];
  const form = formOf(pattern);
  if (known) return known.test(form);
  return !pattern.axes.includes("...") && form === formOf(patternOf(row));
}

function formOf(pattern) {
  return pattern.axes
    .map((axis) => {
      const parts = pattern.dims.filter((dim) => dim.axis === axis);
      if (parts.length === 1) return parts[0].reduced ? "r" : "k";
      const [first, second] = parts;
      return first.label === pattern.groups && !first.reduced && second.reduced
        ? "g"
        : "x";
    })
    .join("");
}

function parametersIn(row, pattern) {
  if (["LayerNorm", "RMSNorm"].includes(normOf(row))) {
    return pattern.dims.filter((dim) => dim.reduced).map((dim) => dim.axis);
  }
  return pattern.axes.slice(1, 2);
}

function namesShared(row, pattern) {
  const text = (dim) => JSON.stringify([dim.label, dim.axis, dim.reduced]);
  const own = new Set(patternOf(row).dims.map(text));
  return pattern.dims.filter((dim) => own.has(text(dim))).length;
}

function call(row, sets, parameters) {
  const args = [];
  let affine = "affine";
  if (["LayerNorm", "RMSNorm"].includes(normOf(row))) {
    const sizes = sets.reducedDims.map((i) => sets.splitShape[i]);
    args.push(sizes.length > 1 ? tuple(sizes) : String(sizes[0]));
    affine = "elementwise_affine";
  } else {
    if (sets.pattern.groups) args.push(sets.groups);
    args.push(sets.shape[1]);
  }
  if (parameters !== null && Boolean(parameters) !== row.affine) {
    args.push(`${affine}=${capital(Boolean(parameters))}`);
  }
  return `${row.name}(${args.join(", ")})`;
}

// ------------------------------------------------------------------- the statistics

/** The value of a cell: a whole number from -9 to 9 that looks drawn, always the same. */
export function cellValue(flat) {
  return (((Math.imul(flat + 1, 2654435761) >>> 0) >>> 16) % 19) - 9;
}

/** Mean and biased variance of a set, or its mean square where nothing is centred. */
export function statistics(values, center = true) {
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  const offset = center ? mean : 0;
  const spread = values.reduce((sum, x) => sum + (x - offset) ** 2, 0) / values.length;
  return { mean: offset, spread };
}

/** (x - mean) / sqrt(variance + eps), or x / sqrt(mean square + eps). */
export function normalize(x, { mean, spread }, eps) {
  return (x - mean) / Math.sqrt(spread + eps);
}
