"""The statistics once more, as a compiler turns them into short loops.

torch.compile makes one loop of each line, and around them one over the sets. Two habits
of it cost most of the time, and the lines here work around both. In a sum each addition
waits for the one before: a long set is summed as two halves side by side. And of what
it computes for each set it keeps the sums alone; the square root and the division after
them, which take longer than all the rest, it does again for every few values of the
output. So the scale is made to look like one more sum.
"""

import functools

import torch

from normlab import _slices

__all__ = ["allowed", "center_and_scale"]

LONG = 2**11  # values in a set; in a short one, two halves make worse use of the cache
FEW = 16  # values that a processor handles at once; of 8 or less it makes no loop


def allowed(x, *parameters):
    """Whether a graph without gradients is being made, for a processor."""
    tensors = [t for t in (x, *parameters) if t is not None]
    return torch.compiler.is_compiling() and _slices.unrecorded(x, tensors)


def center_and_scale(x, dims, eps):
    """x less its mean over the last len(dims) axes, and 1 / sqrt(var + eps)."""
    flat = x.flatten(-len(dims))
    n = flat.shape[-1]
    parts = flat.chunk(2, -1) if _known(n >= LONG) and _known(n % 2 == 0) else [flat]

    def average(parts):
        return functools.reduce(torch.add, parts).sum(-1, keepdim=True) / n

    mean = average(parts)
    var = average([(part - mean).square() for part in parts])
    scale = torch.rsqrt(var + eps)
    scale = _kept(scale, flat) if _known(n >= FEW) else scale
    shape = [*x.shape[: -len(dims)], *[1] * len(dims)]
    return x - mean.view(shape), scale.view(shape)


def _known(fact):
    """Whether it holds in this graph; not of a size left open, which may do without.

    To ask otherwise would make another graph for each answer.
    """
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # slow

    return statically_known_true(fact)


def _kept(scale, flat):
    """The largest of a few values that all equal the scale: a compiler keeps that."""
    # It has to read x, or it is taken out of the loop over the sets. Where x is not
    # finite, the scale is NaN anyway.
    finite = flat[..., :FEW] < torch.inf
    return torch.where(finite, scale, torch.nan).amax(-1, keepdim=True)
