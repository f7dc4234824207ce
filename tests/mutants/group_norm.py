"""Wrong GroupNorms."""

import torch
from torch import nn

from mutants.registry import mutant


def standard(x, axes, eps):
    x = x - x.mean(axes, keepdim=True)
    return x / torch.sqrt(x.pow(2).mean(axes, keepdim=True) + eps)


def affine(y, weight, bias):
    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)


@mutant("group_norm", "reshape that mixes channels and positions", "all channels")
def channels_last(x, num_groups, weight, bias, eps):
    n, c, h, w = x.shape
    last = x.permute(0, 2, 3, 1).reshape(n, num_groups, -1)
    y = standard(last, -1, eps).reshape(n, h, w, c).permute(0, 3, 1, 2)
    return affine(y, weight, bias)


@mutant("group_norm", "num_groups taken as the size of a group", "how many groups")
def sizes(x, num_groups, weight, bias, eps):
    n, _, h, w = x.shape
    split = x.reshape(n, -1, num_groups, h, w)
    return affine(standard(split, (2, 3, 4), eps).reshape(x.shape), weight, bias)


@mutant("group_norm", "wrong axes", "N ([C/G] G) [H W]")
def every_gth(x, num_groups, weight, bias, eps):
    n, c, h, w = x.shape
    split = x.reshape(n, c // num_groups, num_groups, h, w)
    return affine(standard(split, (1, 3, 4), eps).reshape(x.shape), weight, bias)


@mutant("group_norm", "wrong axes", "[N] (G [C/G]) [H W]")
def with_the_batch(x, num_groups, weight, bias, eps):
    n, c, h, w = x.shape
    split = x.reshape(n, num_groups, c // num_groups, h, w)
    return affine(standard(split, (0, 2, 3, 4), eps).reshape(x.shape), weight, bias)


@mutant("group_norm", "wrong axes", "N (G [C/G]) H W")
def each_pixel(x, num_groups, weight, bias, eps):
    n, c, h, w = x.shape
    split = x.reshape(n, num_groups, c // num_groups, h, w)
    return affine(standard(split, 2, eps).reshape(x.shape), weight, bias)


@mutant("group_norm", "wrong axes", "the sets of InstanceNorm")
def each_channel(x, num_groups, weight, bias, eps):
    return affine(standard(x, (2, 3), eps), weight, bias)


@mutant("group_norm", "wrong axes", "the sets of LayerNorm")
def one_group(x, num_groups, weight, bias, eps):
    return affine(standard(x, (1, 2, 3), eps), weight, bias)


def grouped(x, num_groups, eps):
    return standard(x.reshape(len(x), num_groups, -1), 2, eps).reshape(x.shape)


@mutant("group_norm", "weight along the wrong axis", "axis 1")
def broadcast_last(x, num_groups, weight, bias, eps):
    return grouped(x, num_groups, eps) * weight + bias


@mutant("group_norm", "n-1 in the forward pass", "here with m = 30")
def bessel(x, num_groups, weight, bias, eps):
    rows = x.reshape(x.shape[0], num_groups, -1)
    y = (rows - rows.mean(2, keepdim=True)) / (rows.var(2, keepdim=True) + eps).sqrt()
    return affine(y.reshape(x.shape), weight, bias)


@mutant("group_norm", "eps outside the root", "√(var + eps)")
def eps_outside(x, num_groups, weight, bias, eps):
    rows = x.reshape(x.shape[0], num_groups, -1)
    std = rows.std(2, correction=0, keepdim=True)
    y = (rows - rows.mean(2, keepdim=True)) / (std + eps)
    return affine(y.reshape(x.shape), weight, bias)


@mutant("group_norm", "statistics detached", "through them")
def by_item(x, num_groups, weight, bias, eps):
    n, c = x.shape[:2]
    y = torch.empty_like(x)
    size = c // num_groups
    for i in range(n):
        for g in range(num_groups):
            part = x[i, g * size : (g + 1) * size]
            mean, var = part.mean().item(), part.var(correction=0).item()
            y[i, g * size : (g + 1) * size] = (part - mean) / (var + eps) ** 0.5
    return affine(y, weight, bias)


@mutant("GroupNorm", "weight for each group", "not parameters")
class PerGroup(nn.Module):
    def __init__(self, num_groups, num_channels, eps=1e-5):
        super().__init__()
        self.num_groups, self.eps = num_groups, eps
        self.weight = nn.Parameter(torch.ones(num_groups))
        self.bias = nn.Parameter(torch.zeros(num_groups))

    def forward(self, x):
        rows = standard(x.reshape(len(x), self.num_groups, -1), 2, self.eps)
        y = rows * self.weight.view(1, -1, 1) + self.bias.view(1, -1, 1)
        return y.reshape(x.shape)


@mutant("group_norm", "batch lost in the reshape", "Keep N in front")
def no_batch(x, num_groups, weight, bias, eps):
    rows = x.reshape(num_groups, -1)
    return affine(standard(rows, 1, eps).reshape(x.shape), weight, bias)


@mutant("group_norm", "averaged down the columns", "Average along the rows")
def columns(x, num_groups, weight, bias, eps):
    rows = x.reshape(x.shape[0] * num_groups, -1)
    return affine(standard(rows, 0, eps).reshape(x.shape), weight, bias)
