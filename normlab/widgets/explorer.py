"""What the explorers of one question share: rules for their state, and numbers."""

import math

import numpy as np
from traitlets import TraitError

from normlab.widgets.base import Widget


class Explorer(Widget):
    """A widget that asks a `question`, and begins in the state `start`.

    `limits` says what each number of the state may be, ``(lowest, highest)``, and what
    a text may be, ``("one", "other")``. The page reads the same table.
    """

    question = ""
    start = {}
    limits = {}
    floats = ()  # traits that hold floats in a tuple
    parts = ("explorer.js", "chart.js")
    styles = ("explorer.css",)

    def __init_subclass__(cls, **kwargs):
        cls.state = tuple(cls.start)
        cls.constants = {
            "QUESTION": cls.question,
            "START": cls.start,
            "LIMITS": cls.limits,
            "FLOATS": [
                *cls.floats,
                *(name for name, value in cls.start.items() if type(value) is float),
            ],
            "OPTIONAL": [name for name in cls.start if getattr(cls, name).allow_none],
            **cls.constants,
        }
        super().__init_subclass__(**kwargs)

    def __init__(self, **traits):
        own = {name: traits.pop(name) for name in self.state if name in traits}
        super().__init__(**self.start, **traits)
        # set afterwards, so that what is not named here is fitted to what is
        with self.hold_trait_notifications():
            for name, value in own.items():
                setattr(self, name, value)

    def __repr__(self):
        changed = {k: v for k, v in self.snapshot().items() if v != self.start[k]}
        arguments = ", ".join(f"{k}={v!r}" for k, v in changed.items())
        return f"{type(self).__name__}({arguments})"

    def check_limit(self, proposal):
        """The proposed value, if the table of limits allows it."""
        name, value = proposal.trait.name, proposal.value
        if value is None:
            return value
        limit = self.limits[name]
        if isinstance(limit[0], str):
            if value not in limit:
                raise TraitError(f"{name}: one of {', '.join(limit)}, not {value!r}.")
        elif not limit[0] <= value <= limit[1]:
            raise TraitError(
                f"{name}: from {limit[0]} to {limit[1]} is allowed, not {value}."
            )
        return value


def check_shape(shape, names, sizes):
    """A shape with one size for each axis, each between the (lowest, highest) given."""
    whole = all(type(size) is int for size in shape)
    if not whole or len(shape) != len(names.split()):
        raise TraitError(f"shape: sizes of {names} are needed, not {shape}.")
    for name, size, (low, high) in zip(names.split(), shape, sizes, strict=True):
        if not low <= size <= high:
            raise TraitError(
                f"shape: {name} may be from {low} to {high}, which {size} is not."
            )
    return shape


def standard_normal(seed, count, start=0):
    """Numbers `start`, `start` + 1, ... of a stream that looks normally distributed.

    Each is the sum of 12 uniform numbers, less 6: mean 0, variance 1, within ±6. Only
    whole numbers are added, so `standardNormal` in explorer.js finds the same ones.
    """
    places = np.arange(6 * start, 6 * (start + count), dtype=np.uint32)
    words = _scramble(places + _scramble(np.uint32([seed])))
    halves = (words & 0xFFFF) + (words >> np.uint32(16)) + 1
    return halves.reshape(count, 6).sum(1, dtype=np.int64) / 2**16 - 6


def _scramble(words):
    """A one-to-one map of 32-bit words, in which each bit moves all the others."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        words = (words ^ (words >> np.uint32(shift))) * np.uint32(factor)
    return words ^ (words >> np.uint32(16))


def finite(values):
    """Whether all of these are numbers, none of them infinite or NaN."""
    return all(
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        for value in values
    )
