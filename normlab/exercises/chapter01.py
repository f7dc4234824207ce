"""The exercises of chapter 1, Four norms at a glance."""

import math
from collections import OrderedDict

import torch
from torch import nn

from normlab import axes
from normlab.exercises import Choice, Code, Free, Pattern, Value
from normlab.exercises.nets import names_the_layer
from normlab.exercises.seeded import seeded

recordings = Pattern(
    "1.1",
    question=(
        "Sound recordings have the shape (N, C, L): samples, channels, and positions "
        "in time. Write the pattern of InstanceNorm on them, as a text such as "
        '`"[N] C [H W]"`: brackets around the axes that are averaged over.'
    ),
    answer="N C [L]",
    mistakes=[
        (
            "[N] C [L]",
            "With these sets one recording's output depends on the others: that is "
            "BatchNorm. InstanceNorm keeps N.",
        ),
        (
            "N [C L]",
            "Here all channels of a recording share one mean: that is LayerNorm. "
            "InstanceNorm treats each channel by itself.",
        ),
        (
            "N [C] L",
            "You average over the channels and keep the time, and InstanceNorm does "
            "the opposite: it reduces the positions, nothing else.",
        ),
    ],
    hints=[
        "On images InstanceNorm is `N C [H W]`. Which of these axes are positions?",
        "Keep what tells apart whose values they are (which sample, which channel); "
        "reduce the one axis that is left.",
    ],
    why="Each channel of each recording has a mean of its own, over its L positions.",
)


_PATTERNS = {
    "BatchNorm": ("[N] C [H W]", "C"),
    "LayerNorm": ("N [C H W]", "C H W"),
    "InstanceNorm": ("N C [H W]", "C"),
    "GroupNorm": ("N (G [C/G]) [H W]", "C"),
}


def _counts():
    found = {}
    for norm, (pattern, parameters) in _PATTERNS.items():
        groups = {"G": 3} if norm == "GroupNorm" else {}
        sets = axes.parse(pattern).on((8, 6, 5, 5), **groups)
        learned = math.prod(sets.parameter_shape(parameters))
        found[norm] = (sets.num_sets, sets.values_per_set, learned)
    return found


counts = Value(
    "1.2",
    question=(
        "A tensor has the shape (N, C, H, W) = (8, 6, 5, 5). For each norm give three "
        "whole numbers as a tuple: how many means there are, how many values share "
        "one, and how many γ the layer learns. LayerNorm is over (C, H, W), GroupNorm "
        "has G = 3 groups, and InstanceNorm gets `affine=True`."
    ),
    answer=_counts(),
    mistakes=[
        (
            {**_counts(), "LayerNorm": (8, 150, 6)},
            "All right but LayerNorm's γ: over (C, H, W) there is one for each "
            "element of a sample, not one for each channel.",
        ),
        (
            {**_counts(), "GroupNorm": (24, 50, 3)},
            "All right but GroupNorm's γ: the groups share means, not parameters. "
            "There is one γ for each channel.",
        ),
        (
            {**_counts(), "InstanceNorm": (48, 25, 48)},
            "All right but InstanceNorm's γ: there are 48 means, one for each sample "
            "and channel, but a layer cannot learn something for each sample.",
        ),
        (
            {norm: (b, a, c) for norm, (a, b, c) in _counts().items()},
            "You have swapped the first two: the number of means comes first, then "
            "how many values share one.",
        ),
    ],
    hints=[
        "Means times values per mean is the same for all four: every value of the "
        "tensor is in exactly one set.",
        "The number of means is the product of the axes that are kept. BatchNorm "
        "keeps C, LayerNorm N, InstanceNorm N and C, GroupNorm N and G.",
        "γ has one entry for each channel, except in LayerNorm((6, 5, 5)), where it "
        "has the shape (6, 5, 5). `axes.parse(pattern).on(shape)` counts the rest.",
    ],
    why="Each norm cuts the same 1200 values into sets. Where γ lies is a choice of "
    "its own.",
)


def _scaled(divisor, gamma=2.0, beta=10.0):
    deviations = [-3, -1, 1, 3]
    return [gamma * d / divisor + beta for d in deviations]


by_hand = Value(
    "1.3",
    question=(
        "Take the four steps by hand, with ε = 0, on the numbers 1, 3, 5, 7, and let "
        "γ = 2 and β = 10. Give the four results as a list, to two decimals. (What are "
        "their mean and standard deviation, and could you have known?)"
    ),
    answer=_scaled(math.sqrt(5)),
    decimals=2,
    mistakes=[
        (
            _scaled(math.sqrt(20 / 3)),
            "You divided the sum of squares by 3. The norms divide it by the number "
            "of values, 4.",
        ),
        (
            _scaled(5),
            "You divided by the variance. Step 3 divides by its square root.",
        ),
        (
            _scaled(math.sqrt(5), beta=20),
            "You added β before you multiplied. Scale first, then shift.",
        ),
        (
            _scaled(math.sqrt(5), gamma=1, beta=0),
            "These are the results of step 3. Step 4, the scale and the shift, is "
            "still to come.",
        ),
    ],
    hints=[
        "The mean is 4, so the distances from it are -3, -1, 1, 3.",
        "The squares are 9, 1, 1, 9; the variance is a fourth of their sum, 5.",
        "Divide each distance by √5 ≈ 2.236, then times 2, plus 10.",
    ],
    why="The mean is β = 10 and the standard deviation γ = 2, whatever the input was: "
    "that is what steps 3 and 4 are for.",
)

_NORMS = {
    "a": ("`BatchNorm2d(4)` in training", nn.BatchNorm2d(4, affine=False)),
    "b": ("`LayerNorm((4, 2, 2))`", nn.LayerNorm((4, 2, 2), elementwise_affine=False)),
    "c": ("`InstanceNorm2d(4)`", nn.InstanceNorm2d(4)),
    "d": ("`GroupNorm(2, 4)`", nn.GroupNorm(2, 4, affine=False)),
}


def _moved_by_channel_3():
    """The letters of the norms whose output for channel 2 follows channel 3."""
    x = torch.arange(32.0).reshape(2, 4, 2, 2) ** 1.5
    dark = x.clone()
    dark[1, 3] = 0
    moved = {k: norm(x)[1, 2] - norm(dark)[1, 2] for k, (_, norm) in _NORMS.items()}
    return {letter for letter, change in moved.items() if change.abs().max() > 1e-3}


dark_channel = Choice(
    "1.4",
    question=(
        "In an input of shape (2, 4, 2, 2), channel 3 of sample 1 is replaced by "
        "zeros. In which norms does the output of sample 1 in channel **2** change? "
        "Answer with a set of letters."
    ),
    options={letter: text for letter, (text, _) in _NORMS.items()},
    answer=_moved_by_channel_3(),
    mistakes={
        "a": "BatchNorm lets the other samples in, but never another channel: channel "
        "2 has its own mean.",
        "b": "LayerNorm puts all channels of a sample under one mean, so channel 2 "
        "feels what happens in channel 3.",
        "c": "InstanceNorm gives each channel of each sample its own mean. Nothing "
        "from outside gets in.",
        "d": "With two groups of two, channels 2 and 3 are partners: they share a "
        "mean.",
    },
    hints=[
        "An output changes if its own set contains a changed number, and only then.",
        "Write down the sets of [sample 1, channel 2] in all four norms. In which is "
        "[sample 1, channel 3] a member?",
    ],
    why="Only where the two channels share a set does one feel the other: in LayerNorm "
    "and, since the groups are {0, 1} and {2, 3}, in GroupNorm.",
)


def _each_channel_alone(x, weight, bias, eps):
    mean = x.mean((2, 3), keepdim=True)
    var = x.var((2, 3), correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


def _sample_statistics_unbiased(x, weight, bias, eps):
    mean = x.mean((1, 2, 3), keepdim=True)
    var = x.var((1, 2, 3), keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


layer_norm = Code(
    "1.5",
    norm="layer_norm",
    by_hand=True,
    name="layer_norm",
    arguments=("weight", "bias", "eps"),
    shape=(4, 3, 2, 5),
    trailing=3,
    question=(
        "Write `layer_norm(x, weight, bias, eps)`: LayerNorm of images of shape (N, C, "
        "H, W) over (C, H, W), by the four steps and without a norm of PyTorch. "
        "`weight` and `bias` (γ and β) have the shape (C, H, W)."
    ),
    hints=[
        "The four steps stand in 1.3. Which axes does each sample's mean run over?",
        "`x.mean((1, 2, 3), keepdim=True)` is one mean a sample, in a shape that "
        "subtracts. The variance is the mean of the squared differences.",
        "Divide by `torch.sqrt(variance + eps)`. A weight of shape (C, H, W) lines up "
        "with the last axes of x by itself: `x_hat * weight + bias`.",
    ],
    solution="""
def layer_norm(x, weight, bias, eps):
    mean = x.mean((1, 2, 3), keepdim=True)
    variance = (x - mean).square().mean((1, 2, 3), keepdim=True)
    x_hat = (x - mean) / torch.sqrt(variance + eps)
    return x_hat * weight + bias
""",
    why="One mean and one variance for each sample; γ and β for each element.",
    wrong=[
        (_each_channel_alone, "you averaged over N C [H W]"),
        (_sample_statistics_unbiased, "divided the variance by"),
    ],
)


def company_net():
    """A net for images of shape (N, 1, 8, 8), in eval mode; one norm is at fault."""
    with seeded(1):
        layers = OrderedDict(
            conv1=nn.Conv2d(1, 8, 3, padding=1),
            norm1=nn.BatchNorm2d(8),
            conv2=nn.Conv2d(8, 8, 3, padding=1),
            norm2=nn.InstanceNorm2d(8),
            conv3=nn.Conv2d(8, 8, 3, padding=1),
            norm3=nn.BatchNorm2d(8, track_running_stats=False),
            conv4=nn.Conv2d(8, 8, 3, padding=1),
            norm4=nn.GroupNorm(2, 8),
            relu=nn.ReLU(),
            pool=nn.AdaptiveAvgPool2d(1),
            flat=nn.Flatten(),
            head=nn.Linear(8, 10),
        )
        return nn.Sequential(layers).eval()


company = Free(
    "1.6",
    fixed=True,
    question=(
        "`net = exercises.company_net()` is a small net for images of shape (N, 1, 8, "
        "8), and it is in eval mode. All the same an image gets one answer alone and "
        "another one in company. Which layer is at fault? Answer with its name, such "
        'as `"norm1"`.'
    ),
    judge=names_the_layer(
        "norm3",
        {
            "norm1": "`norm1` has running statistics and is in eval mode: it uses "
            "them, and the batch has no say.",
            "norm2": "`norm2` has no running statistics, but InstanceNorm needs none: "
            "its sets stay within one sample.",
            "norm4": "`norm4` is a GroupNorm: its sets stay within one sample, in both "
            "modes.",
        },
    ),
    given="from normlab.exercises import chapter01 as exercises",
    solution="""
net = exercises.company_net()
company = torch.arange(256.0).reshape(4, 1, 8, 8).cos()
alone = company[:1]
for name, layer in net.named_children():
    alone, company = layer(alone), layer(company)
    if not torch.allclose(alone, company[:1], atol=1e-4):
        answer = name
        break
""",
    why="`norm3` was made with `track_running_stats=False`. Without running statistics "
    "BatchNorm uses those of the batch in eval mode, too.",
    hints=[
        "Which of the four norms ever looks at another sample? And what should keep "
        "it from doing so in eval mode?",
        "Send one image and then a batch that begins with it through the layers, one "
        "by one (`net.named_children()`), and compare after each.",
        "`print(net)` shows what each layer was made with. Two BatchNorms are there, "
        "and they differ in `track_running_stats`.",
    ],
    wrong=[
        ("norm1", "running statistics and is in eval"),
        ("norm2", "stay within one sample"),
        ("norm4", "GroupNorm"),
        ("conv1", "Look at the norms"),
    ],
)
