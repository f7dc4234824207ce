"""The notation: what a pattern says, on which shapes, and what is wrong with others."""

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normlab import axes

GN = "N (G [C/G]) [H W]"

# pattern, shape, sizes: statistics shape, sets, values per set, and the sentence
FACTS = [
    (GN, (4, 8, 5, 5), {"G": 4}, (4, 4, 1, 1, 1), 16, 50,
     "50 values share each mean: 2 channels x 5 x 5 positions; 16 means in all."),
    ("[N] C [H W]", (4, 3, 5, 5), {}, (1, 3, 1, 1), 3, 100,
     "100 values share each mean: 4 samples x 5 x 5 positions; 3 means in all."),
    ("[N] C [...]", (2, 3), {}, (1, 3), 3, 2,
     "2 values share each mean: 2 samples; 3 means in all."),
    ("... [D]", (2, 3, 4, 8), {}, (2, 3, 4, 1), 24, 8,
     "8 values share each mean: 8 features; 24 means in all."),
    ("N C [D H W]", (1, 2, 3, 1, 1), {}, (1, 2, 1, 1, 1), 2, 3,
     "3 values share each mean: 3 x 1 x 1 positions; 2 means in all."),
    ("([C/G] G) L", (6, 1), {"G": 3}, (1, 3, 1), 3, 2,
     "2 values share each mean: 2 channels; 3 means in all."),
    ("N ([G] C/G)", (2, 6), {"G": 3}, (2, 1, 2), 4, 3,
     "3 values share each mean: 3 groups; 4 means in all."),
    ("[N C]", (2, 3), {}, (1, 1), 1, 6,
     "6 values share each mean: 2 samples x 3 channels; 1 mean in all."),
    ("batch [time] x", (2, 3, 4), {}, (2, 1, 4), 8, 3,
     "3 values share each mean: 3 along time; 8 means in all."),
    ("N C", (2, 3), {}, (2, 3), 6, 1,
     "Nothing is reduced, so each value is its own mean: 6 means in all."),
    ("N C [L]", (2, 3, 1), {}, (2, 3, 1), 6, 1,
     "1 value makes each mean: 1 position; 6 means in all."),
    ("[N] C", (0, 3), {}, (1, 3), 3, 0,
     "0 values share each mean: 0 samples; 3 means in all."),
    ("[D]", (5,), {}, (1,), 1, 5,
     "5 values share each mean: 5 features; 1 mean in all."),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "shape", "sizes", *"abcd"), FACTS)
def test_facts_of_a_shape(pattern, shape, sizes, a, b, c, d):
    sets = axes.parse(pattern).on(shape, **sizes)
    assert sets.statistics_shape == a
    assert sets.num_sets == b
    assert sets.values_per_set == c
    assert sets.sentence == d


def ids_by_definition(sets):
    """Number the sets cell by cell: cells that agree on all kept positions are one."""
    known, ids = {}, np.empty(sets.shape, dtype=int)
    for i, cell in enumerate(np.ndindex(sets.split_shape)):
        kept = tuple(
            p for p, dim in zip(cell, sets.dims, strict=True) if not dim.reduced
        )
        ids.flat[i] = known.setdefault(kept, len(known))
    return ids


@st.composite
def patterns_on_shapes(draw):
    """A pattern of 1 to 6 axes, perhaps with a split or an ellipsis, and a shape."""
    rank = draw(st.integers(1, 6))
    split = draw(st.integers(-1, rank - 1))
    items, shape, sizes = [], [], {}
    for i, name in enumerate("NCDHWT"[:rank]):
        size = draw(st.sampled_from([0, 1, 2, 3, 4, 6]))
        if i == split:
            group = draw(st.sampled_from([n for n in (1, 2, 3) if size % n == 0]))
            sizes["G"] = group
            parts = ["G", f"{name}/G"]
            parts = [f"[{p}]" if draw(st.booleans()) else p for p in parts]
            items.append(f"({' '.join(draw(st.permutations(parts)))})")
        else:
            items.append(f"[{name}]" if draw(st.booleans()) else name)
        shape.append(size)
    if draw(st.booleans()):
        place = draw(st.integers(0, rank))
        items.insert(place, draw(st.sampled_from(["...", "[...]"])))
        shape[place:place] = draw(st.lists(st.integers(0, 3), max_size=2))
    return " ".join(items), tuple(shape), sizes


@settings(max_examples=200, deadline=None, derandomize=True)
@given(patterns_on_shapes())
def test_sets_by_definition(drawn):
    pattern, shape, sizes = drawn
    sets = axes.parse(pattern).on(shape, **sizes)
    ids = sets.set_ids
    assert ids.dtype == np.int64
    assert ids.shape == shape
    if ids.size:
        np.testing.assert_array_equal(ids, ids_by_definition(sets))
        assert sets.num_sets == ids.max() + 1
        assert set(np.bincount(ids.ravel())) == {sets.values_per_set}
    split = np.zeros(sets.split_shape)
    expected = split.sum(sets.reduced_dims, keepdims=True).shape
    assert sets.statistics_shape == (expected if sets.reduced_dims else split.shape)
    # The canonical text says the same, and is its own canonical text.
    again = axes.parse(str(sets.pattern))
    assert again == sets.pattern
    assert str(again) == str(sets.pattern)


@pytest.mark.parametrize(
    ("pattern", "canonical"),
    [
        ("[N]C[H][W]", "[N] C [H W]"),
        ("  N ( G[C/G] )[ H  W ] ", GN),
        ("[N] (G [C/G]) [H]", "[N] (G [C/G]) [H]"),
        ("([G][C/G]) [L]", "([G C/G]) [L]"),
        ("[...] C", "[...] C"),
        ("N\u00a0[C]\tH", "N [C] H"),  # pasted from a page, or typed with a tab
    ],
)
def test_canonical_text(pattern, canonical):
    assert str(axes.parse(pattern)) == canonical


def test_axes_of_a_split_pattern():
    pattern = axes.parse(GN)
    assert pattern.axes == ("N", "C", "H", "W")
    assert pattern.kept == ("N", "G")
    assert pattern.reduced == ("C/G", "H", "W")
    assert pattern.groups == "G"
    assert axes.parse(pattern) is pattern
    sets = pattern.on((4, 8, 5, 5), G=4, C=8)
    assert sets.sizes == {"N": 4, "C": 8, "G": 4, "C/G": 2, "H": 5, "W": 5}
    assert sets.split_shape == (4, 4, 2, 5, 5)
    assert sets.reduced_dims == (2, 3, 4)
    assert sets.kept_shape == (4, 4)
    with pytest.raises(ValueError, match="read-only"):
        sets.set_ids[0] = 1


PATTERN_ERRORS = [
    ("", "it is empty", 0, "Name every axis"),
    ("[", "never closed", 0, "Add the missing ]"),
    ("N C]", "closes nothing", 3, "leave the ] out"),
    ("N []", "are empty", 2, "Put the axes to reduce inside"),
    ("N [C [H] W]", "inside brackets", 5, "write all in one: [H W]"),
    ("N C N", "'N' stands twice", 4, "a name of its own"),
    ("... N ...", "'...' stands twice", 6, "Keep one"),
    ("N 3", "'3' is not part of the notation", 2, "Use axis names"),
    ("N (G C", "this ( is never closed", 2, "Add the missing )"),
    ("N )", "this ) closes nothing", 2, "leave the ) out"),
    ("((G C/G))", "inside parentheses", 1, "Close the first pair"),
    ("[(G C/G)]", "a split cannot stand inside brackets", 1, "one part inside"),
    ("(G [C/G) H]", "this [ is still open", 3, "Close the brackets first"),
    ("(G [C/K])", "split one axis in two parts", 0, "(K [C/K])"),
    ("(G C)", "split one axis in two parts", 0, "(G [C/G])"),
    ("(C [C/C])", "names both the axis and its groups", 0, "(G [C/G])"),
    ("N C/G", "'C/G' is a part of a split axis", 2, "(G [C/G])"),
    ("C (G [C/G])", "'C' stands twice", 2, "a name of its own"),
    ("(G [C/G]) (K [D/K])", "only one axis can be split", 10, "Leave all but one"),
]


@pytest.mark.parametrize(("text", "reason", "column", "fix"), PATTERN_ERRORS)
def test_bad_patterns_are_pointed_at(text, reason, column, fix):
    with pytest.raises(axes.PatternError) as caught:
        axes.parse(text)
    first, shown, caret, last = str(caught.value).split("\n")
    assert first.startswith("pattern: ")
    assert reason in first
    assert shown == f"    {text}"
    assert caret.index("^") == 4 + column
    assert fix in last


@pytest.mark.parametrize("value", [None, 4, ["N", "C"], b"N"])
def test_a_pattern_is_a_text(value):
    with pytest.raises(TypeError, match=r"a text such as '\[N\] C \[H W\]' is expect"):
        axes.parse(value)


SHAPE_ERRORS = [
    ("N C [H W]", (4, 8, 5), {}, "names 4 axes, but the shape (4, 8, 5) has 3", 7),
    ("N C [H W]", (4, 8, 5, 5, 5), {}, "has 5", 9),
    (GN, (4, 8), {"G": 2}, "names 4 axes", 13),
    ("... [D E]", (3,), {}, "names at least 2 axes", 7),
    ("C", (), {}, "names 1 axis, but the shape () has 0", 0),
    (GN, (4, 10, 5, 5), {"G": 4}, "C has 10 elements, which 4 groups do not", 3),
    (GN, (4, 10, 5, 5), {"G": 0}, "which 0 groups do not divide", 3),
    (GN, (4, 8, 5, 5), {}, "the number of groups G is missing", 3),
    ("N C", (4, 8), {"G": 2}, "'G' is no axis of this pattern", 0),
    ("N C", (4, 8), {"C": 7}, "C was given as 7, but is 8 in the shape", 2),
    ("N C", (4, -8), {}, "size 1 of the shape is -8", 0),
    ("N C", (4, 8.0), {}, "size 1 of the shape is 8.0", 0),
    (GN, (4, 8, 5, 5), {"G": True}, "the size of G is True", 0),
    ("N C", 5, {}, "the shape is 5", 0),
]


@pytest.mark.parametrize(
    ("pattern", "shape", "sizes", "reason", "column"), SHAPE_ERRORS
)
def test_shapes_that_do_not_fit(pattern, shape, sizes, reason, column):
    with pytest.raises(axes.ShapeError) as caught:
        axes.parse(pattern).on(shape, **sizes)
    first, _, caret, last = str(caught.value).split("\n")
    assert reason in first
    assert caret.index("^") == 4 + column
    assert last.endswith(".")


def test_the_error_names_groups_that_fit():
    with pytest.raises(axes.ShapeError, match="G = 2 or 5 would fit"):
        axes.parse("N (G [C/G])").on((4, 10), G=4)


@pytest.mark.parametrize("row", axes.LAYERS, ids=lambda row: row.statistics)
def test_every_row_finds_itself(row):
    assert row.pattern.layer(row.center) == row
    assert row.pattern.layer(row.center, row.parameters) == row


# pattern, shape, sizes, arguments: the PyTorch line, and normlab's where it differs
LINES = [
    (GN, (4, 8, 5, 5), {"G": 4}, {}, "GroupNorm(4, 8)"),
    (GN, (4, 8, 5, 5), {"G": 4}, {"parameters": ""}, "GroupNorm(4, 8, affine=False)"),
    ("[N] C [...]", (4, 8, 5, 5), {}, {}, "BatchNorm2d(8)"),
    ("[B] F [T]", (4, 8, 5), {}, {}, "BatchNorm1d(8)"),
    ("N C [T]", (4, 8, 5), {}, {}, "InstanceNorm1d(8)"),
    ("N C [H W]", (4, 8, 5, 5), {}, {"parameters": "C"},
     "InstanceNorm2d(8, affine=True)"),
    ("N C [H W]", (4, 8, 5, 6), {}, {"parameters": "H W"}, "LayerNorm((5, 6))"),
    ("... [D]", (2, 3, 4, 8), {}, {}, "LayerNorm(8)"),
    ("N [...]", (2, 3, 4), {}, {"parameters": "..."}, "LayerNorm((3, 4))"),
    ("B T [F]", (2, 3, 4), {}, {"center": False}, "RMSNorm(4)"),
    ("N L [D]", (2, 3, 4), {}, {"center": False, "parameters": ""},
     "RMSNorm(4, elementwise_affine=False)"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "shape", "sizes", "arguments", "line"), LINES)
def test_lines_that_make_a_layer(pattern, shape, sizes, arguments, line):
    sets = axes.parse(pattern).on(shape, **sizes)
    assert sets.torch_line(**arguments) == f"torch.nn.{line}"
    assert sets.normlab_line(**arguments) == f"normlab.{line}"


@pytest.mark.parametrize(
    ("pattern", "sizes", "arguments", "line"),
    [
        ("[N] C [H] W", {}, {"parameters": "C"}, "'C', sizes={'C': 8}"),
        ("N C [H] W", {}, {}, ""),
        ("N C [H] W", {}, {"center": False, "parameters": ""}, "center=False"),
        ("N ([C/G] G) [H W]", {"G": 4}, {"parameters": "C"},
         "'C', sizes={'C': 8, 'G': 4}"),
        ("[N] C [...]", {}, {"center": False, "parameters": "..."},
         "'...', center=False, sizes={'...1': 5, '...2': 5}"),
    ],
)  # fmt: skip
def test_a_pattern_without_a_name_is_a_norm(pattern, sizes, arguments, line):
    sets = axes.parse(pattern).on((4, 8, 5, 5), **sizes)
    assert sets.torch_line(**arguments) is None
    line = ", ".join([repr(pattern), *([line] if line else [])])
    assert sets.normlab_line(**arguments) == f"normlab.Norm({line})"


def test_an_ellipsis_fits_layers_of_any_rank_only():
    assert axes.parse("[N] C [...]").layer() is None
    assert axes.parse("N (G [C/G]) [...]").layer().name == "GroupNorm"
    assert axes.parse("... [D]").layer(center=False).name == "RMSNorm"


def test_parameters():
    sets = axes.parse("N C [...]").on((2, 3, 4, 5))
    assert sets.parameter_shape("C") == (3,)
    assert sets.parameter_shape("") == ()
    assert sets.parameter_shape("C ...") == (3, 4, 5)
    assert sets.parameter_broadcast_shape("C") == (1, 3, 1, 1)
    assert sets.parameter_broadcast_shape("") == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("C X", r"'X' is no axis of 'N C \[H W\]'.\n    C X\n      \^\n"),
        ("H C", r"not in the pattern's order.\n    H C\n    \^\^\^\nWrite 'C H'."),
        ("C C", "Write 'C'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(axes.PatternError, match=message):
        axes.parse("N C [H W]").parameter_axes(parameters)


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ("[N] C", True),
        ("N [C]", False),
        ("L [N] D", True),
        ("[C H W]", False),
        ("[D]", False),
        ("[B] T", True),
        ("([G] N/G) C", True),
    ],
)
def test_batch_dependence(pattern, answer):
    assert axes.parse(pattern).reduces_batch is answer


def test_a_large_tensor_costs_nothing():
    started = time.process_time()
    sets = axes.parse(GN).on((10**6, 2**20, 10**4, 10**4), G=2**10)
    facts = (sets.num_sets, sets.values_per_set, sets.sentence, sets.torch_line())
    assert time.process_time() - started < 0.5  # an array of that size has 1e20 cells
    assert facts[:2] == (10**6 * 2**10, 2**10 * 10**8)
    with pytest.raises(axes.ShapeError, match="G = 5 or 8 would fit"):
        axes.parse("N (G [C/G])").on((2, 10**12), G=7)
    assert time.process_time() - started < 2  # not a search through 1e12 numbers


def test_the_notation_needs_neither_torch_nor_matplotlib():
    code = "import sys, normlab.axes; print({'torch', 'matplotlib'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
