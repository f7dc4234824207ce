"""The named mistakes: norms made wrong in one way each, and what to tell the student.

`says` may name {m}, the number of values in a set, and {sets}, the right pattern.
"""

import itertools
from functools import lru_cache

import torch

from normlab import axes
from normlab.exercises.steps import START, Steps
from normlab.exercises.subjects import values_per_set

CENTERED = ("batch_norm", "instance_norm", "layer_norm", "group_norm")
ALL = (*CENTERED, "rms_norm")
CHANNELS = ("batch_norm", "instance_norm", "group_norm")
BATCH = ("batch_norm",)


class Mistake(Steps):
    """A norm that is wrong in one way."""

    name = ""
    norms = ALL
    needs = ()  # what the code must have for it to be possible
    class_only = False
    noisy = ()  # probes whose answers nobody can predict, only that they are wrong
    says = ""

    @classmethod
    def sentence(cls, task):
        """What to tell the student."""
        return cls.says.format(m=values_per_set(task), sets=task.pattern)

    @classmethod
    def plausible(cls, got):
        """Whether an answer to one of the `noisy` probes may come from this mistake."""
        return True


class AffineMistake(Mistake):
    """One in weight or bias."""

    needs = ("weight",)


class RunningMistake(Mistake):
    """One in the running statistics."""

    norms = ("batch_norm", "instance_norm")
    needs = ("running_mean", "running_var")


# Which statistic


class UnbiasedInForward(Mistake):
    name = "n-1 in the forward pass"
    norms = CENTERED
    says = (
        "Your output is too small by √((m−1)/m), here with m = {m}: you divided the "
        "variance by m−1. Normalize with the biased variance, divided by m "
        "(`correction=0`); `var()` divides by m−1 unless told otherwise."
    )

    def variance(self, centered, dims):
        return centered.var(dims, keepdim=True)

    def stored(self, var, count):
        return var


class OnePassVariance(Mistake):
    name = "E[x²] − E[x]²"
    # What is left when the digits have cancelled is noise; no two noises agree.
    noisy = ("values around 10000",)
    norms = CENTERED
    says = (
        "You compute the variance as E[x²] − E[x]². Both are huge where the mean is "
        "large, and nearly equal, so their digits cancel: around 10000 nothing is "
        "left. Subtract the mean first, then average the squares."
    )

    def measure(self, x, dims):
        mean = x.mean(dims, keepdim=True)
        return mean, x.square().mean(dims, keepdim=True) - mean.square()


class NoRoot(Mistake):
    name = "divided by the variance"
    says = (
        "You divide by the variance; divide by its square root, the standard "
        "deviation (for RMSNorm: by the root of the mean square)."
    )

    def deviation(self, var):
        return var + self.eps


class SumForMean(Mistake):
    name = "sum instead of mean of the squares"
    says = (
        "Your output is too small by √m, here √{m}: you summed the squares and did not "
        "divide by their number. Take the mean of the squares."
    )

    def variance(self, centered, dims):
        return centered.square().sum(dims, keepdim=True)


class NotCentered(Mistake):
    name = "mean not subtracted"
    norms = CENTERED
    says = (
        "You divide by the right standard deviation, but the mean is still in your "
        "output: subtract it before you divide."
    )

    def center(self, x, mean):
        return x


class RootMeanSquare(Mistake):
    name = "RMS instead of mean and variance"
    norms = CENTERED
    says = (
        "You divide by the root mean square and subtract no mean: that is the way of "
        "RMSNorm. Subtract the mean, and average the squares of what is left."
    )

    def mean(self, x, dims):
        return x.new_zeros([1] * x.dim())


class CenteredRMS(Mistake):
    name = "mean subtracted in RMSNorm"
    norms = ("rms_norm",)
    says = (
        "You subtract the mean: that makes it a LayerNorm. RMSNorm leaves the mean in "
        "and divides x by √(mean of x²)."
    )

    def mean(self, x, dims):
        return x.mean(dims, keepdim=True)


class DeviationInRMS(Mistake):
    name = "standard deviation in RMSNorm"
    norms = ("rms_norm",)
    says = (
        "You divide by the standard deviation, which measures the distance from the "
        "mean. RMSNorm knows no mean: divide by √(mean of x²)."
    )

    def variance(self, x, dims):
        return x.var(dims, correction=0, keepdim=True)


class MeanSizeInRMS(Mistake):
    name = "mean of the absolute values"
    norms = ("rms_norm",)
    says = (
        "You divide by the mean of |x|. RMSNorm squares, takes the mean and then the "
        "root: √(mean of x²)."
    )

    def variance(self, x, dims):
        return x.abs().mean(dims, keepdim=True).square()


class MeanDeviation(Mistake):
    name = "mean absolute deviation"
    norms = CENTERED
    says = (
        "You divide by the mean of |x − mean|. The standard deviation is the root of "
        "the mean of the squares (x − mean)²."
    )

    def variance(self, centered, dims):
        return centered.abs().mean(dims, keepdim=True).square()


class VarianceOfSamples(Mistake):
    name = "variance of each sample, averaged"
    norms = BATCH
    says = (
        "Your variance is the average of the variances of the samples: each is "
        "measured from its own mean, and how far the samples' means lie apart is "
        "lost. Subtract the mean of the whole batch, then average the squares over "
        "[N] as well."
    )

    def variance(self, centered, dims):
        within = dims[1:] or dims
        own = centered.mean(within, keepdim=True)
        return (centered - own).square().mean(dims, keepdim=True)


# eps


class EpsOutside(Mistake):
    name = "eps outside the root"
    says = (
        "You add eps to the root: √var + eps. It belongs inside, √(var + eps): in "
        "front of small values that is a large difference, and the root's gradient "
        "stays finite at 0."
    )

    def deviation(self, var):
        return torch.sqrt(var) + self.eps


class NoEps(Mistake):
    name = "no eps"
    says = (
        "There is no eps in your root: where all values of a set are equal you "
        "divide 0 by 0 and get NaN. Divide by √(var + eps)."
    )

    def deviation(self, var):
        return torch.sqrt(var)


class EpsAsFloor(Mistake):
    name = "eps as a lower bound"
    says = (
        "You use eps as a lower bound of the variance. It is added: √(var + eps), also "
        "where the variance is larger."
    )

    def deviation(self, var):
        return torch.sqrt(var.clamp(min=self.eps))


class EpsSquared(Mistake):
    name = "eps squared"
    says = "You add eps² to the variance. Add eps itself: √(var + eps)."

    def deviation(self, var):
        return torch.sqrt(var + self.eps**2)


class EpsFixed(Mistake):
    name = "argument eps ignored"
    says = (
        "Your code uses one eps of its own and ignores the argument `eps`. Use the one "
        "that comes in."
    )

    def deviation(self, var):
        return torch.sqrt(var + self.task.eps)


class WrongEps(Mistake):
    """Another number for eps, whatever the argument says."""

    name = "another value for eps"
    used = None

    def deviation(self, var):
        return torch.sqrt(var + self.used)

    @classmethod
    def sentence(cls, task):
        return (
            f"Your eps is {cls.used:g}; here it is {task.eps:g}, unless the caller "
            "says otherwise. It matters where values are small."
        )


# weight and bias


class NoAffine(AffineMistake):
    name = "weight and bias missing"
    says = (
        "Weight and bias have no effect. After normalizing, multiply by the weight "
        "(and add the bias, where there is one)."
    )

    def affine(self, y):
        return y


class NoBias(AffineMistake):
    name = "bias missing"
    needs = ("weight", "bias")
    norms = CENTERED
    says = "You multiply by the weight, but never add the bias."

    def affine(self, y):
        weight, _ = self.weight_and_bias(y)
        return y if weight is None else y * weight


class NoWeight(AffineMistake):
    name = "weight missing"
    needs = ("weight", "bias")
    norms = CENTERED
    says = "You add the bias, but never multiply by the weight."

    def affine(self, y):
        _, bias = self.weight_and_bias(y)
        return y if bias is None else y + bias


class AffineOnLastAxis(AffineMistake):
    name = "weight along the wrong axis"
    norms = CHANNELS
    says = (
        "Weight and bias broadcast along the last axis; they belong to the channels, "
        "axis 1. Give them the shape (1, C, 1, 1): `weight.view(1, -1, 1, 1)`."
    )

    def weight_and_bias(self, y):
        return self.tensors.get("weight"), self.tensors.get("bias")


class BiasFirst(AffineMistake):
    name = "bias added before the weight"
    needs = ("weight", "bias")
    norms = CENTERED
    says = (
        "You add the bias first and multiply it by the weight too: (y + bias)·weight. "
        "Multiply first: y·weight + bias."
    )

    def affine(self, y):
        weight, bias = self.weight_and_bias(y)
        y = y if bias is None else y + bias
        return y if weight is None else y * weight


class AffineBeforeNormalizing(AffineMistake):
    name = "weight and bias before normalizing"
    says = (
        "You apply weight and bias to the input and normalize afterwards, which undoes "
        "them. Normalize first, then multiply and add."
    )

    def widen(self, x):
        return self._early(super().widen(x))

    def _early(self, x):
        return Steps.affine(self, x)

    def affine(self, y):
        return y


class UnitOffset(AffineMistake):
    name = "1 + weight"
    says = (
        "You multiply by 1 + weight. That goes with weights that start at 0 (as in "
        "Gemma); here the weight starts at 1 and is the factor itself."
    )

    def affine(self, y):
        weight, bias = self.weight_and_bias(y)
        y = y if weight is None else y * (1 + weight)
        return y if bias is None else y + bias


class WeightFromZero(AffineMistake):
    name = "weight started at 0"
    class_only = True
    start = {**START, "weight": 0.0}
    says = (
        "Your weight starts at 0, so a new layer outputs nothing but its bias. "
        "Start it at 1: `torch.ones(...)`."
    )


class RandomWeight(AffineMistake):
    name = "weight started at random"
    noisy = ("the values that a new layer starts with",)
    class_only = True
    says = (
        "Your weight starts at random numbers. A norm starts as the plain "
        "normalization: weight 1 and bias 0."
    )

    def __init__(self, task, fresh=False, **choices):
        super().__init__(task, fresh=fresh, **choices)
        if fresh:
            weight = self.tensors["weight"].data
            weight.copy_(torch.arange(weight.numel()).view(weight.shape))

    @classmethod
    def plausible(cls, got):
        weight = got.get("weight")
        return isinstance(weight, torch.Tensor) and bool((weight != weight[0]).any())


class BiasFromOne(AffineMistake):
    name = "bias started at 1"
    needs = ("weight", "bias")
    class_only = True
    norms = CENTERED
    start = {**START, "bias": 1.0}
    says = "Your bias starts at 1, which shifts every output. Start it at 0."


class OneWeight(AffineMistake):
    name = "one weight for everything"
    class_only = True
    says = "Your layer has a single weight{and_bias}. There is one for each {place}."

    def __init__(self, task, **choices):
        super().__init__(task, **choices)
        for role in ("weight", "bias"):
            if role in self.tensors:
                fresh = torch.full((1,), self.start[role], dtype=self.dtype)
                self.tensors[role] = fresh.requires_grad_()

    def weight_and_bias(self, y):
        return self.tensors.get("weight"), self.tensors.get("bias")

    @classmethod
    def sentence(cls, task):
        place = "position of normalized_shape" if task.on_trailing else "channel"
        and_bias = " and a single bias" if task.has("bias") else ""
        return cls.says.format(place=place, and_bias=and_bias)


class WeightPerGroup(AffineMistake):
    name = "weight for each group"
    class_only = True
    norms = ("group_norm",)
    says = (
        "You have one weight for each group. The groups share statistics, not "
        "parameters: weight and bias belong to the channels, so there are C of each."
    )

    def __init__(self, task, **choices):
        super().__init__(task, **choices)
        for role in ("weight", "bias"):
            if role in self.tensors:
                shape = (task.num_groups,)
                fresh = torch.full(shape, self.start[role], dtype=self.dtype)
                self.tensors[role] = fresh.requires_grad_()

    def weight_and_bias(self, y):
        each = y.shape[1] // self.task.num_groups
        for role in ("weight", "bias"):
            tensor = self.tensors.get(role)
            if tensor is not None:
                shape = (-1, *[1] * (y.dim() - 2))
                tensor = tensor.repeat_interleave(each).view(shape)
            yield tensor


# Gradients


class DetachedStatistics(Mistake):
    name = "statistics detached"
    says = (
        "The values are right, the gradient is not: your statistics are cut off from "
        "the graph (`detach`, `no_grad`, `.data` or `.item()`). They depend on the "
        "input, and the gradient has to flow through them."
    )

    def measure(self, x, dims):
        mean, var = super().measure(x, dims)
        return mean.detach(), var.detach()


class DetachedVariance(Mistake):
    name = "variance detached"
    norms = CENTERED
    says = (
        "The gradient flows through your mean, but not through your variance, which is "
        "cut off from the graph. It depends on the input as well."
    )

    def measure(self, x, dims):
        mean, var = super().measure(x, dims)
        return mean, var.detach()


class DetachedMean(Mistake):
    name = "mean detached"
    norms = CENTERED
    says = (
        "Your mean is cut off from the graph, so the gradient of the input no longer "
        "sums to 0 over a set. It depends on the input: let the gradient through."
    )

    def measure(self, x, dims):
        mean = self.mean(x, dims).detach()
        return mean, self.variance(x - mean, dims)


# Types, layout, side effects


class SquaresInHalf(Mistake):
    name = "squares in float16"
    # Where it overflows depends on the order of the sums.
    noisy = ("half precision",)
    says = (
        "You square in float16, where 300² is already infinite. Compute in float32 "
        "(`x.float()`) and return to the input's dtype at the end."
    )

    def widen(self, x):
        return x

    @classmethod
    def plausible(cls, got):
        return got.get("dtype") == "torch.float16"


class OutputWide(Mistake):
    name = "output dtype changed"
    says = (
        "Your output has another dtype than the input. Compute in float32 where that "
        "is needed, but end with `.to(x.dtype)`."
    )

    def widen(self, x):
        return x.float()

    def narrow(self, y, dtype):
        return y


class OutputWideParametersToo(OutputWide):
    def weight_and_bias(self, y):
        return (t if t is None else t.float() for t in super().weight_and_bias(y))


class InputChanged(Mistake):
    name = "input changed in place"
    # In whatever way it is changed, and whichever view of it autograd complains about.
    noisy = (
        "the input afterwards",
        "the gradient of the input",
        "the running statistics after three steps",
    )
    says = (
        "Your code changes the input tensor itself (an operation with `_` at its "
        "end, or `-=`, `/=`, or an assignment into it). Others still need it: make a "
        "new tensor."
    )

    def center(self, x, mean):
        return x.sub_(mean) if self.task.center else x

    def normalize(self, x, mean, var):
        return self.center(x, mean).div_(self.deviation(var))

    @classmethod
    def plausible(cls, got):
        return "error" not in got or "in-place" in str(got["error"])


# Running statistics


class BiasedRunning(RunningMistake):
    name = "biased running variance"
    says = (
        "Your running_var is too small by (m−1)/m, here with m = {m}: you stored the "
        "biased variance. Normalize with the biased one, store the unbiased one."
    )

    def stored(self, var, count):
        return var


class MomentumReversed(RunningMistake):
    name = "momentum turned round"
    says = (
        "Your momentum weighs the old value; PyTorch's weighs the new one: "
        "running = (1 − momentum)·running + momentum·batch."
    )

    def update(self, old, new):
        old.copy_(self.momentum * old + (1 - self.momentum) * new)


class NeverUpdated(RunningMistake):
    name = "running statistics never updated"
    says = (
        "Your running statistics never move from 0 and 1. In training, update them in "
        "place, for example with `running_mean.lerp_(mean, momentum)`; an assignment "
        "to a local name changes nothing outside."
    )

    def updates(self):
        return False


class RunningVarNeverUpdated(RunningMistake):
    name = "running variance never updated"
    says = (
        "You update running_mean, but running_var never moves. It needs the same step."
    )

    def remember(self, mean, var, count):
        before = self.tensors["running_var"].clone()
        super().remember(mean, var, count)
        self.tensors["running_var"].copy_(before)


class Replaced(RunningMistake):
    name = "running statistics replaced"
    says = (
        "Each batch replaces your running statistics. They are an average over many "
        "batches: running = (1 − momentum)·running + momentum·batch."
    )

    def update(self, old, new):
        old.copy_(new)


class Accumulated(RunningMistake):
    name = "running statistics summed up"
    says = (
        "You add momentum·batch, but keep all of the old value, so it grows and grows. "
        "Shrink the old one first: (1 − momentum)·running + momentum·batch."
    )

    def update(self, old, new):
        old.copy_(old + self.momentum * new)


class DeviationStored(RunningMistake):
    name = "standard deviation in running_var"
    says = "Your running_var holds the standard deviation. Store the variance."

    def stored(self, var, count):
        return super().stored(var, count).sqrt()


class RunningGraph(RunningMistake):
    name = "running statistics keep the graph"
    says = (
        "Your running statistics are part of the graph: it grows with every batch, and "
        "the second backward fails. Update them under `torch.no_grad()`, or from "
        "`mean.detach()`."
    )

    def remember(self, mean, var, count):
        super().remember(mean, var, count)
        for role in ("running_mean", "running_var"):
            self.tensors[role] = self.tensors[role] + 0 * mean.sum()


class UpdatedInEval(RunningMistake):
    name = "updated in eval"
    says = (
        "Your running statistics change in eval mode as well. Then they follow the "
        "test data: update them only while `training` is true."
    )

    def __call__(self, x):
        y = super().__call__(x)
        if not self.training:
            split, dims = self.split(self.widen(x))
            mean, var = self.measure(split, dims)
            self.remember(mean, var, split.numel() // mean.numel())
        return y


class RunningInTraining(RunningMistake):
    name = "running statistics used in training"
    says = (
        "In training you normalize with the running statistics. There the batch's own "
        "mean and variance serve; the running ones wait for eval."
    )
    remembers_first = True

    def __call__(self, x):
        if not self.training:
            return super().__call__(x)
        if self.remembers_first:
            self._remember(x)
        self.training = False
        y = super().__call__(x)
        self.training = True
        if not self.remembers_first:
            self._remember(x)
        return y

    def _remember(self, x):
        split, dims = self.split(self.widen(x))
        mean, var = self.measure(split, dims)
        self.remember(mean, var, split.numel() // mean.numel())


class RunningInTrainingThenUpdated(RunningInTraining):
    remembers_first = False


class BatchInEval(RunningMistake):
    name = "batch statistics in eval"
    says = (
        "In eval mode you still normalize with the statistics of the batch, so an "
        "output depends on what else is in it. Use running_mean and running_var there."
    )

    def uses_batch(self):
        return True

    def updates(self):
        return self.training


class ModeByGrad(RunningMistake):
    name = "mode by recorded gradients"
    says = (
        "You decide between train and eval by whether gradients are recorded "
        "(`torch.is_grad_enabled()`). The two are independent: only `training` decides."
    )

    def uses_batch(self):
        return torch.is_grad_enabled()

    def updates(self):
        return torch.is_grad_enabled()


class PlainAttributes(RunningMistake):
    name = "running statistics as plain attributes"
    class_only = True
    says = (
        "Your running statistics are plain attributes: `state_dict` does not save "
        "them and `.to()` does not move them. Use "
        '`self.register_buffer("running_mean", ...)`.'
    )

    def kept_as(self, role):
        kept = super().kept_as(role)
        return "not saved" if kept == "a saved buffer" else kept


class RunningParameters(RunningMistake):
    name = "running statistics as parameters"
    class_only = True
    says = (
        "Your running statistics are parameters, which the optimizer changes. They are "
        "measured, not learned: `register_buffer`."
    )

    def kept_as(self, role):
        return "a parameter"


class WeightNotParameter(AffineMistake):
    name = "weight is no parameter"
    class_only = True
    says = (
        "Your weight is not a parameter, so no optimizer finds it and nothing learns. "
        "Wrap it: `nn.Parameter(torch.ones(...))`."
    )

    def kept_as(self, role):
        return "not saved" if role in ("weight", "bias") else super().kept_as(role)


class WeightAsBuffer(WeightNotParameter):
    name = "weight is a buffer"

    def kept_as(self, role):
        return "a saved buffer"


class VarianceFromZero(RunningMistake):
    name = "running variance started at 0"
    class_only = True
    start = {**START, "running_var": 0.0}
    says = (
        "Your running_var starts at 0, and a layer that has seen nothing divides by "
        "√eps. Start it at 1."
    )


# Splitting axes


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
    norms = ("group_norm",)
    says = (
        "You move the channels to the end and then reshape to (N, G, ...): the reshape "
        "cuts the positions, not the channels, so every group holds pieces of all "
        "channels. Split the channel axis itself: x.reshape(N, G, C // G, H, W)."
    )

    def split(self, x):
        last = x.movedim(1, -1)
        rows = last.reshape(x.shape[0], self.task.num_groups, -1)
        return rows, (2,)

    def join(self, y, x):
        return y.reshape(x.movedim(1, -1).shape).movedim(-1, 1)


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
    norms = BATCH
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


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


_NAMED = [
    cls for cls in _subclasses(Mistake) if cls.name and cls not in (WrongAxes, WrongEps)
]


def names():
    """The names of all mistakes."""
    return {cls.name for cls in (*_NAMED, WrongAxes, WrongEps)}


@lru_cache(maxsize=64)
def mistakes(task):
    """All mistakes that can be made in a task."""
    found = [
        cls
        for cls in _NAMED
        if task.norm in cls.norms
        and task.has(*cls.needs)
        and (task.is_class or not cls.class_only)
    ]
    for eps in (1e-3, 1e-6, 1e-8, 1e-12):
        if eps != task.eps:
            found.append(type("WrongEps", (WrongEps,), {"used": eps}))
    return (*_wrong_axes(task), *found)


def _wrong_axes(task):
    names, right = task.axis_names, axes.parse(task.pattern)
    ways = [(name, f"[{name}]") for name in names]
    if task.norm == "group_norm":
        ways[1] += ("(G [C/G])", "([C/G] G)")
    for words in itertools.product(*ways):
        pattern = axes.parse(" ".join(words))
        if pattern.reduced and pattern != right:
            yield type("WrongAxes", (WrongAxes,), {"wrong": pattern})
