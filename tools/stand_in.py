"""A stand-in for a GPU: do the notebooks print the same on another device?

    python tools/stand_in.py                       # all of notebooks/
    python tools/stand_in.py notebooks/06*.ipynb   # these

For machines without a GPU. Whatever a notebook puts on `normlab.device()` becomes a
tensor that keeps its values in a CPU tensor inside and behaves as one on a GPU would:

- it meets no CPU tensor (but for numbers and indices), no NumPy, no CPU generator;
- random numbers drawn on it are others than those of the CPU;
- sums, products and functions are off by rounding, always alike for the same values.

The stored outputs must hold nevertheless, under nbval, word for word. It cannot show
what only a real device has: kernels that are missing, or its memory and speed.
Each operation passes through Python: where nets are trained, that takes minutes.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

# PyTorch knows this name without a GPU, runs autograd for it, and keeps no values on
# it: the values are ours.
NAME = "meta"
# May take tensors of the CPU beside those of a device, as on a GPU.
MEET = {"index", "index_put", "index_put_", "_index_put_impl_", "copy_", "_to_copy"}
DRAW = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "normal"),
    *("bernoulli", "multinomial", "native_dropout"),
    *("normal_", "uniform_", "bernoulli_", "random_", "exponential_"),
}
# These add up or round in ways of their own on each device; others are exact.
ROUND = {
    *("sum", "mean", "var", "var_mean", "std", "linalg_vector_norm", "logsumexp"),
    *("mm", "addmm", "bmm", "baddbmm", "dot", "mv", "convolution", "cumsum"),
    *("_softmax", "_log_softmax", "exp", "log", "sin", "tanh", "sigmoid", "rsqrt"),
    *("gelu", "native_batch_norm", "_native_batch_norm_legit", "native_layer_norm"),
    *("native_group_norm", "_fused_rms_norm", "convolution_backward", "prod"),
    *("native_layer_norm_backward", "native_group_norm_backward", "nll_loss_forward"),
    *("native_batch_norm_backward", "_softmax_backward_data", "gelu_backward"),
}
_draws = torch.Generator().manual_seed(1)


class Remote(torch.Tensor):
    """A tensor on the stand-in; `values` holds its numbers."""

    @staticmethod
    def __new__(cls, values):
        remote = cls._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=NAME,
        )
        remote.values = values
        return remote

    is_meta = property(lambda self: False)  # modules would not load values into it

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        return run(op, args, kwargs or {})

    def __repr__(self, **_):
        return f"{self.values.detach()!r} on another device"  # so print shows a fault

    def __format__(self, spec):
        return format(self.item(), spec) if self.dim() == 0 else repr(self)

    def tolist(self):
        return self.values.tolist()

    def numpy(self, **_):
        raise TypeError("NumPy cannot reach another device; use Tensor.cpu() first.")

    def __array__(self, *_, **__):
        self.numpy()


def run(op, args, kwargs):
    """Run one operation of PyTorch where its tensors are, or refuse it."""
    name = op.__name__.split(".")[0]
    leaves = tree_flatten((args, kwargs))[0]
    tensors = [t for t in leaves if isinstance(t, torch.Tensor)]
    remote = any(isinstance(t, Remote) for t in tensors)
    if remote:
        _refuse_mixtures(name, tensors, kwargs)
    if kwargs.get("device") is not None:
        remote = torch.device(kwargs["device"]).type == NAME
        kwargs = kwargs | {"device": "cpu" if remote else kwargs["device"]}
    if name == "copy_":
        remote = isinstance(args[0], Remote)
    inner = tree_map(lambda t: t.values if isinstance(t, Remote) else t, (args, kwargs))
    if remote and name in DRAW:
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(int(torch.randint(2**31, (), generator=_draws)))
            result = op(*inner[0], **inner[1])
    else:
        result = op(*inner[0], **inner[1])
    if remote and name in ROUND:
        tree_map(_round_otherwise, result)
    if name.endswith("_") and isinstance(args[0], torch.Tensor):
        return args[0]  # it wrote over its first argument
    if "out" in kwargs:
        return kwargs["out"]
    wanted = lambda t: remote and isinstance(t, torch.Tensor)  # noqa: E731
    return tree_map(lambda t: Remote(t) if wanted(t) else t, result)


def _refuse_mixtures(name, tensors, kwargs):
    here = [t for t in tensors if not isinstance(t, Remote) and t.dim()]
    if here and name not in MEET:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found one on the CPU "
            f"and one on another ({name})."
        )
    if kwargs.get("generator") is not None:
        raise RuntimeError(f"Expected a generator of the other device ({name}).")


def _round_otherwise(result):
    """Move floating-point numbers by up to one unit in the last place."""
    if isinstance(result, torch.Tensor) and result.is_floating_point():
        exact, unit = result.double(), torch.finfo(result.dtype).eps
        result.copy_(exact * (1 + unit * torch.sin(1e7 * exact)))


class Operations(TorchDispatchMode):
    """Sees every operation, those that make a tensor on the stand-in among them."""

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        return run(op, args, kwargs or {})


class Constructors(TorchFunctionMode):
    """torch.tensor and its like put no values on a device named meta."""

    MAKERS = (torch.tensor, torch.as_tensor, torch.asarray)

    def __torch_function__(self, maker, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if maker not in self.MAKERS or kwargs.get("device") is None:
            return maker(*args, **kwargs)
        device, gradient = kwargs.pop("device"), kwargs.pop("requires_grad", False)
        return maker(*args, **kwargs).to(device).requires_grad_(gradient)


def install():
    """From here on, in this process, the stand-in is there."""
    # a module that moves gets new parameters: set_data would leave `values` behind
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    Operations().__enter__()
    Constructors().__enter__()


def main(notebooks):
    """Run the notebooks under nbval on the stand-in; the exit status is pytest's."""
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        startup = Path(folder, "profile_default", "startup", "stand_in.py")
        startup.parent.mkdir(parents=True)
        tools = str(Path(__file__).resolve().parent)
        startup.write_text(
            f"import sys; sys.path.insert(0, {tools!r})\n"
            "import stand_in; stand_in.install(); sys.path.pop(0)\n",
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env"]
        command += ["--nbval-cell-timeout=900", "--timeout=0", "-q", "--tb=short"]
        environment = os.environ | {"IPYTHONDIR": folder, "NORMLAB_DEVICE": NAME}
        command += notebooks or [str(root / "notebooks")]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
