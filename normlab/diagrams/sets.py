"""Reduction-axis diagrams: which elements of a tensor share one mean."""

import math

from normlab.diagrams.picture import TensorPicture
from normlab.diagrams.style import CELL, LINE_HEIGHT, text_width

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

    Cells that touch share a mean; a gap or another colour means another set. Colours
    repeat, so each set that has room bears its number, from 0 on in the order of the
    kept axes. One set, number `pick`, stands out by a strong colour, stripes and an
    outline. Under a kept axis each position is numbered; a reduced axis has one
    bracket, as in the pattern. Large tensors are drawn abridged, and the picture says
    so.

    Args:
        pattern: such as ``"N (G [C/G]) [H W]"``; see `normlab.axes.parse`.
        shape: the tensor's shape. One axis is drawn as a row, two as a grid, three as
            sheets, four and more as a cube with the last axes flattened, the
            averaged ones innermost, so that each set is in one piece.
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
    and ValueError for a `pick` or `theme` that there is not, a tensor without elements
    or axes, or one of more than 32 axes; TypeError for an `ax` that is no Axes.

    >>> ax = draw_sets("N (G [C/G]) [H W]", (4, 8, 5, 5), G=4)
    >>> print(ax.get_label().split(". ")[0])
    GroupNorm(4, 8) on a tensor (N, C, H, W) = (4, 8, 5, 5), pattern N (G [C/G]) [H W]
    """
    picture = SetsPicture(pattern, shape, parameters, pick, center, theme, sizes)
    return picture.whole().draw(ax, picture.alt)


class SetsPicture(TensorPicture):
    """One reduction-axis diagram: the tensor, a title above, an explanation below."""

    def __init__(self, pattern, shape, parameters, pick, center, theme, sizes):
        super().__init__(pattern, shape, pick, center, theme, sizes)
        if not isinstance(parameters, str | None):
            raise TypeError(
                "draw: parameters names axes in a text such as 'C', '' for none; this "
                f"is of type {type(parameters).__name__}."
            )
        self.layer = self.sets.pattern.layer(center, parameters)
        self.call = self.layer.call(self.sets, parameters) if self.layer else None
        self.by_default, self.bias = True, True
        if self.layer:
            self.bias = self.layer.bias
            if parameters is None:
                self.by_default = self.layer.affine
                parameters = " ".join(self.layer.parameters_in(self.sets.pattern))
        self.parameters = parameters or ""
        self.parameter_shape = self.sets.parameter_shape(self.parameters)

    # -- what it says

    @property
    def title(self):
        """The layer, or that there is none."""
        return self.call or "No built-in layer does this"

    @property
    def picked_words(self):
        """``set 0: N = 0, G = 0``, the name of the picked set."""
        return f"set {self.pick}: {self.set_name(self.pick)}"

    @property
    def parameter_words(self):
        """Which parameters there are, and of which shape."""
        if not self.parameter_shape:
            return "no weight and no bias"
        both = "weight and bias" if self.bias else "weight (no bias)"
        along = " and ".join(self.parameters.split())
        words = f"{both}: shape {_tuple(self.parameter_shape)}, one for each {along}"
        return words if self.by_default else f"{words}, off by default"

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
        if text_width(sentence) > width and "; " in sentence:
            # Better broken between its two halves than anywhere.
            first, _, sentence = sentence.rpartition("; ")
            y = card.paragraph(left, y, first + ";", width)
        y = card.paragraph(left, y, sentence, width) - 0.08
        picked_swatch(card, left, y)
        y = row(y, self.picked_words)
        others = self.sets.num_sets - 1
        if others:
            used = {face.tint for face in self.faces if face.set_id != self.pick}
            for i, tint in enumerate(sorted(used)):
                where = (left + i * CELL * 0.84, y - 0.08)
                card.cell(*where, CELL * 0.7, 0.16, theme.tints[tint])
            one = "mean" if self.center else "root mean square"
            what = "the other set" if others == 1 else f"the other {others} sets, each"
            what = f"{what} with a {one} of its own"
            if others > len(theme.tints):
                what += "; colours repeat" + ", numbers do not" * bool(self.numbered)
            y = row(y, what)
        y = self._parameters(left, y, row)
        if self.omissions:
            words = f"Drawn: {self.omissions}; dots stand for the rest."
            card.paragraph(left, y, words, width, colour=theme.quiet)

    def _parameters(self, x, y, row):
        """A small picture of weight and bias, and their shape in words."""
        words = self.parameter_words
        if not self.parameter_shape:
            return self.card.paragraph(x, y, words, WIDTH) - 0.05
        along = self.sets.parameter_broadcast_shape(self.parameters)
        sizes = dict(zip(self.sets.axes, along, strict=True))
        depth, down, across = (
            min(len(line.shown), math.prod(sizes[axis] for axis in line.axes))
            for line in self.lines
        )
        side = min(0.1, 4 * CELL * 0.8 / across)
        top = y + 0.05
        for i in range(depth * down):
            for k in range(across):
                where = (x + k * side, top - (i + 1) * side)
                self.card.cell(*where, side, side, self.theme.parameter)
        return min(row(y, words), top - depth * down * side - 0.15)


def picked_swatch(card, x, y):
    """Four cells that look like those of the picked set, for a legend."""
    width = CELL * 0.8
    for i in range(4):
        start = x + i * width
        card.cell(start, y - 0.08, width, 0.16, card.theme.picked)
        a, b = (start + 0.05, y - 0.045), (start + width - 0.05, y + 0.045)
        card.quad([a, b, b, a], "none", card.theme.on_picked, 1.0)
    card.cell(x, y - 0.08, 4 * width, 0.16, "none", card.theme.ink, 2.0)


def _tuple(sizes):
    return str(tuple(int(size) for size in sizes))
