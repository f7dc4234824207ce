"""Wrong LayerNorms."""

import torch
from torch import nn

from mutants.registry import mutant


def dims(shape):
    return tuple(range(-len(shape), 0))


@mutant("layer_norm", "n-1 in the forward pass", "here with m = 6")
def std_by_default(x, shape, gamma, beta, eps):
    mean, var = x.mean(dims(shape), keepdim=True), x.var(dims(shape), keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * gamma + beta


@mutant("layer_norm", "eps outside the root", "stays finite at 0")
def eps_outside(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    std = torch.sqrt((x**2).mean(dims(shape), keepdim=True))
    return x / (std + eps) * gamma + beta


@mutant("layer_norm", "E[x²] − E[x]²", "Subtract the mean first")
def one_pass(x, shape, gamma, beta, eps):
    first = x.mean(dims(shape), keepdim=True)
    second = torch.mean(x**2, dims(shape), keepdim=True)
    return (x - first) * torch.rsqrt(second - first**2 + eps) * gamma + beta


@mutant("layer_norm", "E[x²] − E[x]²", "nothing is left", arguments=("eps",))
def one_pass_of_sums(x, eps):
    # the same mistake in another order of sums: other noise is left of the digits
    n = x.shape[-1]
    sums = sum(x[..., i : i + 1] for i in range(n))
    squares = sum(x[..., i : i + 1] ** 2 for i in reversed(range(n)))
    var = (squares - sums * sums / n) / n
    return (x - sums / n) / torch.sqrt(var.clamp(min=0) + eps)


@mutant("layer_norm", "no eps", "divide 0 by 0")
def no_eps(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    return gamma * x / x.square().mean(dims(shape), keepdim=True).sqrt() + beta


@mutant("layer_norm", "eps as a lower bound", "It is added")
def clamped(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    var = x.square().mean(dims(shape), keepdim=True)
    return gamma * x / torch.maximum(var, torch.tensor(eps)).sqrt() + beta


@mutant("layer_norm", "eps squared", "Add eps itself")
def eps_squared(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    return (
        gamma * x / (x.square().mean(dims(shape), keepdim=True) + eps**2).sqrt() + beta
    )


@mutant("layer_norm", "argument eps ignored", "Use the one that comes in")
def fixed_eps(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    return gamma * x / (x.square().mean(dims(shape), keepdim=True) + 1e-5).sqrt() + beta


@mutant("layer_norm", "another value for eps", "Your eps is 1e-12")
def bert_eps(x, shape, gamma, beta, eps=1e-5):
    x = x - x.mean(dims(shape), keepdim=True)
    return (
        gamma * x / (x.square().mean(dims(shape), keepdim=True) + 1e-12).sqrt() + beta
    )


@mutant("layer_norm", "divided by the variance", "divide by its square root")
def no_root(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    return x / (x.square().mean(dims(shape), keepdim=True) + eps) * gamma + beta


@mutant("layer_norm", "sum instead of mean of the squares", "√6")
def summed(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    return x / ((x * x).sum(dims(shape), keepdim=True) + eps).sqrt() * gamma + beta


@mutant("layer_norm", "mean not subtracted", "still in your output")
def scaled_only(x, shape, gamma, beta, eps):
    var = x.var(dims(shape), correction=0, keepdim=True)
    return x / (var + eps).sqrt() * gamma + beta


@mutant("layer_norm", "RMS instead of mean and variance", "the way of RMSNorm")
def rms(x, shape, gamma, beta, eps):
    return x * torch.rsqrt((x * x).mean(dims(shape), keepdim=True) + eps) * gamma + beta


@mutant("layer_norm", "mean absolute deviation", "|x − mean|")
def absolute(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    spread = x.abs().mean(dims(shape), keepdim=True)
    return x / (spread**2 + eps).sqrt() * gamma + beta


def good(x, shape, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    return x * torch.rsqrt(x.square().mean(dims(shape), keepdim=True) + eps)


@mutant("layer_norm", "weight and bias missing", "have no effect")
def plain(x, shape, gamma, beta, eps):
    return good(x, shape, eps)


@mutant("layer_norm", "bias missing", "never add the bias")
def unshifted(x, shape, gamma, beta, eps):
    return gamma * good(x, shape, eps)


@mutant("layer_norm", "weight missing", "never multiply by the weight")
def unscaled(x, shape, gamma, beta, eps):
    return good(x, shape, eps) + beta


@mutant("layer_norm", "bias added before the weight", "Multiply first")
def shifted_first(x, shape, gamma, beta, eps):
    return (good(x, shape, eps) + beta) * gamma


@mutant("layer_norm", "weight and bias before normalizing", "which undoes them")
def affine_first(x, shape, gamma, beta, eps):
    return good(x * gamma + beta, shape, eps)


@mutant("layer_norm", "1 + weight", "starts at 1 and is the factor itself")
def unit_offset(x, shape, gamma, beta, eps):
    return good(x, shape, eps) * (1 + gamma) + beta


@mutant("layer_norm", "statistics detached", "cut off from the graph")
def detached(x, shape, gamma, beta, eps):
    mean = x.data.mean(dims(shape), keepdim=True)
    var = x.data.var(dims(shape), correction=0, keepdim=True)
    return (x - mean) / (var + eps).sqrt() * gamma + beta


@mutant("layer_norm", "variance detached", "not through your variance")
def detached_variance(x, shape, gamma, beta, eps):
    mean = x.mean(dims(shape), keepdim=True)
    std = (x.var(dims(shape), correction=0, keepdim=True) + eps).sqrt().detach()
    return (x - mean) / std * gamma + beta


@mutant("layer_norm", "mean detached", "no longer sums to 0")
def detached_mean(x, shape, gamma, beta, eps):
    # by hand, because var() takes the gradient through a mean of its own
    x = x - x.mean(dims(shape), keepdim=True).detach()
    var = (x * x).mean(dims(shape), keepdim=True)
    return x / (var + eps).sqrt() * gamma + beta


@mutant("layer_norm", "output dtype changed", "end with `.to(x.dtype)`")
def stays_wide(x, shape, gamma, beta, eps):
    return good(x.float(), shape, eps) * gamma.float() + beta.float()


@mutant("layer_norm", "squares in float16", "Compute in float32", skip=())
def narrow(x, shape, gamma, beta, eps):
    return good(x, shape, eps) * gamma + beta


@mutant("layer_norm", "input changed in place", "make a new tensor")
def in_place(x, shape, gamma, beta, eps):
    x -= x.mean(dims(shape), keepdim=True)
    x /= (x.square().mean(dims(shape), keepdim=True) + eps).sqrt()
    return x * gamma + beta


@mutant("layer_norm", "input changed in place", "make a new tensor")
def half_in_place(x, shape, gamma, beta, eps):
    x -= x.mean(dims(shape), keepdim=True)
    var = x.square().mean(dims(shape), keepdim=True)
    return x / (var + eps).sqrt() * gamma + beta


@mutant("layer_norm", "wrong axes", "you averaged over [N] L D", arguments=("eps",))
def over_the_batch(x, eps):
    return good(x.transpose(0, -1), (1,), eps).transpose(0, -1)


@mutant("layer_norm", "wrong axes", "N [L] D", arguments=("weight", "bias", "eps"))
def over_the_tokens(x, weight, bias, eps):
    mean = x.mean(dim=1, keepdim=True)
    var = x.var(dim=1, correction=0, keepdim=True)
    return weight * (x - mean) / (var + eps).sqrt() + bias


@mutant("layer_norm", "wrong axes", "the sets of BatchNorm", arguments=(), shape=(5, 4))
def like_batch_norm(x):
    return good(x.T, (5,), 1e-5).T


@mutant(
    "layer_norm", "wrong axes", "N C H [W]", shape=(4, 6, 2, 5), trailing=3,
    arguments=("eps",),
)  # fmt: skip
def last_axis_only(x, eps):
    return good(x, (5,), eps)


@mutant(
    "layer_norm", "wrong axes", "the sets of InstanceNorm", shape=(4, 6, 2, 5),
    trailing=3, arguments=("eps",),
)  # fmt: skip
def positions_only(x, eps):
    return good(x, (2, 5), eps)


@mutant("layer_norm", "only the last axis", "the last axis alone")
def one_axis(x, shape, gamma, beta, eps):
    wide = x.float() if x.dtype == torch.float16 else x
    mean = wide.mean(-1, keepdim=True)
    var = wide.var(-1, correction=0, keepdim=True)
    return ((wide - mean) / (var + eps).sqrt() * gamma + beta).to(x.dtype)


@mutant("layer_norm", "keepdim missing", "keepdim=True", arguments=("eps",))
def keepdim_missing(x, eps):
    return (x - x.mean(-1)) / torch.sqrt(x.var(-1, correction=0) + eps)


@mutant("LayerNorm", "weight started at 0", "Start it at 1")
class ZeroWeight(nn.Module):
    def __init__(self, shape, eps=1e-5):
        super().__init__()
        self.shape = (shape,) if isinstance(shape, int) else shape
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(self.shape))
        self.bias = nn.Parameter(torch.zeros(self.shape))

    def forward(self, x):
        return good(x, self.shape, self.eps) * self.weight + self.bias


@mutant("LayerNorm", "one weight for everything", "position")
class Scalars(ZeroWeight):
    def __init__(self, shape, eps=1e-5):
        super().__init__(shape, eps)
        self.weight = nn.Parameter(torch.ones(()))
        self.bias = nn.Parameter(torch.zeros(()))


@mutant("layer_norm", "keepdim missing", "var(..., keepdim=True)")
def axes_of_variance_lost(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    return x / torch.sqrt(x.square().mean(dims(shape)) + eps) * gamma + beta


@mutant("layer_norm", "root taken twice", "Once is enough")
def root_of_root(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    std = (x.square().mean(dims(shape), keepdim=True) + eps).sqrt()
    return x / std**0.5 * gamma + beta


@mutant("layer_norm", "eps as a lower bound of the root", "It is added under the root")
def clamped_root(x, shape, gamma, beta, eps):
    x = x - x.mean(dims(shape), keepdim=True)
    std = x.square().mean(dims(shape), keepdim=True).sqrt()
    return x / std.clamp_min(eps) * gamma + beta


@mutant("layer_norm", "wrong axes", "N [L D]")
def all_but_the_first(x, shape, gamma, beta, eps):
    return good(x, x.shape[1:], eps) * gamma + beta
