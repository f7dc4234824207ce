"""What all mistakes are: a norm made wrong in one way, and a sentence.

`says` may name {m}, the number of values in a set, and {sets}, the right pattern.
"""

from normlab.exercises.steps import Steps
from normlab.exercises.subjects import values_per_set

CENTERED = ("batch_norm", "instance_norm", "layer_norm", "group_norm")
ALL = (*CENTERED, "rms_norm")


class Mistake(Steps):
    """A norm that is wrong in one way."""

    name = ""
    norms = ALL
    needs = ()  # what the code must have for it to be possible
    class_only = False
    noisy = ()  # probes whose answers nobody can predict, only that they are wrong
    says = ""

    @classmethod
    def sentence(cls, task):
        """What to tell the student."""
        return cls.says.format(m=values_per_set(task), sets=task.pattern)

    @classmethod
    def plausible(cls, got):
        """Whether an answer to one of the `noisy` probes may come from this mistake."""
        return True


class AffineMistake(Mistake):
    """One in weight or bias."""

    needs = ("weight",)


class RunningMistake(Mistake):
    """One in the running statistics."""

    norms = ("batch_norm", "instance_norm")
    needs = ("running_mean", "running_var")
