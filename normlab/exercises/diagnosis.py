"""From the probes that fail to the mistake that makes them fail.

Every named mistake is a norm that is wrong in one way (`normlab.exercises.mistakes`),
so it can be asked the same probes. The mistake whose answers are the student's is the
student's mistake: this is computed, not guessed. A mistake that would fail a probe
which the student passes is out.
"""

import inspect
from dataclasses import dataclass
from functools import lru_cache

import torch

from normlab.exercises import blame, borrowed, compare, probes
from normlab.exercises.mistakes import mistakes
from normlab.exercises.subjects import subject


@dataclass(frozen=True)
class Diagnosis:
    """The findings of all probes, and the mistakes that explain them.

    `named` pairs mistakes with the first finding each of them explains.
    """

    findings: tuple
    named: tuple = ()


def diagnose(answer, task, seed=0):
    """Ask all probes and name the mistakes: a `Diagnosis`."""
    asked = probes.applying(task)
    got = {
        p: probes.ask(p, lambda t, **kw: subject(answer, t, **kw), task, seed)
        for p in asked
    }
    findings = {}
    for p in asked:
        finding = probes.find(p, probes.expected(p, task, seed), got[p])
        if finding:
            findings[p] = finding
    named, unexplained = [], dict(findings)
    while unexplained:
        mistake, explained = _best(got, unexplained, findings, task, seed)
        if mistake is None:
            break
        named.append((mistake, findings[explained[0]]))
        for p in explained:
            del unexplained[p]
    return Diagnosis(tuple(findings.values()), tuple(named))


def _best(got, unexplained, findings, task, seed):
    """The mistake that explains the first finding and most of the others; which."""
    best, most, fewest = None, (), 0
    passed = [p for p in got if p not in findings]
    for mistake in mistakes(task):
        explained = []
        for p in unexplained:
            if _explains(mistake, p, got, unexplained, task, seed):
                explained.append(p)
            elif not explained:
                break  # an open question stays open: its answer comes first
        if len(explained) < max(1, len(most)):
            continue
        if any(_fails(mistake, p, task, seed) for p in passed):
            continue
        # Of two that explain as much, the one that would fail less is meant.
        failing = sum(_fails(mistake, p, task, seed) for p in findings)
        if len(explained) > len(most) or failing < fewest:
            best, most, fewest = mistake, explained, failing
    return best, most


def _explains(mistake, p, got, unexplained, task, seed):
    # A mistake that does not show in a probe does not explain why it fails.
    if not _fails(mistake, p, task, seed):
        return False
    if probes.same(p, got[p], predicted(mistake, p, task, seed)):
        return True
    # A noise could be anything's, so nothing else may be open that this leaves so.
    return (
        p.name in mistake.noisy
        and mistake.plausible(got[p])
        and all(_fails(mistake, other, task, seed) for other in unexplained)
    )


@lru_cache(maxsize=65536)
def predicted(mistake, p, task, seed=0):
    """What is seen when a mistaken norm is asked."""
    return probes.ask(p, lambda t, **kw: mistake(t, **kw), task, seed)


@lru_cache(maxsize=65536)
def _fails(mistake, p, task, seed):
    expected = probes.expected(p, task, seed)
    return probes.find(p, expected, predicted(mistake, p, task, seed)) is not None


def examine(answer, task, seed=0):
    """Judge a student's code: None if right, else what to tell (see `Exercise`)."""
    unfit = _unfit(answer, task)
    if unfit:
        return unfit, ()
    task = task.varied(seed)
    found = diagnose(answer, task, seed)
    if not found.findings:
        return _borrows(answer, task, seed) if task.by_hand else None
    first = found.findings[0]
    if _unfinished(first):
        return "not attempted", "There is still a `...` in your code.", ()
    if found.named:
        told = [mistake.sentence(task) for mistake, _ in found.named]
        first = found.named[0][1]
        message = "\n".join(["And: " * (i > 0) + one for i, one in enumerate(told)])
    else:
        message = first.probe.tells
    if first.error is None:
        return message, first.facts
    outcome, reason, facts = blame.explained(first.error)
    message = f"{message}\n{reason}" if found.named else reason
    return outcome, message, (("asked", first.probe.name), *facts)


# Between them: both modes, and the dtypes for which code may go a way of its own.
_WATCHED = ("a small input", "evaluation from the buffers", "inputs of other dtypes",
            "half precision")  # fmt: skip


def _borrows(answer, task, seed):
    """None, or what to tell where right values are those of a norm of PyTorch."""
    with borrowed.norms() as called:
        for p in probes.applying(task):
            if p.name in _WATCHED:
                probes.ask(p, lambda t, **kw: subject(answer, t, **kw), task, seed)
    if not called:
        return None
    name = min(called, key=lambda name: (len(name), name))
    sentence = (
        f"The values are right, and PyTorch computed them: your code calls its "
        f"`{name}`. Here the norm is to be written without one, from sums, means and "
        "roots."
    )
    return sentence, (("your code calls", ", ".join(sorted(called))),)


def _unfinished(finding):
    return "ellipsis" in finding.got.lower() or "_Todo" in finding.got


def _unfit(answer, task):
    """A sentence when the answer is not the sort of object that is asked for."""
    names = ", ".join(["x", *task.arguments])
    if task.is_class:
        if isinstance(answer, torch.nn.Module):
            name = type(answer).__name__
            return f"You handed in an instance; hand in the class itself: `{name}`."
        if not isinstance(answer, type) or not issubclass(answer, torch.nn.Module):
            return (
                "A class derived from `torch.nn.Module` is asked for, but this is "
                f"{compare.kind(answer)}."
            )
        return _does_not_take(answer, task.sizes, ", ".join(map(str, task.sizes)))
    if isinstance(answer, type) or not callable(answer):
        return (
            f"A function of ({names}) is asked for, but this is {compare.kind(answer)}."
            + " Hand in its name without brackets." * isinstance(answer, torch.Tensor)
        )
    return _does_not_take(answer, names.split(", "), names)


def _does_not_take(answer, arguments, shown):
    try:
        signature = inspect.signature(answer)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*arguments)
    except TypeError as error:
        return f"The check calls `{answer.__name__}({shown})`, but: {error}."
    return None
