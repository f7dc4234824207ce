"""The named mistakes: norms wrong in one way each, and what to tell the student."""

from functools import lru_cache

from normlab.exercises.mistakes import affine, effects, running, statistic
from normlab.exercises.mistakes.base import Mistake
from normlab.exercises.mistakes.running import WrongMomentum
from normlab.exercises.mistakes.sets import WrongAxes, wrong_axes
from normlab.exercises.mistakes.statistic import WrongEps

__all__ = ["affine", "effects", "mistakes", "names", "running", "statistic"]


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


_FAMILIES = (WrongAxes, WrongEps, WrongMomentum)  # one class for each wrong choice
_NAMED = [cls for cls in _subclasses(Mistake) if cls.name and cls not in _FAMILIES]


def names():
    """The names of all mistakes."""
    return {cls.name for cls in (*_NAMED, *_FAMILIES)}


@lru_cache(maxsize=64)
def mistakes(task):
    """All mistakes that can be made in a task."""
    found = [
        cls
        for cls in _NAMED
        if task.norm in cls.norms
        and task.has(*cls.needs)
        and (task.is_class or not cls.class_only)
    ]
    for eps in (1e-3, 1e-6, 1e-8, 1e-12):
        if eps != task.eps:
            found.append(type("WrongEps", (WrongEps,), {"used": eps}))
    if task.has(*WrongMomentum.needs) and task.norm in WrongMomentum.norms:
        for momentum in (0.01, 0.001, 0.99):
            found.append(type("WrongMomentum", (WrongMomentum,), {"used": momentum}))
    return (*wrong_axes(task), *found)
