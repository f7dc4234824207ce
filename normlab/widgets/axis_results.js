// AxisPicker's results: the tiles, the layer, the facts, the numbers of one cell.

// ------------------------------------------------------------- tiles and the sentence

function makeTiles(picker) {
  const tiles = Array.from({ length: 4 }, () => {
    const [value, caption] = [element("strong"), element("span")];
    return {
      value,
      caption,
      place: element("div", { class: "nl-tile" }, value, caption),
    };
  });
  const message = element("p", { class: "nl-message" });
  return {
    places: [
      element("div", { class: "nl-tiles" }, ...tiles.map(({ place }) => place)),
      message,
    ],
    paint() {
      const { pattern, sets, sentence, warnings } = picker.facts;
      const one = picker.state.center ? "mean" : "RMS";
      const many = picker.state.center && sets.numSets !== 1 ? "means" : one;
      const count = (number) => number.toLocaleString("en");
      const share = sets.valuesPerSet === 1 ? "value makes" : "values share";
      const texts = [
        [pattern.reduced.join(" ") || "none", "reduced: averaged together"],
        [pattern.kept.join(" ") || "none", `kept: one ${one} for each`],
        [count(sets.valuesPerSet), `${share} each ${one}`],
        [count(sets.numSets), `${many} in all`],
      ];
      tiles.forEach(({ value, caption }, i) => {
        setText(value, texts[i][0]);
        setText(caption, texts[i][1]);
      });
      const found = [picker.hint, ...warnings].filter(Boolean);
      message.classList.toggle("nl-warning", found.length > 0);
      setText(message, found.join(" ") || sentence);
    },
  };
}

// ------------------------------------------------------------- the layer and the facts

function makeLayer(picker, view) {
  const line = (what) => {
    const text = element("code");
    const copy = copyButton(view, what, () => text.textContent);
    return { text, copy, place: element("div", { class: "nl-code" }, text, copy) };
  };
  const torch = line("the PyTorch line");
  const normlab = line("the normlab line");
  const help = makeHelp(picker);
  return {
    place: element(
      "div",
      { class: "nl-layer" },
      element("span", {}, "PyTorch"),
      torch.place,
      element("span", {}, "normlab"),
      normlab.place,
      help.place,
    ),
    paint() {
      setText(torch.text, picker.facts.torch ?? "no built-in layer does this");
      torch.copy.disabled = !picker.facts.torch;
      setText(normlab.text, picker.facts.normlab);
      help.paint();
    },
  };
}

/** Frameworks use `axis` for what is reduced and for what is kept: both, side by side. */
function makeHelp(picker) {
  const lists = ["These name the reduced axes", "These name the kept axis"].map(
    (title) => {
      const items = element("ul");
      return { items, place: element("div", {}, element("h4", {}, title), items) };
    },
  );
  const tuple = (numbers) =>
    numbers.length === 1 ? String(numbers[0]) : formatShape(numbers);
  return {
    place: element(
      "details",
      { class: "nl-help" },
      element("summary", {}, "Other frameworks: does axis= mean reduced or kept?"),
      element("div", {}, ...lists.map(({ place }) => place)),
    ),
    paint() {
      const { sets, pattern } = picker.facts;
      const seen = pattern.groups ? `x.reshape${formatShape(sets.splitShape)}` : "x";
      const reduced = pattern.axes.flatMap((axis, i) =>
        pattern.reduced.includes(axis) ? [i] : [],
      );
      const kept = pattern.axes.flatMap((axis, i) =>
        pattern.reduced.includes(axis) ? [] : [i],
      );
      const channel = kept.find((i) => pattern.axes[i] !== pattern.batchAxis) ?? 1;
      const dims = sets.reducedDims;
      const mean = dims.length === 1 ? `(${dims[0]})` : `(${formatShape(dims)})`;
      const texts = [
        [
          [`${seen}.mean${mean}`, "here, in NumPy and PyTorch"],
          [
            "torch.nn.LayerNorm(normalized_shape)",
            "sizes of the last axes, which are reduced",
          ],
          [
            `keras.layers.LayerNormalization(axis=${tuple(reduced)})`,
            pattern.groups ? "cannot split an axis" : "axis is reduced",
          ],
          ["flax.linen.LayerNorm(reduction_axes=...)", "reduced"],
        ],
        [
          [
            `keras.layers.BatchNormalization(axis=${channel})`,
            "axis is kept, all others are reduced; by default it is the last",
          ],
          ["flax.linen.BatchNorm(axis=...)", "kept"],
          ["torch.nn.BatchNorm2d(num_features)", "always keeps axis 1"],
        ],
      ];
      lists.forEach(({ items }, i) => {
        const rows = texts[i].map(([text, note]) =>
          element("li", {}, element("code", {}, text), ` ${note}`),
        );
        items.replaceChildren(...rows);
      });
    },
  };
}

function makeFacts(picker) {
  const names = [
    "Shape of the statistics",
    "Weight and bias",
    "Other samples matter?",
    "Padding matters?",
    "Does train differ from eval?",
  ];
  const values = names.map(() => element("dd"));
  const parameters = makeParameters(picker);
  values[1].classList.add("nl-parameters");
  values[1].append(...parameters.places);
  const rows = names.flatMap((name, i) => [element("dt", {}, name), values[i]]);
  return {
    place: element("dl", { class: "nl-facts" }, ...rows),
    paint() {
      const { pattern, sets, batch, padding, train } = picker.facts;
      const shape = formatShape(sets.statisticsShape);
      const seen = `, of the input seen as ${formatShape(sets.splitShape)}`;
      setText(values[0], pattern.groups ? shape + seen : shape);
      parameters.paint();
      [batch, padding, train].forEach((text, i) => setText(values[i + 2], text));
    },
  };
}

/** The parameters' shape, and a choice of the axes along which they differ. */
function makeParameters(picker) {
  const text = element("span");
  const select = element("select", {
    "aria-label": "Axes along which weight and bias differ",
    onchange: () =>
      picker.change({ parameters: select.value === "own" ? null : select.value }),
  });
  let offered = "";
  return {
    places: [text, select],
    paint() {
      const { pattern, layer, parameterAxes, parameterShape, hasBias } = picker.facts;
      const chosen = picker.state.parameters;
      const choices = pattern.axes
        .filter((axis) => axis !== pattern.batchAxis)
        .reduce(
          (all, axis) => [...all, ...all.map((some) => `${some} ${axis}`.trim())],
          [""],
        );
      if (chosen && !choices.includes(chosen)) choices.push(chosen);
      const own = layer ? `as ${normOf(layer)} has them` : "left out";
      if (offered !== own + choices) {
        offered = own + choices;
        const words = (some) => (some ? `one for each ${some}` : "none");
        const options = choices.map((some) =>
          element("option", { value: some }, words(some)),
        );
        select.replaceChildren(element("option", { value: "own" }, own), ...options);
      }
      setValue(select, chosen ?? "own");
      const shape = formatShape(parameterShape) + (hasBias ? "" : ", and no bias");
      setText(text, parameterAxes ? shape : "none");
    },
  };
}

// ---------------------------------------------------------------- the numbers of a cell

const SHOWN = 50; // values of a set that are written out

/** "N 0, C 3, H 1, W 2" */
const nameOf = (axes, cell) => axes.map((axis, i) => `${axis} ${cell[i]}`).join(", ");

function makeArithmetic(picker) {
  const where = element("p", { class: "nl-where" });
  const values = element("p", { class: "nl-values nl-mono" });
  const steps = element("div", { class: "nl-steps nl-mono" });
  const inputs = ["weight", "bias", "eps"].map((name) =>
    element("input", {
      type: "number",
      step: "any",
      "data-name": name,
      onchange: readNumber,
    }),
  );
  const labels = inputs.map((input) =>
    element("label", {}, `${input.dataset.name} `, input),
  );

  function readNumber({ target }) {
    const value = target.valueAsNumber;
    if (Number.isFinite(value)) picker.change({ [target.dataset.name]: value });
    else writeNumbers();
  }

  function writeNumbers() {
    inputs.forEach((input) => setValue(input, picker.state[input.dataset.name]));
  }

  return {
    place: element(
      "div",
      { class: "nl-arithmetic" },
      where,
      values,
      steps,
      element("div", { class: "nl-numbers" }, ...labels),
    ),
    paint(cell) {
      const { facts, state } = picker;
      const found = arithmeticOf(state, facts, cell);
      const at = nameOf(facts.pattern.axes, cell);
      const set = `in set ${found.set} of ${facts.sets.numSets}`;
      setText(where, `Cell ${at} holds ${formatNumber(found.x)}, ${set}.`);
      setText(values, valuesText(found.values, facts.sets));
      const texts = stepsOf(state, facts, cell, found).flat();
      while (steps.childNodes.length < texts.length) steps.append(element("span"));
      while (steps.childNodes.length > texts.length) steps.lastChild.remove();
      texts.forEach((text, i) => setText(steps.childNodes[i], text));
      writeNumbers();
    },
  };
}

function valuesText(values, sets) {
  if (!values) {
    const count = sets.valuesPerSet.toLocaleString("en");
    return `Its set has ${count} values: too many to add up while you point.`;
  }
  const first = [...values.slice(0, SHOWN)].map(formatNumber).join("  ");
  return values.length > SHOWN
    ? `${first}  … and ${values.length - SHOWN} more`
    : first;
}

/** The lines of the arithmetic: name, formula with its numbers, result. */
function stepsOf(state, { pattern, parameterAxes, hasBias }, cell, found) {
  const { x, values, mean, spread, normalized, output } = found;
  if (!values) return [];
  const [textX, textSpread, eps, textNormalized, weight, bias] = [
    x,
    spread,
    state.eps,
    normalized,
    state.weight,
    state.bias,
  ].map(formatNumber);
  const minusMean = mean < 0 ? `+ ${formatNumber(-mean)}` : `− ${formatNumber(mean)}`;
  const root = `√(${textSpread} + ${eps})`;
  const total = values.reduce((sum, value) => sum + value, 0);
  const lines = state.center
    ? [
        ["mean", `${formatNumber(total)} / ${values.length}`, mean],
        ["variance", "mean of (x − mean)²", spread],
        ["normalized", `(${textX} ${minusMean}) / ${root}`, normalized],
      ]
    : [
        ["mean square", "mean of x²", spread],
        ["normalized", `${textX} / ${root}`, normalized],
      ];
  const named = parameterAxes.split(" ").filter(Boolean);
  const own = `[${named.map((axis) => cell[pattern.axes.indexOf(axis)]).join(",")}]`;
  const shift = hasBias ? ` + bias${own} ${bias}` : "";
  const affine = `weight${own} ${weight} × ${textNormalized}${shift}`;
  lines.push(["output", named.length ? affine : "no weight, no bias", output]);
  return lines.map(([name, formula, value]) => [
    name,
    formula,
    `= ${formatNumber(value)}`,
  ]);
}
