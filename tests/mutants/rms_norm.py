"""Wrong RMSNorms."""

import torch
from torch import nn

from mutants.registry import mutant


def dims(shape):
    return tuple(range(-len(shape), 0))


def rms(x, shape, eps):
    return torch.sqrt(torch.mean(x**2, dims(shape), keepdim=True) + eps)


@mutant("rms_norm", "mean subtracted in RMSNorm", "makes it a LayerNorm")
def centered(x, shape, weight, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    return x / rms(x, shape, eps) * weight


@mutant("rms_norm", "standard deviation in RMSNorm", "RMSNorm knows no mean")
def deviation(x, shape, weight, eps):
    return x / (x.var(dims(shape), correction=0, keepdim=True) + eps).sqrt() * weight


@mutant("rms_norm", "sum instead of mean of the squares", "Take the mean")
def vector_length(x, shape, weight, eps):
    return weight * x * torch.rsqrt(x.pow(2).sum(dims(shape), keepdim=True) + eps)


@mutant("rms_norm", "mean of the absolute values", "the mean of |x|")
def absolute(x, shape, weight, eps):
    return x / (x.abs().mean(dims(shape), keepdim=True) ** 2 + eps).sqrt() * weight


@mutant("rms_norm", "divided by the variance", "by the root of the mean square")
def no_root(x, shape, weight, eps):
    return x / (x.pow(2).mean(dims(shape), keepdim=True) + eps) * weight


@mutant("rms_norm", "eps outside the root", "inside")
def eps_outside(x, shape, weight, eps):
    return x / (x.pow(2).mean(dims(shape), keepdim=True).sqrt() + eps) * weight


@mutant("rms_norm", "no eps", "NaN")
def no_eps(x, shape, weight, eps):
    return x / x.pow(2).mean(dims(shape), keepdim=True).sqrt() * weight


@mutant("rms_norm", "1 + weight", "as in Gemma")
def gemma(x, shape, weight, eps):
    return x / rms(x, shape, eps) * (1 + weight)


@mutant("rms_norm", "weight and bias missing", "multiply by the weight")
def unscaled(x, shape, weight, eps):
    return x / rms(x, shape, eps)


@mutant("rms_norm", "statistics detached", "cut off from the graph")
def detached(x, shape, weight, eps):
    return x / rms(x.detach(), shape, eps) * weight


@mutant("rms_norm", "squares in float16", "float32", skip=())
def narrow(x, shape, weight, eps):
    return x / rms(x, shape, eps) * weight


@mutant("rms_norm", "output dtype changed", "another dtype than the input")
def wide(x, shape, weight, eps):
    x = x.to(torch.float32)
    return x / rms(x, shape, eps) * weight.to(torch.float32)


@mutant("rms_norm", "wrong axes", "N [L] D", arguments=("eps",))
def over_tokens(x, eps):
    return x / torch.sqrt((x * x).mean(1, keepdim=True) + eps)


@mutant("rms_norm", "wrong axes", "N [L D]", arguments=("weight", "eps"))
def over_the_sequence(x, weight, eps):
    return weight * x / torch.sqrt((x * x).mean((1, 2), keepdim=True) + eps)


@mutant("rms_norm", "input changed in place", "Others still need it")
def in_place(x, shape, weight, eps):
    return x.div_(rms(x, shape, eps)) * weight


@mutant("RMSNorm", "another value for eps", "Your eps is 1e-06")
class Llama(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        size = (1,) if self.weight.dim() == 1 else (1, 1)
        return self.weight * x / rms(x, size, 1e-6)


@mutant("RMSNorm", "weight is no parameter", "nn.Parameter")
class Plain(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight, self.eps = torch.ones(dim, requires_grad=True), eps

    def forward(self, x):
        return x / rms(x, self.weight.shape, self.eps) * self.weight


@mutant("rms_norm", "n-1 in RMSNorm", "here with m = 6")
def one_less(x, shape, weight, eps):
    squares = x.pow(2).sum(dims(shape), keepdim=True)
    return x * torch.rsqrt(squares / (weight.numel() - 1) + eps) * weight


@mutant("rms_norm", "standard deviation in RMSNorm", "measures the distance from")
def unbiased_deviation(x, shape, weight, eps):
    return x / (x.var(dims(shape), keepdim=True) + eps).sqrt() * weight


@mutant("rms_norm", "square of the mean", "squares first")
def squared_late(x, shape, weight, eps):
    return x / (x.mean(dims(shape), keepdim=True) ** 2 + eps).sqrt() * weight


@mutant("rms_norm", "squares missing", "NaN where that mean is negative")
def no_squares(x, shape, weight, eps):
    return x * torch.rsqrt(x.mean(dims(shape), keepdim=True) + eps) * weight


@mutant(
    "rms_norm", "eps as a lower bound of the root", "lower bound of what you divide"
)
def scaled_unit_vector(x, shape, weight, eps):
    rows = x.flatten(-len(shape))
    unit = torch.nn.functional.normalize(rows, dim=-1, eps=eps)
    return unit.reshape(x.shape) * weight.numel() ** 0.5 * weight


@mutant("rms_norm", "keepdim missing", "keepdim=True")
def axes_lost(x, shape, weight, eps):
    return x / (x.pow(2).mean(dims(shape)) + eps).sqrt() * weight
