"""Numbers and nets for the exercises, from a seed; the notebook's own draws stay."""

import contextlib

import torch


@contextlib.contextmanager
def seeded(seed=0):
    """Seed PyTorch's generator for a while, then put it back as it was."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        yield


def normal(*shape, seed=0):
    """Standard normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def gap(a, b):
    """The largest difference of two tensors; infinite where they cannot be compared.

    >>> gap(torch.zeros(2), torch.ones(2)), gap(torch.zeros(2), torch.ones(3))
    (1.0, inf)
    """
    if not isinstance(a, torch.Tensor) or a.shape != b.shape:
        return float("inf")
    difference = (a.detach().cpu().double() - b.detach().cpu().double()).abs().max()
    return difference.nan_to_num(nan=torch.inf, posinf=torch.inf).item()
