"""How long our norms take, and how much memory, against torch's own and a plain copy.

The calls that are compared run in turns, so that a slow moment slows all of them, and
in another order each time, so that none always finds in the cache what the same one
left there. Each time is the median of many. On one thread the processor's time is
taken, which other programs on the machine change least; on all threads the clock's.

Where tensors come to lie in memory changes some times by half, for as long as the
process lives. So each row is measured in several new processes, and each figure is the
median of theirs.
"""

import contextlib
import ctypes
import functools
import itertools
import random
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
import torch.nn.functional as theirs
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

import normlab.functional as ours

IMAGES, TOKENS = (32, 64, 56, 56), (16, 256, 768)


def batch_norm(library, x, weight, bias):
    return library.batch_norm(x, None, None, weight, bias, training=True)


def instance_norm(library, x, weight, bias):
    return library.instance_norm(x, None, None, weight, bias)


def group_norm(library, x, weight, bias):
    return library.group_norm(x, 32, weight, bias)


def layer_norm(library, x, weight, bias):
    return library.layer_norm(x, weight.shape, weight, bias)


def rms_norm(library, x, weight, bias):
    return library.rms_norm(x, weight.shape, weight)


CASES = [
    ("BatchNorm", batch_norm, IMAGES),
    ("InstanceNorm", instance_norm, IMAGES),
    ("GroupNorm(32)", group_norm, IMAGES),
    ("GroupNorm(32)", group_norm, TOKENS),
    ("LayerNorm", layer_norm, TOKENS),
    ("RMSNorm", rms_norm, TOKENS),
]


def forward(norm, *tensors):
    """A call that runs the norm without recording gradients."""

    def run():
        with torch.no_grad():
            return norm(*tensors)

    return run


def backward(norm, *tensors):
    """A call that runs the norm and the gradients of input, weight and bias."""
    tensors = [t.detach().clone().requires_grad_() for t in tensors]
    gradient = torch.ones_like(tensors[0])

    def run():
        norm(*tensors).backward(gradient)
        for t in tensors:
            t.grad = None

    return run


def compiled(norm):
    """The norm as torch.compile makes it: one kernel, or few."""

    def run(*tensors):  # of tensors alone: any other argument is checked in each call
        return norm(*tensors)

    return torch.compile(run, fullgraph=True)


def measure(calls, rounds, clock):
    """The median time of each call, all of them run in turns, in changing order."""
    times, order = {name: [] for name in calls}, random.Random(0)
    for count in range(rounds + 3):
        for name, call in order.sample([*calls.items()], len(calls)):
            start = clock()
            call()
            if count >= 3:  # the first rounds warm up
                times[name].append(clock() - start)
    return {name: statistics.median(spent) for name, spent in times.items()}


class Held(TorchDispatchMode):
    """Keep count of the memory that the tensors made meanwhile hold at once."""

    def __init__(self):
        super().__init__()
        self.storages, self.most = {}, 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        result = op(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                held = StorageWeakRef(storage), storage.nbytes()
                self.storages[storage.data_ptr()] = held
        live = [size for ref, size in self.storages.values() if not ref.expired()]
        self.most = max(self.most, sum(live))
        return result


def peak_memory(call, x):
    """The most memory that a call holds beyond its input, in sizes of the input."""
    with Held() as held:
        call()
    return held.most / (x.numel() * x.element_size())


def keep_freed_memory():
    """Ask glibc to keep what is freed for the next call, as a running model does.

    Otherwise each call here, whose every result is dropped at once, gives memory back
    and gets it anew, page by page, and that is most of what a clock would see.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-3, 2**25)  # M_MMAP_THRESHOLD: all tensors here come from the heap
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: the heap is not given back


def tensors_for(norm, shape):
    """Input, weight and bias of a case, drawn alike in every run."""
    generator = torch.Generator().manual_seed(0)
    channels = shape[-1] if norm in (layer_norm, rms_norm) else shape[1]
    sizes = (shape, (channels,), (channels,))
    return [torch.randn(size, generator=generator) for size in sizes]


def figures(name, norm, shape, threads, rounds):
    """The figures of one row: torch's time and how the others compare with it."""
    keep_freed_memory()
    torch.set_num_threads(threads)
    x, *parameters = tensors_for(norm, shape)
    fused, eager = (functools.partial(norm, library) for library in (theirs, ours))
    fast = compiled(eager)
    clock = time.process_time if threads == 1 else time.perf_counter
    forwards = {
        "torch": forward(fused, x, *parameters),
        "copy": x.clone,
        "ours": forward(eager, x, *parameters),
        "compiled": forward(fast, x, *parameters),
    }
    backwards = {
        "torch": backward(fused, x, *parameters),
        "ours": backward(eager, x, *parameters),
        "compiled": backward(fast, x, *parameters),
    }
    one, both = (measure(calls, rounds, clock) for calls in (forwards, backwards))
    return (
        one["torch"] * 1000,
        one["torch"] / one["copy"],
        one["ours"] / one["copy"],
        *(one[key] / one["torch"] for key in ("ours", "compiled")),
        *(both[key] / both["torch"] for key in ("ours", "compiled")),
        *(peak_memory(backwards[key], x) for key in ("torch", "ours")),
    )


def row(name, shape, threads, measured):
    """One row of the table: of each figure the median over the processes."""
    figures = [statistics.median(column) for column in zip(*measured, strict=True)]
    places = (1, 1, 1, 2, 2, 2, 2, 1, 1)
    return (
        name,
        "x".join(map(str, shape)),
        str(threads),
        *(f"{figure:.{n}f}" for figure, n in zip(figures, places, strict=True)),
    )


HEADER = (
    "norm",
    "shape",
    "threads",
    "torch, ms",
    "torch / copy",
    "ours / copy",
    "eager / torch",
    "compiled / torch",
    "with backward: eager / torch",
    "compiled / torch",
    "peak memory: torch",
    "ours",
)


def table(rounds=41, processes=5):
    """Rows of texts, the header first. Memory is in sizes of the input."""
    counts = sorted({1, torch.get_num_threads()})
    rows = [(*case, threads) for threads in counts for case in CASES]
    jobs, measured = rows * processes, []
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        found = pool.map(figures, *zip(*jobs, strict=True), itertools.repeat(rounds))
        for numbers in found:
            measured.append(numbers)
            print(f"norms: {len(measured)} of {len(jobs)}", file=sys.stderr)
    return [
        HEADER,
        *(
            row(name, shape, threads, measured[i :: len(rows)])
            for i, (name, _, shape, threads) in enumerate(rows)
        ),
    ]
