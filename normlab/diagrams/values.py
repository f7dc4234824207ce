"""A tensor's numbers before and after, with the mean and deviation of each set."""

import numpy as np

from normlab.diagrams import given
from normlab.diagrams.layout import LEFT_OUT, few, sheet_faces
from normlab.diagrams.picture import BETWEEN, TensorPicture
from normlab.diagrams.style import CELL, LINE_HEIGHT, text_width

NUMBERED = 72  # with more cells than that, colour alone tells the values
TABLE = 8  # sets in the table


def draw_values(
    before,
    after,
    pattern,
    *,
    ax=None,
    pick=0,
    center=True,
    theme="light",
    **sizes,
):
    """Draw a tensor's values before and after a norm, and what became of each set.

    Two heatmaps, laid out as `draw_sets` lays out tensors of up to three axes (more
    axes are flattened); cells that touch are one set. Below, the mean and deviation of
    each set before and after: the deviation divides by the number of values, as the
    norms do. With `center=False` it is the root mean square alone.

    Args:
        before, after: arrays or tensors of one shape.
        pattern: which elements share statistics; see `normlab.axes.parse`.
        ax: Axes to draw on; by default those of a new figure.
        pick: the number of the set to outline.
        center: whether the statistics are mean and variance, or the root mean square.
        theme: ``"light"`` or ``"dark"``.
        **sizes: the number of groups, such as ``G=4``.

    Returns the Axes.
    Raises ValueError when the shapes differ or numbers are complex, TypeError for what
    is no array of numbers, and what `draw_sets` raises.

    >>> x = [[1.0, 3.0], [5.0, 9.0]]
    >>> ax = draw_values(x, [[-1, 1], [-1, 1]], "N [D]")
    >>> print(ax.get_label().split(". ")[1])
    Set 0 (N = 0): mean 2.00, deviation 1.00, then mean 0.00, deviation 1.00
    """
    before = given.numbers("draw_values: before", before).astype(float)
    after = given.numbers("draw_values: after", after).astype(float)
    if before.shape != after.shape:
        raise ValueError(
            f"draw_values: before has shape {before.shape}, but after {after.shape}; "
            "pass the input and the output of one norm."
        )
    picture = ValuesPicture(before, after, pattern, pick, center, theme, sizes)
    return picture.whole().draw(ax, picture.alt)


class ValuesPicture(TensorPicture):
    """The two heatmaps and the table, put on a `Card`."""

    terse = True
    flat = True

    def __init__(self, before, after, pattern, pick, center, theme, sizes):
        super().__init__(pattern, before.shape, pick, center, theme, sizes)
        self.tensors = {"before": before, "after": after}
        self.statistics = np.hstack([self._statistics(before), self._statistics(after)])

    def _statistics(self, values):
        """Mean and deviation, or root mean square alone, of each set: one row each."""
        ids, sets = self.sets.set_ids.ravel(), self.sets
        values = values.ravel()
        mean = np.bincount(ids, values, sets.num_sets) / sets.values_per_set
        if not self.center:
            mean = np.zeros_like(mean)
        squares = np.bincount(ids, (values - mean[ids]) ** 2, sets.num_sets)
        deviation = np.sqrt(squares / sets.values_per_set)
        return np.stack([mean, deviation] if self.center else [deviation], 1)

    @property
    def names(self):
        """What the statistics are called."""
        return ["mean", "deviation"] if self.center else ["root mean square"]

    @property
    def alt(self):
        """The sentence, and the statistics of the sets in the table."""
        parts = [
            f"Heatmaps of a tensor of shape {self.sets.shape} before and after "
            f"normalization over {self.sets.pattern}"
        ]
        half = len(self.names)
        for number in self.listed:
            row = [short(value) for value in self.statistics[number]]
            named = [f"{a} {b}" for a, b in zip(self.names * 2, row, strict=True)]
            then = f"{', '.join(named[:half])}, then {', '.join(named[half:])}"
            parts.append(f"Set {number} ({self.set_name(number)}): {then}")
        return ". ".join([*parts, *self.unlisted]) + "."

    @property
    def listed(self):
        """The sets whose statistics are written out."""
        return few(self.sets.num_sets, TABLE, self.pick).tolist()

    @property
    def unlisted(self):
        """How many sets are not, as a list of at most one sentence."""
        rest = self.sets.num_sets - len(self.listed)
        return [f"{rest} more sets are not listed"] if rest else []

    def whole(self):
        """Both heatmaps, one under the other, and the table of statistics."""
        numbered = np.prod([len(line.shown) for line in self.lines]) <= NUMBERED
        cell = np.array((2.05, 1.1) if numbered else (1, 1)) * CELL
        for name, values in self.tensors.items():
            self._heatmap(name, values, cell, numbered)
        self._table()
        return self.card

    def _heatmap(self, name, values, cell, numbered):
        card, theme, (depth, down, across) = self.card, self.theme, self.lines
        top = card.box[1] - 0.4 if card.quads else 0.0
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        spread = (high - low) or 1.0
        card.text(0, top, name, bold=True)
        x = text_width(name, bold=True) + 0.25
        card.text(x, top, short(low), theme.quiet)
        x += text_width(short(low)) + 0.08
        for i in range(12):
            card.cell(x + i * 0.1, top - 0.08, 0.1, 0.16, heat(i / 11), heat(i / 11))
        card.text(x + 1.28, top, short(high), theme.quiet)
        top -= 0.2 + (0.62 if depth.dims else 0.05)
        order = [
            self.sets.axes.index(axis) for line in self.lines for axis in line.axes
        ]
        laid = values.transpose(order).reshape([line.size for line in self.lines])
        for face in sheet_faces(depth, down, across, BETWEEN):
            corners = face.corners * cell + (0, top)
            shown = [line.shown[face.cells[:, i]] for i, line in enumerate(self.lines)]
            for corner, *place in zip(corners, *shown, strict=True):
                if LEFT_OUT in place:
                    card.quad(corner, theme.background, theme.background, 0.6)
                    card.text(*corner.mean(0), "⋯", across="center")
                    continue
                value = laid[tuple(place)]
                colour = heat((value - low) / spread)
                card.quad(corner, colour, theme.line, 0.6)
                if numbered:
                    ink = readable_on(colour)
                    card.text(*corner.mean(0), short(value), ink, across="center")
            picked = face.set_id == self.pick
            edge = (theme.picked, 3.0) if picked else (theme.ink, 1.0)
            card.quad(face.outline * cell + (0, top), "none", *edge)
        self._flat_rulers(top, cell)

    def _table(self):
        card, theme = self.card, self.theme
        left, low, *_ = card.box
        y = low - 0.35
        names = {number: f"{number}: {self.set_name(number)}" for number in self.listed}
        wide = max(text_width("0.0000"), *map(text_width, self.names)) + 0.15
        start = left + max(map(text_width, names.values())) + 0.1
        ends = [start + wide * (i + 1) for i in range(2 * len(self.names))]
        for part, end in (("before", ends[len(self.names) - 1]), ("after", ends[-1])):
            card.text(end, y, part, across="right", bold=True)
        y -= LINE_HEIGHT
        card.text(left, y, "set", theme.quiet)
        for name, end in zip(self.names * 2, ends, strict=True):
            card.text(end, y, name, theme.quiet, across="right")
        card.line([(left, y - 0.12), (ends[-1], y - 0.12)], theme.line, 0.8)
        y -= 0.06
        for number, name in names.items():
            y -= LINE_HEIGHT
            picked = number == self.pick
            colour = theme.picked if picked else theme.ink
            card.text(left, y, name, colour, bold=picked)
            for value, end in zip(self.statistics[number], ends, strict=True):
                card.text(end, y, short(value), colour, across="right")
        for words in [*self.unlisted, *filter(None, [self.omissions])]:
            y -= LINE_HEIGHT
            words = f"Drawn: {words}" if words == self.omissions else words
            card.text(left, y, words + ".", theme.quiet)


def short(value):
    """A number in at most five or six signs: ``-1.22``, ``0.00``, ``123.4``.

    >>> [short(x) for x in (-1.2247, -0.0001, 123.44, 98765.0, 1.5e9, float("nan"))]
    ['−1.22', '0.00', '123.4', '98765', '2e+09', 'nan']
    """
    size = abs(value)
    digits = 2 if size < 99.995 else 1 if size < 999.95 else 0
    text = f"{value:.{digits}f}" if size < 99999.5 or size != size else f"{value:.0e}"
    text = text.removeprefix("-") if not text.strip("-0.") else text
    return text.replace("-", "−", 1) if text.startswith("-") else text


def heat(fraction):
    """The colour of a value at that fraction of the range, from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if not np.isfinite(fraction):
        return "#808080"
    return to_hex(colormaps["cividis"](float(fraction)))


def readable_on(colour):
    """Black or white, whichever can be read on the colour."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    return "#000000" if light > 0.18 else "#ffffff"
