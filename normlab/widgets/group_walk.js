// GroupWalk: from one group of all channels to one group for each channel.

export const walkRules = {
  check: {
    shape: (shape) =>
      shapeProblem(shape, "N C H W", SIZES) ||
      (shape[2] * shape[3] === 1 ? "shape: H and W may not both be 1, because one group for each channel would then hold one value." : ""),
  },
  fit({ shape, groups, sample }) {
    return { groups: divisors(shape[1]).filter((n) => n <= groups).at(-1), sample: Math.min(sample, shape[0] - 1) };
  },
  refuse({ shape, groups, sample }) {
    if (groups < 1 || shape[1] % groups) {
      return `groups: ${groups} groups do not divide ${shape[1]} channels; these would: ${divisors(shape[1]).join(", ")}.`;
    }
    return sample >= 0 && sample < shape[0] ? "" : `sample: the samples are numbered 0 to ${shape[0] - 1}, without ${sample}.`;
  },
};

// -------------------------------------------------------------------------- numbers

/** The tensor, flat: drawn numbers, each channel with a mean and a scale of its own. */
export function walkValues({ shape, seed, spread }) {
  const [, channels, height, width] = shape;
  const own = standardNormal(seed, 2 * channels, OFFSETS);
  return Float64Array.from(standardNormal(seed, product(shape)), (z, i) => {
    const channel = Math.floor(i / (height * width)) % channels;
    return 2 * spread * own[channel] + (1 + (spread * Math.abs(own[channels + channel])) / 2) * z;
  });
}

/** What GroupNorm makes of it. */
export function walkOutput({ shape }, values, groups) {
  return normalizeSets(values, parse(PATTERN).on(shape, groups), EPS);
}

/** Mean and deviation of each channel of a sample. */
export function walkProfile({ shape, sample }, output) {
  const [, channels, height, width] = shape;
  const size = height * width;
  return Array.from({ length: channels }, (_, channel) => {
    const first = (sample * channels + channel) * size;
    const { mean, spread } = statistics(output.slice(first, first + size));
    return [mean, Math.sqrt(spread)];
  });
}

/** How far the means of a sample's channels are from each other: their deviation. */
export function walkSpread(profile) {
  return Math.sqrt(statistics(profile.map(([mean]) => mean)).spread);
}

/** Root mean square of the difference of two outputs. */
export function walkDistance(one, two) {
  return Math.sqrt(one.reduce((sum, y, i) => sum + (y - two[i]) ** 2, 0) / one.length);
}

/** All that the walk shows of one tensor: { divisors, outputs, distances }. */
export function walkAll(state) {
  const values = walkValues(state);
  const all = divisors(state.shape[1]);
  const outputs = all.map((groups) => walkOutput(state, values, groups));
  const distances = outputs.map((output) => [outputs[0], outputs.at(-1)].map((end) => walkDistance(output, end)));
  return { values, divisors: all, outputs, distances };
}

/** The answer in words, as GroupWalk.sentence says it. */
export function walkAnswer({ shape, groups }, sets, [first, last], spreads) {
  return (
    `GroupNorm(${groups}, ${shape[1]}) on ${formatShape(shape)}. ${sets.describe()} The output is ` +
    `${decimals(first)} away from one group of all channels and ${decimals(last)} from one group for each channel. ` +
    `The means of the channels still spread by ${decimals(spreads[1])}, of ${decimals(spreads[0])} at G = 1.`
  );
}

// -------------------------------------------------------------------------- the view

export default {
  render({ model, el }) {
    const frame = openExplorer({ model, el, name: "GroupWalk", rules: walkRules });
    let known = ""; // what the numbers were worked out for: not for G
    let all;

    const groups = slider(frame, { label: "Groups G", values: ({ shape }) => divisors(shape[1]), text: String, get: (state) => state.groups, set: (value) => ({ groups: value }) });
    const step = (way) => {
      const fitting = divisors(frame.state().shape[1]);
      frame.change({ groups: fitting[fitting.indexOf(frame.state().groups) + way] });
    };
    const [back, on] = [[-1, "‹ fewer groups"], [1, "more groups ›"]].map(([way, words]) => element("button", { type: "button", onclick: () => step(way) }, words));
    const controls = [
      slider(frame, { label: "Channels C", values: () => [2, 4, 6, 8, 12, 16], text: String, get: ({ shape }) => shape[1], set: (channels, { shape }) => ({ shape: shape.with(1, channels) }) }),
      slider(frame, { label: "Channels differ by", values: () => steps(0, 3, 0.25), text: (x) => decimals(x), get: ({ spread }) => spread, set: (spread) => ({ spread }) }),
    ];
    const ends = element("div", { class: "nl-ends" }, element("span", {}, "G = 1: what LayerNorm averages"), element("span"));

    const tile = (words) => {
      const value = element("strong");
      return [value, element("div", { class: "nl-fact" }, value, element("span", {}, words))];
    };
    const [perGroup, perGroupTile] = tile("channels in a group");
    const [perMean, perMeanTile] = tile("values share each mean");
    const [means, meansTile] = tile("means in all");

    let cell = null;
    const cells = openCells({
      onPoint: () => {},
      onPick(picked) {
        cell = picked;
        if (picked[0] === frame.state().sample) paintCells(frame.state());
        else frame.change({ sample: picked[0] });
      },
    });

    function paintCells(state) {
      const sets = parse(PATTERN).on(state.shape, state.groups);
      const inside = cell && cell.every((at, i) => at < state.shape[i]) && cell[0] === state.sample;
      const shown = inside ? cell : [state.sample, 0, 0, 0];
      cells.draw({
        axes: ["N", "C", "H", "W"],
        shape: state.shape,
        setOf: (at) => sets.setOf(at),
        colourOf: (at) => colourOf([at[0], Math.floor((at[1] * state.groups) / state.shape[1])]),
        cell: shown,
        set: sets.setOf(shown),
      });
      cells.place.setAttribute("aria-label", `${sets.describe()} Arrow keys move from cell to cell, and choose the sample.`);
    }

    const profile = openChart({ title: "One sample\u2019s channels", height: 330, legend: [["dot-now", "mean now"], ["line-spread", "± deviation"], ["dot-before", "at G = 1"]] });
    const distance = openChart({ title: "How far the output moved", height: 150, legend: [["line-now", "from G = 1"], ["line-other", "from G = C"]] });
    distance.svg.addEventListener("click", (event) => {
      const box = distance.svg.getBoundingClientRect();
      const at = Math.round(((event.clientX - box.left) / box.width) * all.divisors.length - 0.5);
      frame.change({ groups: all.divisors[Math.min(Math.max(at, 0), all.divisors.length - 1)] });
    });

    function paintProfile(state, index) {
      const channels = state.shape[1];
      const [now, first] = [all.outputs[index], all.outputs[0]].map((output) => walkProfile(state, output));
      // One scale for the whole walk: nothing jumps from step to step.
      const y = span(all.outputs.flatMap((output) => walkProfile(state, output).flatMap(([mean, deviation]) => [mean - deviation, mean + deviation])));
      const within = channels / state.groups;
      const walls = Array.from({ length: state.groups - 1 }, (_, g) => (g + 1) * within - 0.5);
      profile.draw({
        label: `Mean of each channel of sample ${state.sample} after GroupNorm: ${now.map(([mean]) => decimals(mean)).join(", ")}.`,
        x: [-0.5, channels - 0.5],
        y,
        xTicks: now.map((_, c) => [c, channels > 8 ? String(c) : `C ${c}`]),
        yTicks: ticks(...y, 5).map((at) => [at, formatNumber(at)]),
        lines: [
          ...walls.map((x) => ["line-wall", [[x, y[0]], [x, y[1]]]]),
          ["line-zero", [[-0.5, 0], [channels - 0.5, 0]]],
          ...now.map(([mean, deviation], c) => ["line-spread", [[c, mean - deviation], [c, mean + deviation]]]),
        ],
        dots: [["dot-before", first.map(([mean], c) => [c, mean]), 5], ["dot-now", now.map(([mean], c) => [c, mean]), 4]],
      });
    }

    function paintDistance(state, index) {
      const y = [0, Math.max(...all.distances.flat(), 0.1) * 1.1];
      const line = (end) => all.distances.map((pair, k) => [k, pair[end]]);
      distance.draw({
        label: `Distance of the output from G = 1: ${line(0).map(([, d]) => decimals(d)).join(", ")}; from G = ${state.shape[1]}: ${line(1).map(([, d]) => decimals(d)).join(", ")}; for G = ${all.divisors.join(", ")}.`,
        x: [-0.5, all.divisors.length - 0.5],
        y,
        xTicks: all.divisors.map((n, k) => [k, `G=${n}`]),
        yTicks: ticks(...y, 4).map((at) => [at, formatNumber(at)]),
        lines: [["line-here", [[index, y[0]], [index, y[1]]]], ["line-other", line(1)], ["line-now", line(0)]],
        dots: [["dot-other", line(1), 4], ["dot-now", line(0), 4]],
      });
    }

    frame.root.append(
      element("div", { class: "nl-walk" }, back, groups.node, on),
      ends,
      element("div", { class: "nl-controls" }, ...controls.map(({ node }) => node)),
      frame.answer,
      element("div", { class: "nl-sides" },
        element("div", {}, cells.place, element("div", { class: "nl-facts" }, perGroupTile, perMeanTile, meansTile), distance.figure),
        element("div", {}, profile.figure))
    );
    frame.start((state) => {
      const { shape, groups: g } = state;
      const needed = JSON.stringify([shape, state.seed, state.spread]);
      if (needed !== known) [known, all] = [needed, walkAll(state)];
      const index = all.divisors.indexOf(g);
      const sets = parse(PATTERN).on(shape, g);
      [groups, ...controls].forEach((control) => control.paint(state));
      back.disabled = index === 0;
      on.disabled = index === all.divisors.length - 1;
      setText(ends.lastChild, `G = ${shape[1]}: what InstanceNorm averages`);
      setText(perGroup, String(shape[1] / g));
      setText(perMean, sets.valuesPerSet.toLocaleString("en"));
      setText(means, sets.numSets.toLocaleString("en"));
      paintCells(state);
      paintProfile(state, index);
      paintDistance(state, index);
      const spreads = [0, index].map((k) => walkSpread(walkProfile(state, all.outputs[k])));
      return walkAnswer(state, sets, all.distances[index], spreads);
    });
    return () => {
      cells.close();
      frame.close();
    };
  },
};
