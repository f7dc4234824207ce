"""Mistakes in which values share statistics."""

import itertools

from normlab import axes
from normlab.exercises.mistakes.base import CENTERED, Mistake
from normlab.exercises.steps import Steps


class LastAxisOnly(Mistake):
    name = "only the last axis"
    norms = ("layer_norm", "rms_norm")
    needs = ("normalized_shape",)
    says = (
        "You average over the last axis alone. `normalized_shape` may name several "
        "trailing axes, and all of them are averaged over together."
    )

    def split(self, x):
        return x, (-1,)


class GroupsThroughChannelsLast(Mistake):
    name = "reshape that mixes channels and positions"
    norms = ("group_norm", "instance_norm")

    @classmethod
    def sentence(cls, task):
        rows, whole = "(N, C, ...)", "x.flatten(2)"
        if task.norm == "group_norm":
            rows, whole = "(N, G, ...)", "x.reshape(N, G, C // G, H, W)"
        return (
            f"You move the channels to the end and then reshape to {rows}: the reshape "
            "cuts the positions, not the channels, so every set holds pieces of all "
            f"channels. Leave the channels where they are: {whole}."
        )

    def split(self, x):
        if not self.uses_batch():
            return super().split(x)
        rows = x.shape[1] if self.task.norm == "instance_norm" else self.task.num_groups
        return x.movedim(1, -1).reshape(x.shape[0], rows, -1), (2,)

    def join(self, y, x):
        if not self.uses_batch():
            return super().join(y, x)
        return y.reshape(x.movedim(1, -1).shape).movedim(-1, 1)


class WithoutBatch(Mistake):
    name = "batch lost in the reshape"
    norms = ("group_norm",)
    says = (
        "You reshape to (G, ...) without the batch, so a row holds whole samples "
        "instead of groups. Keep N in front: x.reshape(N, G, -1)."
    )

    def split(self, x):
        return x.reshape(self.task.num_groups, -1), (1,)


class DownTheColumns(Mistake):
    name = "averaged down the columns"
    norms = ("group_norm",)
    says = (
        "You made one row for each set, and averaged down the columns, across the "
        "sets. Average along the rows: dim 1 of a tensor (N·G, m)."
    )

    def split(self, x):
        return x.reshape(len(x) * self.task.num_groups, -1), (0,)


class GroupsOfSize(Mistake):
    name = "num_groups taken as the size of a group"
    norms = ("group_norm",)
    says = (
        "You made groups of num_groups channels each. num_groups is how many groups "
        "there are; each holds C / num_groups channels."
    )

    def split(self, x):
        n, c, *positions = x.shape
        size = self.task.num_groups
        split = x.reshape(n, c // size, size, *positions)
        return split, tuple(range(2, split.dim()))


class Transposed(Mistake):
    name = "reshape instead of moving an axis"
    norms = ("batch_norm",)
    says = (
        "You reshape to (C, ...) to gather each channel. A reshape keeps the order in "
        "memory, so your rows mix channels. Move the axis first: x.transpose(0, 1)."
    )

    def split(self, x):
        if not self.uses_batch():
            return super().split(x)
        return x.reshape(x.shape[1], -1), (1,)


class Unkept(Mistake):
    name = "keepdim missing"
    says = (
        "Your mean has lost the axes it was taken over, so it broadcasts along the "
        "wrong ones. Keep them as axes of size 1: `mean(..., keepdim=True)`."
    )

    def measure(self, x, dims):
        mean = self.mean(x, dims)
        mean = mean.squeeze(dims) if self.task.center else mean
        var = Steps.variance(self, x - mean, dims)
        return mean, var.squeeze(dims)

    def normalize(self, x, mean, var):
        return (x - mean) / self.deviation(var)

    def join(self, y, x):
        # Broadcast to more values, it keeps their shape, where there is no way back.
        grown = y.dim() == x.dim() and y.numel() != x.numel()
        return y if grown else super().join(y, x)


class UnkeptAfterwards(Unkept):
    """Both measured rightly, then without their axes."""

    def measure(self, x, dims):
        mean, var = Steps.measure(self, x, dims)
        mean = mean.squeeze(dims) if self.task.center else mean
        return mean, var.squeeze(dims)


class UnkeptMean(UnkeptAfterwards):
    norms = CENTERED

    def measure(self, x, dims):
        mean, var = Steps.measure(self, x, dims)
        return mean.squeeze(dims), var


class UnkeptVariance(UnkeptAfterwards):
    norms = CENTERED
    says = (
        "Your variance has lost the axes it was taken over, so it broadcasts along the "
        "wrong ones. Keep them as axes of size 1: `var(..., keepdim=True)`."
    )

    def measure(self, x, dims):
        mean, var = Steps.measure(self, x, dims)
        return mean, var.squeeze(dims)


# Wrong axes


class WrongAxes(Mistake):
    """Statistics over other sets: which norm would that be?"""

    name = "wrong axes"
    wrong = None

    @property
    def pattern(self):
        # An input of another rank than the task's: the probes with such inputs are not
        # what tells these mistakes apart.
        return self.wrong

    def remember(self, mean, var, count):
        per_channel = self.tensors["running_mean"].numel()
        if mean.numel() == per_channel:
            super().remember(mean, var, count)

    @classmethod
    def sentence(cls, task):
        wrong, right = cls.wrong, axes.parse(task.pattern)
        layer = wrong.layer(center=task.center)
        what = f"you averaged over {wrong}"
        if not wrong.kept:
            what = "you measured the whole tensor at once"
        whose = f"the sets of {layer.norm}" if layer else "the sets of no usual norm"
        return (
            f"Wrong axes: {what}, {whose}. {task.title} takes {right}: reduce "
            f"{', '.join(right.reduced)} and keep {', '.join(right.kept)}."
        )


def wrong_axes(task):
    """All other ways to reduce the axes of a task."""
    names, right = task.axis_names, axes.parse(task.pattern)
    ways = [(name, f"[{name}]") for name in names]
    if task.norm == "group_norm":
        ways[1] += ("(G [C/G])", "([C/G] G)")
    for words in itertools.product(*ways):
        pattern = axes.parse(" ".join(words))
        if pattern.reduced and pattern != right:
            yield type("WrongAxes", (WrongAxes,), {"wrong": pattern})
