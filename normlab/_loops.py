"""The statistics once more, as a compiler turns them into short loops.

torch.compile makes one loop of each line. In it a running sum waits for each addition
before it begins the next, and a division that follows the sum is done again for every
few values of the output. So the sum is over half as many terms, each already divided;
and the definition itself stays as it is read.
"""

import functools

import torch

from normlab import _slices

__all__ = ["allowed", "statistics"]


def allowed(x, *parameters):
    """Whether a graph without gradients is being made, for a processor."""
    tensors = [t for t in (x, *parameters) if t is not None]
    return (
        torch.compiler.is_compiling()
        and not torch.compiler.is_exporting()  # one graph, for odd and even sizes
        and _slices.unrecorded(x, tensors)
    )


def statistics(x, dims):
    """The mean over the last axes, x less that mean, and the mean of its squares."""
    flat = x.flatten(-len(dims))
    n = flat.shape[-1]
    parts = flat.chunk(2, -1) if n % 2 == 0 else [flat]

    def average(parts):
        sums = functools.reduce(torch.add, parts) * (1 / n)
        return sums.sum(-1, keepdim=True)

    mean = average(parts)
    var = average([(part - mean).square() for part in parts])
    shape = [*x.shape[: -len(dims)], *[1] * len(dims)]
    mean, var = mean.view(shape), var.view(shape)
    return mean, x - mean, var
