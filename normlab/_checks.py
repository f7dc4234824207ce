"""What the norms refuse, and in which words.

Every check raises where torch.nn.functional raises, with the same type of exception.
The sentence names the layer, then what must hold, what came in, and the likely fix.
"""

import math

import torch

from normlab.axes.sets import nearest_divisors


def batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    tensor("BatchNorm", input)
    if input.shape == (0,):
        return
    _channels("BatchNorm", input)
    if training:
        batch_values("BatchNorm", input, SMALL_BATCH)
    if eps < 0 or (training and eps == 0):
        raise ValueError(
            f"BatchNorm: eps must be positive (0 is allowed in eval mode), got {eps}; "
            "the default is 1e-5."
        )
    stats = {"running_mean": running_mean, "running_var": running_var}
    parameters = {"weight": weight, "bias": bias}
    _running("BatchNorm", input, stats, not training, "training=False", momentum)
    _one_per_channel("BatchNorm", input, parameters)
    dtypes("BatchNorm", input, stats | parameters)


def instance_norm(
    input, running_mean, running_var, weight, bias, use_input_stats, momentum
):
    tensor("InstanceNorm", input)
    if use_input_stats:
        unit, dims = "channel of each sample", range(2, input.dim())
        _several_values("InstanceNorm", input, dims, unit, ONE_POSITION)
    _channels("InstanceNorm", input)
    stats = {"running_mean": running_mean, "running_var": running_var}
    parameters = {"weight": weight, "bias": bias}
    argument = "use_input_stats=False"
    _running("InstanceNorm", input, stats, not use_input_stats, argument, momentum)
    _one_per_channel("InstanceNorm", input, parameters, vector=True)
    dtypes("InstanceNorm", input, parameters)


def layer_norm(input, normalized_shape, weight, bias):
    tensor("LayerNorm", input)
    parameters = {"weight": weight, "bias": bias}
    _trailing_axes("LayerNorm", input, normalized_shape, parameters)
    dtypes("LayerNorm", input, parameters)


def rms_norm(input, normalized_shape, weight):
    tensor("RMSNorm", input)
    _trailing_axes("RMSNorm", input, normalized_shape, {"weight": weight})
    if not input.is_complex():  # torch's rms_norm is defined for complex numbers too
        floating("RMSNorm", input)


def group_norm(input, num_groups, weight, bias):
    tensor("GroupNorm", input)
    if input.dim() < 2:
        raise RuntimeError(_no_channels("GroupNorm", input))
    channels = input.shape[1]
    if num_groups < 1:
        raise RuntimeError(
            f"GroupNorm: num_groups must be at least 1, got {num_groups}; 1 group "
            "averages over all channels."
        )
    # torch counts the batch too, so it lets sets of one value pass when N > 1
    if input.shape[0] * channels // num_groups * math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "GroupNorm: statistics need more than 1 value per group, but with "
            f"{num_groups} groups the input {tuple(input.shape)} holds 1 value in "
            "each; use fewer groups or a larger input."
        )
    if channels % num_groups:
        channels = f"axis 1 of the input {tuple(input.shape)}"
        raise RuntimeError(divisible(channels, input.shape[1], num_groups))
    parameters = {"weight": weight, "bias": bias}
    _one_per_channel("GroupNorm", input, parameters, vector=True)
    dtypes("GroupNorm", input, parameters)


def tensor(layer, input):
    if isinstance(input, torch.fx.Proxy):
        raise TypeError(
            f"{layer}: the input must be a torch.Tensor, got torch.fx's stand-in for "
            "one. torch.fx looks into every layer from outside torch.nn; have its "
            "Tracer's is_leaf_module say True for normlab's, as it does for torch.nn's."
        )
    if not isinstance(input, torch.Tensor):
        raise TypeError(
            f"{layer}: the input must be a torch.Tensor, got {type(input).__name__}; "
            "convert it with torch.as_tensor(x)."
        )


def num_groups(num_groups, num_channels):
    if num_groups < 1:
        raise ValueError(
            f"GroupNorm: num_groups must be at least 1, got {num_groups} (with "
            f"num_channels {num_channels}); the order is GroupNorm(num_groups, "
            "num_channels)."
        )
    if num_channels % num_groups:
        raise ValueError(divisible("num_channels", num_channels, num_groups))


def divisible(what, channels, num_groups):
    """The sentence for channels that do not divide into equal groups."""
    nearest = nearest_divisors(channels, num_groups)
    choices = " or ".join(str(g) for g in reversed(nearest))
    return (
        f"GroupNorm: {what} ({channels}) must be divisible by num_groups "
        f"({num_groups}); {choices} groups would fit."
    )


SMALL_BATCH = (
    "use a larger batch or more positions, drop the last batch of one, or normalize "
    "with running statistics (eval mode)."
)
UNTRACKED = (
    "with track_running_stats=False there are no running statistics, so eval mode uses "
    "the batch's too: use a larger batch, or track_running_stats=True."
)
ONE_POSITION = (
    "its positions have shrunk to one, and a larger batch does not help: use a larger "
    "map, or leave this layer out here."
)


def batch_values(layer, input, fix):
    _several_values(layer, input, (0, *range(2, input.dim())), "channel", fix)


def _several_values(layer, input, dims, unit, fix):
    """One value is its own mean: normalizing it gives 0, whatever it was."""
    if math.prod([input.shape[d] for d in dims]) == 1:
        raise ValueError(
            f"{layer}: statistics need more than 1 value per {unit}, but the input "
            f"{tuple(input.shape)} has 1; {fix}"
        )


def _no_channels(layer, input):
    return (
        f"{layer}: the input must have a batch axis and a channel axis (axis 1), got "
        f"shape {tuple(input.shape)}; add the missing axis with x.unsqueeze(0)."
    )


def _channels(layer, input):
    if input.dim() < 2:
        raise IndexError(_no_channels(layer, input))


def floating(layer, input):
    if not input.is_floating_point():
        raise NotImplementedError(
            f"{layer}: the input must be a floating-point tensor, got {input.dtype} of "
            f"shape {tuple(input.shape)}; convert it with x.float()."
        )


def _running(layer, input, stats, needed, argument, momentum):
    """Running statistics come as a pair, and eval mode cannot do without them."""
    missing = [name for name, tensor in stats.items() if tensor is None]
    if needed and missing:
        raise RuntimeError(
            f"{layer}: {argument} normalizes with running_mean and running_var, but "
            f"{' and '.join(missing)} is None; pass both, or use the input's own "
            "statistics."
        )
    if len(missing) == 1:
        raise ValueError(
            f"{layer}: running_mean and running_var must both be tensors or both be "
            f"None, but {missing[0]} alone is None; pass it too."
        )
    if momentum is None:
        raise TypeError(
            f"{layer}: momentum must be a number, got None; the cumulative average is "
            "the layer's, which passes 1 / num_batches_tracked."
        )
    _one_per_channel(layer, input, stats, vector=True)


def _one_per_channel(layer, input, tensors, vector=False):
    """Each tensor holds one value per channel (and is a vector, where torch asks)."""
    channels = input.shape[1]
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if tensor.numel() != channels:
            raise RuntimeError(
                f"{layer}: {name} has {tensor.numel()} values, but the input "
                f"{tuple(input.shape)} has {channels} channels, and channels must be "
                f"axis 1{_transposed(input, tensor.numel())}."
            )
        if vector and tensor.dim() != 1:
            raise RuntimeError(
                f"{layer}: {name} must be a vector, one value per channel, got shape "
                f"{tuple(tensor.shape)}; flatten it."
            )


def _transposed(input, size):
    """The likely fix, when another axis has the size that axis 1 should have."""
    for axis in range(2, input.dim()):
        if input.shape[axis] == size:
            move = "transpose(1, 2)" if input.dim() == 3 else f"movedim({axis}, 1)"
            return f"; axis {axis} has size {size}, so perhaps pass x.{move}"
    return ""


def dtypes(layer, input, tensors):
    """All tensors in the input's dtype, or all in float32 beside a 16-bit input."""
    floating(layer, input)
    given = {name: t.dtype for name, t in tensors.items() if t is not None}
    allowed = [input.dtype]
    if input.dtype in (torch.float16, torch.bfloat16):
        allowed.append(torch.float32)
    if given and not any(set(given.values()) == {dtype} for dtype in allowed):
        came = ", ".join(f"{name} {dtype}" for name, dtype in given.items())
        raise RuntimeError(
            f"{layer}: parameters and running statistics must all be "
            f"{' or all be '.join(map(str, allowed))} for an input of {input.dtype} "
            f"and shape {tuple(input.shape)}, got {came}; convert the layer with "
            ".to(x.dtype)."
        )


def _trailing_axes(layer, input, normalized_shape, tensors):
    """The input's shape ends in normalized_shape, which is the tensors' shape."""
    if not isinstance(normalized_shape, (tuple, list)):
        raise TypeError(
            f"{layer}: normalized_shape must be a tuple or list of sizes, got "
            f"{normalized_shape!r}; write ({normalized_shape},)."
        )
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            f"{layer}: normalized_shape must name at least one axis, got (); for the "
            f"last axis of this input pass {tuple(input.shape[-1:])}."
        )
    if tuple(input.shape[-len(shape) :]) != shape:
        # torch's rms_norm has a type of its own for an input of too few axes
        few = layer == "RMSNorm" and input.dim() < len(shape)
        raise (ValueError if few else RuntimeError)(
            f"{layer}: the last axes are normalized, so the input's shape must end in "
            f"normalized_shape {shape}, got {tuple(input.shape)}"
            f"{_not_last(input, shape)}."
        )
    for name, tensor in tensors.items():
        if tensor is not None and tuple(tensor.shape) != shape:
            raise RuntimeError(
                f"{layer}: {name} must have the shape normalized_shape {shape}, got "
                f"{tuple(tensor.shape)}."
            )


def _not_last(input, shape):
    """The likely fix, when the size asked for stands on another axis."""
    if len(shape) == 1 and shape[0] in input.shape:
        axis = list(input.shape).index(shape[0])
        size = shape[0]
        return f"; axis {axis} has size {size}, so perhaps pass x.movedim({axis}, -1)"
    return ""
