"""Which norms of PyTorch some code calls, under whatever name it knows them.

The calls are watched, not the source text: once where Python calls PyTorch, and once
where PyTorch calls its kernels, which finds what a script or another function hides.
"""

import contextlib
import re

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

_NORM = re.compile(r"(?:batch|layer|instance|group|rms)_norm")


@contextlib.contextmanager
def norms():
    """The set of the names of the norms that are called meanwhile, in this thread."""
    called = set()

    def note(function):
        name = getattr(function, "__name__", "")
        if isinstance(name, str) and _NORM.search(name):
            called.add(name.partition(".")[0])

    class Calls(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            note(function)
            return function(*args, **(kwargs or {}))

    class Kernels(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            note(function)
            return function(*args, **(kwargs or {}))

    with Calls(), Kernels():
        yield called
