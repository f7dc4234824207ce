"""Wrong InstanceNorms."""

import torch

from mutants.registry import mutant

TRACKED = {
    "arguments": (
        "running_mean", "running_var", "weight", "bias", "use_input_stats",
        "momentum", "eps",
    ),
}  # fmt: skip


def affine(y, weight, bias):
    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)


@mutant("instance_norm", "wrong axes", "the sets of BatchNorm")
def like_batch_norm(x, weight, bias, eps):
    mean = x.mean((0, 2, 3), keepdim=True)
    var = ((x - mean) ** 2).mean((0, 2, 3), keepdim=True)
    return affine((x - mean) / (var + eps) ** 0.5, weight, bias)


@mutant("instance_norm", "wrong axes", "the sets of LayerNorm")
def like_layer_norm(x, weight, bias, eps):
    flat = x.flatten(1)
    y = flat - flat.mean(1, keepdim=True)
    y = y / (y.square().mean(1, keepdim=True) + eps).sqrt()
    return affine(y.view_as(x), weight, bias)


@mutant("instance_norm", "wrong axes", "N C H [W]")
def rows_only(x, weight, bias, eps):
    y = x - x.mean(-1, keepdim=True)
    return affine(y / (y.square().mean(-1, keepdim=True) + eps).sqrt(), weight, bias)


@mutant("instance_norm", "n-1 in the forward pass", "here with m = 10")
def bessel(x, weight, bias, eps):
    var, mean = torch.var_mean(x, (2, 3), keepdim=True)
    return affine((x - mean) / torch.sqrt(var + eps), weight, bias)


@mutant("instance_norm", "weight along the wrong axis", "weight.view(1, -1, 1, 1)")
def broadcast_last(x, weight, bias, eps):
    x = x - x.mean((2, 3), keepdim=True)
    y = x / torch.sqrt(x.square().mean((2, 3), keepdim=True) + eps)
    return weight * y + bias


@mutant("instance_norm", "biased running variance", "here with m = 10", **TRACKED)
def stores_biased(x, rm, rv, weight, bias, use_input_stats, momentum, eps):
    if not use_input_stats:
        mean, var = rm.view(1, -1, 1, 1), rv.view(1, -1, 1, 1)
    else:
        mean = x.mean((2, 3), keepdim=True)
        var = x.var((2, 3), correction=0, keepdim=True)
        with torch.no_grad():
            rm.lerp_(mean.mean(0).flatten(), momentum)
            rv.lerp_(var.mean(0).flatten(), momentum)
    return affine((x - mean) / torch.sqrt(var + eps), weight, bias)


@mutant("instance_norm", "batch statistics in eval", "In eval mode", **TRACKED)
def no_eval(x, rm, rv, weight, bias, use_input_stats, momentum, eps):
    var, mean = torch.var_mean(x, (2, 3), correction=0, keepdim=True)
    if use_input_stats:
        with torch.no_grad():
            rm.lerp_(mean.mean(0).flatten(), momentum)
            rv.lerp_(x.var((2, 3)).mean(0), momentum)
    return affine((x - mean) / torch.sqrt(var + eps), weight, bias)


def tracking(x, rm, rv, weight, bias, use_input_stats, momentum, eps, new):
    mean, var = rm.view(1, -1, 1, 1), rv.view(1, -1, 1, 1)
    if use_input_stats:
        mean = x.mean((2, 3), keepdim=True)
        var = x.var((2, 3), correction=0, keepdim=True)
        with torch.no_grad():
            for running, value in zip((rm, rv), new, strict=True):
                running.lerp_(value, momentum)
    return affine((x - mean) / torch.sqrt(var + eps), weight, bias)


def of_channel(x, **choices):
    return x.mean((0, 2, 3)), x.var((0, 2, 3), **choices)


@mutant("instance_norm", "variance of the whole batch stored", "that is BatchNorm's",
        **TRACKED)  # fmt: skip
def stores_batch(x, rm, rv, weight, bias, use_input_stats, momentum, eps):
    new = of_channel(x.detach())
    return tracking(x, rm, rv, weight, bias, use_input_stats, momentum, eps, new)


@mutant("instance_norm", "variance of the whole batch stored", "mean over the samples",
        **TRACKED)  # fmt: skip
def stores_biased_batch(x, rm, rv, weight, bias, use_input_stats, momentum, eps):
    new = of_channel(x.detach(), correction=0)
    return tracking(x, rm, rv, weight, bias, use_input_stats, momentum, eps, new)


@mutant("instance_norm", "statistics of one sample stored", "a single sample",
        **TRACKED)  # fmt: skip
def stores_first(x, rm, rv, weight, bias, use_input_stats, momentum, eps):
    new = of_channel(x[:1].detach())
    return tracking(x, rm, rv, weight, bias, use_input_stats, momentum, eps, new)


@mutant("instance_norm", "statistics of one sample stored", "the mean over all samples",
        **TRACKED)  # fmt: skip
def stores_last(x, rm, rv, weight, bias, use_input_stats, momentum, eps):
    for sample in x.detach():  # each overwrites what the one before would have moved
        new = sample.mean((1, 2)), sample.var((1, 2))
    return tracking(x, rm, rv, weight, bias, use_input_stats, momentum, eps, new)


@mutant("instance_norm", "reshape that mixes channels and positions", "x.flatten(2)")
def rows_of_channels_last(x, weight, bias, eps):
    n, c, h, w = x.shape
    rows = x.permute(0, 2, 3, 1).reshape(n, c, h * w)
    rows = rows - rows.mean(2, keepdim=True)
    rows = rows / torch.sqrt(rows.square().mean(2, keepdim=True) + eps)
    return affine(rows.reshape(n, h, w, c).permute(0, 3, 1, 2), weight, bias)


@mutant("instance_norm", "keepdim missing", "keepdim=True")
def axes_lost(x, weight, bias, eps):
    y = (x - x.mean((2, 3))) / torch.sqrt(x.var((2, 3), correction=0) + eps)
    return affine(y, weight, bias)
