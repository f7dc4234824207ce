"""What differs between the expected value and the answer, said in words.

Whole numbers are exact, but for the noise of a computation in floating point (at most
a thousandth). Other numbers may be off by `tolerance` where the expected one is at most
1, and by that share of it where it is larger; with `decimals`, by less than one unit of
the last place, so both rounded and cut off numbers are right. All this holds for one
number as for those in lists and tensors.
"""

import reprlib
import types
from numbers import Real

import numpy as np
import torch

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
_short.maxtuple = _short.maxlist = _short.maxdict = 8


def show(value):
    """A short text for a value; rounded, so that machines agree on it."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.numel() == 1 and value.dim() == 0:
            return show(value.item())
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, np.generic):
        return show(value.item())
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return _short.repr(value)


def kind(value):
    """What sort of thing a value is, for use in a sentence."""
    named = (
        (torch.nn.Parameter, "a parameter (`torch.nn.Parameter`)"),
        (torch.Tensor, "a tensor"),
        (np.ndarray, "a NumPy array"),
        (str, "a text in quotes"),
        (bool | np.bool_, "True or False"),
        (torch.Size, "a shape"),
        (tuple, "a tuple (round brackets)"),
        (list, "a list (square brackets)"),
        (dict, "a dict"),
        (set | frozenset, "a set"),
        (Real, "a number"),
        (types.ModuleType, "a Python module"),
    )
    if value is None:
        return "None (a function without `return` gives None)"
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    for of, words in named:
        if isinstance(value, of):
            return words
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return "a function"
    return f"an object of the class `{type(value).__name__}`"


def allowed(expected, tolerance, decimals=None):
    """How far an answer may be from each expected number: see the module."""
    size = np.maximum(1, np.abs(np.asarray(expected, dtype=np.float64)))
    if isinstance(expected, int) or np.asarray(expected).dtype.kind in "iu":
        return np.minimum(1e-3, 1e-6 * size)
    if decimals is not None:
        return 0.9999 * 10.0**-decimals + 1e-9 * size
    return tolerance * size


def difference(expected, got, tolerance=1e-3, what="Your answer", decimals=None):
    """None if alike, or what differs: a sentence and facts for a `Result`."""
    tolerance = (tolerance, decimals)
    return _difference(expected, got, tolerance, what)


def builtin(value):
    """A list, dict, text and the like without the class of its own that it may have.

    Such a class may walk through itself for ever, in compiled code that nothing stops.
    """
    for of in (list, tuple, set, frozenset, dict, str):
        if type(value) is not of and issubclass(type(value), of):
            if of is str:
                return str.__str__(value)
            items = dict.items(value) if of is dict else of.__iter__(value)
            return value if isinstance(value, torch.Size) else of(items)
    return value


def _difference(expected, got, tolerance, what):
    got = builtin(got)
    if isinstance(expected, bool):
        return _one(expected, got, what, bool | np.bool_, "is True or False")
    if isinstance(expected, str):
        return _one(expected, got, what, str, "is a text in quotes")
    if isinstance(expected, Real):
        return _number(expected, got, tolerance, what)
    if isinstance(expected, dict):
        return _dict(expected, got, tolerance, what)
    if isinstance(expected, set | frozenset):
        return _set(expected, got, what)
    if isinstance(expected, tuple):
        return _tuple(expected, got, tolerance, what)
    return _values(expected, got, tolerance, what)


def _wrong_kind(what, got, wanted):
    return f"{what} should be {wanted}, but it is {kind(got)}.", ()


def _one(expected, got, what, of, words):
    if not isinstance(got, of):
        return f"{what} {words}; it should not be {kind(got)}.", ()
    if isinstance(expected, str):
        got = str.__str__(got)  # whatever its own class makes of ==
        alike = got.casefold().split() == expected.casefold().split()
    else:
        alike = bool(got) == expected
    return None if alike else (f"{what} is not {show(got)}.", ())


def _number(expected, got, tolerance, what):
    if isinstance(got, torch.Tensor | np.ndarray | np.generic):
        if got.ndim or isinstance(got, np.bool_):
            fix = f"one number, but it is {kind(got)} of shape {tuple(got.shape)}"
            return f"{what} should be {fix}.", ()
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, Real):
        more = ""
        if isinstance(got, str):
            more = " Leave the quotes out."
        sentence, facts = _wrong_kind(what, got, "a number")
        return sentence + more, facts
    got = _plain(got)
    if np.isnan(got) or np.isinf(got):
        return f"{what} is {float(got)}: there was a division by 0, or an overflow.", ()
    if abs(got - expected) <= allowed(expected, *tolerance):
        return None
    word = "large" if got > expected else "small"
    if got == -expected:
        word = "negative" if got < 0 else "positive"
    return f"{what} is {show(got)}: too {word}.", ()


def _plain(number):
    """A number without the arithmetic of a class of its own."""
    return int.__int__(number) if isinstance(number, int) else float(number)


def _tuple(expected, got, tolerance, what):
    if not isinstance(got, tuple):
        example = "(2, 3)" if len(expected) != 1 else "(2,)"
        wanted = f"a tuple, written with round brackets and commas such as {example}"
        return _wrong_kind(what, got, wanted)
    if len(got) != len(expected):
        return f"{what} has {len(got)} entries; {len(expected)} are asked for.", ()
    for i, (one, other) in enumerate(zip(expected, got, strict=True)):
        found = _difference(one, other, tolerance, f"{what}, entry {i},")
        if found:
            return found
    return None


def _dict(expected, got, tolerance, what):
    if not isinstance(got, dict):
        wanted = "a dict with the keys " + ", ".join(map(repr, expected))
        return _wrong_kind(what, got, wanted)
    for key in expected:
        if key not in got:
            return f"{what} has no entry {key!r}.", ()
        found = _difference(expected[key], got[key], tolerance, f"The entry {key!r}")
        if found:
            return found
    extra = [key for key in got if key not in expected]
    return (f"{what} has an entry {extra[0]!r} too many.", ()) if extra else None


def _set(expected, got, what):
    if not isinstance(got, set | frozenset | list | tuple):
        return _wrong_kind(what, got, "a set, written as {1, 2}")
    extra = [one for one in got if one not in expected]
    if extra:
        return f"{what} should not contain {show(extra[0])}.", ()
    if len(set(got)) < len(expected):
        return f"{what} lacks something: {len(expected)} are to be found.", ()
    return None


def _listed(values):
    """Tensors as lists of numbers, also where they stand in a list."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().tolist()
    if isinstance(values, list | tuple):
        return [_listed(one) for one in values]
    return values


def _values(expected, got, tolerance, what):
    off_by = allowed(expected, *tolerance)
    expected = np.asarray(expected, dtype=np.float64)
    if not isinstance(got, torch.Tensor | np.ndarray | list | tuple):
        return _wrong_kind(what, got, "a list, an array or a tensor of numbers")
    try:
        got = np.asarray(_listed(got))
        if got.dtype.kind not in "biuf":  # texts, and complex numbers, would convert
            raise TypeError
        got = got.astype(np.float64)
    except (TypeError, ValueError):
        return f"{what} should hold numbers alone, in rows of equal length.", ()
    if got.shape != expected.shape:
        return (
            f"{what} has the shape {got.shape}; {expected.shape} is asked for.",
            (),
        )
    off = ~(np.abs(got - expected) <= off_by)  # so that NaN is off
    if not off.any():
        return None
    first = tuple(int(i) for i in np.argwhere(off)[0])
    where = ", ".join(map(str, first))
    share = f"{int(off.sum())} of {off.size} values"
    facts = (("your value", f"{show(float(got[first]))} at [{where}]"),)
    return f"{what} differs in {share}; the first is at [{where}].", facts
