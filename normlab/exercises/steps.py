"""A norm in steps, each of which can be replaced by a mistaken one.

`Steps` as it stands is right. A mistake (see `normlab.exercises.mistakes`) is a
subclass that does one step in the wrong way: what it computes is what a student who
made that mistake would compute, to the last digit that matters.
"""

import torch

from normlab import axes
from normlab.exercises.subjects import START, FunctionSubject


class Steps(FunctionSubject):
    """Widen, split into sets, measure, remember, normalize, join, affine, narrow."""

    start = START

    def __init__(self, task, fresh=False, **choices):
        super().__init__(None, task, **choices)
        if fresh:
            for role, tensor in self.tensors.items():
                tensor.data.fill_(self.start[role])

    @property
    def pattern(self):
        """Which values share statistics."""
        return axes.parse(self.task.pattern)

    @property
    def remembers(self):
        """Whether there are running statistics."""
        return self.task.has("running_mean", "running_var")

    def kept_as(self, role):
        """How a module keeps a tensor."""
        return "a parameter" if role in ("weight", "bias") else "a saved buffer"

    def __call__(self, x):
        wide = self.widen(x)
        split, dims = self.split(wide)
        if self.uses_batch():
            mean, var = self.measure(split, dims)
            if self.remembers and self.updates():
                count = split.numel() // mean.numel()
                self.remember(mean, var, count)
        else:
            shape = [n if i == 1 else 1 for i, n in enumerate(split.shape)]
            mean = self.tensors["running_mean"].view(shape)
            var = self.tensors["running_var"].view(shape)
        y = self.join(self.normalize(split, mean, var), wide)
        return self.narrow(self.affine(y), x.dtype)

    def widen(self, x):
        return x.float() if x.dtype == torch.float16 else x

    def split(self, x):
        pattern = self.pattern
        groups = {pattern.groups: self.task.num_groups} if pattern.groups else {}
        sets = pattern.on(x.shape, **groups)
        return x.reshape(sets.split_shape), sets.reduced_dims

    def uses_batch(self):
        return self.training or not self.remembers

    def updates(self):
        return self.training

    def measure(self, x, dims):
        mean = self.mean(x, dims)
        return mean, self.variance(x - mean, dims)

    def mean(self, x, dims):
        if not self.task.center:
            return x.new_zeros([1] * x.dim())
        return x.mean(dims, keepdim=True)

    def variance(self, centered, dims):
        return centered.square().mean(dims, keepdim=True)

    def remember(self, mean, var, count):
        for role, new in (
            ("running_mean", mean),
            ("running_var", self.stored(var, count)),
        ):
            old, new = self.tensors[role], new.detach()
            # One value per channel: over samples, as InstanceNorm's, the average.
            new = new.mean(0).flatten() if new.numel() != old.numel() else new.flatten()
            self.update(old, new)

    def stored(self, var, count):
        return var * count / (count - 1)

    def update(self, old, new):
        old.copy_((1 - self.momentum) * old + self.momentum * new)

    def normalize(self, x, mean, var):
        return self.center(x, mean) / self.deviation(var)

    def center(self, x, mean):
        return x - mean

    def deviation(self, var):
        return torch.sqrt(var + self.eps)

    def join(self, y, x):
        return y.reshape(x.shape)

    def weight_and_bias(self, y):
        shape = [1] * y.dim()
        if self.task.on_trailing:
            shape = self.task.normalized_shape
        else:
            shape[1] = -1
        roles = (self.tensors.get(role) for role in ("weight", "bias"))
        return (None if t is None else t.view(shape) for t in roles)

    def affine(self, y):
        weight, bias = self.weight_and_bias(y)
        y = y if weight is None else y * weight
        return y if bias is None else y + bias

    def narrow(self, y, dtype):
        return y.to(dtype)
