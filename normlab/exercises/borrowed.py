"""Which norms of PyTorch some code calls, under whatever name it knows them.

The calls are watched, not the source text. (Where PyTorch calls its kernels could be
watched as well, and would show what a compiled script hides, but to begin that loads
sympy: two seconds in the first check of a session.)
"""

import contextlib
import re

from torch.overrides import TorchFunctionMode

_NORM = re.compile(r"(?:batch|layer|instance|group|rms)_norm")


class _Calls(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if isinstance(name, str) and _NORM.search(name):
            self.names.add(name.partition(".")[0])
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def norms():
    """The set of the names of the norms that are called meanwhile, in this thread."""
    with _Calls() as calls:
        yield calls.names
