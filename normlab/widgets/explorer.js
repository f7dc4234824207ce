// What the explorers of one question share: rules for their state, the frame around
// them, their controls, and the numbers they draw and normalize. QUESTION, START, LIMITS,
// FLOATS and OPTIONAL come from explorer.py.

const NAMES = Object.keys(START);
const same = (one, two) => JSON.stringify(one) === JSON.stringify(two);

// ---------------------------------------------------------------------------- state

/**
 * A state that Python would take. What one trait may be alone, `rules.check[name](value)`
 * says (a sentence if not); `rules.fit(state)` are traits that fit a new shape; `rules.refuse(state)` is a sentence if the traits contradict each other.
 */
export function settle(raw, before, rules) {
  const state = {};
  let problem = "";
  for (const name of NAMES) {
    const reason = kindProblem(name, raw[name]) || outsideLimit(name, raw[name]) || rules.check?.[name]?.(raw[name]) || "";
    state[name] = reason ? before[name] : raw[name];
    problem ||= reason;
  }
  if (state.shape && !same(state.shape, before.shape)) {
    const fitted = rules.fit(state);
    // as in Python, what was set along with the shape is refused if it does not fit
    Object.keys(fitted).forEach((name) => {
      if (same(state[name], before[name])) state[name] = fitted[name];
    });
  }
  const reason = rules.refuse?.(state) ?? "";
  return reason ? { state: before, problem: reason } : { state, problem };
}

function kindProblem(name, value) {
  const wanted = START[name];
  if (value === null && OPTIONAL.includes(name)) return "";
  const fits =
    typeof value === typeof wanted &&
    Array.isArray(value) === Array.isArray(wanted) &&
    (typeof value !== "number" || FLOATS.includes(name) || Number.isInteger(value));
  return fits ? "" : `${name}: ${JSON.stringify(value)} is of a kind that is not allowed.`;
}

function outsideLimit(name, value) {
  const limit = LIMITS[name];
  if (!limit || value === null) return "";
  if (typeof limit[0] === "string") {
    return limit.includes(value) ? "" : `${name}: one of ${limit.join(", ")}, not ${quote(value)}.`;
  }
  const within = limit[0] <= value && value <= limit[1];
  return within ? "" : `${name}: from ${limit[0]} to ${limit[1]} is allowed, not ${python(name, value)}.`;
}

/** Whether a shape has one size for each axis in its limits; a sentence if not. */
export function shapeProblem(shape, names, limits) {
  const axes = names.split(" ");
  if (shape.length !== axes.length || !shape.every(Number.isInteger)) {
    return `shape: sizes of ${names} are needed, not ${python("shape", shape)}.`;
  }
  const at = shape.findIndex((size, i) => size < limits[i][0] || size > limits[i][1]);
  if (at < 0) return "";
  return `shape: ${axes[at]} may be from ${limits[at][0]} to ${limits[at][1]}, which ${shape[at]} is not.`;
}

/** The value of a trait as Python writes it. */
function python(name, value) {
  if (name === "fed") {
    // Each part of what was fed begins with a whole number: how many batches.
    const parts = value.map(([count, ...rest]) => formatShape([String(count), ...rest.map((part) => pythonValue(part))]));
    return formatShape(parts);
  }
  return pythonValue(value, FLOATS.includes(name));
}

/** The Python call that makes an explorer in this state. */
export function pythonLine(name, state) {
  const changed = NAMES.filter((trait) => !same(state[trait], START[trait]));
  return pythonCall(name, changed.map((trait) => `${trait}=${python(trait, state[trait])}`));
}

// ---------------------------------------------------------------------------- frame

/**
 * The frame: the question, Reset and the copy buttons, the answer in words, and the
 * state's way to and from the model.
 *
 *   const frame = openExplorer({ model, el, name: "GroupWalk", rules });
 *   frame.root.append(..., frame.answer, ...);
 *   frame.start(paint);          // paint(state) returns the answer
 *   frame.change({ groups: 4 });
 *   return frame.close;
 */
export function openExplorer({ model, el, name, rules }) {
  const view = openView({ model, el, name, label: QUESTION });
  const rawState = () => Object.fromEntries(NAMES.map((trait) => [trait, model.get(trait)]));
  let { state, problem } = settle(rawState(), START, rules);
  const atFirst = state;
  let paint = () => "";
  let later;

  const warning = element("p", { class: "nl-warning", hidden: true });
  const words = element("p", { class: "nl-words" });
  const reset = element("button", { type: "button", onclick: () => change(atFirst) }, "Reset");
  const tools = element("div", { class: "nl-tools" }, reset, copyButton(view, "the explorer as a Python line", () => `normlab.${pythonLine(name, state)}`, "Copy as Python"));
  if (model.link) tools.append(copyButton(view, "the link to this state", () => model.link(state), "Copy link"));
  view.root.classList.add("nl-explorer");
  view.root.append(element("header", { class: "nl-head" }, element("p", { class: "nl-question" }, QUESTION), tools));

  function repaint(aloud) {
    const said = paint(state);
    setText(words, said);
    setText(warning, problem);
    warning.hidden = !problem;
    reset.disabled = same(state, atFirst);
    if (!aloud) return;
    // A slider changes many times in a second; a screen reader hears where it stops.
    clearTimeout(later);
    later = setTimeout(() => view.say(`${problem} ${said}`.trim()), 400);
  }

  function change(changes) {
    ({ state, problem } = settle({ ...state, ...changes }, state, rules));
    repaint(true);
    const differs = NAMES.filter((trait) => !same(state[trait], model.get(trait)));
    view.save(Object.fromEntries(differs.map((trait) => [trait, state[trait]])));
  }

  return {
    root: view.root,
    answer: element("div", { class: "nl-answer" }, warning, words),
    change,
    state: () => state,
    start(draw) {
      paint = draw;
      repaint(false);
      view.watch(NAMES, () => {
        const settled = settle(rawState(), state, rules);
        if (same(settled.state, state) && same(settled.problem, problem)) return; // our own change
        ({ state, problem } = settled);
        repaint(true);
      });
    },
    close() {
      clearTimeout(later);
      view.close();
    },
  };
}

// ------------------------------------------------------------------------- controls
// Each is { node, paint(state) }.

/** A slider over the numbers `values(state)`; `text(value)` is what it reads. */
export function slider(frame, { label, values, text, get, set }) {
  const input = element("input", { type: "range", min: 0, step: 1, "aria-label": label });
  const shown = element("output");
  input.addEventListener("input", () => frame.change(set(values(frame.state())[Number(input.value)], frame.state())));
  return {
    node: element("label", { class: "nl-slider" }, element("span", {}, label), input, shown),
    paint(state) {
      const all = values(state);
      const value = get(state);
      const distances = all.map((one) => Math.abs(one - (value ?? all[0])));
      input.max = all.length - 1;
      input.value = distances.indexOf(Math.min(...distances));
      input.disabled = all.length < 2;
      setText(shown, text(value));
      input.setAttribute("aria-valuetext", text(value));
    },
  };
}

/** Buttons of which one is pressed: `options` are [value, words]. */
export function choice(frame, { label, options, get, set }) {
  const buttons = options.map(([value, words]) =>
    element("button", { type: "button", onclick: () => frame.change(set(value)) }, words)
  );
  return {
    node: element("div", { class: "nl-choice", role: "group", "aria-label": label }, element("span", {}, label), element("div", {}, ...buttons)),
    paint(state) {
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(same(get(state), options[i][0]))));
    },
  };
}

/** Numbers from low to high, both included. */
export function steps(low, high, step) {
  const count = Math.round((high - low) / step);
  return Array.from({ length: count + 1 }, (_, i) => Number((low + i * step).toFixed(6)));
}

/** A number with so many decimals, and a true minus sign; never "-0". */
export function decimals(value, digits = 2) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "\u2212");
}

// -------------------------------------------------------------------------- numbers

/** The numbers that standard_normal in explorer.py draws. */
export function standardNormal(seed, count, start = 0) {
  const base = scramble(seed);
  return Array.from({ length: count }, (_, i) => {
    let sum = 6;
    for (let k = 0; k < 6; k++) {
      const word = scramble(6 * (start + i) + k + base);
      sum += (word & 0xffff) + (word >>> 16);
    }
    return sum / 65536 - 6;
  });
}

function scramble(number) {
  let word = number | 0;
  word = Math.imul(word ^ (word >>> 16), 0x7feb352d);
  word = Math.imul(word ^ (word >>> 15), 0x846ca68b);
  return (word ^ (word >>> 16)) >>> 0;
}

/** Every value of a flat tensor, normalized with its set's statistics. */
export function normalizeSets(values, sets, eps, center = true) {
  const output = new Float64Array(values.length);
  for (let set = 0; set < sets.numSets; set++) {
    const members = sets.members(set);
    const found = statistics(members.map((at) => values[at]), center);
    members.forEach((at) => (output[at] = normalize(values[at], found, eps)));
  }
  return output;
}
