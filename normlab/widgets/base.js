// What all explorers share. Python joins this file, notation.js and a widget's own file
// to one module (normlab.widgets.base), so their names are one scope.

// ------------------------------------------------------------------------- elements
// Children are elements or text; text is never read as HTML.

export function element(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svgElement(tag, attributes = {}, ...children) {
  return fill(
    document.createElementNS("http://www.w3.org/2000/svg", tag),
    attributes,
    children,
  );
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") node.toggleAttribute(name, value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Change a node's text only if it differs: no layout for what stays as it is. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// ----------------------------------------------------------------------------- view

/**
 * The frame that every explorer stands in: the root element, its theme, a place for
 * notices, announcements to screen readers, and the traffic with the model.
 *
 *   const view = openView({ model, el, name: "GroupWalk", label: "Walk from LayerNorm" });
 *   view.root.append(...);
 *   view.watch(["groups", "shape"], draw);    // calls draw once now, then after changes
 *   view.save({ groups: 4 });                 // to Python, and to other views
 *   view.say("4 groups of 2 channels");       // read out, not shown
 *   return view.close;
 */
export function openView({ model, el, name, label }) {
  const live = element("div", { class: "nl-unseen", "aria-live": "polite" });
  const words = element("p", { role: "alert" });
  const hide = element("button", { type: "button", "aria-label": "Hide this message" });
  const notice = element("div", { class: "nl-notice", hidden: true }, words, hide);
  hide.append("×");
  hide.addEventListener("click", () => (notice.hidden = true));
  const root = element(
    "section",
    { class: `normlab ${name}`, "aria-label": label },
    element("div", { class: "nl-over" }, notice),
    live,
  );
  // JupyterLab takes arrow keys, Enter and Space for its cells, before any listener here
  // hears of them; it spares the focused element if that says so itself.
  root.addEventListener("focusin", ({ target }) => {
    target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
  el.replaceChildren(root);
  const closers = [followTheme(root)];

  function listen(event, call) {
    model.on(event, call);
    closers.push(() => model.off(event, call));
  }

  let lost = false;
  function showNotice() {
    const lines = [];
    if (lost) {
      lines.push(
        "The kernel is gone, so Python no longer follows. The picture still works; " +
          "run the cell again to connect.",
      );
    }
    if (model.get("error")) lines.push(model.get("error"));
    notice.hidden = lines.length === 0;
    setText(words, lines.join("\n"));
  }
  // ipywidgets fires this when the connection to the kernel opens or closes, with its
  // view as `this`. (Its own mark on the element is lost: anywidget clears the view's
  // listeners when it renders.)
  listen("comm_live_update", function () {
    lost = this?.model?.comm_live === false;
    showNotice();
  });
  listen("change:error", showNotice);
  showNotice();

  return {
    root,
    notice,
    say: (text) => setText(live, text),
    watch(names, draw) {
      // One message from Python may change several traits: draw once for all of them.
      let due = false;
      const soon = () => {
        if (due) return;
        due = true;
        queueMicrotask(() => {
          due = false;
          draw();
        });
      };
      names.forEach((trait) => listen(`change:${trait}`, soon));
      draw();
    },
    save(changes) {
      Object.entries(changes).forEach(([trait, value]) => model.set(trait, value));
      try {
        model.save_changes();
      } catch {
        lost = true; // no connection to send it through
        showNotice();
      }
    },
    close: () => closers.forEach((close) => close()),
  };
}

// ---------------------------------------------------------------------------- theme

/** Light or dark, as the page around is: JupyterLab, VS Code, a book, Colab, the system. */
export function themeOf(page = document) {
  const { body, documentElement: html } = page;
  if (body.dataset.jpThemeLight)
    return body.dataset.jpThemeLight === "false" ? "dark" : "light";
  const kind = body.dataset.vscodeThemeKind ?? body.className;
  if (/vscode-(high-contrast-)?light/.test(kind)) return "light";
  if (/vscode-(dark|high-contrast)/.test(kind)) return "dark";
  const stated = html.dataset.theme ?? html.getAttribute("theme");
  if (stated === "light" || stated === "dark") return stated;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function followTheme(root) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    if (root.dataset.theme !== themeOf()) root.dataset.theme = themeOf();
  };
  const attributes = [
    "data-jp-theme-light",
    "data-vscode-theme-kind",
    "data-theme",
    "theme",
    "class",
  ];
  const observer = new MutationObserver(apply);
  observer.observe(document.documentElement, { attributeFilter: attributes });
  observer.observe(document.body, { attributeFilter: attributes });
  system.addEventListener("change", apply);
  apply();
  return () => {
    observer.disconnect();
    system.removeEventListener("change", apply);
  };
}

// ---------------------------------------------------------------------------- parts

/** A button that copies what `text()` returns, and says so. */
export function copyButton(view, what, text, words = "Copy") {
  const button = element(
    "button",
    { type: "button", class: "nl-copy", title: `Copy ${what}` },
    words,
  );
  let back;
  button.addEventListener("click", async () => {
    const copied = await copy(text());
    view.say(copied ? `Copied ${what}.` : `Could not copy ${what}.`);
    const { width } = button.getBoundingClientRect();
    button.style.minWidth = `${width}px`; // its word changes, no more
    setText(button, copied ? "Copied" : "Not copied");
    clearTimeout(back);
    back = setTimeout(() => setText(button, words), 1500);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages opened as files, and frames without permission, have the old way alone.
    const area = element("textarea", { style: "position: fixed; opacity: 0" });
    area.value = text;
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return copied;
  }
}

/** A number as text: at most four significant digits, a true minus sign. */
export function formatNumber(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "undefined" : "infinite";
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 1e-3 || size >= 1e6)
      ? Number(value.toPrecision(3)).toExponential()
      : String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
  return text.replace("-", "\u2212");
}

/** A value as Python writes it; a number as a float, with its .0, if `isFloat`. */
export function pythonValue(value, isFloat = true) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return quote(value);
  if (Array.isArray(value)) {
    return formatShape(value.map((part) => pythonValue(part, isFloat)));
  }
  if (!isFloat) return String(value);
  const size = Math.abs(value);
  const text =
    size && (size < 1e-4 || size >= 1e16) ? value.toExponential() : String(value);
  return /[.e]/.test(text) ? text.replace(/e([+-])(\d)$/, "e$10$2") : `${text}.0`;
}

/** A Python call; `parts` are its arguments as text. */
export const pythonCall = (name, parts) => `${name}(${parts.join(", ")})`;

/** A shape as Python writes it: (4, 8), (4,), (). */
export function formatShape(shape) {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}
