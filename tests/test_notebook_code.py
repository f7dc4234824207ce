"""The norms that the chapters write from scratch, against PyTorch.

Taken from the notebooks' cells: imports and definitions, nothing else, is executed.
"""

import ast
import functools
import re
import types
from pathlib import Path

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from normlab.exercises import diagnosis
from normlab.exercises.checker import not_attempted
from normlab.exercises.probes import Task
from notebook_checks import FOLDER

CELL = "a notebook's cell"


@functools.cache
def chapter(number):
    """The namespace of a chapter: what it imports and defines."""
    (path,) = FOLDER.glob(f"{number:02d}_*.ipynb")
    namespace = {"__name__": CELL, "device": torch.device("cpu")}
    wanted = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and "%pip" not in cell.source:
            tree = ast.parse(cell.source)
            tree.body = [node for node in tree.body if isinstance(node, wanted)]
            exec(compile(tree, str(path), "exec"), namespace)
    return namespace


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()


def values_and_gradients(function, *tensors):
    """The output, and the gradients of a weighted sum of it."""
    tensors = [tensor.clone().requires_grad_() for tensor in tensors]
    y = function(*tensors)
    (y.sin() * draw(*y.shape, seed=9)).sum().backward()
    return [y, *(tensor.grad for tensor in tensors)]


def assert_same(ours, theirs, tolerance=1e-10):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


X, W, B = draw(4, 6, 3, 5), draw(6, seed=1), draw(6, seed=2)
X2, W2, B2 = draw(4, 3, 6), draw(3, 6, seed=1), draw(3, 6, seed=2)

# chapter, ours (made from the chapter's names), PyTorch's, tensors
CASES = {
    "0 normalize": (0, lambda c: lambda x: c["normalize"](x, (0, 2, 3)),
                    lambda x: F.batch_norm(x, None, None, training=True), [X]),
    "3 batch_norm_by_hand": (
        3, lambda c: lambda x, w, b: c["batch_norm_by_hand"](
            x, weight=w, bias=b, training=True),
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [X, W, B]),
    "4 layer_norm_by_hand": (
        4, lambda c: lambda x, w, b: c["layer_norm_by_hand"](x, (3, 6), w, b),
        lambda x, w, b: F.layer_norm(x, (3, 6), w, b), [X2, W2, B2]),
    "5 instance_norm_by_hand": (
        5, lambda c: lambda x, w, b: c["instance_norm_by_hand"](x, weight=w, bias=b),
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [X, W, B]),
    "6 group_norm": (
        6, lambda c: lambda x, w, b: c["group_norm"](x, 3, w, b),
        lambda x, w, b: F.group_norm(x, 3, w, b), [X, W, B]),
    "7 rms_norm": (
        7, lambda c: lambda x, w: c["rms_norm"](x, (3, 6), w),
        lambda x, w: F.rms_norm(x, (3, 6), w), [X2, W2]),
    "8 normalize": (8, lambda c: lambda x: c["normalize"](x, (-1,)),
                    lambda x: F.layer_norm(x, (6,)), [X2]),
    "8 normalize without mean": (
        8, lambda c: lambda x: c["normalize"](x, (-1,), center=False),
        lambda x: F.rms_norm(x, (6,), eps=1e-5), [X2]),
    "8 norm, BatchNorm": (8, lambda c: lambda x: c["norm"](x, "[N] C [H W]"),
                          lambda x: F.batch_norm(x, None, None, training=True), [X]),
    "8 norm, GroupNorm": (8, lambda c: lambda x: c["norm"](x, "N (G [C/G]) [H W]", G=3),
                          lambda x: F.group_norm(x, 3), [X]),
    "8 norm, InstanceNorm": (8, lambda c: lambda x: c["norm"](x, "N C [H W]"),
                             F.instance_norm, [X]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_functions_agree_in_value_and_gradient(case):
    number, ours, theirs, tensors = CASES[case]
    ours = values_and_gradients(ours(chapter(number)), *tensors)
    assert_same(ours, values_and_gradients(theirs, *tensors))


CLASSES = {
    "3 MyBatchNorm": (3, "MyBatchNorm", (6,), nn.BatchNorm2d, X),
    "4 MyLayerNorm": (4, "MyLayerNorm", ((3, 6),), nn.LayerNorm, X2),
    "5 MyInstanceNorm": (5, "MyInstanceNorm", (6, True, True),
                         lambda *a: nn.InstanceNorm2d(6, affine=True,
                                                      track_running_stats=True), X),
    "6 GroupNorm": (6, "GroupNorm", (3, 6), nn.GroupNorm, X),
    "7 RMSNorm": (7, "RMSNorm", ((3, 6),), nn.RMSNorm, X2),
}  # fmt: skip


@pytest.mark.parametrize("case", CLASSES)
def test_modules_agree_in_steps_checkpoint_and_eval(case):
    number, name, arguments, torch_class, x = CLASSES[case]
    ours, theirs = chapter(number)[name](*arguments), torch_class(*arguments)
    ours, theirs = ours.double(), theirs.double()
    with torch.no_grad():
        for seed, parameter in enumerate(ours.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=seed))
    theirs.load_state_dict(ours.state_dict(), strict=True)
    for step in range(3):
        assert_same(*(values_and_gradients(m, x + step) for m in (ours, theirs)))
        grads = [[p.grad for p in m.parameters()] for m in (ours, theirs)]
        assert_same(*grads)
    assert_same([*ours.state_dict().values()], [*theirs.state_dict().values()])
    assert_same([ours.eval()(x)], [theirs.eval()(x)])


# The probes ask more: other eps, other layouts, large means, one value to a set.
PROBED = [
    (3, "batch_norm_by_hand", "batch_norm", {}),
    (3, "MyBatchNorm", "BatchNorm", {}),
    (4, "layer_norm_by_hand", "layer_norm", {}),
    (4, "MyLayerNorm", "LayerNorm", {}),
    (5, "instance_norm_by_hand", "instance_norm", {}),
    (5, "MyInstanceNorm", "InstanceNorm", {"arguments": ("weight", "bias")}),
    (6, "group_norm", "group_norm", {}),
    (6, "GroupNorm", "GroupNorm", {}),
    (7, "rms_norm", "rms_norm", {"skip": ()}),
    (7, "RMSNorm", "RMSNorm", {"skip": ()}),
]


@pytest.mark.parametrize(("number", "name", "norm", "choices"), PROBED)
def test_no_probe_finds_a_mistake(number, name, norm, choices):
    code = chapter(number)[name]
    assert diagnosis.examine(code, Task.of(norm, **choices)) is None


def test_numpy_normalize_of_chapter_2():
    normalize, x = chapter(2)["normalize"], X.numpy()
    gamma, beta = W.view(1, 6, 1, 1).numpy(), B.view(1, 6, 1, 1).numpy()
    batch = normalize(x, (0, 2, 3), gamma, beta)
    expected = F.batch_norm(X, None, None, W, B, training=True)
    assert_same([torch.from_numpy(batch)], [expected])
    layer = normalize(x, (1, 2, 3), 1.0, 0.0)
    assert_same([torch.from_numpy(layer)], [F.layer_norm(X, (6, 3, 5))])


def test_synced_statistics_of_chapter_2_are_those_of_the_whole():
    values = draw(12).float()
    ours = chapter(2)["synced_statistics"](values.split([2, 7, 3]))
    whole = torch.stack([values.mean(), values.var(correction=0)])
    assert_same([ours], [whole], tolerance=1e-6)


def test_frozen_norm_of_chapter_2_stays_in_eval():
    norm = nn.Sequential(chapter(2)["FrozenNorm"](6)).train()
    x = draw(8, 6).float()
    norm(x)
    assert torch.equal(norm[0].running_mean, torch.zeros(6))
    assert_same([norm(x)], [nn.BatchNorm1d(6).eval()(x)], tolerance=1e-6)


@torch.no_grad()
def test_folds_of_chapters_3_and_6_do_the_work_of_both_layers():
    conv, norm = nn.Conv2d(3, 8, 3).double(), nn.BatchNorm2d(8).double()
    for seed, tensor in enumerate((norm.running_mean, norm.weight, norm.bias)):
        tensor.copy_(draw(8, seed=seed))
    norm.running_var.copy_(draw(8, seed=5).square() + 0.5)
    x = draw(2, 3, 9, 9)
    expected = norm.eval()(conv(x))
    assert_same([chapter(3)["fold"](conv, norm)(x)], [expected])
    norm.weight.fill_(1), norm.bias.fill_(0)
    folded = chapter(6)["fold"](conv, norm.running_mean, norm.running_var)
    assert_same([folded(x)], [norm(conv(x))])


def test_adain_of_chapter_5_takes_the_style():
    content, style = draw(2, 3, 6, 6), 3 * draw(2, 3, 5, 5, seed=1) + 2
    ours = chapter(5)["adain"](content, style)
    dims = (2, 3)
    assert_same([ours.mean(dims)], [style.mean(dims)])
    stds = [v.std(dims, correction=0) for v in (ours, style)]
    assert_same(stds[:1], stds[1:], tolerance=1e-4)  # eps keeps them apart


def test_one_pass_variance_of_chapter_4_is_the_wrong_one():
    one_pass = chapter(4)["one_pass"]
    x = draw(64)
    assert_same([one_pass(x)], [F.layer_norm(x, (64,))])
    far = (x + 1e4).float()
    assert (one_pass(far) - F.layer_norm(far, (64,))).abs().max() > 0.1 or (
        one_pass(far).isnan().any()
    )


def test_rms_norms_of_the_language_models_in_chapter_7():
    names, x, w = chapter(7), draw(4, 6).float(), draw(6, seed=1).float()
    exact = F.rms_norm(x, (6,), w, eps=1e-6)
    gemma = F.rms_norm(x, (6,), 1 + w, eps=1e-6)
    for name, expected in {
        "t5_norm": exact,
        "llama_norm": exact,
        "gemma_norm": gemma,
    }.items():
        assert_same([names[name](x, w)], [expected], tolerance=1e-6)
    narrow = x.bfloat16()
    assert names["t5_norm"](narrow, w).dtype == torch.float32
    assert names["llama_norm"](narrow, w.bfloat16()).dtype == torch.bfloat16
    assert names["gemma_norm"](narrow, w).dtype == torch.bfloat16
    assert_same([names["naive_rms_norm"](x)], [F.rms_norm(x, (6,), eps=1e-6)], 1e-6)


# Named like a norm, but not a norm.
OTHERS = {"norm_report"}


def test_no_norm_of_a_chapter_goes_unchecked():
    tested = Path(__file__).read_text(encoding="utf-8")
    for number in range(9):
        for name, value in chapter(number).items():
            defined = isinstance(value, types.FunctionType | type)
            if (
                not defined
                or value.__module__ != CELL
                or not re.search("(?i)norm(?!al$)", name)
            ):
                continue
            known = f'"{name}"' in tested or name in OTHERS
            assert known or not_attempted(value), f"{name} of chapter {number}"
