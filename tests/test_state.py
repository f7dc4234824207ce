"""What an answer changes for all of Python is as it was when the check ends."""

import builtins
import os
import sys
import warnings

import matplotlib
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import _tensor_str, nn

from normlab.exercises import Code, Free, state

TEXTS = {"question": "What?", "hints": ["a nudge", "nearly all"], "solution": ""}
FREE = Free("1.1", judge=lambda f: f(1), **TEXTS)


@pytest.fixture(autouse=True)
def _own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("NORMLAB_PROGRESS", str(tmp_path / "progress.json"))


def setter(thing, name, value):
    return lambda: setattr(thing, name, value)


def set_cudnn():
    # torch.testing._internal, which other tests import, forbids plain assignment
    with torch.backends.__allow_nonbracketed_mutation():
        torch.backends.cudnn.deterministic = True


SWITCHES = {
    "threads": (
        torch.get_num_threads,
        lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    ),
    "deterministic": (
        torch.are_deterministic_algorithms_enabled,
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    ),
    "cudnn": (
        lambda: torch.backends.cudnn.deterministic,
        set_cudnn,
    ),
    "matmul": (
        torch.get_float32_matmul_precision,
        lambda: torch.set_float32_matmul_precision("medium"),
    ),
    "anomaly": (
        torch.is_anomaly_enabled,
        lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
    ),
    "warn always": (torch.is_warn_always_enabled, lambda: torch.set_warn_always(True)),
    "printed tensors": (
        lambda: str(torch.tensor([1 / 3, 1e5])),
        lambda: torch.set_printoptions(precision=1, sci_mode=False),
    ),
    "printed arrays": (
        lambda: str(np.array([1 / 3])),
        lambda: np.set_printoptions(precision=1),
    ),
    "numpy errors": (np.geterr, lambda: np.seterr(all="raise")),
    "matplotlib": (
        lambda: matplotlib.rcParams["figure.dpi"],
        lambda: matplotlib.rcParams.update({"figure.dpi": 7}),
    ),
    "folder": (os.getcwd, lambda: os.chdir("..")),
    "environment": (
        lambda: (os.environ.get("NORMLAB_NEW"), os.environ["HOME"]),
        lambda: os.environ.update(NORMLAB_NEW="1", HOME="elsewhere"),
    ),
    "path": (lambda: list(sys.path), lambda: sys.path.insert(0, "elsewhere")),
    "recursion": (sys.getrecursionlimit, lambda: sys.setrecursionlimit(5000)),
    "turns": (sys.getswitchinterval, lambda: sys.setswitchinterval(0.5)),
    "stdout": (lambda: sys.stdout, setter(sys, "stdout", None)),
    "stderr": (lambda: sys.stderr, setter(sys, "stderr", None)),
    "warnings": (
        lambda: list(warnings.filters),
        lambda: warnings.simplefilter("error"),
    ),
    "dtype": (
        torch.get_default_dtype,
        lambda: torch.set_default_dtype(torch.float64),
    ),
}


@pytest.mark.parametrize("ends", ["returns", "raises", "is stopped"])
@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_is_put_back(switch, ends):
    read, change = SWITCHES[switch]
    before, seen = read(), []

    def answer(x):
        change()
        seen.append(read())
        if ends == "raises":
            raise ValueError("no")
        while ends == "is stopped":
            pass

    result = FREE.check(answer, seconds=0.2 if ends == "is stopped" else 10)
    assert seen != [before]
    assert read() == before
    assert result.correct == (ends == "returns")


def test_what_was_set_before_stays_set():
    torch.set_printoptions(precision=2)
    try:
        assert FREE.check(lambda x: torch.set_printoptions(precision=9)).correct
        assert _tensor_str.PRINT_OPTS.precision == 2
    finally:
        torch.set_printoptions(profile="default")


def test_a_folder_that_is_gone_stops_no_check(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert FREE.check(lambda x: os.chdir(tmp_path)).correct


# What judging builds on

GROUP_NORM = Code("1.1", norm="group_norm", name="group_norm", **TEXTS)


def yes(*args, **kwargs):
    return True


REPLACED = [
    (torch, "allclose"),
    (torch, "equal"),
    (torch.Tensor, "__eq__"),
    (torch.Tensor, "double"),
    (torch.Tensor, "allclose"),
    (torch.Tensor, "cpu"),
    (F, "group_norm"),
    (nn.Module, "train"),
    (np, "isclose"),
    (builtins, "all"),
]


@pytest.mark.parametrize(("place", "name"), REPLACED)
def test_an_answer_that_replaces_the_tools_of_judging_is_refused(place, name):
    before = vars(place).get(name)
    original = getattr(place, name)

    def answer(x, num_groups, weight, bias, eps):
        setattr(place, name, yes if name != "group_norm" else original.__call__)
        return x

    result = GROUP_NORM.check(answer, seed=811)
    assert vars(place).get(name) is before
    assert getattr(place, name) == original
    assert result.outcome in ("wrong", "error")
    if result.outcome == "wrong":
        assert f"{name}`, on which the check itself builds" in result.message
    assert GROUP_NORM.check(F.group_norm, seed=811).correct


@pytest.mark.parametrize(
    ("place", "name"), [(torch, "allclose"), (torch.Tensor, "__eq__"), (np, "isclose")]
)
def test_tools_replaced_before_the_check_do_not_judge(place, name, monkeypatch):
    monkeypatch.setattr(place, name, yes)
    assert GROUP_NORM.check(lambda x, *_: x, seed=812).outcome == "wrong"
    assert GROUP_NORM.check(F.group_norm, seed=812).correct
    assert vars(place)[name] is yes  # it is the student's affair again


def test_what_an_import_replaces_is_not_held_against_an_answer(monkeypatch):
    # as that of torch._dynamo does
    monkeypatch.setattr(torch, "manual_seed", torch.manual_seed)
    with state.kept() as replaced:
        torch.manual_seed = yes
    assert replaced == []
    assert torch.manual_seed is yes
