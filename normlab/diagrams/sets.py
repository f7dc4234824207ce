"""Reduction-axis diagrams: which elements of a tensor share one mean."""

import numpy as np

from normlab import axes
from normlab.diagrams.layout import (
    LEFT_OUT,
    TINTS,
    cube_faces,
    form_of,
    lay_out,
    sheet_faces,
    sheet_start,
)
from normlab.diagrams.style import (
    CELL,
    LINE_HEIGHT,
    Card,
    text_width,
    theme_named,
)

SLANT = (0.62, 0.5)  # of a cell: one step in depth, right and up
DOT = 0.012 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])  # inches
BETWEEN = 1.1  # of a cell, between two sheets
WIDTH = 4.4  # inches; text under a narrower picture may be this wide


def draw_sets(
    pattern,
    shape,
    *,
    ax=None,
    parameters=None,
    pick=0,
    center=True,
    theme="light",
    **sizes,
):
    """Draw a tensor's cells, coloured by the statistics set that each belongs to.

    Cells that touch share a mean; a gap or another colour means another set. One set,
    number `pick`, stands out by a strong colour, stripes and an outline. Under a kept
    axis each position is numbered; a reduced axis has one bracket, as in the pattern.
    Large tensors are drawn abridged, and the picture says so.

    Args:
        pattern: such as ``"N (G [C/G]) [H W]"``; see `normlab.axes.parse`.
        shape: the tensor's shape. One axis is drawn as a row, two as a grid, three as
            sheets, four and more as a cube with the last axes flattened.
        ax: Axes to draw on; by default those of a new figure.
        parameters: the axes along which weight and bias differ, such as ``"C"``; by
            default those of the built-in layer that the pattern is, if any, and ``""``
            for none.
        pick: the number of the set to pick out, from 0 to the number of sets - 1.
        center: whether the statistics are mean and variance (True) or the root mean
            square alone (False, as in RMSNorm).
        theme: ``"light"`` or ``"dark"``.
        **sizes: the number of groups, such as ``G=4``.

    Returns the Axes. The figure's label is a text that says what the picture shows.

    Raises `axes.PatternError` and `axes.ShapeError` (both ValueError) as `axes` does,
    and ValueError for a `pick` or `theme` that there is not, or a tensor without
    elements.

    >>> ax = draw_sets("N (G [C/G]) [H W]", (4, 8, 5, 5), G=4)
    >>> print(ax.get_label().split(". ")[0])
    GroupNorm(4, 8) on a tensor (N, C, H, W) = (4, 8, 5, 5), pattern N (G [C/G]) [H W]
    """
    picture = SetsPicture(pattern, shape, parameters, pick, center, theme, sizes)
    return picture.whole().draw(ax, picture.alt)


class SetsPicture:
    """The parts of one reduction-axis diagram, put on a `Card`."""

    def __init__(self, pattern, shape, parameters, pick, center, theme, sizes):
        pattern = axes.parse(pattern)
        self.sets = sets = pattern.on(shape, **sizes)
        if not sets.num_sets * sets.values_per_set:
            raise axes.ShapeError(
                f"draw_sets: a tensor of shape {sets.shape} has no elements to draw. "
                "Give every axis a size of at least 1."
            )
        if not isinstance(pick, (int, np.integer)) or not 0 <= pick < sets.num_sets:
            raise ValueError(
                f"draw_sets: pick={pick!r} is not the number of a set; there are "
                f"{sets.num_sets}, from 0 to {sets.num_sets - 1}."
            )
        self.layer = pattern.layer(center, parameters)
        self.call = self.layer.call(sets, parameters) if self.layer else None
        if parameters is None:
            named = self.layer.parameters_in(pattern) if self.layer else ()
            self.by_default = self.layer is None or self.layer.affine
            parameters = " ".join(named)
        else:
            self.by_default = True
        self.parameters = parameters
        self.parameter_shape = sets.parameter_shape(parameters) if parameters else ()
        self.bias = self.layer is None or self.layer.bias
        self.pick, self.center = int(pick), center
        self.theme = theme_named(theme)
        self.form, names, limits = form_of(sets)
        self.lines = lay_out(sets, names, limits, self.pick)
        self.card = Card(self.theme)
        self.faces = []

    # -- what it says

    @property
    def title(self):
        """The layer, or that there is none."""
        return self.call or "No built-in layer does this"

    @property
    def picked_words(self):
        """``set 0: N = 0, G = 0``, or that there is one set alone."""
        labels = [dim.label for dim in self.sets.dims if not dim.reduced]
        if not labels:
            return "the only set: all values"
        where = np.unravel_index(self.pick, self.sets.kept_shape)
        pairs = zip(labels, where, strict=True)
        return f"set {self.pick}: " + ", ".join(f"{a} = {int(i)}" for a, i in pairs)

    @property
    def parameter_words(self):
        """Which parameters there are, and of which shape."""
        if not self.parameter_shape:
            return "no weight and no bias"
        both = "weight and bias" if self.bias else "weight (no bias)"
        along = " and ".join(self.parameters.split())
        return f"{both}: shape {_tuple(self.parameter_shape)}, one for each {along}"

    @property
    def omissions(self):
        """What is left out: ``3 of 64 N, 9 of 256 C``; empty when all is drawn."""
        return ", ".join(filter(None, (line.omission for line in self.lines)))

    @property
    def alt(self):
        """The picture in words."""
        named = f"({', '.join(self.sets.axes)}) = {_tuple(self.sets.shape)}"
        kept = ", ".join(self.sets.pattern.kept) or "nothing"
        reduced = ", ".join(self.sets.pattern.reduced) or "nothing"
        depth, down, across = self.lines
        form = {
            "row": "a row of cells",
            "grid": f"a grid, {down.axis} down and {across.axis} across",
            "sheets": f"sheets, one for each {depth.axis}, {down.axis} down and "
            f"{across.axis} across",
            "cube": f"a block with {depth.axis} in depth, {across.axis} across and "
            f"{down.axis} down",
        }[self.form]
        parts = [
            f"{self.title} on a tensor {named}, pattern {self.sets.pattern}",
            self.sets.describe(self.center).rstrip("."),
            f"Kept: {kept}; averaged over: {reduced}",
            f"Drawn as {form}, coloured by set; picked out is {self.picked_words}",
            self.parameter_words[0].upper() + self.parameter_words[1:],
        ]
        if self.omissions:
            parts.append(f"Drawn are {self.omissions}")
        return ". ".join(parts) + "."

    # -- what it shows

    def whole(self):
        """The tensor with its axes, the title above it, the explanation below."""
        self.tensor()
        self.heading()
        self.legend()
        return self.card

    def tensor(self):
        """The cells, and the name, size and role of every axis."""
        depth, down, across = self.lines
        if self.form == "cube":
            self.faces = list(cube_faces(depth, down, across, SLANT))
        else:
            self.faces = list(sheet_faces(depth, down, across, BETWEEN))
        for face in self.faces:
            self._face(face)
        if self.form == "cube":
            right, low = across.length * CELL, -down.length * CELL
            step = np.array(SLANT) * CELL
            self._ruler(across, (0, low), (CELL, 0), (0, -1))
            self._ruler(down, (0, 0), (0, -CELL), (-1, 0))
            self._ruler(depth, (right, low), step, (1, 0))
        else:
            self._flat_rulers(depth, down, across)

    def _face(self, face):
        theme, picked = self.theme, face.set_id == self.pick
        base = theme.picked if picked else theme.tints[face.tint]
        colour = _lit(base, face.side)
        corners = face.corners * CELL
        shown = [line.shown[face.cells[:, i]] for i, line in enumerate(self.lines)]
        real = np.all(np.array(shown) != LEFT_OUT, axis=0)
        self.card.quad(corners[~real], colour, colour, 0.6)
        self.card.quad(corners[real], colour, theme.line, 0.6)
        if picked:
            # One stripe across each cell: the set shows without its colour, too.
            stripes = corners[real][:, (0, 2, 2, 0)]
            inset = 0.22 * (stripes[:, (1, 0, 0, 1)] - stripes)
            self.card.quad(stripes + inset, "none", theme.on_picked, 1.0)
        dots = theme.on_picked if picked else theme.ink
        for line, ends in zip(face.plane, ((0, 1), (0, 3)), strict=True):
            cells = corners[shown[line] == LEFT_OUT]
            along = cells[:, ends[1]] - cells[:, ends[0]]
            for k in (-0.28, 0, 0.28):
                middle = cells.mean(1) + k * along
                self.card.quad(middle[:, None] + DOT, dots, dots, 0.6)
        edge = (theme.ink, 2.0) if picked else (theme.line, 0.6)
        self.card.quad(face.outline * CELL, "none", *edge)

    def _ruler(self, line, origin, step, outward):
        """Brackets or numbers beside a line of cells, then its name and its role."""
        clear = self._marks(line, origin, step, outward)
        middle = np.add(origin, line.length / 2 * np.asarray(step))
        self._axis_name(line, middle + clear * np.asarray(outward), outward)

    def _marks(self, line, origin, step, outward):
        """A bracket for what is averaged, a number for what is kept; their depth."""
        origin, step, outward = map(np.asarray, (origin, step, outward))
        spans = line.spans if line.reduced else []
        if line.kept and len(spans) == len(line.shown):
            spans = []  # groups of one channel: each position is kept
        for first, past in spans:
            a, b = (line.at[first] + 0.08) * step, (line.at[past - 1] + 0.92) * step
            near, far = origin + 0.09 * outward, origin + 0.16 * outward
            corners = [near + a, far + a, far + b, near + b]
            self.card.line(corners, self.theme.picked, 1.8)
        for skip in line.skips:
            self._dots(origin + skip * step + (0 if spans else 0.16) * outward, step)
        if spans:
            return 0.26
        across, up = _anchor(outward)
        for number, at in zip(line.shown, line.at, strict=True):
            x, y = origin + (at + 0.5) * step + 0.14 * outward
            if number != LEFT_OUT:
                how = {"across": across, "up": up}
                self.card.text(x, y, str(number), self.theme.quiet, **how)
        widest = max(text_width(str(number)) for number in line.shown)
        return 0.2 + (0.13 if outward[1] else widest)

    def _axis_name(self, line, where, outward):
        (x, y), theme = where, self.theme
        role_colour = theme.picked if line.reduced else theme.quiet
        name = {"bold": True}
        if outward[1] < 0:  # below
            self.card.text(x, y, line.name, across="center", up="top", **name)
            y -= LINE_HEIGHT
            self.card.text(x, y, line.role, role_colour, across="center", up="top")
        elif outward[1] > 0:  # above
            self.card.text(x, y, line.role, role_colour, across="center", up="bottom")
            y += LINE_HEIGHT
            self.card.text(x, y, line.name, across="center", up="bottom", **name)
        elif outward[0] < 0:  # left, upwards
            how = {"across": "right", "rotated": True}
            self.card.text(x, y, line.role, role_colour, **how)
            self.card.text(x - LINE_HEIGHT, y, line.name, bold=True, **how)
        else:  # right, below a line that rises
            self.card.text(x, y - 0.06, line.name, **name)
            self.card.text(x, y - 0.06 - LINE_HEIGHT, line.role, role_colour)

    def _dots(self, where, step):
        unit = np.asarray(step) / np.hypot(*step)
        for k in (-1, 0, 1):
            dot = where + 0.07 * k * unit + DOT
            self.card.quad(dot, self.theme.ink, self.theme.ink, 0.6)

    def _flat_rulers(self, depth, down, across):
        pitch = across.length + BETWEEN
        starts = [sheet_start(depth, d, pitch) * CELL for d in range(len(depth.shown))]
        low = -down.length * CELL
        if down.dims:
            self._ruler(down, (0, 0), (0, -CELL), (-1, 0))
        self._ruler(across, (0, low), (CELL, 0), (0, -1))
        for start in starts[1:]:
            self._marks(across, (start, low), (CELL, 0), (0, -1))
        if not depth.dims:
            return
        width = across.length * CELL
        name = depth.axis
        if depth.reduced:
            a, b = starts[0] + 0.02, starts[-1] + width - 0.02
            corners = [(a, 0.09), (a, 0.16), (b, 0.16), (b, 0.09)]
            self.card.line(corners, self.theme.picked, 1.8)
        for number, start in zip(depth.shown, starts, strict=True):
            self.card.text(
                start + width / 2,
                0.26 if depth.reduced else 0.1,
                f"{name} = {number}",
                self.theme.quiet,
                across="center",
                up="bottom",
            )
        for gap in np.flatnonzero(np.diff(depth.shown) > 1):
            x = (starts[gap] + width + starts[gap + 1]) / 2
            self._dots(np.array((x, low / 2)), (1, 0))
        middle = (starts[0] + starts[-1] + width) / 2
        up = 0.5 if depth.reduced else 0.34
        self._axis_name(depth, (middle, up), (0, 1))

    def heading(self):
        """The layer and the pattern, above everything."""
        left, _, _, top = self.card.box
        pattern = str(self.sets.pattern)
        self.card.text(left, top + 0.22, pattern, mono=True, bold=True)
        self.card.text(left, top + 0.22 + LINE_HEIGHT * 1.1, self.title, bold=True)

    def legend(self):
        """The sentence, the colours, the parameters, and what is left out."""
        card, theme = self.card, self.theme
        left, low, right, _ = card.box
        width = max(right - left, WIDTH)
        indent = 4 * CELL * 0.8 + 0.12

        def row(y, text):
            return card.paragraph(left + indent, y, text, width - indent) - 0.05

        y = low - 0.26
        sentence = self.sets.describe(self.center).replace(" x ", " × ")
        if text_width(sentence) > width:  # break between its two halves
            first, _, sentence = sentence.rpartition("; ")
            y = card.paragraph(left, y, first + ";", width)
        y = card.paragraph(left, y, sentence, width) - 0.08
        self._swatch(left, y)
        y = row(y, self.picked_words)
        others = self.sets.num_sets - 1
        if others:
            for i, tint in enumerate(theme.tints[: min(TINTS, others)]):
                card.cell(left + i * CELL * 0.84, y - 0.08, CELL * 0.7, 0.16, tint)
            one = "mean" if self.center else "root mean square"
            what = "the other set" if others == 1 else f"the other {others} sets, each"
            y = row(y, f"{what} with a {one} of its own")
        y = self._parameters(left, y, row)
        if self.omissions:
            words = f"Drawn: {self.omissions}; dots stand for the rest."
            card.paragraph(left, y, words, width, colour=theme.quiet)

    def _swatch(self, x, y):
        theme, width = self.theme, CELL * 0.8
        for i in range(4):
            start = x + i * width
            self.card.cell(start, y - 0.08, width, 0.16, theme.picked)
            a, b = (start + 0.05, y - 0.045), (start + width - 0.05, y + 0.045)
            self.card.quad([a, b, b, a], "none", theme.on_picked, 1.0)
        corners = [(x, y - 0.08), (x + 4 * width, y - 0.08)]
        corners += [(x + 4 * width, y + 0.08), (x, y + 0.08)]
        self.card.quad(corners, "none", theme.ink, 2.0)

    def _parameters(self, x, y, row):
        """A small picture of weight and bias, and their shape in words."""
        words = self.parameter_words
        if not self.by_default:
            words += ", off by default"
        if not self.parameter_shape:
            return self.card.paragraph(x, y, words, WIDTH) - 0.05
        named = self.parameters.split()
        depth, down, across = (
            min(
                len(line.shown),
                int(np.prod([self.sets.sizes[a] for a in line.axes if a in named])),
            )
            for line in self.lines
        )
        side = min(0.1, 4 * CELL * 0.8 / across)
        top = y + 0.05
        for i in range(depth * down):
            for k in range(across):
                where = (x + k * side, top - (i + 1) * side)
                self.card.cell(*where, side, side, self.theme.parameter)
        return min(row(y, words), top - depth * down * side - 0.15)


def _lit(colour, side):
    """The colour in the light that falls on that side of a block."""
    if side == "front":
        return colour
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    rgb = rgb + (255 - rgb) * 0.22 if side == "top" else rgb * 0.86
    return "#" + "".join(f"{round(float(part)):02x}" for part in rgb)


def _anchor(outward):
    """How text is aligned that stands outside in that direction."""
    across = {0: "center", 1: "left", -1: "right"}[int(np.sign(outward[0]))]
    return across, "center" if outward[0] else "top"


def _tuple(sizes):
    return str(tuple(int(size) for size in sizes))
