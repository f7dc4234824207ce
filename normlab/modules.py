"""The layers: each a drop-in for its namesake in torch.nn.

Constructor arguments, parameters, buffers, state_dict, text form and behaviour in
train and eval mode are torch's, so that a checkpoint loads both ways. The arithmetic
is in `normlab.functional`.
"""

import numbers

from normlab import _checks, functional
from normlab._bases import Affine, BatchNorm, InstanceNorm

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "RMSNorm",
]


class BatchNorm1d(BatchNorm):
    r"""Average each channel over the batch and all positions: ``[N] C [L]``, ``[N] C``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: (N, C) or (N, C, L) in and out; weight, bias and statistics
    (C,). Channels are axis 1.

    In train mode the statistics are the batch's, and the running ones move towards
    them: ``running = (1 - momentum) * running + momentum * batch``, or, with
    ``momentum=None``, become the plain average of all batches. In eval mode the
    running statistics normalize; with ``track_running_stats=False`` there are none,
    and the batch's serve in eval mode too. The batch is normalized with its biased
    variance (1/n); ``running_var`` collects the unbiased one (1/(n-1)).

    Raises ValueError for another number of axes or one value per channel;
    RuntimeError when the channels are not ``num_features`` or the dtypes do not fit.

    Source: Ioffe and Szegedy, 2015, https://arxiv.org/abs/1502.03167

    >>> import torch
    >>> x = torch.tensor([[0.0, 10.0], [2.0, 30.0]])
    >>> BatchNorm1d(2, affine=False)(x)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """

    input_dims = (2, 3)
    input_shapes = "(N, C) or (N, C, L), channels on axis 1"


class BatchNorm2d(BatchNorm):
    r"""Average each channel over the batch and all positions: ``[N] C [H W]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: (N, C, H, W) in and out; weight, bias and statistics
    (C,). Channels are axis 1.

    In train mode the statistics are the batch's, and the running ones move towards
    them: ``running = (1 - momentum) * running + momentum * batch``, or, with
    ``momentum=None``, become the plain average of all batches. In eval mode the
    running statistics normalize; with ``track_running_stats=False`` there are none,
    and the batch's serve in eval mode too. The batch is normalized with its biased
    variance (1/n); ``running_var`` collects the unbiased one (1/(n-1)).

    Raises ValueError for another number of axes or one value per channel;
    RuntimeError when the channels are not ``num_features`` or the dtypes do not fit.

    Source: Ioffe and Szegedy, 2015, https://arxiv.org/abs/1502.03167

    >>> import torch
    >>> x = torch.tensor([0.0, 2.0, 10.0, 30.0]).view(1, 2, 1, 2)
    >>> BatchNorm2d(2, affine=False)(x).flatten()
    tensor([-1.0000,  1.0000, -1.0000,  1.0000])
    """

    input_dims = (4,)
    input_shapes = "(N, C, H, W), channels on axis 1"


class BatchNorm3d(BatchNorm):
    r"""Average each channel over the batch and all positions: ``[N] C [D H W]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: (N, C, D, H, W) in and out; weight, bias and statistics
    (C,). Channels are axis 1.

    In train mode the statistics are the batch's, and the running ones move towards
    them: ``running = (1 - momentum) * running + momentum * batch``, or, with
    ``momentum=None``, become the plain average of all batches. In eval mode the
    running statistics normalize; with ``track_running_stats=False`` there are none,
    and the batch's serve in eval mode too. The batch is normalized with its biased
    variance (1/n); ``running_var`` collects the unbiased one (1/(n-1)).

    Raises ValueError for another number of axes or one value per channel;
    RuntimeError when the channels are not ``num_features`` or the dtypes do not fit.

    Source: Ioffe and Szegedy, 2015, https://arxiv.org/abs/1502.03167

    >>> import torch
    >>> x = torch.tensor([0.0, 2.0, 10.0, 30.0]).view(1, 2, 1, 1, 2)
    >>> BatchNorm3d(2, affine=False)(x).flatten()
    tensor([-1.0000,  1.0000, -1.0000,  1.0000])
    """

    input_dims = (5,)
    input_shapes = "(N, C, D, H, W), channels on axis 1"


class InstanceNorm1d(InstanceNorm):
    r"""Average each channel of each sample over its positions: ``N C [L]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: (N, C, L) or (C, L) in and out; statistics (N, C); weight,
    bias and running statistics (C,).

    By default the layer has no parameters and no running statistics, and train and
    eval mode are alike. With ``track_running_stats=True`` eval mode normalizes with
    running statistics: ``running = (1 - momentum) * running + momentum * average`` over
    the batch. Each sample is normalized with its biased variance (1/n); ``running_var``
    collects the unbiased one (1/(n-1)).

    Raises ValueError for another number of axes, for one position, or, with
    ``affine=True``, when the channels are not ``num_features`` (a warning without).

    Source: Ulyanov, Vedaldi and Lempitsky, 2016, https://arxiv.org/abs/1607.08022

    >>> import torch
    >>> x = torch.tensor([[[0.0, 2.0], [10.0, 30.0]]])
    >>> InstanceNorm1d(2)(x)
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """

    input_dims = (2, 3)
    input_shapes = "(C, L) or (N, C, L)"


class InstanceNorm2d(InstanceNorm):
    r"""Average each channel of each sample over its positions: ``N C [H W]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: (N, C, H, W) or (C, H, W) in and out; statistics (N, C); weight,
    bias and running statistics (C,).

    By default the layer has no parameters and no running statistics, and train and
    eval mode are alike. With ``track_running_stats=True`` eval mode normalizes with
    running statistics: ``running = (1 - momentum) * running + momentum * average`` over
    the batch. Each sample is normalized with its biased variance (1/n); ``running_var``
    collects the unbiased one (1/(n-1)).

    Raises ValueError for another number of axes, for one position, or, with
    ``affine=True``, when the channels are not ``num_features`` (a warning without).

    Source: Ulyanov, Vedaldi and Lempitsky, 2016, https://arxiv.org/abs/1607.08022

    >>> import torch
    >>> x = torch.tensor([0.0, 2.0, 10.0, 30.0]).view(1, 2, 1, 2)
    >>> InstanceNorm2d(2)(x).flatten()
    tensor([-1.0000,  1.0000, -1.0000,  1.0000])
    """

    input_dims = (3, 4)
    input_shapes = "(C, H, W) or (N, C, H, W)"


class InstanceNorm3d(InstanceNorm):
    r"""Average each channel of each sample over its positions: ``N C [D H W]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: (N, C, D, H, W) or (C, D, H, W) in and out; statistics (N, C); weight,
    bias and running statistics (C,).

    By default the layer has no parameters and no running statistics, and train and
    eval mode are alike. With ``track_running_stats=True`` eval mode normalizes with
    running statistics: ``running = (1 - momentum) * running + momentum * average`` over
    the batch. Each sample is normalized with its biased variance (1/n); ``running_var``
    collects the unbiased one (1/(n-1)).

    Raises ValueError for another number of axes, for one position, or, with
    ``affine=True``, when the channels are not ``num_features`` (a warning without).

    Source: Ulyanov, Vedaldi and Lempitsky, 2016, https://arxiv.org/abs/1607.08022

    >>> import torch
    >>> x = torch.tensor([0.0, 2.0, 10.0, 30.0]).view(1, 2, 1, 1, 2)
    >>> InstanceNorm3d(2)(x).flatten()
    tensor([-1.0000,  1.0000, -1.0000,  1.0000])
    """

    input_dims = (4, 5)
    input_shapes = "(C, D, H, W) or (N, C, D, H, W)"


class LayerNorm(Affine):
    r"""Average each sample over its trailing axes: ``... [D]`` or ``N [C H W]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: (..., \*normalized_shape) in and out; weight and bias ``normalized_shape``;
    one mean and one variance for every position of the leading axes.

    Train and eval mode are alike. The variance is the biased one (1/n).

    Raises RuntimeError when the input does not end in ``normalized_shape`` or the
    dtypes do not fit.

    Source: Ba, Kiros and Hinton, 2016, https://arxiv.org/abs/1607.06450

    >>> import torch
    >>> x = torch.tensor([[0.0, 2.0], [10.0, 30.0]])
    >>> LayerNorm(2, elementwise_affine=False)(x)
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.normalized_shape = _as_tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(
            self.normalized_shape,
            elementwise_affine,
            elementwise_affine and bias,
            device,
            dtype,
        )
        self.reset_parameters()

    def forward(self, input):
        return functional.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Affine):
    r"""Average each sample over a group of channels: ``N (G [C/G]) [...]``.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    Shapes: (N, C, ...) in and out; statistics (N, num_groups); weight and bias (C,).

    Train and eval mode are alike. The variance is the biased one (1/n).

    Raises ValueError when ``num_channels`` does not divide by ``num_groups``, when
    ``num_groups`` is not positive (torch raises that for 0 as ZeroDivisionError, and
    for less than 0 only in forward), and for an input of one value; RuntimeError when
    the channels are not ``num_channels`` or the dtypes do not fit.

    Source: Wu and He, 2018, https://arxiv.org/abs/1803.08494

    >>> import torch
    >>> x = torch.tensor([[0.0, 2.0, 10.0, 30.0]])
    >>> GroupNorm(2, 4, affine=False)(x)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    def __init__(
        self,
        num_groups,
        num_channels,
        eps=1e-5,
        affine=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__()
        _checks.num_groups(num_groups, num_channels)
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input):
        return functional.group_norm(
            input, self.num_groups, self.weight, self.bias, self.eps
        )

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}, bias={self.bias is not None}"
        )


class RMSNorm(Affine):
    r"""Divide by the root mean square over the trailing axes: ``... [D]``.

    .. math:: y = \frac{x}{\sqrt{\mathrm{E}[x^2] + \epsilon}} \cdot \mathrm{weight}

    Shapes: (..., \*normalized_shape) in and out; weight ``normalized_shape``; one root
    mean square for every position of the leading axes. No mean, no variance, no bias.

    Train and eval mode are alike. ``eps=None`` is the epsilon of the dtype computed
    in: float32's for 16-bit input. The weight is multiplied before rounding to 16 bits.

    Raises RuntimeError when the input does not end in ``normalized_shape``, ValueError
    when it has too few axes.

    Source: Zhang and Sennrich, 2019, https://arxiv.org/abs/1910.07467

    >>> import torch
    >>> RMSNorm(2)(torch.tensor([3.0, 4.0])).detach()
    tensor([0.8485, 1.1314])
    """

    def __init__(
        self,
        normalized_shape,
        eps=None,
        elementwise_affine=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.normalized_shape = _as_tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(
            self.normalized_shape, elementwise_affine, False, device, dtype
        )
        del self.bias  # an RMSNorm has none, not even an absent one
        self.reset_parameters()

    def forward(self, x):
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


def _as_tuple(normalized_shape):
    if isinstance(normalized_shape, numbers.Integral):
        return (normalized_shape,)
    return tuple(normalized_shape)
