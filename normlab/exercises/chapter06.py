"""The exercises of chapter 6, GroupNorm."""

import copy
import math
import types
from collections import OrderedDict
from numbers import Integral

import torch
from torch import nn
from torch.nn import functional as F

from normlab.exercises import Choice, Code, Free, Pattern, Value
from normlab.exercises.compare import show
from normlab.exercises.seeded import asked_seed, chance, drawn, gap, other, seeded
from normlab.norm import Norm

sets_of_groupnorm = Pattern(
    "6.1",
    question=(
        "`GroupNorm(G, C)` gets images of shape (N, C, H, W). Write the pattern of the "
        "values that share a mean."
    ),
    answer="N (G [C/G]) [H W]",
    mistakes=[
        (
            "N C [H W]",
            "These are the sets of InstanceNorm: every channel for itself. The "
            "channels of a group are averaged together.",
        ),
        (
            "N ([C/G] G) [H W]",
            "Your groups take every G-th channel. A group of GroupNorm holds "
            "neighbours: G stands in front of C/G.",
        ),
        (
            "[N] (G [C/G]) [H W]",
            "You average over the samples as well. GroupNorm never looks at another "
            "sample: N is kept.",
        ),
    ],
    hints=[
        "One axis is neither kept nor reduced as a whole: it is split in two.",
        "`(G [C/G])` splits the channels in G groups and averages over each group's "
        "C/G channels. What happens to N, H and W?",
    ],
    why="Each sample and each group has its own mean, over C/G channels and all H x W "
    "positions.",
)


on_paper = Value(
    "6.2",
    question=(
        "On paper: `GroupNorm(3, 12)` gets an input of shape (5, 12, 7, 7). How many "
        "values share a mean, how many means are there, and how many parameters has "
        "the layer? Answer with a dict with the keys `values`, `means`, `parameters`."
    ),
    answer={"values": 196, "means": 15, "parameters": 24},
    mistakes=[
        (
            {"values": 196, "means": 15, "parameters": 6},
            "Weight and bias belong to the channels, not to the groups: the layer has "
            "one of each for every channel.",
        ),
        (
            {"values": 196, "means": 3, "parameters": 24},
            "Those are the means of one sample. Every sample has means of its own.",
        ),
        (
            {"values": 147, "means": 15, "parameters": 24},
            "You took 3 channels for a group. 3 is the number of groups; how many "
            "channels does each hold?",
        ),
        (
            {"values": 980, "means": 3, "parameters": 24},
            "You counted the values of all five samples. N is kept.",
        ),
        (
            {"values": 196, "means": 15, "parameters": 12},
            "You counted the weights. Each channel has a bias as well.",
        ),
    ],
    hints=[
        "Three groups of 12 channels: how many channels are in one?",
        "A set holds C/G channels of H · W positions; there are N · G sets.",
        "4 · 7 · 7 values, 5 · 3 means; weight and bias have the shape (12,) each.",
    ],
    why="4 channels of 49 positions, for each of 5 samples and 3 groups; the "
    "parameters know nothing of the groups.",
)

neighbours = Choice(
    "6.3",
    question=(
        "`GroupNorm(1, C)`, `LayerNorm((C, H, W))` and, on a tensor with the channels "
        "moved to the end, `LayerNorm(C)`: what is true of the three, all freshly made "
        "with their defaults? Answer with the set of letters."
    ),
    options={
        "a": "The first two give the same output.",
        "b": "The first two still agree after both were trained.",
        "c": "The first and the third have equally many parameters.",
        "d": "The first and the third take their means over the same sets.",
        "e": "None of them reduces N.",
    },
    answer={"a", "c", "e"},
    mistakes={
        "a": "Look at (a) again: the sets are the same, and fresh weights are 1.",
        "b": "Look at (b) again: a weight for each channel cannot follow a weight for "
        "each element.",
        "c": "Look at (c) again: both have a weight and a bias for each channel.",
        "d": "Look at (d) again: the third measures each pixel by itself.",
        "e": "Look at (e) again: which of the three looks at another sample?",
    },
    hints=[
        "Two questions, kept apart: which values share a mean, and where do weight and "
        "bias live?",
        "The sets are `N [C H W]`, `N [C H W]` and `N [C] H W`; the parameters have "
        "the shapes (C,), (C, H, W) and (C,).",
    ],
    why="Equal sets make equal outputs only as long as the parameters do nothing. The "
    "third layer has GroupNorm's parameters and other sets.",
)


def _groups_of_everything(x, num_groups, weight=None, bias=None, eps=1e-5):
    mean = x.mean((1, 2, 3), keepdim=True)
    var = x.var((1, 2, 3), correction=0, keepdim=True)
    y = (x - mean) / (var + eps).sqrt()
    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)


group_norm = Code(
    "6.4",
    norm="group_norm",
    by_hand=True,
    name="my_group_norm",
    question=(
        "From an empty cell: write `my_group_norm(x, num_groups, weight, bias, eps)` "
        "for images of shape (N, C, H, W), without calling a norm of PyTorch."
    ),
    hints=[
        "Give the groups an axis of their own: reshape x to five axes.",
        "With `split = x.reshape(n, num_groups, c // num_groups, h, w)`, mean and "
        "biased variance run over the axes (2, 3, 4) with `keepdim=True`.",
        "Normalize, reshape to `x.shape`, then multiply by `weight.view(1, -1, 1, 1)` "
        "and add `bias.view(1, -1, 1, 1)`.",
    ],
    solution="""
def my_group_norm(x, num_groups, weight, bias, eps):
    n, c, h, w = x.shape
    split = x.reshape(n, num_groups, c // num_groups, h, w)
    centered = split - split.mean((2, 3, 4), keepdim=True)
    var = centered.square().mean((2, 3, 4), keepdim=True)
    y = (centered / torch.sqrt(var + eps)).reshape(x.shape)
    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)
""",
    why="Weight and bias come last, on the old shape, because they belong to channels.",
    wrong=[(_groups_of_everything, "you averaged over N [C H W]")],
)


def _judge_number(answer):
    pairs = [(72, 6), (64, 8), (75, 8), (96, 16), (37, 8), (6, 8)]
    if asked_seed():
        pairs += [
            (chance(i).randint(2, 200), chance(-i).randint(1, 20)) for i in range(9)
        ]
    for channels, least in pairs:
        got, asked = answer(channels, least), f"`num_groups_for({channels}, {least})`"
        if isinstance(got, float):
            return f"{asked} gave {got}, a float. `//` divides to a whole number."
        if isinstance(got, bool) or not isinstance(got, Integral):
            return f"{asked} should be a whole number, but it is {show(got)}."
        if got < 1 or channels % got:
            return f"{asked} gave {got}, which does not divide {channels}."
        sizes = [s for s in range(1, channels + 1) if channels % s == 0 and s >= least]
        wanted = channels // min(sizes, default=channels)
        if got == wanted:
            continue
        if got * wanted == channels:
            return (
                f"{asked} gave {got}: that is how many channels a group holds. The "
                f"number of groups is asked for."
            )
        if channels // got < least and channels >= least:
            return (
                f"{asked} gave {got} groups of {channels // got}, fewer than {least} "
                "channels each."
            )
        if wanted == 1:
            return f"{asked} should be 1: there are fewer than {least} channels."
        return f"{asked} gave {got}; more groups are possible."
    return None


number_of_groups = Free(
    "6.5",
    judge=_judge_number,
    expects=types.FunctionType,
    name="num_groups_for",
    question=(
        "`min(32, C)` and `gcd(32, C)` both have their traps (6.10). Write "
        "`num_groups_for(channels, least)`: the largest number of groups of equal size "
        "in which no group has fewer than `least` channels; one group, where there are "
        "fewer than `least` channels altogether."
    ),
    hints=[
        "Which numbers of groups are allowed at all, whatever `least` is?",
        "Walk G downwards from `channels // least` until it divides `channels`.",
        "`for groups in range(channels // least, 1, -1): if channels % groups == 0: "
        "return groups`, and after the loop `return 1`.",
    ],
    solution="""
def num_groups_for(channels, least):
    for groups in range(channels // least, 1, -1):
        if channels % groups == 0:
            return groups
    return 1
""",
    why="For 75 channels and at least 8 it makes 5 groups of 15, where `gcd(32, 75)` "
    "makes a single group. Only a prime number of channels leaves no choice.",
    wrong=[
        (lambda channels, least: min(32, channels), "does not divide"),
        (lambda channels, least: channels / least, "gave 12.0, a float"),
        (lambda channels, least: math.gcd(32, channels), "more groups are"),
        (lambda channels, least: channels // least, "does not divide 75"),
    ],
)


def _judge_interleaved(answer):
    x = 3 * drawn(2, 6, other(4), other(5), seed=1) + 2 * drawn(6, 1, 1, seed=2)
    got = answer(x.clone(), 2)
    if not isinstance(got, torch.Tensor) or got.shape != x.shape:
        return f"A tensor of the shape of x, {tuple(x.shape)}, is asked for."
    for sentence, pattern, groups in (
        (None, "N ([C/G] G) [H W]", 2),
        ("That is GroupNorm: your groups hold neighbours.", "N (G [C/G]) [H W]", 2),
        (
            "Your groups have num_groups channels each; there should be num_groups of "
            "them, and group g holds the channels g, g + G, g + 2G.",
            "N ([C/G] G) [H W]",
            3,
        ),
    ):
        norm = Norm(pattern, sizes={"G": groups, "C": 6})
        if gap(got, norm(x)) < 1e-4:
            return sentence
    wanted = Norm("N ([C/G] G) [H W]", sizes={"G": 2, "C": 6})(x)
    if gap(*(y.flatten(1).sort(1).values for y in (got, wanted))) < 1e-4:
        return (
            "The values are right, but the channels have changed places: undo every "
            "move of an axis."
        )
    return "The sets {channel g, g + G, g + 2G, ...} of a sample do not have mean 0."


def _neighbours(x, num_groups):
    return F.group_norm(x, num_groups)


def _not_moved_back(x, num_groups):
    n, c, h, w = x.shape
    split = x.reshape(n, c // num_groups, num_groups, h, w).transpose(1, 2)
    return F.group_norm(split.reshape(x.shape), num_groups)


every_gth_channel = Free(
    "6.6",
    judge=_judge_interleaved,
    expects=types.FunctionType,
    name="interleaved_norm",
    question=(
        "That groups hold neighbours is a convention. Write `interleaved_norm(x, "
        "num_groups)` for images, without weight and bias, whose group g holds the "
        "channels g, g + G, g + 2G and so on: the pattern `N ([C/G] G) [H W]`, with "
        "eps 1e-5."
    ),
    hints=[
        "`x.reshape(n, G, C // G, h, w)` makes neighbours. Which order of the two "
        "middle sizes puts channel g + G one step from channel g?",
        "After `x.reshape(n, c // G, G, h, w)` the group is axis 2. Reduce the others, "
        "all but the sample: (1, 3, 4).",
    ],
    solution="""
def interleaved_norm(x, num_groups):
    n, c, h, w = x.shape
    split = x.reshape(n, c // num_groups, num_groups, h, w)
    var, mean = torch.var_mean(split, (1, 3, 4), correction=0, keepdim=True)
    return ((split - mean) / torch.sqrt(var + 1e-5)).reshape(x.shape)
""",
    why="The reshape decides which channels meet. No channel moves, so there is "
    "nothing to move back.",
    wrong=[
        (_neighbours, "That is GroupNorm"),
        (_not_moved_back, "changed places"),
    ],
)


class StepNorm(nn.Module):
    """LayerNorm over the channels of every step of (N, C, L)."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class CausalConv(nn.Conv1d):
    """A convolution over the present step and the one before."""

    def __init__(self, channels):
        super().__init__(channels, channels, kernel_size=2)

    def forward(self, x):
        return super().forward(F.pad(x, (1, 0)))


def live_net():
    """A net for live sound (N, 8, L) that should use no step of the future."""
    with seeded(6):
        layers = {
            "norm1": StepNorm(8),
            "conv1": CausalConv(8),
            "relu1": nn.ReLU(),
            "norm2": nn.GroupNorm(1, 8),
            "conv2": CausalConv(8),
            "relu2": nn.ReLU(),
            "norm3": StepNorm(8),
            "conv3": CausalConv(8),
        }
    return nn.Sequential(OrderedDict(layers))


def _judge_causal(net):
    net = copy.deepcopy(net).cpu()
    sound = drawn(1, 8, 12, seed=4)
    other = sound.clone()
    other[..., -1] = 30 * drawn(8, seed=5)
    with torch.no_grad():
        if tuple(net(sound).shape) != (1, 8, 12):
            return "The net should make (N, 8, L) out of (N, 8, L), as it did."
        moved = (net(other) - net(sound))[..., :-1].abs().amax()
    if moved > 1e-5:
        return (
            f"The last step alone was changed, and earlier outputs move by up to "
            f"{moved:.2f}. Which norm has L in its brackets?"
        )
    kept = {"norm1": StepNorm, "norm3": StepNorm, "conv2": CausalConv}
    for name, kind_of in kept.items():
        if not isinstance(getattr(net, name, None), kind_of):
            return f"No step of the future comes in, but {name} need not have changed."
    middle = net.norm2(3 * sound + 2) if hasattr(net, "norm2") else sound
    if gap(middle.mean(1), torch.zeros(1, 12)) > 1e-3:
        return (
            "No step of the future comes in any more, but nothing is normalized in the "
            "middle: put a norm of single steps there."
        )
    return None


def _with_middle(norm):
    net = live_net()
    net.norm2 = norm
    return net


future_leaks = Free(
    "6.7",
    judge=_judge_causal,
    expects=nn.Module,
    name="net",
    question=(
        "Find the bug. `exercises.live_net()` cleans live sound of shape (N, 8, L) "
        "step by step. Its convolutions are causal: they see the present and the step "
        "before. On recordings it is excellent; live it is poor. Some layer uses steps "
        "that are yet to come. Hand in the net with that layer replaced. "
        "(`exercises.StepNorm(8)` and `exercises.CausalConv(8)` are what it is made "
        "of.)"
    ),
    given="from normlab.exercises import chapter06 as exercises",
    hints=[
        "Change the last step of an input and see which layer is the first whose "
        "earlier outputs move.",
        "Write the patterns of the norms on (N, C, L). One of them has L in brackets.",
        "`net.norm2 = exercises.StepNorm(8)` gives every step statistics of its own.",
    ],
    solution="""
net = exercises.live_net()
net.norm2 = exercises.StepNorm(8)
""",
    why="`GroupNorm(1, 8)` on (N, C, L) is `N [C L]`: all steps of the recording share "
    'a mean, the coming ones too. "LayerNorm-like" is no answer to the question over '
    "which axes.",
    wrong=[
        (live_net(), "earlier outputs move"),
        (_with_middle(nn.Identity()), "nothing is normalized"),
        (_with_middle(nn.GroupNorm(8, 8)), "earlier outputs move"),
    ],
)
