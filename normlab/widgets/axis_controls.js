// AxisPicker's controls: norms, axes, layout, pattern, statistic, and the way back.
// `picker` is the store that axis_picker.js makes: state, facts, past, change, goBack.

const NORMS = [...new Set(LAYERS.map(normOf))];

function button(words, onclick, properties = {}) {
  return element("button", { type: "button", onclick, ...properties }, words);
}

function group(label, ...children) {
  return element(
    "div",
    { class: "nl-group", role: "group", "aria-label": label },
    ...children,
  );
}

function setPressed(node, pressed) {
  node.setAttribute("aria-pressed", String(pressed));
}

/** Change an input's value only if it differs, so that a caret stays where it is. */
function setValue(input, value) {
  if (input.value !== String(value)) input.value = String(value);
}

// -------------------------------------------------------------------- the first row

function makeTop(picker, view, link) {
  const norms = NORMS.map((norm) => button(norm, () => choose(norm)));
  const undo = button("Undo", picker.goBack);
  const reset = button("Reset", () => picker.change(picker.atFirst));
  const python = () => `normlab.${pythonLine(picker.state)}`;
  const copies = [
    copyButton(view, "the picker as a Python line", python, "Copy as Python"),
  ];
  if (link) {
    copies.push(
      copyButton(view, "the link to this state", () => link(picker.state), "Copy link"),
    );
  }

  function choose(norm) {
    const before = picker.facts.pattern.axes;
    const changes = presetChanges(norm, before);
    const after = parse(changes.pattern).axes.join(" ");
    const moved = after !== before.join(" ");
    const note = `${norm} has no layer on ${before.join(" ")}, so the axes are now ${after}.`;
    picker.change(changes, moved ? note : "");
  }

  return {
    place: element(
      "div",
      { class: "nl-top" },
      group("Norms", ...norms),
      element("div", { class: "nl-share" }, undo, reset, ...copies),
    ),
    paint() {
      const { layer } = picker.facts;
      norms.forEach((node) =>
        setPressed(node, layer !== null && normOf(layer) === node.textContent),
      );
      undo.disabled = picker.past.length === 0;
    },
  };
}

// --------------------------------------------------------------------- the axes

/** One card for each axis: buttons to reduce or keep it, its size, its groups. */
function makeCards(picker) {
  const place = element("div", {
    class: "nl-axes",
    role: "group",
    "aria-label": "Axes",
  });
  let dealt = "";
  let cards = [];

  // New cards only for other axes; what had the focus has it again.
  function deal() {
    const { pattern } = picker.facts;
    const labels = pattern.dims.map(({ label }) => label).join(" ");
    if (labels === dealt) return;
    dealt = labels;
    const { activeElement } = place.getRootNode();
    const focused = place.contains(activeElement) && activeElement.dataset.key;
    cards = pattern.axes.map((axis, i) => makeCard(picker, axis, i));
    place.replaceChildren(...cards.map((card) => card.place));
    if (focused) place.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  return {
    place,
    paint() {
      deal();
      cards.forEach((card) => card.paint());
    },
  };
}

function makeCard(picker, axis, position) {
  const { pattern } = picker.facts;
  const parts = pattern.dims
    .filter((dim) => dim.axis === axis)
    .map(({ label }) => label);
  const presses = parts.map((label) => makePress(picker, label));
  const size = element("input", {
    type: "number",
    min: 1,
    max: 99999,
    "data-key": `size ${axis}`,
    "aria-label": `Size of ${axis}`,
    onchange() {
      const typed = Math.round(size.valueAsNumber);
      if (!(typed >= 1)) return paint();
      const { changes, note } = sizeChanges(picker.state, axis, typed);
      return picker.change(changes, note);
    },
  });
  const canSplit = pattern.splitAxis
    ? axis === pattern.splitAxis
    : axis === "C" && !pattern.axes.includes("G");
  const groups = element("select", {
    "data-key": `groups ${axis}`,
    "aria-label": `Number of groups of ${axis}`,
    onchange: () =>
      picker.change(groupChanges(picker.state, axis, Number(groups.value))),
  });
  let offered = "";

  function paint() {
    presses.forEach((press) => press.paint());
    setValue(size, picker.state.shape[position]);
    if (!canSplit) return;
    const offer = [0, ...divisors(picker.state.shape[position])];
    if (offered !== offer.join()) {
      offered = offer.join();
      const words = (n) => (n ? `${n} group${n === 1 ? "" : "s"}` : "no groups");
      groups.replaceChildren(
        ...offer.map((n) => element("option", { value: n }, words(n))),
      );
    }
    setValue(groups, picker.facts.pattern.splitAxis ? picker.state.groups : 0);
  }

  const place = element(
    "div",
    { class: `nl-axis${parts.length > 1 ? " nl-split" : ""}` },
    element("div", { class: "nl-presses" }, ...presses.map((press) => press.place)),
    element("div", { class: "nl-sizes" }, size, ...(canSplit ? [groups] : [])),
  );
  return { place, paint };
}

function makePress(picker, label) {
  const word = element("small");
  const press = () =>
    picker.change({ pattern: picker.facts.pattern.press(label).text });
  const place = button(element("span", { class: "nl-name" }, label), press, {
    "data-key": `press ${label}`,
  });
  place.append(word);
  return {
    place,
    paint() {
      const { pattern, sets } = picker.facts;
      const reduced = pattern.reduced.includes(label);
      setPressed(place, reduced);
      setText(word, reduced ? "reduced" : "kept");
      const name = `${label}, size ${sets.sizes[label]}: ${word.textContent}`;
      place.setAttribute("aria-label", name);
    },
  };
}

// ---------------------------------------------------- layout, pattern and statistic

function makeTyping(picker) {
  const layout = element("select", { onchange: chooseLayout });
  LAYOUTS.forEach(([names, , use]) => {
    layout.append(element("option", { value: names }, `${names} (${use})`));
  });
  layout.append(element("option", { value: "" }, "your own: type the names"));
  const statistics = [true, false].map((center) =>
    button(center ? "mean and variance" : "root mean square", () =>
      picker.change({ center }),
    ),
  );
  const pattern = element("input", {
    class: "nl-mono",
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    "aria-label": "Pattern: brackets hold the reduced axes",
    oninput: readTyped,
    onblur: writePattern,
  });
  const complaint = element("pre", {
    class: "nl-complaint",
    role: "alert",
    hidden: true,
  });
  let typing = false; // what is being typed stays as it is

  function chooseLayout() {
    if (layout.value) picker.change(layoutChanges(picker.state, layout.value));
    else pattern.select();
  }

  function readTyped() {
    try {
      readPattern(pattern.value);
    } catch (error) {
      complain(error.message);
      return;
    }
    complain("");
    typing = true;
    picker.change({ pattern: pattern.value });
    typing = false;
  }

  function complain(message) {
    setText(complaint, message);
    complaint.hidden = !message;
    pattern.setAttribute("aria-invalid", String(Boolean(message)));
  }

  function writePattern() {
    complain("");
    setValue(pattern, picker.state.pattern);
  }

  return {
    place: element(
      "div",
      { class: "nl-type" },
      element("label", {}, "Layout ", layout),
      element("div", { class: "nl-pattern" }, pattern, complaint),
      group("Statistic", ...statistics),
    ),
    paint() {
      const names = picker.facts.pattern.axes.join(" ");
      setValue(layout, LAYOUTS.some(([known]) => known === names) ? names : "");
      statistics.forEach((node, i) =>
        setPressed(node, picker.state.center === (i === 0)),
      );
      if (!typing) writePattern();
    },
  };
}
