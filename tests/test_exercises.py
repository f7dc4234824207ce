"""The checker, and every exercise of every chapter."""

import importlib
import itertools
import operator
import random
import re
import statistics
import sys
import threading
import time
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import normlab
from normlab import axes, exercises
from normlab.exercises import (
    Choice,
    Code,
    Free,
    Pattern,
    Value,
    checker,
    compare,
    limits,
    state,
    todo,
)
from normlab.exercises.results import OUTCOMES, Result

TEXTS = {"question": "What?", "hints": ["a nudge", "nearly all"]}


@pytest.fixture(autouse=True)
def _own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("NORMLAB_PROGRESS", str(tmp_path / "progress.json"))


# The exercises of all chapters

CHAPTERS = exercises.chapters()
ALL = [
    pytest.param(one, id=f"{one.number}-{name}")
    for chapter in CHAPTERS.values()
    for name, one in chapter.items()
]


def solved(exercise):
    """What the exercise's own solution binds to its name."""
    given = {"torch": torch, "F": F, "nn": nn, "np": np, "normlab": normlab}
    names = {**given, "axes": axes}
    exec(f"{exercise.given}\n{exercise.code}", names)
    return names[exercise.name]


@pytest.mark.parametrize("exercise", ALL)
def test_the_solution_is_found_correct(exercise):
    assert exercise.check(solved(exercise)).outcome == "correct"


@pytest.mark.parametrize("exercise", ALL)
def test_what_is_wrong_is_rejected_with_the_words_listed(exercise):
    assert exercise.wrong
    for answer, words in exercise.wrong:
        result = exercise.check(answer)
        assert result.outcome in ("wrong", "error")
        assert words
        assert words in repr(result)


@pytest.mark.parametrize("exercise", ALL)
def test_what_is_not_begun_is_not_attempted_and_says_the_same_twice(exercise):
    first, second = exercise.check(...), exercise.check(todo)
    assert first.outcome == "not attempted"
    assert repr(first) == repr(second)


@pytest.mark.parametrize("exercise", ALL)
def test_texts_are_there(exercise):
    assert len(exercise.hints) >= 2
    assert len(set(exercise.hints)) == len(exercise.hints)
    assert exercise.question.strip()
    assert exercise.code
    assert exercise.code in repr(exercise.solution())


@pytest.mark.parametrize("exercise", ALL)
def test_anything_may_be_handed_in(exercise):
    class Hostile:
        def __getattribute__(self, name):
            raise KeyError(name)

    for answer in (None, 3.5, "x", b"x", [], {}, set(), object(), Hostile(), Hostile,
                   torch.nn, torch.empty(0), np.zeros((2, 2)), lambda: 1):  # fmt: skip
        assert exercise.check(answer).outcome in ("wrong", "error")


def test_chapters_1_to_10_have_five_exercises_or_more():
    assert all(len(CHAPTERS[number]) >= 5 for number in range(1, 11))


def test_numbers_are_unique_and_tell_the_chapter():
    numbers = [one.number for chapter in CHAPTERS.values() for one in chapter.values()]
    assert len(set(numbers)) == len(numbers)
    for number, chapter in CHAPTERS.items():
        assert all(one.chapter == number for one in chapter.values())
        assert [*chapter] == [*exercises.exercises_in(
            importlib.import_module(f"normlab.exercises.chapter{number:02d}")
        )]  # fmt: skip


# Outcomes and their display

GROUP_NORM = Code("1.1", norm="group_norm", name="group_norm", solution="""
def group_norm(x, num_groups, weight, bias, eps):
    return F.group_norm(x, num_groups, weight, bias, eps)
""", **TEXTS)  # fmt: skip


def test_four_outcomes():
    exercise = Free("1.1", judge=lambda f: None if f(2) == 4 else "f(2) is 4.",
                    solution="answer = abs", **TEXTS)  # fmt: skip
    assert exercise.check(lambda x: 2 * x).outcome == "correct"
    assert exercise.check(lambda x: 3 * x).message == "f(2) is 4."
    assert exercise.check().outcome == "not attempted"
    result = exercise.check(lambda x: x / 0)
    assert result.outcome == "error"
    assert result.message == "ZeroDivisionError: division by zero"
    assert "x / 0" in dict(result.facts)["line"]
    assert exercise.check(lambda x: 2 * x).correct
    assert not result.correct


def test_word_and_sign_carry_the_outcome_without_colour():
    words = {word for _, word, _ in OUTCOMES.values()}
    signs = {sign for sign, _, _ in OUTCOMES.values()}
    assert len(words) == len(signs) == 4
    for outcome, (sign, word, _) in OUTCOMES.items():
        result = Result("1.1", outcome, "Because.")
        assert repr(result) == f"{sign} {word} (exercise 1.1). Because."
        html = result._repr_html_()
        assert f"{sign} {word}" in html
        assert "Because." in html


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in {"div", "p", "ul", "li", "em", "strong", "code", "pre",
                       "details", "summary"}  # fmt: skip
        assert not any(name.startswith("on") for name, _ in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html_is_escaped_everywhere():
    nasty = "<script>alert(1)</script>`<b>`&"
    result = Result("1.1", "error", nasty, (("<i>", nasty),), nasty)
    exercise = Value("1.1", answer=1, question=nasty, hints=[nasty, nasty], why=nasty,
                     solution=nasty)  # fmt: skip
    for shown in (result, exercise.hint(), exercise.solution()):
        html = shown._repr_html_()
        assert "<script" not in html
        assert "<b>" not in html
        assert "<script>alert(1)</script>" in Tags(html).text
    assert "<code>&lt;b&gt;</code>" in result._repr_html_()


def test_the_solution_is_a_fold():
    solution = GROUP_NORM.solution()
    assert solution._repr_html_().startswith(
        "<details><summary>Solution of exercise 1.1"
    )
    assert repr(solution).startswith("Solution of exercise 1.1\n\ndef group_norm(x")


def test_hints_come_one_after_the_other_and_the_last_stays():
    exercise = Value("1.1", answer=1, **TEXTS)
    assert repr(exercise.hint()) == "Hint 1 of 2 (exercise 1.1). a nudge"
    assert [exercise.hint().index for _ in range(3)] == [2, 2, 2]
    assert exercise.hint(1).text == "a nudge"
    assert exercise.hint(9).index == 2
    assert "Hint 1 of 2" in exercise.hint(0)._repr_html_()


def test_in_a_graded_class_solution_and_last_hint_are_held_back(monkeypatch):
    exercise = Value("1.1", answer=417, hints=["a", "b", "417"], question="What?")
    monkeypatch.setenv("NORMLAB_SOLUTIONS", "off")
    assert repr(exercise.solution()) == (
        "The solution of exercise 1.1 comes after grading."
    )
    shown = [exercise.hint() for _ in range(4)] + [exercise.hint(3)]
    assert [hint.text for hint in shown] == ["a", "b", "b", "b", "b"]
    assert "417" not in "".join(hint._repr_html_() for hint in shown)
    monkeypatch.setenv("NORMLAB_SOLUTIONS", "on")
    assert "answer = 417" in repr(exercise.solution())
    assert exercise.hint(3).text == "417"


def test_a_question_shows_as_markdown():
    exercise = Value("1.1", answer=1, **TEXTS)
    assert exercise._repr_markdown_() == "**Exercise 1.1.** What?"
    assert repr(exercise) == "Exercise 1.1\n\nWhat?"
    assert exercise.question == repr(exercise.question) == "What?"
    assert exercise.question._repr_markdown_() == "What?"


# Not attempted


def starter(x):
    """A docstring is not an answer."""
    ...


def starter_pass(x):
    pass


def starter_return(x):
    return ...


def starter_todo(x):
    return todo


def starter_raise(x):
    raise NotImplementedError


def starter_raise_call(x):
    raise NotImplementedError()


class StarterClass(nn.Module):
    pass


class StarterForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 3

    def forward(self, x): ...


def starter_half(x, num_groups, weight, bias, eps):
    mean = ...
    return x - mean


def starter_returns_it(x, num_groups, weight, bias, eps):
    n = x.shape[0]
    return todo if n else x


@pytest.mark.parametrize(
    "answer",
    [..., todo, (1, ...), [todo], {"a": ...}, starter, starter_pass, starter_return,
     starter_todo, starter_raise, starter_raise_call, StarterClass, StarterForward],
)  # fmt: skip
def test_starters_are_not_attempted(answer):
    assert checker.not_attempted(answer)
    assert Value("1.1", answer=1, **TEXTS).check(answer).outcome == "not attempted"


@pytest.mark.parametrize("answer", [starter_half, starter_returns_it])
def test_a_function_with_a_gap_left_is_not_attempted(answer):
    result = GROUP_NORM.check(answer)
    assert result.outcome == "not attempted"
    assert result.message == "There is still a `...` in your code."


@pytest.mark.parametrize("answer", [0, "", None, (), [], lambda x: 0, F.group_norm,
                                    nn.GroupNorm, nn.Module(), abs])  # fmt: skip
def test_answers_are_attempts(answer):
    assert not checker.not_attempted(answer)


def test_a_gap_that_python_stumbles_over_is_not_attempted():
    exercise = Free("1.1", judge=lambda f: f(1), solution="", **TEXTS)
    assert exercise.check(lambda x: x + ...).outcome == "not attempted"


def test_todo_says_what_it_is():
    assert repr(todo) == "todo"


# Kinds


def outcome_of(answer, given, **choices):
    return Value("1.1", answer=answer, **choices, **TEXTS).check(given)


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        (16, 16), (16, 16.0), (16, torch.tensor(16)), (16, np.float32(16)),
        (0.5, 0.5004), (-2.0, np.array(-2.0)), (True, np.bool_(True)), (False, False),
        ("C", " c "), ((4, 1), torch.Size([4, 1])), ((4, 1), (4, 1)),
        ([[1.0, 2.0]], torch.tensor([[1.0, 2.0]], requires_grad=True)),
        ([1, 2], (1, 2)), ([1, 2], np.array([1, 2])),
        ({"a": 1, "b": (2,)}, {"b": (2,), "a": 1}), ({0, 2}, [2, 0]), ({0, 2}, {0, 2}),
    ],
)  # fmt: skip
def test_right_values(answer, given):
    assert outcome_of(answer, given).outcome == "correct"


@pytest.mark.parametrize(
    ("answer", "given", "words"),
    [
        (16, 17, "is 17: too large"), (16, 15.5, "is 15.5: too small"),
        (3, -3, "is -3: too negative"), (-3, 3, "is 3: too positive"),
        (16, "16", "a text in quotes. Leave the quotes out."),
        (16, True, "should be a number, but it is True or False"),
        (16, None, "None (a function without `return` gives None)"),
        (16, [16], "a list (square brackets)"), (16, int, "the class `int`"),
        (16, float("nan"), "is nan: there was a division by 0"),
        (16, torch.ones(2), "one number, but it is a tensor of shape (2,)"),
        (16, np.bool_(True), "True or False"), (16, len, "a function"),
        (16, object(), "an object of the class `object`"), (16, np, "a Python module"),
        (0.5, 0.52, "too large"), (0.5, nn.Parameter(torch.ones(2)), "a parameter"),
        (True, 1, "is True or False; it should not be a number"),
        (True, False, "is not False"), ("C", 3, "is a text in quotes"),
        ("C", "H", "is not 'H'"),
        ((4, 1), [4, 1], "round brackets and commas such as (2, 3), but it is a list"),
        ((4,), 4, "such as (2,)"), ((4, 1), (4, 1, 1), "has 3 entries; 2 are asked"),
        ((4, 1), (4, 2), "entry 1, is 2: too large"),
        ([1, 2], 3, "a list, an array or a tensor of numbers, but it is a number"),
        ([1, 2], [1, "x"], "should hold numbers alone"),
        ([[1, 2]], [1, 2], "has the shape (2,); (1, 2) is asked for"),
        ([1, 2, 3], [1, 5, 7], "differs in 2 of 3 values; the first is at [1]"),
        ({"a": 1}, [1], "a dict with the keys 'a'"), ({"a": 1}, {}, "no entry 'a'"),
        ({"a": 1}, {"a": 2}, "The entry 'a' is 2: too large"),
        ({"a": 1}, {"a": 1, "b": 2}, "an entry 'b' too many"),
        ({0, 2}, 0, "a set, written as {1, 2}"), ({0, 2}, {0, 1}, "not contain 1"),
        ({0, 2}, {0}, "lacks something: 2 are to be found"),
    ],
)  # fmt: skip
def test_wrong_values(answer, given, words):
    result = outcome_of(answer, given)
    assert result.outcome == "wrong"
    assert words in result.message


def test_values_that_tell_the_mistake():
    exercise = Value("1.1", answer=1.25, mistakes=[(5 / 3, "That is n−1.")], **TEXTS)
    assert exercise.check(1.6667).message == "That is n−1."
    assert exercise.check(1.5).message == "Your answer is 1.5: too large."
    assert exercise.wrong == ((5 / 3, "That is n−1."),)
    assert exercise.code == "answer = 1.25"


def test_a_mistake_in_one_entry_is_told_whatever_the_others_are():
    exercise = Value(
        "1.1",
        answer={"a": 1, "b": 2, "c": 3},
        mistakes=[({"a": 9, "b": 2, "c": 3}, "a."), ({"a": 9, "b": 9, "c": 3}, "ab.")],
        **TEXTS,
    )
    told = {
        (9, 2, 3): "a.",
        (9, 2, 7): "a.",
        (9, 9, 3): "ab.",
        (9, 9, 7): "ab.",  # what more entries tell comes first
        (9, 7, 7): "a.",
    }
    for entries, sentence in told.items():
        answer = dict(zip("abc", entries, strict=True))
        assert exercise.check(answer).message == sentence
    assert exercise.check({"a": 1, "b": 9, "c": 3}).message not in ("a.", "ab.")
    assert exercise.check({"a": 9, "b": 2}).message != "a."  # an entry is missing
    assert exercise.check({"a": 1, "b": 2, "c": 3}).correct


DICTS = [
    (exercise, value)
    for chapter in CHAPTERS.values()
    for exercise in chapter.values()
    if isinstance(exercise, Value) and isinstance(exercise.answer, dict)
    for value, _ in exercise.mistakes
]


@pytest.mark.parametrize(
    ("exercise", "value"), DICTS, ids=lambda x: getattr(x, "number", "")
)
def test_every_mistake_in_a_dict_is_told_beside_another(exercise, value):
    sentence = exercise.check(value).message
    right = exercise.answer
    alike = [key for key in right if value[key] == right[key]]
    for key in alike:
        told = exercise.check({**value, key: 12345.678}).message
        assert told in [text for _, text in exercise.mistakes]
        assert told == sentence or len(alike) < len(right) - 1


def test_values_are_shown_short_and_rounded():
    assert compare.show(torch.tensor(0.1)) == compare.show(np.float32(0.1)) == "0.1"
    assert compare.show(torch.ones(2, 3)) == "a tensor of shape (2, 3)"
    assert compare.show(np.ones(2)) == "an array of shape (2,)"
    assert len(compare.show("x" * 1000)) < 70
    assert len(compare.show(list(range(1000)))) < 70


PATTERN = Pattern(
    "1.1", answer="N (G [C/G]) [H W]", mistakes=[("N C [H W]", "Alone.")], **TEXTS
)


@pytest.mark.parametrize(
    "given",
    ["N (G [C/G]) [H W]", "N (G [C/G]) [H] [W]", "B (K [F/K]) [Y X]",
     "N (G [C/G]) [...]", axes.parse("N (G [C/G]) [H W]")],
)  # fmt: skip
def test_patterns_of_the_same_meaning(given):
    assert PATTERN.check(given).outcome == "correct"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("N C [H W]", "Alone."),
        ("B F [Y X]", "Alone."),
        ("[N] C [H W]", "those of BatchNorm. Look at N: you average over it."),
        ("N [C H W]", "those of LayerNorm. Look at C: you average over it."),
        ("N (G [C/G]) H [W]", "no layer of PyTorch. Look at H: you keep it."),
        ("N ([C/G] G) [H W]", "Look at how the axis is split into groups."),
        ("(G [N/G]) C [H W]", "Look at N: you split it."),
        ("[...]", "Look at N: you average over it."),
        ("N ...", "Look at C: you keep it."),
        ("N C [H", "this [ is never closed"),
        ("N [D]", "The pattern names 2 axes"),
        (("N",), "Answer with a pattern in quotes, such as '[N] C', not with a tuple"),
    ],
)
def test_patterns_of_another_meaning(given, words):
    result = PATTERN.check(given)
    assert result.outcome == "wrong"
    assert words in result.message


def test_patterns_with_any_number_of_axes():
    exercise = Pattern("1.1", answer="N C [...]", **TEXTS)
    assert exercise.check("N C [H W]").correct
    assert "Look at C" in exercise.check("N [C ...]").message


ONE = Choice(
    "1.1",
    options={"a": "yes", "b": "no"},
    answer="b",
    mistakes={"a": "Not a."},
    **TEXTS,
)
SEVERAL = Choice(
    "1.1", options={"a": "1", "b": "2", "c": "3"}, answer={"a", "c"},
    mistakes={"a": "a holds.", "b": "b fails.", "c": "c holds."}, **TEXTS,
)  # fmt: skip


@pytest.mark.parametrize(
    ("exercise", "given", "words"),
    [
        (ONE, "a", "Not a."), (ONE, "q", "no option 'q': choose of a, b"),
        (ONE, 1, "a letter in quotes, one of a, b"), (SEVERAL, {"a"}, "c holds."),
        (SEVERAL, {"a", "b", "c"}, "b fails."), (SEVERAL, ["c"], "a holds."),
        (SEVERAL, "a", "a set of letters such as {'a', 'b'}, not with a text"),
    ],
)  # fmt: skip
def test_wrong_choices(exercise, given, words):
    result = exercise.check(given)
    assert result.outcome == "wrong"
    assert words in result.message


def test_right_choices():
    assert ONE.check("b").correct
    assert ONE.check(" B ").correct
    assert SEVERAL.check({"a", "c"}).correct
    assert SEVERAL.check(["C", "a"]).correct
    assert "- **a**: yes" in ONE.question
    for exercise, (answer, words) in [(o, w) for o in (ONE, SEVERAL) for w in o.wrong]:
        assert exercise.check(answer).message == words


def test_a_wrong_object_gets_a_sentence():
    layer = Free("1.1", judge=lambda x: None, expects=nn.Module, solution="", **TEXTS)
    assert layer.check(nn.Identity()).correct
    assert (
        "handed in the class `Identity`; an instance"
        in layer.check(nn.Identity).message
    )
    assert "A `Module` is asked for, but this is a number." in layer.check(3).message
    tensor = Free(
        "1.1", judge=lambda x: None, expects=torch.Tensor, solution="", **TEXTS
    )
    message = tensor.check(np.zeros(2)).message
    assert message.startswith("A `Tensor` is asked for, but this is a NumPy array.")
    assert "torch.as_tensor" in message


def test_code_is_named_by_its_mistake():
    def unbiased(x, num_groups, weight, bias, eps):
        rows = x.reshape(len(x), num_groups, -1)
        y = (rows - rows.mean(2, keepdim=True)) / (
            rows.var(2, keepdim=True) + eps
        ).sqrt()
        y = y.reshape(x.shape)
        return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)

    result = GROUP_NORM.check(unbiased)
    assert "you divided the variance by m−1" in result.message
    assert dict(result.facts)["got"] == "0.9667"  # 29 / 30
    assert GROUP_NORM.check(F.group_norm, seed=5).correct


def test_code_that_raises_names_the_line():
    def broken(x, num_groups, weight, bias, eps):
        return x.reshape(x.shape[0], num_groups, 7)  # the broken line

    result = GROUP_NORM.check(broken)
    assert result.outcome == "error"
    assert result.message.startswith("RuntimeError: shape '[4, 2, 7]' is invalid")
    assert "# the broken line" in dict(result.facts)["line"]


def test_an_error_that_a_mistake_explains_is_named_too():
    exercise = Code("1.1", norm="layer_norm", name="f", arguments=("eps",),
                    solution="", **TEXTS)  # fmt: skip
    result = exercise.check(lambda x, eps: (x - x.mean(-1)) / (x.var(-1) + eps).sqrt())
    assert result.outcome == "error"
    assert "keepdim=True" in result.message
    assert "RuntimeError" in result.message


def test_an_answer_that_the_check_cannot_use_is_wrong():
    exercise = Free("1.1", judge=partial(operator.add, 1), solution="", **TEXTS)
    result = exercise.check("text")
    assert result.outcome == "wrong"
    assert result.message.startswith(
        "The check cannot work with this answer. TypeError"
    )


def test_recursion_without_end():
    def forever(x):
        return forever(x)

    exercise = Free("1.1", judge=lambda f: f(1), solution="", **TEXTS)
    assert "calls itself for ever" in exercise.check(forever).message


def test_an_error_without_words():
    def silent(x):
        raise ValueError

    exercise = Free("1.1", judge=lambda f: f(1), solution="", **TEXTS)
    assert exercise.check(silent).message == "ValueError: no message"


def test_leaving_python_does_not_leave_the_check():
    exercise = Free("1.1", judge=lambda f: f(1), solution="", **TEXTS)
    assert exercise.check(lambda x: exit(3)).outcome == "error"


# Limits


def forever(x):
    while True:
        try:
            for _ in itertools.count():
                pass
        except Exception:
            pass


def test_an_endless_loop_is_stopped():
    exercise = Free("1.1", judge=lambda f: f(1), solution="", **TEXTS)
    start = time.monotonic()
    result = exercise.check(forever, seconds=0.2)
    assert time.monotonic() - start < 5
    assert result.outcome == "error"
    assert "still running after 0.2 seconds" in result.message
    assert not any(t.name == "normlab-exercise" for t in threading.enumerate())


@pytest.mark.parametrize("ends", [True, False])
def test_an_import_is_let_finish_if_it_does(ends, tmp_path, monkeypatch):
    name = f"slow_module_that_{'ends' if ends else 'stays'}"
    loop = "for _ in range(20)" if ends else "while True"
    (tmp_path / f"{name}.py").write_text(
        f"import time\n{loop}:\n    time.sleep(0.05)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(limits, "IMPORT", 30 if ends else 0.3)
    exercise = Free("1.1", judge=lambda f: f(), solution="", **TEXTS)
    start = time.monotonic()
    result = exercise.check(lambda: importlib.import_module(name), seconds=0.2)
    assert "still running after 0.2 seconds" in result.message
    assert time.monotonic() - start < 10
    module = sys.modules.pop(name, None)
    assert (module is not None and module.whole) == ends


def test_code_that_will_not_be_stopped_is_left_behind():
    release = threading.Event()

    def stubborn(x):
        release.wait(20)  # one call that no exception reaches

    exercise = Free("1.1", judge=lambda f: f(1), solution="", **TEXTS)
    tracer = sys.gettrace()
    sys.settrace(None)  # see limits: under coverage CPython 3.11 waits
    try:
        start = time.monotonic()
        result = exercise.check(stubborn, seconds=0.1)
        spent = time.monotonic() - start
        release.set()
        for thread in threading.enumerate():
            if thread.name == "normlab-exercise":
                thread.join(10)
    finally:
        sys.settrace(tracer)
    assert spent < 5
    assert result.outcome == "error"


def test_an_interrupt_ends_the_check(monkeypatch):
    def interrupt(finished, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(limits, "_wait", interrupt)
    exercise = Free("1.1", judge=lambda f: f(1), solution="", **TEXTS)
    result = exercise.check(forever)
    assert result.outcome == "error"
    assert result.message == "You interrupted the check."


def test_what_is_printed_is_held_back_and_shortened(capsys):
    def loud(x):
        for i in range(20000):
            print(f"line {i} " + "x" * 500)
        return 4

    exercise = Free("1.1", judge=lambda f: None if f(2) == 5 else "No.", solution="",
                    **TEXTS)  # fmt: skip
    result = exercise.check(loud)
    assert capsys.readouterr().out == ""
    assert result.printed.startswith("line 0 x")
    assert result.printed.endswith("(and more)")
    assert len(result.printed) < 1000
    assert "    | line 0 x" in repr(result)
    assert "Your code printed:" in result._repr_html_()


def test_many_short_lines_are_shortened():
    exercise = Free("1.1", judge=lambda f: f(2), solution="", **TEXTS)
    result = exercise.check(lambda x: [print(i) for i in range(50)] and "No.")
    assert result.printed.splitlines() == [*map(str, range(10)), "(and more)"]


def test_warnings_of_the_answer_do_not_come_through():
    def warns(x):
        import warnings

        warnings.warn("look", stacklevel=1)
        return None

    exercise = Free("1.1", judge=lambda f: f(2), solution="", **TEXTS)
    assert exercise.check(warns).correct


def test_a_check_leaves_random_numbers_and_gradients_as_they_were():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with torch.no_grad():  # the thread that checks records gradients all the same
        assert GROUP_NORM.check(
            lambda x, g, w, b, eps: F.group_norm(x, g, w, b, eps) + 0 * torch.rand(())
        ).correct
    assert torch.equal(before, torch.get_rng_state())


class Unspeakable(Exception):
    __str__ = __repr__ = lambda self: 1 / 0


class Leaving(BaseException):
    def __str__(self):
        raise SystemExit


class TextOfItsOwn(str):
    def _fail(self, *args):
        raise ValueError("my own")

    splitlines = strip = __getitem__ = __format__ = __add__ = _fail


class Wordy(Exception):
    def __str__(self):
        return TextOfItsOwn("words")


def raising(error):
    def answer(*args, **kwargs):
        raise error

    return answer


FREE = Free("1.1", judge=lambda f: f(1), solution="", **TEXTS)


@pytest.mark.parametrize("exercise", [FREE, GROUP_NORM])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Unspeakable(), "Unspeakable: its text cannot be read"),
        (Leaving(), "Leaving: its text cannot be read"),
        (Wordy(), "Wordy: words"),
    ],
)
def test_an_error_whose_text_is_code_of_its_own(exercise, error, message):
    result = exercise.check(raising(error))
    assert (result.outcome, result.message) == ("error", message)


def test_an_error_that_hides_even_its_name():
    class Meta(type):
        __name__ = property(lambda cls: 1 / 0)

    class Nameless(Exception, metaclass=Meta):
        pass

    result = FREE.check(raising(Nameless()))
    assert result.outcome == "error"
    assert result.message == "Your code raised an error that cannot be shown."


@pytest.mark.parametrize("exercise", [FREE, GROUP_NORM])
def test_the_text_of_an_error_is_read_within_the_limit(exercise):
    class Slow(Exception):
        def __str__(self):
            for _ in range(300):
                time.sleep(0.05)
            return "at last"

    start = time.monotonic()
    result = exercise.check(raising(Slow()), seconds=0.5)
    assert time.monotonic() - start < 5
    assert "still running after 0.5 seconds" in result.message


def test_texts_of_answers_are_plain_outside_of_the_limit():
    judges = {
        "message": lambda answer: answer,
        "printed": lambda answer: sys.stdout.write(answer) and "No.",
    }
    for place, judge in judges.items():
        exercise = Free("1.1", judge=judge, solution="", **TEXTS)
        result = exercise.check(TextOfItsOwn("words"))
        assert result.outcome == "wrong"
        assert type(getattr(result, place)) is str
        assert getattr(result, place) == "words"
        assert "words" in repr(result)
        assert "words" in result._repr_html_()


@pytest.fixture
def own_state():
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)


def random_numbers():
    return torch.rand(1).item(), np.random.rand(), random.random()  # noqa: NPY002


@pytest.mark.parametrize("ends", ["returns", "raises", "is stopped"])
def test_what_an_answer_sets_for_all_of_torch_is_put_back(ends, own_state):
    def sets_all(x, num_groups, weight, bias, eps):
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        if ends == "raises":
            raise ValueError("no")
        while ends == "is stopped":
            pass
        return F.group_norm(x, num_groups, weight, bias, eps)

    states = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    expected = random_numbers()
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    random.setstate(states[2])
    GROUP_NORM.check(sets_all, seed=77, seconds=2)
    assert random_numbers() == expected
    assert torch.get_default_dtype() == torch.float32
    assert torch.get_default_device() == torch.device("cpu")
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("seed", "change"),
    [
        (4711, partial(torch.set_default_dtype, torch.float64)),
        (4712, partial(torch.set_grad_enabled, False)),
        (4713, partial(torch.set_default_device, "meta")),
    ],
)
def test_what_an_answer_sets_does_not_reach_the_next_check(seed, change, own_state):
    def sets(x, num_groups, weight, bias, eps):
        change()
        return x

    def detached(x, num_groups, weight, bias, eps):
        groups = x.reshape(len(x), num_groups, -1).detach()
        shape = (len(x), num_groups, 1)
        mean, var = groups.mean(-1).view(shape), groups.var(-1, correction=0)
        y = x.reshape(groups.shape) - mean
        y = (y / (var.view(shape) + eps).sqrt()).view(x.shape)
        return y * weight.view(-1, 1, 1) + bias.view(-1, 1, 1)

    # a seed of its own: what is expected is computed once for each
    assert GROUP_NORM.check(sets, seed=seed).outcome == "wrong"
    assert GROUP_NORM.check(F.group_norm, seed=seed).correct
    after, elsewhere = (GROUP_NORM.check(detached, seed=s) for s in (seed, 4710))
    assert after.outcome == "wrong"
    assert dict(after.facts)["asked"] == "the gradient of the input"
    assert after.message == elsewhere.message


@pytest.mark.parametrize("before", ["cpu", "meta"])
def test_each_question_puts_the_default_device_back(before, own_state):
    torch.set_default_device(before)
    with state.defaults():
        torch.set_default_device("meta" if before == "cpu" else "cpu")
    assert torch.get_default_device() == torch.device(before)


def test_a_right_answer_is_right_whatever_is_set_for_all_of_torch(own_state):
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    with torch.no_grad():
        result = GROUP_NORM.check(F.group_norm, seed=4714)
    assert result.correct, result
    assert torch.get_default_dtype() == torch.float64
    assert torch.get_default_device() == torch.device("meta")


@pytest.mark.parametrize(
    ("choices", "error", "sentence"),
    [
        ({"seconds": "a"}, TypeError, "seconds is a number such as 10, not 'a'."),
        ({"seconds": None}, TypeError, "seconds is a number such as 10, not None."),
        ({"seconds": True}, TypeError, "seconds is a number such as 10, not True."),
        ({"seconds": float("nan")}, ValueError, "a positive, finite number, not nan."),
        ({"seconds": float("inf")}, ValueError, "a positive, finite number, not inf."),
        ({"seconds": -1}, ValueError, "a positive, finite number, not -1."),
        ({"seconds": 0}, ValueError, "a positive, finite number, not 0."),
        ({"seed": "a"}, TypeError, "seed is a whole number, such as 0, not 'a'."),
        ({"seed": 0.5}, TypeError, "seed is a whole number, such as 0, not 0.5."),
    ],
)
def test_a_check_says_what_it_cannot_work_with(choices, error, sentence):
    with pytest.raises(error, match=r"^check: ") as raised:
        FREE.check(1, **choices)
    assert str(raised.value).endswith(sentence)


@pytest.mark.parametrize("index", ["a", 1.5, [1]])
def test_a_hint_without_a_whole_number_is_refused(index):
    with pytest.raises(TypeError) as raised:
        FREE.hint(index)
    sentence = f"hint: index is a whole number, from 1 to 2, not {index!r}."
    assert str(raised.value) == sentence
    assert FREE.hint(np.int64(2)).text == "nearly all"


def test_answers_are_never_evaluated_from_text(tmp_path):
    trap = tmp_path / "trap"
    text = f"__import__('pathlib').Path({str(trap)!r}).touch()"
    for exercise in itertools.chain(*(c.values() for c in CHAPTERS.values())):
        exercise.check(text)
    assert not trap.exists()


def test_a_check_answers_in_300_ms():
    def wrong(x, num_groups, weight, bias, eps):
        return F.group_norm(x, 1, weight, bias, eps)

    spent = []
    for answer in (wrong, F.group_norm) * 4:
        start = time.process_time()
        GROUP_NORM.check(answer)
        spent.append(time.process_time() - start)
    assert statistics.median(spent) < 0.3


def test_the_median_check_of_all_solutions_takes_less_than_300_ms():
    spent = []
    for chapter in CHAPTERS.values():
        for exercise in chapter.values():
            answer = solved(exercise)
            start = time.process_time()
            assert exercise.check(answer).correct
            spent.append(time.process_time() - start)
    assert statistics.median(spent) < 0.3


def test_the_docstring_shows_the_form_of_a_chapter():
    shown = re.findall(r"^- `(\w+)`:", exercises.__doc__, re.M)
    assert set(shown) == {"Pattern", "Value", "Choice", "Code", "Free"}


def test_an_exercise_of_no_kind_cannot_judge():
    exercise = exercises.Exercise("1.1", solution="", **TEXTS)
    assert exercise.check(3).outcome == "wrong"


def test_a_number_of_groups_may_be_an_integer_of_numpy():
    exercise = exercises.chapters()[6]["number_of_groups"]
    names = {}
    exec(exercise.code, names)
    right = names[exercise.name]

    def num_groups_for(channels, least):
        return np.int64(right(channels, least))

    assert exercise.check(num_groups_for).correct
    assert not exercise.check(lambda channels, least: np.bool_(True)).correct
