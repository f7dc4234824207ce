"""The exercises of chapter 7, RMSNorm."""

import copy
import types
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from normlab.exercises import Choice, Code, Free, Pattern, Value
from normlab.exercises.checker import wrong_object
from normlab.exercises.seeded import drawn, gap, normal, seeded

sets_of_heads = Pattern(
    "7.1",
    question=(
        "Many language models put an RMSNorm on the queries of every attention head "
        "(*QK norm*). The queries have the shape (N, L, H, D): samples, tokens, heads, "
        "and D features for each head. Each head of each token is measured by itself. "
        "Write the pattern."
    ),
    answer="N L H [D]",
    mistakes=[
        (
            "N L [H D]",
            "Your sets hold all heads of a token: that is the norm in front of the "
            "split into heads.",
        ),
        (
            "N [L] H [D]",
            "You average over the tokens too: a later token would change an earlier "
            "one.",
        ),
        (
            "N L [H] D",
            "Each feature is averaged over the heads here. Within a head, the features "
            "are averaged over.",
        ),
    ],
    hints=[
        "What is kept? Count what is measured by itself.",
        "Sample, token and head are kept. One axis is left.",
    ],
    why="Only the last axis is reduced: `RMSNorm(D)`, whatever stands in front.",
)

three_and_four = Value(
    "7.2",
    question=(
        "On paper: a token with the two features 3 and 4 goes through `RMSNorm(2)`, "
        "without eps. What comes out? Answer with a list of two numbers, to three "
        "decimals."
    ),
    answer=[0.848528, 1.131371],
    decimals=3,
    solution="answer = [0.849, 1.131]",
    mistakes=[
        (
            [0.6, 0.8],
            "You divided by the length, 5. The root mean square divides the sum of the "
            "squares by D, here 2, before it takes the root.",
        ),
        ([-1, 1], "You subtracted the mean: that is LayerNorm."),
        ([0.24, 0.32], "You divided by the mean square. Take its root."),
        ([0.857, 1.143], "You divided by the mean, 3.5. Square first."),
    ],
    hints=[
        "Square, take the mean, take the root; divide by what you have then.",
        "The mean of 9 and 16 is 12.5, and its root is 3.54.",
    ],
    why="The result has the length √2, not 1: a typical feature has size 1.",
)

small_token = Value(
    "7.3",
    question=(
        "All features of a token are 0.001. What does RMSNorm with eps = 1e-6 make of "
        "each? One number, good to 0.01."
    ),
    answer=0.5**0.5,
    tolerance=0.01,
    solution="answer = 0.001 / (1e-6 + 1e-6) ** 0.5",
    mistakes=[
        (
            1.0,
            "So it would be without eps (and nearly so with eps outside the root). "
            "Compare eps with the mean square, not with the token.",
        ),
        (0.5, "The sum of mean square and eps is 2e-6; take its root."),
        (0.0, "eps is as large as the mean square, not larger by far."),
    ],
    hints=[
        "How large is the mean square? Compare it with eps.",
        "Both are 1e-6: divide 0.001 by the root of 2e-6.",
    ],
    why="Where the mean square equals eps, the output has lost a factor √2; below that "
    "eps decides.",
)

blind_to = Choice(
    "7.4",
    question=(
        "A fresh `RMSNorm(64)`, eps aside. After which changes is the output for a "
        "token the same as before? Answer with the set of letters."
    ),
    options={
        "a": "The token is multiplied by 10.",
        "b": "5 is added to all its features.",
        "c": "The token changes its sign.",
        "d": "All other tokens of the sentence are replaced.",
        "e": "One of its features is multiplied by 10.",
    },
    answer={"a", "d"},
    mistakes={
        "a": "Look at (a) again: the root mean square grows tenfold, too.",
        "b": "Look at (b) again: nothing subtracts the mean here.",
        "c": "Look at (c) again: the root mean square is positive either way.",
        "d": "Look at (d) again: which tokens are in the set of `N L [D]`?",
        "e": "Look at (e) again: a set forgets what all of it shares, not what one "
        "value does.",
    },
    hints=[
        "A norm is blind to what all of a set shares. Which of shift and scale does "
        "RMSNorm take away?",
        "Only a positive factor on the whole token drops out; and other tokens never "
        "come in.",
    ],
    why="RMSNorm forgets the length of its token, keeps its direction, and sees no "
    "other token.",
)


class _Centered(nn.Module):
    def __init__(self, normalized_shape, eps=1e-5):
        super().__init__()
        self.shape = (normalized_shape,) if isinstance(normalized_shape, int) else None
        self.shape, self.eps = self.shape or normalized_shape, eps
        self.weight = nn.Parameter(torch.ones(self.shape))

    def forward(self, x):
        return F.layer_norm(x, self.shape, self.weight, eps=self.eps)


class _Narrow(_Centered):
    def forward(self, x):
        dims = tuple(range(-len(self.shape), 0))
        mean_square = x.square().mean(dims, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


module = Code(
    "7.5",
    norm="RMSNorm",
    by_hand=True,
    name="MyRMSNorm",
    skip=(),
    question=(
        "From an empty cell: write the class `MyRMSNorm(normalized_shape, eps=1e-5)`. "
        "`normalized_shape` is a number or a tuple and names the trailing axes, all of "
        "which are averaged over. The layer has a weight and no bias. A float16 input "
        "with values around 300 must survive, and the output has the input's dtype. "
        "Use no norm of PyTorch."
    ),
    hints=[
        "Turn a number into a tuple first; its length says how many trailing axes "
        "there are.",
        "Compute with `x.float()` where x has 16 bits (a float64 stays as it is), and "
        "return `.to(x.dtype)` at the very end, behind the weight.",
        "`dims = tuple(range(-len(shape), 0))`, then "
        "`wide * torch.rsqrt(wide.square().mean(dims, keepdim=True) + eps)`.",
    ],
    solution="""
class MyRMSNorm(nn.Module):
    def __init__(self, normalized_shape, eps=1e-5):
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.dims = tuple(range(-len(normalized_shape), 0))
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(normalized_shape))

    def forward(self, x):
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        mean_square = wide.square().mean(self.dims, keepdim=True)
        y = wide * torch.rsqrt(mean_square + self.eps) * self.weight
        return y.to(x.dtype)
""",
    why="One reduction, one parameter; the squares are taken in 32 bits, since 256² is "
    "already infinite in float16.",
    wrong=[
        (_Centered, "You subtract the mean"),
        (_Narrow, "You square in float16"),
    ],
)


def _judge_folded(answer):
    norm, linear = nn.RMSNorm(6, eps=1e-6), nn.Linear(6, 4)
    with torch.no_grad():
        norm.weight.copy_(drawn(6, seed=1).abs() + 0.5)
        linear.weight.copy_(drawn(4, 6, seed=2))
        linear.bias.copy_(drawn(4, seed=3))
    before = linear.weight.clone()
    folded = answer(norm, linear)
    if not isinstance(folded, nn.Linear):
        return wrong_object(folded, nn.Linear)
    if gap(linear.weight, before):
        return "Your function changes the old layer. Make a new one and leave it be."
    if folded.bias is None or gap(folded.bias, linear.bias):
        return "The bias is added behind the gain, which does not touch it: copy it."
    if gap(folded.weight, before) < 1e-6:
        return "Your new weight is the old one. Where did the norm's gain go?"
    if gap(folded.weight, before / norm.weight) < 1e-4:
        return "You divided by the gain. The norm multiplies by it, and so must you."
    x = drawn(5, 6, seed=4)
    bare = F.rms_norm(x, (6,), eps=1e-6)
    if gap(folded(bare), linear(norm(x))) > 1e-4:
        return (
            "Bare norm and new layer do not give what the old two gave. The gain of "
            "feature d meets the column d of the weight, `weight[:, d]`."
        )
    return None


def _unfolded(norm, linear):
    return copy.deepcopy(linear)


def _folded_in_place(norm, linear):
    linear.weight.data *= norm.weight.data
    return linear


def _with_gain_on_bias(norm, linear):
    folded = copy.deepcopy(linear)
    folded.weight.data *= norm.weight.data
    folded.bias.data *= 2
    return folded


fold_the_gain = Free(
    "7.6",
    judge=_judge_folded,
    expects=types.FunctionType,
    name="folded",
    question=(
        "In most models a linear layer follows the RMSNorm, and it can take over the "
        "norm's weight. Write `folded(norm, linear)`: it returns a new `nn.Linear` "
        "that, behind an RMSNorm without a weight, does what `linear` did behind "
        "`norm`. The old two stay as they are."
    ),
    hints=[
        "Write the two layers as one formula: W (γ · x̂) + b, where γ acts on each "
        "feature. What can you compute before x̂ is known?",
        "γ multiplies the columns of W: `linear.weight * norm.weight` has the shape "
        "(out, in) and broadcasts along the right axis.",
        "`copy.deepcopy(linear)` makes a new layer with the right bias; then set its "
        "weight under `torch.no_grad()`.",
    ],
    solution="""
def folded(norm, linear):
    new = nn.Linear(linear.in_features, linear.out_features).to(linear.weight)
    with torch.no_grad():
        new.weight.copy_(linear.weight * norm.weight)
        new.bias.copy_(linear.bias)
    return new
""",
    why="A gain for each feature is a diagonal matrix, and two matrices in a row are "
    "one. The division cannot be folded: it depends on the input.",
    wrong=[
        (_unfolded, "Where did the norm's gain go"),
        (_folded_in_place, "changes the old layer"),
        (_with_gain_on_bias, "The bias is added behind the gain"),
    ],
)


class OffsetNorm(nn.RMSNorm):
    """RMSNorm whose weight is the gain less 1, and starts at 0."""

    def reset_parameters(self):
        nn.init.zeros_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, 1 + self.weight, self.eps)


def _reader(norm):
    """Two residual branches and a last norm, which always is a plain RMSNorm."""
    with seeded(7):
        layers = {
            "norm1": norm(16, eps=1e-6),
            "branch1": nn.Linear(16, 16),
            "norm2": norm(16, eps=1e-6),
            "branch2": nn.Linear(16, 16),
            "final_norm": nn.RMSNorm(16, eps=1e-6),
        }
    return _Reader(OrderedDict(layers))


class _Reader(nn.Sequential):
    def forward(self, x):
        x = x + self.branch1(self.norm1(x))
        x = x + self.branch2(self.norm2(x))
        return self.final_norm(x)


def original_reader():
    """A small trained net whose norms inside the branches are of the offset kind."""
    net = _reader(OffsetNorm)
    with torch.no_grad():
        for seed, name in enumerate(("norm1", "norm2", "final_norm")):
            net.get_submodule(name).weight.add_(0.1 * normal(16, seed=seed))
    return net.requires_grad_(False)


def converted_reader():
    """The same net made of PyTorch's RMSNorms, the checkpoint loaded as it was."""
    net = _reader(nn.RMSNorm)
    net.load_state_dict(original_reader().state_dict())
    return net.requires_grad_(False)


def _judge_converted(net):
    if any(isinstance(layer, OffsetNorm) for layer in net.modules()):
        return "The norms should be PyTorch's `nn.RMSNorm`; mend the weights instead."
    net, x = copy.deepcopy(net).cpu(), drawn(3, 5, 16, seed=5)
    with torch.no_grad():
        if gap(net(x), original_reader()(x)) < 1e-5:
            return None
    added = {
        name: (net.get_submodule(name).weight - before.weight).mean().item()
        for name, before in converted_reader().named_children()
        if name.endswith(("norm1", "norm2", "final_norm"))
    }
    if added["final_norm"] > 0.5:
        return (
            "`final_norm` is off now: its weights crowd around 1 in the checkpoint, so "
            "it was of the plain kind from the start."
        )
    if not any(added.values()):
        return (
            "It still answers differently. Print the mean weight of each norm: around "
            "which number should the weights of a plain RMSNorm lie?"
        )
    wrong = [n for n in ("norm1", "norm2") if abs(added[n] - 1) > 1e-3]
    return f"It still answers differently; look at {' and '.join(wrong or added)}."


def _plus_one(*names):
    net = converted_reader()
    for name in names:
        net.get_submodule(name).weight.data += 1
    return net


checkpoint_of_another_kind = Free(
    "7.7",
    judge=_judge_converted,
    expects=nn.Module,
    name="net",
    question=(
        "Find the bug. `exercises.original_reader()` was converted to PyTorch's own "
        "layers: `exercises.converted_reader()` has the same names and shapes, and the "
        "checkpoint was loaded without complaint. But the two answer differently. Hand "
        "in the converted net, repaired so that it answers as the original does."
    ),
    given="from normlab.exercises import chapter07 as exercises",
    hints=[
        "Which of the named parameters look odd? Print their means.",
        "The norms inside the branches are `OffsetNorm`: what do they multiply with? "
        "And of which kind is the last norm?",
        "Add 1 to the weights of `norm1` and `norm2`, in place and under "
        "`torch.no_grad()`. Leave `final_norm` alone.",
    ],
    solution="""
net = exercises.converted_reader()
with torch.no_grad():
    net.norm1.weight += 1
    net.norm2.weight += 1
""",
    why="The same name and shape do not make the same meaning: in one layer the weight "
    "is the gain, in the other the gain less 1. Weights around 0 are the sign.",
    wrong=[
        (converted_reader(), "still answers differently"),
        (_plus_one("norm1", "norm2", "final_norm"), "`final_norm` is off now"),
        (_plus_one("norm1"), "look at norm2"),
        (original_reader(), "mend the weights"),
    ],
)
