// BatchMates: move the other samples of a batch, and see whose output follows.

const PATTERNS = {
  BatchNorm: "[N] C [L]",
  LayerNorm: "N [C L]",
  InstanceNorm: "N C [L]",
  GroupNorm: "N (G [C/G]) [L]",
  RMSNorm: "N [C L]",
};
const MODES = [["train", true], ["eval", false]];

export const matesRules = {
  check: {
    shape: (shape) => shapeProblem(shape, "N C L", SIZES),
    values: (values) => (values.every(Number.isFinite) ? "" : "values: finite numbers are needed."),
  },
  fit({ shape, values, groups, element: at }) {
    return {
      values: values.length === product(shape) ? values : [],
      groups: divisors(shape[1]).filter((n) => n <= groups).at(-1),
      element: at < shape[1] * shape[2] ? at : 0,
    };
  },
  refuse({ shape, values, groups, element: at }) {
    const size = product(shape);
    const most = shape[1] * shape[2] - 1;
    if (values.length && values.length !== size) return `values: ${size} finite numbers are needed for the shape ${formatShape(shape)}, or () to draw them.`;
    if (groups < 1 || shape[1] % groups) return `groups: ${groups} groups do not divide ${shape[1]} channels.`;
    return at >= 0 && at <= most ? "" : `element: a sample's outputs are numbered 0 to ${most}, without ${at}.`;
  },
};

// -------------------------------------------------------------------------- numbers

/** The batch, flat: its mates as drawn, or moved. */
export function matesBatch({ shape, values, seed, shift, scale }, moved = true) {
  const flat = values.length ? values : standardNormal(seed, product(shape));
  const own = shape[1] * shape[2];
  return Float64Array.from(flat, (x, i) => (moved && i >= own ? scale * x + shift : x));
}

/** The sets that a norm averages over, or null for running statistics. */
function setsOf({ groups, track_running_stats: tracked }, shape, norm, training) {
  if (norm === "BatchNorm" && tracked && !training) return null;
  return parse(PATTERNS[norm]).on(shape, norm === "GroupNorm" ? groups : null);
}

/** Why PyTorch refuses such a batch; "" if it does not. */
export function matesRefusal(state, shape, norm, training) {
  const sets = setsOf(state, shape, norm, training);
  if (!sets || norm === "LayerNorm" || norm === "RMSNorm") return "";
  // torch counts the batch too, so GroupNorm lets sets of one value pass when N > 1
  const values = norm === "GroupNorm" ? sets.valuesPerSet * shape[0] : sets.valuesPerSet;
  return values === 1 ? "refused: 1 value in each set" : "";
}

/** What a norm makes of a flat batch; running statistics are 0 and 1. */
export function matesOutput(state, values, shape, norm, training) {
  const sets = setsOf(state, shape, norm, training);
  if (!sets) return values.map((x) => normalize(x, { mean: 0, spread: 1 }, EPS));
  return normalizeSets(values, sets, EPS, norm !== "RMSNorm");
}

/** Sample 0 before and after its mates moved; { before, now, change } or { refusal }. */
export function matesChange(state, norm, training) {
  const [n, ...rest] = state.shape;
  const shapes = [[state.alone ? 1 : n, ...rest], state.shape];
  const refusal = shapes.map((shape) => matesRefusal(state, shape, norm, training)).find(Boolean);
  if (refusal) return { refusal };
  const own = product(rest);
  const inputs = [matesBatch(state, false).slice(0, product(shapes[0])), matesBatch(state)];
  const [before, now] = inputs.map((x, i) => [...matesOutput(state, x, shapes[i], norm, training).slice(0, own)]);
  return { before, now, change: Math.max(...now.map((y, i) => Math.abs(y - before[i]))) };
}

/** The derivative of sample 0's output `element` with respect to every input, or null. */
export function matesGradient(state) {
  const { shape, norm, training, element: at } = state;
  if (matesRefusal(state, shape, norm, training)) return null;
  const values = matesBatch(state);
  const gradient = new Float64Array(values.length);
  const sets = setsOf(state, shape, norm, training);
  if (!sets) {
    gradient[at] = 1 / Math.sqrt(1 + EPS);
    return gradient;
  }
  const center = norm !== "RMSNorm";
  const members = sets.members(sets.setOf([0, Math.floor(at / shape[2]), at % shape[2]]));
  const found = statistics(members.map((i) => values[i]), center);
  const y = (i) => normalize(values[i], found, EPS);
  // dy_i/dx_j = (δ_ij − 1/n − y_i y_j / n) / sqrt(var + eps); without a mean, no 1/n
  members.forEach((j) => {
    const direct = (j === at ? 1 : 0) - (center ? 1 / members.length : 0);
    gradient[j] = (direct - (y(at) * y(j)) / members.length) / Math.sqrt(found.spread + EPS);
  });
  return gradient;
}

/** The answer in words. */
export function matesAnswer(changes) {
  const said = MODES.map(([mode], i) => {
    const moved = Object.entries(changes).filter(([, pair]) => pair[i].change > 1e-6);
    const names = moved.map(([norm, pair]) => `${norm} (by up to ${decimals(pair[i].change)})`).join(", ");
    return `In ${mode} mode the mates move the output of sample 0 under ${names || "no norm"}.`;
  });
  return said.join(" ");
}

// -------------------------------------------------------------------------- the view

export default {
  render({ model, el }) {
    const frame = openExplorer({ model, el, name: "BatchMates", rules: matesRules });
    const unmoved = ({ shift, scale }) => shift === 0 && scale === 1;

    const controls = [
      slider(frame, { label: "Shift the mates", values: () => steps(-10, 10, 0.5), text: (x) => (x > 0 ? "+" : "") + decimals(x, 1), get: ({ shift }) => shift, set: (shift) => ({ shift }) }),
      slider(frame, { label: "Scale the mates", values: () => steps(0, 5, 0.25), text: (x) => `× ${decimals(x)}`, get: ({ scale }) => scale, set: (scale) => ({ scale }) }),
      slider(frame, {
        label: "How many mates",
        values: () => steps(0, 7, 1),
        text: String,
        get: ({ shape }) => shape[0] - 1,
        set: (mates, { shape, values }) => ({ shape: [mates + 1, shape[1], shape[2]], values: mates + 1 === shape[0] ? values : [] }),
      }),
      slider(frame, { label: "GroupNorm\u2019s G", values: ({ shape }) => divisors(shape[1]), text: String, get: ({ groups }) => groups, set: (groups) => ({ groups }) }),
      choice(frame, { label: "BatchNorm\u2019s eval uses", options: [[true, "mean 0, var 1"], [false, "the batch"]], get: (state) => state.track_running_stats, set: (tracked) => ({ track_running_stats: tracked }) }),
      choice(frame, { label: "Compared with", options: [[false, "mates unmoved"], [true, "alone"]], get: ({ alone }) => alone, set: (alone) => ({ alone }) }),
    ];

    // One row for each sample: its values before and now; how the picked output reacts.
    const samples = element("div", { class: "nl-samples" });
    const scaleAbove = openScale();
    const rows = [];
    const sampleRow = () => {
      const strip = openStrip();
      const bars = svgElement("svg", { class: "nl-bars", "aria-hidden": "true" });
      const name = element("span", { class: "nl-name" });
      const pull = element("span", { class: "nl-pull" });
      return { strip, bars, name, pull, nodes: [name, strip.svg, bars, pull] };
    };
    const gradientOf = element("span");
    const output = slider(frame, {
      label: "Gradient of output",
      values: ({ shape }) => steps(0, shape[1] * shape[2] - 1, 1),
      text: (at) => `[0, ${Math.floor(at / frame.state().shape[2])}, ${at % frame.state().shape[2]}]`,
      get: (state) => state.element,
      set: (at) => ({ element: at }),
    });

    function paintSamples(state) {
      const { shape } = state;
      const own = shape[1] * shape[2];
      while (rows.length < shape[0]) rows.push(sampleRow());
      rows.length = shape[0];
      const nodes = rows.flatMap((row) => row.nodes);
      if (nodes.length !== samples.childNodes.length) samples.replaceChildren(...nodes);
      const [before, now] = [matesBatch(state, false), matesBatch(state)];
      const gradient = matesGradient(state);
      const scale = reach([...before, ...now]);
      scaleAbove.draw(scale);
      const largest = Math.max(...(gradient ?? [1]).map(Math.abs)) || 1;
      rows.forEach(({ strip, bars, name, pull }, n) => {
        const part = (values) => [...values.slice(n * own, (n + 1) * own)];
        setText(name, n ? `mate ${n}` : "sample 0");
        strip.draw(part(before), part(now), scale);
        const pulls = gradient ? part(gradient) : [];
        keep(bars, "rect", pulls.map((value, i) => {
          const height = (46 * Math.abs(value)) / largest;
          return { class: n ? "nl-bar-mate" : "nl-bar-own", x: `${((i + 0.15) / own) * 100}%`, width: `${70 / own}%`, y: `${value > 0 ? 50 - height : 50}%`, height: `${height}%` };
        }));
        const total = pulls.reduce((sum, value) => sum + Math.abs(value), 0);
        setText(pull, gradient ? decimals(total, 3) : "refused");
      });
      setText(gradientOf, `${state.norm}, ${state.training ? "train" : "eval"}`);
    }

    // Five norms, two modes: press one to see its gradient.
    const table = element("div", { class: "nl-table", role: "group", "aria-label": "Output of sample 0, by norm and mode" });
    const cells = Object.keys(PATTERNS).map((norm) => {
      const sets = element("code");
      const pair = MODES.map(([mode, training]) => {
        const strip = openStrip();
        const words = element("span", { class: "nl-change" });
        const button = element("button", { type: "button", class: "nl-outcome", onclick: () => frame.change({ norm, training }) },
          element("span", { class: "nl-mode" }, mode), strip.svg, words);
        return { strip, words, button, mode, training };
      });
      table.append(element("div", { class: "nl-norm" }, element("strong", {}, norm), sets), ...pair.map(({ button }) => button));
      return { norm, sets, pair };
    });

    function paintTable(state, changes) {
      const outputs = Object.values(changes).flat().flatMap(({ before = [], now = [] }) => [...before, ...now]);
      const scale = reach(outputs);
      setText(tableNote, `from −${scale[1]} to ${scale[1]}. Upright: as before; leaning: moved.`);
      cells.forEach(({ norm, sets, pair }) => {
        setText(sets, PATTERNS[norm]);
        pair.forEach(({ strip, words, button, mode, training }, i) => {
          const { before, now, change, refusal } = changes[norm][i];
          strip.draw(before ?? [], now ?? [], scale);
          const moves = change > 1e-6;
          const text = refusal || (moves ? `moves ${decimals(change)}` : "stays");
          setText(words, text);
          button.classList.toggle("nl-moves", Boolean(moves));
          button.classList.toggle("nl-refused", Boolean(refusal));
          button.setAttribute("aria-label", `${norm} in ${mode}: ${text}`);
          button.setAttribute("aria-pressed", String(state.norm === norm && state.training === training));
        });
      });
    }

    const tableNote = element("span");
    frame.root.append(
      element("div", { class: "nl-controls" }, ...controls.map(({ node }) => node)),
      frame.answer,
      element("div", { class: "nl-mates" },
        element("div", { class: "nl-left" },
          element("p", { class: "nl-title nl-heads" },
            element("span", {}, element("strong", {}, "Inputs"), " above: before, below: now"),
            element("span", {}, element("strong", {}, "Gradient"), " ", gradientOf)),
          element("div", { class: "nl-scale" }, scaleAbove.node),
          samples,
          output.node,
          element("p", { class: "nl-note" }, "A bar is the derivative of this output with respect to one input; the number adds up their sizes. Where a mate has bars, the output depends on it. Press a norm to see its gradient.")),
        element("div", {},
          element("p", { class: "nl-title" }, element("strong", {}, "Outputs of sample 0"), " ", tableNote),
          table))
    );
    frame.start((state) => {
      const changes = Object.fromEntries(Object.keys(PATTERNS).map((norm) => [norm, MODES.map(([, training]) => matesChange(state, norm, training))]));
      [...controls, output].forEach((control) => control.paint(state));
      paintSamples(state);
      paintTable(state, changes);
      return unmoved(state) && !state.alone ? "The mates are where they were drawn. Shift or scale them, and watch the five outputs of sample 0." : matesAnswer(changes);
    });
    return frame.close;
  },
};
