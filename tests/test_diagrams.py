"""The pictures: every cell's colour and place, every word, and the alt text."""

import matplotlib

matplotlib.use("Agg")

import io
import itertools
import re
import subprocess
import sys
from fractions import Fraction
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest

from normlab import axes
from normlab.diagrams import (
    draw_comparison,
    draw_flow,
    draw_images,
    draw_lines,
    draw_sets,
    draw_values,
)
from normlab.diagrams.alt import register
from normlab.diagrams.comparison import norms_on
from normlab.diagrams.layout import LEFT_OUT, few, form_of, lay_out, sheet_starts
from normlab.diagrams.picture import BETWEEN, SLANT
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
        (9, 4, 0, [0, 1, 8]),
        (9, 4, 5, [0, 5, 8]),
        (9, 7, 8, [0, 1, 2, 3, 8]),
        (9, 7, 6, [0, 1, 2, 6, 8]),
        (1, 1, 0, [0]),
    ],
)
def test_few_takes_the_first_the_wanted_and_the_last(size, limit, wanted, shown):
    assert few(size, limit, wanted).tolist() == shown


def test_a_large_tensor_is_abridged_and_says_so():
    ax = draw_sets("N (G [C/G]) [H W]", (64, 256, 56, 56), G=32)
    words = [text.get_text() for text in ax.texts]
    said = "Drawn: 3 of 64 N, 7 of 3136 H·W, 9 of 256 C; dots stand for the rest."
    assert said in words
    assert "25088 values share each mean: 8 channels × 56 × 56 positions;" in words
    assert "Drawn are 3 of 64 N, 7 of 3136 H·W, 9 of 256 C." in ax.get_label()
    assert {"0", "1", "63"} <= set(words)


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


# ------------------------------------------------------------------ words


def words_of(ax):
    return [text.get_text() for text in ax.texts]


def test_the_picture_says_in_words_what_is_kept_and_what_is_averaged():
    words = words_of(draw_sets("N (G [C/G]) [H W]", (4, 8, 5, 5), G=4))
    assert {"(G [C/G]) = 4 × 2", "G kept, C/G averaged"} <= set(words)
    assert {"[H W] = 5 × 5", "averaged"} <= set(words)
    assert {"N = 4", "kept", "GroupNorm(4, 8)", "N (G [C/G]) [H W]"} <= set(words)
    assert "set 0: N = 0, G = 0" in words
    assert "the other 15 sets, each with a mean of its own;" in words
    assert "colours repeat, numbers do not" in words
    assert "weight and bias: shape (8,), one for each C" in words
    i = words.index("50 values share each mean: 2 channels × 5 × 5 positions;")
    assert words[i + 1] == "16 means in all."


@pytest.mark.parametrize(
    ("pattern", "how", "title", "parameters"),
    [
        ("N C [H W]", {}, "InstanceNorm2d(6)", "(6,), one for each C, off by default"),
        ("N C [H W]", {"parameters": ""}, "InstanceNorm2d(6)", None),
        ("N C [H W]", {"parameters": "C"}, "InstanceNorm2d(6, affine=True)", "(6,)"),
        (
            "N [C H W]",
            {"center": False},
            "RMSNorm((6, 2, 2))",
            "(no bias): shape (6, 2",
        ),
        ("N [C] H W", {}, "No built-in layer does this", None),
        ("N [C] H W", {"parameters": "C"}, "No built-in layer does this", "(6,), one"),
    ],
)
def test_title_and_parameters_come_from_the_layers(pattern, how, title, parameters):
    ax = draw_sets(pattern, (2, 6, 2, 2), **how)
    words = " ".join(words_of(ax))
    assert f" {title} " in words
    if parameters is None:
        assert "no weight and no bias" in words
        assert "No weight and no bias." in ax.get_label()
    else:
        assert parameters in words.replace("weight (no bias)", "(no bias)")


def test_one_set_alone_is_named_so():
    ax = draw_sets("[N C]", (2, 3))
    assert "set 0: all values" in words_of(ax)
    assert not any("the other" in text for text in words_of(ax))
    assert "the other set with a mean of its own" in words_of(
        draw_sets("N [D]", (2, 3))
    )


def test_root_mean_square_is_called_by_its_name():
    ax = draw_sets("N L [D]", (2, 3, 4), center=False)
    said = "the other 5 sets, each with a root mean square of its own"
    assert said in " ".join(words_of(ax))
    assert "4 values share each root mean square: 4 features" in ax.get_label()


def test_the_alt_text_is_the_whole_picture_in_words():
    ax = draw_sets("[N] C [L]", (3, 4, 6), pick=2)
    assert ax.figure.get_label() == (
        "BatchNorm1d(4) on a tensor (N, C, L) = (3, 4, 6), pattern [N] C [L]. "
        "18 values share each mean: 3 samples x 6 positions; 4 means in all. "
        "Kept: C; averaged over: N, L. Drawn as sheets, one for each N, C down and L "
        "across, coloured by set; picked out is set 2: C = 2. "
        "Weight and bias: shape (4,), one for each C."
    )


def test_two_pictures_on_one_figure_both_speak():
    figure, (one, two) = plt.subplots(1, 2)
    draw_sets("[N] C", (2, 3), ax=one)
    draw_sets("N [D]", (2, 3), ax=two)
    assert figure.get_label() == f"{one.get_label()} {two.get_label()}"
    assert "BatchNorm1d(3)" in figure.get_label()
    assert "LayerNorm(3)" in figure.get_label()


# ------------------------------------------------------------------ place


def overlapping(texts):
    boxes = [(text.text, *text.box) for text in texts]
    return [
        (a[0], b[0])
        for a, b in itertools.combinations(boxes, 2)
        if min(a[3], b[3]) - max(a[1], b[1]) > 0.005
        and min(a[4], b[4]) - max(a[2], b[2]) > 0.02
    ]


LARGE = [
    ("N (G [C/G]) [H W]", (64, 256, 56, 56), {"G": 32}),
    ("[N] C [H W]", (64, 32, 9, 9), {}),
    ("N C H W", (30, 40, 50, 60), {}),
    ("[N] C [L]", (64, 6, 9), {}),
    ("N L [D]", (16, 256, 768), {}),
    ("[N] C", (1000, 1000), {}),
    ("[D]", (4096,), {}),
]


@pytest.mark.parametrize(("pattern", "shape", "sizes"), PATTERNS + LARGE)
def test_no_text_covers_another(pattern, shape, sizes):
    made = picture(pattern, shape, **sizes)
    assert overlapping(made.card.texts) == []


@pytest.mark.parametrize(("pattern", "shape", "sizes"), PATTERNS + LARGE)
def test_everything_is_inside_the_figure_and_fits_a_notebook(pattern, shape, sizes):
    ax = draw_sets(pattern, shape, **sizes)
    figure = ax.figure
    whole = figure.bbox
    for text in ax.texts:
        box = text.get_window_extent()
        assert box.x0 >= whole.x0
        assert box.x1 <= whole.x1
        assert box.y0 >= whole.y0
        assert box.y1 <= whole.y1
    assert max(figure.get_size_inches()) <= 7.2


def numbers(made):
    """The numbers written on the cells, and where: {number: [points]}."""
    found = {}
    for text in made.card.texts:
        if text.text.isdigit() and text.colour != made.theme.quiet:
            found.setdefault(int(text.text), []).append((text.x, text.y))
    return found


@pytest.mark.parametrize(
    ("pattern", "shape", "sizes"),
    [
        ("N C [H W]", (4, 8, 5, 5), {}),
        ("[N] C [H W]", (4, 8, 5, 5), {}),
        *(("N (G [C/G]) [H W]", (4, 8, 5, 5), {"G": groups}) for groups in (2, 4, 8)),
        ("N L [D]", (3, 6, 8), {}),
        ("[N] C [L]", (3, 6, 4), {}),
        ("[N] C [H] W", (4, 8, 5, 3), {}),
    ],
)
def test_every_set_has_its_number_on_its_own_cells(pattern, shape, sizes):
    made = picture(pattern, shape, pick=1, **sizes)
    found = numbers(made)
    assert sorted(found) == list(range(made.sets.num_sets))
    for number, points in found.items():
        # On a block once; sheets repeat the number of a set that goes through them.
        assert len(points) == (1 if made.form == "cube" or "[N]" not in pattern else 3)
        for point in points:
            on = [
                face.set_id
                for face in made.faces
                if inside(point, face.corners * 0.25).any()
            ]
            assert on[-1] == number, "what is drawn last is what one sees"


def inside(point, quads):
    """Which of these four-cornered shapes, drawn anticlockwise, hold the point."""
    edges = np.roll(quads, -1, axis=1) - quads
    to = np.asarray(point) - quads
    turn = edges[..., 0] * to[..., 1] - edges[..., 1] * to[..., 0]
    return (turn > 0).all(1) | (turn < 0).all(1)


def test_each_group_of_sheets_has_a_bracket_of_its_own():
    made = picture("(R [N/R]) C [L]", (4, 2, 2), R=2)
    brackets = [p for p, colour, _ in made.card.lines if p[:, 1].min() > 0]
    spans = sorted((p[:, 0].min(), p[:, 0].max()) for p in brackets)
    assert len(spans) == 2
    assert spans[0][1] < spans[1][0]
    assert len([p for p, *_ in picture("[N] C [L]", (4, 2, 2)).card.lines]) == 5


def test_a_number_that_finds_no_room_is_left_out():
    made = picture("N C [H W]", (64, 256, 56, 56))
    assert sorted(numbers(made)) == [0, 1, 2, 3, 4, 5]
    # 255 needs more than one cell; along D there is room.
    assert 255 in numbers(picture("N [D]", (256, 8), pick=3))


def test_colours_are_said_to_repeat_only_where_they_do():
    assert not any("repeat" in word for word in words_of(draw_sets("[N] C", (4, 5))))
    assert any("repeat" in word for word in words_of(draw_sets("[N] C", (4, 6))))


def test_what_is_averaged_runs_innermost_so_each_set_is_one_piece():
    made = picture("N C [H] W", (2, 3, 5, 4))
    assert made.lines[1].name == "W [H] = 4 × 5"
    for line in made.lines:
        assert (np.diff(line.ids) >= 0).all()
    assert "W·H down" in made.alt
    assert made.omissions == "9 of 20 W·H"


def test_a_large_tensor_takes_no_more_shapes_than_a_small_one():
    counts = [
        len(draw_sets("[N] C [H W]", shape).collections[0].get_paths())
        for shape in ((4, 9, 3, 3), (64, 256, 56, 56), (10**6, 10**6, 10**6, 10**6))
    ]
    assert max(counts) <= 1100


def test_the_cube_has_as_many_faces_as_can_be_seen():
    # 2 x 3 x 4 cells in one block: 3 x 4 in front, 2 x 3 on top, 2 x 4 at the side.
    made = picture("[N C H W]", (2, 3, 2, 2))
    assert [len(face.cells) for face in made.faces] == [8, 6, 12]
    # Two such samples apart: each shows its three sides.
    made = picture("N [C H W]", (2, 3, 2, 2))
    assert [len(face.cells) for face in made.faces] == [4, 3, 12] * 2
    assert [face.set_id for face in made.faces] == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(("pattern", "shape", "sizes"), PATTERNS)
def test_each_cell_stands_where_its_position_says(pattern, shape, sizes):
    made = picture(pattern, shape, **sizes)
    depth, _, across = made.lines
    for face in made.faces:
        n, v, c = (line.at[face.cells[:, i]] for i, line in enumerate(made.lines))
        if made.form != "cube":
            n = sheet_starts(depth, across.length, BETWEEN)[face.cells[:, 0]]
            x, y = n + c, -v - 1
        else:
            # The side begins at the right edge of its cell, the top at the upper one.
            x = n * SLANT[0] + c + (face.side == "side")
            y = n * SLANT[1] - v - 1 + (face.side == "top")
        assert face.corners[:, 0] == pytest.approx(np.stack([x, y], 1))


def test_nearer_faces_come_later():
    made = picture("N C [H W]", (2, 3, 2, 2))
    order = [face.set_id for face in made.faces if face.side == "front"]
    assert order == [3, 4, 5, 0, 1, 2]


# ------------------------------------------------------------------ good manners


def test_settings_and_figures_of_the_user_are_left_alone():
    mine = plt.figure()
    settings = dict(matplotlib.rcParams)
    draw_sets("N [D]", (2, 3))
    draw_flow()
    draw_lines({"a": [1, 2]})
    assert dict(matplotlib.rcParams) == settings
    assert plt.fignum_exists(mine.number)


def test_torch_is_never_loaded_and_matplotlib_only_to_draw():
    code = (
        "import sys, normlab.diagrams as d; assert 'matplotlib' not in sys.modules;"
        "import matplotlib; matplotlib.use('Agg'); d.draw_comparison((2, 4, 3, 3));"
        "d.draw_values([[1, 2]], [[-1, 1]], 'N [D]'); d.draw_flow();"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unusual_settings_of_the_user_do_no_harm():
    unusual = {
        "figure.constrained_layout.use": True,
        "axes.grid": True,
        "font.family": "serif",
        "font.size": 30,
        "image.cmap": "jet",
    }
    with matplotlib.rc_context(unusual):
        ax = draw_sets("N [D]", (2, 3))
        ax.figure.canvas.draw()
    assert {text.get_size() for text in ax.texts} == {10}
    assert {text.get_fontfamily()[0] for text in ax.texts} == {
        "DejaVu Sans",
        "DejaVu Sans Mono",
    }


def test_axes_given_are_drawn_on_and_returned():
    figure, ax = plt.subplots(figsize=(3, 2))
    before = plt.get_fignums()
    assert draw_sets("N [D]", (2, 3), ax=ax) is ax
    assert draw_flow(ax=ax) is ax
    assert draw_values([[1.0, 2.0]], [[-1.0, 1.0]], "N [D]", ax=ax) is ax
    assert draw_lines({"a": [1, 2]}, ax=ax) is ax
    assert plt.get_fignums() == before
    figure.canvas.draw()


def test_a_picture_on_smaller_axes_shrinks_with_its_text():
    card = draw_sets("N [D]", (2, 3))
    width, height = card.figure.get_size_inches()
    _, ax = plt.subplots(figsize=(width / 2, height / 2))
    ax.set_position((0, 0, 1, 1))
    draw_sets("N [D]", (2, 3), ax=ax)
    assert card.texts[0].get_size() == 10
    assert ax.texts[0].get_size() == pytest.approx(5)


@pytest.mark.parametrize(
    ("draw", "error", "sentence"),
    [
        (
            lambda: draw_sets("N [D", (2, 3)),
            axes.PatternError,
            r"pattern: this \[ is never closed",
        ),
        (
            lambda: draw_sets("N [D]", (2, 3, 4)),
            axes.ShapeError,
            r"names 2 axes, but the shape \(2, 3, 4\) has 3",
        ),
        (
            lambda: draw_sets("N [D]", (0, 3)),
            axes.ShapeError,
            r"a tensor of shape \(0, 3\) has no elements to draw. Give every axis",
        ),
        (
            lambda: draw_sets("N [D]", (2, 3), pick=2),
            ValueError,
            r"pick=2 is not the number of a set; there are 2, from 0 to 1",
        ),
        (
            lambda: draw_sets("N [D]", (2, 3), pick=0.5),
            ValueError,
            r"pick=0.5 is not the number of a set",
        ),
        (
            lambda: draw_sets("N [D]", (2, 3), theme="sepia"),
            ValueError,
            r"theme: 'light' or 'dark' is expected, not 'sepia'",
        ),
        (
            lambda: draw_values([1.0], [1.0, 2.0], "[D]"),
            ValueError,
            r"before has shape \(1,\), but after \(2,\); pass the input and the output",
        ),
        (
            lambda: draw_comparison((8,)),
            axes.ShapeError,
            r"a tensor of 1 axes is in no row of axes.LAYERS; give a shape of 2 to 5",
        ),
        (
            lambda: draw_comparison((4, 9, 5, 5), G=4),
            axes.ShapeError,
            r"C has 9 elements, which 4 groups do not divide",
        ),
        (lambda: draw_lines({}), ValueError, r"1 to 5 series are expected, not 0"),
        (
            lambda: draw_lines({"a": [1, 2]}, x=[1, 2, 3]),
            ValueError,
            r"'a' has shape \(2,\), but there are 3 places on the x axis",
        ),
        (
            lambda: draw_images([], []),
            ValueError,
            r"0 images and 0 titles; give at least one image",
        ),
        *[
            (
                partial(draw_sets, "[...]", (1,) * rank),
                axes.ShapeError,
                f"1 to 32 axes can be drawn, but the tensor has {rank}. Flatten",
            )
            for rank in (0, 33, 65, 70)
        ],
        (
            lambda: draw_values(1.0, 2.0, "[...]"),
            axes.ShapeError,
            r"1 to 32 axes can be drawn, but the tensor has 0\. .* an axis of size 1",
        ),
        (
            lambda: draw_sets("N [D]", (2, 3), parameters=5),
            TypeError,
            r"parameters names axes in a text such as 'C', '' for none",
        ),
        (
            lambda: draw_sets("N [D]", (2, 3), pick=True),
            ValueError,
            r"pick=True is not the number of a set",
        ),
        (
            lambda: draw_sets("N [D]", (2, 3), theme=["dark"]),
            ValueError,
            r"theme: 'light' or 'dark' is expected, not \['dark'\]",
        ),
        *[
            (
                draw,
                TypeError,
                r"ax: Axes of matplotlib are expected, not this int; leave it out for",
            )
            for draw in (
                lambda: draw_sets("N [D]", (2, 3), ax=5),
                lambda: draw_values([[1.0]], [[1.0]], "N [D]", ax=5),
                lambda: draw_flow(ax=5),
                lambda: draw_lines({"a": [1, 2]}, ax=5),
            )
        ],
        (
            lambda: draw_flow(ax=np.array([None, None])),
            TypeError,
            r"not this ndarray; pass one of them, such as axs\[0\]",
        ),
        (
            lambda: draw_values([[1, 2]], [[1j, 2]], "N [D]"),
            ValueError,
            r"draw_values: after: real numbers are expected, not complex ones; pass",
        ),
        (
            lambda: draw_values(None, [1.0], "[D]"),
            TypeError,
            r"draw_values: before: an array of numbers is expected, not this NoneType",
        ),
        (
            lambda: draw_values([["1"]], [[1]], "N [D]"),
            TypeError,
            r"draw_values: before: an array of numbers is expected, not this list",
        ),
        (
            lambda: draw_values([[1], [1, 2]], [[1]], "N [D]"),
            ValueError,
            r"draw_values: before: rows of equal length are expected",
        ),
        *[
            (draw, error, sentence)
            for columns, error, sentence in (
                (0, ValueError, r"columns: 1 or more is expected, not 0"),
                (-1, ValueError, r"columns: 1 or more is expected, not -1"),
                (1.5, TypeError, r"columns: a whole number is expected, not 1\.5"),
                ("a", TypeError, r"columns: a whole number is expected, not 'a'"),
            )
            for draw in (
                partial(draw_comparison, (2, 4), columns=columns),
                partial(draw_images, [[[1]]], columns=columns),
            )
        ],
        (
            lambda: draw_comparison(5),
            TypeError,
            r"draw_comparison: shape: a list is expected, not this int",
        ),
        (
            lambda: draw_lines([1, 2]),
            TypeError,
            r"series is a dict from names to numbers, not this list; write {",
        ),
        (
            lambda: draw_lines({"a": 3}),
            ValueError,
            r"'a' has shape \(\), but there are 1 places on the x axis",
        ),
        (
            lambda: draw_lines({"a": [1j]}),
            ValueError,
            r"draw_lines: 'a': real numbers are expected, not complex ones",
        ),
        (
            lambda: draw_lines({"a": [1]}, x=5),
            TypeError,
            r"draw_lines: x: a list is expected, not this int",
        ),
        *[
            (
                partial(draw_images, [np.zeros((2, 2)), np.zeros(shape)]),
                ValueError,
                f"image 1 has shape {re.escape(str(shape))}; \\(H, W\\) or \\(H, W, 3",
            )
            for shape in ((0, 3), (3, 0), (0, 2, 3), (3,), (), (2, 2, 2), (3, 4, 4, 3))
        ],
        (
            lambda: draw_images(5),
            TypeError,
            r"draw_images: images: a list is expected, not this int",
        ),
        (
            lambda: draw_images([np.ones((2, 2)) * 1j]),
            ValueError,
            r"draw_images: image 0: real numbers are expected, not complex ones",
        ),
    ],
)
def test_errors_say_what_was_expected_and_leave_no_figure(draw, error, sentence):
    with pytest.raises(error, match=sentence):
        draw()
    assert plt.get_fignums() == []


# ------------------------------------------------------------------ comparison


def test_the_comparison_takes_the_norms_from_the_table_of_layers():
    drawn = draw_comparison((4, 8, 5, 5), G=4)
    patterns = [words_of(ax) for ax in drawn]
    four = {row.norm: row for row in axes.LAYERS if len(row.pattern.axes) == 4}
    for (norm, row), words in zip(four.items(), patterns, strict=False):
        assert any(text.startswith(norm) for text in words)
        assert row.statistics in words
    assert len(drawn) == len({row.norm for row in axes.LAYERS}) == 5
    said = [next(w for w in words if "share each" in w) for words in patterns]
    assert said == [
        "100 values share each mean",
        "200 values share each mean",
        "25 values share each mean",
        "50 values share each mean",
        "200 values share each RMS",
    ]
    assert "4 RMS values in all" in patterns[-1]
    assert "weight, bias: (8,) if wanted" in patterns[2]
    assert "weight: (8, 5, 5)" in patterns[4]
    assert drawn[0].figure.get_label().count("share each") == 5


@pytest.mark.parametrize(
    ("shape", "norms"), [((4, 6), 4), ((3, 6, 8), 5), ((2, 4, 2, 3, 3), 5)]
)
def test_the_comparison_draws_every_rank(shape, norms):
    drawn = draw_comparison(shape, columns=1)
    assert len(drawn) == norms
    assert [len(norm) for norm in norms_on(len(shape))] == [3] * norms
    place = [ax.get_position().x0 for ax in drawn]
    assert place == pytest.approx([0] * norms)


# ------------------------------------------------------------------ values


def test_values_and_statistics_are_those_of_the_tensor():
    before = np.array([[1.0, 2.0, 6.0], [4.0, 4.0, 4.0]])
    after = np.array([[-0.93, -0.46, 1.39], [0.0, 0.0, -0.0001]])
    words = words_of(draw_values(before, after, "N [D]"))
    assert {"1.00", "2.00", "6.00", "−0.93", "1.39"} <= set(words)
    row = words.index("0: N = 0")
    # Mean 3; deviation sqrt((4 + 1 + 9) / 3) = 2.160.
    assert words[row + 1 : row + 5] == ["3.00", "2.16", "0.00", "1.00"]
    assert words[row + 5 :][:5] == ["1: N = 1", "4.00", "0.00", "0.00", "0.00"]


def test_values_of_a_root_mean_square():
    ax = draw_values([[3.0, 4.0]], [[0.85, 1.13]], "N [D]", center=False)
    # sqrt((9 + 16) / 2) = 3.54
    assert "root mean square 3.54, then root mean square 1.00" in ax.get_label()


def test_each_cell_of_the_heatmap_stands_where_its_value_is():
    values = np.arange(2 * 4 * 2 * 2.0).reshape(2, 4, 2, 2)
    ax = draw_values(values, -values, "N (G [C/G]) [H W]", G=2)
    shown = [t.get_text() for t in ax.texts]
    numbers = [t for t in shown[: shown.index("after")] if t.endswith(".00")]
    assert sorted(numbers) == sorted(
        [f"{v:.2f}" for v in values.ravel()] + ["0.00", "31.00"]
    )
    position = {t.get_text(): t.get_position() for t in ax.texts[:60]}
    # Channel 1 of sample 0 begins at 4, right of channel 0; its next row holds 5.
    assert position["5.00"][0] == pytest.approx(position["4.00"][0])
    assert position["5.00"][1] < position["4.00"][1]
    assert position["4.00"][0] > position["1.00"][0]


def test_many_values_are_told_by_colour_alone_and_many_sets_are_counted():
    values = np.random.default_rng(0).normal(size=(16, 32, 4, 4))
    ax = draw_values(values, values, "[N] C [H W]", pick=12)
    words = words_of(ax)
    assert "26 more sets are not listed." in words
    assert "12: C = 12" in words
    assert any(text.startswith("Drawn: 3 of 16 N") for text in words)
    assert "26 more sets are not listed." in ax.get_label()


def test_values_that_are_not_finite_have_a_colour_of_their_own():
    ax = draw_values([[1.0, np.nan, np.inf]], [[np.nan] * 3], "N [D]")
    assert words_of(ax).count("nan") >= 4
    colours = {matplotlib.colors.to_hex(c) for c in ax.collections[0].get_facecolors()}
    assert "#808080" in colours


def test_tensors_are_taken_as_they_are():
    import torch

    x = torch.tensor([[1.0, 3.0]], dtype=torch.bfloat16, requires_grad=True)
    words = words_of(draw_values(x, x - 2, "N [D]"))
    assert {"1.00", "3.00", "−1.00"} <= set(words)
    with pytest.raises(ValueError, match="before: real numbers are expected, not comp"):
        draw_values(x * 1j, x, "N [D]")
    series = {"tensor": x[0], "list of tensors": list(x[0]), "whole": torch.arange(2)}
    ax = draw_lines(series, x=x[0])
    drawn = [line.get_ydata().tolist() for line in ax.lines]
    assert drawn == [[1, 3], [1, 3], [0, 1]]
    assert ax.lines[0].get_xdata().tolist() == [1, 3]
    fractions = [Fraction(1, 2), Fraction(3, 4)]
    assert draw_lines({"a": fractions}).lines[0].get_ydata().tolist() == [0.5, 0.75]
    byte = torch.tensor([[[255, 0, 0]]], dtype=torch.uint8)
    grey, red = (ax.images[0].get_array() for ax in draw_images([x, byte]))
    assert grey.tolist() == [[1, 3]]
    assert (red.dtype, red.tolist()) == (np.uint8, [[[255, 0, 0]]])


# ------------------------------------------------------------------ flow and charts


def test_the_flow_tells_what_is_read_and_what_is_written():
    ax = draw_flow()
    words = words_of(ax)
    train, evaluate = (
        words[: words.index("eval(): statistics of the buffers")],
        words[words.index("eval(): statistics of the buffers") :],
    )
    for half in (train, evaluate):
        assert {"running_mean", "running_var", "weight", "bias"} <= set(half)
        assert "(x − mean) / √(var + eps)" in half
    assert {"mean, var of", "buffers: written,", "not read"} <= set(train)
    assert {"buffers: read,", "not written"} <= set(evaluate)
    assert "mean, var of" not in evaluate
    # The chapters call the number of values m, too.
    assert "var divides by m, the values per channel; in running_var by m − 1" in train
    assert "In train, mean and variance of the batch normalize" in ax.get_label()


def test_lines_differ_by_marker_dash_and_colour():
    names = "abcde"
    ax = draw_lines({name: [0, i] for i, name in enumerate(names)}, title="Five")
    looks = [(x.get_color(), x.get_marker(), x.get_linestyle()) for x in ax.lines]
    for part in zip(*looks, strict=True):
        assert len(set(part)) >= 4
    assert len(set(looks)) == 5
    assert [line.get_ydata().tolist() for line in ax.lines][3] == [0, 3]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(names)
    assert ax.get_label().startswith("Five. Line chart of values against position. a:")


def test_names_on_the_x_axis_are_spread_evenly():
    ax = draw_lines({"error": [3, 2, 1]}, x=["32", "8", "2"], xlabel="images")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["32", "8", "2"]
    assert ax.lines[0].get_xdata().tolist() == [0, 1, 2]


def test_images_share_one_scale_and_keep_their_values():
    dark, light = np.zeros((2, 3)), np.full((2, 3), 9.0)
    drawn = draw_images([dark, light, np.zeros((2, 3, 3))], columns=2)
    assert [ax.get_title() for ax in drawn] == ["0", "1", "2"]
    assert drawn[0].images[0].get_clim() == drawn[1].images[0].get_clim() == (0.0, 9.0)
    assert (drawn[1].images[0].get_array() == 9).all()
    assert drawn[0].figure.get_label() == "Image: 0. Image: 1. Image: 2."


# ------------------------------------------------------------------ alt text in Jupyter


@pytest.fixture
def shell(tmp_path):
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    # A shell that keeps no history, so that nothing is written to the user's home.
    config = Config({"HistoryManager": {"enabled": False}})
    return InteractiveShell(config=config, ipython_dir=str(tmp_path))


def test_the_stored_text_of_a_figure_is_its_label(shell):
    register(shell)
    spoken = draw_sets("N [D]", (2, 3)).figure
    data, _ = shell.display_formatter.format(spoken, include=["text/plain"])
    assert data["text/plain"].startswith("LayerNorm(3) on a tensor (N, D) = (2, 3)")
    silent = plt.figure()
    data, _ = shell.display_formatter.format(silent, include=["text/plain"])
    assert data["text/plain"] == str(silent)


def test_importing_the_diagrams_inside_ipython_registers(shell, monkeypatch):
    import IPython

    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    register()
    figure = plt.figure()
    figure.set_label("A line that rises.")
    data, _ = shell.display_formatter.format(figure, include=["text/plain"])
    assert data["text/plain"] == "A line that rises."


def test_without_ipython_nothing_is_registered(monkeypatch):
    import IPython

    monkeypatch.setattr(IPython, "get_ipython", lambda: None)
    assert register() is None
