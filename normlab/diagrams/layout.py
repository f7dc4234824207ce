"""Where the cells of a picture go, and to which set each belongs. No matplotlib here.

A picture has up to three lines along which cells are laid out (depth, down, across). A
line holds one axis of the tensor, or several that are flattened. The number of a cell's
set is a sum with one term from each line, so the work grows with the cells that are
drawn, never with the tensor.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from normlab.axes import Pattern

GAP = 0.32  # of a cell, between two sets
SKIP = 1.0  # of a cell, where positions are left out
TINTS = 4
LEFT_OUT = -1  # in place of a position: a cell that stands for those left out


@dataclass(frozen=True)
class Line:
    """One direction of the picture: the positions drawn, and their share of the id."""

    dims: tuple  # dimensions of the split tensor that lie along it
    sizes: tuple[int, ...]
    shown: np.ndarray  # which positions are drawn, or LEFT_OUT
    ids: np.ndarray  # what each adds to the number of its set
    at: np.ndarray  # where each is drawn, in cells from the start

    @property
    def size(self):
        """How many positions the tensor has along this line."""
        return math.prod(self.sizes)

    @property
    def length(self):
        """The length of the line, in cells."""
        return float(self.at[-1]) + 1

    @property
    def skips(self):
        """The middle of each gap where whole sets are left out, in cells."""
        after = np.flatnonzero(np.diff(self.at) > 1.5)
        return (self.at[after] + 1 + self.at[after + 1]) / 2

    @property
    def runs(self):
        """(first, past the last) of the drawn neighbours that touch."""
        cuts = np.flatnonzero(np.diff(self.at) > 1) + 1
        return list(zip([0, *cuts], [*cuts, len(self.at)], strict=True))

    @property
    def spans(self):
        """(first, past the last) of the drawn neighbours with the same statistics."""
        cuts = np.flatnonzero(np.diff(self.ids)) + 1
        return list(zip([0, *cuts], [*cuts, len(self.ids)], strict=True))

    @property
    def tints(self):
        """One of `TINTS` for each position; neighbours with other statistics differ."""
        near = {}
        for one, two in pairwise(self.ids.tolist()):
            near.setdefault(one, set()).add(two)
            near.setdefault(two, set()).add(one)
        found = {}
        for rank, number in enumerate(np.unique(self.ids).tolist()):
            taken = {found.get(other) for other in near.get(number, set()) - {number}}
            tints = ((rank + k) % TINTS for k in range(TINTS))
            found[number] = next(tint for tint in tints if tint not in taken)
        return np.array([found[number] for number in self.ids.tolist()])

    @property
    def deep_tints(self):
        """The same in steps of two where that does: along the depth, a chessboard."""
        double = 2 * self.tints % TINTS
        alike = (np.diff(double) == 0) & (np.diff(self.ids) != 0)
        return self.tints if alike.any() else double

    @property
    def kept(self):
        """Labels of the dimensions along this line that are kept."""
        return tuple(dim.label for dim in self.dims if not dim.reduced)

    @property
    def reduced(self):
        """Labels of the dimensions along this line that are reduced."""
        return tuple(dim.label for dim in self.dims if dim.reduced)

    @property
    def name(self):
        """The notation of this line and its size: ``(G [C/G]) = 4 x 2``."""
        sizes = " × ".join(map(str, self.sizes))
        return f"{Pattern(self.dims)} = {sizes}"

    @property
    def role(self):
        """``kept``, ``averaged``, or which dimension is which."""
        if not self.reduced:
            return "kept"
        if not self.kept:
            return "averaged"
        return f"{', '.join(self.kept)} kept, {', '.join(self.reduced)} averaged"

    @property
    def axes(self):
        """Names of the tensor's axes along this line."""
        return tuple(dict.fromkeys(dim.axis for dim in self.dims))

    @property
    def axis(self):
        """What lies along this line, in plain letters: ``C``, ``H·W``."""
        return "·".join(self.axes)

    @property
    def omission(self):
        """``9 of 25 H·W`` where positions are left out, else the empty text."""
        drawn = np.count_nonzero(self.shown != LEFT_OUT)
        return "" if drawn == self.size else f"{drawn} of {self.size} {self.axis}"


def few(size, limit, wanted):
    """All positions up to `limit`; of more, the first ones, `wanted`, and the last."""
    if size <= limit:
        return np.arange(size)
    count = max(limit - 2, min(limit, 3))  # worth the dots in place of the others
    chosen = {*range(count - 1), size - 1}
    if wanted not in chosen:
        chosen = {*range(count - 2), wanted, size - 1}
    return np.array(sorted(chosen))


def lay_out(sets, names, limits, pick):
    """A `Line` for each tuple of axis names, with at most so many positions each.

    The set `pick` is always among what is drawn.
    """
    strides = _strides(sets)
    position = np.unravel_index(pick, sets.kept_shape) if sets.kept_shape else ()
    position = iter(position)
    wanted = [0 if dim.reduced else int(next(position)) for dim in sets.dims]
    lines = []
    for axes, limit in zip(names, limits, strict=True):
        here = [
            i for axis in axes for i, dim in enumerate(sets.dims) if dim.axis == axis
        ]
        kept = [i for i in here if not sets.dims[i].reduced]
        sizes = tuple(sets.split_shape[i] for i in here)
        must = [wanted[i] for i in here]
        first = int(np.ravel_multi_index(must, sizes)) if here else 0
        split = len(axes) == 1 and len(here) == 2
        if split or (0 < len(kept) < len(here) and here[: len(kept)] == kept):
            # Whole groups or sets, abridged: some of them, and some places in each.
            cut = 1 if split else len(kept)
            outside, inside = math.prod(sizes[:cut]), math.prod(sizes[cut:])
            inner = min(inside, max(3, limit // outside))
            outer = max(2, limit // inner)
            which, where = divmod(first, inside)
            parts = few(outside, outer, which), few(inside, inner, where)
            shown = np.add.outer(parts[0] * inside, parts[1]).ravel()
        else:
            shown = few(math.prod(sizes), limit, first)
        ids = np.zeros(len(shown), dtype=int)
        if here:
            places = np.unravel_index(shown, sizes)
            ids = sum(strides[i] * place for i, place in zip(here, places, strict=True))
        # Left out inside a set: one cell stands for the rest, and the set stays whole.
        inside = np.flatnonzero((np.diff(shown) > 1) & (np.diff(ids) == 0)) + 1
        shown = np.insert(shown, inside, LEFT_OUT)
        ids = np.insert(ids, inside, ids[inside])
        step = np.where(np.diff(ids) != 0, 1 + GAP, 1.0)
        step[(np.diff(shown) > 1) & (shown[:-1] != LEFT_OUT)] = 1 + SKIP
        at = np.concatenate([[0.0], np.cumsum(step)])
        dims = tuple(sets.dims[i] for i in here)
        lines.append(Line(dims, sizes, shown, ids, at))
    return lines


def _strides(sets):
    """By how much the set's number grows with one step along each dimension."""
    strides, step = [], 1
    for dim, size in zip(reversed(sets.dims), reversed(sets.split_shape), strict=True):
        strides.append(0 if dim.reduced else step)
        step *= 1 if dim.reduced else size
    return strides[::-1]


def form_of(sets, small=False, flat=False):
    """How a tensor of this rank is drawn: (form, axis names per line, limits).

    One axis is a row and two are a grid; three are sheets side by side; four or more
    are a cube: the first axis in depth, C across, and the rest flattened downwards;
    or, with `flat`, sheets of the same lines.
    """
    axes = sets.axes
    if len(axes) == 1:
        return "row", [(), (), axes], (1, 1, 14)
    if len(axes) == 2:
        return "grid", [(), axes[:1], axes[1:]], (1, 7, 9 if small else 12)
    across = axes[2] if len(axes) == 3 else "C" if "C" in axes[1:] else axes[1]
    # What is averaged innermost, so that each set is in one piece.
    averaged = {dim.axis for dim in sets.dims if dim.reduced}
    rest = [axis for axis in axes[1:] if axis != across]
    rest = tuple(sorted(rest, key=averaged.__contains__))
    lines = [axes[:1], rest, (across,)]
    if len(axes) > 3 and not flat:
        return "cube", lines, (4, 9, 9)
    samples = min(sets.shape[0], 4 if sets.sizes[across] <= 4 else 3)
    rows, wide = (6, 15) if small else (7, 21)
    return "sheets", lines, (samples, rows, max(wide // 4, wide // samples))


@dataclass(frozen=True)
class Face:
    """Cells of one set that touch, seen from one side, ready to be drawn in order."""

    side: str  # front, top or side
    set_id: int
    tint: int
    corners: np.ndarray  # (k, 4, 2), in cells
    cells: np.ndarray  # (k, 3): depth, down, across, as indices into `shown`
    outline: np.ndarray  # (4, 2)

    @property
    def plane(self):
        """Which lines (0 depth, 1 down, 2 across) its two directions follow."""
        return {"front": (2, 1), "top": (2, 0), "side": (0, 1)}[self.side]


def _grid(origin, us, vs, u, v):
    """Corners of the cells at steps us along u and vs along v, and of all together."""
    u, v, origin = np.array(u), np.array(v), np.array(origin)
    left, low = (grid.reshape(-1, 1) for grid in np.meshgrid(us, vs, indexing="ij"))
    start = origin + left * u + low * v
    corners = np.stack([start, start + u, start + u + v, start + v], axis=1)
    a, b = origin + us[0] * u + vs[0] * v, (len(us) * u, len(vs) * v)
    return corners, np.array([a, a + b[0], a + b[0] + b[1], a + b[1]])


def _blocks(depth, down, across):
    """The runs of touching cells of one set, from the back to the front."""
    tints = depth.deep_tints, down.tints, across.tints
    for d0, d1 in reversed(depth.runs):
        for v0, v1 in reversed(down.runs):
            for c0, c1 in across.runs:
                set_id = int(depth.ids[d0] + down.ids[v0] + across.ids[c0])
                tint = int(tints[0][d0] + tints[1][v0] + tints[2][c0]) % TINTS
                yield (d0, d1), (v0, v1), (c0, c1), set_id, tint


def cube_faces(depth, down, across, slant):
    """The visible faces of a block of cells, from the back to the front.

    The front stays square; one step in depth goes by `slant`, up and to the right.
    """
    for ds, vs, cs, set_id, tint in _blocks(depth, down, across):
        x, y, z = across.at[slice(*cs)], -down.at[slice(*vs)] - 1, depth.at[slice(*ds)]
        n, v, c = (np.arange(*run) for run in (ds, vs, cs))
        right, upper, near = x[-1] + 1, y[0] + 1, np.multiply(z[0], slant)
        down_up = y[::-1]
        sides = (
            # side, origin, steps along u and v, u, v, cells
            ("side", (right, 0), z, down_up, slant, (0, 1), (n, v[::-1], c[-1:])),
            ("top", (0, upper), x, z, (1, 0), slant, (c, n, v[:1])),
            ("front", near, x, down_up, (1, 0), (0, 1), (c, v[::-1], n[:1])),
        )
        order = {"side": (0, 1, 2), "top": (1, 2, 0), "front": (2, 1, 0)}
        for side, origin, us, vv, u, w, cells in sides:
            corners, outline = _grid(origin, us, vv, u, w)
            grid = np.stack(np.meshgrid(*cells, indexing="ij"), -1).reshape(-1, 3)
            yield Face(side, set_id, tint, corners, grid[:, order[side]], outline)


def sheet_faces(depth, down, across, between):
    """The same cells laid flat: a sheet for each position in depth, side by side."""
    starts = sheet_starts(depth, across.length, between)
    for (d0, d1), vs, cs, set_id, tint in _blocks(depth, down, across):
        for d in range(d0, d1):
            if depth.shown[d] == LEFT_OUT:
                continue
            x = across.at[slice(*cs)]
            y = (-down.at[slice(*vs)] - 1)[::-1]
            corners, outline = _grid((starts[d], 0), x, y, (1, 0), (0, 1))
            v, c = np.arange(*vs)[::-1], np.arange(*cs)
            grid = np.stack(np.meshgrid(c, v, [d], indexing="ij"), -1).reshape(-1, 3)
            yield Face("front", set_id, tint, corners, grid[:, (2, 1, 0)], outline)


def sheet_starts(depth, length, between):
    """Where each sheet begins, in cells; one that is left out is one cell wide."""
    widths = np.where(depth.shown == LEFT_OUT, 1.0, length) + between
    steps = widths[:-1] + SKIP * (np.diff(depth.at) > 1.5)
    return np.concatenate([[0.0], np.cumsum(steps)])
