"""Right norms, written in three styles: none of them may be called wrong.

Rows: reshape so that a set is a row. Sums: einsum and loops over sets. Moments: mean
and var(correction=0) over axes.
"""

import torch
from torch import nn

RIGHT = []


def right(norm, **choices):
    """Enter the decorated function or class in the table."""

    def enter(code):
        RIGHT.append((norm, choices, code))
        return code

    return enter


def along_channels(vector):
    return vector.reshape(1, -1, 1, 1)


# Rows


def standard_rows(rows, eps):
    centered = rows - rows.mean(-1, keepdim=True)
    return centered / torch.sqrt((centered**2).mean(-1, keepdim=True) + eps)


@right("batch_norm")
def batch_norm_rows(x, mean, var, weight, bias, training, momentum, eps):
    by_channel = x.transpose(0, 1)
    rows = by_channel.reshape(x.shape[1], -1)
    if training:
        y = standard_rows(rows, eps)
        with torch.no_grad():
            mean.lerp_(rows.mean(1), momentum)
            if rows.shape[1] > 1:
                var.lerp_(rows.var(1), momentum)
    else:
        y = (rows - mean[:, None]) / torch.sqrt(var[:, None] + eps)
    y = y * weight[:, None] + bias[:, None]
    return y.reshape(by_channel.shape).transpose(0, 1)


@right("layer_norm")
def layer_norm_rows(x, shape, weight, bias, eps):
    rows = x.flatten(-len(shape))
    return standard_rows(rows, eps).reshape(x.shape) * weight + bias


@right("instance_norm")
def instance_norm_rows(x, weight, bias, eps):
    y = standard_rows(x.flatten(2), eps).reshape(x.shape)
    return y * along_channels(weight) + along_channels(bias)


@right("group_norm")
def group_norm_rows(x, num_groups, weight, bias, eps):
    y = standard_rows(x.reshape(len(x), num_groups, -1), eps).reshape(x.shape)
    return y * along_channels(weight) + along_channels(bias)


@right("rms_norm")
def rms_norm_rows(x, shape, weight, eps):
    rows = x.flatten(-len(shape))
    y = rows / torch.sqrt(rows.pow(2).mean(-1, keepdim=True) + eps)
    return y.reshape(x.shape) * weight


# Sums and loops


@right("batch_norm")
def batch_norm_sums(x, running_mean, running_var, gamma, beta, training, momentum, eps):
    count = x.numel() // x.shape[1]
    if training:
        mean = torch.einsum("nchw->c", x) / count
        off = x - mean[None, :, None, None]
        var = torch.einsum("nchw,nchw->c", off, off) / count
        running_mean.data.mul_(1 - momentum).add_(momentum * mean.detach())
        unbiased = var.detach() * count / max(1, count - 1)
        running_var.data.mul_(1 - momentum).add_(momentum * unbiased)
    else:
        off, var = x - running_mean[None, :, None, None], running_var
    scale = gamma * torch.rsqrt(var + eps)
    return torch.einsum("nchw,c->nchw", off, scale) + beta[None, :, None, None]


@right("layer_norm")
def layer_norm_sums(x, shape, weight, bias, eps):
    dims = list(range(-len(shape), 0))
    count = weight.numel()
    off = x - x.sum(dims, keepdim=True) / count
    return (
        off * (off.pow(2).sum(dims, keepdim=True) / count + eps).rsqrt() * weight + bias
    )


@right("instance_norm")
def instance_norm_loops(x, weight, bias, eps):
    maps = [
        [
            (m - m.mean()) / torch.sqrt(((m - m.mean()) ** 2).mean() + eps) * w + b
            for m, w, b in zip(sample, weight, bias, strict=True)
        ]
        for sample in x
    ]
    return torch.stack([torch.stack(sample) for sample in maps])


@right("group_norm")
def group_norm_loops(x, num_groups, weight, bias, eps):
    parts = []
    for part in x.chunk(num_groups, dim=1):
        off = part - torch.einsum("nchw->n", part).view(-1, 1, 1, 1) / part[0].numel()
        var = torch.einsum("nchw,nchw->n", off, off) / part[0].numel()
        parts.append(off / torch.sqrt(var + eps).view(-1, 1, 1, 1))
    return torch.cat(parts, 1) * along_channels(weight) + along_channels(bias)


@right("rms_norm", arguments=("weight", "eps"))
def rms_norm_sums(x, weight, eps):
    square = torch.einsum("nld,nld->nl", x, x) / x.shape[-1]
    return torch.einsum("nld,nl,d->nld", x, torch.rsqrt(square + eps), weight)


# Moments


@right("batch_norm")
def batch_norm_moments(x, mean, var, gamma, beta, training, momentum, eps):
    axes = (0, 2, 3)
    if training:
        m = x.numel() // x.shape[1]
        with torch.no_grad():
            mean += momentum * (x.mean(axes) - mean)
            if m > 1:
                var += momentum * (x.var(axes, correction=1) - var)
        mean, var = x.mean(axes), x.var(axes, correction=0)
    y = (x - along_channels(mean)) / (along_channels(var) + eps).sqrt()
    return along_channels(gamma) * y + along_channels(beta)


@right("layer_norm")
def layer_norm_moments(x, shape, weight, bias, eps):
    axes = tuple(range(x.dim() - len(shape), x.dim()))
    var, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(var + eps) * weight + bias


@right("instance_norm")
def instance_norm_moments(x, weight, bias, eps):
    mean, var = x.mean((2, 3), True), x.var((2, 3), correction=0, keepdim=True)
    return along_channels(weight) * (x - mean) / (var + eps) ** 0.5 + along_channels(
        bias
    )


@right("group_norm")
def group_norm_moments(x, num_groups, weight, bias, eps):
    split = x.unflatten(1, (num_groups, -1))
    mean = split.mean((2, 3, 4), keepdim=True)
    var = split.var((2, 3, 4), correction=0, keepdim=True)
    y = ((split - mean) / torch.sqrt(var + eps)).flatten(1, 2)
    return torch.addcmul(along_channels(bias), y, along_channels(weight))


@right("rms_norm")
def rms_norm_norms(x, shape, weight, eps):
    length = torch.linalg.vector_norm(x, dim=tuple(range(-len(shape), 0)), keepdim=True)
    return x / torch.sqrt(length**2 / weight.numel() + eps) * weight


# Classes, with names of their own for parameters and buffers in places


@right("BatchNorm", arguments=("running_mean", "running_var", "weight", "bias"))
class LikeBook(nn.Module):
    """Parameters of four axes, called gamma and beta; buffers called moving."""

    def __init__(self, channels):
        super().__init__()
        shape = (1, channels, 1, 1)
        self.gamma, self.beta = (
            nn.Parameter(torch.ones(shape)),
            nn.Parameter(torch.zeros(shape)),
        )
        self.register_buffer("moving_mean", torch.zeros(shape))
        self.register_buffer("moving_var", torch.ones(shape))

    def forward(self, x):
        if self.training:
            axes, m = (0, 2, 3), x.numel() // x.shape[1]
            mean = x.mean(axes, keepdim=True)
            var = ((x - mean) ** 2).mean(axes, keepdim=True)
            unbiased = var.detach() * m / max(1, m - 1)
            self.moving_mean = 0.9 * self.moving_mean + 0.1 * mean.detach()
            self.moving_var = 0.9 * self.moving_var + 0.1 * unbiased
        else:
            mean, var = self.moving_mean, self.moving_var
        return self.gamma * (x - mean) / torch.sqrt(var + 1e-5) + self.beta


@right("LayerNorm", arguments=("weight", "bias", "eps"))
class LayerNormOfOneAxis(nn.Module):
    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = (
            nn.Parameter(torch.ones(size)),
            nn.Parameter(torch.zeros(size)),
        )

    def forward(self, x):
        var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(var + self.eps) + self.bias


@right("GroupNorm")
class GroupNormByRows(nn.Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
        super().__init__()
        self.num_groups, self.eps = num_groups, eps
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))

    def forward(self, x):
        return group_norm_rows(x, self.num_groups, self.weight, self.bias, self.eps)


@right("InstanceNorm")
class InstanceNormByLoops(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(num_features))
        self.shift = nn.Parameter(torch.zeros(num_features))

    def forward(self, x):
        return instance_norm_loops(x, self.scale, self.shift, self.eps)


@right("RMSNorm", arguments=("weight", "eps"))
class RMSNormOfOneAxis(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.g, self.eps = None, eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return (
            x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight
        )
