"""The sets: a pattern applied to a shape, by arithmetic on sizes alone."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from normlab.axes.notation import POSITIONS, Dim, Pattern, ShapeError, pointed


@dataclass(frozen=True)
class Sets:
    """A pattern applied to a shape: the statistics sets, by arithmetic on sizes alone.

    Made by `Pattern.on`. Only `set_ids` costs time and memory that grow with the
    tensor. "Split" shapes see a split axis as two: (N, G, C/G, H, W).
    """

    pattern: Pattern
    shape: tuple[int, ...]
    dims: tuple[Dim, ...]
    split_shape: tuple[int, ...]

    @classmethod
    def of(cls, pattern, shape, sizes):
        """The sets, after checking that pattern, shape and sizes fit together."""
        return cls(pattern, *_fit(pattern, shape, sizes))

    @property
    def axes(self):
        """Names of the tensor's axes; those of ``...`` are ``...1``, ``...2``."""
        return Pattern(self.dims).axes

    def layer(self, center=True, parameters=None):
        """The row of `LAYERS` that this is, or None; see `Pattern.layer`.

        The shape tells how many axes ``...`` stands for, and so which class it is.

        >>> from normlab.axes import parse
        >>> parse("[N] C [...]").on((4, 8, 5, 5)).layer().name
        'BatchNorm2d'
        """
        if parameters is not None:
            parameters = " ".join(self._parameter_axes(parameters))
        return Pattern(self.dims).layer(center, parameters)

    @property
    def sizes(self):
        """The size of every axis and of both parts of a split axis, by name."""
        parts = zip((dim.label for dim in self.dims), self.split_shape, strict=True)
        return dict(zip(self.axes, self.shape, strict=True)) | dict(parts)

    @property
    def reduced_dims(self):
        """The dimensions of the split tensor to average over, as `dim=` wants them."""
        return tuple(i for i, dim in enumerate(self.dims) if dim.reduced)

    @property
    def statistics_shape(self):
        """The shape of mean and variance with `keepdim=True`, of the split tensor."""
        sized = zip(self.dims, self.split_shape, strict=True)
        return tuple(1 if dim.reduced else size for dim, size in sized)

    @property
    def kept_shape(self):
        """The shape of mean and variance without the reduced dimensions."""
        sized = zip(self.dims, self.split_shape, strict=True)
        return tuple(size for dim, size in sized if not dim.reduced)

    @property
    def num_sets(self):
        """How many sets there are, each with a mean of its own."""
        return math.prod(self.kept_shape)

    @property
    def values_per_set(self):
        """How many values share each mean."""
        return math.prod(self.split_shape[i] for i in self.reduced_dims)

    @property
    def reduces_batch(self):
        """Whether samples share statistics, so that each depends on the others."""
        return self.pattern.reduces_batch

    @cached_property
    def set_ids(self):
        """An integer array of the tensor's shape: the number of each cell's set.

        Sets are numbered 0, 1, ... in the order of the kept axes, the last fastest.
        """
        ids = np.arange(self.num_sets).reshape(self.statistics_shape)
        ids = np.array(np.broadcast_to(ids, self.split_shape)).reshape(self.shape)
        ids.setflags(write=False)  # it is kept and handed out again
        return ids

    def parameter_shape(self, parameters):
        """The shape of weight and bias that differ along these axes: ``"C"``, ``""``.

        >>> from normlab.axes import parse
        >>> parse("N C [H W]").on((4, 8, 5, 5)).parameter_shape("C")
        (8,)
        """
        return tuple(self.sizes[axis] for axis in self._parameter_axes(parameters))

    def parameter_broadcast_shape(self, parameters):
        """The same, with a 1 for each axis that shares its parameters: (1, 8, 1, 1)."""
        named = self._parameter_axes(parameters)
        return tuple(
            size if axis in named else 1
            for axis, size in zip(self.axes, self.shape, strict=True)
        )

    def _parameter_axes(self, parameters):
        names = self.pattern.parameter_axes(parameters)
        rest = [axis for axis in self.axes if axis.startswith("...")]
        return tuple(a for name in names for a in (rest if name == "..." else [name]))

    @property
    def sentence(self):
        """What the pattern does to this shape, in one sentence."""
        return self.describe()

    def describe(self, center=True):
        """The sentence, for a mean (and variance) or a root mean square alone.

        >>> from normlab.axes import parse
        >>> parse("N L [D]").on((2, 6, 8)).describe(center=False)
        '8 values share each root mean square: 8 features; 12 root mean squares in all.'
        """
        one = "mean" if center else "root mean square"
        count = f"{self.num_sets} {one}{'' if self.num_sets == 1 else 's'} in all"
        if not self.reduced_dims:
            return f"Nothing is reduced, so each value is its own {one}: {count}."
        share = "values share" if self.values_per_set != 1 else "value makes"
        what = f"{self.values_per_set} {share} each {one}"
        return f"{what}: {' x '.join(self._reduced_words())}; {count}."

    def _reduced_words(self):
        """What is counted along the reduced axes: ["2 channels", "5 x 5 positions"]."""
        counts = []  # (word, sizes); neighbouring positions are counted together
        for i in self.reduced_dims:
            word, size = _word(self.dims[i], self.pattern), self.split_shape[i]
            if word == "position" and counts and counts[-1][0] == word:
                counts[-1][1].append(size)
            else:
                counts.append((word or f"along {self.dims[i].label}", [size]))
        return [
            f"{' x '.join(map(str, sizes))} {word}"
            + ("" if sizes == [1] or word.startswith("along") else "s")
            for word, sizes in counts
        ]

    def torch_line(self, center=True, parameters=None):
        """The PyTorch call that makes the layer, or None where no layer does this.

        >>> from normlab.axes import parse
        >>> parse("N [C H W]").on((4, 8, 5, 5)).torch_line()
        'torch.nn.LayerNorm((8, 5, 5))'
        """
        row = self.layer(center, parameters)
        return None if row is None else f"torch.nn.{row.call(self, parameters)}"

    def normlab_line(self, center=True, parameters=None):
        """The normlab call that makes it: a layer by name, else the general `Norm`.

        >>> from normlab.axes import parse
        >>> parse("[N] C [H] W").on((4, 8, 5, 5)).normlab_line(parameters="C")
        "normlab.Norm('[N] C [H] W', 'C', sizes={'C': 8})"
        """
        row = self.layer(center, parameters)
        if row is not None:
            return f"normlab.{row.call(self, parameters)}"
        arguments = [repr(str(self.pattern))]
        needed = [self.pattern.groups] if self.pattern.groups else []
        if parameters:
            arguments.append(repr(" ".join(self.pattern.parameter_axes(parameters))))
            needed = [*self._parameter_axes(parameters), *needed]
        if not center:
            arguments.append("center=False")
        if needed:
            arguments.append(f"sizes={ {name: self.sizes[name] for name in needed} }")
        return f"normlab.Norm({', '.join(arguments)})"


def _word(dim, pattern):
    """What one step along a dimension is called; None when its name says nothing."""
    if dim.label == pattern.groups:
        return "group"
    if dim.axis == "D" and "H" not in pattern.axes:
        return "feature"
    if dim.axis.startswith("...") or dim.axis in POSITIONS:
        return "position"
    return {"N": "sample", "C": "channel"}.get(dim.axis)


def _fit(pattern, shape, sizes):
    """Check shape and sizes; return (shape, dims, split shape), ... expanded."""
    text, spans = pattern.text_and_spans()

    def fail(reason, span, fix):
        raise pointed(ShapeError, reason, text, *span, fix)

    everything = (0, len(text))
    shape, named = _whole_numbers(
        shape, sizes, lambda reason, fix: fail(reason, everything, fix)
    )
    known = {*pattern.axes, pattern.groups} - {"...", None}
    for name in named:
        if name not in known:
            fix = f"Sizes can be given for: {', '.join(sorted(known))}."
            fail(f"{name!r} is no axis of this pattern.", everything, fix)

    anonymous = len(shape) - len(pattern.axes) + 1  # how many axes ... stands for
    if anonymous < 0 or (anonymous != 1 and "..." not in pattern.axes):
        _fail_on_rank(pattern, shape, spans, text, fail)
    dims, split_shape = [], []
    remaining = list(shape)
    for dim, span in zip(pattern.dims, spans, strict=True):
        if dim.axis == "...":
            names = [f"...{i + 1}" for i in range(anonymous)]
            dims += [Dim(name, name, dim.reduced) for name in names]
            split_shape += remaining[:anonymous]
            del remaining[:anonymous]
            continue
        size = remaining[0]
        if named.get(dim.axis, size) != size:
            reason = f"{dim.axis} was given as {named[dim.axis]}, but is {size}"
            fix = f"Leave {dim.axis}= out, or pass a tensor of that size."
            fail(f"{reason} in the shape {shape}.", span, fix)
        if dim.label != dim.axis:
            groups = _number_of_groups(pattern, dim.axis, size, named, span, fail)
            size = size // groups if "/" in dim.label else groups
        first_part = dim.label != dim.axis and dim.axis not in {d.axis for d in dims}
        if not first_part:
            remaining.pop(0)
        dims.append(dim)
        split_shape.append(size)
    return shape, tuple(dims), tuple(split_shape)


def _whole_numbers(shape, sizes, fail):
    def whole(value, what):
        if not hasattr(value, "__index__") or isinstance(value, bool) or value < 0:
            fail(f"{what} is {value!r}.", "A size is a whole number, 0 or more.")
        return value.__index__()

    try:
        shape = tuple(shape)
    except TypeError:
        fail(f"the shape is {shape!r}.", "Pass a tuple, such as (4, 8, 5, 5).")
    return (
        tuple(whole(size, f"size {i} of the shape") for i, size in enumerate(shape)),
        {name: whole(size, f"the size of {name}") for name, size in sizes.items()},
    )


def _fail_on_rank(pattern, shape, spans, text, fail):
    count = len([axis for axis in pattern.axes if axis != "..."])
    names = f"{'at least ' if '...' in pattern.axes else ''}{count}"
    names += " axis" if count == 1 else " axes"
    reason = f"the pattern names {names}, but the shape {shape} has {len(shape)}."
    if len(shape) > count:
        fix = "Name the other axes too, or put ... for any number of them."
        fail(reason, (len(text), len(text) + 1), fix)
    named = [axis for axis in pattern.axes if axis != "..."]
    first_missing = next(
        span
        for dim, span in zip(pattern.dims, spans, strict=True)
        if dim.axis != "..." and named.index(dim.axis) >= len(shape)
    )
    fix = "Take out the axes that the tensor lacks, or pass one that has them."
    fail(reason, first_missing, fix)


def _number_of_groups(pattern, axis, size, named, span, fail):
    name = pattern.groups
    groups = named.get(name)
    if groups is None:
        fix = f"Pass it by name, {name}=..., a divisor of {axis} = {size}."
        fail(f"the number of groups {name} is missing.", span, fix)
    if groups == 0 or size % groups:
        nearest = " or ".join(map(str, nearest_divisors(size, groups)))
        fix = f"{name} = {nearest} would fit."
        reason = f"{axis} has {size} elements, which {groups} groups do not divide."
        fail(reason, span, fix)
    return groups


def nearest_divisors(size, wanted):
    """The two divisors of `size` that are nearest to `wanted`, the smaller first.

    >>> nearest_divisors(10, 4)
    [2, 5]
    """
    small = [n for n in range(1, math.isqrt(size) + 1) if size % n == 0] or [1]
    divisors = {*small, *(size // n for n in small if size)}
    return sorted(sorted(divisors, key=lambda n: (abs(n - wanted), n))[:2])
