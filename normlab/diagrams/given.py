"""What a figure function is given: read, or refused with a sentence."""

import operator

import numpy as np


def numbers(name, values):
    """An array of real numbers, of what may be tensors on any device, or lists of such.

    >>> numbers("draw: x", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    try:
        array = np.asarray(detached(values))
    except ValueError:
        raise ValueError(
            f"{name}: rows of equal length are expected, but these differ."
        ) from None
    if array.dtype.kind == "c":
        raise ValueError(
            f"{name}: real numbers are expected, not complex ones; pass their real "
            "part, imaginary part or absolute value."
        )
    if array.dtype.kind == "O":  # such as fractions
        try:
            # One by one: astype would make NaN of None.
            array = np.reshape([float(value) for value in array.flat], array.shape)
        except (TypeError, ValueError):
            pass  # refused below
    if array.dtype.kind not in "biuf":
        what = type(values).__name__
        raise TypeError(f"{name}: an array of numbers is expected, not this {what}.")
    return array


def detached(values):
    """Arrays in place of tensors; lists and tuples of tensors, too."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        # NumPy has no bfloat16.
        return np.asarray(values.double() if values.is_floating_point() else values)
    if isinstance(values, list | tuple):
        return [detached(value) for value in values]
    return values


def listed(name, values):
    """A list of what stands in a list, tuple or array."""
    try:
        return list(values)
    except TypeError:
        what = type(values).__name__
        raise TypeError(f"{name}: a list is expected, not this {what}.") from None


def count(name, value):
    """A whole number from 1 on."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: a whole number is expected, not {value!r}.") from None
    if number < 1:
        raise ValueError(f"{name}: 1 or more is expected, not {value!r}.")
    return number


def axes_or_none(ax):
    """Axes of matplotlib, or None."""
    if ax is None:
        return None
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        fix = "leave it out for a new figure"
        if isinstance(ax, np.ndarray):
            fix = "pass one of them, such as axs[0]"
        what = type(ax).__name__
        raise TypeError(f"ax: Axes of matplotlib are expected, not this {what}; {fix}.")
    return ax
