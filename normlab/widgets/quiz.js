// Quiz: the questions of a chapter, each checked on its own, as often as one likes.

// --------------------------------------------------------------- judging, without DOM

/** A number as people write it: 0.5, 1/2, -3, 1e-5; NaN for anything else. */
export function parseNumber(text) {
  const parts = text.replace("\u2212", "-").split("/");
  // Number() takes an empty text for 0.
  if (parts.length > 2 || parts.some((part) => !part.trim())) return NaN;
  return parts.map(Number).reduce((one, other) => one / other);
}

/**
 * What there is to say about what was given: indices of chosen answers, or a number.
 * `outcome` is "right", "wrong" or "part" (all that was chosen is right, but it is not
 * all); `said` are the answers whose explanation is due.
 */
export function judge(question, given) {
  const { answers, type, precision } = question;
  if (type === "numeric") {
    const fallback = answers.find((answer) => answer.type === "default");
    const found = answers.find((answer) => covers(answer, given, precision)) ?? fallback;
    return { outcome: found?.correct ? "right" : "wrong", said: found ? [found] : [] };
  }
  const said = given.map((index) => answers[index]);
  if (said.some((answer) => !answer.correct)) return { outcome: "wrong", said };
  const missing = answers.filter((answer) => answer.correct).length - said.length;
  return { outcome: missing ? "part" : "right", said };
}

function covers(answer, number, precision) {
  if (answer.range) return answer.range[0] <= number && number < answer.range[1];
  if (answer.value === undefined) return false;
  const rounded = (value) => (precision ? Number(value.toPrecision(precision)) : value);
  return rounded(answer.value) === rounded(number);
}

// ------------------------------------------------------------------------------ page

const VERDICTS = {
  right: ["✓", "Correct."],
  wrong: ["✗", "Not yet."],
  part: ["…", "Right so far, but there is more to choose."],
  nothing: ["…", "Nothing to check yet."],
};
const KINDS = {
  multiple_choice: "Choose one.",
  many_choice: "Choose all that apply.",
  numeric: "Enter a number.",
};

/** Text with what stands between backticks as code; never read as HTML. */
function marked(text) {
  return text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

export default {
  render({ model, el }) {
    const questions = model.get("questions");
    const label = `Quiz on chapter ${model.get("chapter")}`;
    const view = openView({ model, el, name: "Quiz", label });
    const right = new Set();

    const score = element("p", { class: "nl-score" });
    function show() {
      setText(score, `${right.size} of ${questions.length} answered correctly.`);
    }
    function save() {
      show();
      view.save({ solved: [...right].sort((a, b) => a - b) });
    }
    function note(index) {
      if (right.has(index)) return;
      right.add(index);
      save();
    }
    function clear() {
      forms.forEach((form) => form.reset());
      right.clear();
      save();
    }

    const forms = questions.map((question, index) => questionForm(question, index, note));
    const restart = element("button", { type: "button", onclick: clear }, "Clear all answers");
    view.root.append(
      element("p", { class: "nl-title" }, label),
      ...forms,
      element("div", { class: "nl-foot" }, score, restart),
    );
    show();
    return view.close;
  },
};

// Each question is a form of its own, so that the names of its radio buttons concern
// nothing else on the page. It is never submitted: sandboxed frames forbid that.
function questionForm(question, index, note) {
  const number = question.type === "numeric";
  const fields = number ? [numberField()] : question.answers.map((answer, i) => option(question, answer, i));
  const inputs = fields.map((field) => field.querySelector("input"));
  const advice = number ? "Enter a number such as 0.5, 1/2 or 1200, without a comma." : "Choose an answer first.";
  const named = question.type === "many_choice";
  const said = element("div", { role: "status" });
  // Out of sight stand the longest verdicts that there can be: they keep room for each.
  const right = question.answers.filter((answer) => answer.correct);
  const longest = [
    ["nothing", [], advice],
    ...(named ? [["wrong", question.answers], ["part", right]] : question.answers.map((answer) => ["wrong", [answer]])),
  ];
  const room = longest.map(([outcome, answers, words]) => element("div", { class: "nl-room", "aria-hidden": "true" }, ...verdictOn(outcome, answers, words, named)));
  const verdict = element("div", { class: "nl-verdict" }, said, ...room);

  function check() {
    const chosen = inputs.flatMap((input, i) => (input.checked ? [i] : []));
    const given = number ? parseNumber(inputs[0].value) : chosen;
    if (number ? Number.isNaN(given) : !chosen.length) {
      tell("nothing", [], advice);
      return;
    }
    const found = judge(question, given);
    tell(found.outcome, found.said);
    if (found.outcome === "right") note(index);
  }

  // A screen reader reads it out, since its place is a status.
  function tell(outcome, answers, advice = "") {
    verdict.dataset.outcome = outcome;
    said.replaceChildren(...verdictOn(outcome, answers, advice, named));
  }

  const checkAtEnter = (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    check();
  };
  const silence = () => {
    said.replaceChildren();
    delete verdict.dataset.outcome;
  };
  const code = question.code ? [element("pre", {}, element("code", {}, question.code))] : [];
  const kind = element("span", { class: "nl-kind" }, KINDS[question.type]);
  const legend = element("legend", {}, `${index + 1}. `, ...marked(question.question), " ", kind);
  const button = element("button", { type: "button", "aria-label": `Check question ${index + 1}`, onclick: check }, "Check");
  return element(
    "form",
    { class: "nl-question", novalidate: true, autocomplete: "off", onsubmit: (event) => event.preventDefault(), onkeydown: checkAtEnter, oninput: silence, onreset: silence },
    element("fieldset", {}, legend, ...code, ...fields),
    button,
    verdict,
  );
}

function option(question, answer, i) {
  const type = question.type === "many_choice" ? "checkbox" : "radio";
  const input = element("input", { type, name: "choice", value: i });
  return element("label", { class: "nl-option" }, input, element("span", {}, ...marked(answer.answer)));
}

function numberField() {
  // Not of type "number": that refuses 1/2, and a comma in half of all languages.
  const input = element("input", { type: "text", inputmode: "decimal", size: 12 });
  return element("label", { class: "nl-number" }, "Your answer ", input);
}

/** A verdict in paragraphs: how it is, and what there is to say about the answers. */
function verdictOn(outcome, said, advice = "", named = false) {
  const [sign, word] = VERDICTS[outcome];
  const lines = said.map((answer) => {
    const own = answer.correct ? "✓" : "✗";
    const head = named ? [`${own} `, ...marked(answer.answer), ": "] : [];
    return element("p", {}, ...head, ...marked(answer.feedback));
  });
  const first = element("p", {}, element("strong", {}, `${sign} ${word}`), advice && ` ${advice}`);
  return [first, ...lines];
}
