"""Numbers and nets for the exercises, from a seed; the notebook's own draws stay.

What a student is given, such as a net with a bug, comes from `seeded` and `normal`:
the same for all and always. What a check asks with comes from `checking`, `drawn` and
`other`, which differ with the seed that the check was called with; with seed 0, which
notebooks use, they are what `seeded` and `normal` give.
"""

import contextlib
import contextvars
import random

import torch

_asked = contextvars.ContextVar("seed of the present check", default=0)


@contextlib.contextmanager
def asked_with(seed):
    """Let a check draw with this seed for a while."""
    token = _asked.set(seed)
    try:
        yield
    finally:
        _asked.reset(token)


def asked_seed():
    """The seed of the present check."""
    return _asked.get()


def chance(*of):
    """A `random.Random` for one purpose of the present check."""
    return random.Random(repr((asked_seed(), *of)))


def _mixed(seed):
    return chance(seed).getrandbits(32) if asked_seed() else seed


@contextlib.contextmanager
def seeded(seed=0):
    """Seed PyTorch's generator for a while, then put it back as it was."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def checking(seed=0):
    """As `seeded`, but every seed of the check gives other numbers."""
    with seeded(_mixed(seed)):
        yield


def normal(*shape, seed=0):
    """Standard normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def drawn(*shape, seed=0):
    """As `normal`, but every seed of the check gives other numbers."""
    return normal(*shape, seed=_mixed(seed))


def other(size, *of):
    """The size of an axis; up to 3 more where the check has a seed.

    >>> other(4)
    4
    >>> with asked_with(5):
    ...     sorted({other(4, axis) for axis in range(20)})
    [4, 5, 6, 7]
    """
    return size + (chance(size, *of).randrange(4) if asked_seed() else 0)


def plain(tensor):
    """A tensor's numbers in float64 on the CPU, and no code of a class of its own."""
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.detach(tensor).cpu().double().as_subclass(torch.Tensor)


def gap(a, b):
    """The largest difference of two tensors; infinite where they cannot be compared.

    >>> gap(torch.zeros(2), torch.ones(2)), gap(torch.zeros(2), torch.ones(3))
    (1.0, inf)
    """
    if not isinstance(a, torch.Tensor) or plain(a).shape != b.shape:
        return float("inf")
    difference = (plain(a) - plain(b)).abs().max()
    return difference.nan_to_num(nan=torch.inf, posinf=torch.inf).item()
