"""Mistakes in the running statistics."""

import torch

from normlab.exercises.mistakes.base import RunningMistake
from normlab.exercises.subjects import START


class BiasedRunning(RunningMistake):
    name = "biased running variance"
    says = (
        "Your running_var is too small by (m−1)/m, here with m = {m}: you stored the "
        "biased variance. Normalize with the biased one, store the unbiased one."
    )

    def stored(self, var, count):
        return var


class BatchSizeCorrection(RunningMistake):
    name = "variance corrected by the batch size"
    norms = ("batch_norm",)
    says = (
        "You correct the running variance by N/(N−1) with the size of the batch. What "
        "counts is how many values were averaged, batch and positions: m/(m−1), here "
        "with m = {m}."
    )

    def stored(self, var, count):
        n = self.task.shape[0]
        return super().stored(var, count) if n == 1 else var * n / (n - 1)


class VarianceOfEach(RunningMistake):
    name = "variances of the samples stored"
    norms = ("batch_norm",)
    says = (
        "Your running_var is the average of the variances of the samples; that is "
        "InstanceNorm's. BatchNorm's set is the whole batch: take one unbiased "
        "variance over batch and positions, and store that."
    )
    within = None

    def measure(self, x, dims):
        within = dims[1:]
        self.within = x.var(within).mean(0) if within else None
        return super().measure(x, dims)

    def stored(self, var, count):
        return super().stored(var, count) if self.within is None else self.within


class VarianceOfBatch(RunningMistake):
    name = "variance of the whole batch stored"
    norms = ("instance_norm",)
    says = (
        "Your running_var is the variance of the whole batch, which counts how far the "
        "samples lie apart as well; that is BatchNorm's. InstanceNorm's sets lie "
        "within a sample: take the unbiased variance of each, over the positions, and "
        "store their mean over the samples."
    )

    def remember(self, mean, var, count):
        # The variance of all is the one within the samples and the one between them.
        between = mean.var(0, correction=0, keepdim=True)
        whole = var.mean(0, keepdim=True) + between
        super().remember(mean, whole, count * len(mean))


class BiasedVarianceOfBatch(VarianceOfBatch):
    def stored(self, var, count):
        return var


class OneSample(RunningMistake):
    name = "statistics of one sample stored"
    norms = ("instance_norm",)
    says = (
        "Your running statistics follow a single sample of the batch. Store the mean "
        "over all samples, of their means and of their unbiased variances."
    )
    kept = slice(0, 1)

    def remember(self, mean, var, count):
        super().remember(mean[self.kept], var[self.kept], count)


class LastSample(OneSample):
    kept = slice(-1, None)


class MomentumReversed(RunningMistake):
    name = "momentum turned round"
    says = (
        "Your momentum weighs the old value; PyTorch's weighs the new one: "
        "running = (1 − momentum)·running + momentum·batch."
    )

    def update(self, old, new):
        old.copy_(self.momentum * old + (1 - self.momentum) * new)


class MomentumReversedForVariance(RunningMistake):
    name = "momentum turned round for the variance"
    says = (
        "Your momentum weighs the new value in running_mean, which is right, and the "
        "old value in running_var: running_var = (1 − momentum)·running_var + "
        "momentum·batch."
    )

    def update(self, old, new):
        turned = old is self.tensors["running_var"]
        share = 1 - self.momentum if turned else self.momentum
        old.copy_((1 - share) * old + share * new)


class MomentumFixed(RunningMistake):
    name = "argument momentum ignored"
    needs = ("running_mean", "running_var", "momentum")
    says = (
        "Your code uses one momentum of its own and ignores the argument `momentum`. "
        "Use the one that comes in."
    )

    def update(self, old, new):
        old.copy_(0.9 * old + 0.1 * new)


class WrongMomentum(RunningMistake):
    """Another number for momentum, whatever the argument says."""

    name = "another value for momentum"
    used = None

    def update(self, old, new):
        old.copy_((1 - self.used) * old + self.used * new)

    @classmethod
    def sentence(cls, task):
        return (
            f"Your momentum is {cls.used:g}; here it is 0.1, unless the caller says "
            "otherwise: running = 0.9·running + 0.1·batch."
        )


class PlainAverage(RunningMistake):
    name = "plain average of the batches"
    class_only = True
    says = (
        "Your running statistics are the plain average of all batches so far, as with "
        "`momentum=None`. With a momentum, each new batch has that share: running = "
        "(1 − momentum)·running + momentum·batch."
    )
    start_counts = False

    def __init__(self, task, **choices):
        super().__init__(task, **choices)
        self.batches = int(self.start_counts)

    def remember(self, mean, var, count):
        self.batches += 1
        super().remember(mean, var, count)

    def update(self, old, new):
        old.copy_(old + (new - old) / self.batches)


class PlainAverageWithStart(PlainAverage):
    start_counts = True


class MeanAndVarianceExchanged(RunningMistake):
    name = "running mean and variance exchanged"
    says = (
        "Your running_mean holds the variance and your running_var the mean: the two "
        "are exchanged. `torch.var_mean` returns the variance first."
    )

    def remember(self, mean, var, count):
        self._exchange()
        super().remember(mean, var, count)
        self._exchange()

    def _exchange(self):
        a, b = (self.tensors[role] for role in ("running_mean", "running_var"))
        self.tensors |= {"running_mean": b, "running_var": a}


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


class ModeIgnored(RunningMistake):
    name = "mode ignored"
    says = (
        "Your code does the same in train and in eval: it normalizes with the batch "
        "and moves the running statistics. In eval, running_mean and running_var "
        "normalize, and stay as they are."
    )

    def uses_batch(self):
        return True

    def updates(self):
        return True


class ModesExchanged(RunningMistake):
    name = "train and eval exchanged"
    says = (
        "Train and eval are exchanged: in training you normalize with the running "
        "statistics, in eval with the batch. Turn the condition round."
    )

    def uses_batch(self):
        return not self.training

    def updates(self):
        return not self.training


class EachSampleInEval(BatchInEval):
    name = "statistics of each sample in eval"
    norms = ("batch_norm",)
    says = (
        "In eval mode you normalize each sample with its own mean and variance, as "
        "InstanceNorm does. Use running_mean and running_var there."
    )

    def split(self, x):
        if self.training or x.dim() < 3:
            return super().split(x)
        return x, tuple(range(2, x.dim()))


class NoRootInEval(RunningMistake):
    name = "divided by the variance in eval"
    says = (
        "In eval mode you divide by running_var itself. As in training, divide by the "
        "root: √(running_var + eps)."
    )

    def deviation(self, var):
        return super().deviation(var) if self.training else var + self.eps


class NoEpsInEval(RunningMistake):
    name = "no eps in eval"
    says = (
        "In eval mode there is no eps in your root, and a running_var of 0 gives NaN "
        "or infinity. As in training: √(running_var + eps)."
    )

    def deviation(self, var):
        return super().deviation(var) if self.training else torch.sqrt(var)


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


class VarianceFromZero(RunningMistake):
    name = "running variance started at 0"
    class_only = True
    start = {**START, "running_var": 0.0}
    says = (
        "Your running_var starts at 0, and a layer that has seen nothing divides by "
        "√eps. Start it at 1."
    )
