"""Answers that nobody should hand in: no check raises, hangs or is won by them."""

import contextlib
import itertools
import os
import sys
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

from normlab import exercises
from normlab.exercises import Free, limits

TEXTS = {"question": "What?", "hints": ["a nudge", "nearly all"], "solution": ""}
FREE = Free("1.1", judge=lambda f: f(1), **TEXTS)
ALL = [one for chapter in exercises.chapters().values() for one in chapter.values()]


@pytest.fixture(autouse=True)
def _own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("NORMLAB_PROGRESS", str(tmp_path / "progress.json"))


class Anything:
    """Equal to everything, whatever it is asked for is itself."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __float__(self):
        return 0.0


class Liar(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, *args):
        return Anything()


class NoDistance(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.tensor(0.0)


class Leaves(nn.Module):
    def __init__(self, *args, **kwargs):
        raise SystemExit


class CallsItself(Liar):
    def forward(self, *args):
        return self(*args)


class Meta(type):
    def __getattr__(cls, name):
        raise KeyError(name)


class Endless:
    """Walks through itself for ever, in compiled code that no exception reaches."""

    def __iter__(self):
        return itertools.count()

    def __contains__(self, one):
        return True


class EndlessList(Endless, list):
    pass


class EndlessTuple(Endless, tuple):
    pass


class EndlessSet(Endless, set):
    pass


class EndlessDict(Endless, dict):
    pass


def generator(*args, **kwargs):
    yield 1


def leaves(*args, **kwargs):
    sys.exit(0)


def calls_itself(*args, **kwargs):
    return calls_itself(*args, **kwargs)


def interrupts(*args, **kwargs):
    raise KeyboardInterrupt


def an_array(*args, **kwargs):
    return np.zeros(3)


def anything(*args, **kwargs):
    return Anything()


def without_distance(x, *args, **kwargs):
    return torch.zeros(getattr(x, "shape", ())).as_subclass(NoDistance)


def empties(*args, **kwargs):
    for one in (*args, *kwargs.values()):
        if isinstance(one, torch.Tensor):
            one.data.zero_()
    return args[0] if args else None


def replaces(*args, **kwargs):
    torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
    torch.Tensor.__eq__ = lambda self, other: True
    return args[0] if args else None


def starts_threads(*args, **kwargs):
    threading.Thread(target=time.sleep, args=(0.01,), daemon=True).start()
    return args[0] if args else None


def answers():
    """Not at the top of the module, where pytest would look into them."""
    endless = []
    endless.append(endless)
    opaque = Meta("Opaque", (), {})
    return [
        None, Anything, Anything(), Liar, Liar(), Leaves, CallsItself, opaque, opaque(),
        generator, generator(), itertools.count(), leaves, calls_itself, interrupts,
        an_array, anything, without_distance, empties, replaces, starts_threads,
        lambda *args, **kwargs: None, lambda x: x, endless, {"a": endless}, 1j, b"1",
        torch.zeros(3).as_subclass(NoDistance), torch.empty(3, device="meta"),
        torch.eye(3).to_sparse(), np.array([1, None], dtype=object), "x" * 10**6,
        EndlessList([1]), EndlessTuple((1,)), EndlessSet({1}), EndlessDict(a=1),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("exercise", ALL, ids=lambda one: one.number)
def test_no_exercise_is_won_by_it(exercise):
    for answer in answers():
        result = exercise.check(answer, seconds=5)
        assert result.outcome != "correct", repr(result)
        assert result.number in result._repr_html_()
    assert torch.equal(torch.ones(2), torch.ones(2))
    assert not torch.allclose(torch.ones(2), torch.zeros(2))


# Code that catches what should end it


def catches_all(x):
    while True:
        try:
            for _ in itertools.count():
                pass
        except BaseException:
            pass


def catches_all_while_it_sleeps(x):
    while True:
        try:
            time.sleep(0.001)
        except BaseException:
            continue


def catches_all_in_three_ways(x):
    while True:
        try:
            with contextlib.suppress(BaseException):
                while True:
                    torch.ones(3) + 1
        except BaseException:
            while True:
                try:
                    sum(range(1000))
                except BaseException:
                    pass


def catches_all_by_calling_itself(x):
    try:
        while True:
            pass
    except BaseException:
        catches_all_by_calling_itself(x)


@pytest.mark.parametrize(
    "answer",
    [
        catches_all,
        catches_all_while_it_sleeps,
        catches_all_in_three_ways,
        catches_all_by_calling_itself,
    ],
)
def test_code_that_catches_everything_is_stopped_all_the_same(answer):
    tracer = sys.gettrace()
    start = time.monotonic()
    result = FREE.check(answer, seconds=0.2)
    assert time.monotonic() - start < 5
    assert "still running after 0.2 seconds and was stopped" in result.message
    assert not any(t.name == "normlab-exercise" for t in threading.enumerate())
    assert sys.gettrace() is tracer


def test_code_that_waits_in_a_call_is_said_to_go_on():
    release = threading.Event()

    def waits(x):
        release.wait(20)

    tracer = sys.gettrace()
    sys.settrace(None)  # see limits: under coverage CPython 3.11 waits
    try:
        result = FREE.check(waits, seconds=0.1)
        release.set()
        for thread in threading.enumerate():
            if thread.name == "normlab-exercise":
                thread.join(10)
    finally:
        sys.settrace(tracer)
    assert "0.1 seconds and could not be stopped" in result.message


def test_waiting_that_fails_is_an_error_of_the_answer(monkeypatch):
    # as after `del builtins.len`, which pytest itself would not survive
    def run(function, seconds):
        raise NameError("name 'len' is not defined")

    monkeypatch.setattr(limits, "run", run)
    result = FREE.check(lambda x: None)
    assert result.outcome == "error"
    assert result.message == "Your code raised an error that cannot be shown."


def test_ten_megabytes_are_not_kept():
    def loud(x):
        for _ in range(10):
            print("x" * 10**6)

    result = FREE.check(loud)
    assert result.correct
    assert len(result.printed) < 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_code_that_ends_the_process_cannot_be_caught():
    # So it is said in limits: only another process could survive it.
    child = os.fork()
    if child == 0:
        FREE.check(lambda x: os._exit(7))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
