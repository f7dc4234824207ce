"""The norms side by side on one tensor, taken from the table of layers."""

import numpy as np

from normlab import axes
from normlab.diagrams import given
from normlab.diagrams.sets import SetsPicture, picked_swatch
from normlab.diagrams.style import CELL, LINE_HEIGHT, MARGIN, Card, theme_named


class Panel(SetsPicture):
    """One norm of a comparison: smaller cells, fewer words."""

    cell = 0.6 * CELL
    terse = True

    @property
    def alt(self):
        """Which axes this norm averages over, and how many values that makes."""
        reduced = ", ".join(self.sets.pattern.reduced)
        said = self.sets.describe(self.center).partition(":")[0]
        return f"{self.title} averages over {reduced}: {said}."

    def whole(self):
        self.tensor()
        self.heading()
        said = self.sets.describe(self.center)
        said = said.replace("mean squares", "mean square values")
        said = said.replace("root mean square", "RMS").rstrip(".")
        first, _, count = said.rpartition("; ")
        words = "no weight, no bias"
        if self.parameter_shape:
            words = "weight, bias: " if self.bias else "weight: "
            words += str(self.parameter_shape) + (
                "" if self.by_default else " if wanted"
            )
        left, low, _, _ = self.card.box
        for i, text in enumerate((first.partition(":")[0], count, words)):
            self.card.text(left, low - 0.2 - i * LINE_HEIGHT, text)
        return self.card


def how_to_read(theme, abridged):
    """What the colours and brackets of the small pictures mean."""
    card = Card(theme)
    card.text(0, 0, "How to read this", bold=True)
    picked_swatch(card, 0, -0.32)
    y = card.paragraph(0.95, -0.32, "one set: all its values share one mean", 1.9)
    for i, tint in enumerate(theme.tints):
        card.cell(i * CELL * 0.84, y - 0.18, CELL * 0.7, 0.16, tint)
    others = "other sets, each with a mean of its own; colours repeat"
    y = card.paragraph(0.95, y - 0.1, others, 1.9)
    card.text(0, y - 0.1, "[H W]", theme.picked)
    y = card.paragraph(0.95, y - 0.1, "in brackets: averaged over", 1.9)
    card.text(0, y - 0.1, "N", theme.quiet)
    y = card.paragraph(0.95, y - 0.1, "without: kept, each position apart", 1.9)
    if abridged:
        card.text(0, y - 0.1, "···", theme.ink, bold=True)
        card.paragraph(0.95, y - 0.1, "cells that are not drawn", 1.9)
    return card


def norms_on(rank):
    """(norm, pattern, centered) of each norm that takes tensors of so many axes.

    Taken from `axes.LAYERS`. A norm without a row of that rank that takes any number
    of trailing axes gets all axes but the first.

    >>> [pattern for _, pattern, _ in norms_on(2)]
    ['[N] C', 'N [D]', 'N (G [C/G])', 'N [D]']
    """
    rows = {row.norm: [] for row in axes.LAYERS}
    for row in axes.LAYERS:
        if len(row.pattern.axes) == rank:
            rows[row.norm].append(row)
    names = next((each[0].pattern.axes for each in rows.values() if each), None)
    if names is None:
        known = sorted({len(row.pattern.axes) for row in axes.LAYERS})
        raise axes.ShapeError(
            f"draw_comparison: a tensor of {rank} axes is in no row of axes.LAYERS; "
            f"give a shape of {known[0]} to {known[-1]} axes."
        )
    trailing = f"{names[0]} [{' '.join(names[1:])}]"
    found = []
    for norm, fitting in rows.items():
        center = all(row.center for row in axes.LAYERS if row.norm == norm)
        layer = axes.parse(trailing).layer(center)
        if fitting:
            found.append((norm, fitting[0].statistics, center))
        elif layer is not None and layer.norm == norm:
            found.append((norm, trailing, center))
    return found


def draw_comparison(shape, G=2, *, columns=3, theme="light"):
    """Draw the norms side by side on one tensor: which elements share a mean in each.

    Each norm's pattern is that of `axes.LAYERS` for a tensor of so many axes. The set
    of the first element is picked out in each picture.

    Args:
        shape: of the tensor, 2 to 5 axes.
        G: the number of groups of GroupNorm.
        columns: how many pictures stand in a row.
        theme: ``"light"`` or ``"dark"``.

    Returns an array of Axes, one for each norm, on a new figure.
    Raises `axes.ShapeError` when the shape has another number of axes, or when G does
    not divide the number of channels; ValueError when `columns` is below 1, TypeError
    for what is no shape or no whole number.

    >>> for ax in draw_comparison((4, 8, 5, 5), G=4):
    ...     print(ax.get_label().split(".")[0])
    BatchNorm2d(8) averages over N, H, W: 100 values share each mean
    LayerNorm((8, 5, 5)) averages over C, H, W: 200 values share each mean
    InstanceNorm2d(8) averages over H, W: 25 values share each mean
    GroupNorm(4, 8) averages over C/G, H, W: 50 values share each mean
    RMSNorm((8, 5, 5)) averages over C, H, W: 200 values share each root mean square
    """
    import matplotlib.pyplot as plt

    shape = tuple(given.listed("draw_comparison: shape", shape))
    columns = given.count("draw_comparison: columns", columns)
    panels = []
    for _, pattern, center in norms_on(len(shape)):
        groups = {"G": G} if axes.parse(pattern).groups else {}
        panels.append(Panel(pattern, shape, None, 0, center, theme, groups))
    cards = [panel.whole() for panel in panels]
    abridged = any(panel.omissions for panel in panels)
    cards.append(how_to_read(theme_named(theme), abridged))
    columns = min(columns, len(cards))
    places = [divmod(i, columns) for i in range(len(cards))]
    boxes = np.array([card.box for card in cards])
    heights, widths = np.zeros(places[-1][0] + 1), np.zeros(columns)
    for (row, column), size in zip(places, boxes[:, 2:] - boxes[:, :2], strict=True):
        widths[column] = max(widths[column], size[0] + 2 * MARGIN)
        heights[row] = max(heights[row], size[1] + 2 * MARGIN)
    whole = (widths.sum(), heights.sum())
    back = panels[0].theme.background
    figure = plt.figure(figsize=whole, facecolor=back, layout="none")
    drawn = np.empty(len(cards), dtype=object)
    for i, ((row, column), card) in enumerate(zip(places, cards, strict=True)):
        left, _, _, top = boxes[i]
        width, height = widths[column], heights[row]
        right, low = left + width - 2 * MARGIN, top - height + 2 * MARGIN
        card.frame = (left, low, right, top)
        x, y = widths[:column].sum(), whole[1] - heights[: row + 1].sum()
        place = (x / whole[0], y / whole[1], width / whole[0], height / whole[1])
        alt = panels[i].alt if i < len(panels) else ""
        drawn[i] = card.draw(figure.add_axes(place), alt)
    return drawn[:-1]
