"""The exercises of chapter 5, InstanceNorm."""

import copy
import types
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from normlab.exercises import Choice, Code, Free, Pattern, Value
from normlab.exercises.checker import wrong_object
from normlab.exercises.seeded import drawn, gap, other, seeded

sets_on_volumes = Pattern(
    "5.1",
    question=(
        "`InstanceNorm3d` gets scans of shape (N, C, D, H, W): samples, channels, "
        "slices, rows and columns. Write the pattern of the values that share a mean."
    ),
    answer="N C [D H W]",
    mistakes=[
        (
            "N C D [H W]",
            "These sets stay within one slice: that is `InstanceNorm2d` on each "
            "slice by itself. The slices of a scan are positions, too.",
        ),
        (
            "[N] C [D H W]",
            "You average over the scans as well: these are the sets of BatchNorm.",
        ),
        (
            "N [C D H W]",
            "You average over the channels as well: one mean for each scan is what "
            "LayerNorm or one group of GroupNorm takes.",
        ),
    ],
    hints=[
        "Which two axes does every InstanceNorm keep, whatever its rank?",
        "Everything behind the channel is a position, and positions are reduced.",
    ],
    why="Sample and channel are kept; D, H and W are all positions.",
)

two_maps = Value(
    "5.2",
    question=(
        "A (1, 2, 2, 2) input: channel 0 holds 0, 0, 0, 4 and channel 1 holds "
        "5, 5, 5, 1. What does `InstanceNorm2d(2)` make of them, without eps? Answer "
        "with two lists of four numbers, good to 0.01. (Paper will do: both variances "
        "are the same small whole number.)"
    ),
    answer=[[-(3**-0.5)] * 3 + [3**0.5], [3**-0.5] * 3 + [-(3**0.5)]],
    tolerance=0.01,
    solution=(
        "answer = [[-0.577, -0.577, -0.577, 1.732], [0.577, 0.577, 0.577, -1.732]]"
    ),
    mistakes=[
        (
            [[-0.5, -0.5, -0.5, 1.5], [0.5, 0.5, 0.5, -1.5]],
            "You divided the squares by 3. A norm takes the biased variance: divide "
            "by the number of values, 4.",
        ),
        (
            [[-0.577, -0.577, -0.577, 1.732]] * 2,
            "Channel 1 is 5 − x: a negative factor turns the signs round, and a norm "
            "does not undo that.",
        ),
        (
            [[-1 / 3, -1 / 3, -1 / 3, 1], [1 / 3, 1 / 3, 1 / 3, -1]],
            "You divided by the variance, 3. Divide by its root.",
        ),
    ],
    hints=[
        "Each channel has a mean of its own. Subtract it before you square.",
        "The means are 1 and 4. The squared distances are 1, 1, 1, 9 both times.",
        "The variance is 12 / 4 = 3, so divide −1, −1, −1, 3 by √3 = 1.732.",
    ],
    why="The channels are mirror images, 5 − x, and so are the outputs: only a "
    "positive factor is taken away.",
)

unseen_changes = Choice(
    "5.3",
    question=(
        "A network begins with `nn.InstanceNorm2d(3)` as it comes. Which changes of "
        "a photograph can it not see (but for eps)? Answer with the set of letters."
    ),
    options={
        "a": "The contrast of the whole picture is halved.",
        "b": "Each colour gets a positive factor and an offset of its own.",
        "c": "The picture is turned into its negative.",
        "d": "The left half is made darker, the right half stays.",
        "e": "The photograph beside it in the batch is replaced.",
    },
    answer={"a", "b", "e"},
    mistakes={
        "a": "Look at (a) again: half the contrast is one factor for the whole map. "
        "Do mean and deviation take it away?",
        "b": "Look at (b) again: every channel is a set of its own, so each may have "
        "a factor and an offset of its own.",
        "c": "Look at (c) again: a negative has a factor of −1. The deviation is "
        "never negative, so the sign stays.",
        "d": "Look at (d) again: the two halves lie in one set. What they do not "
        "share is not taken away.",
        "e": "Look at (e) again: is N in brackets?",
    },
    hints=[
        "A norm takes away what a whole set shares, a shift and a positive scale, "
        "and never looks beyond its sets.",
        "The sets of `N C [H W]` are single maps. Which changes are one factor and "
        "one offset on each whole map? Which do not touch the map at all?",
    ],
    why="The set is one map of one picture: a positive factor and an offset of the "
    "whole map drop out, and nothing beyond the map comes in.",
)


def _over_samples_too(x, weight, bias, eps=1e-5):
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


def _unbiased(x, weight, bias, eps=1e-5):
    var, mean = torch.var_mean(x, (2, 3), keepdim=True)
    y = (x - mean) / (var + eps).sqrt()
    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)


from_empty_cell = Code(
    "5.4",
    norm="instance_norm",
    by_hand=True,
    name="my_instance_norm",
    question=(
        "From an empty cell: write `my_instance_norm(x, weight, bias, eps)` for "
        "images of shape (N, C, H, W), without calling a norm of PyTorch. Weight and "
        "bias have the shape (C,)."
    ),
    hints=[
        "Four steps: mean, variance, divide, scale. Over which axes are the first two?",
        "`x.mean((2, 3), keepdim=True)` has the shape (N, C, 1, 1). The variance is "
        "the mean of the squares of x minus that, over the same axes.",
        "End with `y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)`.",
    ],
    solution="""
def my_instance_norm(x, weight, bias, eps):
    centered = x - x.mean((2, 3), keepdim=True)
    var = centered.square().mean((2, 3), keepdim=True)
    y = centered / torch.sqrt(var + eps)
    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)
""",
    why="It is BatchNorm's code with N left out of the reduced axes.",
    wrong=[
        (_over_samples_too, "you averaged over [N] C [H W]"),
        (_unbiased, "you divided the variance by m−1"),
    ],
)


class _BiasedStored(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x):
        affine = self.weight, self.bias
        if not self.training:
            stored = self.running_mean, self.running_var
            return F.batch_norm(x, *stored, *affine, eps=self.eps)
        with torch.no_grad():
            var, mean = torch.var_mean(x, (2, 3), correction=0)
            self.running_mean.lerp_(mean.mean(0), self.momentum)
            self.running_var.lerp_(var.mean(0), self.momentum)
        return F.instance_norm(x, None, None, *affine, eps=self.eps)


tracking_module = Code(
    "5.5",
    norm="InstanceNorm",
    by_hand=True,
    name="MyTrackingNorm",
    arguments=("running_mean", "running_var", "weight", "bias", "momentum", "eps"),
    question=(
        "Now the module with everything switched on, as `nn.InstanceNorm2d` with "
        "`affine=True` and `track_running_stats=True`: a class "
        "`MyTrackingNorm(num_features, eps=1e-5, momentum=0.1)`. In training it "
        "normalizes every map with its own statistics and moves the buffers "
        "`running_mean` and `running_var`; in eval it normalizes with the buffers. Use "
        "no norm of PyTorch."
    ),
    hints=[
        "Two parameters (`nn.Parameter`), two buffers (`register_buffer`), and an `if "
        "self.training` in `forward`.",
        "There is one stored value for each channel but one mean for each sample and "
        "channel: average over the samples, `mean.mean(0).flatten()`.",
        "The variance that is stored is unbiased, map by map: `var * m / (m - 1)` with "
        "m = H·W, then the average over the samples. `lerp_(new, momentum)` updates in "
        "place; do it under `torch.no_grad()`.",
    ],
    solution="""
class MyTrackingNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x):
        if self.training:
            mean = x.mean((2, 3), keepdim=True)
            var = (x - mean).square().mean((2, 3), keepdim=True)
            m = x[0, 0].numel()
            with torch.no_grad():
                unbiased = var * m / (m - 1)
                self.running_mean.lerp_(mean.mean(0).flatten(), self.momentum)
                self.running_var.lerp_(unbiased.mean(0).flatten(), self.momentum)
        else:
            mean = self.running_mean.view(1, -1, 1, 1)
            var = self.running_var.view(1, -1, 1, 1)
        y = (x - mean) / torch.sqrt(var + self.eps)
        return y * self.weight.view(1, -1, 1, 1) + self.bias.view(1, -1, 1, 1)
""",
    why="What is stored is the average of the maps' own means and unbiased variances; "
    "how far the maps lie apart is not in it.",
    wrong=[(_BiasedStored, "Your running_var is too small")],
)


def _judge_style(answer):
    style = 3 * drawn(1, 3, other(6), other(5), seed=1)
    style = style * torch.tensor([1.0, 2.0, 0.5]).view(3, 1, 1)
    style = style + torch.tensor([4.0, -1.0, 2.0]).view(3, 1, 1)
    layer = answer(style.clone())
    if not isinstance(layer, nn.InstanceNorm2d):
        return wrong_object(layer, nn.InstanceNorm2d)
    if layer.weight is None:
        return "Your layer has no weight and no bias: make it with `affine=True`."
    for name, values in (("weight", layer.weight), ("bias", layer.bias)):
        if values.shape != (3,):
            return (
                f"The {name} of your layer has the shape {tuple(values.shape)}. It "
                "should be (3,), one for each channel; `flatten()` makes that of yours."
            )
    mean, deviation = (
        statistic.flatten()
        for statistic in (style.mean((2, 3)), style.std((2, 3), correction=0))
    )
    told = {
        "Your weight is the variance of the style; it should be the root of it.": (
            deviation.square(),
            mean,
        ),
        "Your weight is the deviation with n − 1 below the line; take `correction=0`, "
        "as the norm itself does.": (style.std((2, 3)).flatten(), mean),
        "Weight and bias have changed places: the weight scales, the bias shifts.": (
            mean,
            deviation,
        ),
        "The bias is right; the weight still is 1.": (torch.ones(3), mean),
        "The weight is right; the bias still is 0.": (deviation, torch.zeros(3)),
    }
    for sentence, (weight, bias) in told.items():
        if gap(layer.weight, weight) < 1e-3 and gap(layer.bias, bias) < 1e-3:
            return sentence
    content = drawn(2, 3, 7, 4, seed=2)
    wanted = F.instance_norm(content, weight=deviation, bias=mean)
    if gap(layer(content), wanted) > 1e-3:
        return (
            "The output of your layer does not have the style's mean and deviation in "
            "each channel."
        )
    return None


def _variance_as_weight(style):
    layer = nn.InstanceNorm2d(3, affine=True)
    layer.weight.data = style.var((2, 3), correction=0).flatten()
    layer.bias.data = style.mean((2, 3)).flatten()
    return layer


def _weight_as_a_row(style):
    layer = nn.InstanceNorm2d(3, affine=True)
    layer.weight = nn.Parameter(style.std((2, 3), correction=0))
    return layer


def _without_affine(style):
    return nn.InstanceNorm2d(3)


style_as_layer = Free(
    "5.6",
    judge=_judge_style,
    expects=types.FunctionType,
    name="style_layer",
    question=(
        "Section 5.11 gives a content the mean and deviation of a style. The same two "
        "numbers fit in a layer. Write `style_layer(style)`: it returns an "
        "`nn.InstanceNorm2d(3, affine=True)` that turns any content into the style of "
        "`style`, a (1, 3, H, W) tensor. Take the deviation with `correction=0`."
    ),
    hints=[
        "After normalizing, a channel has mean 0 and deviation 1. Which weight and "
        "which bias give it mean m and deviation s?",
        "weight = deviation and bias = mean, for each channel: shape (3,).",
        "Set them under `torch.no_grad()`: "
        "`layer.weight.copy_(style.std((2, 3), correction=0).flatten())`.",
    ],
    solution="""
def style_layer(style):
    layer = nn.InstanceNorm2d(3, affine=True)
    with torch.no_grad():
        layer.weight.copy_(style.std((2, 3), correction=0).flatten())
        layer.bias.copy_(style.mean((2, 3)).flatten())
    return layer
""",
    why="AdaIN is InstanceNorm whose weight and bias come from another picture.",
    wrong=[
        (_variance_as_weight, "Your weight is the variance"),
        (_without_affine, "`affine=True`"),
        (_weight_as_a_row, "The weight of your layer has the shape (1, 3)"),
    ],
)


def undecided_net():
    """A classifier for (N, 3, 16, 16) pictures that is unable to tell any two apart."""
    with seeded(5):
        layers = {
            "conv1": nn.Conv2d(3, 8, 3, padding=1, bias=False),
            "norm1": nn.InstanceNorm2d(8, affine=True),
            "relu1": nn.ReLU(),
            "conv2": nn.Conv2d(8, 16, 3, padding=1, bias=False),
            "norm2": nn.InstanceNorm2d(16, affine=True),
            "pool": nn.AdaptiveAvgPool2d(1),
            "flatten": nn.Flatten(),
            "head": nn.Linear(16, 4),
        }
    return nn.Sequential(OrderedDict(layers))


def _judge_decided(net):
    norms = [layer for layer in net.modules() if isinstance(layer, nn.InstanceNorm2d)]
    if len(norms) < 2:
        return (
            "A norm is missing. Both may stay: each does its work, and what is wrong "
            "happens to the output of the second."
        )
    pictures = drawn(4, 3, 16, 16, seed=3)
    with torch.no_grad():
        scores = copy.deepcopy(net).cpu()(pictures)
    if tuple(scores.shape) != (4, 4):
        shape = tuple(scores.shape)
        return f"Four pictures should get scores of shape (4, 4), not {shape}."
    if (scores - scores[0]).abs().max() < 1e-4:
        return (
            "All pictures still get the same scores. Print the mean of each map right "
            "behind `norm2`, for two pictures: what does the pooling take from there?"
        )
    return None


def _order(*names):
    net = undecided_net()
    extra = {"relu2": nn.ReLU(), "none": nn.Identity()}
    return nn.Sequential(*(extra.get(n) or net.get_submodule(n) for n in names))


same_scores = Free(
    "5.7",
    judge=_judge_decided,
    expects=nn.Module,
    question=(
        "Find the bug. `exercises.undecided_net()` is to sort pictures into four "
        "classes. It runs, its loss falls a little and then stays: every picture gets "
        "the same four scores. The weights are not to blame. Hand in a repaired net, "
        "an `nn.Sequential` of its layers with one put in, that keeps both norms."
    ),
    given="from normlab.exercises import chapter05 as exercises",
    hints=[
        "Send two pictures through the layers one after the other, and look where "
        "they become equal.",
        "The pooling takes the mean of each map. What is the mean of a map that has "
        "just been normalized by itself?",
        "Something has to stand between norm and mean that is not a shift or a scale. "
        "Behind the first norm it does.",
    ],
    solution="""
net = exercises.undecided_net()
layers = list(net)
answer = nn.Sequential(*layers[:5], nn.ReLU(), *layers[5:])
""",
    why="InstanceNorm gives every map the mean 0 (or its bias), and the average over "
    "the map reads off just that. The ReLU in between makes the mean depend on the "
    "picture.",
    wrong=[
        (undecided_net(), "still get the same scores"),
        (
            _order("conv1", "norm1", "relu1", "conv2", "none", "pool", "flatten"),
            "A norm is missing",
        ),
        (
            _order(
                "conv1", "norm1", "relu1", "conv2", "relu2", "norm2", "pool",
                "flatten", "head",
            ),
            "still get the same scores",
        ),
    ],
)  # fmt: skip
