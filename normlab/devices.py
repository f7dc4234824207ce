"""The device that the notebooks compute on."""

import os

import torch

__all__ = ["device"]


def device():
    """The device to compute on, as a `torch.device`.

    The environment variable ``NORMLAB_DEVICE`` decides where it is set (``cpu``,
    ``cuda``, ``cuda:1``, ``mps``); otherwise it is a CUDA GPU if there is one, and
    the CPU if not.

    Raises `ValueError` when ``NORMLAB_DEVICE`` names a device that PyTorch does not
    know, or one that this machine does not have.
    """
    name = os.environ.get("NORMLAB_DEVICE", "").strip()
    if not name:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(name)
    except RuntimeError as error:
        raise ValueError(
            f"NORMLAB_DEVICE: {name!r} is not a device that PyTorch knows; "
            "use cpu, cuda, cuda:0, mps, or unset it."
        ) from error
    try:
        # Only an allocation proves that the device is there and usable.
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"NORMLAB_DEVICE: this machine has no usable {name!r} device "
            f"(CUDA GPUs found: {torch.cuda.device_count()}); "
            "use cpu, or unset it to let normlab choose."
        ) from error
    return chosen
