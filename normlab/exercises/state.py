"""Global state: a check begins with PyTorch's defaults and puts back what was set.

The default device and whether gradients are recorded belong to each thread, the default
dtype and the generators of random numbers to all of them.
"""

import contextlib
import random

import numpy as np
import torch

# The generators that a seed in an answer would change: how to read and restore each.
_GENERATORS = (
    (torch.get_rng_state, torch.set_rng_state),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
)


@contextlib.contextmanager
def defaults():
    """float32 and recorded gradients for a while; then what was set before."""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    with torch.enable_grad():
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            if torch.get_default_device() != device:
                torch.set_default_device(None if device.type == "cpu" else device)


@contextlib.contextmanager
def kept():
    """`defaults` for a while; afterwards the generators too are as they were."""
    before = [(restore, read()) for read, restore in _GENERATORS]
    # Asked for earlier, their state would start CUDA.
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        with defaults():
            yield
    finally:
        for restore, value in before:
            restore(value)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
