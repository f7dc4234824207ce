"""Two plain charts in the look of the course, with alt text of their own."""

from collections.abc import Mapping

import numpy as np

from normlab.diagrams import given
from normlab.diagrams.alt import describe
from normlab.diagrams.style import FONT, FONT_SIZE, theme_named

MARKERS = "osD^v"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def draw_lines(
    series, *, x=None, xlabel="", ylabel="", title="", ax=None, theme="light"
):
    """Draw named series as lines: each with a marker, a dash and a colour of its own.

    Args:
        series: a dict from names to sequences of numbers; at most five.
        x: the places on the x axis, shared by all; by default 0, 1, 2, ... Names
            (texts) are spread evenly.
        xlabel, ylabel, title: what is written beside and above.
        ax: Axes to draw on; by default those of a new figure.
        theme: ``"light"`` or ``"dark"``.

    Returns the Axes.
    Raises ValueError for no series or more than five, one of another length than x, or
    complex numbers; TypeError for what is no dict of numbers.

    >>> ax = draw_lines({"train": [3, 1], "eval": [3, 2]}, xlabel="step", ylabel="loss")
    >>> print(ax.get_label())
    Line chart of loss against step. train: from 3 to 1; eval: from 3 to 2.
    """
    if not isinstance(series, Mapping):
        what = type(series).__name__
        raise TypeError(
            f"draw_lines: series is a dict from names to numbers, not this {what}; "
            'write {"a name": numbers}.'
        )
    if not 1 <= len(series) <= len(MARKERS):
        raise ValueError(
            f"draw_lines: 1 to {len(MARKERS)} series are expected, not {len(series)}; "
            "spread more of them over several charts."
        )
    values = {
        name: given.numbers(f"draw_lines: {name!r}", line).astype(float)
        for name, line in series.items()
    }
    if x is None:
        x = range(next(iter(values.values())).size)
    x = given.listed("draw_lines: x", given.detached(x))
    for name, line in values.items():
        if line.shape != (len(x),):
            raise ValueError(
                f"draw_lines: {name!r} has shape {line.shape}, but there are {len(x)} "
                "places on the x axis; give one value for each."
            )
    look = theme_named(theme)
    ax = _plain_axes(ax, look)
    if any(isinstance(place, str) for place in x):
        ax.set_xticks(range(len(x)), x)
        x = range(len(x))
    spaced = max(1, len(x) // 10)  # a marker on every point of a long line is a smear
    for i, (name, line) in enumerate(values.items()):
        ax.plot(
            x,
            line,
            label=name,
            color=look.series[i],
            marker=MARKERS[i],
            markevery=spaced,
            markersize=5,
            linestyle=DASHES[i],
            linewidth=1.8,
        )
    font = {"family": FONT, "size": FONT_SIZE}
    ax.legend(frameon=False, prop=font, labelcolor=look.ink, handlelength=3)
    _label(ax, look, xlabel, ylabel, title)
    ends = (
        f"{name}: from {line[0]:.4g} to {line[-1]:.4g}"
        for name, line in values.items()
        if line.size
    )
    what = f"{ylabel or 'values'} against {xlabel or 'position'}"
    heading = f"{title}. " if title else ""
    describe(ax, f"{heading}Line chart of {what}. {'; '.join(ends)}.")
    return ax


def draw_images(images, titles=None, *, columns=4, theme="light"):
    """Draw images side by side, each with a line of text above it.

    Args:
        images: arrays of shape (H, W), from black at the smallest value to white at the
            largest of all images, or (H, W, 3) with values from 0 to 1, or uint8.
        titles: a text for each image.
        columns: how many stand in a row.
        theme: ``"light"`` or ``"dark"``.

    Returns an array of Axes, one for each image, on a new figure.
    Raises ValueError when there is no image, not one title for each, or an image has
    another shape or no pixels; TypeError for what is no list of arrays of numbers.

    >>> axs = draw_images([[[0, 1], [1, 0]]], ["a checkerboard"])
    >>> print(axs[0].get_label())
    Image: a checkerboard.
    """
    import matplotlib.pyplot as plt

    images = [
        given.numbers(f"draw_images: image {i}", image)
        for i, image in enumerate(given.listed("draw_images: images", images))
    ]
    titles = range(len(images)) if titles is None else titles
    titles = [str(title) for title in given.listed("draw_images: titles", titles)]
    if not images or len(images) != len(titles):
        raise ValueError(
            f"draw_images: {len(images)} images and {len(titles)} titles; give at "
            "least one image, and one title for each."
        )
    for i, image in enumerate(images):
        form = image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (3, 4))
        if not form or not image.size:
            raise ValueError(
                f"draw_images: image {i} has shape {image.shape}; (H, W) or (H, W, 3) "
                "is expected, H and W at least 1. A tensor of shape (C, H, W) becomes "
                "such an image by movedim(0, -1)."
            )
    look = theme_named(theme)
    columns = min(given.count("draw_images: columns", columns), len(images))
    rows = -(-len(images) // columns)
    side = 6.4 / max(columns, 2)
    aspect = max(image.shape[0] / image.shape[1] for image in images)
    lines = 1 + max(title.count("\n") for title in titles)
    height = side * aspect + 0.2 * lines + 0.1
    figure = plt.figure(
        figsize=(side * columns, height * rows),
        facecolor=look.background,
        layout="none",
    )
    grey = [image for image in images if image.ndim == 2]
    low = min((float(image.min()) for image in grey), default=0.0)
    high = max((float(image.max()) for image in grey), default=1.0)
    drawn = np.empty(len(images), dtype=object)
    for i, (image, title) in enumerate(zip(images, titles, strict=True)):
        row, column = divmod(i, columns)
        place = (
            (column + 0.03) / columns,
            1 - (row + 1 - 0.05 / height) / rows,
            0.94 / columns,
            (side * aspect - 0.05) / height / rows,
        )
        ax = drawn[i] = figure.add_axes(place)
        ax.imshow(image, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
        ax.set_axis_off()
        ax.set_title(title, color=look.ink, family=FONT, size=FONT_SIZE, pad=4)
        describe(ax, f"Image: {title}.".replace("\n", " "))
    return drawn


def _plain_axes(ax, look):
    """Axes in the look of the course, new ones where there are none."""
    if given.axes_or_none(ax) is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(
            figsize=(6, 3.4), facecolor=look.background, layout="constrained"
        )
        ax = figure.add_subplot()
    ax.set_facecolor(look.background)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(look.line)
    ax.grid(axis="y", color=look.line, alpha=0.25, linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def _label(ax, look, xlabel, ylabel, title):
    font = {"family": FONT, "size": FONT_SIZE, "color": look.ink}
    ax.set_xlabel(xlabel, **font)
    ax.set_ylabel(ylabel, **font)
    ax.set_title(title, weight="bold", loc="left", **font)
    ax.tick_params(
        colors=look.quiet, labelsize=FONT_SIZE, labelfontfamily=FONT, length=3
    )
