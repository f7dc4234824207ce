"""Where a norm is to be written by hand, PyTorch's own is not an answer."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from normlab import exercises
from normlab.exercises import Code, borrowed, diagnosis
from normlab.exercises.probes import Task
from right_norms import RIGHT

BY_HAND = [
    one
    for chapter in exercises.chapters().values()
    for one in chapter.values()
    if isinstance(one, Code) and one.task.by_hand
]


@pytest.fixture(autouse=True)
def _own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("NORMLAB_PROGRESS", str(tmp_path / "progress.json"))


X = torch.ones(2, 4, 3)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: F.layer_norm(X, (3,)), "layer_norm"),
        (lambda: torch.layer_norm(X, (3,)), "layer_norm"),
        (lambda: F.rms_norm(X, (3,)), "rms_norm"),
        (lambda: torch.rms_norm(X, (3,)), "rms_norm"),
        (lambda: F.group_norm(X, 2), "group_norm"),
        (lambda: F.instance_norm(X), "instance_norm"),
        (lambda: F.batch_norm(X, None, None, training=True), "batch_norm"),
        (lambda: nn.GroupNorm(2, 4)(X), "group_norm"),
        (lambda: nn.RMSNorm(3)(X), "rms_norm"),
        (lambda: nn.BatchNorm1d(4)(X), "batch_norm"),
        (lambda: torch.ops.aten.rms_norm(X, [3]), "rms_norm"),
        (
            lambda: torch.ops.aten.native_layer_norm.default(X, [3], None, None, 1e-5),
            "native_layer_norm",
        ),
        (
            lambda: torch.native_batch_norm(
                X, None, None, None, None, True, 0.1, 1e-5
            ),
            "native_batch_norm",
        ),
    ],
)  # fmt: skip
def test_a_call_is_seen_under_any_name(call, name):
    with borrowed.norms() as called:
        call()
    assert name in called


def test_what_only_sounds_like_a_norm_is_none():
    with borrowed.norms() as called:
        X.norm(), torch.linalg.vector_norm(X), F.normalize(X), torch.norm(X, dim=1)
        torch.renorm(X, 2, 0, 1.0)
    assert called == set()


def native(task):
    """PyTorch's own norm in the form that a task asks for."""
    if task.is_class:
        rank = len(task.shape) - 2
        by_rank = task.norm in ("batch_norm", "instance_norm")
        layer = getattr(nn, f"{task.title}{rank}d" if by_rank else task.title)
        if task.norm != "instance_norm":
            return layer

        class Tracking(layer):
            def __init__(self, num_features, eps=1e-5, momentum=0.1):
                super().__init__(num_features, eps, momentum, True, True)

        return Tracking
    norm, names = getattr(F, task.norm), inspect.signature(getattr(F, task.norm))

    def answer(x, *given):
        choices = dict(zip(task.arguments, given, strict=True))
        choices.setdefault("normalized_shape", task.normalized_shape)
        if task.norm == "layer_norm" and "normalized_shape" not in task.arguments:
            choices["normalized_shape"] = choices["weight"].shape
        return norm(x, **{k: v for k, v in choices.items() if k in names.parameters})

    return answer


def test_these_exercises_are_to_be_solved_by_hand():
    assert {"1.5", "2.6", "3.5", "4.5", "5.4", "5.5", "6.4", "7.5", "9.16"} == {
        one.number for one in BY_HAND
    }
    for one in BY_HAND:
        assert "norm of PyTorch" in one.question


@pytest.mark.parametrize("exercise", BY_HAND, ids=lambda one: one.number)
def test_the_norm_of_pytorch_is_refused_with_a_sentence(exercise):
    result = exercise.check(native(exercise.task))
    assert result.outcome == "wrong"
    assert "PyTorch computed them: your code calls its `" in result.message
    assert exercise.task.norm in dict(result.facts)["your code calls"]


def test_the_norm_by_kept_axes_may_not_borrow_one_either():
    def borrowing(x, kept, num_groups=None, center=True, eps=1e-5):
        if kept == (1,):
            return F.batch_norm(x, None, None, training=True, eps=eps)
        if num_groups is not None:
            x = x.reshape(len(x), num_groups, -1, *x.shape[2:])
            kept = (0, 1)
        dims = tuple(d for d in range(x.dim()) if d not in kept)
        if center:
            x = x - x.mean(dims, keepdim=True)
        return x * torch.rsqrt(x.square().mean(dims, keepdim=True) + eps)

    exercise = exercises.chapters()[8]["norm_by_kept_axes"]
    result = exercise.check(borrowing)
    assert result.message.startswith("Used as BatchNorm: The values are right, and Py")
    assert "norm of PyTorch" in exercise.question


@pytest.mark.parametrize(("norm", "choices", "code"), RIGHT)
def test_right_norms_by_hand_borrow_nothing(norm, choices, code):
    assert diagnosis.examine(code, Task.of(norm, by_hand=True, **choices)) is None


def test_a_mistake_comes_before_what_is_borrowed():
    def clipped(x, num_groups, weight, bias, eps):
        return F.group_norm(x, num_groups, weight, None, eps)

    sentence, _ = diagnosis.examine(clipped, Task.of("group_norm", by_hand=True))
    assert sentence == "You multiply by the weight, but never add the bias."
