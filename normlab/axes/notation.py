"""The notation: what a pattern is, how it is read, and what is wrong with it."""

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module

POSITIONS = {"L", "D", "H", "W"}


class PatternError(ValueError):
    """A pattern that cannot be read. The message points at the culprit."""


class ShapeError(ValueError):
    """A pattern that does not fit a shape. The message points at the culprit."""


def pointed(error, reason, text, start, end, fix):
    """An error whose message shows `text` with carets under text[start:end]."""
    caret = " " * start + "^" * max(1, end - start)
    return error(f"{reason}\n    {text}\n    {caret}\n{fix}")


def _module(name):
    # Loaded on use: sets and layers are made of patterns, so they import this module.
    return import_module(f"normlab.axes.{name}")


@dataclass(frozen=True)
class Dim:
    """One dimension of the split tensor: an axis, or one of the two parts of an axis.

    `label` is ``N``, ``G``, ``C/G`` or ``...``; `axis` is the tensor axis it is part
    of, so ``C`` for both ``G`` and ``C/G``.
    """

    label: str
    axis: str
    reduced: bool


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern; made by `parse`.

    >>> pattern = parse("N (G [C/G]) [H] [W]")
    >>> str(pattern), pattern.axes
    ('N (G [C/G]) [H W]', ('N', 'C', 'H', 'W'))
    >>> pattern.kept, pattern.reduced
    (('N', 'G'), ('C/G', 'H', 'W'))
    """

    dims: tuple[Dim, ...]

    @property
    def axes(self):
        """Names of the tensor's axes, in order."""
        return tuple(dict.fromkeys(dim.axis for dim in self.dims))

    @property
    def reduced(self):
        """Labels of what is reduced: all positions along these share statistics."""
        return tuple(dim.label for dim in self.dims if dim.reduced)

    @property
    def kept(self):
        """Labels of what is kept: each position along these has its own statistics."""
        return tuple(dim.label for dim in self.dims if not dim.reduced)

    @property
    def groups(self):
        """The name of the number of groups, such as ``G``; None without a split."""
        labels = (dim.label for dim in self.dims if "/" in dim.label)
        return next((label.split("/")[1] for label in labels), None)

    @property
    def reduces_batch(self):
        """Whether samples share statistics, so that each depends on the others.

        The batch axis is N; without an N it is the first axis, unless that one's name
        is taken for something else (C, L, D, H or W).
        """
        first = self.axes[0]
        batch = "N" if "N" in self.axes or first in {"C", *POSITIONS} else first
        return any(dim.reduced for dim in self.dims if dim.axis == batch)

    def __str__(self):
        return self.text_and_spans()[0]

    def text_and_spans(self):
        """The canonical text, and where in it each dimension stands."""
        text, spans = "", []
        for i, dim in enumerate(self.dims):
            before = self.dims[i - 1] if i else None
            after = self.dims[i + 1] if i + 1 < len(self.dims) else None
            # Both parts of a split stand in one pair of parentheses; neighbours that
            # are both reduced stand in one pair of brackets, unless a parenthesis
            # comes between them.
            opens = after is not None and after.axis == dim.axis
            closes = before is not None and before.axis == dim.axis
            joins_before = before is not None and self._share_brackets(i - 1)
            joins_after = after is not None and self._share_brackets(i)
            text += (" " if i else "") + "(" * opens
            text += "[" * (dim.reduced and not joins_before)
            spans.append((len(text), len(text) + len(dim.label)))
            text += dim.label + "]" * (dim.reduced and not joins_after) + ")" * closes
        return text, spans

    def _share_brackets(self, i):
        """Whether dimensions i and i + 1 stand in the same pair of brackets."""
        one, two = self.dims[i : i + 2]
        split = {dim.axis for dim in self.dims if "/" in dim.label}
        same_parenthesis = one.axis == two.axis or not {one.axis, two.axis} & split
        return one.reduced and two.reduced and same_parenthesis

    def on(self, shape, /, **sizes):
        """The sets that this pattern makes of a tensor of that shape: a `Sets`.

        `sizes` gives the number of groups (``G=4``); a size given for an axis is
        checked against the shape. Raises `ShapeError` when the shape has another
        number of axes, when the groups do not divide the axis, or when a size is
        missing, unknown or not a whole number.
        """
        return _module("sets").Sets.of(self, shape, sizes)

    def layer(self, center=True, parameters=None):
        """The row of `LAYERS` that this pattern is, or None.

        `parameters` names the axes along which weight and bias differ (``"C"``), and
        decides where one set of statistics belongs to two layers; None leaves it open,
        and ``""`` means a layer without parameters.

        >>> parse("N C [H W]").layer().name
        'InstanceNorm2d'
        >>> parse("N C [H W]").layer(parameters="H W").name
        'LayerNorm'
        >>> parse("N L [D]").layer(center=False).name
        'RMSNorm'
        >>> parse("[N] C [H] W").layer() is None
        True
        """
        return _module("layers").find(self, center, parameters)

    def parameter_axes(self, parameters):
        """The axes that a parameter pattern such as ``"C H W"`` names, in order.

        Raises `PatternError` for a name that is no axis of this pattern, or out of
        order.
        """
        names = tuple(parameters.split())
        for found in re.finditer(r"\S+", parameters):
            if found[0] not in self.axes:
                reason = f"parameters: {found[0]!r} is no axis of '{self}'."
                fix = f"Name some of its axes, in their order: {' '.join(self.axes)}."
                raise pointed(PatternError, reason, parameters, *found.span(), fix)
        ordered = tuple(axis for axis in self.axes if axis in names)
        if names != ordered:
            reason = "parameters: the axes are not in the pattern's order."
            span = (0, len(parameters))
            fix = f"Write {' '.join(ordered)!r}."
            raise pointed(PatternError, reason, parameters, *span, fix)
        return names


_NAME = "[A-Za-z][A-Za-z0-9_]*"
_TOKEN = re.compile(rf"\s*(?:(\.\.\.)|({_NAME}(?:/{_NAME})?)|([\[\]()]))")


def parse(pattern):
    """Read a pattern such as ``"[N] C [H W]"`` and return a `Pattern`.

    An axis name is a letter, then letters, digits or underscores. Brackets hold the
    reduced axes. One axis may be split: ``(G [C/G])`` is C seen as G groups of C/G
    neighbours, and ``([C/G] G)`` is C seen as C/G rows of G, so that each set takes
    every G-th channel. ``...`` may stand once, for any number of axes.

    Raises `PatternError` for anything else, with a caret under the culprit.

    >>> parse("[N] C [...]").on((16, 3, 7, 7)).sentence
    '784 values share each mean: 16 samples x 7 x 7 positions; 3 means in all.'
    >>> parse("N [C [H] W]")
    Traceback (most recent call last):
    normlab.axes.notation.PatternError: pattern: brackets cannot stand inside brackets.
        N [C [H] W]
             ^
    Close the first pair before the second opens, or write all in one: [H W].
    """
    if isinstance(pattern, Pattern):
        return pattern
    if not isinstance(pattern, str):
        raise TypeError(
            "pattern: a text such as '[N] C [H W]' is expected, "
            f"not {type(pattern).__name__}."
        )
    return _parse(pattern)


@lru_cache(maxsize=1024)
def _parse(text):
    def fail(reason, start, end, fix):
        raise pointed(PatternError, f"pattern: {reason}", text, start, end, fix)

    if not text.strip():
        fail("it is empty.", 0, 1, "Name every axis, for example [N] C [H W].")
    dims, opened, split = [], None, None
    seen = set()

    def add(name, start, end):
        if name in seen:
            fix = "Give every axis a name of its own."
            if name == "...":
                fix = "Keep one ... and name the other axes."
            fail(f"{name!r} stands twice.", start, end, fix)
        seen.add(name)

    for token, start, end in _tokens(text, fail):
        if token == "[":
            if opened is not None:
                fix = "Close the first pair before the second opens, "
                fix += "or write all in one: [H W]."
                fail("brackets cannot stand inside brackets.", start, end, fix)
            opened, held = start, 0
        elif token == "]":
            if opened is None:
                fix = "Put a [ before the first axis to reduce, or leave the ] out."
                fail("this ] closes nothing.", start, end, fix)
            if not held:
                fix = "Put the axes to reduce inside, or leave the pair out."
                fail("these brackets are empty.", opened, end, fix)
            opened = None
        elif token == "(":
            if split is not None:
                fix = "Close the first pair before the second opens."
                fail("parentheses cannot stand inside parentheses.", start, end, fix)
            if opened is not None:
                fix = "Reduce the whole axis ([C]), or one part inside: (G [C/G])."
                fail("a split cannot stand inside brackets.", start, end, fix)
            if any("/" in dim.label for dim in dims):
                fix = "Leave all but one of the axes whole."
                fail("only one axis can be split.", start, end, fix)
            split = {"start": start, "parts": []}
        elif token == ")":
            if split is None:
                fix = "Put a ( before the group, as in (G [C/G]), or leave the ) out."
                fail("this ) closes nothing.", start, end, fix)
            if opened is not None:
                fix = "Close the brackets first, as in (G [C/G])."
                fail("this [ is still open.", opened, opened + 1, fix)
            dims += _split_dims(split, end, fail, add)
            split = None
        else:
            held = 1
            if split is not None:
                split["parts"].append((token, opened is not None, start, end))
                continue
            if "/" in token:
                _axis, groups = token.split("/")
                fix = f"Write both parts: ({groups} [{token}])."
                fail(f"{token!r} is a part of a split axis.", start, end, fix)
            add(token, start, end)
            dims.append(Dim(token, token, opened is not None))
    if split is not None:
        start = split["start"]
        fail("this ( is never closed.", start, start + 1, "Add the missing ).")
    if opened is not None:
        fail("this [ is never closed.", opened, opened + 1, "Add the missing ].")
    return Pattern(tuple(dims))


def _tokens(text, fail):
    """Yield (token, start, end); fail at the first character that is none."""
    position, end_of_text = 0, len(text.rstrip())
    while position < end_of_text:
        match = _TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            fix = "Use axis names, [ ] for reduced, ( ) for a split, and '...'."
            fail(f"{text[start]!r} is not part of the notation.", start, start + 1, fix)
        yield match[match.lastindex], *match.span(match.lastindex)
        position = match.end()


def _split_dims(split, end, fail, add):
    """The two dimensions of ``(G [C/G])``, in the order in which they are written."""
    start, parts = split["start"], split["parts"]
    part = next((name for name, *_ in parts if "/" in name), None)
    axis, groups = part.split("/") if part else ("C", "G")
    if sorted(name for name, *_ in parts) != sorted([groups, f"{axis}/{groups}"]):
        fix = f"Write the number of groups and the size of each: ({groups} "
        fix += f"[{axis}/{groups}])."
        fail("parentheses split one axis in two parts.", start, end, fix)
    if axis == groups:
        fix = f"Give the groups a name of their own: (G [{axis}/G])."
        fail(f"{axis!r} names both the axis and its groups.", start, end, fix)
    add(axis, start, end)
    add(groups, start, end)
    return [Dim(name, axis, reduced) for name, reduced, *_ in parts]
