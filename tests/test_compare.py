"""How far an answer may be off, and what no class of an answer's own can change."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from normlab.exercises import Value, chapters, compare

TEXTS = {"question": "What?", "hints": ["a nudge", "nearly all"]}


def judged(expected, given, **choices):
    exercise = Value("1.1", answer=expected, **choices, **TEXTS)
    outcome, *_ = exercise._told(given, 0)
    return outcome == "correct"


@pytest.mark.parametrize(
    ("expected", "given", "right"),
    [
        # a whole number is exact, but for the noise of floating point
        (196, 196, True),
        (196, 5 * 39.2, True),
        (196, 0.1 * 1960 + 3e-14, True),
        (196, 197, False),
        (196, 195.99, False),
        (7192, 7193, False),
        (10**12, 10**12 + 1, False),
        (0, 1e-7, True),
        (0, 0.01, False),
        ([1000, 2000], [1000, 2001], False),
        ([1000, 2000], torch.tensor([1000.0, 2000.0]), True),
        ((4, 1), (4, 2), False),
        # the tolerance is absolute up to 1, relative beyond, the same in lists
        (0.5, 0.5009, True),
        (0.5, 0.5011, False),
        (2000.0, 2001.9, True),
        (2000.0, 2002.1, False),
        ([0.5, 2000.0], [0.5009, 2001.9], True),
        ([0.5, 2000.0], [0.5011, 2000.0], False),
        ([0.5, 2000.0], [0.5, 2002.1], False),
        ([0.5], [float("nan")], False),
    ],
)
def test_how_far_an_answer_may_be_off(expected, given, right):
    assert judged(expected, given) == right


@pytest.mark.parametrize(
    ("given", "right"),
    # 7.3167...: to two decimals 7.32, cut off 7.31
    [(7.32, True), (7.31, True), (7.3167, True), (7.33, False), (7.3, False)],
)
@pytest.mark.parametrize("wrap", [float, lambda x: [x], lambda x: {"mean": x}])
def test_asked_decimals_may_be_rounded_or_cut_off(wrap, given, right):
    expected = wrap(10 - 6 / 5**0.5)
    assert judged(expected, wrap(given), decimals=2) == right


def test_two_neighbours_at_the_last_place_are_never_both_right_besides_the_two():
    exact = 1 / 3
    right = [k / 1000 for k in range(300, 360) if judged(exact, k / 1000, decimals=3)]
    assert right == [0.333, 0.334]


ASKED = {"two decimals": 2, "three decimals": 3, "four decimals": 4, "four digits": 4}


@pytest.mark.parametrize(
    "exercise",
    [
        pytest.param(one, id=one.number)
        for chapter in chapters().values()
        for one in chapter.values()
        if isinstance(one, Value) and any(a in one.question.lower() for a in ASKED)
    ],
)
def test_an_exercise_that_asks_for_decimals_judges_by_them(exercise):
    (asked,) = (n for a, n in ASKED.items() if a in exercise.question.lower())
    assert exercise.allowed["decimals"] == asked


def rounded(value, places):
    if isinstance(value, dict):
        return {key: rounded(one, places) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one, places) for one in value]
    return round(value, places)


def test_the_solutions_rounded_as_asked_are_right():
    count = 0
    for chapter in chapters().values():
        for exercise in chapter.values():
            places = getattr(exercise, "allowed", {}).get("decimals")
            if places:
                given = rounded(exercise.answer, places)
                assert exercise._told(given, 0)[0] == "correct"
                count += 1
    assert count >= 8


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ([torch.tensor(1.5, requires_grad=True), torch.tensor(2.5)], True),
        (np.array([1.5, 2.5], dtype=np.float32), True),
        ([np.float64(1.5), Fraction(5, 2)], False),
        (["1.5", "2.5"], False),
        (np.array([1.5 + 1j, 2.5]), False),
        (torch.tensor([1.5 + 1j, 2.5]), False),
    ],
)
def test_numbers_alone_count(given, right):
    assert judged([1.5, 2.5], given) == right


class Yes:
    """Equal to everything, and no distance from anything."""

    def _yes(self, *_):
        return True

    def _nothing(self, *_):
        return 0

    __eq__ = __le__ = __ge__ = _yes
    __hash__ = _nothing
    __sub__ = __rsub__ = __abs__ = _nothing


class Int(Yes, int):
    pass


class Float(Yes, float):
    pass


class Text(Yes, str):
    def casefold(self):
        return self

    def split(self):
        return self


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        (3, Int(4)),
        (3.5, Float(4.5)),
        ("C", Text("H")),
        ((3, 4), (Int(4), Int(4))),
        ([3.0, 4.0], [Float(0), Float(0)]),
        ({"a": 3}, {"a": Int(5)}),
        ({1, 2}, {Int(3), Int(4)}),
        (True, Yes()),
    ],
)
def test_a_class_that_equals_everything_is_not_right(expected, given):
    assert not judged(expected, given)


def test_the_difference_may_be_asked_for_alone():
    assert compare.difference(0.5, 0.5004) is None
    assert compare.difference(0.5, 0.52) == ("Your answer is 0.52: too large.", ())
