"""BatchNorm whose batch is spread over many processes, on `torch.distributed`."""

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.function import once_differentiable

from normlab import _checks, functional, modules
from normlab._bases import BatchNorm

__all__ = ["SyncBatchNorm", "merge_statistics"]


def merge_statistics(x, group):
    """Mean and biased variance of each channel over the inputs of all processes.

    x has shape (N, C, ...); N may be 0 and may differ between processes. Returns mean
    and variance, shaped to broadcast with x, and the number of values per channel that
    the whole group holds. One collective, and one in backward::

        n = sum_r n_r        mean = sum_r n_r mean_r / n
        var = sum_r n_r (var_r + (mean_r - mean)^2) / n

    Source: Chan, Golub and LeVeque (1983), https://doi.org/10.2307/2683386
    """
    mean, _, var = functional.statistics(x, (0, *range(2, x.dim())))
    values = x.numel() // x.shape[1]
    mean, var, values = _Merge.apply(mean.flatten(), var.flatten(), values, group)
    return (
        functional.per_channel(mean, x),
        functional.per_channel(var, x),
        round(values.item()),
    )


class _Merge(torch.autograd.Function):
    """The merge, with gradients: autograd does not see through a collective."""

    @staticmethod
    def forward(ctx, mean, var, values, group):
        # float64 counts exactly, and two processes can never disagree on the dtype
        mine = torch.cat([mean, var, mean.new_tensor([values])]).double()
        all_of_them = _gather(mine, group)
        means, variances = all_of_them[:, :-1].chunk(2, dim=1)
        counts = all_of_them[:, -1:]
        share = counts / counts.sum().clamp(min=1)
        merged = (share * means).sum(0)
        offset = mine[: len(mean)] - merged
        ctx.save_for_backward(offset)
        ctx.share, ctx.group = share[dist.get_rank(group)], group
        merged_var = (share * (variances + (means - merged).square())).sum(0)
        return merged.to(mean.dtype), merged_var.to(var.dtype), counts.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_mean, grad_var, _):
        # every process used the merged statistics, so their gradients add up
        (offset,) = ctx.saved_tensors
        total = torch.cat([grad_mean, grad_var]).double()
        with _explained(ctx.group):
            dist.all_reduce(total, group=ctx.group)
        to_mean, to_var = total.chunk(2)
        # d mean / d mean_r = n_r / n;  d var / d mean_r = 2 n_r (mean_r - mean) / n;
        # d var / d var_r = n_r / n
        of_mean = ctx.share * (to_mean + 2 * to_var * offset)
        of_var = ctx.share * to_var
        return of_mean.to(grad_mean.dtype), of_var.to(grad_var.dtype), None, None


def _gather(tensor, group):
    """The tensors of all processes, stacked in the order of their ranks."""
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    with _explained(group):
        dist.all_gather(parts, tensor, group=group)
    return torch.stack(parts)


class _explained:
    """Say what a failed collective means for the reader."""

    def __init__(self, group):
        self.group = group

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is not None and issubclass(kind, RuntimeError):
            raise RuntimeError(
                f"SyncBatchNorm: process {dist.get_rank(self.group)} of "
                f"{dist.get_world_size(self.group)} waited for the others in vain; one "
                "of them stopped, or did not call this layer in training mode. Look "
                "at the first error that any process printed."
            ) from error


class SyncBatchNorm(BatchNorm):
    """BatchNorm with the statistics of the whole batch, wherever its samples are.

    Averages each channel over all samples and positions, as BatchNorm does, but over
    the local batches of every process in a group (`merge_statistics`)::

        y = (x - mean) / sqrt(var + eps) * weight + bias

    Local batches may differ in size, and may be empty. Every process must call the
    layer, since a collective waits for all of them. In eval, without an initialized
    process group, and in a group of one it is BatchNorm and sends nothing.

    Shapes: input and output (N, C, ...), C = `num_features`; `weight`, `bias`,
    `running_mean` and `running_var` (C,). As in BatchNorm the biased variance (1/n)
    normalizes and the unbiased one (1/(n - 1), n counted over all processes) moves
    `running_var`; `momentum` weighs the new value, and None averages all batches.

    It replaces `torch.nn.SyncBatchNorm`, and takes CPU tensors too. `process_group` is
    the group to synchronize over, the whole world by default. The first training step
    sends one number more, to compare `num_features`.

    Raises ValueError when the whole group holds one value per channel, and
    RuntimeError when sizes or dtypes do not fit, when `num_features` differs between
    processes, or when another process stops or stays away until the group's timeout.

    Source: Ioffe and Szegedy (2015), https://arxiv.org/abs/1502.03167

    >>> layer = SyncBatchNorm(2)  # without a process group: BatchNorm
    >>> layer(torch.tensor([[0.0, 10.0], [2.0, 30.0]])).detach()
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """

    _agreed = False  # whether all processes were seen to have the same num_features

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            track_running_stats,
            device,
            dtype,
            bias=bias,
        )
        self.process_group = process_group

    def forward(self, input):
        self._check_input_dim(input)
        self._check_tensors(input)
        group = self._group()
        if group is None:
            return super().forward(input)
        self._check_agreement(input, group)
        x = functional.prepare(input)
        mean, var, values = merge_statistics(x, group)
        if values == 1:
            raise ValueError(
                "SyncBatchNorm: statistics need more than 1 value per channel, but all "
                f"{dist.get_world_size(group)} processes together hold 1 (the input "
                f"here is {tuple(input.shape)}); use a larger batch."
            )
        if self.track_running_stats and self.running_mean is not None and values:
            running = self.running_mean, self.running_var
            functional.update_running(
                *running, mean, var, values, self._next_momentum()
            )
        self._count_batch()
        weight, bias = (functional.per_channel(t, x) for t in (self.weight, self.bias))
        scale = torch.rsqrt(var + self.eps)
        y = functional.scale_and_shift(x - mean, scale, weight, bias)
        return y.to(input.dtype)

    def _group(self):
        """The group to synchronize over; None where the layer is plain BatchNorm."""
        if not self.training or not dist.is_available() or not dist.is_initialized():
            return None
        group = self.process_group or dist.group.WORLD
        return group if dist.get_world_size(group) > 1 else None

    def _check_input_dim(self, input):
        _checks.tensor("SyncBatchNorm", input)
        if input.dim() < 2:
            raise ValueError(
                "SyncBatchNorm: the input must be (N, C, ...), channels on axis 1, got "
                f"shape {tuple(input.shape)}; add the missing axis with x.unsqueeze(0)."
            )

    def _check_tensors(self, input):
        if input.shape[1] != self.num_features:
            raise RuntimeError(
                f"SyncBatchNorm: the input {tuple(input.shape)} has {input.shape[1]} "
                f"channels (axis 1), but num_features is {self.num_features}; make the "
                f"layer for {input.shape[1]}, or move the channels to axis 1."
            )
        tensors = {"weight": self.weight, "bias": self.bias}
        tensors |= {"running_mean": self.running_mean, "running_var": self.running_var}
        _checks.dtypes("SyncBatchNorm", input, tensors)

    def _check_agreement(self, input, group):
        if not self._agreed:
            # gloo does not notice buffers of different sizes: it reads past the end
            mine = torch.tensor([self.num_features], device=input.device)
            features = _gather(mine, group).flatten().tolist()
            if len(set(features)) > 1:
                came = ", ".join(f"{n} on rank {r}" for r, n in enumerate(features))
                raise RuntimeError(
                    "SyncBatchNorm: num_features must be the same on all processes, "
                    f"got {came}; build the same model on each of them."
                )
            self._agreed = True

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Make every BatchNorm of a model a SyncBatchNorm, in place; return the model.

        Takes normlab's and torch's layers, torch's SyncBatchNorm included. Parameters,
        buffers, mode, hooks and names stay, and so does every module as an object. A
        subclass of a BatchNorm may compute something else, so it stays what it is.
        """
        for layer in module.modules():
            if type(layer) in _BATCH_NORMS:
                layer._converted_from = type(layer)
                layer.__class__ = cls
                layer.process_group = process_group
        return module

    @classmethod
    def revert_sync_batchnorm(cls, module, to=None):
        """Make every SyncBatchNorm of a model a BatchNorm again; return the model.

        Each becomes what `convert_sync_batchnorm` found. One that was made as a
        SyncBatchNorm becomes `to`, such as ``normlab.BatchNorm2d``; without it such a
        layer raises ValueError, and the model stays as it is.
        """
        if to is not None and to not in _BATCH_NORMS:
            raise ValueError(
                f"SyncBatchNorm: to must be a BatchNorm class, got {to!r}; pass "
                "normlab.BatchNorm1d, 2d or 3d."
            )
        layers = [layer for layer in module.modules() if type(layer) is cls]
        targets = [getattr(layer, "_converted_from", to) for layer in layers]
        if None in targets:
            raise ValueError(
                f"SyncBatchNorm: {layers[targets.index(None)]} was made as one, so "
                "which BatchNorm it should become is not known; say it with "
                "to=normlab.BatchNorm2d (or 1d, 3d)."
            )
        for layer, target in zip(layers, targets, strict=True):
            layer.__class__ = target
            for name in ("process_group", "_converted_from", "_agreed"):
                layer.__dict__.pop(name, None)
        return module


_BATCH_NORMS = {nn.SyncBatchNorm} | {
    getattr(home, f"BatchNorm{n}d") for home in (nn, modules) for n in (1, 2, 3)
}
