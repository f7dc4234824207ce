"""BatchNorm's two data flows: what it reads and what it writes, train against eval."""

from itertools import pairwise

from normlab.diagrams.style import LINE_HEIGHT, Card, text_width, theme_named

GAP = 0.42  # inches between two boxes of the main line
STEPS = (
    ("x", "input"),
    ("(x − mean) / √(var + eps)", "normalize"),
    ("× weight + bias", "scale and shift"),
    ("y", "output"),
)


def draw_flow(*, ax=None, theme="light"):
    """Draw how BatchNorm computes its output in train and in eval.

    In train the statistics come from the batch, and the running buffers are updated on
    the way; in eval they come from the buffers, and nothing is written. Parameters and
    buffers are told apart by their names, their borders and their colours.

    Args:
        ax: Axes to draw on; by default those of a new figure.
        theme: ``"light"`` or ``"dark"``.

    Returns the Axes.

    >>> print(draw_flow().get_label().split(". ")[0])
    BatchNorm in two modes
    """
    card = Card(theme_named(theme))
    top = _mode(card, 0.0, training=True)
    _mode(card, top - 0.55, training=False)
    alt = (
        "BatchNorm in two modes. In train, mean and variance of the batch normalize "
        "the input and update the buffers running_mean and running_var with momentum; "
        "in eval, the buffers normalize it, and nothing is updated. In both, the "
        "parameters weight and bias scale and shift the result"
    )
    return card.draw(ax, alt + ".")


def _mode(card, top, training):
    """One of the two flows; returns the height where it ends."""
    theme = card.theme
    title = "train(): statistics of this batch"
    card.text(
        0, top, title if training else "eval(): statistics of the buffers", bold=True
    )
    line, x, boxes = top - 0.62, 0.0, []
    for text, caption in STEPS:
        box = _Box(card, x + _width([text]) / 2, line, [text])
        card.text(box.middle, line + 0.3, caption, theme.quiet, across="center")
        boxes.append(box)
        x = box.right + GAP
    for one, two in pairwise(boxes):
        _arrow(card, [(one.right, line), (two.left, line)])
    source, normalize, affine, _ = boxes
    under = boxes[0].bottom

    low = line - 0.95
    parameters = _Box(card, affine.middle, low, ["weight", "bias"], theme.parameter)
    _arrow(card, [(affine.middle, parameters.top), (affine.middle, under)])
    _note(card, parameters, ["parameters: the", "optimizer learns them"])

    x, level = normalize.middle, low - 1.0 if training else low
    buffers = _Box(card, x, level, ["running_mean", "running_var"], theme.buffer, True)
    if not training:
        _arrow(card, [(x, buffers.top), (x, under)])
        _note(card, buffers, ["buffers: read,", "not written"])
        return low - 0.85
    batch = _Box(card, x, low, ["mean, var of", "the batch"])
    _arrow(card, [(x, batch.top), (x, under)])
    _arrow(card, [(source.middle, under), (source.middle, low), (batch.left, low)])
    _arrow(card, [(x, batch.bottom), (x, buffers.top)])
    middle = (batch.bottom + buffers.top) / 2
    card.text(x - 0.12, middle, "update, by momentum", theme.quiet, across="right")
    _note(card, buffers, ["buffers: written,", "not read"])
    y = level - 0.95
    card.text(0, y, "running = (1 − momentum) · running + momentum · batch")
    y -= LINE_HEIGHT
    rest = "var divides by m, the values per channel; in running_var by m − 1"
    card.text(0, y, rest, theme.quiet)
    return y


class _Box:
    """A box of centred lines of text; its edges are where arrows meet it."""

    def __init__(self, card, middle, y, words, fill="none", double=False):
        width, height = _width(words), LINE_HEIGHT * len(words) + 0.1
        self.middle, self.left, self.right = (
            middle,
            middle - width / 2,
            middle + width / 2,
        )
        self.top, self.bottom = y + height / 2, y - height / 2
        ink = card.theme.ink
        card.cell(self.left, self.bottom, width, height, fill, ink, 1.2)
        if double:  # a second border inside: saved with the model, but not learned
            corner = (self.left + 0.035, self.bottom + 0.035)
            card.cell(*corner, width - 0.07, height - 0.07, "none", ink, 0.8)
        for i, word in enumerate(words):
            level = y + LINE_HEIGHT * ((len(words) - 1) / 2 - i)
            card.text(middle, level, word, across="center")


def _width(words):
    return max(map(text_width, words)) + 0.22


def _note(card, box, lines):
    for i, line in enumerate(lines):
        y = box.bottom - 0.16 - i * LINE_HEIGHT
        card.text(box.middle, y, line, card.theme.quiet, across="center")


def _arrow(card, points):
    """A line through the points, with a head at the last."""
    (x0, y0), (x1, y1) = points[-2:]
    length = max(abs(x1 - x0), abs(y1 - y0))
    u = ((x1 - x0) / length, (y1 - y0) / length)
    back = (x1 - 0.1 * u[0], y1 - 0.1 * u[1])
    side = (-0.05 * u[1], 0.05 * u[0])
    card.line([*points[:-1], back], card.theme.ink, 1.2)
    head = [(x1, y1), (back[0] + side[0], back[1] + side[1])]
    head += [(back[0] - side[0], back[1] - side[1]), (x1, y1)]
    card.quad(head, card.theme.ink, card.theme.ink, 0.4)
