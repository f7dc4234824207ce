"""The exercises of chapter 3, BatchNorm."""

import copy
import types
from collections import OrderedDict

import torch
from torch import nn

from normlab.exercises import Choice, Code, Free, Pattern, Value
from normlab.exercises.seeded import checking, drawn, gap, normal, seeded

devices = Pattern(
    "3.1",
    question=(
        "R devices share a batch of images. Stack their shares, and the tensor has the "
        "axes (R, N, C, H, W). Each device runs a plain `BatchNorm2d` on its own "
        "share. Write the pattern of the values that share a mean, on these five axes."
    ),
    answer="R [N] C [H W]",
    mistakes=[
        (
            "[R N] C [H W]",
            "Here the devices share their means: that is `SyncBatchNorm`. A plain "
            "BatchNorm knows nothing of the other devices.",
        ),
        (
            "[R] N C [H W]",
            "You average over the devices and keep the samples apart. It is the other "
            "way round: a device sees all of its samples and none of the others'.",
        ),
        (
            "R N C [H W]",
            "Here each image has means of its own: that is InstanceNorm. BatchNorm "
            "averages over the images it gets.",
        ),
    ],
    hints=[
        "On one device it is `[N] C [H W]`. Does a device know what the others have?",
        "No: so R is kept, like every axis that tells apart who does the averaging.",
    ],
    why="R x C means. With `SyncBatchNorm`, `[R N] C [H W]`, there would be C.",
)


def _after_one_batch(momentum=0.25, divisor=3, output_divisor=4):
    """Mean 4, squared deviations 4, 0, 0, 4."""
    deviation = (8 / output_divisor) ** 0.5
    return {
        "output": [d / deviation for d in (-2, 0, 0, 2)],
        "running_mean": momentum * 4,
        "running_var": (1 - momentum) * 1 + momentum * 8 / divisor,
    }


after_one_batch = Value(
    "3.2",
    question=(
        "A fresh `nn.BatchNorm1d(1, momentum=0.25)` in training gets the four values "
        "2, 4, 4, 6. By hand, with ε = 0: what is the output (a list of four numbers), "
        "and what do `running_mean` and `running_var` hold afterwards? Three decimals."
    ),
    answer=_after_one_batch(),
    decimals=3,
    mistakes=[
        (
            _after_one_batch(divisor=4),
            "All right but running_var: you stored the biased variance, 2. The one "
            "that is stored divides the sum of squares by m − 1 = 3.",
        ),
        (
            _after_one_batch(output_divisor=3),
            "All right but the output: the variance that normalizes divides by m = 4. "
            "Only the stored one divides by m − 1.",
        ),
        (
            _after_one_batch(momentum=0.75),
            "Your momentum weighs the old value. In PyTorch it is the weight of the "
            "new batch: 0.75 · old + 0.25 · new.",
        ),
        (
            {**_after_one_batch(), "running_mean": 4.0, "running_var": 8 / 3},
            "You let the batch replace the running statistics. They start at 0 and 1 "
            "and move a quarter of the way.",
        ),
    ],
    hints=[
        "The mean is 4, the squared deviations are 4, 0, 0, 4. Two different variances "
        "are needed.",
        "Biased: 8/4 = 2, for the output. Unbiased: 8/3, for the buffer.",
        "running_mean goes from 0 a quarter of the way to 4, running_var from 1 a "
        "quarter of the way to 8/3.",
    ],
    why="Normalized by 2, stored 8/3, and each buffer moved a quarter of the way.",
)

momentum_for_four = Value(
    "3.3",
    question=(
        "Somebody trains with gradient accumulation: four micro-batches for each "
        "optimizer step, where there used to be one batch, and momentum 0.1. Now the "
        "running statistics move four times a step. Which momentum makes what was "
        "there before a step keep the same weight after it as it used to? Give it to "
        "four decimals."
    ),
    answer=1 - 0.9**0.25,
    decimals=4,
    mistakes=[
        (
            0.025,
            "A fourth is close, but the old value is multiplied, not lessened: four "
            "moves of 0.025 leave 0.975⁴ ≈ 0.9037, not 0.9.",
        ),
        (0.4, "A larger momentum forgets faster, and four moves forget already more."),
        (
            1 - 0.9**4,
            "This is how much the four moves forget with momentum 0.1. Now find the "
            "momentum with which they forget 0.1 in all.",
        ),
        (
            0.9**0.25,
            "This is the weight of the old value in each move. PyTorch's momentum is "
            "the weight of the new one.",
        ),
    ],
    hints=[
        "One move with momentum a leaves (1 − a) of what was there. And four?",
        "(1 − a)⁴ = 0.9. Section 3.10 has the same for two moves.",
    ],
    why="Four moves leave (1 − a)⁴ of the old value, and a = 1 − 0.9^(1/4) ≈ 0.0260 "
    "makes that 0.9. The variance within small micro-batches is another matter: no "
    "momentum restores that between them.",
)

bias_in_front = Choice(
    "3.4",
    question=(
        "A *trained* net has `Conv2d(..., bias=True)` right in front of a "
        "`BatchNorm2d`. You want to get rid of the bias without changing any output in "
        "eval. What do you do?"
    ),
    options={
        "a": "Set it to zero: BatchNorm subtracts the mean, so it never had an effect.",
        "b": "Set it to zero and subtract it from the norm's `running_mean`.",
        "c": "Set it to zero and subtract it from the norm's `bias`.",
        "d": "Set it to zero and add it to the norm's `bias`.",
    },
    answer="b",
    mistakes={
        "a": "That is true in training, where the mean is that of the batch. In eval "
        "`running_mean` is a constant, measured with the bias in it.",
        "c": "The sign and the scale are off: between the two biases stands the factor "
        "weight / √(running_var + eps).",
        "d": "The sign is right, the scale is not: between the two biases stands the "
        "factor weight / √(running_var + eps).",
    },
    hints=[
        "Write down what eval computes: (conv + b − running_mean) · scale + bias.",
        "The bracket must stay what it is when b goes to 0. What else stands in it?",
    ],
    why="(conv + b − running_mean) keeps its value if both b and running_mean become "
    "smaller by b.",
)


class _Batch(nn.Module):
    """A BatchNorm2d with choices, some of them mistakes."""

    correction, buffers = 1, True

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        stored = {"running_mean": torch.zeros, "running_var": torch.ones}
        for name, fill in stored.items():
            if self.buffers:
                self.register_buffer(name, fill(num_features))
            else:
                setattr(self, name, fill(num_features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
            with torch.no_grad():
                stored = x.var((0, 2, 3), correction=self.correction)
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(stored, self.momentum)
        mean, var, weight, bias = (
            v.view(-1, 1, 1) for v in (mean, var, self.weight, self.bias)
        )
        return (x - mean) / torch.sqrt(var + self.eps) * weight + bias


class _Attributes(_Batch):
    buffers = False


class _BiasedStored(_Batch):
    correction = 0


batch_norm = Code(
    "3.5",
    norm="BatchNorm",
    by_hand=True,
    name="BatchNorm",
    question=(
        "From an empty cell: write the class `BatchNorm(num_features, eps=1e-5, "
        "momentum=0.1)`, an `nn.Module` for images of shape (N, C, H, W), equal to "
        "`nn.BatchNorm2d` in output, gradients, buffers and eval. Names as in PyTorch: "
        "`weight`, `bias`, `running_mean`, `running_var`. Use no norm of PyTorch and "
        "none of the functions above."
    ),
    hints=[
        "`__init__`: two `nn.Parameter`s, and two buffers by `register_buffer`. "
        "`forward`: `self.training` decides whose mean and variance normalize.",
        "In training: `x.mean((0, 2, 3))` and `x.var((0, 2, 3), correction=0)`; then, "
        "under `torch.no_grad()`, move both buffers with `lerp_(..., self.momentum)`, "
        "the variance to the unbiased one.",
        "After that both modes go on alike. A vector of length C broadcasts over (N, "
        "C, H, W) as `v.view(-1, 1, 1)`.",
    ],
    solution="""
class BatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(x.var((0, 2, 3)), self.momentum)
        mean, var = mean.view(-1, 1, 1), var.view(-1, 1, 1)
        x_hat = (x - mean) / torch.sqrt(var + self.eps)
        return x_hat * self.weight.view(-1, 1, 1) + self.bias.view(-1, 1, 1)
""",
    why="Parameters for the optimizer, buffers for evaluation, and the mode decides.",
    wrong=[
        (_Attributes, "plain attributes"),
        (_BiasedStored, "stored the biased variance"),
        (_Batch(6), "hand in the class itself"),
    ],
)


@torch.no_grad()
def _folded(norm, linear, eps=True, after=False, rows=False, lost=""):
    """Both layers in one; the choices are mistakes that can be made."""
    scale = norm.weight / torch.sqrt(norm.running_var + eps * norm.eps)
    shift = norm.bias - scale * norm.running_mean
    if lost == "mean":
        shift = norm.bias.clone()
    folded = nn.Linear(linear.in_features, linear.out_features)
    if after:  # as if the norm came after the linear layer
        folded.weight.copy_(linear.weight * scale[:, None])
        folded.bias.copy_((linear.bias - norm.running_mean) * scale + norm.bias)
        return folded
    folded.weight.copy_(linear.weight * (scale[:, None] if rows else scale))
    by_weight = folded.weight if lost == "order" else linear.weight
    folded.bias.copy_(by_weight @ shift + (0 if lost == "bias" else linear.bias))
    return folded


_FOLDS = {
    "You folded as if the norm came behind the linear layer. It stands in front: its "
    "output is what the weight multiplies.": {"after": True},
    "`norm.eps` is missing under the root.": {"eps": False},
    "The scale belongs to the inputs, so it multiplies the columns of the weight; you "
    "multiplied the rows. (On a square weight both fit.)": {"rows": True},
    "The linear layer's own bias got lost.": {"lost": "bias"},
    "The running mean got lost: it is subtracted, times the scale, before the weight "
    "is applied.": {"lost": "mean"},
    "You multiplied the shift by the weight that is scaled already. The shift is not "
    "scaled again: use the old weight for it.": {"lost": "order"},
}


def _folds_with(mistake):
    return lambda norm, linear: _folded(norm, linear, **mistake)


def _judge_fold(answer):
    with checking(6):
        norm, linear = nn.BatchNorm1d(4, eps=0.1).eval(), nn.Linear(4, 4)
        for tensor in (norm.weight, norm.bias, norm.running_mean, linear.bias):
            nn.init.normal_(tensor)
        nn.init.uniform_(norm.running_var, 0.2, 2.0)
    given = copy.deepcopy((norm, linear))
    x = drawn(8, 4, seed=7)
    wanted = linear(norm(x))
    folded = answer(norm, linear)
    if not isinstance(folded, nn.Linear):
        return "The function should return an `nn.Linear`."
    for before, after in zip(given, (norm, linear), strict=True):
        state = before.state_dict()
        if any(gap(v, state[k]) > 0 for k, v in after.state_dict().items()):
            return "Your function changes the layers it was given. Make a new one."
    if gap(folded(x), wanted) < 1e-4:
        return None
    for sentence, mistake in _FOLDS.items():
        if gap(folded(x), _folded(norm, linear, **mistake)(x)) < 1e-4:
            return sentence
    return (
        "The folded layer gives other outputs than the two in a row. Write out "
        "W (s · x + t) + b, where s · x + t is the norm in eval, and read off what "
        "multiplies x and what does not."
    )


fold = Free(
    "3.6",
    name="fold_linear",
    expects=types.FunctionType,
    question=(
        "Section 3.11 folds a BatchNorm into the convolution in front of it. Now the "
        "norm stands *in front*: write `fold_linear(norm, linear)`, which returns one "
        "`nn.Linear` that gives what `linear(norm(x))` gives in eval. Leave both "
        "layers as they are; `linear` has a bias."
    ),
    judge=_judge_fold,
    solution="""
@torch.no_grad()
def fold_linear(norm, linear):
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    shift = norm.bias - scale * norm.running_mean
    folded = nn.Linear(linear.in_features, linear.out_features)
    folded.weight.copy_(linear.weight * scale)
    folded.bias.copy_(linear.bias + linear.weight @ shift)
    return folded
""",
    why="W (s · x + t) + b = (W s) · x + (W t + b): the scale goes into the columns of "
    "the weight, the shift through the weight into the bias.",
    hints=[
        "In eval the norm is s · x + t, with one s and one t for each feature. Which "
        "are they?",
        "s = weight / √(running_var + eps) and t = bias − s · running_mean. Put that "
        "into W (s · x + t) + b and sort.",
        "New weight: `linear.weight * scale` (s scales the columns). New bias: "
        "`linear.bias + linear.weight @ shift`. Copy under `torch.no_grad()`.",
    ],
    wrong=[(_folds_with(mistake), sentence) for sentence, mistake in _FOLDS.items()],
)


def stale_data():
    """256 samples of four features, around 5."""
    return 5 + 3 * normal(256, 4, seed=8)


def stale_net():
    """A net after 40 steps in training mode; what it says in eval is of no use."""
    with seeded(9):
        layers = OrderedDict(
            linear1=nn.Linear(4, 16),
            norm1=nn.BatchNorm1d(16),
            relu1=nn.ReLU(),
            linear2=nn.Linear(16, 16),
            norm2=nn.BatchNorm1d(16, momentum=0.0),
            relu2=nn.ReLU(),
            head=nn.Linear(16, 3),
        )
    layers["linear2"].bias.data += 2
    net = nn.Sequential(layers)
    with torch.no_grad():
        for step in range(40):
            net(5 + 3 * normal(32, 4, seed=step))
    return net


@torch.no_grad()
def _judge_stale(answer):
    net, original = copy.deepcopy(answer).cpu(), stale_net()
    norm = getattr(net, "norm2", None)
    if not isinstance(norm, nn.BatchNorm1d) or norm.running_mean is None:
        return "`norm2` should stay a BatchNorm1d that keeps running statistics."
    weights = dict(original.named_parameters())
    for name, value in net.named_parameters():
        if name not in weights or gap(weights[name], value) > 0:
            return (
                f"`{name}` has changed. The weights are good; leave them as they are."
            )
    if any(layer.training for layer in net.modules()):
        return "The net is to be used: hand it in in eval mode, all of its layers."
    if gap(norm.running_mean, torch.zeros(16)) < 1e-6:
        return (
            "`norm2` still has the running statistics it was born with, a mean of 0 "
            "and a variance of 1, although its counter says "
            f"{norm.num_batches_tracked}. What keeps them from moving?"
        )
    data = stale_data()
    in_eval = net(data)
    in_training = net.train()(data)
    if gap(in_eval, in_training) > 0.25:
        return (
            "The running statistics of `norm2` have moved, but the start still weighs "
            f"in: an output is off by {gap(in_eval, in_training):.2f}. Send more "
            "batches, or use `momentum=None`; and that takes the counter at its word, "
            "so call `reset_running_stats()` first."
        )
    return None


def _remeasured(momentum, steps=1, reset=True, mode=False):
    net = stale_net()
    net.norm2.momentum = momentum
    if reset:
        net.norm2.reset_running_stats()
    with torch.no_grad():
        for batch in steps * stale_data().split(64):
            net(batch)
    return net.train(mode)


def _other_weights():
    net = _remeasured(None)
    net.head.weight.data *= 2
    return net


def _without_record():
    net = stale_net().eval()
    net.norm2 = nn.BatchNorm1d(16, track_running_stats=False)
    return net.eval()


stale = Free(
    "3.7",
    fixed=True,
    expects=nn.Module,
    question=(
        "Find the bug. `net = exercises.stale_net()` was trained on data like "
        "`exercises.stale_data()`. Its training loss was fine, and what it says in "
        "eval is of no use. One layer is to blame. Repair the net without touching a "
        "weight (measure what is missing), and answer with it, in eval mode."
    ),
    judge=_judge_stale,
    given="from normlab.exercises import chapter03 as exercises",
    solution="""
answer = exercises.stale_net()
answer.norm2.momentum = None  # it was 0: the running statistics never moved
answer.norm2.reset_running_stats()
answer.train()
with torch.no_grad():
    for batch in exercises.stale_data().split(64):
        answer(batch)
answer.eval()
""",
    why="With momentum 0 the statistics stay at 0 and 1 while the counter goes up, so "
    "the counter alone does not tell. Train mode never used them and noticed nothing.",
    hints=[
        "Look at the buffers of both norms. Section 3.9 has a function that tells a "
        "layer that was never measured.",
        "`print(net)` shows a momentum of 0.0 in `norm2`. With that, running "
        "statistics never move.",
        "Set `net.norm2.momentum = None`, call `net.norm2.reset_running_stats()`, send "
        "the data through in train mode under `no_grad`, and end with `net.eval()`.",
    ],
    wrong=[
        (stale_net(), "in eval mode"),
        (stale_net().eval(), "the running statistics it was born with"),
        (_remeasured(0.1), "the start still weighs in"),
        (_remeasured(None, reset=False), "the start still weighs in"),
        (_remeasured(None, mode=True), "in eval mode"),
        (_other_weights(), "`head.weight` has changed"),
        (_without_record(), "that keeps running statistics"),
    ],
)
