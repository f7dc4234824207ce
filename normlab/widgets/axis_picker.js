// AxisPicker: choose which axes are reduced, and see which values share a mean. What it
// says is worked out in axis_facts.js; here it is shown.

const SHOWN = 50; // values of a set that are written out
const NORMS = [...new Set(LAYERS.map(normOf))];

export default {
  render({ model, el }) {
    const view = openView({ model, el, name: "AxisPicker", label: "Axis picker: which values share a mean" });
    const past = [];
    let { state, problem } = settle(rawState());
    let facts = factsOf(state);
    let hint = problem;
    let pointed = null; // the cell under the pointer
    let typing = false;
    let byWeight = false; // colour the cells by shared weight, not by shared mean
    const atFirst = state;

    function rawState() {
      return Object.fromEntries(NAMES.map((name) => [name, model.get(name)]));
    }

    // Every change goes through here: shown at once, then sent to Python.
    function change(changes, note = "") {
      const settled = settle({ ...state, ...changes }, state);
      hint = note || settled.problem;
      show(settled.state);
      const differs = NAMES.filter((name) => JSON.stringify(state[name]) !== JSON.stringify(model.get(name)));
      view.save(Object.fromEntries(differs.map((name) => [name, state[name]])));
    }

    function show(next) {
      const changed = NAMES.filter((name) => JSON.stringify(next[name]) !== JSON.stringify(state[name]));
      if (changed.some((name) => name !== "cell")) past.push(state);
      if (past.length > 200) past.shift();
      state = next;
      facts = factsOf(state);
      paint();
      if (changed.some((name) => name !== "cell")) view.say(spoken());
    }

    const spoken = () => `${facts.layer?.name ?? "No built-in layer"}. ${facts.sentence}`;

    // ------------------------------------------------------------------- controls

    const normButtons = NORMS.map((norm) =>
      element("button", { type: "button", onclick: () => change(...presetOf(norm)) }, norm)
    );

    function presetOf(norm) {
      const changes = presetChanges(norm, facts.pattern.axes);
      const axes = parse(changes.pattern).axes.join(" ");
      const moved = axes !== facts.pattern.axes.join(" ");
      return [changes, moved ? `${norm} has no layer on ${facts.pattern.axes.join(" ")}, so the axes are now ${axes}.` : ""];
    }

    const undo = element("button", { type: "button", onclick: goBack }, "Undo");
    const reset = element("button", { type: "button", onclick: () => change(atFirst) }, "Reset");

    function goBack() {
      const before = past.pop();
      if (!before) return;
      change(before);
      past.pop(); // going back is no step of its own
      paint();
    }

    const layout = element("select", { onchange: chooseLayout });
    LAYOUTS.forEach(([names, , use]) => layout.append(element("option", { value: names }, `${names} (${use})`)));
    layout.append(element("option", { value: "" }, "your own: type the names"));

    function chooseLayout() {
      if (layout.value) change(layoutChanges(state, layout.value));
      else pattern.select();
    }

    const pattern = element("input", {
      class: "nl-mono",
      type: "text",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      "aria-label": "Pattern: brackets hold the reduced axes",
      oninput: readTyped,
      onblur: () => {
        complain("");
        setValue(pattern, state.pattern);
      },
    });
    const complaint = element("pre", { class: "nl-complaint", role: "alert", hidden: true });

    function readTyped() {
      try {
        readPattern(pattern.value);
      } catch (error) {
        complain(error.message);
        return;
      }
      complain("");
      typing = true; // leave the text as it is being written
      change({ pattern: pattern.value });
      typing = false;
    }

    function complain(message) {
      setText(complaint, message);
      complaint.hidden = !message;
      pattern.setAttribute("aria-invalid", String(Boolean(message)));
    }

    const centered = [true, false].map((center) =>
      element("button", { type: "button", onclick: () => change({ center }) }, center ? "mean and variance" : "root mean square")
    );

    // One card for each axis: buttons to reduce or keep it, its size, its groups.
    const cards = element("div", { class: "nl-axes", role: "group", "aria-label": "Axes" });
    let dealt = "";
    let paintCards = () => {};

    function dealCards() {
      const labels = facts.pattern.dims.map(({ label }) => label).join(" ");
      if (labels === dealt) return;
      const focused = cards.contains(document.activeElement) ? document.activeElement.dataset.key : null;
      dealt = labels;
      const made = facts.pattern.axes.map(cardOf);
      cards.replaceChildren(...made.map(([card]) => card));
      paintCards = () => made.forEach(([, paintCard]) => paintCard());
      if (focused) cards.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    }

    function cardOf(axis, position) {
      const buttons = facts.pattern.dims
        .filter((dim) => dim.axis === axis)
        .map(({ label }) => {
          const word = element("small");
          const button = element("button", { type: "button", "data-key": `press ${label}`, onclick: () => press(label) },
            element("span", { class: "nl-name" }, label), word);
          return [label, button, word];
        });
      const size = element("input", {
        type: "number",
        min: 1,
        max: 99999,
        "data-key": `size ${axis}`,
        "aria-label": `Size of ${axis}`,
        onchange: () => {
          const typed = Math.round(size.valueAsNumber);
          if (!(typed >= 1)) return setValue(size, state.shape[position]);
          const { changes, note } = sizeChanges(state, axis, typed);
          return change(changes, note);
        },
      });
      const canSplit = axis === facts.pattern.splitAxis || (!facts.pattern.splitAxis && axis === "C" && !facts.pattern.axes.includes("G"));
      const groups = element("select", {
        "data-key": `groups ${axis}`,
        "aria-label": `Number of groups of ${axis}`,
        onchange: () => change(groupChanges(state, axis, Number(groups.value))),
      });
      const card = element("div", { class: `nl-axis${buttons.length > 1 ? " nl-split" : ""}` },
        element("div", { class: "nl-presses" }, ...buttons.map(([, button]) => button)),
        element("div", { class: "nl-sizes" }, size, ...(canSplit ? [groups] : [])));
      let offered = "";
      const paintCard = () => {
        buttons.forEach(([label, button, word]) => {
          const { reduced } = facts.pattern.dims.find((dim) => dim.label === label);
          button.setAttribute("aria-pressed", String(reduced));
          button.setAttribute("aria-label", `${label}, size ${facts.sets.sizes[label]}: ${reduced ? "reduced" : "kept"}`);
          setText(word, reduced ? "reduced" : "kept");
        });
        setValue(size, state.shape[position]);
        const offer = divisors(state.shape[position]).join();
        if (canSplit && offer !== offered) {
          const option = (n) => element("option", { value: n }, n ? `${n} group${n === 1 ? "" : "s"}` : "no groups");
          groups.replaceChildren(...[0, ...offer.split(",").map(Number)].map(option));
          offered = offer;
        }
        if (canSplit) setValue(groups, facts.pattern.splitAxis ? state.groups : 0);
      };
      return [card, paintCard];
    }

    const press = (label) => change({ pattern: facts.pattern.press(label).text });

    const setValue = (input, value) => {
      if (input.value !== String(value)) input.value = String(value);
    };

    // -------------------------------------------------------------------- results

    const tile = (caption) => {
      const value = element("strong");
      return [value, element("div", { class: "nl-tile" }, value, element("span", {}, caption))];
    };
    const [reducedText, reducedTile] = tile("reduced: averaged together");
    const [keptText, keptTile] = tile("kept: one mean for each");
    const [valuesText, valuesTile] = tile("values share each mean");
    const [setsText, setsTile] = tile("means in all");
    const message = element("p", { class: "nl-message" });

    const code = (what) => {
      const text = element("code");
      const row = element("div", { class: "nl-code" }, text);
      const copier = copyButton(view, what, () => text.textContent);
      row.append(copier);
      return { text, row, copier };
    };
    const torch = code("the PyTorch line");
    const normlab = code("the normlab line");
    const factRow = (name) => {
      const value = element("dd");
      return [value, element("dt", {}, name), value];
    };
    const rows = ["Shape of the statistics", "Weight and bias", "Other samples matter?", "Padding matters?", "Does train differ from eval?"].map(factRow);
    rows[1][0].classList.add("nl-parameters");
    const [statisticsShape, parametersFact, batch, padding, train] = rows.map(([value]) => value);
    const factList = element("dl", { class: "nl-facts" }, ...rows.flatMap(([, ...pair]) => pair));

    const parameters = element("select", {
      "aria-label": "Axes along which weight and bias differ",
      onchange: () => change({ parameters: parameters.value === "own" ? null : parameters.value }),
    });

    const elsewhere = { reduced: element("ul"), kept: element("ul") };
    const help = element("details", { class: "nl-help" },
      element("summary", {}, "Other frameworks: does axis= mean reduced or kept?"),
      element("div", {},
        element("div", {}, element("h4", {}, "These name the reduced axes"), elsewhere.reduced),
        element("div", {}, element("h4", {}, "These name the kept axis"), elsewhere.kept)));

    // -------------------------------------------------------------------- picture

    const cells = openCells({
      onPoint(cell) {
        if (JSON.stringify(cell) === JSON.stringify(pointed)) return;
        pointed = cell;
        paintPicture();
      },
      onPick(cell) {
        pointed = null;
        change({ cell });
        view.say(spokenCell());
      },
    });
    const colouring = [false, true].map((weight) =>
      element("button", {
        type: "button",
        onclick: () => {
          byWeight = weight;
          paint();
        },
      }, weight ? "shared weight" : "")
    );
    const legend = element("p", { class: "nl-legend" });
    const where = element("p");
    const list = element("p", { class: "nl-values nl-mono" });
    const steps = element("div", { class: "nl-steps nl-mono" });
    const number = (name, label) =>
      element("label", {}, label, " ",
        element("input", { type: "number", step: "any", "data-name": name, onchange: (event) => {
          if (Number.isFinite(event.target.valueAsNumber)) change({ [name]: event.target.valueAsNumber });
          else paint();
        } }));
    const numbers = element("div", { class: "nl-numbers" }, number("weight", "weight"), number("bias", "bias"), number("eps", "eps"));

    const currentCell = () => pointed ?? (state.cell.length ? state.cell : state.shape.map(() => 0));

    function spokenCell() {
      const { set, x, output } = arithmeticOf(state, facts, currentCell());
      const at = facts.pattern.axes.map((axis, i) => `${axis} ${currentCell()[i]}`).join(", ");
      return `${at}: ${formatNumber(x)}, set ${set}${output === undefined ? "" : `, output ${formatNumber(output)}`}`;
    }

    function paintPicture() {
      const { pattern: { axes }, sets } = facts;
      const cell = currentCell();
      const named = facts.parameterAxes.split(" ").filter(Boolean);
      // The weight's "sets": cells that agree in every axis which has a weight of its own.
      const weights = new Pattern(axes.map((axis) => ({ label: axis, axis, reduced: !named.includes(axis) }))).on(state.shape);
      const shown = byWeight ? weights : sets;
      cells.draw({
        axes,
        shape: state.shape,
        setOf: (at) => shown.setOf(at),
        colourOf: (at) => colourOf(shown.splitIndex(at).filter((_, i) => !shown.dims[i].reduced)),
        cell,
        set: shown.setOf(cell),
      });
      paintArithmetic(cell);
    }

    function paintArithmetic(cell) {
      const { sets, pattern: { axes } } = facts;
      const found = arithmeticOf(state, facts, cell);
      setText(where, `Cell ${axes.map((axis, i) => `${axis} ${cell[i]}`).join(", ")} holds ${formatNumber(found.x)}, in set ${found.set} of ${sets.numSets}.`);
      if (!found.values) {
        setText(list, `Its set has ${sets.valuesPerSet.toLocaleString("en")} values: too many to add up while you point.`);
        steps.replaceChildren();
        return;
      }
      const { x, values, mean, spread, normalized, output } = found;
      const first = [...values.slice(0, SHOWN)].map(formatNumber).join("  ");
      setText(list, values.length > SHOWN ? `${first}  … and ${values.length - SHOWN} more` : first);
      const n = values.length;
      const total = values.reduce((sum, value) => sum + value, 0);
      const minus = mean < 0 ? `+ ${formatNumber(-mean)}` : `− ${formatNumber(mean)}`;
      const eps = formatNumber(state.eps);
      const lines = state.center
        ? [
            ["mean", `${formatNumber(total)} / ${n}`, mean],
            ["variance", `mean of (x − mean)²`, spread],
            ["normalized", `(${formatNumber(x)} ${minus}) / √(${formatNumber(spread)} + ${eps})`, normalized],
          ]
        : [
            ["mean square", "mean of x²", spread],
            ["normalized", `${formatNumber(x)} / √(${formatNumber(spread)} + ${eps})`, normalized],
          ];
      const named = facts.parameterAxes.split(" ").filter(Boolean);
      const own = named.length ? `[${named.map((axis) => cell[axes.indexOf(axis)]).join(",")}]` : "";
      const bias = facts.hasBias ? ` + bias${own} ${formatNumber(state.bias)}` : "";
      if (named.length) lines.push(["output", `weight${own} ${formatNumber(state.weight)} × ${formatNumber(normalized)}${bias}`, output]);
      else lines.push(["output", "no weight, no bias", output]);
      const cellsOf = lines.flatMap(([name, formula, value]) => [name, formula, `= ${formatNumber(value)}`]);
      while (steps.childNodes.length < cellsOf.length) steps.append(element("span"));
      while (steps.childNodes.length > cellsOf.length) steps.lastChild.remove();
      cellsOf.forEach((text, i) => setText(steps.childNodes[i], text));
    }

    // ---------------------------------------------------------------------- paint

    function paint() {
      const { pattern: read, sets, layer } = facts;
      const one = state.center ? "mean" : "RMS";
      normButtons.forEach((button) => button.setAttribute("aria-pressed", String(Boolean(layer) && normOf(layer) === button.textContent)));
      undo.disabled = past.length === 0;
      setValue(layout, LAYOUTS.some(([names]) => names === read.axes.join(" ")) ? read.axes.join(" ") : "");
      if (!typing) {
        setValue(pattern, state.pattern);
        complain("");
      }
      centered.forEach((button, i) => button.setAttribute("aria-pressed", String(state.center === (i === 0))));
      setText(colouring[0], `shared ${one}`);
      colouring.forEach((button, i) => button.setAttribute("aria-pressed", String(byWeight === (i === 1))));
      dealCards();
      paintCards();

      setText(reducedText, read.reduced.join(" ") || "none");
      setText(keptText, read.kept.join(" ") || "none");
      setText(keptTile.lastChild, `kept: one ${one} for each`);
      setText(valuesText, sets.valuesPerSet.toLocaleString("en"));
      setText(valuesTile.lastChild, sets.valuesPerSet === 1 ? `value makes each ${one}` : `values share each ${one}`);
      setText(setsText, sets.numSets.toLocaleString("en"));
      setText(setsTile.lastChild, `${one}${sets.numSets === 1 || !state.center ? "" : "s"} in all`);
      const warnings = [hint, ...facts.warnings].filter(Boolean);
      message.classList.toggle("nl-warning", warnings.length > 0);
      setText(message, warnings.join(" ") || facts.sentence);

      setText(torch.text, facts.torch ?? "no built-in layer does this");
      torch.copier.disabled = !facts.torch;
      setText(normlab.text, facts.normlab);
      const keepdim = formatShape(sets.statisticsShape);
      setText(statisticsShape, read.groups ? `${keepdim}, of the input seen as ${formatShape(sets.splitShape)}` : keepdim);
      paintParameters();
      setText(batch, facts.batch);
      setText(padding, facts.padding);
      setText(train, facts.train);
      paintHelp();
      numbers.querySelectorAll("input").forEach((input) => setValue(input, state[input.dataset.name]));
      setText(legend, legendOf());
      cells.place.setAttribute("aria-label", `${facts.sentence} Arrow keys move from cell to cell.`);
      paintPicture();
    }

    let choices = "";
    function paintParameters() {
      const { pattern: read, layer } = facts;
      const free = read.axes.filter((axis) => axis !== read.batchAxis);
      const subsets = free.reduce((all, axis) => [...all, ...all.map((some) => [...some, axis])], [[]]);
      const own = layer ? `as ${normOf(layer)} has them` : "left out";
      const offered = [["own", own], ...subsets.map((some) => [some.join(" "), some.length ? `one for each ${some.join(" ")}` : "none"])];
      if (state.parameters && !subsets.some((some) => some.join(" ") === state.parameters)) {
        offered.push([state.parameters, `one for each ${state.parameters}`]);
      }
      if (JSON.stringify(offered) !== choices) {
        choices = JSON.stringify(offered);
        parameters.replaceChildren(...offered.map(([value, text]) => element("option", { value }, text)));
      }
      setValue(parameters, state.parameters ?? "own");
      const shape = formatShape(facts.parameterShape);
      const text = facts.parameterAxes ? `${shape}${facts.hasBias ? "" : ", and no bias"}` : "none";
      if (parametersFact.firstChild !== parametersText) parametersFact.replaceChildren(parametersText, parameters);
      setText(parametersText, text);
    }
    const parametersText = element("span");

    function paintHelp() {
      const { sets, pattern: read } = facts;
      const dims = sets.reducedDims;
      const shaped = read.groups ? `x.reshape${formatShape(sets.splitShape)}` : "x";
      const channel = read.axes.findIndex((axis, i) => i > 0 && !read.reduced.includes(axis));
      const write = (node, items) => node.replaceChildren(...items.map(([text, note]) => element("li", {}, element("code", {}, text), ` ${note}`)));
      const reducedAxes = read.axes.map((axis, i) => (read.reduced.includes(axis) ? i : -1)).filter((i) => i >= 0);
      write(elsewhere.reduced, [
        [`${shaped}.mean${dims.length === 1 ? `(${dims[0]})` : `(${formatShape(dims)})`}`, "here, in NumPy and PyTorch"],
        ["torch.nn.LayerNorm(normalized_shape)", "sizes of the reduced axes, the last ones"],
        [`keras.layers.LayerNormalization(axis=${formatList(reducedAxes)})`, read.groups ? "cannot split an axis" : "axis is reduced"],
        ["flax.linen.LayerNorm(reduction_axes=...)", "reduced"],
      ]);
      write(elsewhere.kept, [
        [`keras.layers.BatchNormalization(axis=${Math.max(channel, 1)})`, "axis is kept; all others are reduced. Its default, -1, is the last"],
        ["flax.linen.BatchNorm(axis=...)", "kept"],
        ["torch.nn.BatchNorm2d(num_features)", "always keeps axis 1"],
      ]);
    }

    function legendOf() {
      const { pattern: { axes } } = facts;
      const drawn = shownIndices(state.shape);
      const abridged = axes.map((axis, i) => [axis, drawn[i].length, state.shape[i]]).filter(([, some, all]) => some < all);
      const inside = axes.length > 1 ? `In a block ${axes.at(-2)} runs down and ${axes.at(-1)} to the right.` : `${axes[0]} runs to the right.`;
      const parts = [`Equal number: same ${byWeight ? "weight" : state.center ? "mean" : "RMS"}. The outlined cells share the picked one's.`, inside];
      if (abridged.length) {
        parts.push(`Abridged at the wider gaps: drawn are ${abridged.map(([axis, some, all]) => `${some} of ${all} along ${axis}`).join(", ")}.`);
      }
      return parts.join(" ");
    }

    // ------------------------------------------------------------------- assembly

    const group = (label, ...children) => element("div", { class: "nl-group", role: "group", "aria-label": label }, ...children);
    const share = element("div", { class: "nl-share" }, undo, reset, shareButton("Copy as Python", "the picker as a Python line", () => `normlab.${pythonLine(state)}`));
    if (model.link) share.append(shareButton("Copy link", "the link to this state", () => model.link(state)));

    function shareButton(words, what, text) {
      return copyButton(view, what, text, words);
    }

    view.root.append(
      element("div", { class: "nl-top" }, group("Norms", ...normButtons), share),
      element("div", { class: "nl-choose" },
        cards,
        element("div", { class: "nl-type" },
          element("label", {}, "Layout ", layout),
          element("div", { class: "nl-pattern" }, pattern, complaint),
          group("Statistic", ...centered))),
      element("div", { class: "nl-tiles" }, reducedTile, keptTile, valuesTile, setsTile),
      message,
      element("div", { class: "nl-middle" },
        element("div", {}, element("div", { class: "nl-colouring" }, element("span", {}, "Coloured by"), group("Coloured by", ...colouring)), cells.place, legend),
        element("div", { class: "nl-arithmetic" }, where, list, steps, numbers)),
      element("div", { class: "nl-bottom" },
        element("div", { class: "nl-layer" }, element("span", {}, "PyTorch"), torch.row, element("span", {}, "normlab"), normlab.row, help),
        factList)
    );
    view.watch(NAMES, () => {
      const settled = settle(rawState(), state);
      if (JSON.stringify(settled.state) === JSON.stringify(state)) return; // our own change
      hint = settled.problem;
      show(settled.state);
    });
    paint();
    view.root.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "z" && event.target.tagName !== "INPUT") {
        event.preventDefault();
        goBack();
      }
    });
    return () => {
      cells.close();
      view.close();
    };
  },
};

const formatList = (items) => (items.length === 1 ? String(items[0]) : `(${items.join(", ")})`);
