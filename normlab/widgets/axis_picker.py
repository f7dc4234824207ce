"""AxisPicker: choose which axes are reduced, and see which values share a mean."""

import math
import operator

import numpy as np
from traitlets import Bool, TraitError, Tuple, Unicode, observe, validate

from normlab import axes
from normlab.widgets.base import Float, Int, Widget
from normlab.widgets.still import still

# Layouts to choose from: axes, sizes to start with, and what they are used for.
_LAYOUTS = (
    ("N D", (6, 8), "rows of features"),
    ("N C L", (3, 8, 6), "sequences, channels first"),
    ("N L D", (3, 5, 8), "sequences of vectors"),
    ("N C H W", (4, 8, 5, 5), "images"),
    ("N C D H W", (2, 4, 3, 3, 3), "volumes"),
)
_MOST_VALUES = 2**31  # more could not be counted exactly by every browser


class AxisPicker(Widget):
    """Press axes to reduce or keep them; see the sets, their numbers and the layer.

    Every trait can be set, observed and linked, from Python or on the page:

    - `pattern`: the statistics, in the notation of `normlab.axes`;
    - `shape`: the tensor's sizes; `groups`: the number of groups, where an axis is
      split;
    - `center`: whether the mean is subtracted (RMSNorm does not); `eps`;
    - `parameters`: the axes along which weight and bias differ, ``""`` for none, or
      None for what the layer has by itself;
    - `weight`, `bias`: one number each, for the arithmetic of the marked `cell`.

    Setting `pattern` fits the other traits to it. Anything that does not fit raises
    `traitlets.TraitError`, and the picker stays as it was. To change several at once,
    use ``with picker.hold_trait_notifications():``.

    What follows from them can be read: `sets`, `set_ids`, `values`, `layer`,
    `torch_line`, `normlab_line`.

    >>> picker = AxisPicker("N (G [C/G]) [H W]", (4, 8, 5, 5), groups=4)
    >>> picker.layer.name, picker.sets.num_sets, picker.set_ids[0, :, 0, 0].tolist()
    ('GroupNorm', 16, [0, 0, 1, 1, 2, 2, 3, 3])
    >>> picker.pattern = "[N] C [H W]"
    >>> picker.torch_line
    'torch.nn.BatchNorm2d(8)'
    """

    stem = "axis_picker"
    state = (
        "pattern",
        "shape",
        "groups",
        "center",
        "parameters",
        "eps",
        "weight",
        "bias",
        "cell",
    )
    parts = ("axis_facts.js", "axis_controls.js", "axis_results.js")
    constants = {"LAYOUTS": _LAYOUTS, "MOST_VALUES": _MOST_VALUES}

    pattern = Unicode().tag(sync=True)
    shape = Tuple().tag(sync=True)
    groups = Int(1).tag(sync=True)
    center = Bool(True).tag(sync=True)
    parameters = Unicode(None, allow_none=True).tag(sync=True)
    eps = Float(1e-5).tag(sync=True)
    weight = Float(1.0).tag(sync=True)
    bias = Float(0.0).tag(sync=True)
    cell = Tuple().tag(sync=True)

    def __init__(self, pattern="N (G [C/G]) [H W]", shape=None, groups=None, **traits):
        parsed = _read_pattern(pattern)
        if shape is None:
            shape = _default_shape(parsed, {})
        if not isinstance(shape, tuple | list):
            raise TraitError(
                f"shape: a tuple of sizes such as {_default_shape(parsed, {})} is "
                f"needed, not {shape!r}."
            )
        if groups is None:
            _sets(parsed, shape, 1)  # before a size that is none is divided
            groups = _default_groups(parsed, shape)
        super().__init__(pattern=str(parsed), shape=shape, groups=groups, **traits)

    # ------------------------------------------------------------- what can be read

    @property
    def sets(self):
        """The pattern applied to the shape: a `normlab.axes.Sets`."""
        return _sets(axes.parse(self.pattern), self.shape, self.groups)

    @property
    def set_ids(self):
        """The number of every cell's set: an integer array of the tensor's shape."""
        return self.sets.set_ids

    @property
    def values(self):
        """The tensor that the picker shows: small whole numbers, always the same."""
        flat = np.arange(1, math.prod(self.shape) + 1, dtype=np.uint32)
        drawn = (flat * np.uint32(2654435761) >> np.uint32(16)) % 19
        return (drawn.astype(np.float64) - 9).reshape(self.shape)

    @property
    def layer(self):
        """The row of `normlab.axes.LAYERS` that this is, or None."""
        return self.sets.layer(self.center, self.parameters)

    @property
    def torch_line(self):
        """The PyTorch call that makes the layer, or None where no layer does this."""
        return self.sets.torch_line(self.center, self.parameters)

    @property
    def normlab_line(self):
        """The normlab call that makes it."""
        return self.sets.normlab_line(self.center, self.parameters)

    def sentence(self):
        """What the picker shows now, in words."""
        sets = self.sets
        name = self.layer.name if self.layer else "No built-in layer"
        groups = f", {sets.pattern.groups} = {self.groups}" * bool(sets.pattern.groups)
        return (
            f"{name}: {self.pattern} on {self.shape}{groups}. "
            f"{sets.describe(self.center)}"
        )

    def picture(self):
        """The tensor's cells, each in the colour of its set."""
        return still(self.sets, self.sentence())

    def __repr__(self):
        arguments = [repr(self.pattern), repr(self.shape)]
        if axes.parse(self.pattern).groups:
            arguments.append(f"groups={self.groups}")
        for name in self.state[3:]:
            value = getattr(self, name)
            if value != self.trait_defaults(name):
                arguments.append(f"{name}={value!r}")
        return f"AxisPicker({', '.join(arguments)})"

    # --------------------------------------------------------------- what is allowed

    @validate("pattern")
    def _check_pattern(self, proposal):
        return str(_read_pattern(proposal.value))

    @validate("shape")
    def _check_shape(self, proposal):
        shape = _sets(axes.parse(self.pattern), proposal.value, self.groups).shape
        if 0 in shape or math.prod(shape) >= _MOST_VALUES:
            raise TraitError(
                f"shape: every size is 1 or more, and all together fewer than 2**31 "
                f"values, not {shape}."
            )
        return shape

    @validate("groups")
    def _check_groups(self, proposal):
        if proposal.value < 1:
            raise TraitError(f"groups: 1 or more are needed, not {proposal.value}.")
        pattern = axes.parse(self.pattern)
        # While the pattern is being replaced, the shape may still be the old one's.
        if len(pattern.axes) == len(self.shape):
            _sets(pattern, self.shape, proposal.value)
        return proposal.value

    @validate("parameters")
    def _check_parameters(self, proposal):
        if proposal.value is not None:
            try:
                axes.parse(self.pattern).parameter_axes(proposal.value)
            except axes.PatternError as error:
                raise TraitError(str(error)) from None
        return proposal.value

    @validate("cell")
    def _check_cell(self, proposal):
        cell, shape = proposal.value, self.shape
        whole = all(type(at) is int and at >= 0 for at in cell)
        fits = whole and len(cell) == len(shape) and all(map(operator.lt, cell, shape))
        if cell and not fits:
            raise TraitError(f"cell: {cell} is no index into the shape {shape}.")
        return cell

    @validate("eps", "weight", "bias")
    def _check_number(self, proposal):
        name, value = proposal.trait.name, proposal.value
        if not math.isfinite(value) or (name == "eps" and value < 0):
            kind = "a number, 0 or more" if name == "eps" else "a finite number"
            raise TraitError(f"{name}: {kind} is needed, not {value}.")
        return value

    @observe("pattern", "shape")
    def _fit_the_rest(self, change):
        """Give a fitting value to each trait that no longer fits."""
        pattern, shape = axes.parse(self.pattern), self.shape
        with self.hold_trait_notifications():
            if len(shape) != len(pattern.axes):
                before = zip(axes.parse(change.old).axes, shape, strict=True)
                self.shape = shape = _default_shape(pattern, dict(before))
            axis = _split_axis(pattern)
            if axis and shape[pattern.axes.index(axis)] % self.groups:
                self.groups = _default_groups(pattern, shape)
            if not set((self.parameters or "").split()) <= set(pattern.axes):
                self.parameters = None
            if len(self.cell) != len(shape) or any(map(operator.ge, self.cell, shape)):
                self.cell = ()


def _read_pattern(text):
    try:
        pattern = axes.parse(text)
    except (axes.PatternError, TypeError) as error:
        raise TraitError(str(error)) from None
    if "..." in pattern.axes:
        raise TraitError(
            "pattern: the picker wants a name for each axis that ... stands for."
        )
    count = len(pattern.axes)
    if count > 5:
        raise TraitError(f"pattern: the picker draws up to 5 axes, not {count}.")
    return pattern


def _sets(pattern, shape, groups):
    """The sets; a mismatch is raised as traitlets expects it."""
    sizes = {pattern.groups: groups} if pattern.groups else {}
    try:
        return pattern.on(shape, **sizes)
    except axes.ShapeError as error:
        raise TraitError(str(error)) from None


def _split_axis(pattern):
    return next((dim.axis for dim in pattern.dims if "/" in dim.label), None)


def _default_shape(pattern, known):
    """A shape for these axes: known sizes by name, then those of the layouts, or 4."""
    named = {}
    for names, sizes, _use in _LAYOUTS:
        named = dict(zip(names.split(), sizes, strict=True)) | named
        if names.split() == list(pattern.axes):
            known = dict(zip(pattern.axes, sizes, strict=True)) | known
    return tuple((named | known).get(name, 4) for name in pattern.axes)


def _default_groups(pattern, shape):
    """The most groups, up to 32, that leave more than one element in each.

    Without a split, the number for when there will be one.
    """
    axis = _split_axis(pattern) or ("C" if "C" in pattern.axes else pattern.axes[-1])
    size = shape[pattern.axes.index(axis)]
    return max(n for n in range(1, 33) if size % n == 0 and (n < size or n == 1))
