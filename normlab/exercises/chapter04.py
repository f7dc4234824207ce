"""The exercises of chapter 4, LayerNorm."""

from collections import OrderedDict

import torch
from torch import nn

from normlab import axes
from normlab.exercises import Choice, Code, Free, Pattern, Value
from normlab.exercises.nets import names_the_layer
from normlab.exercises.seeded import drawn, gap, other, seeded

trailing_axes = Pattern(
    "4.1",
    question=(
        "An input of shape (N, H, W, C) = (8, 14, 20, 64) goes through "
        "`nn.LayerNorm((20, 64))`. Write the pattern of the values that share a mean, "
        "on the axes N, H, W, C in this order."
    ),
    answer="N H [W C]",
    mistakes=[
        (
            "N H W [C]",
            "That is `LayerNorm(64)`. Two sizes were named, so two trailing axes are "
            "averaged over.",
        ),
        (
            "N [H W C]",
            "That is `LayerNorm((14, 20, 64))`, the whole sample. H was not named.",
        ),
        (
            "N [H W] C",
            "You took the two sizes for the two image axes. `normalized_shape` always "
            "names the last axes of the input, whatever they mean.",
        ),
    ],
    hints=[
        "`normalized_shape` names sizes. How many, and of which axes of the input?",
        "The last two sizes of the input are 20 and 64: W and C.",
    ],
    why="As many trailing axes as sizes are named. (What that is good for on an image "
    "is another question: here every row of pixels is normalized by itself.)",
)


def _layer_norm(token, correction=0):
    token = torch.tensor(token, dtype=torch.float64)
    return ((token - token.mean()) / token.std(correction=correction)).tolist()


def _tokens(correction=0):
    return {
        "2, 2, 4, 8": _layer_norm([2.0, 2, 4, 8], correction),
        "102, 102, 104, 108": _layer_norm([102.0, 102, 104, 108], correction),
        "-2, -2, -4, -8": _layer_norm([-2.0, -2, -4, -8], correction),
    }


tokens_by_hand = Value(
    "4.2",
    question=(
        "By hand, with ε = 0, γ = 1, β = 0: what does `LayerNorm(4)` make of the token "
        "2, 2, 4, 8? And then, without much further work, of 102, 102, 104, 108 and of "
        "-2, -2, -4, -8? Three lists of four numbers, to three decimals."
    ),
    answer=_tokens(),
    decimals=3,
    mistakes=[
        (
            _tokens(correction=1),
            "You divided the sum of squares by 3. LayerNorm divides by the number of "
            "features, 4.",
        ),
        (
            {**_tokens(), "-2, -2, -4, -8": _layer_norm([2.0, 2, 4, 8])},
            "The first two are right. The sign is not lost: a norm divides by the "
            "deviation, and that is positive.",
        ),
    ],
    hints=[
        "The mean is 4, the deviations are -2, -2, 0, 4.",
        "The variance is (4 + 4 + 0 + 16) / 4 = 6, so divide by √6 ≈ 2.449.",
        "A constant added to all features leaves the output as it is; a minus sign in "
        "front of all turns it round.",
    ],
    why="The shift by 100 is erased, the sign is not.",
)

loudest_feature = Value(
    "4.3",
    question=(
        "A token of D = 64 features is 0 everywhere except for one feature of 1000. "
        "What does `LayerNorm(64)` (ε = 0, γ = 1, β = 0) give for that one feature? "
        "One number, to two decimals. It is the largest that any output can be."
    ),
    answer=63**0.5,
    decimals=2,
    mistakes=[
        (
            8.0,
            "√64 would be right if the mean were 0. The mean of the token is 1000/64, "
            "and it is subtracted first.",
        ),
        (
            63 / 8,
            "You divided by the unbiased deviation, with D − 1 = 63 in the variance. "
            "LayerNorm divides by D = 64.",
        ),
        (1000.0, "That is the input. The output does not know the size of the input."),
    ],
    hints=[
        "LayerNorm is blind to scale, so take 64 in place of the 1000.",
        "With 64 the mean is 1. The deviations are 63 once and -1 in 63 places.",
        "The variance is (63² + 63) / 64 = 63. And 63 / √63 is?",
    ],
    why="√(D − 1) ≈ 7.94. All squares of the output add up to D, and one feature can "
    "have nearly all of them.",
)

bias_in_front = Choice(
    "4.4",
    question=(
        "`nn.Linear(16, 8)` with a bias stands right in front of `nn.LayerNorm(8)`, "
        "and the net is in training. Which part of that bias has no influence on the "
        "output?"
    ),
    options={
        "a": "All of it: what the norm subtracts takes the bias with it, as in "
        "BatchNorm.",
        "b": "Its mean over the 8 features, and nothing else.",
        "c": "Each of its 8 numbers keeps its sign and loses its size.",
        "d": "None of it in training, all of it in eval.",
    },
    answer="b",
    mistakes={
        "a": "In BatchNorm a feature's bias is the same for all values of the set. In "
        "LayerNorm the set is one token with its 8 features, and the bias differs "
        "within it.",
        "c": "The token as a whole keeps its direction, not each feature its sign. And "
        "the bias is added to the features before anything is measured.",
        "d": "LayerNorm does the same in both modes: it has nothing to remember.",
    },
    hints=[
        "What does LayerNorm subtract: one number for each feature, or one for each "
        "token?",
        "Split the bias in two: the same number for all 8 features, and the rest, "
        "which sums to 0. Which of the two goes into the mean of the token?",
    ],
    why="A constant added to all features of a token is subtracted with the mean. What "
    "is left of the bias, its deviations from its mean, changes the token's direction, "
    "so it learns. Section 4.11 shows the gradient, and that it sums to 0.",
)


def _layer_norm_with(correction=0, eps_outside=False, last_only=False):
    def layer_norm(x, normalized_shape, weight, bias, eps):
        dims = (-1,) if last_only else tuple(range(-len(normalized_shape), 0))
        centred = x - x.mean(dims, keepdim=True)
        var = x.var(dims, correction=correction, keepdim=True)
        root = var.sqrt() + eps if eps_outside else (var + eps).sqrt()
        return centred / root * weight + bias

    return layer_norm


layer_norm = Code(
    "4.5",
    norm="layer_norm",
    by_hand=True,
    name="my_layer_norm",
    question=(
        "From an empty cell: write `my_layer_norm(x, normalized_shape, weight, bias, "
        "eps)` for inputs of any rank; `normalized_shape` is a tuple of one or more "
        "sizes, and weight and bias have that shape. Use no norm of PyTorch and none "
        "of the functions above."
    ),
    hints=[
        "How many axes are averaged over is `len(normalized_shape)`, and they are the "
        "last ones. Which negative numbers name them?",
        "`dims = tuple(range(-len(normalized_shape), 0))`, then mean and biased "
        "variance over `dims` with `keepdim=True`.",
        "Subtract the mean, divide by `torch.sqrt(var + eps)`, multiply by weight, add "
        "bias. Both broadcast by themselves, since they stand at the end.",
    ],
    solution="""
def my_layer_norm(x, normalized_shape, weight, bias, eps):
    dims = tuple(range(-len(normalized_shape), 0))
    centred = x - x.mean(dims, keepdim=True)
    var = centred.square().mean(dims, keepdim=True)
    return centred / torch.sqrt(var + eps) * weight + bias
""",
    why="Trailing axes in, trailing axes out: nothing to move and nothing to remember.",
    wrong=[
        (_layer_norm_with(correction=1), "divided the variance by m−1"),
        (_layer_norm_with(eps_outside=True), "eps"),
        (_layer_norm_with(last_only=True), "You average over the last axis alone"),
    ],
)


def _normalized(x, dims, correction=0):
    mean = x.mean(dims, keepdim=True)
    return (x - mean) / (x.var(dims, correction=correction, keepdim=True) + 1e-5).sqrt()


# All ways to choose some of C, H, W and N, but for the right one.
_OTHER_SETS = {
    "N [C H W]": (1, 2, 3),
    "N C [H W]": (2, 3),
    "[N] C [H W]": (0, 2, 3),
    "N C H [W]": (3,),
    "N C [H] W": (2,),
}


def _judge_per_pixel(answer):
    if isinstance(answer, nn.Module):
        return "You handed in an instance; hand in the class itself."
    if not (isinstance(answer, type) and issubclass(answer, nn.Module)):
        return "A class derived from `nn.Module` is asked for."
    layer = answer(4)
    names = {name: tuple(v.shape) for name, v in layer.named_parameters()}
    if names != {"weight": (4,), "bias": (4,)}:
        return (
            "The layer should have two parameters, weight and bias, of shape (C,) "
            f"each; yours with C = 4 has {names or 'none'}."
        )
    if any(
        gap(v, torch.full((4,), f)) for v, f in ((layer.weight, 1), (layer.bias, 0))
    ):
        return "A new layer should start with weight 1 and bias 0."
    unequal = drawn(other(2), 4, other(3), other(5), seed=10)
    for i, x in enumerate((unequal, drawn(4, 4, 4, 4, seed=11))):
        if gap(layer(x), _normalized(x, 1)) < 1e-3:
            continue
        if gap(layer(x), _normalized(x, 1, correction=1)) < 1e-3:
            return "You divided the variance by C − 1. The norm divides by C."
        for pattern, dims in _OTHER_SETS.items():
            if gap(layer(x), _normalized(x, dims)) < 1e-3:
                norm = axes.parse(pattern).layer()
                called = f", the sets of {norm.norm}" if norm else ""
                return f"You averaged over {pattern}{called}. Per pixel is N [C] H W."
        if i:
            return (
                "When N, C, H and W are all equal, the output is wrong: the weight "
                "or the mean broadcasts along the wrong axis."
            )
        return "The output is not that of LayerNorm over C at each pixel."
    with torch.no_grad():
        layer.weight.copy_(drawn(4, seed=12))
        layer.bias.copy_(drawn(4, seed=13))
    weight, bias = (v.view(-1, 1, 1) for v in (layer.weight, layer.bias))
    if gap(layer(x), _normalized(x, 1) * weight + bias) > 1e-3:
        return (
            "The statistics are right, the affine step is not: weight and bias belong "
            "to the channels, axis 1 (`weight.view(-1, 1, 1)`)."
        )
    return None


class _PixelNorm(nn.Module):
    dims, correction, view = (1,), 0, (-1, 1, 1)

    def __init__(self, num_channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))

    def forward(self, x):
        y = _normalized(x, self.dims, self.correction)
        return y * self.weight.view(self.view) + self.bias.view(self.view)


def _pixel_norm(**choices):
    return type("LayerNorm2d", (_PixelNorm,), choices)


per_pixel = Free(
    "4.6",
    name="LayerNorm2d",
    question=(
        "Write the class `LayerNorm2d(num_channels)`, an `nn.Module` that does "
        "LayerNorm over C at each pixel of an input (N, C, H, W), ε = 1e-5, with "
        "`weight` and `bias` of shape (C,). Do not move any axes."
    ),
    judge=_judge_per_pixel,
    solution="""
class LayerNorm2d(nn.Module):
    def __init__(self, num_channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        var = centred.square().mean(1, keepdim=True)
        x_hat = centred / torch.sqrt(var + 1e-5)
        return x_hat * self.weight.view(-1, 1, 1) + self.bias.view(-1, 1, 1)
""",
    why="One mean for each sample and pixel, N·H·W in all, over the C channels; one γ "
    "for each channel.",
    hints=[
        "The pattern is `N [C] H W`: which single axis do mean and variance run over?",
        "`x.mean(1, keepdim=True)` has the shape (N, 1, H, W) and subtracts as it is.",
        "The weight has to line up with axis 1: `self.weight.view(-1, 1, 1)`. Compare "
        "with `per_pixel(x, nn.LayerNorm(C))` of section 4.7.",
    ],
    wrong=[
        (_pixel_norm(dims=(1, 2, 3)), "the sets of LayerNorm"),
        (_pixel_norm(dims=(2, 3)), "the sets of InstanceNorm"),
        (_pixel_norm(dims=(3,)), "You averaged over N C H [W]"),
        (_pixel_norm(correction=1), "divided the variance by C − 1"),
        (_pixel_norm(view=(-1,)), "RuntimeError"),
        (nn.Identity, "two parameters"),
        (_PixelNorm(4), "hand in the class itself"),
        (dict, "derived from `nn.Module`"),
    ],
)


def token_net():
    """Layers for tokens of shape (N, 12, 16); one of the norms mixes tokens."""
    with seeded(14):
        layers = OrderedDict(
            linear1=nn.Linear(16, 16),
            norm1=nn.LayerNorm(16),
            linear2=nn.Linear(16, 16),
            norm2=nn.GroupNorm(12, 12),
            linear3=nn.Linear(16, 16),
            norm3=nn.GroupNorm(4, 12),
            linear4=nn.Linear(16, 16),
            norm4=nn.InstanceNorm1d(12),
            linear5=nn.Linear(16, 16),
            norm5=nn.RMSNorm(16),
        )
        return nn.Sequential(layers)


mixed_tokens = Free(
    "4.7",
    fixed=True,
    question=(
        "Find the bug. `net = exercises.token_net()` is for tokens of shape (N, L, D) "
        "= (N, 12, 16), and each token should pass through it by itself. Yet when the "
        "last token changes, so do outputs of others. Which layer is to blame? Answer "
        'with its name, such as `"norm1"`. (The names of the classes will not tell '
        "you; their sets will.)"
    ),
    judge=names_the_layer(
        "norm3",
        {
            "norm1": "`norm1` is LayerNorm(16) on (N, 12, 16): it averages over the 16 "
            "features of one token.",
            "norm2": "`norm2` looks suspicious and is innocent: on (N, 12, 16) it "
            "takes the 12 tokens for channels, and with 12 groups each token is a "
            "group of its own.",
            "norm4": "`norm4` looks suspicious and is innocent: InstanceNorm1d takes "
            "the 12 tokens for channels, and each channel has its own mean, over the "
            "16 features.",
            "norm5": "`norm5` is RMSNorm(16): the root mean square of one token.",
        },
    ),
    given="from normlab.exercises import chapter04 as exercises",
    solution="""
net = exercises.token_net()
tokens = torch.arange(192.0).reshape(1, 12, 16).cos()
changed = tokens.clone()
changed[:, -1] += torch.arange(16.0).sin()
for name, layer in net.named_children():
    tokens, changed = layer(tokens), layer(changed)
    if not torch.allclose(tokens[:, :-1], changed[:, :-1], atol=1e-5):
        answer = name
        break
""",
    why="GroupNorm(4, 12) takes the 12 tokens for channels and puts three of them in a "
    "group, so tokens 9, 10 and 11 share a mean. Its neighbours with one token in each "
    "set do what LayerNorm does.",
    hints=[
        "Send two inputs that differ in the last token only through "
        "`net.named_children()`, one layer at a time. When do the other tokens part?",
        "Write down the pattern of each norm on (N, L, D), where axis 1 is L = 12. Who "
        "reduces L or a part of it?",
        "`GroupNorm(12, 12)` has one token in a group. And `GroupNorm(4, 12)`?",
    ],
    wrong=[
        ("norm1", "16 features of one token"),
        ("norm2", "a group of its own"),
        ("norm4", "each channel has its own mean"),
        ("norm5", "root mean square"),
        (nn.GroupNorm(4, 12), "the name of the layer"),
    ],
)
