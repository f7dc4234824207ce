"""The exercises: each holds its question, hints and solution, and checks an answer."""

import dis
import math
import operator
import os
import types
from numbers import Real

import numpy as np
import torch

from normlab import axes
from normlab.exercises import (
    blame,
    compare,
    diagnosis,
    limits,
    probes,
    progress,
    state,
)
from normlab.exercises.results import Hint, Result, Solution, Text
from normlab.exercises.seeded import asked_with

SECONDS = 10


class _Todo:
    """Stands where an answer goes; so does ``...``."""

    def __repr__(self):
        return "todo"

    def __reduce__(self):
        return "todo"  # one object, in another process too


todo = _Todo()


class Exercise:
    """One exercise. Its kinds, below, differ in how they judge an answer.

    `number` is chapter and place, ``"6.1"``; `question` and `hints` are texts in which
    backticks mark code. `solution` is code that binds the answer to `name`, after the
    code `given` in the notebook; `why` says why it is right. `wrong` lists pairs of an
    answer that must be rejected and words that the message must then contain. Where
    `fixed` is true, the right answer is one value, the same under every seed.
    """

    fixed = False

    def __init__(
        self, number, *, question, hints, solution, why="", wrong=(), name="answer",
        given="",
    ):  # fmt: skip
        self.number, self.name, self.why, self.given = number, name, why, given
        self.code = solution.strip("\n")
        self.question = Text(question)
        self.hints = tuple(hints)
        self.wrong = tuple(wrong)
        self._hints_given = 0

    @property
    def chapter(self):
        """The number of the chapter it belongs to."""
        return int(self.number.split(".")[0])

    def __repr__(self):
        return f"Exercise {self.number}\n\n{self.question}"

    def _repr_markdown_(self):
        return f"**Exercise {self.number}.** {self.question}"

    def hint(self, index=None):
        """The next hint, or, with an index from 1 on, that one."""
        # The last one is nearly the solution.
        total = len(self.hints) - _held_back()
        if index is not None:
            index = _whole("hint: index", index, f"from 1 to {total}")
        if index is None:
            self._hints_given = min(self._hints_given + 1, total)
            index = self._hints_given
        index = max(1, min(index, total))
        return Hint(self.number, index, total, self.hints[index - 1])

    def solution(self):
        """The solution, shown as a fold where there is HTML.

        In a class that is graded, where the environment variable NORMLAB_SOLUTIONS is
        ``off``, it is a sentence that says so, and the last hint is left out.
        """
        if _held_back():
            return Text(f"The solution of exercise {self.number} comes after grading.")
        return Solution(self.number, self.code, self.why)

    def check(self, answer=..., *, seed=0, seconds=SECONDS):
        """Judge an answer: a `Result`. No answer makes it raise or run on for ever.

        An answer that was not begun (``...``, `todo`, a function without a body) is
        not attempted. `seed` draws other numbers where the check draws any. `seconds`
        is the time limit; TypeError or ValueError if it is no positive number.
        """
        seed = _whole("check: seed", seed, "such as 0")
        if isinstance(seconds, bool) or not isinstance(seconds, Real):
            raise TypeError(f"check: seconds is a number such as 10, not {seconds!r}.")
        if not 0 < seconds < math.inf:
            raise ValueError(
                f"check: seconds is a positive, finite number, not {seconds!r}."
            )
        with state.kept() as replaced:
            try:
                run = limits.run(lambda: self._told(answer, seed), seconds)
            except Exception:  # the answer took away what waiting for it builds on
                run = limits.Run("raised")
        if run.state == "done":
            outcome, message, facts = run.value
            if replaced and outcome in ("correct", "wrong"):
                outcome, facts, names = "wrong", (), ", ".join(sorted(replaced))
                message = (
                    f"Your code replaced `{names}`, on which the check itself builds. "
                    "It was put back; give an answer without that."
                )
        else:
            outcome, facts = "error", ()
            message = {
                "late": f"Your code was still running after {seconds:g} seconds and "
                "was stopped. Is there a loop that never ends?",
                "stuck": f"Your code was still running after {seconds:g} seconds and "
                "could not be stopped. If the notebook stays slow, restart the kernel.",
                "interrupted": "You interrupted the check.",
                "raised": "Your code raised an error that cannot be shown.",
            }[run.state]
        if outcome == "correct":
            progress.record(self.number)
        printed = run.printed if outcome != "not attempted" else ""
        return Result(self.number, outcome, message, facts, printed)

    def _told(self, answer, seed):
        """The outcome, or which error came, in texts that run no code of the answer's.

        It is called within the time limit; what it returns is safe outside of it.
        """
        try:
            outcome, message, facts = self._outcome(answer, seed)
        except limits.TimeUp:
            raise
        except BaseException as error:  # SystemExit and MemoryError, too
            outcome, message, facts = blame.explained(error)
        facts = tuple(tuple(map(blame.text_of, fact)) for fact in facts)
        return outcome, blame.text_of(message), facts

    def _outcome(self, answer, seed):
        answer = compare.builtin(answer)
        if not_attempted(answer):
            return "not attempted", *_NOT_ATTEMPTED
        with asked_with(seed):
            found = self._judge(answer, seed)
        if found is None:
            return "correct", self.why, ()
        return ("wrong", *found) if len(found) == 2 else found

    def _judge(self, answer, seed):
        """None when right; else a sentence and facts, an outcome in front or not."""
        raise NotImplementedError("Choose one of the kinds.")


def _held_back():
    return os.environ.get("NORMLAB_SOLUTIONS", "").strip().lower() == "off"


def _whole(name, value, example):
    """A whole number, of whichever class; TypeError for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name} is a whole number, {example}, not {value!r}."
        ) from None


_NOT_ATTEMPTED = (
    "Put your answer where `...` stands and run the cell again; "
    "`.hint()` gives a first nudge.",
    (),
)


class Value(Exercise):
    """The answer is a value: a number, a shape, a text, True or False, numbers in a
    list, array or tensor, or a dict, tuple or set of those.

    `answer` decides what is compared and how: a whole number exactly, other numbers up
    to `tolerance` (relative to those beyond 1), or, where so many `decimals` are asked
    for, up to one unit of the last; see `normlab.exercises.compare`. `mistakes` pairs
    wrong values that tell what went wrong with the sentence that says so.
    """

    fixed = True

    def __init__(
        self, number, *, answer, tolerance=1e-3, decimals=None, mistakes=(), **texts
    ):
        texts.setdefault("solution", f"answer = {answer!r}")
        super().__init__(number, **texts)
        self.answer = answer
        self.allowed = {"tolerance": tolerance, "decimals": decimals}
        self.mistakes = tuple(mistakes)
        self.wrong += self.mistakes

    def _judge(self, answer, seed):
        found = compare.difference(self.answer, answer, **self.allowed)
        if found:
            for value, sentence in self.mistakes:
                if compare.difference(value, answer, **self.allowed) is None:
                    return sentence, ()
            for sentence in self._in_parts(compare.builtin(answer)):
                return sentence, ()
        return found

    def _in_parts(self, answer):
        """The sentences of the mistakes that a dict holds beside others.

        First those that most entries tell: fewer may agree by chance.
        """
        right, found = self.answer, []
        for value, sentence in self.mistakes:
            if not all(
                isinstance(given, dict) and given.keys() == right.keys()
                for given in (right, value, answer)
            ):
                continue
            wrong = [key for key in right if self._differ(right[key], value[key])]
            if not any(self._differ(value[key], answer[key]) for key in wrong):
                found.append((len(wrong), sentence))
        found.sort(key=lambda pair: -pair[0])
        return [sentence for _, sentence in found]

    def _differ(self, expected, got):
        return compare.difference(expected, got, **self.allowed) is not None


class Choice(Exercise):
    """The answer is the letter of an option, or the set of all letters that are right.

    `options` pairs each letter with its text; `mistakes` says for each wrong option,
    and where several are right for those too, what choosing (or leaving out) it misses.
    """

    fixed = True

    def __init__(self, number, *, answer, options, mistakes, question, **texts):
        listed = "\n".join(f"- **{key}**: {text}" for key, text in options.items())
        texts.setdefault("solution", f"answer = {answer!r}")
        super().__init__(number, question=f"{question}\n\n{listed}", **texts)
        self.answer, self.options, self.mistakes = answer, options, mistakes
        several = isinstance(answer, set)
        for key, sentence in mistakes.items():
            self.wrong += (({*answer} ^ {key} if several else key, sentence),)

    def _judge(self, answer, seed):
        several, letters = isinstance(self.answer, set), ", ".join(self.options)
        if several and not isinstance(answer, set | frozenset | list | tuple):
            example = "{" + ", ".join(repr(key) for key in [*self.options][:2]) + "}"
            return (
                f"Several may be right: answer with a set of letters such as "
                f"{example}, not with {compare.kind(answer)}.",
                (),
            )
        chosen = list(answer) if several else [answer]
        for key in chosen:
            if not isinstance(key, str):
                return f"Answer with a letter in quotes, one of {letters}.", ()
            if key.strip().lower() not in self.options:
                return (
                    f"There is no option {compare.show(key)}: choose of {letters}.",
                    (),
                )
        chosen = {key.strip().lower() for key in chosen}
        right = self.answer if several else {self.answer}
        for key in self.options:
            if (key in chosen) != (key in right) and key in self.mistakes:
                return self.mistakes[key], ()
        return None


class Pattern(Exercise):
    """The answer is a pattern such as ``[N] C [H W]``, compared by what it means.

    Other names for the axes are welcome, and so is another way to write the same sets.
    `mistakes` pairs patterns that tell what went wrong with the sentence that says so;
    for any other the message names what differs.
    """

    fixed = True

    def __init__(self, number, *, answer, mistakes=(), **texts):
        texts.setdefault("solution", f"answer = {answer!r}")
        super().__init__(number, **texts)
        self.answer = axes.parse(answer)
        self.mistakes = tuple(mistakes)
        self.wrong += self.mistakes

    def _judge(self, answer, seed):
        if not isinstance(answer, str | axes.Pattern):
            return (
                "Answer with a pattern in quotes, such as '[N] C', "
                f"not with {compare.kind(answer)}.",
                (),
            )
        try:
            answer = axes.parse(answer)
            meant = _example_sets(self.answer, self.answer)
            given = _example_sets(answer, self.answer)
        except (axes.PatternError, axes.ShapeError) as error:
            message = str(error)
            return message[0].upper() + message[1:], ()
        if np.array_equal(meant.set_ids, given.set_ids):
            return None
        for pattern, sentence in self.mistakes:
            other = _example_sets(axes.parse(pattern), self.answer)
            if np.array_equal(other.set_ids, given.set_ids):
                return sentence, ()
        layer = answer.layer()
        name = f"those of {layer.norm}" if layer else "those of no layer of PyTorch"
        message = f"The sets of {answer} are {name}. {_axis_to_look_at(meant, given)}"
        return message, (("on the shape " + str(meant.shape), given.sentence),)


# Sizes on which two patterns that mean different sets do differ.
_SIZES = {"N": 6, "C": 12, "H": 6, "W": 9, "L": 9, "D": 12}
_GROUPS = 3


def _example_sets(pattern, model):
    sizes = [_SIZES.get(axis, 6) for axis in model.axes if axis != "..."]
    if "..." in model.axes:
        at = model.axes.index("...")
        sizes[at:at] = [6, 9]
    return pattern.on(sizes, **({pattern.groups: _GROUPS} if pattern.groups else {}))


def _axis_to_look_at(meant, given):
    """The first axis of the tensor that two kinds of sets treat differently."""
    for i, name in enumerate(meant.pattern.axes):
        right, wrong = (_treatment(sets, i) for sets in (meant, given))
        if right != wrong:
            return f"Look at {name}: you {wrong} it."
    return "Look at how the axis is split into groups."


def _treatment(sets, i):
    axis = sets.pattern.axes[i]
    parts = [dim.reduced for dim in sets.pattern.dims if dim.axis == axis]
    if len(parts) == 2:
        return "split"
    return "average over" if parts[0] else "keep"


class Free(Exercise):
    """The answer is judged by a function of yours: None if right, else a sentence.

    `expects`, if given, is the class that the answer must be an instance of. `fixed`
    says that one value is asked for, so that no seed can make the check another.
    """

    def __init__(self, number, *, judge, expects=None, fixed=False, **texts):
        super().__init__(number, **texts)
        self.judge, self.expects, self.fixed = judge, expects, fixed

    def _judge(self, answer, seed):
        if self.expects is not None and not isinstance(answer, self.expects):
            return wrong_object(answer, self.expects), ()
        found = self.judge(answer)
        return None if found is None else (found, ())


def wrong_object(answer, expects):
    """The sentence for an answer that is no instance of `expects`."""
    name = expects.__name__
    if isinstance(answer, type) and issubclass(answer, expects):
        return (
            f"You handed in the class `{answer.__name__}`; an instance is asked for: "
            f"`{answer.__name__}(...)` with its arguments."
        )
    fix = ""
    if expects is torch.Tensor and isinstance(answer, np.ndarray | list):
        fix = " `torch.as_tensor(...)` makes a tensor of it."
    return f"A `{name}` is asked for, but this is {compare.kind(answer)}.{fix}"


class Code(Exercise):
    """The answer is code: a function, or a module's class, that computes a norm.

    `norm` is ``"batch_norm"``, ``"layer_norm"``, ``"instance_norm"``, ``"group_norm"``
    or ``"rms_norm"``; written as ``"BatchNorm"`` and so on, the answer is a class.
    `choices` go to `normlab.exercises.probes.Task`: what the code takes (`arguments`)
    and which probes to leave out (`skip`). The answer is asked the probes, and
    `normlab.exercises.diagnosis` names the mistake.
    """

    def __init__(self, number, *, norm, name, **texts_and_choices):
        fields = probes.Task.__dataclass_fields__
        choices = {k: v for k, v in texts_and_choices.items() if k in fields}
        texts = {k: v for k, v in texts_and_choices.items() if k not in fields}
        super().__init__(number, name=name, **texts)
        self.task = probes.Task.of(norm, **choices)

    def _judge(self, answer, seed):
        return diagnosis.examine(answer, self.task, seed)


def exercises_in(module):
    """The exercises that a chapter's module defines, by name, in their order."""
    found = {k: v for k, v in vars(module).items() if isinstance(v, Exercise)}
    key = {k: tuple(map(int, v.number.split("."))) for k, v in found.items()}
    return {name: found[name] for name in sorted(found, key=key.get)}


def not_attempted(answer):
    """Whether an answer, or a part of it, was not begun."""
    if answer is ... or answer is todo:
        return True
    if isinstance(answer, dict):
        return any(v is ... or v is todo for v in answer.values())
    if isinstance(answer, list | tuple):
        return any(v is ... or v is todo for v in answer)
    if isinstance(answer, type):
        methods = [vars(answer).get(name) for name in ("forward", "__call__")]
        methods = [m for m in methods if m is not None]
        if not methods and torch.nn.Module in answer.__bases__:
            return True  # a subclass of Module alone, without a forward of its own
        return any(not_attempted(method) for method in methods)
    return isinstance(answer, types.FunctionType) and _does_nothing(answer.__code__)


def _does_nothing(code):
    """Whether a function only returns None, ``...`` or `todo`, or is yet to come."""
    trivial = {"RESUME", "NOP", "PRECALL", "CALL", "PUSH_NULL", "RAISE_VARARGS"}
    trivial |= {"LOAD_CONST", "LOAD_GLOBAL", "RETURN_VALUE", "RETURN_CONST"}
    values = {None, ..., "todo", "NotImplementedError"}
    for step in dis.get_instructions(code):
        if step.opname not in trivial:
            return False
        loads = step.opname.startswith("LOAD") or step.opname == "RETURN_CONST"
        if loads and step.argval not in values:
            return False
    return True
