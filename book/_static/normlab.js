// What the book's pages do besides the explorers. Without this script all is shown.
document.addEventListener("DOMContentLoaded", () => {
  foldSetup();
  hidePredictions();
  document.querySelectorAll("form[data-link]").forEach(openHub);
  startMath();
});

// Math is a page's longest work, so it waits until the explorers answer, or for 5 s.
function startMath() {
  const waiting = document.getElementById("mathjax");
  if (!waiting) return;
  const places = [...document.querySelectorAll(".normlab-widget")];
  const live = places.every((place) => /yes|failed/.test(place.dataset.mounted));
  if (!live && performance.now() < 5000) {
    setTimeout(startMath, 50);
    return;
  }
  const script = document.createElement("script");
  script.src = waiting.src;
  waiting.replaceWith(script);
  // MathJax hears of printing once only, and not while it starts; this asks each time.
  addEventListener("beforeprint", () => {
    window.MathJax?.startup?.document?.lazyTypesetAll?.();
  });
}

// What stands before the first section imports and defines helpers.
function foldSetup() {
  const cells = document.querySelectorAll(".launchers ~ .cell");
  if (!cells.length) return;
  const setup = document.createElement("details");
  setup.className = "setup";
  const summary = document.createElement("summary");
  summary.textContent = "Set-up: imports and helpers of this chapter";
  let node = cells[0];
  node.before(setup);
  setup.append(summary);
  while (node && !node.matches("section")) {
    const next = node.nextElementSibling;
    setup.append(node);
    node = next;
  }
  addEventListener("beforeprint", () => (setup.open = true));
}

// The output that answers a prediction waits until the reader asks for it.
function hidePredictions() {
  const made = [...document.querySelectorAll("p.predict")].map(hideAnswer);
  const all = made.filter(Boolean);
  const row = document.querySelector(".launchers");
  if (!all.length || !row) return;
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = remembered("all") === "yes";
  const label = document.createElement("label");
  label.append(box, " Show answers at once");
  row.append(label);
  const showAll = (open) => all.forEach((answer) => (answer.open = open));
  if (box.checked) showAll(true);
  box.addEventListener("change", () => {
    showAll(box.checked);
    remember("all", box.checked ? "yes" : "no");
  });
  addEventListener("beforeprint", () => showAll(true));
}

function hideAnswer(prediction) {
  let node = prediction.nextElementSibling;
  while (node && !node.matches("p.predict") && !node.querySelector(".cell_output")) {
    node = node.nextElementSibling;
  }
  const output = node?.querySelector(".cell_output");
  if (!output || output.querySelector(".normlab-widget")) return null;
  const answer = document.createElement("details");
  answer.className = "answer";
  const summary = document.createElement("summary");
  summary.textContent = "Your answer first, then the output";
  output.before(answer);
  answer.append(summary, output);
  return answer;
}

// Where no hub is set for the whole book, a reader may name theirs.
function openHub(form) {
  const field = form.querySelector("input");
  field.value = remembered("hub") ?? "";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const hub = field.value.replace(/\/+$/, "");
    remember("hub", hub);
    location.href = form.dataset.link.replace(form.dataset.hub, hub);
  });
}

// Some browsers forbid storage on pages opened as files.
function remembered(name) {
  try {
    return localStorage.getItem(`normlab-${name}`);
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`normlab-${name}`, value);
  } catch {
    // then it holds for this page alone
  }
}
