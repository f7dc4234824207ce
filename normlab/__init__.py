"""normlab: normalization layers from scratch, and pictures of what they average.

Every layer here is four choices: which elements share statistics, which statistic,
where it comes from, and where the parameters live. `normlab.axes` writes the first
and the last down as a pattern such as ``[N] C [H W]``; everything else derives from it.

Names load on first use, so `import normlab` costs next to nothing.
"""

from importlib import import_module

__version__ = "0.1.0"

_MODULES = ("axes", "diagrams", "exercises", "functional", "modules", "widgets")
_HOME = {
    "axes": "parse",
    "convert": "replace_norms",
    "devices": "device",
    "diagrams": "draw_comparison draw_flow draw_images draw_lines draw_sets "
    "draw_values",
    "exercises.progress": "progress",
    "exercises.quizzes": "quiz",
    "modules": "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d "
    "InstanceNorm2d InstanceNorm3d LayerNorm RMSNorm",
    "norm": "Norm",
    "sync": "SyncBatchNorm",
    "widgets": "AxisPicker BatchMates GroupWalk RunningStats",
}
_MODULE_OF = {name: home for home, names in _HOME.items() for name in names.split()}

__all__ = sorted([*_MODULES, *_MODULE_OF])


def __getattr__(name):
    if name in _MODULE_OF:
        value = getattr(import_module(f"normlab.{_MODULE_OF[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"normlab.{name}")
    else:
        raise AttributeError(f"module 'normlab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *__all__])
