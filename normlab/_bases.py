"""What the layers share: their parameters, running statistics and checks."""

import warnings

import torch
from torch import nn

from normlab import _checks, functional


class Affine(nn.Module):
    """What all layers share: a weight that starts at 1 and a bias that starts at 0."""

    def _make_parameters(self, shape, weight, bias, device, dtype):
        for name, wanted in (("weight", weight), ("bias", bias)):
            parameter = None
            if wanted:
                values = torch.empty(shape, device=device, dtype=dtype)
                parameter = nn.Parameter(values)
            self.register_parameter(name, parameter)

    def reset_parameters(self):
        """Set the weight to 1 and the bias to 0, in place."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            nn.init.zeros_(self.bias)


class Tracked(Affine):
    """Layers with running statistics beside the parameters.

    They are buffers: saved with the model and moved with it, but not learned.
    """

    _version = 2  # of the saved form: 2 added num_batches_tracked

    def _make_running(self, shape, device, dtype):
        mean = var = count = None
        if self.track_running_stats:
            mean = torch.zeros(shape, device=device, dtype=dtype)
            var = torch.ones(shape, device=device, dtype=dtype)
            count = torch.tensor(0, device=device, dtype=torch.long)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self):
        """Forget all batches: mean 0, variance 1, none counted."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Forget all that was learned: running statistics, weight and bias."""
        self.reset_running_stats()
        super().reset_parameters()

    def _next_momentum(self):
        """The weight of this batch in the running statistics."""
        if self.momentum is not None:
            return self.momentum
        if self.running_mean is None or self.num_batches_tracked is None:
            return 0.0
        # 1/k for batch k makes the plain average of all batches. The factor stays a
        # tensor, so that torch.compile captures it.
        dtype = functional.compute_dtype(self.running_mean.dtype)
        return 1 / (self.num_batches_tracked + 1).to(dtype)

    def _count_batch(self):
        """Count a batch that went through: one that raises leaves no trace."""
        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
        # checkpoints from before version 2 have no counter: keep the present one
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:
            count = self.num_batches_tracked
            if count is None or count.is_meta:
                count = torch.tensor(0, dtype=torch.long)
            state_dict.setdefault(prefix + "num_batches_tracked", count)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class PerChannel(Tracked):
    """What BatchNorm and InstanceNorm share: they are made for a number of channels."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        nn.Module.__init__(self)  # not BatchNorm's other base, which is a name only
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_parameters(num_features, affine, affine and bias, device, dtype)
        self._make_running(num_features, device, dtype)
        self.reset_parameters()

    def _check_input_dim(self, input):
        name = type(self).__name__
        _checks.tensor(name, input)
        if input.dim() not in self.input_dims:
            names = " or ".join(f"{n}-D" for n in self.input_dims)
            raise ValueError(
                f"{name}: the input must be {names}, got {input.dim()}-D of shape "
                f"{tuple(input.shape)}; {self.input_shapes}."
            )

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm(PerChannel, nn.modules.batchnorm._BatchNorm):
    """BatchNorm for any number of axes; the subclasses say which they take.

    torch's base class comes last and lends nothing but its name: `update_bn`,
    `convert_sync_batchnorm` and other tools look for a BatchNorm by `isinstance`, and
    would pass one by in silence that is not of that class.
    """

    def forward(self, input):
        self._check_input_dim(input)
        # no running statistics, no choice: eval mode normalizes with the batch's too
        untracked = self.running_mean is None and self.running_var is None
        if self.training or untracked:
            fix = _checks.SMALL_BATCH if self.training else _checks.UNTRACKED
            _checks.batch_values(type(self).__name__, input, fix)
        # switched off later, the running statistics stay, but training leaves them be
        track = self.track_running_stats or not self.training
        output = functional.batch_norm(
            input,
            self.running_mean if track else None,
            self.running_var if track else None,
            self.weight,
            self.bias,
            self.training or untracked,
            self._next_momentum(),
            self.eps,
        )
        self._count_batch()
        return output


class InstanceNorm(PerChannel):
    """InstanceNorm for any number of axes; the subclasses say which they take."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
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

    def forward(self, input):
        self._check_input_dim(input)
        unbatched = input.dim() == self.input_dims[0]
        self._check_channels(input, 0 if unbatched else 1)
        output = functional.instance_norm(
            input.unsqueeze(0) if unbatched else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return output.squeeze(0) if unbatched else output

    def _check_channels(self, input, axis):
        if input.shape[axis] == self.num_features:
            return
        message = (
            f"{type(self).__name__}: the input's channels (axis {axis} of "
            f"{tuple(input.shape)}) must be num_features ({self.num_features})"
        )
        if self.affine:
            raise ValueError(f"{message}; make the layer for {input.shape[axis]}.")
        # without parameters the number is not needed: the mismatch may be harmless
        warnings.warn(f"{message}; not used, as affine=False.", stacklevel=3)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors
    ):
        # before version 1 every InstanceNorm saved running statistics; they are of no
        # use to a layer that tracks none, and loading must say so
        if local_metadata.get("version") is None and not self.track_running_stats:
            keys = [prefix + name for name in ("running_mean", "running_var")]
            if found := [key for key in keys if state_dict.pop(key, None) is not None]:
                errors.append(
                    f"{type(self).__name__}: the checkpoint has {' and '.join(found)}, "
                    "but this layer has track_running_stats=False; remove the keys, or "
                    "make the layer with track_running_stats=True."
                )
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing, unexpected, errors
        )
