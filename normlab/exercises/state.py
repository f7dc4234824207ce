"""Global state: a check begins with PyTorch's defaults and puts back what was set.

The default device and whether gradients are recorded belong to each thread, all the
rest to all of them. A switch is read when a check begins and set when it ends, if it
is another one then. So are the functions that judging builds on: an answer that
replaces `torch.allclose` would judge itself.
"""

import builtins
import contextlib
import math
import os
import random
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import _tensor_str

_CUDNN = ("enabled", "benchmark", "deterministic")


def _thread_count(value):
    torch.set_num_threads(value)


def _deterministic():
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _set_deterministic(value):
    torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def _cudnn():
    return tuple(getattr(torch.backends.cudnn, name) for name in _CUDNN)


def _set_cudnn(value):
    # PyTorch's own test helpers forbid plain assignment, from when they are imported
    with torch.backends.__allow_nonbracketed_mutation():
        for name, one in zip(_CUDNN, value, strict=True):
            setattr(torch.backends.cudnn, name, one)


def _anomaly():
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def _print_options():
    return dict(vars(_tensor_str.PRINT_OPTS))


def _set_print_options(value):
    vars(_tensor_str.PRINT_OPTS).clear()
    vars(_tensor_str.PRINT_OPTS).update(value)


def _folder():
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None


def _set_folder(value):
    if value is not None:
        os.chdir(value)


def _set_environment(value):
    for name in os.environ.keys() - value.keys():
        del os.environ[name]
    os.environ.update(value)


def _rc():
    # Where nobody has imported matplotlib there is nothing to keep.
    matplotlib = sys.modules.get("matplotlib")
    return None if matplotlib is None else dict.copy(matplotlib.rcParams)


def _set_rc(value):
    if value is not None:
        dict.update(sys.modules["matplotlib"].rcParams, value)


# Each: how to read a switch, and how to set it.
_SWITCHES = (
    (torch.get_num_threads, _thread_count),
    (_deterministic, _set_deterministic),
    (_cudnn, _set_cudnn),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (_anomaly, lambda value: torch.autograd.set_detect_anomaly(*value)),
    (torch.is_warn_always_enabled, torch.set_warn_always),
    (_print_options, _set_print_options),
    (np.geterr, lambda value: np.seterr(**value)),
    (np.get_printoptions, lambda value: np.set_printoptions(**value)),
    (_rc, _set_rc),
    (_folder, _set_folder),
    (lambda: dict(os.environ), _set_environment),
    (lambda: list(sys.path), lambda value: sys.path.__setitem__(slice(None), value)),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.getswitchinterval, sys.setswitchinterval),
)
# The generators that a seed in an answer would change. What they hold is not compared.
_GENERATORS = (
    (torch.get_rng_state, torch.set_rng_state),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
)

# What judging builds on. Whole modules would be too much: some imports replace
# functions of PyTorch for good, such as torch.manual_seed.
_TOOLS = {
    torch: "allclose equal isclose eq ne le all any abs max stack cat",
    torch.Tensor: "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __bool__ __abs__ __sub__ "
    "__add__ __mul__ __float__ __len__ allclose equal isclose eq all any abs max amax "
    "sum mean item tolist detach clone cpu double float numpy reshape flatten numel "
    "nan_to_num as_subclass backward",
    F: "batch_norm layer_norm instance_norm group_norm rms_norm linear",
    torch.nn.Module: "__call__ train eval state_dict named_parameters named_modules "
    "parameters buffers load_state_dict",
    np: "allclose isclose array_equal asarray abs any all",
    builtins: "abs all any isinstance len max min sorted sum zip",
    math: "isclose isfinite",
}
_ABSENT = object()  # inherited
_ORIGINAL = [
    (place, name, vars(place).get(name, _ABSENT))
    for place, names in _TOOLS.items()
    for name in names.split()
]


def _put_tools_back():
    """Set all tools to what they were at first; return what stood in their places."""
    replaced = []
    for place, name, original in _ORIGINAL:
        value = vars(place).get(name, _ABSENT)
        if value is not original:
            replaced.append((place, name, value))
            _put(place, name, original)
    return replaced


def _put(place, name, value):
    if value is _ABSENT:
        delattr(place, name)
    else:
        setattr(place, name, value)


@contextlib.contextmanager
def _tools():
    """The original tools of judging; yields the names that were replaced meanwhile.

    What was replaced before, in another cell, is so again afterwards.
    """
    before, names = _put_tools_back(), []
    try:
        yield names
    finally:
        for place, name, _ in _put_tools_back():
            names.append(f"{place.__name__}.{name}".removeprefix("builtins."))
        for place, name, value in before:
            _put(place, name, value)


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
    """`defaults` for a while; afterwards all switches and generators are as before.

    Yields the list of the functions that were replaced meanwhile, full at the end.
    """
    before = [(read, put, read()) for read, put in _SWITCHES]
    generators = [(restore, read()) for read, restore in _GENERATORS]
    # Asked for earlier, their state would start CUDA.
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    with _tools() as replaced:
        try:
            with defaults():
                yield replaced
        finally:
            for restore, value in generators:
                restore(value)
            if cuda is not None:
                torch.cuda.set_rng_state_all(cuda)
            for read, put, value in before:
                if read() != value:
                    put(value)
