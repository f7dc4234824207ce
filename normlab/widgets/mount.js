// Mounts the explorers on a page without kernel. A classic script: browsers refuse
// module scripts on pages opened as files, so each widget's module is imported from a
// blob of its source (globalThis.normlabSources, which `normlab.widgets.bundle` writes).
(() => {
  const modules = new Map();

  function load(stem) {
    if (!modules.has(stem)) {
      const { esm, css } = globalThis.normlabSources[stem];
      const style = document.createElement("style");
      style.textContent = css;
      document.head.append(style);
      const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
      modules.set(
        stem,
        import(url).finally(() => URL.revokeObjectURL(url)),
      );
    }
    return modules.get(stem);
  }

  // The part of a notebook's model that a widget may use. `link` exists on a page
  // alone: the address that opens the page with a widget in this state.
  function makeModel(initial, key) {
    const state = structuredClone(initial);
    const listeners = new Map();
    const fire = (event) => [...(listeners.get(event) ?? [])].forEach((call) => call());
    return {
      get: (name) => state[name],
      set(name, value) {
        if (JSON.stringify(state[name]) === JSON.stringify(value)) return;
        state[name] = value;
        fire(`change:${name}`);
        fire("change");
      },
      save_changes() {},
      on(event, call) {
        listeners.set(event, [...(listeners.get(event) ?? []), call]);
      },
      off(event, call) {
        const kept = call ? (listeners.get(event) ?? []).filter((f) => f !== call) : [];
        listeners.set(event, kept);
      },
      link(changed) {
        const hash = new URLSearchParams({ [key]: JSON.stringify(changed) });
        return `${location.href.split("#")[0]}#${hash}`;
      },
    };
  }

  // A link is text from anywhere: only names that the state has are taken from it, and
  // the widget checks their values as it checks what a reader types.
  function stateInLink(key, names) {
    try {
      const linked = JSON.parse(new URLSearchParams(location.hash.slice(1)).get(key));
      const known = Object.entries(linked ?? {}).filter(([name]) =>
        names.includes(name),
      );
      return Object.fromEntries(known);
    } catch {
      return {};
    }
  }

  async function mount(place, key) {
    const stem = place.dataset.widget;
    const stored = JSON.parse(place.dataset.state);
    const linked = stateInLink(key, Object.keys(stored));
    const model = makeModel({ ...stored, ...linked }, key);
    const view = document.createElement("div");
    const module = await load(stem);
    await module.default.render({ model, el: view });
    place.replaceChildren(view);
    place.dataset.mounted = "yes";
    if (Object.keys(linked).length) place.scrollIntoView();
    addEventListener("hashchange", () => {
      const changes = Object.entries(stateInLink(key, Object.keys(stored)));
      changes.forEach(([name, value]) => model.set(name, value));
    });
    if (place.closest("[data-address]")) followInAddress(model, stored);
  }

  // Where a page asks for it, its address always leads back to what is shown.
  function followInAddress(model, stored) {
    let due;
    model.on("change", () => {
      clearTimeout(due);
      due = setTimeout(() => {
        const state = Object.keys(stored).map((name) => [name, model.get(name)]);
        history.replaceState(null, "", model.link(Object.fromEntries(state)));
      }, 200); // browsers refuse an address that changes too often
    });
  }

  function mountAll() {
    const counts = {};
    document.querySelectorAll(".normlab-widget[data-widget]").forEach((place) => {
      const stem = place.dataset.widget;
      counts[stem] = (counts[stem] ?? 0) + 1;
      if (place.dataset.mounted || !globalThis.normlabSources[stem]) return;
      place.dataset.mounted = "soon";
      mount(place, `${stem}-${counts[stem]}`).catch((error) => {
        place.dataset.mounted = "failed"; // the still picture stays
        console.error(error);
      });
    });
  }

  globalThis.normlabMount = mountAll;
  if (document.readyState === "loading") {
    // While the page comes in, the modules get ready; then the explorers are first.
    Object.keys(globalThis.normlabSources).forEach(load);
    document.addEventListener("readystatechange", mountAll, { once: true });
  } else mountAll();
})();
