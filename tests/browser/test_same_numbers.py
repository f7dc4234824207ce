"""The browser says what normlab.axes and normlab.functional say."""

import json
import random

import numpy as np
import pytest
import torch

from normlab import axes, functional
from normlab.widgets import AxisPicker

LOAD = """async () => {
  const { esm } = window.normlabSources.axis_picker;
  const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  window.normlab = await import(url);
}"""


@pytest.fixture(scope="module")
def page(pages, tmp_path_factory):
    from normlab.widgets import static_page

    file = tmp_path_factory.mktemp("numbers") / "page.html"
    file.write_text(static_page(AxisPicker()), encoding="utf-8")
    page = pages(viewport={"width": 1100, "height": 1000})
    page.goto(file.as_uri())
    page.evaluate(LOAD)
    return page


def drawn_patterns(count, seed):
    """Patterns of 1 to 5 axes with shapes that fit, and what else a picker can hold."""
    draw = random.Random(seed)
    layouts = ["N", "N D", "N C L", "N L D", "N C H W", "N C D H W", "A B_2", "T V X Y"]
    for _ in range(count):
        names = draw.choice(layouts).split()
        split = draw.choice([None, *names[1:]])
        groups = draw.choice([1, 2, 3])
        words, shape = [], []
        for name in names:
            if name == split:
                size = groups * draw.choice([1, 2, 3])
                parts = draw.choice(["G", "[G]"]), f"{name}/G"
                parts = parts[0], draw.choice(["{}", "[{}]"]).format(parts[1])
                word = f"({' '.join(parts if draw.random() < 0.7 else parts[::-1])})"
            else:
                size = draw.randint(1, 4)
                word = draw.choice(["{}", "[{}]"]).format(name)
            words.append(word)
            shape.append(size)
        text = draw.choice([" ", "  "]).join(words)
        some = [name for name in names if draw.random() < 0.4]
        yield {
            "pattern": text,
            "shape": shape,
            "groups": groups if split else None,
            "center": draw.random() < 0.7,
            "parameters": draw.choice([None, "", " ".join(some)]),
            "eps": draw.choice([1e-5, 1e-3, 0.5]),
        }


def in_python(case):
    pattern = axes.parse(case["pattern"])
    sizes = {"G": case["groups"]} if case["groups"] else {}
    sets = pattern.on(case["shape"], **sizes)
    options = case["center"], case["parameters"]
    layer = sets.layer(*options)
    return {
        "text": str(pattern),
        "axes": list(pattern.axes),
        "reduced": list(pattern.reduced),
        "kept": list(pattern.kept),
        "reducesBatch": pattern.reduces_batch,
        "sizes": sets.sizes,
        "splitShape": list(sets.split_shape),
        "statisticsShape": list(sets.statistics_shape),
        "keptShape": list(sets.kept_shape),
        "numSets": sets.num_sets,
        "valuesPerSet": sets.values_per_set,
        "sentence": sets.describe(case["center"]),
        "layer": layer and [layer.name, layer.statistics],
        "torch": sets.torch_line(*options),
        "normlab": sets.normlab_line(*options),
        "ids": sets.set_ids.ravel().tolist(),
    }


IN_BROWSER = """cases => cases.map(one => {
  const { pattern, shape, groups, center, parameters, eps } = one;
  const n = window.normlab;
  const read = n.parse(pattern);
  const sets = read.on(shape, groups);
  const layer = read.layer(center, parameters);
  const upTo = (size) => Array.from({ length: size }, (_, i) => i);
  const longer = (cells, size) => cells.flatMap(at => upTo(size).map(i => [...at, i]));
  const cells = shape.reduce(longer, [[]]);
  const ids = cells.map(cell => sets.setOf(cell));
  const values = cells.map((_, flat) => n.cellValue(flat));
  const members = upTo(sets.numSets).map(set => [...sets.members(set)]);
  const found = members.map(set => n.statistics(set.map(n.cellValue), center));
  return {
    facts: {
      text: read.text, axes: read.axes, reduced: read.reduced, kept: read.kept,
      reducesBatch: read.reducesBatch, sizes: sets.sizes, splitShape: sets.splitShape,
      statisticsShape: sets.statisticsShape, keptShape: sets.keptShape,
      numSets: sets.numSets, valuesPerSet: sets.valuesPerSet,
      sentence: sets.describe(center), layer: layer && [layer.name, layer.statistics],
      torch: sets.torchLine(center, parameters),
      normlab: sets.normlabLine(center, parameters), ids,
    },
    members,
    values,
    means: found.map(({ mean }) => mean),
    spreads: found.map(({ spread }) => spread),
    normalized: values.map((x, flat) => n.normalize(x, found[ids[flat]], eps)),
  };
})"""


def test_sets_words_and_statistics_of_drawn_patterns(page):
    cases = list(drawn_patterns(400, seed=0))
    all_values = AxisPicker("[N]", (10_000,)).values
    for case, seen in zip(cases, page.evaluate(IN_BROWSER, cases), strict=True):
        facts = in_python(case)
        assert seen["facts"] == facts, case
        ids = np.array(facts["ids"])
        values = all_values[: ids.size]
        assert seen["values"] == values.tolist()
        order = [np.flatnonzero(ids == k).tolist() for k in range(ids.max() + 1)]
        assert [sorted(members) for members in seen["members"]] == order
        sets = [values[members] for members in order]
        means = np.array([one.mean() if case["center"] else 0.0 for one in sets])
        spreads = [((x - m) ** 2).mean() for x, m in zip(sets, means, strict=True)]
        assert seen["means"] == pytest.approx(means, abs=1e-12)
        assert seen["spreads"] == pytest.approx(spreads, abs=1e-12)
        expected = (values - means[ids]) / np.sqrt(np.array(spreads)[ids] + case["eps"])
        assert seen["normalized"] == pytest.approx(expected, abs=1e-12)


def test_normalized_values_equal_the_functions(page):
    """The built-in layers: each row of the table against normlab.functional."""
    cases = []
    for row in axes.LAYERS:
        picker = AxisPicker(row.statistics, center=row.center)
        groups = picker.groups if row.pattern.groups else None
        case = {"pattern": picker.pattern, "shape": list(picker.shape)}
        case |= {
            "groups": groups,
            "center": row.center,
            "parameters": None,
            "eps": 1e-5,
        }
        cases.append((row, picker, case))
    seen = page.evaluate(IN_BROWSER, [case for *_, case in cases])
    for (row, picker, _), found in zip(cases, seen, strict=True):
        expected = by_function(row.norm, picker).ravel().tolist()
        assert found["normalized"] == pytest.approx(expected, abs=1e-9)


def by_function(norm, picker):
    x, sets = torch.tensor(picker.values), picker.sets
    reduced = [sets.split_shape[i] for i in sets.reduced_dims]
    if norm == "BatchNorm":
        return functional.batch_norm(x, None, None, training=True)
    if norm == "InstanceNorm":
        return functional.instance_norm(x)
    if norm == "GroupNorm":
        return functional.group_norm(x, picker.groups)
    if norm == "LayerNorm":
        return functional.layer_norm(x, reduced)
    return functional.rms_norm(x, reduced, eps=1e-5)


def test_errors_are_the_same_word_for_word(page):
    draw = random.Random(1)
    pieces = "N C H [ ] ( ) G C/G ... ! 2 ' \" é".split()
    texts = ["", "   ", "N C N", "(C [C/C])", "(G [C/G]) (K [H/K])", "[N (G C/G)]"]
    texts += [" ".join(draw.choices(pieces, k=draw.randint(1, 6))) for _ in range(400)]
    expected = []
    for text in texts:
        try:
            expected.append(str(axes.parse(text)))
        except axes.PatternError as error:
            expected.append(str(error))
    seen = page.evaluate(
        """texts => texts.map(text => {
          try { return window.normlab.parse(text).text; }
          catch (error) { return error.message; }
        })""",
        texts,
    )
    assert dict(zip(texts, seen, strict=True)) == dict(
        zip(texts, expected, strict=True)
    )
    assert sum("^" in message for message in expected) > 200


def test_shapes_that_do_not_fit_are_refused_in_the_same_words(page):
    cases = [
        ("N C [H W]", [2, 3], None),
        ("N C [H W]", [2, 3, 4, 5, 6], None),
        ("N", [1, 2], None),
        ("N (G [C/G]) H", [2, 10, 3], 4),
        ("N (G [C/G]) H", [2, 8, 3], 0),
        ("N ([C/G] G) H", [2, 8, 3], None),
    ]
    for text, shape, groups in cases:
        sizes = {} if groups is None else {"G": groups}
        with pytest.raises(axes.ShapeError) as refused:
            axes.parse(text).on(shape, **sizes)
        seen = page.evaluate(
            """([text, shape, groups]) => {
              try { window.normlab.parse(text).on(shape, groups); }
              catch (error) { return error.message; }
            }""",
            [text, shape, groups],
        )
        assert seen == str(refused.value)


def test_the_python_line_makes_the_same_picker(page):
    pickers = [
        AxisPicker(),
        AxisPicker("[N] C", (5, 3), eps=1e-12, weight=2.5, bias=-3),
        AxisPicker(
            "N ([C/G] G) [L]", (2, 6, 4), groups=3, parameters="C L", cell=(1, 5, 0)
        ),
        AxisPicker("[N]", (7,), center=False, parameters="", eps=0.25, cell=(3,)),
    ]
    states = [json.loads(json.dumps(picker.snapshot())) for picker in pickers]
    lines = page.evaluate("states => states.map(window.normlab.pythonLine)", states)
    assert lines == [repr(picker) for picker in pickers]
    made = [eval(line, {"AxisPicker": AxisPicker}).snapshot() for line in lines]
    assert made == [picker.snapshot() for picker in pickers]


def test_a_state_settles_as_in_python(page):
    """What a new pattern leaves behind is fitted to it, in the page as in Python."""
    draw = random.Random(2)
    texts = [case["pattern"] for case in drawn_patterns(60, seed=3)]
    steps = []
    picker = AxisPicker()
    for text in texts:
        before = json.loads(json.dumps(picker.snapshot()))
        picker.pattern = text
        after = json.loads(json.dumps(picker.snapshot()))
        steps.append((before, {**before, "pattern": text}, after))
        picker.cell = tuple(size - 1 for size in picker.shape)
        picker.parameters = draw.choice([None, "", axes.parse(text).axes[-1]])
    seen = page.evaluate(
        """steps => steps.map(
          ([before, raw]) => window.normlab.settle(raw, before).state
        )""",
        [step[:2] for step in steps],
    )
    for (_, raw, after), state in zip(steps, seen, strict=True):
        assert state == after, raw
