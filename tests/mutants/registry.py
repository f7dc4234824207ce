"""How a mutant is entered: the norm it claims to be, and the mistake it makes."""

from dataclasses import dataclass, field

from normlab.exercises.probes import Task


@dataclass(frozen=True)
class Mutant:
    """One wrong implementation, and the name of its mistake."""

    norm: str
    mistake: str
    code: object
    choices: dict = field(default_factory=dict)
    says: str = ""

    @property
    def task(self):
        return Task.of(self.norm, **self.choices)

    def __str__(self):
        return f"{self.norm}: {self.mistake} ({self.code.__name__})"


MUTANTS = []


def mutant(norm, mistake, says="", **choices):
    """Enter the decorated function or class in the table."""

    def enter(code):
        MUTANTS.append(Mutant(norm, mistake, code, choices, says))
        return code

    return enter
