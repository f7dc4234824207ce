"""The notation of the course: which elements of a tensor share statistics.

A pattern names every axis of a tensor. Brackets mark the axes that are reduced; each
position of the others, the kept axes, has statistics of its own. Parentheses split one
axis in groups, and ``...`` stands for any number of axes.

>>> sets = parse("N (G [C/G]) [H W]").on((4, 8, 5, 5), G=4)
>>> sets.sentence
'50 values share each mean: 2 channels x 5 x 5 positions; 16 means in all.'
>>> sets.statistics_shape
(4, 4, 1, 1, 1)
>>> sets.torch_line()
'torch.nn.GroupNorm(4, 8)'

Needs NumPy alone. Diagrams, widgets, tables and tests all read their facts from here.
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

__all__ = ["LAYERS", "Layer", "Pattern", "PatternError", "Sets", "ShapeError", "parse"]


_POSITIONS = {"L", "D", "H", "W"}


class PatternError(ValueError):
    """A pattern that cannot be read. The message points at the culprit."""


class ShapeError(ValueError):
    """A pattern that does not fit a shape. The message points at the culprit."""


def _pointed(error, reason, text, start, end, fix):
    """An error whose message shows `text` with carets under text[start:end]."""
    caret = " " * start + "^" * max(1, end - start)
    return error(f"{reason}\n    {text}\n    {caret}\n{fix}")


# ---------------------------------------------------------------------- the pattern


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
        batch = "N" if "N" in self.axes or first in {"C", *_POSITIONS} else first
        return any(dim.reduced for dim in self.dims if dim.axis == batch)

    def __str__(self):
        return self._text_and_spans()[0]

    def _text_and_spans(self):
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
        return Sets(self, *_fit(self, shape, sizes))

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
        wanted = self.parameter_axes(parameters or "")
        fitting = [
            row
            for row in LAYERS
            if row.center == center
            and row.fits(self)
            and (not wanted or wanted == row.parameters_in(self))
        ]
        # A row that names the axes as the pattern does is what its author meant.
        return max(fitting, key=lambda row: row.names_shared(self), default=None)

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
                raise _pointed(PatternError, reason, parameters, *found.span(), fix)
        ordered = tuple(axis for axis in self.axes if axis in names)
        if names != ordered:
            reason = "parameters: the axes are not in the pattern's order."
            span = (0, len(parameters))
            fix = f"Write {' '.join(ordered)!r}."
            raise _pointed(PatternError, reason, parameters, *span, fix)
        return names


# ---------------------------------------------------------------------- the parser

_TOKEN = re.compile(r"\s*(?:(\.\.\.)|([A-Za-z]\w*(?:/[A-Za-z]\w*)?)|([\[\]()]))", re.A)


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
    normlab.axes.PatternError: pattern: brackets cannot stand inside brackets.
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
        raise _pointed(PatternError, f"pattern: {reason}", text, start, end, fix)

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

    for kind, token, start, end in _tokens(text, fail):
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
                axis, groups = token.split("/")
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
    """Yield (kind, token, start, end); fail at the first character that is none."""
    position, end_of_text = 0, len(text.rstrip())
    while position < end_of_text:
        match = _TOKEN.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            fix = "Use axis names, [ ] for reduced, ( ) for a split, and '...'."
            fail(f"{text[start]!r} is not part of the notation.", start, start + 1, fix)
        yield match.lastindex, match[match.lastindex], *match.span(match.lastindex)
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


# ---------------------------------------------------------------------- fit a shape


def _fit(pattern, shape, sizes):
    """Check shape and sizes; return (shape, dims, split shape), ... expanded."""
    text, spans = pattern._text_and_spans()

    def fail(reason, span, fix):
        raise _pointed(ShapeError, reason, text, *span, fix)

    everything = (0, len(text))
    shape, named = _whole_numbers(shape, sizes, lambda *said: fail(*said, everything))
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
        divisors = [n for n in range(1, size + 1) if size % n == 0] or [1]
        nearest = sorted(divisors, key=lambda n: (abs(n - groups), n))[:2]
        fix = f"{name} = {' or '.join(map(str, sorted(nearest)))} would fit."
        reason = f"{axis} has {size} elements, which {groups} groups do not divide."
        fail(reason, span, fix)
    return groups


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

    @property
    def axes(self):
        """Names of the tensor's axes; those of ``...`` are ``...1``, ``...2``."""
        return Pattern(self.dims).axes

    def layer(self, center=True, parameters=None):
        """The row of `LAYERS` that this is, or None; see `Pattern.layer`.

        The shape tells how many axes ``...`` stands for, and so which class it is.

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

        >>> parse("N [C H W]").on((4, 8, 5, 5)).torch_line()
        'torch.nn.LayerNorm((8, 5, 5))'
        """
        row = self.layer(center, parameters)
        return None if row is None else f"torch.nn.{row.call(self, parameters)}"

    def normlab_line(self, center=True, parameters=None):
        """The normlab call that makes it: a layer by name, else the general `Norm`.

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
    if dim.axis.startswith("...") or dim.axis in _POSITIONS:
        return "position"
    return {"N": "sample", "C": "channel"}.get(dim.axis)


# ---------------------------------------------------------------------- the layers


@dataclass(frozen=True)
class Layer:
    """One built-in layer, on one layout of its input.

    `running` tells whether it keeps running statistics, to use in eval: ``"default"``,
    ``"optional"`` (off unless asked for) or ``"never"``. `affine` tells whether it has
    parameters unless told otherwise, and `bias` whether a bias is one of them.
    """

    name: str
    statistics: str
    parameters: str
    center: bool = True
    running: str = "never"
    affine: bool = True
    bias: bool = True

    @property
    def pattern(self):
        """The statistics, parsed."""
        return parse(self.statistics)

    @property
    def norm(self):
        """The name of the norm without its rank: BatchNorm for BatchNorm2d."""
        return re.sub(r"\dd$", "", self.name)

    def fits(self, pattern):
        """Whether the layer reduces what the pattern reduces, whatever the names."""
        # BatchNorm and InstanceNorm come in one class for each number of axes; the
        # others take any number.
        any_rank = {"LayerNorm": "k*r+", "RMSNorm": "k*r+", "GroupNorm": "kgr*"}
        if "..." in pattern.axes and self.norm not in any_rank:
            return False
        form = any_rank.get(self.norm, _form(self.pattern))
        return re.fullmatch(form, _form(pattern)) is not None

    def parameters_in(self, pattern):
        """The axes of `pattern` along which this layer's parameters differ."""
        if self.norm in ("LayerNorm", "RMSNorm"):
            return tuple(dim.axis for dim in pattern.dims if dim.reduced)
        return pattern.axes[1:2]

    def names_shared(self, pattern):
        """How many dimensions both write alike: the same name, kept or reduced."""
        return len(set(self.pattern.dims) & set(pattern.dims))

    def call(self, sets, parameters=None):
        """The call that makes the layer for these sets: ``GroupNorm(4, 8)``."""
        if self.norm in ("LayerNorm", "RMSNorm"):
            sizes = [sets.split_shape[i] for i in sets.reduced_dims]
            arguments = [str(tuple(sizes)) if len(sizes) > 1 else str(sizes[0])]
            switch = "elementwise_affine"
        else:
            groups = sets.pattern.groups
            arguments = [str(sets.sizes[groups])] if groups else []
            arguments.append(str(sets.shape[1]))
            switch = "affine"
        if parameters is not None and bool(parameters) != self.affine:
            arguments.append(f"{switch}={bool(parameters)}")
        return f"{self.name}({', '.join(arguments)})"


def _form(pattern):
    """One letter an axis: k kept, r reduced, g groups of neighbours, x other splits."""
    form = ""
    for axis in pattern.axes:
        parts = [(d.label, d.reduced) for d in pattern.dims if d.axis == axis]
        if len(parts) == 1:
            form += "r" if parts[0][1] else "k"
        else:
            groups = (pattern.groups, False), (f"{axis}/{pattern.groups}", True)
            form += "g" if tuple(parts) == groups else "x"
    return form


LAYERS = (
    Layer("BatchNorm1d", "[N] C", "C", running="default"),
    Layer("BatchNorm1d", "[N] C [L]", "C", running="default"),
    Layer("BatchNorm2d", "[N] C [H W]", "C", running="default"),
    Layer("BatchNorm3d", "[N] C [D H W]", "C", running="default"),
    Layer("LayerNorm", "N [D]", "D"),
    Layer("LayerNorm", "N L [D]", "D"),
    Layer("LayerNorm", "N [C H W]", "C H W"),
    Layer("InstanceNorm1d", "N C [L]", "C", running="optional", affine=False),
    Layer("InstanceNorm2d", "N C [H W]", "C", running="optional", affine=False),
    Layer("InstanceNorm3d", "N C [D H W]", "C", running="optional", affine=False),
    Layer("GroupNorm", "N (G [C/G])", "C"),
    Layer("GroupNorm", "N (G [C/G]) [L]", "C"),
    Layer("GroupNorm", "N (G [C/G]) [H W]", "C"),
    Layer("GroupNorm", "N (G [C/G]) [D H W]", "C"),
    Layer("RMSNorm", "N [D]", "D", center=False, bias=False),
    Layer("RMSNorm", "N L [D]", "D", center=False, bias=False),
)
