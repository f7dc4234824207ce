"""Five norms from scratch, each the definition written down.

All do the same three things in the same order: statistics, normalize, affine. They
take the arguments of their namesakes in ``torch.nn.functional`` and give the same
result, but no native norm kernel works behind them: what you read is what is computed,
and autograd finds the gradients, through the mean and the variance, by itself.
"""

import math

import torch
from torch import Tensor

from normlab import _checks, _loops, _slices

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm"]


def statistics(x, dims, center=True):
    """The mean over dims, x less that mean, and the mean of its squares (1/n)."""
    # an empty set has no mean: 0 / 1 stands in for it, so that gradients are 0, not NaN
    n = max(1, math.prod([x.shape[dim] for dim in dims]))
    # mean = sum(x) / n
    mean = x.sum(dims, keepdim=True) / n if center else None
    centered = x - mean if center else x
    # var = sum((x - mean)^2) / n; never sum(x^2) / n - mean^2, whose digits cancel
    # (written as a product, which a compiled loop repeats for less than a division)
    var = centered.square().sum(dims, keepdim=True) * (1 / n)
    return mean, centered, var


def scale_and_shift(centered, scale, weight=None, bias=None):
    """Normalize, then affine, with scale = 1 / sqrt(var + eps)."""
    if weight is not None and _as_large_as(centered, weight, scale):
        # a weight for every value: their product would be as large as x
        centered, scale = centered * scale, weight
    elif weight is not None:
        # a weight per channel: the two factors are small, so they are multiplied first
        scale = scale * weight
    y = centered * scale
    return y if bias is None else y + bias


def _as_large_as(x, *factors):
    shape = torch.broadcast_shapes(*(t.shape for t in factors))
    # the lengths first: torch.export would remember that C and N were once unlike
    return len(shape) == x.dim() and shape == x.shape


def normalize(x, dims, eps, weight=None, bias=None):
    """All three steps: as defined, or the same faster where no gradient is wanted."""
    if _slices.allowed(x, weight, bias):
        return _slices.normalize(x, dims, eps, weight, bias)
    if _loops.allowed(x, weight, bias):
        centered, scale = _loops.center_and_scale(x, dims, eps)
    else:
        _, centered, var = statistics(x, dims)
        scale = torch.rsqrt(var + eps)
    return scale_and_shift(centered, scale, weight, bias)


def update_running(running_mean, running_var, mean, var, values, momentum):
    """Move the running statistics towards those of the batch, in place."""
    # running statistics estimate the data's variance: unbiased, n / (n - 1)
    unbiased = var * (values / (values - 1))
    for running, new in ((running_mean, mean), (running_var, unbiased)):
        # running = (1 - momentum) * running + momentum * new
        new = new.detach().view(running.shape)
        running.copy_((1 - momentum) * running + momentum * new)


def compute_dtype(dtype):
    """16-bit numbers overflow when squared (300^2 is inf): compute in float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def prepare(input, keep_channels_last=True):
    """The input in its compute dtype; contiguous or, where torch keeps it, NHWC."""
    x = input.to(compute_dtype(input.dtype))
    if keep_channels_last and _is_channels_last(x):
        return x.movedim(1, -1).contiguous().movedim(-1, 1)
    return x.contiguous()


def _is_channels_last(x):
    """Whether memory runs through the channels first, then the positions."""
    if x.dim() not in (4, 5):
        return False
    step = 1
    for axis in (1, *range(x.dim() - 1, 1, -1), 0):
        if x.stride(axis) < step:
            return False
        step = x.stride(axis) * x.shape[axis]
    return True


def per_channel(tensor, x):
    """A vector of C values, shaped to broadcast along axis 1 of x."""
    return None if tensor is None else tensor.view(-1, *[1] * (x.dim() - 2))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Average each channel over the batch and all positions: ``[N] C [...]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: input and output (N, C, ...); statistics, weight and bias (C,).

    With ``training=True`` the statistics are the batch's own; otherwise they are
    ``running_mean`` and ``running_var``. The batch is normalized with its biased
    variance (1/n), the running variance moves towards the unbiased one (1/(n-1)), in
    place: ``running = (1 - momentum) * running + momentum * batch``.

    Raises ValueError for one value per channel in training, eps <= 0 in training or
    only one of the running statistics; RuntimeError for sizes or dtypes that do not
    fit; NotImplementedError for integers.

    Source: Ioffe and Szegedy, 2015, https://arxiv.org/abs/1502.03167

    >>> x = torch.tensor([[0.0, 10.0], [2.0, 30.0]])
    >>> batch_norm(x, None, None, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    _checks.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    if input.shape == (0,):
        return input.clone()  # as torch does: nothing to normalize, no channel axis
    x = prepare(input)
    dims = (0, *range(2, x.dim()))
    if training:
        mean, centered, var = statistics(x, dims)
        if running_mean is not None and x.numel():
            values = x.numel() // x.shape[1]
            update_running(running_mean, running_var, mean, var, values, momentum)
    else:
        centered = x - per_channel(running_mean, x)
        var = per_channel(running_var, x).to(x.dtype)
    weight, bias = per_channel(weight, x), per_channel(bias, x)
    scale = torch.rsqrt(var + eps)
    return scale_and_shift(centered, scale, weight, bias).to(input.dtype)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Average each channel of each sample over its positions: ``N C [...]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: input and output (N, C, ...); statistics (N, C); weight, bias and running
    statistics (C,). The output is contiguous, whatever the input's memory format.

    With ``use_input_stats=True`` the statistics are the input's own, in training and
    evaluation alike; otherwise they are ``running_mean`` and ``running_var``. Each
    sample is normalized with its biased variance (1/n); the running variance moves
    towards the unbiased one (1/(n-1)), averaged over the batch, in place:
    ``running = (1 - momentum) * running + momentum * average``.

    Raises ValueError for one value per channel and only one of the running
    statistics; RuntimeError for sizes or dtypes that do not fit; NotImplementedError
    for integers.

    Source: Ulyanov, Vedaldi and Lempitsky, 2016, https://arxiv.org/abs/1607.08022

    >>> x = torch.tensor([[[0.0, 2.0], [10.0, 30.0]]])
    >>> instance_norm(x)
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    _checks.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum
    )
    x = prepare(input, keep_channels_last=False)
    dims = tuple(range(2, x.dim()))
    if use_input_stats:
        mean, centered, var = statistics(x, dims)
        if running_mean is not None and x.numel():
            mean, batch_var, values = mean.mean(0), var.mean(0), x[0, 0].numel()
            update_running(running_mean, running_var, mean, batch_var, values, momentum)
    else:
        centered = x - per_channel(running_mean, x)
        var = per_channel(running_var, x).to(x.dtype)
    weight, bias = per_channel(weight, x), per_channel(bias, x)
    scale = torch.rsqrt(var + eps)
    return scale_and_shift(centered, scale, weight, bias).to(input.dtype)


def layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Average each sample over its trailing axes: ``... [D]`` or ``N [C H W]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: input and output (..., \*normalized_shape); weight and bias
    ``normalized_shape``; one mean for every position of the leading axes. Training
    and evaluation are alike. The variance is the biased one (1/n).

    Raises RuntimeError when the input does not end in ``normalized_shape`` or sizes or
    dtypes do not fit; TypeError for an int; NotImplementedError for integer input.

    Source: Ba, Kiros and Hinton, 2016, https://arxiv.org/abs/1607.06450

    >>> x = torch.tensor([[0.0, 2.0], [10.0, 30.0]])
    >>> layer_norm(x, (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    _checks.layer_norm(input, normalized_shape, weight, bias)
    x = prepare(input, keep_channels_last=False)
    dims = tuple(range(-len(normalized_shape), 0))
    return normalize(x, dims, eps, weight, bias).to(input.dtype)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Average each sample over a group of channels: ``N (G [C/G]) [...]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: input and output (N, C, ...); statistics (N, num_groups); weight and bias
    (C,). Training and evaluation are alike. The variance is the biased one (1/n).

    Raises RuntimeError when the channels do not divide into ``num_groups`` (at least
    1) or sizes or dtypes do not fit; ValueError when there is a single value;
    NotImplementedError for integers.

    Source: Wu and He, 2018, https://arxiv.org/abs/1803.08494

    >>> x = torch.tensor([[0.0, 2.0, 10.0, 30.0]])
    >>> group_norm(x, 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    _checks.group_norm(input, num_groups, weight, bias)
    split = (num_groups, input.shape[1] // num_groups)
    x = prepare(input).unflatten(1, split)
    dims = tuple(range(2, x.dim()))
    weight, bias = (
        t if t is None else t.view(*split, *[1] * (x.dim() - 3)) for t in (weight, bias)
    )
    return normalize(x, dims, eps, weight, bias).flatten(1, 2).to(input.dtype)


def rms_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    r"""Divide by the root mean square over the trailing axes: ``... [D]``.

    .. math:: y = \frac{x}{\sqrt{\mathrm{E}[x^2] + \epsilon}} \cdot \mathrm{weight}

    Shapes: input and output (..., \*normalized_shape); weight ``normalized_shape``; one
    root mean square for every position of the leading axes. No mean is subtracted and
    there is no bias. Training and evaluation are alike. ``eps=None`` is the epsilon of
    the dtype computed in: float32's for 16-bit input. The product with the weight is
    rounded to the input's dtype last.

    Raises RuntimeError when the input does not end in ``normalized_shape`` (ValueError
    when it has too few axes); TypeError for an int; NotImplementedError for integers.

    Source: Zhang and Sennrich, 2019, https://arxiv.org/abs/1910.07467

    >>> rms_norm(torch.tensor([3.0, 4.0]), (2,))
    tensor([0.8485, 1.1314])
    """
    _checks.rms_norm(input, normalized_shape, weight)
    x = prepare(input)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    dims = tuple(range(-len(normalized_shape), 0))
    _, x, mean_square = statistics(x, dims, center=False)
    scale = torch.rsqrt(mean_square + eps)
    return scale_and_shift(x, scale, weight).to(input.dtype)
