"""A still picture of a tensor's sets, for pages on which no script runs."""

import html
import math
from itertools import product

from normlab.diagrams.style import THEMES
from normlab.widgets.base import COLOUR_STEPS

_THEME = THEMES["light"]  # bordered cells: they show on dark pages, too
_MOST_CELLS = 1000
_CELL = 10
_GAPS = (1, 7, 18)


def still(sets, label):
    """An SVG of the cells of `sets` in the colour of their set, the first one picked.

    Of a large tensor the first cells along each axis are drawn, and a line says so;
    `label` is what a screen reader says.
    """
    counts = list(sets.shape)
    while math.prod(counts) > _MOST_CELLS:
        counts[counts.index(max(counts))] -= 1
    strides = _strides(counts)
    paths = dict.fromkeys((_THEME.picked, *_THEME.tints), "")
    for cell, colour in _coloured_cells(sets, counts):
        x, y = (
            sum(at * step for at, step in zip(cell, steps, strict=True))
            for steps in strides
        )
        paths[colour] += f"M{x} {y}h{_CELL}v{_CELL}h-{_CELL}z"
    width, height = (
        _CELL + sum((n - 1) * step for n, step in zip(counts, steps, strict=True))
        for steps in strides
    )
    left_out = [
        f"{some} of {size} along {html.escape(name)}"
        for name, some, size in zip(sets.axes, counts, sets.shape, strict=True)
        if some < size
    ]
    note = f"<p>Drawn: the first {', '.join(left_out)}.</p>" if left_out else ""
    look = f'stroke="{_THEME.line}" stroke-width=".6"'
    drawn = "".join(f'<path fill="{c}" {look} d="{d}"/>' for c, d in paths.items() if d)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" style="max-width: 100%; '
        f'height: auto" aria-label="{html.escape(label)}">{drawn}</svg>{note}'
    )


def _strides(counts):
    """How far apart neighbours along each axis are drawn, to the right and down.

    From the last axis on, they run by turns right and down, as on the live picture.
    """
    steps = ([0] * len(counts), [0] * len(counts))
    extents = [_CELL, _CELL]
    for level, axis in enumerate(reversed(range(len(counts)))):
        way = level % 2
        steps[way][axis] = extents[way] + _GAPS[level // 2]
        extents[way] += (counts[axis] - 1) * steps[way][axis]
    return steps


def _coloured_cells(sets, counts):
    """Yield the index of every drawn cell, and the colour of its set."""
    names, splits = sets.pattern.axes, {}
    for dim, size in zip(sets.dims, sets.split_shape, strict=True):
        splits.setdefault(dim.axis, []).append((dim.reduced, size))
    for cell in product(*map(range, counts)):
        kept = []
        for name, at in zip(names, cell, strict=True):
            parts = splits[name]
            within = [at] if len(parts) == 1 else divmod(at, parts[1][1])
            kept += [
                i for i, (reduced, _) in zip(within, parts, strict=True) if not reduced
            ]
        steps = zip(reversed(kept), COLOUR_STEPS, strict=False)
        tint = sum(i * step for i, step in steps) % len(_THEME.tints)
        yield cell, _THEME.tints[tint] if any(kept) else _THEME.picked
