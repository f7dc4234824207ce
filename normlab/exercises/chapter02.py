"""The exercises of chapter 2, BatchNorm and LayerNorm: which axis?

The second, third and fourth are the three questions of section 2.14.
"""

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from normlab import axes
from normlab.exercises import Choice, Code, Free, Pattern, Value
from normlab.exercises.seeded import checking, other, seeded

batch_norm_of_tokens = Pattern(
    "2.1",
    question=(
        "Tokens of shape (N, L, D) are to go through a BatchNorm that takes the D "
        "features for its channels. Write the pattern of the values that should share "
        "a mean, on the axes N, L, D in this order."
    ),
    answer="[N L] D",
    mistakes=[
        (
            "[N] L [D]",
            "That is what `BatchNorm1d` does to (N, L, D) as it stands: it takes axis "
            "1, here L, for the channels. That is why the axes must be swapped first.",
        ),
        (
            "N L [D]",
            "This is LayerNorm: each token by itself. BatchNorm keeps the channels, "
            "here D.",
        ),
        (
            "[N] L D",
            "This keeps the position as well, so that each has a mean of its own. "
            "BatchNorm keeps the channels alone.",
        ),
    ],
    hints=[
        "BatchNorm keeps the channels and reduces everything else. Which axis are "
        "the channels here?",
        "One axis stays outside of the brackets, the last one.",
    ],
    why="The rule does not name a place: keep the channels, reduce all the rest. "
    "PyTorch's layer finds the channels at axis 1, so give it `x.transpose(1, 2)`.",
)


def _by_hand(x, dim):
    x = torch.tensor(x, dtype=torch.float64)
    deviation = x.std(dim, correction=0, keepdim=True)
    return (x - x.mean(dim, keepdim=True)) / deviation


_X = [[0, 2], [2, 4], [4, 6]]
_CHANGED = [[0, 2], [2, 4], [40, 60]]


def _two_answers():
    found = {}
    for norm, dim in (("BatchNorm", 0), ("LayerNorm", 1)):
        before, after = _by_hand(_X, dim), _by_hand(_CHANGED, dim)
        found[norm] = before.tolist()
        found[f"changed by {norm}"] = int((before - after).abs().gt(1e-3).sum())
    return found


two_answers = Value(
    "2.2",
    question=(
        "X = [[0, 2], [2, 4], [4, 6]] holds three samples of two features. By hand, "
        "with ε = 0, γ = 1, β = 0: what do BatchNorm (in training) and LayerNorm make "
        "of it? Give each as a list of three rows, to three decimals. Then the third "
        "sample becomes [40, 60]: how many of the six outputs change in BatchNorm, "
        "how many in LayerNorm?"
    ),
    answer=_two_answers(),
    decimals=3,
    mistakes=[
        (
            {**_two_answers(), "changed by LayerNorm": 2},
            "Nearly: work out the third row of LayerNorm once more. [40, 60] has the "
            "mean 50 and the deviation 10.",
        ),
        (
            {**_two_answers(), "changed by BatchNorm": 2},
            "Nearly: in BatchNorm the third sample is part of every column's mean and "
            "deviation, so the other rows change with it.",
        ),
        (
            {
                **_two_answers(),
                "BatchNorm": _by_hand(_X, 1).tolist(),
                "LayerNorm": _by_hand(_X, 0).tolist(),
            },
            "You have the two the wrong way round: BatchNorm goes down the columns, "
            "LayerNorm along the rows.",
        ),
        (
            {
                **_two_answers(),
                "BatchNorm": (_by_hand(_X, 0) * (2 / 3) ** 0.5).tolist(),
            },
            "In BatchNorm you divided the sum of squares by 2. There are 3 values in "
            "a column, and the norm divides by their number.",
        ),
    ],
    hints=[
        "BatchNorm: the columns 0, 2, 4 and 2, 4, 6. LayerNorm: the rows 0, 2 and 2, 4 "
        "and 4, 6.",
        "Both columns have the variance 8/3, so 2 / √(8/3) ≈ 1.225 appears. Of two "
        "different features, LayerNorm makes -1 and 1.",
        "The third sample moves both column means, and with them all three rows. In "
        "LayerNorm its own row goes from 4, 6 to 40, 60: still a smaller and a larger "
        "one.",
    ],
    why="BatchNorm: all six change. LayerNorm: none, not even the third row, because "
    "two features always become -1 and 1. With three features the third row would "
    "change, and no other.",
)


def _accounts():
    sets = {
        "BatchNorm2d": (axes.parse("[N] C [H W]"), "C"),
        "LayerNorm": (axes.parse("N [C H W]"), "C H W"),
    }
    found = {}
    for layer, (pattern, parameters) in sets.items():
        on = pattern.on((4, 3, 2, 2))
        found[f"{layer} reduces"] = on.reduced_dims
        found[f"{layer} statistics"] = on.statistics_shape
        found[f"{layer} weight"] = on.parameter_shape(parameters)
        found[f"{layer} values"] = on.values_per_set
    return found


accounts = Value(
    "2.3",
    question=(
        "The input has the shape (N, C, H, W) = (4, 3, 2, 2). For `BatchNorm2d(3)` and "
        "for `LayerNorm((3, 2, 2))` give four things: the axes reduced, as a tuple of "
        "numbers from 0 to 3; the shape of the statistics, each reduced axis kept as "
        "1; the shape of the weight γ; and how many values share a mean."
    ),
    answer=_accounts(),
    mistakes=[
        (
            {**_accounts(), "LayerNorm weight": (3,)},
            "All right but LayerNorm's weight: it has the shape of the axes that were "
            "named, one γ for each element of a sample.",
        ),
        (
            {**_accounts(), "BatchNorm2d statistics": (3,)},
            "All right but the shape of BatchNorm's statistics: keep the reduced axes "
            "as 1, so that it broadcasts over the input.",
        ),
    ],
    hints=[
        "BatchNorm keeps axis 1. LayerNorm reduces as many trailing axes as "
        "`normalized_shape` has sizes.",
        "Write the input's shape down and put a 1 wherever an axis is reduced: that is "
        "the shape of the statistics. The product of the sizes you struck out is the "
        "number of values.",
        "γ: one for each channel in BatchNorm, the shape (3, 2, 2) in LayerNorm.",
    ],
    why="3 means of 16 values, and 4 means of 12: 48 either way. In BatchNorm γ lies "
    "along the axis of the statistics, in LayerNorm along the others.",
)


def _small_net(seed=0):
    """A linear layer, a BatchNorm, a ReLU and a linear layer, fresh."""
    with seeded(seed):
        layers = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)
        return nn.Sequential(*layers)


def _after_training():
    """A small net after 60 steps on three clouds of points, and such points."""
    net = _small_net()
    with seeded(1):
        labels = torch.arange(60) % 3
        points = torch.randn(60, 4) + 3 * F.one_hot(labels, 4) + 5
        for _ in range(60):
            F.cross_entropy(net(points), labels).backward()
            # By hand: to load torch.optim takes longer than a check may.
            for parameter in net.parameters():
                parameter.data -= 0.1 * parameter.grad
                parameter.grad = None
    return net.eval(), points


_BUFFERS = ("1.running_mean", "1.running_var", "1.num_batches_tracked")


def _without_the_others(names):
    """How far a fresh net is off in eval that gets the parameters and these buffers."""
    net, points = _after_training()
    saved = dict(net.named_parameters())
    saved |= {name: net.state_dict()[name] for name in names}
    restored = _small_net(seed=2).eval()
    restored.load_state_dict(saved, strict=False)
    with torch.no_grad():
        return (restored(points) - net(points)).abs().max().item()


def _judge_buffers(answer):
    if isinstance(answer, str) or not isinstance(
        answer, set | frozenset | list | tuple
    ):
        return 'Answer with a set of names, such as {"1.running_mean"}.'
    names = set(answer)
    for name in names - set(_BUFFERS):
        return (
            f"`{name}` is no buffer of the net: `dict(net.named_buffers())` has them."
        )
    error = _without_the_others(names)
    if error > 1e-4:
        count = "no buffer" if not names else f"{len(names)} of the 3 buffers"
        return (
            f"With the parameters and {count} restored, an output in eval is still off "
            f"by {error:.2f}. Another buffer makes a difference, too."
        )
    if "1.num_batches_tracked" in names:
        return (
            "Restored, yes, but one of these is not needed: leave them out one at a "
            "time, and compare the outputs in eval."
        )
    return None


lost_buffers = Free(
    "2.4",
    fixed=True,
    question=(
        "Section 2.14 trains a tiny net and saves it twice, as `named_parameters()` "
        "alone and as the whole `state_dict()`. Restored from the first, it gives "
        "other outputs in eval. Which buffers make the difference? Copy them over one "
        "at a time, and answer with the set of the names that are needed (as few as "
        'possible), such as `{"1.running_mean"}`.'
    ),
    judge=_judge_buffers,
    solution="""
names = ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
# Each of the first two changes the output; the third is a counter, which eval ignores.
answer = set(names[:2])
""",
    why="Evaluation computes with running_mean and running_var. The counter serves "
    "momentum=None in training alone.",
    hints=[
        "`from_parameters.load_state_dict({name: saved_state[name]}, strict=False)` "
        "copies one entry. After which copies do the outputs move?",
        "Three buffers belong to the BatchNorm, layer 1 of the net: "
        "`dict(tiny.named_buffers())`. Which numbers does the formula of evaluation "
        "use?",
        "(x - running_mean) / √(running_var + ε): two buffers. The third one counts "
        "batches.",
    ],
    wrong=[
        (set(), "no buffer restored"),
        ({"1.running_mean"}, "Another buffer"),
        ({"1.running_var"}, "Another buffer"),
        (set(_BUFFERS), "not needed"),
        ({"1.weight"}, "is no buffer"),
        ("1.running_mean", "a set of names"),
    ],
)

careless_validation = Choice(
    "2.5",
    question=(
        "After each epoch of `model.train()` a script computes the validation loss "
        "like this, and nothing else:\n\n"
        "`with torch.no_grad(): loss = criterion(model(x), y)`\n\n"
        "The model contains BatchNorm and Dropout. Which statements are true? Answer "
        "with a set of letters."
    ),
    options={
        "a": "The running statistics move a little towards the validation data.",
        "b": "The optimizer's weights move a little towards the validation data.",
        "c": "The loss of one validation sample depends on the others in its batch.",
        "d": "Dropout leaves activations out.",
        "e": "The computation costs as much memory as in training, since the graph is "
        "kept for backward.",
    },
    answer={"a", "c", "d"},
    mistakes={
        "a": "The update of the running statistics asks for the mode alone, and the "
        "mode is train.",
        "b": "Weights move in `optimizer.step()`, which is not called.",
        "c": "In train mode BatchNorm normalizes with the batch, whether or not "
        "gradients are recorded.",
        "d": "Dropout, too, asks for the mode alone.",
        "e": "This is the one thing that `no_grad` does: no graph is recorded.",
    },
    hints=[
        "There are two switches, the mode and the recording of gradients. Which of "
        "them did the script move?",
        "The mode is still train. Go through the statements: which of them ask for the "
        "mode?",
    ],
    why="`no_grad` stops the recording. The mode is still train, so all that train "
    "mode does goes on: `model.eval()` was forgotten.",
)


def _flows(stored_correction=1, mode_by_grad=False):
    def two_flows(x, running_mean, running_var, weight, bias, training, momentum, eps):
        mean, var = running_mean, running_var
        if torch.is_grad_enabled() if mode_by_grad else training:
            mean, var = x.mean((0, 2)), x.var((0, 2), correction=0)
            with torch.no_grad():
                running_mean.lerp_(mean, momentum)
                stored = x.var((0, 2), correction=stored_correction)
                running_var.lerp_(stored, momentum)
        mean, var, weight, bias = (v[:, None] for v in (mean, var, weight, bias))
        return (x - mean) / torch.sqrt(var + eps) * weight + bias

    return two_flows


two_flows = Code(
    "2.6",
    norm="batch_norm",
    by_hand=True,
    name="two_flows",
    shape=(4, 6, 5),
    question=(
        "Write BatchNorm with both of its flows, for an input of shape (N, C, L): "
        "`two_flows(x, running_mean, running_var, weight, bias, training, momentum, "
        "eps)`. In training it normalizes with the batch and updates the running "
        "statistics in place; otherwise it normalizes with the running statistics. Use "
        "no norm of PyTorch."
    ),
    hints=[
        "Let `if training:` choose the mean and the variance; what comes after them, "
        "normalize and affine, is the same in both flows.",
        "A vector of length C broadcasts over (N, C, L) as `vector[:, None]`. The "
        "biased variance is `x.var((0, 2), correction=0)`.",
        "Update under `torch.no_grad()`, in place: `running_mean.lerp_(mean, "
        "momentum)`, and `running_var.lerp_(x.var((0, 2)), momentum)` with the "
        "unbiased variance.",
    ],
    solution="""
def two_flows(x, running_mean, running_var, weight, bias, training, momentum, eps):
    mean, var = running_mean, running_var
    if training:
        mean, var = x.mean((0, 2)), x.var((0, 2), correction=0)
        with torch.no_grad():
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(x.var((0, 2)), momentum)
    x_hat = (x - mean[:, None]) / torch.sqrt(var[:, None] + eps)
    return x_hat * weight[:, None] + bias[:, None]
""",
    why="The mode chooses where mean and variance come from. The biased variance "
    "normalizes, the unbiased one is stored.",
    wrong=[
        (_flows(stored_correction=0), "stored the biased variance"),
        (_flows(mode_by_grad=True), "whether gradients are recorded"),
    ],
)


def layout_net():
    """A convolution over (N, D, L) with D = 16, a norm of its 16 features, a GELU."""
    with seeded(3):
        layers = OrderedDict(
            conv=nn.Conv1d(16, 16, 3, padding=1), norm=nn.LayerNorm(16), act=nn.GELU()
        )
        return nn.Sequential(layers)


def _outputs_of_layout_net():
    """What the net is to give for an input with L = 16, and what wrong ones give."""
    net = layout_net()
    with checking(4), torch.no_grad():
        x = 2 * torch.randn(other(3), 16, 16) + torch.arange(16.0)[:, None]
        hidden = net.conv(x)
        token = F.layer_norm(hidden.transpose(1, 2), (16,)).transpose(1, 2)
        norms = {
            "right": token,
            "position": F.layer_norm(hidden, (16,)),
            "batch": F.batch_norm(hidden, None, None, training=True),
            "sample": F.group_norm(hidden, 1),
            "transposed": token.transpose(1, 2),
        }
        return x, {name: F.gelu(y) for name, y in norms.items()}


_LAYOUT = {
    "position": "The norm still averages over the 16 positions of each feature. "
    "Nothing warns, since L is 16 as well.",
    "batch": "Now one sample's output depends on the others. The norm should be of "
    "each token alone.",
    "sample": "Now one mean serves all positions of a sample. Each token, x[n, :, l], "
    "should have its own.",
    "transposed": "The norm is right, but the output is (N, L, D). Swap the axes back "
    "to (N, D, L) after the norm.",
}


@torch.no_grad()
def _judge_layout(answer):
    x, outputs = _outputs_of_layout_net()
    y = answer(x.clone())
    if not isinstance(y, torch.Tensor) or y.shape != x.shape:
        return f"The output should have the shape of the input, {tuple(x.shape)}."
    for name, output in outputs.items():
        if torch.allclose(y, output, atol=1e-3):
            return _LAYOUT.get(name)
    return (
        "The output is not that of the repaired net. Leave the convolution's weights "
        "and the order of the layers as they are, and change only how the norm is "
        "applied."
    )


class _Swapped(nn.Module):
    def __init__(self, norm, back=True):
        super().__init__()
        self.norm, self.back = norm, back

    def forward(self, x):
        y = self.norm(x.transpose(1, 2))
        return y.transpose(1, 2) if self.back else y


def _with_norm(norm, act_first=False):
    net = layout_net()
    net.norm = norm
    return nn.Sequential(net.conv, net.act, net.norm) if act_first else net


layout = Free(
    "2.7",
    expects=nn.Module,
    question=(
        "`net = exercises.layout_net()` is a convolution, a norm and a GELU for inputs "
        "of shape (N, D, L) with D = 16 features. The norm is meant to normalize each "
        "token (the 16 features at one position). On L = 16 it runs without an error "
        "and does something else. Repair it, and answer with the net: same weights, "
        "output of shape (N, D, L)."
    ),
    judge=_judge_layout,
    given="from torch import nn\nfrom normlab.exercises import chapter02 as exercises",
    solution="""
class TokenNorm(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


answer = exercises.layout_net()
answer.norm = TokenNorm(answer.norm)
""",
    why="LayerNorm takes the trailing axis, whatever stands there. So the features go "
    "to the end for the norm, and back for the next convolution.",
    hints=[
        "Which axis does `LayerNorm(16)` reduce on an input (N, 16, 16)? Which one is "
        "meant?",
        "The norm needs the features at the end, the convolutions need them at axis "
        "1. `x.transpose(1, 2)` swaps the two.",
        "Write a module whose forward returns `self.norm(x.transpose(1, 2))"
        ".transpose(1, 2)`, and put it in the place of `net.norm`.",
    ],
    wrong=[
        (layout_net(), "still averages over the 16 positions"),
        (_with_norm(nn.GroupNorm(1, 16)), "one mean serves all positions"),
        (_with_norm(nn.BatchNorm1d(16)), "depends on the others"),
        (
            _with_norm(_Swapped(nn.LayerNorm(16)), act_first=True),
            "order of the layers",
        ),
        (_with_norm(_Swapped(nn.LayerNorm(16), back=False)), "Swap the axes back"),
        (nn.LayerNorm(16), "not that of the repaired net"),
        (type(layout_net()), "an instance is asked for"),
    ],
)
