"""Nothing moves when an explorer warns, refuses or announces something."""

import json

import pytest

from normlab.widgets import AxisPicker, BatchMates, GroupWalk, Quiz, RunningStats

WIDTHS = (1280, 360)

# Where every control and the whole explorer stand, by what a reader calls them.
BOXES = """root => [root, ...root.querySelectorAll(
    "button, input, select, summary, a, [tabindex], svg")]
  .filter(node => node.getBoundingClientRect().width && !node.closest(".nl-notice"))
  .map((node, i) => {
    const { x, y, width, height } = node.getBoundingClientRect();
    const name = node.getAttribute("aria-label") || node.textContent;
    const place = [x, y + scrollY, width, height].map(at => Math.round(10 * at) / 10);
    return [`${i} ${node.tagName} ${name.slice(0, 30)}`, place];
  })"""

# The explorer on a page once more, with a model at hand that says what Python would.
MODEL = """async ({ stem, state }) => {
  const { esm } = window.normlabSources[stem];
  const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const listeners = new Map();
  const traits = { ...state, error: "" };
  const fire = (event, self) =>
    (listeners.get(event) ?? []).forEach(call => call.call(self));
  const model = {
    get: name => traits[name],
    set: (name, value) => { traits[name] = value; },
    save_changes() {},
    on: (event, call) => listeners.set(event, [...(listeners.get(event) ?? []), call]),
    off() {},
  };
  const el = document.createElement("div");
  document.querySelector(".normlab-widget").replaceChildren(el);
  await (await import(url)).default.render({ model, el });
  window.python = {
    refuse(reason) { traits.error = reason; fire("change:error"); },
    leave() { fire("comm_live_update", { model: { comm_live: false } }); },
  };
}"""

REASON = (
    "shape: 0 is no size of an axis; every size is 1 or more, and all together are "
    "fewer than 2**31 values."
)
PICKER = AxisPicker("N (G [C/G]) [H W]", (4, 8, 5, 5), groups=4)
ANSWERS = [
    {"answer": "`N`", "correct": False, "feedback": "N is kept."},
    {"answer": "`D`", "correct": True, "feedback": "The last axis. " * 20},
    {"answer": "all", "correct": True, "feedback": "Every axis."},
]
ADVICE = {"type": "default", "feedback": "Add all values, then divide. " * 8}
HALF = {"type": "value", "value": 0.5, "correct": True, "feedback": "Half."}
QUIZ = Quiz(
    chapter=6,
    questions=[
        {"question": "Which?", "type": "multiple_choice", "answers": ANSWERS[:2]},
        {"question": "Which ones?", "type": "many_choice", "answers": ANSWERS},
        {"question": "The mean?", "type": "numeric", "answers": [HALF, ADVICE]},
    ],
)


def frames(page):
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))"
    )


def boxes(page):
    frames(page)
    return dict(page.locator(".normlab").first.evaluate(BOXES))


def moved(before, after):
    return {
        name: (place, after.get(name))
        for name, place in before.items()
        if after.get(name) != place
    }


def link(page, stem, **state):
    """Follow a link to a state, as one gets it from anywhere."""
    page.evaluate(
        "([key, state]) => { location.hash = new URLSearchParams({ [key]: state }) }",
        [f"{stem}-1", json.dumps(state)],
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("explorer", "refused"),
    [
        (
            BatchMates(shift=4.0),
            [
                ("groups", 3, "3 groups do not divide"),
                ("shape", [9, 4, 3], "N may be from 1 to 8"),
                ("values", [1.0, 2.0], "48 finite numbers"),
            ],
        ),
        (
            RunningStats(fed=((30, 4.0, 2.0, True),)),
            [
                ("momentum", 1.5, "from 0 to 1"),
                ("fed", [[501, 0.0, 1.0, True]], "at most 500 batches"),
            ],
        ),
        (
            GroupWalk(groups=4),
            [("groups", 3, "these would: 1, 2, 4, 8"), ("spread", 11, "from 0 to 10")],
        ),
        (
            PICKER,
            [
                ("pattern", "N [C", "is never closed. Add the missing ]."),
                ("shape", [0, 8, 5, 5], "every size is 1 or more"),
                ("parameters", "Q", "is no axis of"),
            ],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_refused_link_moves_nothing(open_widgets, explorer, refused, width):
    page = open_widgets(explorer, width=width)
    before = boxes(page)
    for name, value, words in refused:
        link(page, explorer.stem, **{**explorer.snapshot(), name: value})
        warning = page.locator(".nl-warning:not([hidden])", has_text=words)
        warning.wait_for(timeout=5000)
        assert moved(before, boxes(page)) == {}
        # The whole reason can be read.
        assert warning.evaluate("node => node.scrollHeight <= node.clientHeight")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "explorer",
    [PICKER, BatchMates(), RunningStats(), GroupWalk(), QUIZ],
    ids=lambda explorer: type(explorer).__name__,
)
def test_what_python_says_moves_nothing_and_can_be_put_away(
    open_widgets, explorer, width
):
    page = open_widgets(explorer, width=width)
    state = json.loads(json.dumps(explorer.snapshot()))
    page.evaluate(MODEL, {"stem": explorer.stem, "state": state})
    before = boxes(page)
    notice = page.locator(".nl-notice")
    for say, words in (
        (f"python.refuse({json.dumps(REASON)})", REASON),
        ("python.leave()", "The kernel is gone"),
    ):
        page.evaluate(say)
        assert words in notice.inner_text()
        assert moved(before, boxes(page)) == {}
    box = notice.bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 1000  # in view
    page.get_by_role("button", name="Hide this message").click()
    assert notice.is_hidden()
    assert moved(before, boxes(page)) == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_warnings_of_the_picker_move_nothing(open_widgets, width):
    page = open_widgets(PICKER, width=width)
    places = "nodes => nodes.map(node => node.getBoundingClientRect().top + scrollY)"

    def tops():
        frames(page)
        parts = ".nl-tiles, .nl-middle > *, .nl-picture, .nl-bottom > *, .normlab input"
        return page.locator(parts).evaluate_all(places)

    def press(*labels):
        for label in labels:
            page.locator(f'[data-key="press {label}"]').click()

    before = tops()
    message = page.locator(".nl-message")
    press("N", "G")
    assert "Everything is reduced" in message.inner_text()
    assert tops() == before
    press("N", "G", "C/G", "H", "W")
    assert "One value in each set" in message.inner_text()
    assert tops() == before
    press("C/G", "H", "W")
    page.locator(".nl-pattern input").fill("N [C")
    page.locator(".nl-complaint").wait_for()
    assert tops() == before
    page.locator(".nl-pattern input").blur()
    # Another size or layout has another picture: what is above it stays.
    top = message.bounding_box()
    page.get_by_label("Size of C").fill("6")
    page.keyboard.press("Enter")
    assert "not divisible" in message.inner_text()
    assert message.bounding_box() == top
    page.get_by_role("button", name="RMSNorm").click()
    assert "so the axes are now" in message.inner_text()
    assert message.bounding_box()["height"] == top["height"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "explorer",
    [PICKER, BatchMates(), RunningStats(), GroupWalk()],
    ids=lambda explorer: type(explorer).__name__,
)
def test_a_copy_button_that_says_so_moves_nothing(open_widgets, explorer, width):
    page = open_widgets(explorer, width=width)
    before = boxes(page)
    names = {name.split(" ", 1)[1] for name in before}
    for button in page.locator(".nl-copy:enabled").all():
        button.click()
        page.locator(".nl-copy", has_text="opied").first.wait_for()
        after = boxes(page)
        assert list(before.values()) == list(after.values()), names


@pytest.mark.parametrize("width", WIDTHS)
def test_a_verdict_moves_nothing(open_widgets, width):
    page = open_widgets(QUIZ, width=width)
    before = boxes(page)
    forms = page.locator(".nl-question")

    def check(index, outcome):
        forms.nth(index).get_by_role("button").click()
        verdict = forms.nth(index).locator(".nl-verdict")
        assert verdict.get_attribute("data-outcome") == outcome
        assert moved(before, boxes(page)) == {}

    check(0, "nothing")
    for i, outcome in enumerate(("wrong", "right")):
        forms.nth(0).locator("input").nth(i).check()
        check(0, outcome)
    for i, outcome in ((1, "part"), (2, "right"), (0, "wrong")):
        forms.nth(1).locator("input").nth(i).check()
        check(1, outcome)
    for text, outcome in (("a", "nothing"), ("7", "wrong"), ("1/2", "right")):
        forms.nth(2).locator("input").fill(text)
        check(2, outcome)
