"""How every picture of the course looks: two themes, one font size, one cell size.

A picture is first put together on a `Card`, in inches, so that its size follows from
what is on it; then it is drawn on Axes. It is an opaque card with a background of its
own, so it can be read on a light page and on a dark one.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from normlab.diagrams import given
from normlab.diagrams.alt import describe

FONT = "DejaVu Sans"  # comes with matplotlib, so all machines draw the same
MONO = "DejaVu Sans Mono"
FONT_SIZE = 10  # points
CELL = 0.25  # inches
LINE_HEIGHT = 0.2  # inches, from one line of text to the next
MARGIN = 0.14  # inches around everything


@dataclass(frozen=True)
class Theme:
    """The colours of a picture. Each differs from its neighbours in lightness too."""

    background: str
    ink: str  # text, outlines of the picked set
    quiet: str  # text of lesser weight
    line: str  # borders of cells
    picked: str  # the picked set, and everything that is averaged
    on_picked: str  # the stripe across its cells, text on it
    tints: tuple[str, ...]  # the other sets; neighbours take different ones
    parameter: str  # weight and bias
    buffer: str  # running statistics
    series: tuple[str, ...]  # lines of a chart


THEMES = {
    "light": Theme(
        background="#ffffff",
        ink="#16202b",
        quiet="#4a5663",
        line="#4d5965",
        picked="#ad3508",
        on_picked="#ffffff",
        tints=("#e6f0fa", "#a7ccb0", "#ecdcab", "#a3a1d8"),
        parameter="#f3d9ee",
        buffer="#d5ebe6",
        series=("#2346d2", "#c9660a", "#154704", "#8d57c2", "#47122d"),
    ),
    "dark": Theme(
        background="#14181f",
        ink="#eef2f6",
        quiet="#b3bdc8",
        line="#b4bec9",
        picked="#ffb454",
        on_picked="#14181f",
        tints=("#1f2c3b", "#28493a", "#64542a", "#6562a0"),
        parameter="#57325a",
        buffer="#1f4f4a",
        series=("#3fdcec", "#f0862a", "#ebe75a", "#f57ff5", "#7ed660"),
    ),
}


def theme_named(name):
    """The theme of that name; the error lists the names."""
    if not isinstance(name, str) or name not in THEMES:
        names = " or ".join(map(repr, THEMES))
        raise ValueError(f"theme: {names} is expected, not {name!r}.")
    return THEMES[name]


@lru_cache(maxsize=4096)
def text_width(text, mono=False, bold=False):
    """How wide a line of text will be, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    weight = "bold" if bold else "normal"
    font = FontProperties(family=MONO if mono else FONT, weight=weight, size=FONT_SIZE)
    return text_to_path.get_text_width_height_descent(text, font, False)[0] / 72


def wrapped(text, width):
    """Break a text into lines no wider than that many inches."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


@dataclass
class Text:
    """A line of text on a card, and the box that it fills."""

    x: float
    y: float
    text: str
    colour: str
    across: str = "left"
    up: str = "center"
    bold: bool = False
    mono: bool = False
    rotated: bool = False

    @property
    def box(self):
        """(left, bottom, right, top) in inches."""
        width = text_width(self.text, self.mono, self.bold)
        height = FONT_SIZE * 1.1 / 72
        if self.rotated:
            width, height = height, width
        left = {"left": 0, "center": width / 2, "right": width}[self.across]
        low = {"bottom": 0, "center": height / 2, "top": height}[self.up]
        x, y = self.x - left, self.y - low
        return (x, y, x + width, y + height)


@dataclass
class Card:
    """Everything on one picture, in inches, y upwards; `draw` puts it on Axes."""

    theme: Theme
    quads: list = field(default_factory=list)  # (corners (k, 4, 2), face, edge, width)
    lines: list = field(default_factory=list)  # (points, colour, width)
    texts: list = field(default_factory=list)
    frame: tuple | None = None  # (left, bottom, right, top), else what is on it

    def quad(self, corners, face, edge, width):
        """Add four-cornered shapes of one look; later ones cover earlier ones."""
        corners = np.asarray(corners, dtype=float).reshape(-1, 4, 2)
        self.quads.append((corners, face, edge, width))

    def cell(self, x, y, width, height, face, edge=None, thickness=0.6):
        """Add a rectangle with its lower left corner at (x, y)."""
        right, top = x + width, y + height
        corners = [(x, y), (right, y), (right, top), (x, top)]
        self.quad(corners, face, edge or self.theme.line, thickness)

    def line(self, points, colour=None, width=1.2):
        """Add a line through the points."""
        self.lines.append((np.asarray(points, float), colour or self.theme.ink, width))

    def text(self, x, y, text, colour=None, **how):
        """Add one line of text; `how` are the fields of `Text`."""
        self.texts.append(Text(x, y, text, colour or self.theme.ink, **how))

    def paragraph(self, x, y, text, width, **how):
        """Add text that wraps, its first line centred on y; return the next y."""
        for line in wrapped(text, width):
            self.text(x, y, line, **how)
            y -= LINE_HEIGHT
        return y

    @property
    def box(self):
        """(left, bottom, right, top) of all that is on the card, in inches."""
        points = [corners.reshape(-1, 2) for corners, *_ in self.quads]
        points += [points for points, *_ in self.lines]
        boxes = [text.box for text in self.texts]
        points += [np.reshape(boxes, (-1, 2))] if boxes else []
        every = np.concatenate(points)
        return (*every.min(0), *every.max(0))

    def draw(self, ax, alt):
        """Draw on `ax`, or on a new figure of the card's own size; return the Axes."""
        from matplotlib.collections import LineCollection, PolyCollection
        from matplotlib.colors import to_rgba_array
        from matplotlib.patches import Rectangle

        around = np.repeat([-MARGIN, MARGIN], 2)
        left, low, right, top = np.add(self.frame or self.box, around)
        width, height = right - left, top - low
        if given.axes_or_none(ax) is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(
                figsize=(width, height), facecolor=self.theme.background, layout="none"
            )
            ax = figure.add_axes((0, 0, 1, 1))
            scale = 1.0
        else:
            # On Axes of another size the picture grows or shrinks as a whole.
            space = ax.get_window_extent().size / ax.get_figure(root=True).dpi
            scale = float(min(space / (width, height)))
        ax.set_axis_off()
        ax.set_aspect("equal", adjustable="box", anchor="C")
        ax.set_xlim(left, right)
        ax.set_ylim(low, top)
        back = Rectangle((left, low), width, height, zorder=0)
        back.set(facecolor=self.theme.background, edgecolor="none")
        ax.add_patch(back)
        if self.quads:
            each = np.repeat(
                np.arange(len(self.quads)), [len(q[0]) for q in self.quads]
            )
            ax.add_collection(
                PolyCollection(
                    np.concatenate([corners for corners, *_ in self.quads]),
                    facecolors=to_rgba_array([q[1] for q in self.quads])[each],
                    edgecolors=to_rgba_array([q[2] for q in self.quads])[each],
                    linewidths=scale * np.array([q[3] for q in self.quads])[each],
                    joinstyle="round",
                    zorder=1,
                ),
                autolim=False,
            )
        if self.lines:
            points, colours, widths = zip(*self.lines, strict=True)
            ax.add_collection(
                LineCollection(
                    points,
                    colors=colours,
                    linewidths=scale * np.array(widths),
                    zorder=2,
                ),
                autolim=False,
            )
        for text in self.texts:
            level = "center_baseline" if text.up == "center" else text.up
            ax.text(
                text.x,
                text.y,
                text.text,
                color=text.colour,
                family=MONO if text.mono else FONT,
                size=FONT_SIZE * scale,
                weight="bold" if text.bold else "normal",
                ha=text.across,
                va="center" if text.rotated else level,
                rotation=90 if text.rotated else 0,
                parse_math=False,
                zorder=4,
            )
        describe(ax, alt)
        return ax
