"""The probes: small questions to an implementation of a norm.

A probe makes a subject, lets it compute something on a small fixed input, and writes
what it sees under a label. The same probe is put to PyTorch's own norm and to the
student's; what differs is a `Finding`: the question, what was expected, what came, and
where.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from normlab import axes
from normlab.exercises import blame, compare, state
from normlab.exercises.seeded import plain
from normlab.exercises.subjects import Task, reference

__all__ = ["PROBES", "Finding", "Probe", "Raised", "Task", "applying", "ask", "find"]


@dataclass(frozen=True)
class Probe:
    """One question. `tells` says what it means when the answers differ."""

    name: str
    tells: str
    question: object
    applies: object
    tolerance: float

    def __hash__(self):
        return hash(self.name)


@dataclass(frozen=True, eq=False)
class Raised:
    """What is seen when a subject raises an error."""

    error: BaseException

    def __eq__(self, other):
        # Which operand is tensor a and which tensor b does not matter.
        return isinstance(other, Raised) and self._words() == other._words()

    def _words(self):
        return sorted(re.findall(r"\w+", str(self)))

    def __str__(self):
        text = blame.text_of(self.error).strip().splitlines() or [""]
        return f"{type(self.error).__name__}: {text[0]}"


@dataclass(frozen=True)
class Finding:
    """A probe whose answers differ: what was expected, what came, and where."""

    probe: Probe
    where: str
    expected: str
    got: str
    error: BaseException | None = None

    @property
    def facts(self):
        """Pairs for a `Result`."""
        return (
            ("asked", self.probe.name),
            ("expected", self.expected),
            ("got", self.got),
            ("where", self.where),
        )


PROBES = []


def probe(name, tells, applies=lambda task: True, tolerance=2e-4):
    """Register a function of (make, task, draw, seen) as a probe."""

    def register(question):
        PROBES.append(Probe(name, tells, question, applies, tolerance))
        return question

    return register


class Draw:
    """Seeded inputs in which no two sets have the same mean or spread."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(1234 + seed)

    def normal(self, shape):
        """Standard normal numbers."""
        return torch.randn(shape, generator=self.generator)

    def input(self, shape):
        """Normal numbers, each axis adding offsets and scales of its own."""
        x = self.normal(shape)
        for i, size in enumerate(shape):
            along = [1] * len(shape)
            along[i] = size
            x = x * (0.5 + torch.rand(along, generator=self.generator))
            x = x + self.normal(along)
        return x

    def positive(self, shape):
        """Numbers from 0.5 to 2."""
        return 0.5 + 1.5 * torch.rand(shape, generator=self.generator)


def parameters(task, draw):
    """Values for weight and bias, as far as the task has them."""
    values = {
        "weight": draw.positive(task.parameter_shape),
        "bias": draw.normal(task.parameter_shape),
    }
    return {role: value for role, value in values.items() if task.has(role)}


def running(task, draw):
    """Values for running_mean and running_var."""
    shape = task.parameter_shape
    return {"running_mean": draw.normal(shape), "running_var": draw.positive(shape)}


def remembers(task):
    """Whether the task has running statistics."""
    return task.has("running_mean", "running_var")


@probe("what is returned", "The output must be a tensor with the shape of the input.")
def _shape(make, task, draw, seen):
    y = make(task)(draw.input(task.shape))
    seen["output"] = "a tensor" if isinstance(y, torch.Tensor) else compare.kind(y)
    seen["shape"] = str(tuple(y.shape)) if hasattr(y, "shape") else "no shape"


@probe(
    "mean and variance of each set",
    "The sets of values that share statistics are not standardized.",
    tolerance=2e-3,
)
def _sets(make, task, draw, seen):
    y = make(task)(2 * draw.input(task.shape)).detach().double()
    pattern = axes.parse(task.pattern)
    sets = pattern.on(task.shape, **({"G": task.num_groups} if pattern.groups else {}))
    split = y.reshape(sets.split_shape)
    if task.center:
        seen["mean"] = split.mean(sets.reduced_dims)
        seen["variance"] = split.var(sets.reduced_dims, correction=0)
    else:
        seen["mean square"] = split.square().mean(sets.reduced_dims)


@probe("a small input", "The output differs from PyTorch's.")
def _small_input(make, task, draw, seen):
    seen["output"] = make(task)(draw.input(task.shape))


@probe(
    "weight and bias",
    "Weight and bias do not act as they should.",
    lambda task: task.has("weight"),
)
def _affine(make, task, draw, seen):
    layer = make(task)
    layer.load(**parameters(task, draw))
    seen["output"] = layer(draw.input(task.shape))


@probe(
    "an input whose axes have equal sizes",
    "Where sizes do not give it away, values are combined along the wrong axis.",
    lambda task: len(task.shape) > 2,
)
def _equal_sizes(make, task, draw, seen):
    same = task.resized((4,) * len(task.shape), num_groups=2)
    layer = make(same)
    layer.load(**parameters(same, draw))
    seen["output"] = layer(draw.input(same.shape))


@probe(
    "the values that a new layer starts with",
    "A new layer should start with weight 1, bias 0, running_mean 0, running_var 1.",
    lambda task: task.is_class and task.has("weight"),
)
def _start(make, task, draw, seen):
    tensors = make(task, fresh=True).tensors
    for role in ("weight", "bias", "running_mean", "running_var"):
        if task.has(role):
            value = tensors.get(role)
            seen[role] = "missing" if value is None else value.flatten()


@probe(
    "the running statistics after three steps",
    "The running statistics are not updated as they should.",
    remembers,
)
def _running(make, task, draw, seen):
    layer = make(task)
    for _ in range(3):
        layer(draw.input(task.shape).requires_grad_())
    for role in ("running_mean", "running_var"):
        value = layer.tensors.get(role)
        seen[role] = "missing" if value is None else value.flatten()
    for role in ("running_mean", "running_var"):
        value = layer.tensors.get(role)
        attached = value is not None and value.grad_fn is not None
        seen[f"{role} is part of the graph"] = attached


@probe(
    "another momentum",
    "The argument momentum is not used.",
    lambda task: remembers(task) and task.has("momentum"),
)
def _momentum(make, task, draw, seen):
    layer = make(task, momentum=0.6)
    layer(draw.input(task.shape))
    for role in ("running_mean", "running_var"):
        seen[role] = layer.tensors[role].flatten()


@probe(
    "training does not look at the buffers",
    "In training the statistics are the batch's own.",
    remembers,
)
def _train_from_batch(make, task, draw, seen):
    layer = make(task)
    layer.load(**running(task, draw))
    seen["output"] = layer(draw.input(task.shape))


@probe(
    "evaluation from the buffers",
    "In eval mode the running statistics normalize, and stay as they are.",
    remembers,
)
def _evaluation(make, task, draw, seen):
    layer = make(task)
    layer.load(**running(task, draw), **parameters(task, draw))
    layer.train(False)
    seen["output"] = layer(draw.input(task.shape))
    for role in ("running_mean", "running_var"):
        seen[f"{role} afterwards"] = layer.tensors[role].flatten()


@probe(
    "evaluation where the variance is small",
    "In eval mode eps belongs under the root, too.",
    remembers,
)
def _evaluation_of_little(make, task, draw, seen):
    layer = make(task)
    layer.load(**running(task, draw))
    layer.load(running_var=1e-5 * draw.positive(task.parameter_shape))
    seen["output"] = layer.train(False)(1e-3 * draw.input(task.shape))


@probe(
    "what state_dict saves",
    "Running statistics belong into state_dict, as buffers and not as parameters.",
    lambda task: task.is_class and (remembers(task) or task.has("weight")),
)
def _saved(make, task, draw, seen):
    layer = make(task)
    layer(draw.input(task.shape))
    for role in ("weight", "bias", "running_mean", "running_var"):
        if task.has(role):
            seen[role] = layer.kept_as(role)


@probe(
    "training without recorded gradients",
    "`training` decides the mode, not whether gradients are recorded.",
    remembers,
)
def _mode(make, task, draw, seen):
    layer = make(task)
    with torch.no_grad():
        seen["output"] = layer(draw.input(task.shape))
    seen["running_mean"] = layer.tensors["running_mean"].flatten()


@probe(
    "the gradient of the input",
    "The gradient has to flow through the statistics, too.",
    tolerance=5e-4,
)
def _input_gradient(make, task, draw, seen):
    layer = make(task)
    layer.load(**parameters(task, draw))
    x = draw.input(task.shape).requires_grad_()
    (layer(x) * draw.normal(task.shape)).sum().backward()
    seen["gradient"] = x.grad


@probe(
    "the gradient of weight and bias",
    "Weight and bias do not get the gradient they should.",
    lambda task: task.has("weight"),
    tolerance=5e-4,
)
def _parameter_gradient(make, task, draw, seen):
    layer = make(task)
    (layer(draw.input(task.shape)) * draw.normal(task.shape)).sum().backward()
    for role in ("weight", "bias"):
        if task.has(role):
            gradient = getattr(layer.tensors.get(role), "grad", None)
            seen[role] = "no gradient" if gradient is None else gradient.flatten()


@probe(
    "values around 10000",
    "A large mean destroys the result: digits cancel.",
    tolerance=0.02,
)
def _offset(make, task, draw, seen):
    seen["output"] = make(task)(10 * draw.normal(task.shape) + 1e4)


@probe("values around 0.001", "eps does not act where it should.", tolerance=1e-3)
def _tiny(make, task, draw, seen):
    seen["output"] = make(task)(1e-3 * draw.input(task.shape))


@probe("equal values", "Sets of equal values must not divide 0 by 0.")
def _equal_values(make, task, draw, seen):
    seen["output"] = make(task)(torch.zeros(task.shape))


@probe(
    "another eps",
    "The argument eps is not used.",
    lambda task: task.has("eps"),
)
def _eps(make, task, draw, seen):
    layer = make(task, eps=0.5)
    seen["output"] = layer(draw.input(task.shape))
    seen["output of small values"] = layer(0.01 * draw.input(task.shape))


@probe("inputs of other dtypes", "The output must have the dtype of the input.")
def _dtype(make, task, draw, seen):
    x = draw.input(task.shape)
    y = make(task, dtype=torch.float64)(x.double())
    seen["dtype for float64"] = str(y.dtype)
    seen["output"] = y
    narrow = make(task, dtype=torch.float16)(x.half())
    seen["dtype for float16"] = str(narrow.dtype)


@probe(
    "half precision",
    "In float16 the squares overflow, or the output has another dtype.",
    tolerance=1e-2,
)
def _half(make, task, draw, seen):
    x = (300 * draw.input(task.shape)).half()
    y = make(task, dtype=torch.float16)(x)
    seen["dtype"] = str(y.dtype)
    seen["output"] = y


@probe(
    "other samples changed",
    "The output of a sample must not depend on the other samples.",
    lambda task: task.norm != "batch_norm" or remembers(task),
)
def _others(make, task, draw, seen):
    x = draw.input(task.shape)
    y = x.clone()
    y[1:] = 3 * y[1:] + 1
    layer = make(task).train(task.norm != "batch_norm")
    seen["sample 0 moves by"] = (layer(x)[0] - layer(y)[0]).abs().amax()


@probe(
    "another layout in memory",
    "The output must not depend on how the tensor lies in memory.",
    lambda task: len(task.shape) > 2,
)
def _layout(make, task, draw, seen):
    x = draw.input(task.shape)
    channels_last = x.movedim(1, -1).contiguous().movedim(-1, 1)
    seen["output"] = make(task)(channels_last)
    wide = draw.input((*task.shape[:-1], 2 * task.shape[-1]))
    seen["output of every second column"] = make(task)(wide[..., ::2])


@probe("the input afterwards", "The input must not be changed.")
def _input_kept(make, task, draw, seen):
    x = draw.input(task.shape)
    make(task)(x)
    seen["input"] = x


@probe(
    "sets of one value",
    "A set of one value normalizes to 0, or is refused with an error.",
    lambda task: task.center,
)
def _one_value(make, task, draw, seen):
    if task.on_trailing:
        ones = [1] * task.trailing
        single = task.resized((*task.shape[: -task.trailing], *ones))
    else:
        _, c, *positions = task.shape
        ones = [1] * len(positions)
        single = task.resized((1, c, *ones), num_groups=c)
    try:
        y = make(single)(draw.input(single.shape))
    except Exception:
        seen["0, or an error"] = True  # PyTorch refuses some of these, and so may we
    else:
        seen["0, or an error"] = bool((y.abs() < 1e-3).all())


@probe(
    "two trailing axes",
    "All axes of normalized_shape are averaged over, not the last alone.",
    lambda task: task.on_trailing and task.has("normalized_shape"),
)
def _two_axes(make, task, draw, seen):
    # Of the task's own rank where it can be: an answer may be for that one alone.
    own = len(task.shape) > 2 and task.trailing == 1
    two = task.resized(task.shape if own else (2, 3, 4), trailing=2)
    seen["output"] = make(two)(draw.input(two.shape))


def applying(task):
    """The probes that a task is asked."""
    return [p for p in PROBES if p.applies(task) and p.name not in task.skip]


def ask(probe, make, task, seed=0):
    """What is seen when a subject is asked: labels to plain values."""
    seen = {}
    try:
        with state.defaults():  # whatever an answer did to them
            probe.question(make, task, Draw(seed), seen)
    except Exception as error:
        seen["error"] = Raised(error)
    return {label: _plain(value) for label, value in seen.items()}


@lru_cache(maxsize=4096)
def expected(probe, task, seed=0):
    """What is seen when PyTorch's own norm is asked."""
    return ask(probe, lambda task, **choices: reference(task, **choices), task, seed)


def _plain(value):
    if isinstance(value, torch.Tensor):
        return plain(value).clone()
    return value if isinstance(value, str | bool | Raised) else compare.kind(value)


def alike(one, other, tolerance):
    """Whether two things seen under one label are the same."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return type(one) is type(other) and one == other
    if one.shape != other.shape:
        return False
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


def same(probe, one, other):
    """Whether two subjects gave the same answer to a probe."""
    return one.keys() == other.keys() and all(
        alike(one[label], other[label], probe.tolerance) for label in one
    )


def find(probe, expected, got):
    """The finding where the answers to a probe differ, or None."""
    for label, right in expected.items():
        if label not in got:
            break
        if not alike(right, got[label], probe.tolerance):
            return _finding(probe, label, right, got[label])
    if "error" in got and "error" not in expected:
        raised = got["error"]
        return Finding(probe, "", "no error", str(raised), raised.error)
    return None


def _finding(probe, label, right, wrong):
    tensors = isinstance(right, torch.Tensor) and isinstance(wrong, torch.Tensor)
    if not tensors or right.shape != wrong.shape:
        return Finding(probe, label, _shown(right), _shown(wrong))
    # The largest difference; NaN before all.
    gap = (right - wrong).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
    at = np.unravel_index(int(gap.argmax()), gap.shape)  # torch's loads sympy first
    index = ", ".join(str(int(i)) for i in at)
    where = f"{label}[{index}]" if index else label
    return Finding(probe, where, _shown(right[at].item()), _shown(wrong[at].item()))


def _shown(value):
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    # Rounding noise is 0, and + 0.0 turns -0.0 into 0.0.
    return f"{round(value, 7) + 0.0:.4g}" if isinstance(value, float) else str(value)
