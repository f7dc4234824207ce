// AxisPicker: choose which axes are reduced, and see which values share a mean. What it
// says is worked out in axis_facts.js, and shown by the parts in axis_controls.js and
// axis_results.js; here are its state, its picture, and how all stands together.

export default {
  render({ model, el }) {
    const label = "Axis picker: which values share a mean";
    const view = openView({ model, el, name: "AxisPicker", label });
    const picker = openPicker(model, view, paint);
    const picture = makePicture(picker, view);
    const tiles = makeTiles(picker);
    const top = makeTop(picker, view, model.link);
    const parts = [
      makeCards(picker),
      makeTyping(picker),
      makeLayer(picker, view),
      makeFacts(picker),
    ];
    const [cards, typing, layer, facts] = parts;

    function paint() {
      [top, ...parts, tiles, picture].forEach((part) => part.paint());
    }

    view.root.append(
      top.place,
      element("div", { class: "nl-choose" }, cards.place, typing.place),
      ...tiles.places,
      element("div", { class: "nl-middle" }, ...picture.places),
      element("div", { class: "nl-bottom" }, layer.place, facts.place),
    );
    view.root.addEventListener("keydown", (event) => {
      const undo = (event.ctrlKey || event.metaKey) && event.key === "z";
      if (!undo || event.target.tagName === "INPUT") return; // a text has its own undo
      event.preventDefault();
      picker.goBack();
    });
    paint();
    view.watch(NAMES, picker.follow);
    return () => {
      picture.close();
      view.close();
    };
  },
};

/** The state, what follows from it, and the only way to change it. */
function openPicker(model, view, paint) {
  const raw = () => Object.fromEntries(NAMES.map((name) => [name, model.get(name)]));
  const differing = (one, other) =>
    NAMES.filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));
  const { state, problem } = settle(raw());
  const picker = {
    state,
    facts: factsOf(state),
    hint: problem,
    past: [],
    atFirst: state,
  };

  function show(next) {
    const changed = differing(next, picker.state).filter((name) => name !== "cell");
    if (changed.length) picker.past.push(picker.state);
    picker.past.splice(0, picker.past.length - 200);
    picker.state = next;
    picker.facts = factsOf(next);
    paint();
    const { layer, sentence } = picker.facts;
    if (changed.length) view.say(`${layer?.name ?? "No built-in layer"}. ${sentence}`);
  }

  /** Shown at once, then sent to Python; `note` says what else had to change. */
  picker.change = (changes, note = "") => {
    const settled = settle({ ...picker.state, ...changes }, picker.state);
    picker.hint = note || settled.problem;
    show(settled.state);
    const names = differing(settled.state, raw());
    view.save(Object.fromEntries(names.map((name) => [name, settled.state[name]])));
  };

  /** After a change by Python, by another view, or by a link. */
  picker.follow = () => {
    const settled = settle(raw(), picker.state);
    if (!differing(settled.state, picker.state).length && !settled.problem) return;
    picker.hint = settled.problem;
    show(settled.state);
  };

  picker.goBack = () => {
    const before = picker.past.pop();
    if (!before) return;
    picker.change(before);
    picker.past.pop(); // going back is no step of its own
    paint();
  };
  return picker;
}

/** The tensor's cells, and beside them the numbers of the one that is picked. */
function makePicture(picker, view) {
  const arithmetic = makeArithmetic(picker);
  const legend = element("p", { class: "nl-legend" });
  const colouring = [false, true].map((weight) =>
    button(weight ? "shared weight" : "", () => {
      byWeight = weight;
      paint();
    }),
  );
  let byWeight = false; // colour the cells by shared weight, not by shared mean
  let pointed = null; // the cell under the pointer
  const cells = openCells({
    onPoint(cell) {
      if (String(cell) === String(pointed)) return;
      pointed = cell;
      paintCells();
    },
    onPick(cell) {
      pointed = null;
      picker.change({ cell });
      const { set, x, output } = arithmeticOf(picker.state, picker.facts, cell);
      const end = output === undefined ? "" : `, output ${formatNumber(output)}`;
      const at = nameOf(picker.facts.pattern.axes, cell);
      view.say(`${at}: ${formatNumber(x)}, set ${set}${end}`);
    },
  });

  function paintCells() {
    const { state, facts } = picker;
    const { axes } = facts.pattern;
    const picked = state.cell.length ? state.cell : state.shape.map(() => 0);
    const there =
      pointed?.length === axes.length && pointed.every((at, i) => at < state.shape[i]);
    const cell = there ? pointed : picked;
    const shown = byWeight ? weightSets(facts, state.shape) : facts.sets;
    const kept = (_, i) => !shown.dims[i].reduced;
    cells.draw({
      axes,
      shape: state.shape,
      cell,
      set: shown.setOf(cell),
      setOf: (at) => shown.setOf(at),
      colourOf: (at) => colourOf(shown.splitIndex(at).filter(kept)),
    });
    arithmetic.paint(cell);
  }

  function paint() {
    const one = picker.state.center ? "mean" : "RMS";
    setText(colouring[0], `shared ${one}`);
    colouring.forEach((node, i) => setPressed(node, byWeight === (i === 1)));
    setText(legend, legendOf(picker, byWeight ? "weight" : one));
    const help = `${picker.facts.sentence} Arrow keys move from cell to cell.`;
    cells.place.setAttribute("aria-label", help);
    paintCells();
  }

  const above = element(
    "div",
    { class: "nl-colouring" },
    element("span", {}, "Coloured by"),
    group("Coloured by", ...colouring),
  );
  return {
    places: [element("div", {}, above, cells.place, legend), arithmetic.place],
    paint,
    close: cells.close,
  };
}

/** The "sets" of cells that share a weight: alike in every axis that has its own. */
function weightSets({ pattern, parameterAxes }, shape) {
  const own = parameterAxes.split(" ");
  const dims = pattern.axes.map((axis) => ({
    label: axis,
    axis,
    reduced: !own.includes(axis),
  }));
  return new Pattern(dims).on(shape);
}

function legendOf({ state, facts: { pattern } }, shared) {
  const { axes } = pattern;
  const shown = shownIndices(state.shape).map((indices) => indices.length);
  const abridged = axes.flatMap((axis, i) =>
    shown[i] < state.shape[i] ? [`${shown[i]} of ${state.shape[i]} along ${axis}`] : [],
  );
  const runs = `${axes.at(-1)} to the right`;
  return [
    `Equal number: same ${shared}; colours repeat. The outlined cells share the picked one's.`,
    axes.length > 1
      ? `In a block ${axes.at(-2)} runs down and ${runs}.`
      : `${axes[0]} runs to the right.`,
    abridged.length
      ? `Abridged at the wider gaps: drawn are ${abridged.join(", ")}.`
      : "",
  ].join(" ");
}
