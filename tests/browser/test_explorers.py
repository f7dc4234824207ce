"""BatchMates, RunningStats and GroupWalk: numbers, plain page, and JupyterLab."""

import json
import random

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from traitlets import TraitError

from normlab.widgets import BatchMates, GroupWalk, RunningStats, static_page
from normlab.widgets.batch_mates import NORMS
from normlab.widgets.explorer import standard_normal

EXPLORERS = (BatchMates, RunningStats, GroupWalk)

LOAD = """async () => {
  window.loaded = {};
  for (const [stem, { esm }] of Object.entries(window.normlabSources)) {
    const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
    window.loaded[stem] = await import(url);
  }
}"""


def plain(explorer):
    """The state as the page has it."""
    return json.loads(json.dumps(explorer.snapshot()))


# ------------------------------------------------------------------ the same numbers


@pytest.fixture(scope="module")
def page(pages, tmp_path_factory):
    file = tmp_path_factory.mktemp("numbers") / "page.html"
    file.write_text(static_page(*(make() for make in EXPLORERS)), encoding="utf-8")
    page = pages(viewport={"width": 1100, "height": 1000})
    page.goto(file.as_uri())
    page.evaluate(LOAD)
    return page


def drawn_mates(count):
    draw = random.Random(0)
    for _ in range(count):
        shape = tuple(draw.choice([1, 2, 3, 4]) for _ in range(3))
        size = int(np.prod(shape))
        own = tuple(draw.uniform(-9, 9) for _ in range(size))
        yield BatchMates(
            shape=shape,
            values=draw.choice([(), own]),
            seed=draw.randrange(2**32),
            shift=draw.choice([0.0, draw.uniform(-20, 20)]),
            scale=draw.choice([0.0, 1.0, draw.uniform(0, 5)]),
            groups=draw.choice([g for g in range(1, 5) if shape[1] % g == 0]),
            track_running_stats=draw.random() < 0.5,
            alone=draw.random() < 0.5,
            norm=draw.choice(NORMS),
            training=draw.random() < 0.5,
            element=draw.randrange(shape[1] * shape[2]),
        )


def test_batch_mates_computes_what_python_does(page):
    cases = list(drawn_mates(300))
    seen = page.evaluate(
        """([states, norms]) => states.map(state => {
          const n = window.loaded.batch_mates;
          const changes = norm => [true, false].map(training => {
            const { change, refusal } = n.matesChange(state, norm, training);
            return refusal ? null : change;
          });
          const gradient = n.matesGradient(state);
          const { shape, norm, training } = state;
          const refused = n.matesRefusal(state, shape, norm, training);
          const x = n.matesBatch(state);
          return {
            inputs: [...x],
            changes: Object.fromEntries(norms.map(norm => [norm, changes(norm)])),
            gradient: gradient && [...gradient],
            output: refused
              ? null
              : [...n.matesOutput(state, x, shape, norm, training)],
          };
        })""",
        [[plain(mates) for mates in cases], NORMS],
    )
    refusals = 0
    for mates, found in zip(cases, seen, strict=True):
        assert found["inputs"] == pytest.approx(mates.inputs.ravel().tolist())
        for norm, pair in mates.changes.items():
            assert found["changes"][norm] == [
                None if one is None else pytest.approx(one, abs=1e-9) for one in pair
            ], mates
            refusals += pair.count(None)
        for name, values in (
            ("gradient", mates.gradient),
            ("output", mates.output(mates.norm, mates.training)),
        ):
            expected = values if values is None else values.ravel().tolist()
            assert found[name] == pytest.approx(expected, abs=1e-7), mates
    assert 100 < refusals < 1500


def drawn_stats(count):
    draw = random.Random(1)
    for _ in range(count):
        batches = [
            tuple(draw.uniform(-9, 9) for _ in range(draw.randint(2, 5)))
            for _ in range(draw.choice([0, 0, 3]))
        ]
        fed = tuple(
            (
                draw.randint(1, 9),
                draw.uniform(-9, 9),
                draw.uniform(0, 4),
                draw.random() < 0.7,
            )
            for _ in range(draw.randint(0, 3))
        )
        yield RunningStats(
            mean=draw.uniform(-9, 9),
            std=draw.uniform(0.1, 5),
            momentum=draw.choice([None, 0.0, 1.0, draw.random()]),
            batch_size=draw.randint(2, 12),
            unbiased=draw.random() < 0.5,
            fresh=draw.random() < 0.5,
            given=batches,
            fed=fed,
            seed=draw.randrange(2**32),
        )


def test_running_stats_computes_what_python_does(page):
    cases = list(drawn_stats(200))
    seen = page.evaluate(
        """states => states.map(state => {
          const n = window.loaded.running_stats;
          const batches = n.runningBatches(state);
          const history = n.runningHistory(batches, state.momentum, state.unbiased);
          const probe = n.runningProbe(state, batches);
          const outputs = n.runningOutputs(probe, history.at(-1));
          const answer = n.runningAnswer(state, batches, history.at(-1), outputs);
          const fed = n.fedWith(state, 2);
          const truth = batches.map(batch => [batch.mean, batch.var, batch.training]);
          return { history, probe, outputs, truth, answer, fed };
        })""",
        [plain(stats) for stats in cases],
    )
    for stats, found in zip(cases, seen, strict=True):
        assert np.array(found["history"]) == pytest.approx(np.array(stats.history))
        assert found["probe"] == pytest.approx(list(stats.probe))
        for ours, theirs in zip(found["outputs"], stats.outputs, strict=True):
            assert ours == pytest.approx(theirs.tolist(), rel=1e-6, abs=1e-9)
        truth = [(b.mean, b.var, b.training) for b in stats.batches]
        assert [tuple(one) for one in found["truth"]] == [
            pytest.approx(one) for one in truth
        ]
        assert found["answer"].replace("−", "-") == stats.sentence()
        stats.feed(2)
        assert found["fed"] == plain(stats)["fed"]


def test_how_fast_the_start_is_forgotten(page):
    found = page.evaluate(
        """() => {
          const { batchesToForget, startLeft } = window.loaded.running_stats;
          const five = Array(5).fill({ training: true });
          return [
            [0.1, 0.01, 0.001, 1, null].map(batchesToForget),
            [startLeft(five, 0.1), startLeft(five, null), startLeft([], null)],
            batchesToForget(0) === Infinity,
          ];
        }"""
    )
    assert found[0] == [44, 459, 4603, 1, 1]
    assert found[1] == [pytest.approx(0.59049), 0, 1]
    assert found[2] is True


def drawn_walks(count):
    draw = random.Random(2)
    for _ in range(count):
        channels = draw.choice([1, 2, 3, 4, 6, 8, 12])
        fitting = [g for g in range(1, channels + 1) if channels % g == 0]
        samples = draw.randint(1, 3)
        yield GroupWalk(
            shape=(samples, channels, draw.randint(2, 4), draw.randint(1, 4)),
            groups=draw.choice(fitting),
            spread=draw.choice([0.0, 1.0, draw.uniform(0, 10)]),
            sample=draw.randrange(samples),
            seed=draw.randrange(2**32),
        )


def test_group_walk_computes_what_python_does(page):
    cases = list(drawn_walks(80))
    seen = page.evaluate(
        """states => states.map(state => {
          const n = window.loaded.group_walk;
          const all = n.walkAll(state);
          const index = all.divisors.indexOf(state.groups);
          const sets = n.parse(n.PATTERN).on(state.shape, state.groups);
          const profile = n.walkProfile(state, all.outputs[index]);
          const first = n.walkProfile(state, all.outputs[0]);
          const spreads = [first, profile].map(n.walkSpread);
          return {
            values: [...all.values],
            output: [...all.outputs[index]],
            distances: all.distances,
            divisors: all.divisors,
            profile,
            answer: n.walkAnswer(state, sets, all.distances[index], spreads),
          };
        })""",
        [plain(walk) for walk in cases],
    )
    for walk, found in zip(cases, seen, strict=True):
        assert found["values"] == pytest.approx(walk.values.ravel().tolist())
        output = walk.output(walk.groups).ravel().tolist()
        assert found["output"] == pytest.approx(output, abs=1e-7)
        assert found["divisors"] == list(walk.distances)
        distances = [pytest.approx(pair, abs=1e-7) for pair in walk.distances.values()]
        assert [tuple(pair) for pair in found["distances"]] == distances
        profile = np.transpose(walk.profile(walk.groups))
        assert np.array(found["profile"]) == pytest.approx(profile, abs=1e-7)
        assert found["answer"] == walk.sentence()


def test_drawn_numbers_are_the_same_to_the_last_bit(page):
    asked = [(0, 50, 0), (2**32 - 1, 50, 7), (12345, 50, 2**20)]
    found = page.evaluate(
        "asked => asked.map(one => window.loaded.group_walk.standardNormal(...one))",
        asked,
    )
    assert found == [standard_normal(*one).tolist() for one in asked]


@pytest.mark.parametrize(
    ("explorer", "changes"),
    [
        (
            BatchMates(),
            [
                {"shift": 1001},
                {"scale": -1.0},
                {"norm": "Bath'Norm"},
                {"shape": (4, 4)},
                {"shape": (9, 4, 3)},
                {"shape": (2, 3, 1)},
                {"groups": 3},
                {"groups": 0},
                {"element": 12},
                {"values": (1.0, 2.0)},
                {"seed": -1},
                {"shape": (2, 6, 1), "groups": 4},
            ],
        ),
        (
            RunningStats(),
            [
                {"momentum": 1.5},
                {"momentum": None},
                {"batch_size": 1},
                {"std": 1e9},
                {"given": ((1.0, 2.0), (3.0,))},
                {"given": ((1.0, 2.0), 3.0)},
                {"fed": ((1, 2.0, 3.0),)},
                {"fed": ((1, 2.0, 3.0, 1),)},
                {"fed": ((1, 2.0, 3.0, True), (0, 1.0, 2.0, True))},
                {"fed": ((501, 0.0, 1.0, True),)},
            ],
        ),
        (
            GroupWalk(groups=8, sample=1),
            [
                {"groups": 3},
                {"groups": 0},
                {"shape": (2, 8, 1, 1)},
                {"shape": (2, 8, 4)},
                {"shape": (1, 6, 2, 2)},
                {"shape": (1, 65, 2, 2)},
                {"sample": 2},
                {"spread": 11},
            ],
        ),
    ],
)
def test_a_state_is_settled_or_refused_as_in_python(page, explorer, changes):
    before, name = plain(explorer), type(explorer).__name__
    rules = {"BatchMates": "mates", "RunningStats": "running", "GroupWalk": "walk"}
    seen = page.evaluate(
        """([stem, rules, before, changes]) => changes.map(change => {
          const { [rules]: known, settle } = window.loaded[stem];
          return settle({ ...before, ...change }, before, known);
        })""",
        [explorer.stem, f"{rules[name]}Rules", before, changes],
    )
    refusals = 0
    for change, found in zip(changes, seen, strict=True):
        other = type(explorer)(**explorer.snapshot())
        reason = ""
        try:
            with other.hold_trait_notifications():
                for trait, value in change.items():
                    setattr(other, trait, value)
        except TraitError as error:
            reason = str(error)
            refusals += 1
        assert found == {"state": plain(other), "problem": reason}, change
    assert refusals >= 6


def test_the_python_line_makes_the_same_explorer(page):
    explorers = [
        BatchMates(),
        *drawn_mates(20),
        *drawn_stats(20),
        *drawn_walks(20),
        RunningStats(momentum=None, given=((1, 2), (1e-7, 1e17)), std=0.00002),
    ]
    lines = page.evaluate(
        """all => all.map(([stem, name, state]) =>
          window.loaded[stem].pythonLine(name, state))""",
        [[e.stem, type(e).__name__, plain(e)] for e in explorers],
    )
    assert lines == [repr(explorer) for explorer in explorers]


# --------------------------------------------------------------------- on a plain page


def slide(page, label, *places):
    """Put a slider on the stops at these places, as a pointer does, without a rest."""
    page.get_by_label(label, exact=True).evaluate(
        """(input, places) => {
          for (const place of places) {
            input.value = place;
            input.dispatchEvent(new Event("input", { bubbles: true }));
          }
        }""",
        places,
    )


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def answer(page):
    return page.locator(".nl-words").inner_text()


def fact(page, words):
    return page.locator(".nl-fact", has_text=words).locator("strong").inner_text()


def outcomes(page):
    """What the five norms do, in train and eval."""
    texts = page.locator(".nl-outcome .nl-change").all_inner_texts()
    return dict(zip(NORMS, zip(texts[::2], texts[1::2], strict=True), strict=True))


def test_mates_are_moved_and_only_batchnorm_in_train_follows(open_widgets):
    page = open_widgets(BatchMates())
    assert set(outcomes(page).values()) == {("stays", "stays")}
    slide(page, "Shift the mates", 28)  # 28 halves above -10
    moved = BatchMates(shift=4.0)
    change = f"moves {moved.changes['BatchNorm'][0]:.2f}"
    assert outcomes(page) == {
        norm: (change if norm == "BatchNorm" else "stays", "stays") for norm in NORMS
    }
    assert answer(page) in moved.sentence()
    press(page, "the batch")
    assert outcomes(page)["BatchNorm"] == (change, change)
    assert page.locator(".nl-moves").count() == 2
    press(page, "Reset")
    assert set(outcomes(page).values()) == {("stays", "stays")}


def test_the_gradient_reaches_the_mates_only_where_they_take_part(open_widgets):
    page = open_widgets(BatchMates(shape=(3, 1, 1), values=(0, 1, 5)))
    pulls = page.locator(".nl-pull")
    assert pulls.all_inner_texts() == ["0.176", "0.220", "0.044"]
    page.get_by_role("button", name="BatchNorm in eval").click()
    assert pulls.all_inner_texts() == ["1.000", "0.000", "0.000"]
    slide(page, "How many mates", 0)
    page.get_by_role("button", name="InstanceNorm in train").click()
    assert pulls.all_inner_texts() == ["refused"]
    assert outcomes(page)["InstanceNorm"] == ("refused: 1 value in each set",) * 2


def test_batches_are_fed_and_the_answer_follows(open_widgets):
    page = open_widgets(RunningStats())
    stats = RunningStats()
    press(page, "Feed 1")
    press(page, "Feed 10")
    stats.feed(11)
    assert answer(page) == stats.sentence()
    assert fact(page, "of the start") == f"{100 * 0.9**11:.1f} %"
    assert fact(page, "until 1 %") == "44"
    press(page, "None")
    stats.momentum = None
    assert answer(page) == stats.sentence()
    press(page, "None")  # and back to the momentum before
    slide(page, "Momentum", 0)
    assert fact(page, "until 1 %") == "never"
    assert "the running mean is 0.00" in answer(page)
    assert "Momentum 0 never takes anything in" in page.locator(".nl-note").inner_text()
    slide(page, "Momentum", 11)
    assert "In Keras 0.9 would mean" in page.locator(".nl-note").inner_text()


def test_the_domain_shifts_in_eval_and_the_buffers_stay(open_widgets):
    page = open_widgets(RunningStats(fed=((40, 4.0, 2.0, True),)))
    stats = RunningStats(fed=((40, 4.0, 2.0, True),))
    near = float(fact(page, "train and eval apart"))
    press(page, "eval")
    slide(page, "True mean", 50)
    stats.training, stats.mean = False, 15.0
    assert float(fact(page, "train and eval apart")) > near + 4
    press(page, "Pass 10")
    stats.feed(10)
    assert answer(page) == stats.sentence()
    assert page.locator(".nl-plot .nl-dot-eval").count() == 20
    press(page, "train")
    press(page, "Feed 10")
    stats.training = True
    stats.feed(10)
    assert answer(page) == stats.sentence()
    press(page, "1/n")
    stats.unbiased = False
    assert answer(page) == stats.sentence()


def test_more_batches_than_fit_are_refused_with_the_reason(open_widgets):
    page = open_widgets(RunningStats(fed=((495, 4.0, 2.0, True),)))
    press(page, "Feed 10")
    warning = page.locator(".nl-warning")
    assert warning.inner_text().startswith("fed: at most 500 batches fit on the page")
    assert "After 495 batches" in answer(page)
    press(page, "Feed 1")
    assert warning.is_hidden()
    assert "After 496 batches" in answer(page)


def test_the_walk_by_buttons_slider_chart_and_keyboard(open_widgets):
    page = open_widgets(GroupWalk())
    walk = GroupWalk()
    assert page.get_by_role("button", name="fewer groups").is_disabled()
    page.get_by_role("button", name="more groups").click()
    walk.groups = 2
    assert answer(page) == walk.sentence()
    groups = page.get_by_label("Groups G")
    groups.focus()
    page.keyboard.press("ArrowRight")
    walk.groups = 4
    assert answer(page) == walk.sentence()
    assert groups.get_attribute("aria-valuetext") == "4"
    page.keyboard.press("End")
    walk.groups = 8
    assert answer(page) == walk.sentence()
    assert page.get_by_role("button", name="more groups").is_disabled()
    plot = page.locator(".nl-plot").first
    box = plot.bounding_box()
    plot.click(position={"x": box["width"] * 0.4, "y": 20})
    walk.groups = 2
    assert answer(page) == walk.sentence()
    numbers = ["channels in a group", "values share each mean", "means in all"]
    assert [fact(page, words) for words in numbers] == ["4", "64", "4"]
    slide(page, "Channels C", 4)
    assert answer(page) == GroupWalk(shape=(2, 12, 4, 4), groups=2).sentence()


def test_a_sample_is_picked_in_the_tensor(open_widgets):
    page = open_widgets(GroupWalk(groups=2))
    page.locator(".nl-picture").focus()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    assert answer(page) == GroupWalk(groups=2, sample=1).sentence()


@pytest.mark.parametrize(
    ("explorer", "label", "places"),
    [
        (BatchMates(), "Shift the mates", (0, 40, 21)),
        (BatchMates(), "How many mates", (0, 7, 1)),
        (RunningStats(), "Momentum", (0, 13, 6)),
        (RunningStats(), "True mean", (0, 60, 1)),
        (GroupWalk(), "Groups G", (1, 2, 3)),
        (GroupWalk(), "Channels differ by", (0, 12, 1)),
    ],
)
@pytest.mark.parametrize("width", [1100, 700, 360])
def test_sliding_moves_nothing(open_widgets, explorer, label, places, width):
    page = open_widgets(explorer, width=width)
    boxes = """() => [...document.querySelectorAll(
        ".normlab, .nl-answer, .nl-plot, .nl-outcome, .nl-samples, .nl-slider")]
      .map(node => Object.values(node.getBoundingClientRect().toJSON()))"""
    before = page.evaluate(boxes)
    for place in places:
        slide(page, label, place)
        assert page.evaluate(boxes) == before, place


@pytest.mark.parametrize("make", EXPLORERS)
def test_a_link_restores_the_exact_state(open_widgets, make):
    explorer = {
        BatchMates: BatchMates(shape=(3, 2, 2), shift=2.5, groups=1, alone=True),
        RunningStats: RunningStats(momentum=None, fed=((3, 1.0, 2.0, True),)),
        GroupWalk: GroupWalk(groups=4, spread=0.5, sample=1),
    }[make]
    page = open_widgets(explorer)
    copy = """async title => {
      let copied;
      navigator.clipboard.writeText = async (text) => { copied = text; };
      document.querySelector(`[title="Copy ${title}"]`).click();
      await Promise.resolve();
      return copied;
    }"""
    link = page.evaluate(copy, "the link to this state")
    words = answer(page)
    again = open_widgets(make(), hash="#" + link.split("#")[1])
    assert answer(again) == words
    line = again.evaluate(copy, "the explorer as a Python line")
    assert line == f"normlab.{explorer!r}"


@pytest.mark.parametrize("make", EXPLORERS)
@pytest.mark.parametrize(
    "state",
    [
        {"shape": [1e9, -1, "x", None], "groups": "<b>", "seed": 0.5, "norm": 3},
        {"fed": [[1e9, 0, 0, True]], "given": {"a": 1}, "momentum": "no", "mean": []},
        {"values": [None] * 48, "element": -1, "sample": 99, "groups": 0},
        "not a state",
    ],
)
def test_a_link_with_nonsense_leaves_a_working_explorer(open_widgets, make, state):
    fragment = json.dumps(state).replace(" ", "%20")
    page = open_widgets(make(), hash=f"#{make.stem}-1={fragment}")
    words = answer(page)
    assert words
    label = {BatchMates: "Shift the mates", RunningStats: "True deviation"}
    slide(page, label.get(make, "Groups G"), 2)
    assert answer(page) != words


def test_changes_are_announced_when_the_slider_rests(open_widgets):
    page = open_widgets(GroupWalk())
    live = page.locator("[aria-live]")
    assert live.inner_text() == ""
    slide(page, "Groups G", 1, 2, 3)
    page.wait_for_function("document.querySelector('[aria-live]').textContent")
    assert live.inner_text() == GroupWalk(groups=8).sentence()


@pytest.mark.parametrize("width", [1100, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_no_wider_than_the_page(open_widgets, width, theme):
    shifted = RunningStats(mean=9.0, fed=((9, 4.0, 2.0, True), (3, 9.0, 2.0, False)))
    page = open_widgets(
        BatchMates(shift=5.0, shape=(8, 4, 3)),
        shifted,
        GroupWalk(shape=(2, 16, 4, 4), groups=4),
        width=width,
        color_scheme=theme,
    )
    results = Axe().run(page)
    serious = [
        (found["id"], [node["target"] for node in found["nodes"]])
        for found in results.response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    overflowing = page.evaluate(
        """() => [...document.querySelectorAll(".normlab *")]
          .filter(node => {
            const box = node.getBoundingClientRect();
            const frame = node.closest(".normlab").getBoundingClientRect();
            return box.width && box.right > frame.right + 1;
          }).map(node => node.outerHTML.slice(0, 80))"""
    )
    assert overflowing == []


def test_touch(open_widgets):
    page = open_widgets(
        *(make() for make in EXPLORERS), width=360, has_touch=True, is_mobile=True
    )
    page.get_by_role("button", name="Feed 10").tap()
    assert "After 10 batches" in page.locator(".RunningStats .nl-words").inner_text()
    page.get_by_role("button", name="more groups").tap()
    assert "GroupNorm(2, 8)" in page.locator(".GroupWalk .nl-words").inner_text()
    controls = page.locator(".normlab :is(button, input):visible").all()
    assert min(control.bounding_box()["height"] for control in controls) >= 44


def test_nothing_moves_by_itself_for_those_who_asked_for_that(open_widgets):
    page = open_widgets(*(make() for make in EXPLORERS), reduced_motion="reduce")
    moving = page.evaluate(
        """() => [...document.querySelectorAll(".normlab, .normlab *")].filter(node => {
          const style = getComputedStyle(node);
          return style.transitionDuration !== "0s" || style.animationName !== "none";
        }).length"""
    )
    assert moving == 0


def test_without_script_a_picture_and_its_sentence_stand_there(chromium, tmp_path):
    explorers = [make() for make in EXPLORERS]
    file = tmp_path / "page.html"
    file.write_text(static_page(*explorers), encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    for explorer in explorers:
        image = page.get_by_role("img", name=explorer.sentence())
        assert image.bounding_box()["height"] > 90
        assert page.get_by_text(explorer.sentence()).is_visible()
    context.close()


# ----------------------------------------------------------------------- in JupyterLab

CELLS = (
    """
import ipywidgets
from normlab.widgets import BatchMates, GroupWalk, RunningStats
mates, stats, walk = BatchMates(), RunningStats(), GroupWalk()
mates""",
    "stats",
    "walk",
    "ipywidgets.VBox([mates, stats, walk])",
)


def test_a_round_trip_in_jupyterlab(lab):
    lab.page.complaints.clear()
    lab.open("explorers.ipynb", *CELLS)
    lab.run_all()
    lab.page.locator(".normlab.GroupWalk").nth(1).wait_for(timeout=60_000)
    names = ("BatchMates", "RunningStats", "GroupWalk")
    mates, stats, walk = (lab.page.locator(f".normlab.{name}").first for name in names)

    def in_both_views(name, words):
        for view in lab.page.locator(f".normlab.{name}").all():
            view.get_by_text(words).first.wait_for(timeout=10_000)

    # the page tells Python, and the other view
    slide(mates, "Shift the mates", 28)
    press(stats, "Feed 10")
    press(stats, "None")
    groups = walk.get_by_label("Groups G")
    groups.scroll_into_view_if_needed()
    box = groups.bounding_box()
    lab.page.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + box["width"] * 0.67, box["y"] + 4, steps=8)
    lab.page.mouse.up()
    in_both_views("GroupWalk", "GroupNorm(4, 8) on (2, 8, 4, 4)")
    said = lab.python("print(mates.shift, stats.fed, stats.momentum, walk.groups)")
    assert said == "4.0 ((10, 4.0, 2.0, True),) None 4"
    in_both_views("RunningStats", lab.python("print(stats.sentence())"))
    in_both_views("GroupWalk", lab.python("print(walk.sentence())"))

    # Python tells the page
    lab.python(
        "mates.track_running_stats = False; stats.feed(5); walk.shape = (2, 6, 2, 2)"
    )
    change = lab.python("print(round(mates.changes['BatchNorm'][1], 2))")
    in_both_views(
        "BatchMates",
        f"In eval mode the mates move the output of sample 0 "
        f"under BatchNorm (by up to {change})",
    )
    in_both_views("RunningStats", "After 15 batches with momentum None")
    in_both_views("GroupWalk", "GroupNorm(3, 6) on (2, 6, 2, 2)")

    # what Python refuses is answered with the reason
    assert lab.python("walk.set_state({'groups': 4})") == ""
    reason = "groups: 4 groups do not divide 6 channels; these would: 1, 2, 3, 6."
    in_both_views("GroupWalk", reason)
    assert lab.python("print(walk.groups)") == "3"
    press(walk, "Reset")
    in_both_views("GroupWalk", "GroupNorm(1, 8) on (2, 8, 4, 4)")
    assert lab.python("print(walk.groups, walk.shape, walk.error)") == "1 (2, 8, 4, 4)"
    assert lab.page.complaints == []

    # without its kernel an explorer says so, and still works
    lab.page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.sessionContext
             .session.kernel.restart()"""
    )
    for name in names:
        in_both_views(name, "The kernel is gone")
    slide(walk, "Groups G", 1)
    walk.get_by_text("GroupNorm(2, 8)").first.wait_for(timeout=5000)
