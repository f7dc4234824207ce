"""Exercises that say which mistake it is.

In a notebook::

    from normlab.exercises import chapter06 as exercises

    answer = ...  # your answer here
    exercises.sets_of_groupnorm.check(answer)

An exercise has a `question`, hints (`hint()` gives the next, ``hint(2)`` the second), a
`solution()`, and `check(answer)`, which never raises, ends in time (see
`normlab.exercises.limits`), and tells one of four outcomes: correct, not yet, not
attempted, or an error in the answer's code. What is solved is kept on this machine, and
`normlab.progress()` shows it.

To write exercises: one module a chapter, ``chapter06.py``, with one object an exercise,
named as the notebook will call it::

    sets_of_groupnorm = Pattern(
        "6.1",
        question="Write the pattern of `GroupNorm` on images.",
        answer="N (G [C/G]) [H W]",
        mistakes=[("N C [H W]", "These are the sets of InstanceNorm: ...")],
        hints=["Which axis is split?", "`(G [C/G])` splits C in G groups."],
    )

The kinds differ in how they judge:

- `Pattern`: by what the pattern means, whatever its axes are called.
- `Value`: a number, shape, text, True or False, list or tensor of numbers, or a dict,
  tuple or set of those; ``answer=`` decides. Whole numbers exactly, others up to
  ``tolerance=``, or rounded or cut off to as many ``decimals=`` as are asked for.
- `Choice`: ``options={"a": ..., "b": ...}``, ``answer="b"`` or ``{"a", "c"}``,
  ``mistakes={"a": "why not"}``.
- `Code`: a function (``norm="group_norm"``) or an `nn.Module` class
  (``norm="GroupNorm"``), asked the questions of `normlab.exercises.probes`; the
  mistake's name comes by itself. ``arguments=`` says what it takes, ``skip=`` what it
  is not asked; with ``by_hand=True`` it may not call a norm of PyTorch.
- `Free`: ``judge=`` is a function of the answer that returns None when it is right, or
  the sentence to show. What it asks with is drawn by `normlab.exercises.seeded`, so
  that another seed asks with other numbers; ``fixed=True`` where one value is asked
  for and no seed changes that.

All take ``question``, ``hints`` (two or more, from a nudge to nearly the solution) and
``why`` (shown with "Correct" and under the solution). `Code` and `Free` also take
``solution``, the code that binds the answer to ``name``, and ``wrong``: pairs of an
answer that must be rejected and words that the message must then contain; ``given`` is
code that the notebook runs before the answer, if the solution builds on it. A test
checks that every solution is found correct and every wrong answer and mistake is not.
"""

import re
from importlib import import_module
from pkgutil import iter_modules

from normlab.exercises.checker import (
    Choice,
    Code,
    Exercise,
    Free,
    Pattern,
    Value,
    exercises_in,
    todo,
)

__all__ = [
    "Choice",
    "Code",
    "Exercise",
    "Free",
    "Pattern",
    "Value",
    "chapters",
    "exercises_in",
    "todo",
]


def chapters():
    """All exercises: the chapter's number to its exercises by name."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {
        int(name[-2:]): exercises_in(import_module(f"{__name__}.{name}"))
        for name in names
        if re.fullmatch(r"chapter\d\d", name)
    }
