"""The colours of the pictures: contrast, and how they look to every eye."""

import itertools

import matplotlib
import numpy as np
import pytest

from normlab.diagrams.picture import lit
from normlab.diagrams.style import THEMES
from normlab.diagrams.values import heat, readable_on
from normlab.widgets import AxisPicker
from normlab.widgets.base import COLOUR_STEPS
from test_diagrams import PATTERNS, picture

# Severity 1.0 of the model of Machado, Oliveira and Fernandes (2009), "A
# Physiologically-based Model for Simulation of Color Vision Deficiency", on linear RGB.
EYES = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
    "grey print": np.array([[0.2126, 0.7152, 0.0722]] * 3),
}
GREY = EYES["grey print"][0]


def linear(colour):
    """Linear RGB of a colour such as #b3390a (IEC 61966-2-1)."""
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, two):
    """WCAG 2 contrast ratio."""
    low, high = sorted(float(GREY @ linear(colour)) for colour in (one, two))
    return (high + 0.05) / (low + 0.05)


def seen(colour, eye):
    """CIE L*a*b* (D65) of a colour as that eye sees it."""
    rgb = np.clip(EYES[eye] @ linear(colour), 0, 1)
    to_xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
    xyz = np.array(to_xyz) @ rgb / (0.9505, 1, 1.089)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one, two, eye):
    return float(np.linalg.norm(seen(one, eye) - seen(two, eye)))


def test_the_measures_themselves():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert seen("#ffffff", "all cones") == pytest.approx([100, 0, 0], abs=0.05)
    # Red and green of one lightness: far apart for most, close for deuteranopes.
    assert difference("#c00000", "#5a7000", "all cones") > 60
    assert difference("#c00000", "#5a7000", "deuteranopia") < 35


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_text_and_outlines_stand_out(theme):
    for colour in (theme.ink, theme.quiet, theme.picked):
        assert contrast(colour, theme.background) >= 4.5
    for fill in (theme.parameter, theme.buffer):
        assert contrast(theme.ink, fill) >= 4.5
    assert contrast(theme.on_picked, theme.picked) >= 4.5
    for tint in theme.tints:
        # The outline of the picked set, and the dots, against any neighbour.
        assert contrast(theme.ink, tint) >= 4.5
        assert contrast(theme.line, tint) >= 2.8
    assert contrast(theme.line, theme.background) >= 3
    for colour in theme.series:
        assert contrast(colour, theme.background) >= 3


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("side", ["front", "top", "side"])
@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_sets_can_be_told_apart_by_every_eye(theme, side, eye):
    tints = [lit(tint, side) for tint in theme.tints]
    for tint in tints:
        assert difference(lit(theme.picked, side), tint, eye) >= 20
    for one, two in itertools.combinations(tints, 2):
        assert difference(one, two, eye) >= 4.5
    if eye != "grey print":  # in grey, lines have their markers and dashes
        for one, two in itertools.combinations(theme.series, 2):
            assert difference(one, two, eye) >= 12


# The same groups come again and again: the last one touches the first one.
INTERLEAVED = [
    ("N ([C/G] G) [H W]", (2, 10, 2, 2), {"G": 5}),
    ("N C ([H/G] G) W", (2, 3, 10, 2), {"G": 5}),
    ("([N/G] G) C [H W]", (6, 3, 2, 2), {"G": 3}),
]


def test_touching_sets_never_have_one_tint():
    for pattern, shape, sizes in PATTERNS + INTERLEAVED:
        made = picture(pattern, shape, **sizes)
        depth, down, across = made.lines
        for line, tints in (
            (depth, depth.deep_tints),
            (down, down.tints),
            (across, across.tints),
        ):
            apart = np.flatnonzero(np.diff(line.ids))
            assert (np.diff(tints)[apart] % 4 != 0).all(), pattern


def test_the_explorers_colour_neighbours_by_the_same_tested_tints():
    count = len(THEMES["light"].tints)
    assert count == len(THEMES["dark"].tints) == 4
    assert all(step % count for step in COLOUR_STEPS)
    for theme in THEMES.values():
        for name in (*theme.tints, theme.picked, theme.on_picked, theme.line):
            assert name in AxisPicker._css


def test_numbers_can_be_read_on_their_cells():
    for name, theme in THEMES.items():
        made = picture("N C [H W]", (3, 8, 2, 2), pick=9, theme=name)
        grounds = {
            tuple(np.round(corners[-1].mean(0), 6)): face
            for corners, face, *_ in made.card.quads
            if len(corners)
        }
        at = [(text, (round(text.x, 6), round(text.y, 6))) for text in made.card.texts]
        found = [
            (text.colour, grounds[place]) for text, place in at if place in grounds
        ]
        assert len(found) == made.sets.num_sets == 24
        assert min(contrast(*pair) for pair in found) >= 4.5
        for tint in theme.tints:
            assert contrast(theme.ink, tint) >= 4.5
    for text, theme in (("#1b1f24", "light"), ("#e8ecf0", "dark")):
        assert f"--nl-text: {text}" in AxisPicker._css
        for tint in THEMES[theme].tints:
            assert contrast(text, tint) >= 4.5


@pytest.mark.parametrize("fraction", np.linspace(0, 1, 21))
def test_numbers_can_be_read_on_every_colour_of_the_heatmap(fraction):
    colour = heat(fraction)
    assert contrast(readable_on(colour), colour) >= 4.5
