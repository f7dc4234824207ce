"""The general layer: any statistics, any parameters, written as patterns."""

import operator
from collections.abc import Mapping

import torch

from normlab import _checks, axes, functional
from normlab._bases import Tracked

__all__ = ["Norm"]


class Norm(Tracked):
    r"""Average over the axes in the brackets of a pattern, whatever they are.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}}
              \cdot \mathrm{weight} + \mathrm{bias}

    `statistics` names all axes of the input (see `normlab.axes`), `parameters` those
    along which weight and bias differ; without it there are none. With ``center=False``
    no mean is subtracted, the root mean square divides, and there is no bias.
    ``eps=None`` is the epsilon of the dtype computed in.

    Shapes: the input is what the pattern says, and the output is alike; there is one
    mean for each position of the kept axes; weight and bias have the sizes of the
    parameter axes, which `sizes` gives: ``sizes={"C": 8, "G": 4}``.

    Train and eval mode are alike, unless ``track_running_stats=True``: then eval mode
    normalizes with running statistics, shaped as the kept axes without the batch axis
    N, whose samples are averaged: ``running = (1 - momentum) * running + momentum *
    batch``, or with ``momentum=None`` the plain average of all batches. The biased
    variance (1/n) normalizes, ``running_var`` collects the unbiased one (1/(n-1)).

    Raises ValueError for a pattern that cannot be read, sizes that are missing, a shape
    that does not fit, and one value per set where the batch or running statistics are
    concerned; RuntimeError for dtypes that do not fit.

    Source: the four choices of a norm, chapter 8.

    >>> import torch
    >>> x = torch.tensor([[0.0, 2.0], [10.0, 30.0]])
    >>> Norm("N [D]")(x)
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    def __init__(
        self,
        statistics,
        parameters=None,
        *,
        center=True,
        track_running_stats=False,
        momentum=0.1,
        eps=1e-5,
        sizes=None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.statistics = axes.parse(statistics)
        self.parameter_axes = self.statistics.parameter_axes(parameters or "")
        self.center = center
        self.track_running_stats = track_running_stats
        self.momentum = momentum
        self.eps = eps
        self.sizes = self._checked(sizes or {})
        if track_running_stats and not center:
            raise ValueError(
                "Norm: running statistics are a mean and a variance, but center=False "
                "takes neither; use track_running_stats=False."
            )
        shape = self._sizes_of(self.parameter_axes, "the parameters")
        affine = bool(self.parameter_axes)
        self._make_parameters(shape, affine, affine and center, device, dtype)
        kept = [axis for axis in self.statistics.kept if axis != "N"]
        shape = self._sizes_of(
            kept if track_running_stats else [], "running statistics"
        )
        self._make_running(shape, device, dtype)
        self.reset_parameters()

    def _checked(self, sizes):
        """The sizes, once an input that has them is seen to be possible."""
        if not isinstance(sizes, Mapping):
            raise TypeError(
                "Norm: sizes must be a dict of axis names and sizes, such as "
                f"{{'C': 8, 'G': 4}}, got {sizes!r}."
            )
        split = {dim.axis for dim in self.statistics.dims if "/" in dim.label}
        groups = sizes.get(self.statistics.groups, 1)
        named = [axis for axis in self.statistics.axes if axis != "..."]
        shape = (sizes.get(axis, groups if axis in split else 1) for axis in named)
        self.statistics.on(shape, **sizes)
        return dict(sizes)

    def _sizes_of(self, names, what):
        """The sizes of these axes, which must be known before any input is."""
        known = dict(self.sizes)
        groups = self.statistics.groups
        split = next((d.axis for d in self.statistics.dims if "/" in d.label), None)
        if split in known and known.get(groups, 0) > 0:
            known[f"{split}/{groups}"] = known[split] // known[groups]
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(
                f"Norm: {what} of '{self.statistics}' need the sizes of "
                f"{' '.join(names)} before any input is seen, but "
                f"{' and '.join(missing)} came without; pass sizes={{"
                + ", ".join(f"'{name.split('/')[0]}': ..." for name in missing)
                + "}."
            )
        return tuple(known[name] for name in names)

    def forward(self, input):
        # what self.statistics.on(...) does, in a form that torch.compile can follow:
        # it makes a graph of its own for each shape
        _checks.tensor("Norm", input)
        shape = tuple(operator.index(size) for size in input.shape)
        sets = axes.Sets.of(self.statistics, shape, self.sizes)
        from_input = self.training or not self.track_running_stats
        values = input.numel() // max(1, sets.num_sets)  # in each set
        self._check(input, values, from_input)
        # an axis of 1 at the end: dims may then hold nothing else, and is never empty
        x = functional.prepare(input).reshape(*sets.split_shape, 1)
        dims = (*sets.reduced_dims, -1)
        if from_input:
            mean, centered, var = functional.statistics(x, dims, self.center)
            if self.track_running_stats:
                self._update(mean, var, values)
        else:
            mean, var = (
                _along(t, sets, lambda dim: not dim.reduced and dim.label != "N")
                for t in (self.running_mean, self.running_var)
            )
            centered, var = x - mean, var.to(x.dtype)
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        scale = torch.rsqrt(var + eps)
        weight, bias = (
            _along(t, sets, lambda dim: dim.axis in self.parameter_axes)
            for t in (self.weight, self.bias)
        )
        y = functional.scale_and_shift(centered, scale, weight, bias)
        return y.reshape(input.shape).to(input.dtype)

    def _check(self, input, values, from_input):
        concerned = self.track_running_stats or self.statistics.reduces_batch
        if from_input and concerned and values == 1:
            raise ValueError(
                f"Norm: '{self.statistics}' takes 1 value per set from the input "
                f"{tuple(input.shape)}, and 1 value has no variance; use a larger "
                "input, or eval mode with running statistics."
            )
        _checks.floating("Norm", input)
        if self.center:  # the root mean square alone takes parameters of any dtype
            parameters = {"weight": self.weight, "bias": self.bias}
            running = {"running_mean": self.running_mean}
            _checks.dtypes("Norm", input, parameters | running)

    def _update(self, mean, var, values):
        if mean.numel() and values:
            if "N" in self.statistics.kept:
                # each sample has statistics of its own: their average is what is kept
                i = [dim.label for dim in self.statistics.dims].index("N")
                mean, var = mean.mean(i), var.mean(i)
            pair = self.running_mean, self.running_var
            functional.update_running(*pair, mean, var, values, self._next_momentum())
        self._count_batch()

    def extra_repr(self):
        parameters = " ".join(self.parameter_axes) or None
        return (
            f"{str(self.statistics)!r}, {parameters!r}, sizes={self.sizes}, "
            f"center={self.center}, track_running_stats={self.track_running_stats}, "
            f"momentum={self.momentum}, eps={self.eps}"
        )


def _along(tensor, sets, wanted):
    """The tensor, shaped to broadcast along the wanted dimensions of a split input."""
    if tensor is None:
        return None
    sized = zip(sets.dims, sets.split_shape, strict=True)
    return tensor.view(*[size if wanted(dim) else 1 for dim, size in sized], 1)
