"""The right answers of the quizzes, computed.

A question's ``key`` is either an object, ``{"sets": ..., "shape": ..., "ask": ...}``
with sizes such as ``"G": 4``, which asks `normlab.axes` about a pattern on a shape; or
the name of a function below. What it returns is a number; the text of the right option;
or a list that says of each option, in its order, whether it is right.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from normlab import axes

KEYS = {}


def key(function):
    KEYS[function.__name__] = function
    return function


def compute(key):
    if isinstance(key, str):
        return KEYS[key]()
    sizes = {k: v for k, v in key.items() if k not in ("sets", "shape", "ask")}
    return getattr(axes.parse(key["sets"]).on(key["shape"], **sizes), key["ask"])


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def same(one, other):
    return torch.allclose(one, other, atol=1e-4)


def column(*values):
    """A batch of samples with one feature."""
    return torch.tensor(values, dtype=torch.float32)[:, None]


def raises(function, *inputs):
    try:
        function(*inputs)
    except (ValueError, RuntimeError):
        return True
    return False


def put(x, place, value):
    """A copy of x with other values in one place."""
    changed = x.clone()
    changed[place] = value
    return changed


# ------------------------------------------------------------------------- chapter 0


@key
def shape_of_a_mean():
    return tuple(torch.zeros(4, 3, 5, 6).mean((0, 2), keepdim=True).shape)


@key
def without_keepdim():
    table = normal(3, 3)
    means = table.mean(1)
    result = table - means
    return [
        same(result, torch.stack([table[:, i] - means[i] for i in range(3)], dim=1)),
        same(result, table - means[:, None]),
        raises(torch.sub, table, means),
        same(result, table - table.mean(0)),
    ]


@key
def without_keepdim_refused():
    x = normal(4, 3, 5, 6)
    refused = raises(torch.sub, x, x.mean((2, 3)))
    return [refused, not refused, False, False]


@key
def pattern_of_dims():
    dims = {
        text: axes.parse(text).on((2, 3, 4, 5)).reduced_dims
        for text in ("N [C H W]", "[N] C H W", "[N C H] W", "N C [H W]")
    }
    return [reduced == (1, 2, 3) for reduced in dims.values()]


@key
def factor_of_a_set():
    x = normal(50)
    one, ten = ((y - y.mean()) / y.std(correction=0) for y in (x, 10 * x))
    return [same(one, ten), same(10 * one, ten), ten.std() > 5, same(one / 10, ten)]


# ------------------------------------------------------------------------- chapter 1


@key
def which_norm_left_this():
    x = torch.arange(4.0)[:, None, None] + torch.tensor([0.0, 5.0])[:, None, None, None]
    x = x + normal(2, 4, 3, 3) / 10
    norms = (
        nn.BatchNorm2d(4),
        nn.LayerNorm((4, 3, 3)),
        nn.InstanceNorm2d(4),
        nn.GroupNorm(2, 4),
    )
    means = [norm(x).mean((2, 3)) for norm in norms]
    return [bool((m.std(1) < 0.1).all() and (m[1] > m[0] + 0.5).all()) for m in means]


@key
def larger_of_two():
    return round(nn.BatchNorm1d(1)(column(3, 400))[1].item(), 1)


@key
def running_mean_after_ten():
    layer = nn.BatchNorm1d(1)
    for _ in range(10):
        layer(column(98, 102))
    return round(layer.running_mean.item())


@key
def same_in_both_modes():
    x = normal(4, 8, 5, 8) + 3
    layers = (
        nn.LayerNorm(8),
        nn.GroupNorm(2, 8),
        nn.InstanceNorm2d(8),
        nn.InstanceNorm2d(8, track_running_stats=True),
        nn.BatchNorm2d(8),
    )
    return [same(layer(x), layer.eval()(x)) for layer in layers]


@key
def parameters_of_two_norms():
    norms = nn.LayerNorm((8, 4, 4)), nn.GroupNorm(1, 8)
    counts = [sum(p.numel() for p in norm.parameters()) for norm in norms]
    return "{} and {}".format(*counts)


# ------------------------------------------------------------------------- chapter 2


@key
def layer_norm_of_a_matrix():
    rows = torch.tensor([[2.0, 6.0], [10.0, 30.0]])
    return str(nn.LayerNorm(2)(rows).round().int().tolist())


@key
def when_statistics_move():
    moved = []
    for training in (True, False):
        for recorded in (True, False):
            layer = nn.BatchNorm1d(3).train(training)
            with torch.set_grad_enabled(recorded):
                layer(normal(5, 3))
            moved.append(bool(layer.running_mean.any()))
    return moved


@key
def stored_variance():
    layer = nn.BatchNorm1d(1, momentum=1.0)
    layer(column(1, 3, 5))
    return layer.running_var.item()


@key
def tokens_transposed():
    x, layer = normal(4, 64, 64), nn.LayerNorm(64)  # (N, D, L)
    y = layer(x)
    over = [(2,), (1,), (1, 2)]
    right = [same(y, (x - x.mean(d, True)) / x.std(d, correction=0, keepdim=True))
             for d in over]  # fmt: skip
    return [right[0], False, right[1], right[2]]


@key
def three_checks():
    x = normal(6, 4)

    def passes(layer):
        def fresh(training, batch):
            torch.manual_seed(torch.seed())  # Dropout draws anew
            return layer.train(training)(batch)[0]

        training = layer.training
        again = same(fresh(training, x), fresh(training, x))
        mates = same(fresh(training, x), fresh(training, put(x, 5, 9.0)))
        stored = {k: v.clone() for k, v in layer.state_dict().items()}
        modes = same(fresh(False, x), fresh(True, x))
        layer.load_state_dict(stored)
        return again and not mates and modes

    return [
        passes(nn.BatchNorm1d(4, track_running_stats=False).eval()),
        passes(nn.BatchNorm1d(4).eval()),
        passes(nn.LayerNorm(4)),
        passes(nn.Dropout(0.5)),
    ]


# ------------------------------------------------------------------------- chapter 3


@key
def running_var_after_one():
    layer = nn.BatchNorm1d(1)
    layer(column(2, 4, 4, 6))
    return layer.running_var.item()


@key
def momentum_of_keras():
    layer = nn.BatchNorm1d(1, momentum=0.99)
    for mean in (10.0, 50.0, 20.0):
        batch = column(mean - 1, mean + 1)
        output = layer(batch)
    stored = layer.running_mean.item()
    unaffected = same(output, nn.BatchNorm1d(1)(batch))
    return [abs(stored - 20) < 1, abs(stored) < 1, not unaffected, False]


@key
def too_few_values():
    return [
        raises(nn.BatchNorm1d(3), normal(1, 3)),
        raises(nn.BatchNorm2d(3), normal(1, 3, 1, 1)),
        raises(nn.BatchNorm2d(3), normal(1, 3, 4, 4)),
        raises(nn.BatchNorm2d(3), normal(1, 3, 2, 1)),
        raises(nn.BatchNorm1d(3).eval(), normal(1, 3)),
    ]


@key
def bias_removed():
    conv, norm = nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, momentum=1.0)
    x = normal(4, 2, 5, 5)
    with torch.no_grad():
        conv.bias.fill_(4.0)
        norm(conv(x))
        before = norm.eval()(conv(x))
        conv.bias.zero_()
        stays = same(norm(conv(x)), before)
    return [not stays, stays, stays, stays]


@key
def checkpointed_step():
    layer = nn.BatchNorm1d(1)
    batch = column(9, 11).requires_grad_()
    checkpoint(layer, batch, use_reentrant=False).square().sum().backward()
    return round(layer.running_mean.item(), 4)


@key
def folded_bias():
    conv, norm = nn.Conv2d(1, 1, 1, bias=False), nn.BatchNorm2d(1, eps=0.0)
    with torch.no_grad():
        conv.weight.fill_(4.0)
        for tensor, value in zip(
            (norm.running_mean, norm.running_var, norm.weight, norm.bias),
            (6.0, 9.0, 3.0, 1.0),
            strict=True,
        ):
            tensor.fill_(value)
    folded = torch.nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
    return folded.bias.item()


# ------------------------------------------------------------------------- chapter 4


@key
def parameters_of_layer_norm():
    return sum(p.numel() for p in nn.LayerNorm((4, 6)).parameters())


@key
def layer_norm_8_on_images():
    y = nn.LayerNorm(8)(normal(2, 8, 8, 8) + torch.arange(8.0)[:, None, None])
    zero = [bool((y.mean(d).abs() < 1e-4).all()) for d in (3, 1, (1, 2, 3))]
    # a sample whose rows all have mean 0 has mean 0, too, but not the deviation 1
    return [zero[0], zero[1], not zero[2], False]


@key
def layer_norm_by_hand():
    return F.layer_norm(torch.tensor([1.0, 1.0, 1.0, 5.0]), (4,))[3].item()


def unmoved(function):
    """Whether the five changes that chapters 4 and 7 ask about leave token 0 alone."""
    x = normal(1, 3, 8)
    inputs = (x + 100, 7 * x, -x, put(x, (0, slice(1, 3)), 9.0), put(x, (0, 0, 2), 9.0))
    return [same(function(x)[0, 0], function(y)[0, 0]) for y in inputs]


@key
def what_layer_norm_ignores():
    return unmoved(nn.LayerNorm(8))


@key
def per_pixel():
    x = normal(2, 3, 4, 5) + 3 * normal(2, 3, 1, 1, seed=1)
    wanted = (x - x.mean(1, True)) / (
        x.var(1, correction=0, keepdim=True) + 1e-5
    ).sqrt()
    candidates = (
        nn.LayerNorm(3)(x.movedim(1, -1)).movedim(-1, 1),
        nn.LayerNorm((3, 4, 5))(x),
        nn.GroupNorm(1, 3)(x),
        nn.GroupNorm(3, 3)(x),
    )
    return [same(wanted, y) for y in candidates]


@key
def length_of_a_token():
    return round(F.layer_norm(3 * normal(100) + 2, (100,)).norm().item())


# ------------------------------------------------------------------------- chapter 5


@key
def what_instance_norm_undoes():
    x = normal(1, 3, 6, 6)
    tint = torch.tensor([1.0, 0.7, 0.4])[:, None, None]
    inputs = (
        0.5 * x,
        put(x, (0, 0), x[0, 0] + 2),
        -x,
        put(x, (..., slice(0, 3)), x[..., :3] - 2),
        tint * x,
    )
    return [same(F.instance_norm(x), F.instance_norm(y)) for y in inputs]


@key
def state_of_instance_norm():
    names = set(nn.InstanceNorm2d(8).state_dict())
    parameters, buffers = {"weight", "bias"}, {"running_mean", "running_var"}
    whole = parameters | buffers | {"num_batches_tracked"}
    return [names == other for other in (set(), parameters, buffers, whole)]


@key
def cure_for_one_pixel():
    layer, affine = nn.InstanceNorm2d(4), nn.InstanceNorm2d(4, affine=True)
    return [
        not raises(layer, normal(32, 4, 2, 2)),
        not raises(layer, normal(320, 4, 1, 1)),
        not raises(nn.InstanceNorm2d(4).eval(), normal(32, 4, 1, 1)),
        not raises(affine, normal(32, 4, 1, 1)),
    ]


@key
def when_it_is_group_norm():
    x, right = 2 * normal(3, 8, 4, 4) + 1, []
    for layer in (nn.InstanceNorm2d(8), nn.InstanceNorm2d(8, track_running_stats=True)):
        layer(normal(3, 8, 4, 4, seed=1))  # a step of training
        for training in (True, False):
            y = layer.train(training)(x)
            right.append(same(y, nn.GroupNorm(8, 8)(x)))
    return right


@key
def adain_of_six():
    content = torch.tensor([2.0, 6.0, 2.0, 6.0])  # mean 4, deviation 2
    y = F.instance_norm(content[None, None], eps=0.0)[0, 0] * 6 + 10
    return y[1].item()


@key
def two_axes():
    x, layer = normal(6, 10), nn.InstanceNorm1d(6)
    y = layer(x)
    return [
        same(y, F.layer_norm(x, (10,))),
        False,
        same(y, F.batch_norm(x, None, None, training=True)),
        same(y, torch.zeros_like(y)),
    ]


@key
def tint_with_tracking():
    layer = nn.InstanceNorm2d(3, track_running_stats=True)
    for seed in range(50):
        layer(normal(8, 3, 6, 6, seed=seed))
    stored = layer.running_mean.clone()
    tint = torch.tensor([1.0, 0.0, -1.0])
    means = layer.eval()(normal(1, 3, 30, 30) + tint[:, None, None]).mean((0, 2, 3))
    stays, moved = (
        bool((means - tint).abs().max() < 0.2),
        not same(stored, layer.running_mean),
    )
    return [stays and not moved, not stays and not moved, moved, False]


# ------------------------------------------------------------------------- chapter 6


@key
def group_norm_counts():
    layer = nn.GroupNorm(8, 32)
    sets = axes.parse("N (G [C/G]) [H W]").on((5, 32, 7, 7), G=8)
    return f"{sets.num_sets} means, {layer.weight.numel()} weights"


@key
def what_moves_group_norm():
    x, layer = normal(2, 8, 6, 6), nn.GroupNorm(4, 8)
    inputs = (
        put(x, 1, 7.0),
        put(x, (0, 1), 10 * x[0, 1]),
        put(x, (0, 2), 10 * x[0, 2]),
        put(x, (0, 0, 5, 5), 100.0),
    )
    # the corner itself aside
    moved = [not same(layer(x)[0, 0, :5], layer(y)[0, 0, :5]) for y in inputs]
    return [*moved, not same(layer(x), layer.eval()(x))]


@key
def gcd_of_75():
    groups = math.gcd(32, 75)
    x = normal(2, 75, 3, 3)
    one_group = same(nn.GroupNorm(groups, 75)(x), nn.GroupNorm(1, 75)(x))
    return [False, one_group, groups == 25, groups == 75]


@key
def groups_of_one_value():
    x = normal(64, 10)
    y = nn.GroupNorm(10, 10)(x)  # raises nothing
    return [
        False,
        same(y, nn.BatchNorm1d(10)(x)),
        same(y, nn.LayerNorm(10)(x)),
        same(y, torch.zeros_like(y)),
    ]


@key
def bias_in_front():
    x, bias = normal(4, 16, 5, 5), normal(16, 1, 1, seed=1)
    layers = [
        nn.BatchNorm2d(16),
        nn.BatchNorm2d(16).eval(),
        *(nn.GroupNorm(groups, 16) for groups in (16, 4, 1)),
    ]
    return [same(layer(x), layer(x + bias)) for layer in layers]


@key
def table_of_the_paper():
    batch_norm, group_norm = (
        (23.6, 23.7, 24.8, 27.3, 34.7),
        (24.1, 24.2, 24.0, 24.2, 24.1),
    )
    ahead = [b < g for b, g in zip(batch_norm, group_norm, strict=True)]
    flat = max(group_norm) - min(group_norm) < 0.3
    return [
        not any(ahead),
        ahead[0] and flat and batch_norm[-1] > batch_norm[0] + 10,
        group_norm[-1] < group_norm[0],
        not flat,
    ]


# ------------------------------------------------------------------------- chapter 7


@key
def rms_norm_by_hand():
    return F.rms_norm(torch.tensor([3.0, 1.0, 1.0, 5.0]), (4,), eps=1e-6)[3].item()


@key
def what_rms_norm_ignores():
    layer = nn.RMSNorm(8, eps=1e-6)
    shift, factor, sign, others, _ = unmoved(layer)
    x = normal(2, 8)
    return [factor, shift, sign, others, same(layer(x), layer.eval()(x))]


@key
def constant_token():
    x = torch.full((4,), 3.0)
    rms, layer = F.rms_norm(x, (4,), eps=1e-6), F.layer_norm(x, (4,))
    ones, zeros = torch.ones(4), torch.zeros(4)
    pairs = (ones, zeros), (zeros, ones), (zeros, zeros), (ones, ones)
    return [same(rms, r) and same(layer, y) for r, y in pairs]


@key
def eps_of_a_small_token():
    return F.rms_norm(torch.full((8,), 1e-4), (8,), eps=1e-6)[0].item()


@key
def float16_throughout():
    x = torch.tensor([300.0, 400.0, 1000.0, -1000.0], dtype=torch.float16)
    y = x / (x.square().mean() + 1e-6).sqrt()
    right = F.rms_norm(x.float(), (4,), eps=1e-6)
    return [
        bool((y == 0).all()),
        bool(y.isnan().any()),
        bool(y.isinf().any()),
        torch.allclose(y.float(), right, rtol=0.01),
    ]


@key
def when_rms_is_layer_norm():
    x = normal(64)
    x = (x - x.mean()) / x.std(correction=0)
    tokens = (3 * x, x + 2, x + 9, (x + 2) / (x + 2).square().mean().sqrt())
    return [
        same(F.rms_norm(t, (64,), eps=1e-5), F.layer_norm(t, (64,))) for t in tokens
    ]


@key
def order_of_casts():
    x, gain = normal(64, 256).bfloat16(), normal(256, seed=1).bfloat16()
    wide = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
    once, twice = (wide * gain.float()).bfloat16(), wide.bfloat16() * gain
    differing = (once != twice).float().mean().item()
    # the bits of neighbours among the bfloat16 numbers differ by 1
    steps = (once.view(torch.int16).int() - twice.view(torch.int16).int()).abs().max()
    return [0.2 < differing < 0.3 and steps == 1, differing == 0, steps > 1, False]


# ------------------------------------------------------------------------- chapter 8


@key
def pattern_of_columns():
    shape = (2, 3, 4, 5)
    n, c, _, w = np.indices(shape)
    wanted = (n * 3 + c) * 5 + w
    options = ("N C [H] W", "N C H [W]", "[N] C [H] W", "N [C H] W")
    return [np.array_equal(axes.parse(o).on(shape).set_ids, wanted) for o in options]


@key
def who_couples():
    x = normal(4, 8, 5, 5)
    layers = (
        nn.BatchNorm2d(8),
        nn.BatchNorm2d(8).eval(),
        nn.BatchNorm2d(8, track_running_stats=False).eval(),
        nn.InstanceNorm2d(8, track_running_stats=True),
        nn.GroupNorm(4, 8),
    )
    return [not same(layer(x)[0], layer(put(x, 1, 5.0))[0]) for layer in layers]


@key
def bright_or_dark():
    bright = nn.Conv2d(1, 8, 3, bias=False)(normal(2, 1, 8, 8)).detach()
    x = torch.cat([bright, bright / 2])
    norms = (
        nn.BatchNorm2d(8, eps=1e-12),
        nn.LayerNorm((8, 6, 6), eps=1e-12),
        nn.GroupNorm(2, 8, eps=1e-12),
        nn.InstanceNorm2d(8, eps=1e-12),
        nn.RMSNorm((8, 6, 6), eps=1e-12),
    )
    return [not same(*norm(x).split(2)) for norm in norms]


@key
def who_sees_a_constant():
    x = normal(4, 8, 5, 5)
    norms = nn.RMSNorm((8, 5, 5)), nn.BatchNorm2d(8), nn.GroupNorm(2, 8)
    sees = [not same(norm(x), norm(x + 3)) for norm in norms]
    return [*sees, not any(sees)]


@key
def batch_norm_of_one_image():
    x = 2 * normal(1, 8, 5, 5) + 1
    y = nn.BatchNorm2d(8)(x)
    others = F.instance_norm(x), F.layer_norm(x, (8, 5, 5)), F.group_norm(x, 1)
    return [*(same(y, z) for z in others), same(y, torch.zeros_like(y))]


@key
def reach_of_an_output():
    x = normal(2, 6, 8).requires_grad_()
    (reach,) = torch.autograd.grad(F.rms_norm(x, (6, 8))[1, 2, 3], x)
    return reach.ne(0).sum().item()


# ------------------------------------------------------------------------- chapter 9


@key
def trained_at_32():
    layer = nn.LayerNorm(8)
    y = layer(normal(2, 8, 8, 8) + torch.arange(8.0)[:, None, None])
    over_width = bool((y.mean(3).abs() < 1e-4).all())
    fails = raises(layer, normal(2, 8, 12, 12))
    any_size = not raises(layer, normal(2, 12, 12, 8))  # with the channels last
    return [over_width and fails, not any_size, not fails, False]


@key
def padding_counts():
    layer = nn.GroupNorm(1, 1).eval()
    row, other = normal(1, 1, 5) + 2, normal(1, 1, 5, seed=1)
    alone = layer(row)
    padded = layer(F.pad(row, (0, 4)))[..., :5]
    beside = layer(torch.cat([row, 9 * other]))[:1]
    masked = padded * torch.ones(5)
    return [
        not same(padded, alone),
        not same(beside, alone),
        bool(list(layer.buffers())),
        same(masked, alone),
    ]


@key
def factor_of_std():
    x = normal(5)
    wrong = (x - x.mean()) / x.std(-1)
    return (wrong / F.layer_norm(x, (5,), eps=0.0))[0].item()


# ------------------------------------------------------------------------ chapter 10


@key
def pattern_of_shares():
    shape = (4, 2, 3, 3)
    wanted = np.concatenate(
        [axes.parse("[N] C [H W]").on((2, 2, 3, 3)).set_ids + 2 * r for r in range(2)]
    )
    options = ("(R [N/R]) C [H W]", "[N] C [H W]", "N C [H W]", "N (R [C/R]) [H W]")
    sets = [axes.parse(o).on(shape, **({"R": 2} if "R" in o else {})) for o in options]
    return [np.array_equal(s.set_ids, wanted) for s in sets]


@key
def merged_mean():
    return torch.tensor([1.0, 2.0, 3.0, 10.0]).mean().item()


@key
def merged_variance():
    return torch.tensor([0.0, 2.0, 10.0, 12.0]).var(correction=0).item()


@key
def same_on_two_processes():
    x = 2 * normal(8, 4) + torch.arange(8.0)[:, None]

    def in_shares(layer):
        return torch.cat([layer(part) for part in x.split(4)])

    parts = x.split(4)
    mean = sum(p.mean(0) for p in parts) / 2
    var = sum(p.var(0, correction=0) + (p.mean(0) - mean) ** 2 for p in parts) / 2
    merged = (x - mean) / (var + 1e-5).sqrt()
    batch_norm, group_norm, layer_norm = (
        nn.BatchNorm1d(4),
        nn.GroupNorm(2, 4),
        nn.LayerNorm(4),
    )
    plain = same(in_shares(batch_norm), batch_norm(x))
    return [
        same(in_shares(group_norm), group_norm(x)),
        same(merged, batch_norm(x)),
        plain,
        same(in_shares(layer_norm), layer_norm(x)),
        plain,
    ]
