"""The pictures: every cell's colour and place, every word, legibility, alt text."""

import matplotlib

matplotlib.use("Agg")

import io
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from normlab import axes
from normlab.diagrams import draw_sets
from normlab.diagrams.layout import LEFT_OUT, few, form_of, lay_out
from normlab.diagrams.sets import SetsPicture
from normlab.diagrams.style import THEMES

PATTERNS = [
    ("[D]", (5,), {}),
    ("D", (3,), {}),
    ("[N] C", (4, 6), {}),
    ("N [D]", (3, 4), {}),
    ("N (G [C/G])", (2, 6), {"G": 3}),
    ("N L [D]", (2, 3, 4), {}),
    ("[N] C [L]", (3, 2, 4), {}),
    ("N (G [C/G]) [L]", (2, 4, 3), {"G": 2}),
    ("[N] C [H W]", (3, 4, 2, 3), {}),
    ("N [C H W]", (3, 4, 2, 3), {}),
    ("N C [H W]", (2, 3, 2, 2), {}),
    ("N (G [C/G]) [H W]", (4, 8, 2, 2), {"G": 4}),
    ("N ([C/G] G) [H W]", (2, 6, 2, 2), {"G": 3}),
    ("[N] C [H] W", (2, 3, 2, 3), {}),
    ("N H W [C]", (2, 2, 3, 4), {}),
    ("[N] C [D H W]", (2, 3, 1, 2, 3), {}),
    ("[N C H W]", (2, 2, 2, 2), {}),
    ("N [...]", (2, 3, 2, 2, 1, 1), {}),
]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def picture(
    pattern, shape, pick=0, parameters=None, center=True, theme="light", **sizes
):
    made = SetsPicture(pattern, shape, parameters, pick, center, theme, sizes)
    made.whole()
    return made


def drawn_cells(made):
    """(index of the element in the tensor, set, side) of every cell that is drawn."""
    sets = made.sets
    for face in made.faces:
        for cell in face.cells:
            positions = [
                line.shown[i] for line, i in zip(made.lines, cell, strict=True)
            ]
            if LEFT_OUT in positions:
                continue
            index = {}
            for line, position in zip(made.lines, positions, strict=True):
                shape = [sets.sizes[axis] for axis in line.axes]
                where = np.unravel_index(position, shape) if shape else ()
                index |= dict(zip(line.axes, map(int, where), strict=True))
            yield tuple(index[axis] for axis in sets.axes), face.set_id, face.side


@pytest.mark.parametrize(("pattern", "shape", "sizes"), PATTERNS)
def test_each_cell_is_drawn_as_part_of_its_set(pattern, shape, sizes):
    made = picture(pattern, shape, **sizes)
    ids = made.sets.set_ids
    cells = list(drawn_cells(made))
    assert [set_id for _, set_id, _ in cells] == [ids[index] for index, *_ in cells]
    # Nothing is left out of so small a tensor: a flat form shows each element once.
    flat = made.form != "cube"
    expected = set(itertools.product(*map(range, shape)))
    if flat:
        assert sorted(index for index, *_ in cells) == sorted(expected)
    assert {set_id for _, set_id, _ in cells} <= set(range(made.sets.num_sets))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("pattern", "shape", "sizes"), PATTERNS)
def test_the_colour_on_the_axes_is_the_colour_of_the_set(pattern, shape, sizes, theme):
    made = picture(pattern, shape, theme=theme, **sizes)
    ax = draw_sets(pattern, shape, theme=theme, **sizes)
    cells = ax.collections[0]
    colours = [matplotlib.colors.to_hex(c) for c in cells.get_facecolors() if c[3]]
    corners = [path.vertices[:4] for path in cells.get_paths()]
    front = {}
    for face in made.faces:
        if face.side == "front":
            for corner in face.corners:
                front[tuple(np.round(corner * 0.25, 6).ravel())] = face.set_id
    kinds = {}
    every = cells.get_facecolors()
    for corner, colour in zip(corners, every, strict=True):
        key = tuple(np.round(corner, 6).ravel())
        if key in front and colour[3]:
            kinds.setdefault(front.pop(key), set()).add(
                matplotlib.colors.to_hex(colour)
            )
    assert not front
    assert colours
    picked = THEMES[theme].picked
    assert kinds.pop(0) == {picked}
    assert all(len(found) == 1 and picked not in found for found in kinds.values())


def test_touching_cells_are_one_set_and_sets_are_apart():
    sets = axes.parse("N (G [C/G]) [H W]").on((2, 6, 2, 2), G=3)
    _, names, limits = form_of(sets)
    depth, down, across = lay_out(sets, names, limits, 0)
    assert across.ids.tolist() == [0, 0, 1, 1, 2, 2]
    assert np.diff(across.at).round(2).tolist() == [1.0, 1.32, 1.0, 1.32, 1.0]
    assert across.runs == [(0, 2), (2, 4), (4, 6)]
    assert depth.ids.tolist() == [0, 3]
    assert down.ids.tolist() == [0] * 4


@pytest.mark.parametrize(
    ("size", "limit", "wanted", "shown"),
    [
        (4, 6, 0, [0, 1, 2, 3]),
        (6, 6, 0, [0, 1, 2, 3, 4, 5]),
        (9, 4, 0, [0, 1, 2, 8]),
        (9, 4, 5, [0, 1, 5, 8]),
        (9, 4, 8, [0, 1, 2, 8]),
        (1, 1, 0, [0]),
    ],
)
def test_few_takes_the_first_the_wanted_and_the_last(size, limit, wanted, shown):
    assert few(size, limit, wanted).tolist() == shown


def test_a_large_tensor_is_abridged_and_says_so():
    ax = draw_sets("N (G [C/G]) [H W]", (64, 256, 56, 56), G=32)
    words = [text.get_text() for text in ax.texts]
    said = "Drawn: 4 of 64 N, 7 of 3136 H·W, 9 of 256 C; dots stand for the rest."
    assert said in words
    assert "25088 values share each mean: 8 channels × 56 × 56 positions;" in words
    assert "Drawn are 4 of 64 N, 7 of 3136 H·W, 9 of 256 C." in ax.get_label()
    assert {"0", "1", "2", "63"} <= set(words)


def test_the_picked_set_is_always_drawn():
    for pick in (0, 1000, 2047):
        made = picture("N (G [C/G]) [H W]", (64, 256, 56, 56), pick=pick, G=32)
        assert pick in {face.set_id for face in made.faces}
        sample, group = divmod(pick, 32)
        words = [text.text for text in made.card.texts]
        assert f"set {pick}: N = {sample}, G = {group}" in words


def test_vector_output_is_small_and_has_no_image():
    ax = draw_sets("N (G [C/G]) [H W]", (4, 8, 5, 5), G=4)
    out = io.BytesIO()
    ax.figure.savefig(out, format="svg")
    svg = out.getvalue().decode()
    assert "<image" not in svg
    assert len(svg) < 250_000
