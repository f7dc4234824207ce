"""The definition once more, for calls that nobody watches: slice by slice, in place.

Each line of the definition makes a new tensor, and autograd needs most of them. Without
gradients they are waste: a large tensor does not fit the processor's cache, so every
line waits for memory. Here all lines run on one slice, while the cache holds it, before
the next slice begins, and they write over their own result: the same steps, in order.
"""

import math

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

__all__ = ["allowed", "normalize"]

SLICE = 2**19  # values for each thread; in float32 they and their results take 4 MB
LONG = 2**13  # values in a set: from here on one running sum would lose digits


def unrecorded(x, tensors):
    """Whether x lies in a CPU's memory in order, and no gradient is wanted."""
    return (
        x.device.type == "cpu"  # other devices hide the wait for memory in other ways
        and x.is_contiguous()
        and x.numel() > 0
        and not (torch.is_grad_enabled() and any(t.requires_grad for t in tensors))
    )


def allowed(x, *parameters):
    """Whether plain values are all that is wanted: no gradient, transform or graph."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    tensors = [t for t in (x, *parameters) if t is not None]
    return (
        unrecorded(x, tensors)
        and all(type(t) in (Tensor, Parameter) for t in tensors)
        and all(forward_ad.unpack_dual(t).tangent is None for t in tensors)
        and torch._C._functorch.maybe_current_level() is None  # vmap, grad, ...
        and torch._C._len_torch_dispatch_stack() == 0  # make_fx, FakeTensorMode, ...
    )


def normalize(x, dims, eps, weight=None, bias=None):
    """weight * (x - mean) / sqrt(var + eps) + bias, over the last len(dims) axes."""
    # slices are cut along the axes that neither a set nor a parameter extends over
    shared = max(len(dims), *(0 if t is None else t.dim() for t in (weight, bias)))
    rows = x.view(-1, *x.shape[x.dim() - shared :])
    out = torch.empty_like(rows)
    count = -(-x.numel() // (SLICE * torch.get_num_threads()))
    last = tuple(range(-len(dims), 0))
    values = math.prod(rows.shape[dim] for dim in last)
    for part, y in zip(rows.chunk(count), out.chunk(count), strict=True):
        # not part.mean, whose kernel takes longer than the sum's
        mean = part.sum(last, keepdim=True).div_(values)
        torch.sub(part, mean, out=y)
        scale = _mean_square(y, last).add_(eps).rsqrt_()
        _scale_and_shift(y, scale, weight, bias)
    return out.view(x.shape)


def _mean_square(centered, dims):
    """The mean of the squares; where it can, without writing the squares down."""
    values = math.prod(centered.shape[dim] for dim in dims)
    if values > LONG:
        return centered.square().mean(dims, keepdim=True)
    # a norm as in geometry, sqrt(sum of squares); its second derivative is wrong at 0
    norm = torch.linalg.vector_norm(centered, dim=dims, keepdim=True)
    return norm.square_().div_(values)


def _scale_and_shift(y, scale, weight, bias):
    if weight is not None and weight.shape[-1] <= scale.shape[-1]:
        scale, weight = scale * weight, None
    y.mul_(scale)
    if weight is not None and bias is not None:
        torch.addcmul(bias, y, weight, out=y)
    elif weight is not None:
        y.mul_(weight)
    elif bias is not None:
        y.add_(bias)
