"""What the parity tests share: the norms as a table, and how results are compared."""

import copy

import torch
import torch.nn.functional as theirs

import normlab.functional as ours

DOUBLE, FLOAT = torch.float64, torch.float32
HALF, BFLOAT = torch.float16, torch.bfloat16
LIBRARIES = (theirs, ours)


def draw(*shape, seed=0, dtype=FLOAT, spread=1.0, offset=0.0):
    """A normal tensor that every run and every machine draws alike."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=DOUBLE)
    return (x * spread + offset).to(dtype)


def running(channels, dtype=FLOAT):
    """Running statistics that are not 0 and 1."""
    steps = torch.arange(1, channels + 1, dtype=DOUBLE)
    return (steps / 4).to(dtype), (steps / 2).to(dtype)


def stats(x, weight):
    return running(x.shape[1], (x if weight is None else weight).dtype)


# name: (call(library, x, weight, bias), how many trailing axes have parameters, or 0
# for one value per channel)
CALLS = {
    "batch": (lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True), 0),
    "batch-running": (lambda F, x, w, b: F.batch_norm(x, *stats(x, w), w, b, True), 0),
    "batch-eval": (lambda F, x, w, b: F.batch_norm(x, *stats(x, w), w, b), 0),
    "instance": (lambda F, x, w, b: F.instance_norm(x, None, None, w, b), 0),
    "instance-running": (lambda F, x, w, b: F.instance_norm(x, *stats(x, w), w, b), 0),
    "instance-eval": (
        lambda F, x, w, b: F.instance_norm(x, *stats(x, w), w, b, False),
        0,
    ),
    "layer-1": (lambda F, x, w, b: F.layer_norm(x, x.shape[-1:], w, b), 1),
    "layer-2": (lambda F, x, w, b: F.layer_norm(x, x.shape[-2:], w, b), 2),
    "group-1": (lambda F, x, w, b: F.group_norm(x, 1, w, b), 0),
    "group-2": (lambda F, x, w, b: F.group_norm(x, 2, w, b), 0),
    "rms-1": (lambda F, x, w, b: F.rms_norm(x, x.shape[-1:], w), 1),
    "rms-2": (lambda F, x, w, b: F.rms_norm(x, x.shape[-2:], w, 1e-3), 2),
}


def arguments(name, *shape, dtype=FLOAT, seed=0):
    """(call, x, weight, bias) for a row of CALLS."""
    call, axes = CALLS[name]
    size = shape[-axes:] if axes else shape[1:2]
    x = draw(*shape, seed=seed, dtype=dtype, spread=2, offset=0.5)
    weight = draw(*size, seed=seed + 1, dtype=dtype)
    bias = draw(*size, seed=seed + 2, dtype=dtype)
    return call, x, weight, bias


def close(actual, expected, **tolerance):
    """Equal in value, shape, dtype and, where it means something, in strides."""
    torch.testing.assert_close(actual, expected, equal_nan=True, **tolerance)
    if isinstance(actual, torch.Tensor) and actual.numel():
        steps = [
            [step for step, size in zip(t.stride(), t.shape, strict=True) if size > 1]
            for t in (actual, expected)
        ]
        assert steps[0] == steps[1]


def outcome(run, *args):
    """The result of a call on copies of the arguments, or what it raised."""
    args = [copy.deepcopy(a) if isinstance(a, torch.Tensor) else a for a in args]
    try:
        return run(*args)
    except Exception as error:
        return error


def same_outcome(theirs, ours):
    """Both raised the same type, or both gave the same."""
    assert isinstance(theirs, Exception) == isinstance(ours, Exception), (theirs, ours)
    if isinstance(theirs, Exception):
        assert type(ours) is type(theirs), (theirs, ours)
    else:
        close(ours, theirs)


def near_double(actual, exact):
    """A 16-bit result is its float64 reference, but for its own rounding."""
    eps = torch.finfo(actual.dtype).eps
    scale = max(1.0, exact.abs().max().item() if exact.numel() else 1.0)
    torch.testing.assert_close(actual.double(), exact, rtol=eps, atol=eps * scale / 4)
