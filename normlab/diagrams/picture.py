"""A tensor as cells, coloured by set, with the name and size of every axis."""

import numpy as np

from normlab import axes
from normlab.diagrams.layout import (
    LEFT_OUT,
    cube_faces,
    form_of,
    lay_out,
    sheet_faces,
    sheet_starts,
)
from normlab.diagrams.style import (
    CELL,
    FONT_SIZE,
    LINE_HEIGHT,
    Card,
    text_width,
    theme_named,
)

MOST_AXES = 32  # a split one counts as two; NumPy before 2.0 has no more
SLANT = (0.62, 0.76)  # of a cell: one step in depth, right and up
BETWEEN = 1.1  # of a cell, between two sheets
DOT = 0.012 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])  # inches


class TensorPicture:
    """The cells of a tensor and the rulers beside them, put on a `Card`."""

    cell = CELL
    terse = False  # names of the axes alone, for small pictures
    flat = False  # no depth: sheets in place of a cube

    def __init__(self, pattern, shape, pick, center, theme, sizes):
        self.sets = sets = axes.parse(pattern).on(shape, **sizes)
        if not 1 <= len(sets.dims) <= MOST_AXES:
            raise axes.ShapeError(
                f"draw: 1 to {MOST_AXES} axes can be drawn, but the tensor has "
                f"{len(sets.dims)}. Flatten axes that are treated alike, or give a "
                "single value an axis of size 1."
            )
        if not sets.num_sets * sets.values_per_set:
            raise axes.ShapeError(
                f"draw: a tensor of shape {sets.shape} has no elements to draw. "
                "Give every axis a size of at least 1."
            )
        whole = isinstance(pick, (int, np.integer)) and not isinstance(pick, bool)
        if not whole or not 0 <= pick < sets.num_sets:
            raise ValueError(
                f"draw: pick={pick!r} is not the number of a set; there are "
                f"{sets.num_sets}, from 0 to {sets.num_sets - 1}."
            )
        self.pick, self.center = int(pick), center
        self.theme = theme_named(theme)
        self.form, names, limits = form_of(sets, self.terse, self.flat)
        self.lines = lay_out(sets, names, limits, self.pick)
        self.card = Card(self.theme)
        self.faces = []
        self.numbered = set()  # the sets whose number stands in the picture

    @property
    def omissions(self):
        """What is left out: ``3 of 64 N, 9 of 256 C``; empty when all is drawn."""
        return ", ".join(filter(None, (line.omission for line in self.lines)))

    def set_name(self, number):
        """``N = 0, G = 1``, the place of a set among the kept axes."""
        labels = [dim.label for dim in self.sets.dims if not dim.reduced]
        if not labels:
            return "all values"
        where = np.unravel_index(number, self.sets.kept_shape)
        pairs = zip(labels, where, strict=True)
        return ", ".join(f"{label} = {int(i)}" for label, i in pairs)

    def tensor(self):
        """The cells, and the name, size and role of every axis."""
        self.cells()
        if not self.terse and self.sets.num_sets > 1:
            for face in self.faces:
                self._number(face)
        depth, down, across = self.lines
        if self.form != "cube":
            self._flat_rulers(0, (self.cell, self.cell))
            return
        right, low = across.length * self.cell, -down.length * self.cell
        self._ruler(across, (0, low), (self.cell, 0), (0, -1))
        self._ruler(down, (0, 0), (0, -self.cell), (-1, 0))
        self._ruler(depth, (right, low), np.multiply(SLANT, self.cell), (1, 0))

    def cells(self):
        """The cells alone, each in the colour of its set."""
        if self.form == "cube":
            self.faces = list(cube_faces(*self.lines, SLANT))
        else:
            self.faces = list(sheet_faces(*self.lines, BETWEEN))
        for face in self.faces:
            self._face(face)

    def _colours(self, face):
        """The colour of a set, and that of what stands on it."""
        theme = self.theme
        if face.set_id == self.pick:
            return theme.picked, theme.on_picked
        return theme.tints[face.tint], theme.ink

    def _face(self, face):
        theme, picked = self.theme, face.set_id == self.pick
        base, dots = self._colours(face)
        colour = lit(base, face.side)
        corners = face.corners * self.cell
        shown = [line.shown[face.cells[:, i]] for i, line in enumerate(self.lines)]
        real = np.all(np.array(shown) != LEFT_OUT, axis=0)
        self.card.quad(corners[~real], colour, colour, 0.6)
        self.card.quad(corners[real], colour, theme.line, 0.6)
        if picked:
            # One stripe across each cell: the set shows without its colour, too.
            stripes = corners[real][:, (0, 2, 2, 0)]
            inset = 0.22 * (stripes[:, (1, 0, 0, 1)] - stripes)
            self.card.quad(stripes + inset, "none", theme.on_picked, 1.0)
        for line, ends in zip(face.plane, ((0, 1), (0, 3)), strict=True):
            cells = corners[shown[line] == LEFT_OUT]
            along = cells[:, ends[1]] - cells[:, ends[0]]
            for k in (-0.28, 0, 0.28):
                middle = cells.mean(1) + k * along
                self.card.quad(middle[:, None] + DOT, dots, dots, 0.6)
        edge = (theme.ink, 2.0) if picked else (theme.line, 0.6)
        self.card.quad(face.outline * self.cell, "none", *edge)

    def _number(self, face):
        """The number of a set in its first cell: colours repeat, numbers do not."""
        depth, down, _ = face.cells.min(0)
        if self.form == "cube":
            # In a block, where one sees it: in front, and of what is behind, on top.
            seen = {"front": depth == 0, "top": depth > 0 and down == 0}
            if not seen.get(face.side):
                return
        row = np.flatnonzero((face.cells[:, :2] == (depth, down)).all(1))
        across = self.lines[2].shown[face.cells[row, 2]]
        free = int(np.argmax(np.append(across, LEFT_OUT) == LEFT_OUT))
        words = str(face.set_id)
        width, height = text_width(words), 0.72 * FONT_SIZE / 72  # of digits
        first = face.corners[row[0]] * self.cell
        u, v = first[1] - first[0], first[3] - first[0]
        lean = 0.6 * v[0] * height / v[1]  # a slanted cell holds less
        count = int(np.ceil((width + lean) / u[0]))
        if count > free:
            return
        colour, ink = self._colours(face)
        if count > 1 or face.set_id == self.pick or face.side != "front":
            # On a clear ground; on top, without the light in which it is hard to read.
            inner = [(0.1, 0.08), (-0.1, 0.08), (-0.1, -0.08), (0.1, -0.08)]
            ground = np.array([(0, 0), (count, 0), (count, 1), (0, 1)]) + inner
            self.card.quad(first[0] + ground @ (u, v), colour, colour, 0)
        middle = first[0] + count / 2 * u + v / 2
        self.card.text(*middle, words, ink, across="center")
        self.numbered.add(face.set_id)

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
            away = 0 if spans or self.terse else 0.16
            self._dots(origin + skip * step + away * outward, step)
        if spans:
            return 0.26
        if self.terse:
            return 0.12
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
        if self.terse:
            how = {
                (0, -1): {"across": "center", "up": "top"},
                (-1, 0): {"across": "right", "rotated": True},
                (1, 0): {},
                (0, 1): {"across": "center", "up": "bottom"},
            }[tuple(outward)]
            self.card.text(x, y, line.name, role_colour, **how)
            return
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

    def _flat_rulers(self, top, cell):
        """The rulers of cells laid flat, below `top`; a cell is (width, height)."""
        depth, down, across = self.lines
        starts = cell[0] * sheet_starts(depth, across.length, BETWEEN)
        width, low = across.length * cell[0], top - down.length * cell[1]
        if down.dims:
            self._ruler(down, (0, top), (0, -cell[1]), (-1, 0))
        self._ruler(across, (0, low), (cell[0], 0), (0, -1))
        for start in starts[1:][depth.shown[1:] != LEFT_OUT]:
            self._marks(across, (start, low), (cell[0], 0), (0, -1))
        if not depth.dims:
            return
        above = top + 0.1
        if depth.reduced:
            for first, past in depth.spans:
                a, b = starts[first] + 0.02, starts[past - 1] + width - 0.02
                near, far = top + 0.09, top + 0.16
                corners = [(a, near), (a, far), (b, far), (b, near)]
                self.card.line(corners, self.theme.picked, 1.8)
            above += 0.16
        for number, start in zip(depth.shown, starts, strict=True):
            if number == LEFT_OUT:
                x = start + cell[0] / 2
                self._dots(np.array((x, (top + low) / 2)), (1, 0))
                continue
            how = {"across": "center", "up": "bottom"}
            words = f"{depth.axis} = {number}"
            self.card.text(start + width / 2, above, words, self.theme.quiet, **how)
        for gap in np.flatnonzero(np.diff(depth.at) > 1.5):
            x = (starts[gap] + width + starts[gap + 1]) / 2
            self._dots(np.array((x, (top + low) / 2)), (1, 0))
        middle = (starts[-1] + width) / 2
        self._axis_name(depth, (middle, above + 0.24), (0, 1))


def lit(colour, side):
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
