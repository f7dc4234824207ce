"""The right answers of the quizzes, computed.

A question's ``key`` is either an object, ``{"sets": ..., "shape": ..., "ask": ...}``
with sizes such as ``"G": 4``, which asks `normlab.axes` about a pattern on a shape; or
the name of a function below. What it returns is a number; the text of the right option; or a list that says
of each option, in its order, whether it is right.
"""

import math

import torch
from torch import nn

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


def put(x, place, value):
    """A copy of x with other values in one place."""
    changed = x.clone()
    changed[place] = value
    return changed


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
