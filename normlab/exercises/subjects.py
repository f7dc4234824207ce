"""What is asked: a function or a class, the student's or PyTorch's, made to look alike.

A `Subject` is called with an input alone and holds the tensors by the names of their
roles, so that a probe is written once for functions and modules.
"""

import inspect
import math
import random
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

# The tensors of a norm, and the value that each of their elements starts with.
START = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
# What d2l, TensorFlow and the papers call them.
_ALIASES = {
    "weight": ("weight", "gamma", "scale"),
    "bias": ("bias", "beta", "shift"),
    "running_mean": ("running_mean", "moving_mean"),
    "running_var": ("running_var", "moving_var", "running_variance"),
}
_RUNNING = ("running_mean", "running_var")
_ARGUMENTS = {
    "batch_norm": (*_RUNNING, "weight", "bias", "training", "momentum", "eps"),
    "instance_norm": ("weight", "bias", "eps"),
    "layer_norm": ("normalized_shape", "weight", "bias", "eps"),
    "group_norm": ("num_groups", "weight", "bias", "eps"),
    "rms_norm": ("normalized_shape", "weight", "eps"),
}
_CLASSES = {
    "BatchNorm": "batch_norm",
    "InstanceNorm": "instance_norm",
    "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm",
    "RMSNorm": "rms_norm",
}


@dataclass(frozen=True)
class Task:
    """Which norm is asked for, in which form, on which inputs.

    `arguments` names, as PyTorch does, what a function takes after the input, in this
    order, or what a class has beside its sizes. `shape` is the shape of the inputs, the
    last `trailing` axes of which layer_norm and rms_norm normalize. `eps` is what the
    code uses when it is not told. `skip` names probes that are not asked. `by_hand`
    is whether the code may not call a norm of PyTorch.
    """

    norm: str
    is_class: bool
    arguments: tuple[str, ...]
    shape: tuple[int, ...]
    trailing: int = 1
    num_groups: int = 2
    eps: float = 1e-5
    skip: tuple[str, ...] = ("half precision",)
    by_hand: bool = False

    @classmethod
    def of(cls, norm, **choices):
        """The task for "group_norm" (a function) or "GroupNorm" (a class)."""
        is_class = norm in _CLASSES
        norm = _CLASSES.get(norm, norm)
        defaults = {
            "arguments": _ARGUMENTS[norm],
            "shape": (4, 3, 6) if norm in ("layer_norm", "rms_norm") else (4, 6, 2, 5),
        }
        return cls(norm, is_class, **{**defaults, **choices})

    @property
    def title(self):
        """The norm's name as a class."""
        return next(name for name, norm in _CLASSES.items() if norm == self.norm)

    @property
    def on_trailing(self):
        """Whether the norm is over trailing axes, with parameters of their shape."""
        return self.norm in ("layer_norm", "rms_norm")

    @property
    def center(self):
        """Whether the mean is subtracted."""
        return self.norm != "rms_norm"

    @property
    def normalized_shape(self):
        """The sizes of the trailing axes."""
        return self.shape[len(self.shape) - self.trailing :]

    @property
    def parameter_shape(self):
        """The shape of weight and bias."""
        return self.normalized_shape if self.on_trailing else self.shape[1:2]

    @property
    def axis_names(self):
        """Names for the axes of the inputs."""
        rank = len(self.shape)
        if self.on_trailing and rank - self.trailing < 3 and rank <= 3:
            return ("N", "D") if rank == 2 else ("N", "L", "D")
        return ("N", "C", *{2: "", 3: "L", 4: "HW", 5: "DHW"}[rank])

    @property
    def pattern(self):
        """The right pattern on the axes of the inputs."""
        names = list(self.axis_names)
        kept = {
            "batch_norm": {"C"},
            "instance_norm": {"N", "C"},
            "group_norm": {"N"},
        }.get(self.norm, set(names[: len(names) - self.trailing]))
        words = [name if name in kept else f"[{name}]" for name in names]
        if self.norm == "group_norm":
            words[1] = "(G [C/G])"
        return " ".join(words)

    def has(self, *roles):
        """Whether the code takes or holds all of these."""
        return all(role in self.arguments for role in roles)

    @property
    def sizes(self):
        """The arguments of a class that cannot be left out."""
        if self.on_trailing:
            shape = self.normalized_shape
            return (shape[0] if len(shape) == 1 else shape,)
        groups = (self.num_groups,) if self.norm == "group_norm" else ()
        return (*groups, self.shape[1])

    def resized(self, shape, trailing=None, num_groups=None):
        """The same task on inputs of another shape."""
        return replace(
            self,
            shape=shape,
            trailing=trailing or self.trailing,
            num_groups=num_groups or self.num_groups,
        )

    def varied(self, seed):
        """The same task on inputs of other sizes, all different; with 0 as it is."""
        if not seed:
            return self
        chance = random.Random(seed)
        groups = {2: (6, 10), 3: (6, 12)}
        num_groups = chance.choice(sorted(groups))
        # The size of a group is no other number that a mistake could take it for.
        channels = chance.choice(groups[num_groups])
        sizes = [size for size in range(3, 9) if size != channels]
        shape = chance.sample(sizes, len(self.shape))
        if not self.on_trailing:
            shape[1] = channels
        return self.resized(tuple(shape), num_groups=num_groups)


class Subject:
    """Something that normalizes an input. `tensors` are weight, bias and so on."""

    training = True

    def __init__(self, task, eps=None, momentum=0.1, dtype=torch.float32):
        self.task, self.momentum, self.dtype = task, momentum, dtype
        self.eps = task.eps if eps is None else eps
        self.tensors = {}

    def load(self, **values):
        """Fill tensors with values; a tensor of another size is left as it is."""
        for role, value in values.items():
            tensor = self.tensors.get(role)
            if tensor is not None and tensor.numel() == value.numel():
                tensor.data.copy_(value.reshape(tensor.shape))

    def train(self, mode):
        """Choose train or eval mode."""
        self.training = mode
        return self


class FunctionSubject(Subject):
    """A function, and the tensors that it is called with."""

    def __init__(self, function, task, **choices):
        super().__init__(task, **choices)
        self.function = function
        shape = task.parameter_shape
        for role, value in START.items():
            if task.has(role):
                tensor = torch.full(shape, value, dtype=self.dtype)
                self.tensors[role] = tensor.requires_grad_(role in ("weight", "bias"))

    def given(self):
        """Every argument that a norm in torch.nn.functional takes, by name."""
        remembers = self.task.has(*_RUNNING)
        return {
            **dict.fromkeys(START),
            **self.tensors,
            "normalized_shape": self.task.normalized_shape,
            "num_groups": self.task.num_groups,
            "training": self.training or not remembers,
            "use_input_stats": self.training or not remembers,
            "momentum": self.momentum,
            "eps": self.eps,
        }

    def __call__(self, x):
        names, given = self.task.arguments, self.given()
        if takes_by_name(self.function, names):
            return self.function(x, **{name: given[name] for name in names})
        return self.function(x, *(given[name] for name in names))


def takes_by_name(function, names):
    """Whether a function has parameters of all these names."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False  # some built-in functions do not tell
    return set(names) <= set(parameters)


def _takes_any_name(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.kind is one.VAR_KEYWORD for one in parameters)


class ModuleSubject(Subject):
    """A module, made from its class; as it starts if `fresh`, else set to START.

    A wrong start is one question's concern, not everyone's.
    """

    def __init__(self, cls, task, fresh=False, **choices):
        super().__init__(task, **choices)
        affine = task.has("weight")
        wanted = {
            "eps": self.eps,
            "momentum": self.momentum,
            "affine": affine,
            "elementwise_affine": affine,
            "bias": affine and task.has("bias"),
            "track_running_stats": task.has(*_RUNNING),
        }
        options = {k: v for k, v in wanted.items() if self._takes(cls, task, k, v)}
        self.module = cls(*task.sizes, **options).to(self.dtype)
        for role, tensor in self.tensors.items():
            tensor.data = tensor.data.to(self.dtype)  # one that `.to` did not find
            if not fresh:
                tensor.data.fill_(START[role])

    @staticmethod
    def _takes(cls, task, name, value):
        """Whether the class has the option: by name, or among its `**options`."""
        if takes_by_name(cls, [name]):
            return True
        if not _takes_any_name(cls) or not takes_by_name(_torch_class(task), [name]):
            return False
        try:
            cls(*task.sizes, **{name: value})
        except TypeError:  # some class above it has no such option
            return False
        return True

    @property
    def tensors(self):
        """Looked up each time: a module may replace its tensors in forward."""
        found = {role: self._find(role) for role in START}
        return {role: tensor for role, tensor in found.items() if tensor is not None}

    @tensors.setter
    def tensors(self, _):
        pass

    def _find(self, role):
        for name in _ALIASES[role]:
            value = getattr(self.module, name, None)
            if isinstance(value, torch.Tensor):
                return value
        return None

    def kept_as(self, role):
        """How the module keeps a tensor: parameter, saved buffer or neither."""
        tensor = self._find(role)
        if tensor is None:
            return "missing"
        if any(tensor is one for one in self.module.parameters()):
            return "a parameter"
        saved = {*_ALIASES[role]} & {*self.module.state_dict()}
        return "a saved buffer" if saved else "not saved"

    def train(self, mode):
        self.module.train(mode)
        return super().train(mode)

    def __call__(self, x):
        return self.module(x)


def subject(answer, task, **choices):
    """The subject for a student's function or class."""
    kind = ModuleSubject if task.is_class else FunctionSubject
    return kind(answer, task, **choices)


def reference(task, **choices):
    """PyTorch's own norm, computed in float64 and rounded to the input's dtype."""
    choices["dtype"] = torch.float64
    if not task.is_class:
        return _TorchFunction(getattr(F, task.norm), task, **choices)
    return _TorchModule(_torch_class(task), task, **choices)


def _torch_class(task):
    name = task.title
    if task.norm in ("batch_norm", "instance_norm"):
        name += f"{max(1, len(task.shape) - 2)}d"
    return getattr(torch.nn, name)


class _TorchFunction(FunctionSubject):
    def __call__(self, x):
        # All arguments, whether or not the student's function takes them.
        names = list(inspect.signature(self.function).parameters)[1:]
        given = self.given()
        y = self.function(x.double(), **{name: given[name] for name in names})
        return y.to(x.dtype)


class _TorchModule(ModuleSubject):
    def __call__(self, x):
        return super().__call__(x.double()).to(x.dtype)


def values_per_set(task):
    """How many values share statistics."""
    if task.on_trailing:
        return math.prod(task.normalized_shape)
    n, c, *positions = task.shape
    channels = {"batch_norm": n, "group_norm": c // task.num_groups}.get(task.norm, 1)
    return channels * math.prod(positions)
