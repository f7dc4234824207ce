// RunningStats: feed batches to one channel of BatchNorm, and see its buffers follow.

export const runningRules = {
  check: {
    given: givenProblem,
    fed: (fed) => {
      const wrong = fed.findIndex((part) => !isPart(part));
      return wrong < 0 ? "" : `fed: part ${wrong} is not (how many, mean, std, training) with numbers in their limits.`;
    },
  },
  refuse({ given, fed }) {
    const total = given.length + fed.reduce((sum, [count]) => sum + count, 0);
    return total > MOST ? `fed: at most ${MOST} batches fit on the page, not ${total}; reset, or feed fewer.` : "";
  },
};

function givenProblem(given) {
  for (const [i, batch] of given.entries()) {
    if (!Array.isArray(batch) || !batch.every(Number.isFinite)) return `given: batch ${i} is not a tuple of finite numbers.`;
    if (batch.length < 2) {
      return `given: batch ${i} needs 2 values or more, because BatchNorm in train mode refuses a single one.`;
    }
  }
  return "";
}

function isPart(part) {
  if (!Array.isArray(part) || part.length !== 4) return false;
  const [count, mean, std, training] = part;
  const within = (value, [low, high]) => Number.isFinite(value) && low <= value && value <= high;
  return Number.isInteger(count) && count >= 1 && within(mean, LIMITS.mean) && within(std, LIMITS.std) && typeof training === "boolean";
}

// -------------------------------------------------------------------------- numbers

function drawBatch({ seed, batch_size: size }, place, mean, std) {
  return standardNormal(seed, size, place * size).map((z) => mean + std * z);
}

/** Every batch that has passed: { values, mean, var, training }. */
export function runningBatches(state) {
  const passed = state.given.map((values) => {
    const { mean, spread } = statistics(values);
    return { values, mean, var: spread, training: true };
  });
  let drawn = 0;
  for (const [count, mean, std, training] of state.fed) {
    for (let i = 0; i < count; i++, drawn++) {
      passed.push({ values: drawBatch(state, drawn, mean, std), mean, var: std ** 2, training });
    }
  }
  return passed;
}

/** [running mean, running variance] before the batches, and after each of them. */
export function runningHistory(batches, momentum, unbiased) {
  let tracked = 0;
  let now = [0, 1];
  return [now, ...batches.map(({ values, training }) => {
    if (!training) return now;
    tracked += 1;
    const weight = momentum ?? 1 / tracked; // None: each of k batches weighs 1/k
    const { mean, spread } = statistics(values);
    const stored = unbiased ? (spread * values.length) / (values.length - 1) : spread;
    now = [mean, stored].map((value, i) => (1 - weight) * now[i] + weight * value);
    return now;
  })];
}

/** How much of the first value, 0 or 1, is left in the buffers. */
export function startLeft(batches, momentum) {
  const updates = batches.filter(({ training }) => training).length;
  if (momentum === null) return updates ? 0 : 1;
  return (1 - momentum) ** updates;
}

/** After how many batches less than a hundredth of the start is left. */
export function batchesToForget(momentum) {
  if (momentum === null || momentum === 1) return 1;
  return momentum === 0 ? Infinity : Math.ceil(Math.log(0.01) / Math.log(1 - momentum));
}

/** The batch on which train and eval are compared. */
export function runningProbe(state, batches) {
  if (!state.fresh && batches.length) return batches.at(-1).values;
  const place = state.fed.reduce((sum, [count]) => sum + count, 0);
  return drawBatch(state, place, state.mean, state.std);
}

/** What BatchNorm makes of a batch: in train with its own statistics, in eval not. */
export function runningOutputs(values, [mean, spread]) {
  const own = statistics(values);
  return [own, { mean, spread }].map((found) => values.map((x) => normalize(x, found, EPS)));
}

/** The parts of `fed` after so many more batches. */
export function fedWith(state, count) {
  const now = [state.mean, state.std, state.training];
  const last = state.fed.at(-1);
  if (last && same(last.slice(1), now)) return [...state.fed.slice(0, -1), [last[0] + count, ...now]];
  return [...state.fed, [count, ...now]];
}

/** The answer in words, as RunningStats.sentence says it. */
export function runningAnswer(state, batches, [mean, variance], [train, evaluated]) {
  const apart = Math.max(...train.map((y, i) => Math.abs(y - evaluated[i])));
  const momentum = state.momentum === null ? "None" : Number(state.momentum.toPrecision(4));
  return (
    `After ${batches.length} batch${batches.length === 1 ? "" : "es"} with momentum ${momentum}, ` +
    `the running mean is ${decimals(mean)} (true mean ${decimals(state.mean)}) and the running variance ` +
    `${decimals(variance)} (true variance ${decimals(state.std ** 2)}). ` +
    `${state.fresh ? "The next batch" : "The last batch"} leaves train and eval up to ${decimals(apart)} apart.`
  );
}

// -------------------------------------------------------------------------- the view

const MOMENTA = [0, 0.001, 0.003, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 1];

export default {
  render({ model, el }) {
    const frame = openExplorer({ model, el, name: "RunningStats", rules: runningRules });
    let lastMomentum = frame.state().momentum ?? START.momentum;

    const feed = (count) => element("button", { type: "button", class: "nl-feed", onclick: () => frame.change({ fed: fedWith(frame.state(), count) }) });
    const feeders = [1, 10].map(feed);
    const momentum = slider(frame, {
      label: "Momentum",
      values: () => MOMENTA,
      text: (value) => (value === null ? "None" : String(Number(value.toPrecision(4)))),
      get: (state) => state.momentum,
      set: (value) => ({ momentum: value }),
    });
    const plain = element("button", { type: "button", title: "The plain average of all batches", onclick: () => frame.change({ momentum: frame.state().momentum === null ? lastMomentum : null }) }, "None");
    const controls = [
      slider(frame, { label: "True mean", values: () => steps(-10, 20, 0.5), text: (x) => decimals(x, 1), get: ({ mean }) => mean, set: (mean) => ({ mean }) }),
      slider(frame, { label: "True deviation", values: () => steps(0.5, 6, 0.25), text: (x) => decimals(x), get: ({ std }) => std, set: (std) => ({ std }) }),
      slider(frame, { label: "Values in a batch", values: () => [2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256], text: String, get: (state) => state.batch_size, set: (size) => ({ batch_size: size }) }),
      choice(frame, { label: "The layer is in", options: [[true, "train"], [false, "eval"]], get: ({ training }) => training, set: (training) => ({ training }) }),
      choice(frame, { label: "Stored variance", options: [[true, "1/(n−1)"], [false, "1/n"]], get: ({ unbiased }) => unbiased, set: (unbiased) => ({ unbiased }) }),
      choice(frame, { label: "Compared on", options: [[true, "next batch"], [false, "last batch"]], get: ({ fresh }) => fresh, set: (fresh) => ({ fresh }) }),
    ];

    const charts = ["mean", "variance"].map((what) =>
      openChart({
        title: `Running ${what}`,
        height: 130,
        legend: [["line-now", "the buffer"], ["line-truth", "the truth"], ["dot-small", "a batch"], ["dot-eval", "in eval"]],
      })
    );
    const strip = openStrip();
    const scale = openScale();
    const probed = element("strong");
    const gap = element("strong");
    const left = element("strong");
    const forget = element("strong");
    const hint = element("p", { class: "nl-note" });

    function paintChart(i, batches, history, state) {
      const stored = batches.map(({ values }) => {
        const { mean, spread } = statistics(values);
        return i === 0 ? mean : state.unbiased ? (spread * values.length) / (values.length - 1) : spread;
      });
      const truth = [...batches, { mean: state.mean, var: state.std ** 2 }].map((batch) => (i === 0 ? batch.mean : batch.var));
      const last = Math.max(20, Math.ceil((batches.length + 1) / 10) * 10);
      const y = span([...stored, ...truth, ...history.map((pair) => pair[i])]);
      const small = batches.length > 100 ? 1.5 : 3;
      const points = (training) => stored.map((value, k) => [k + 1, value]).filter((_, k) => batches[k].training === training);
      charts[i].draw({
        label: `Running ${i ? "variance" : "mean"} over ${batches.length} batches: ${decimals(history.at(-1)[i])} now, the truth is ${decimals(truth.at(-1))}.`,
        x: [0, last],
        y,
        xTicks: ticks(0, last, 8).map((at) => [at, String(at)]),
        yTicks: ticks(...y, 3).map((at) => [at, formatNumber(at)]),
        lines: [
          ["line-truth", truth.flatMap((value, k) => [[k && k + 0.5, value], [k === batches.length ? last : k + 1.5, value]])],
          ["line-now", history.map((pair, k) => [k, pair[i]])],
        ],
        dots: [["dot-small", points(true), small], ["dot-eval", points(false), small], ["dot-now", [[batches.length, history.at(-1)[i]]], 5]],
      });
    }

    function paintHint(state) {
      const { momentum: value } = state;
      let text = "PyTorch: running = (1 − momentum) × running + momentum × batch. Keras, Flax and the paper name the other factor.";
      if (value === null) text = "momentum=None: each batch that has passed weighs the same.";
      else if (value === 0) text = "Momentum 0 never takes anything in: the buffers stay at 0 and 1.";
      else if (value > 0.5) text = `Momentum ${Number(value.toPrecision(4))} keeps little of the past. In Keras ${value} would mean the opposite: keep that much.`;
      setText(hint, text);
    }

    const fact = (value, words) => element("div", { class: "nl-fact" }, value, element("span", {}, words));
    frame.root.append(
      element("div", { class: "nl-controls nl-feeding" },
        element("div", { class: "nl-choice" }, element("span", {}, "Batches"), element("div", {}, ...feeders)),
        element("div", { class: "nl-momentum" }, momentum.node, plain),
        ...controls.map(({ node }) => node)),
      hint,
      frame.answer,
      element("div", { class: "nl-charts" }, ...charts.map(({ figure }) => figure)),
      element("div", { class: "nl-probe" },
        element("p", { class: "nl-title" }, probed, " above: in train, with its own statistics; below: in eval, with the buffers"),
        strip.svg,
        scale.node,
        element("div", { class: "nl-facts" },
          fact(gap, "train and eval apart"),
          fact(left, "of the start, 0 and 1, is left"),
          fact(forget, "batches until 1 % is left")))
    );
    frame.start((state) => {
      const batches = runningBatches(state);
      const history = runningHistory(batches, state.momentum, state.unbiased);
      const outputs = runningOutputs(runningProbe(state, batches), history.at(-1));
      if (state.momentum !== null) lastMomentum = state.momentum;
      [momentum, ...controls].forEach((control) => control.paint(state));
      plain.setAttribute("aria-pressed", String(state.momentum === null));
      feeders.forEach((button, i) => setText(button, `${state.training ? "Feed" : "Pass"} ${[1, 10][i]}`));
      charts.forEach((_, i) => paintChart(i, batches, history, state));
      paintHint(state);
      const ends = reach(outputs.flat());
      strip.draw(...outputs, ends);
      scale.draw(ends);
      setText(probed, state.fresh || !batches.length ? "The next batch, normalized" : "The last batch, normalized");
      setText(gap, decimals(Math.max(...outputs[0].map((y, i) => Math.abs(y - outputs[1][i])))));
      setText(left, `${decimals(100 * startLeft(batches, state.momentum), 1)} %`);
      const needed = batchesToForget(state.momentum);
      setText(forget, needed === Infinity ? "never" : String(needed));
      return runningAnswer(state, batches, history.at(-1), outputs);
    });
    return frame.close;
  },
};
