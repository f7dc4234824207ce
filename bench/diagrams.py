"""How long a diagram takes, against `Axes3D.voxels` for the same cells.

Processor time, since both use one thread: other programs on the machine do not count.
"""

import statistics
import time

PATTERN = "N (G [C/G]) [H W]"
SHAPE = (4, 6, 3, 3)  # drawn as 4 x 6 x 9 cells, none left out
LARGE = (64, 256, 56, 56)
ROUNDS = 9


def table():
    """Rows of texts, the header first: what is drawn, milliseconds, against voxels."""
    import matplotlib

    matplotlib.use("Agg")
    ours = {
        "4x6x9 cells alone": cells,
        f"draw_sets{SHAPE}, axes and text": lambda _: diagram(SHAPE, 3),
        f"draw_sets{LARGE}, axes and text": lambda _: diagram(LARGE, 32),
    }
    rows = [("diagram", "ms", "Axes3D.voxels, ms", "ratio")]
    for name, draw in ours.items():
        # One after the other in each round, so that a slow moment slows both.
        times = [(_time(draw), _time(voxels, "3d")) for _ in range(ROUNDS)]
        one, two = (statistics.median(part) for part in zip(*times, strict=True))
        rows.append((name, f"{one:.1f}", f"{two:.1f}", f"{one / two:.3f}"))
    return rows


def cells(ax):
    """The cells of a GroupNorm, without axes and text, as `voxels` draws them."""
    from normlab.diagrams.sets import SetsPicture

    picture = SetsPicture(PATTERN, SHAPE, None, 0, True, "light", {"G": 3})
    picture.cells()
    picture.card.draw(ax, "").figure.canvas.draw()


def diagram(shape, groups):
    """A whole diagram."""
    from normlab.diagrams import draw_sets

    draw_sets(PATTERN, shape, G=groups).figure.canvas.draw()


def voxels(ax):
    """The same cells, coloured alike, by `Axes3D.voxels`; without axes and text."""
    from matplotlib import colormaps

    from normlab import axes

    ids = axes.parse(PATTERN).on(SHAPE, G=3).set_ids.reshape(4, 6, 9)
    ax.set_axis_off()
    ax.voxels(ids >= 0, facecolors=colormaps["viridis"](ids / 11), edgecolor="k")
    ax.figure.canvas.draw()


def _time(draw, projection=None):
    """Milliseconds that `draw` takes, given empty Axes."""
    import matplotlib.pyplot as plt

    ax = plt.figure().add_subplot(projection=projection)
    ax.figure.canvas.draw()
    start = time.process_time()
    draw(ax)
    spent = 1000 * (time.process_time() - start)
    plt.close("all")
    return spent
