"""Mistakes in weight and bias."""

import torch

from normlab.exercises.mistakes.base import CENTERED, AffineMistake
from normlab.exercises.steps import Steps
from normlab.exercises.subjects import START


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


class Exchanged(AffineMistake):
    name = "weight and bias exchanged"
    needs = ("weight", "bias")
    norms = CENTERED
    says = "You multiply by the bias and add the weight. It is y·weight + bias."

    def weight_and_bias(self, y):
        weight, bias = super().weight_and_bias(y)
        return bias, weight


class NoAffineInEval(AffineMistake):
    name = "weight and bias missing in eval"
    norms = ("batch_norm", "instance_norm")
    needs = ("weight", "running_mean", "running_var")
    says = (
        "In eval mode weight and bias have no effect. Eval changes where mean and "
        "variance come from, and nothing after them."
    )

    def affine(self, y):
        return super().affine(y) if self.training else y


class AffineOnLastAxis(AffineMistake):
    name = "weight along the wrong axis"
    norms = ("batch_norm", "instance_norm", "group_norm")
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
