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


class VarianceFromZero(RunningMistake):
    name = "running variance started at 0"
    class_only = True
    start = {**START, "running_var": 0.0}
    says = (
        "Your running_var starts at 0, and a layer that has seen nothing divides by "
        "√eps. Start it at 1."
    )
