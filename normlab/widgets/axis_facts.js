// AxisPicker without its page: states, the actions that lead from one to the next, and
// what follows from them. LAYOUTS and MOST_VALUES come from axis_picker.py.

const DEFAULTS = {
  center: true,
  parameters: null,
  eps: 1e-5,
  weight: 1,
  bias: 0,
  cell: [],
};
const FIRST = {
  ...DEFAULTS,
  pattern: "N (G [C/G]) [H W]",
  shape: [4, 8, 5, 5],
  groups: 4,
};
const NAMES = Object.keys(FIRST);
const MOST_COUNTED = 1e6; // values in a set, for its mean to be computed as one points

// ------------------------------------------------------------------------ the state

/**
 * A state in which everything fits, made from one that may hold anything (it can come
 * from a link): what does not fit is replaced, and `problem` says why. What a new
 * pattern leaves behind is fitted to it, as AxisPicker does in Python.
 */
export function settle(raw, before = FIRST) {
  const problems = [];
  const attempt = (make, otherwise) => {
    try {
      return make();
    } catch (error) {
      const { message, reason, fix } = error; // in one line, without the caret
      problems.push(fix ? `${reason} ${fix}` : message);
      return otherwise;
    }
  };
  const pattern = attempt(() => readPattern(raw.pattern), parse(before.pattern));
  const { axes } = pattern;
  const whole = (n) => Number.isInteger(n) && n >= 1;
  let shape = Array.isArray(raw.shape) ? raw.shape : [];
  if (!shape.every(whole) || shape.reduce((total, n) => total * n, 1) >= MOST_VALUES) {
    problems.push(
      "shape: every size is 1 or more, and all together fewer than 2**31 values.",
    );
    shape = [];
  }
  if (shape.length !== axes.length) {
    const old = parse(before.pattern).axes;
    shape = startShape(axes).map(
      (size, i) => before.shape[old.indexOf(axes[i])] ?? size,
    );
  }
  let groups = whole(raw.groups) ? raw.groups : 1;
  if (pattern.splitAxis) {
    const size = shape[axes.indexOf(pattern.splitAxis)];
    if (size % groups) groups = startGroups(size);
  }
  const known = attempt(
    () => pattern.parameterAxes(String(raw.parameters ?? "")) && true,
    false,
  );
  const number = (name, fits) => (fits(raw[name]) ? raw[name] : DEFAULTS[name]);
  const cell = Array.isArray(raw.cell) ? raw.cell : [];
  const inside =
    cell.length === axes.length &&
    cell.every((at, i) => Number.isInteger(at) && at >= 0 && at < shape[i]);
  const state = {
    pattern: pattern.text,
    shape,
    groups,
    center: raw.center !== false,
    parameters: known && typeof raw.parameters === "string" ? raw.parameters : null,
    eps: number("eps", (value) => Number.isFinite(value) && value >= 0),
    weight: number("weight", Number.isFinite),
    bias: number("bias", Number.isFinite),
    cell: inside ? cell : [],
  };
  return { state, problem: problems[0] ?? "" };
}

/** Read a pattern that the picker can draw: every axis named, five at most. */
export function readPattern(text) {
  if (typeof text !== "string")
    throw new Error("pattern: a text such as '[N] C [H W]' is expected.");
  const pattern = parse(text);
  if (pattern.axes.includes("...")) {
    throw new Error(
      "pattern: the picker wants a name for each axis that ... stands for.",
    );
  }
  if (pattern.axes.length > 5) {
    throw new Error(
      `pattern: the picker draws up to 5 axes, not ${pattern.axes.length}.`,
    );
  }
  return pattern;
}

// The sizes of the layout, or of the first layout that has an axis of that name, or 4.
function startShape(axes) {
  const same = LAYOUTS.find(([names]) => names === axes.join(" "));
  if (same) return same[1];
  return axes.map((axis) => {
    const found = LAYOUTS.find(([names]) => names.split(" ").includes(axis));
    return found ? found[1][found[0].split(" ").indexOf(axis)] : 4;
  });
}

/** The most groups, up to 32, that leave more than one element in each. */
const startGroups = (size) =>
  Math.max(...divisors(size).filter((n) => n === 1 || (n <= 32 && n < size)));

/** The Python call that makes a picker in this state. */
export function pythonLine(state) {
  const parts = [pythonValue(state.pattern), pythonValue(state.shape, false)];
  if (parse(state.pattern).groups) parts.push(`groups=${state.groups}`);
  for (const [name, value] of Object.entries(DEFAULTS)) {
    if (JSON.stringify(state[name]) !== JSON.stringify(value))
      parts.push(`${name}=${pythonValue(state[name], name !== "cell")}`);
  }
  return pythonCall("AxisPicker", parts);
}

// ------------------------------------------------------------------------ the facts

/** What follows from a state: everything that the picker says in words. */
export function factsOf({ pattern: text, shape, groups, center, parameters }) {
  const pattern = parse(text);
  const sets = pattern.on(shape, groups);
  const layer = pattern.layer(center, parameters);
  const own = layer?.affine ? parametersIn(layer, pattern).join(" ") : "";
  const named = parameters ?? own;
  const reducedAxes = pattern.dims.filter((dim) => dim.reduced);
  const padded = reducedAxes.filter(
    (dim) =>
      [null, "position"].includes(word(dim, pattern)) && dim.axis !== pattern.batchAxis,
  );
  const list = (labels) => labels.join(", ");
  return {
    pattern,
    sets,
    layer,
    sentence: sets.describe(center),
    torch: sets.torchLine(center, parameters),
    normlab: sets.normlabLine(center, parameters),
    parameterAxes: named,
    parameterShape: sets.parameterShape(named),
    hasBias: layer ? layer.bias : center,
    batch: !pattern.reducesBatch
      ? "No: each sample is normalized by itself."
      : layer?.running === "default"
        ? `In train yes: ${pattern.batchAxis} is reduced. In eval no.`
        : `Yes: ${pattern.batchAxis} is reduced.`,
    padding: padded.length
      ? `Yes: padding along ${list(padded.map((dim) => dim.label))} enters the statistics.`
      : "No: no positions are averaged.",
    train:
      layer?.running === "default"
        ? "Yes: eval uses the running mean and variance."
        : layer?.running === "never" || !center
          ? "No: the same in both."
          : "No, unless track_running_stats=True.",
    warnings: warningsOf(pattern, sets, layer, center, named),
  };
}

function warningsOf(pattern, sets, layer, center, parameterAxes) {
  const found = [];
  const norm = layer && normOf(layer);
  if (sets.valuesPerSet === 1) {
    const refused = ["BatchNorm", "InstanceNorm"].includes(norm)
      ? " PyTorch raises an error for it in train."
      : "";
    const left = parameterAxes ? "the bias alone" : "0";
    found.push(
      center
        ? `One value in each set: it is its own mean, so the output is ${left}.${refused}`
        : "One value in each set: it is divided by its own size, so only its sign is left.",
    );
  }
  if (sets.keptShape.length === 0) {
    found.push(
      "Everything is reduced: one mean for the whole tensor, so all samples, channels and positions mix.",
    );
  }
  if (
    ["LayerNorm", "RMSNorm"].includes(norm) &&
    pattern.axes.includes("C") &&
    !pattern.reduced.includes("C")
  ) {
    found.push(
      `${norm} takes the last axes, here ${pattern.reduced.join(", ")}: the channels are not averaged.`,
    );
  }
  return found;
}

/** The arithmetic of one cell: its set's values and statistics, and its output. */
export function arithmeticOf(state, { sets, parameterAxes, hasBias }, cell) {
  const set = sets.setOf(cell);
  const x = cellValue(cell.reduce((flat, at, i) => flat * state.shape[i] + at, 0));
  if (sets.valuesPerSet > MOST_COUNTED) return { set, x };
  const values = Float64Array.from(sets.members(set), cellValue);
  const found = statistics(values, state.center);
  const normalized = normalize(x, found, state.eps);
  const affine = state.weight * normalized + (hasBias ? state.bias : 0);
  return {
    set,
    x,
    values,
    ...found,
    normalized,
    output: parameterAxes ? affine : normalized,
  };
}

// ---------------------------------------------------------------------- the actions

/** The changes that make the picker show a norm: its row for these axes, or the nearest. */
export function presetChanges(norm, axes) {
  const rows = LAYERS.filter((row) => normOf(row) === norm);
  const names = (row) => patternOf(row).axes;
  const row =
    rows.find((one) => names(one).join(" ") === axes.join(" ")) ??
    rows.find((one) => names(one).length === axes.length) ??
    rows.at(-1);
  return { pattern: row.statistics, center: row.center, parameters: null };
}

/** The changes that take a state to another layout, with the same norm if it has a row. */
export function layoutChanges(state, names) {
  const pattern = parse(state.pattern);
  const layer = pattern.layer(state.center);
  const axes = names.split(" ");
  const row = LAYERS.find(
    (one) =>
      layer && normOf(one) === normOf(layer) && patternOf(one).axes.join(" ") === names,
  );
  const reduced = (axis) =>
    pattern.dims.some((dim) => dim.axis === axis && dim.reduced);
  const sameNames = new Pattern(
    axes.map((axis) => ({ label: axis, axis, reduced: reduced(axis) })),
  );
  return {
    pattern: row?.statistics ?? sameNames.text,
    shape: startShape(axes),
    parameters: null,
  };
}

/** The changes that split an axis in groups, or (0 groups) make it whole again. */
export function groupChanges(state, axis, groups) {
  const pattern = parse(state.pattern);
  if (groups && pattern.splitAxis === axis) return { groups };
  const reduced = pattern.dims.some((dim) => dim.axis === axis && dim.reduced);
  const parts = groups
    ? [
        { label: "G", axis, reduced: false },
        { label: `${axis}/G`, axis, reduced: true },
      ]
    : [{ label: axis, axis, reduced }];
  const at = pattern.dims.findIndex((dim) => dim.axis === axis);
  const dims = pattern.dims.filter((dim) => dim.axis !== axis);
  const changes = { pattern: new Pattern(dims.toSpliced(at, 0, ...parts)).text };
  return groups ? { ...changes, groups } : changes;
}

/** The changes for a new size; groups that no longer divide the axis move to the nearest. */
export function sizeChanges(state, axis, size) {
  const pattern = parse(state.pattern);
  const shape = state.shape.map((old, i) => (pattern.axes[i] === axis ? size : old));
  if (pattern.splitAxis !== axis || size % state.groups === 0)
    return { changes: { shape }, note: "" };
  const [groups] = divisorsNear(size, state.groups);
  const note =
    `${axis} = ${size} is not divisible by ${state.groups} groups, so ${pattern.groups} is now ` +
    `${groups}. These would fit: ${divisors(size).slice(0, 12).join(", ")}.`;
  return { changes: { shape, groups }, note };
}
