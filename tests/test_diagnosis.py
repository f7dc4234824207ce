"""The diagnosis: every mutant is named rightly, and nothing right is called wrong."""

import re
import time
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import normlab
from mutants import MUTANTS
from normlab.exercises import diagnosis, probes
from normlab.exercises.mistakes import mistakes, names
from normlab.exercises.probes import Task
from normlab.exercises.steps import Steps
from right_norms import RIGHT

FUNCTIONS = ("batch_norm", "instance_norm", "layer_norm", "group_norm", "rms_norm")
CLASSES = ("BatchNorm", "InstanceNorm", "LayerNorm", "GroupNorm", "RMSNorm")
TRACKED = (
    *("running_mean", "running_var", "weight", "bias"),
    *("use_input_stats", "momentum", "eps"),
)
TASKS = [Task.of(norm, skip=()) for norm in (*FUNCTIONS, *CLASSES)]
TASKS += [
    Task.of(n, arguments=TRACKED, skip=()) for n in ("instance_norm", "InstanceNorm")
]
TASKS += [Task.of("layer_norm", shape=(4, 3, 2, 5), trailing=3, skip=())]
quiet = pytest.mark.filterwarnings("ignore:.*degrees of freedom")


@quiet
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_each_mutant_is_rejected_and_named(mutant):
    found = diagnosis.diagnose(mutant.code, mutant.task)
    assert [mistake.name for mistake, _ in found.named] == [mutant.mistake]
    outcome = diagnosis.examine(mutant.code, mutant.task)
    assert mutant.says
    assert any(mutant.says in part for part in outcome[:2])


def test_each_mistake_has_a_mutant():
    assert {mutant.mistake for mutant in MUTANTS} == names()
    assert len(names()) >= 25


@quiet
@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.norm}-{task.shape}")
def test_no_two_mistakes_are_taken_for_each_other(task, monkeypatch):
    # here the table's own wrong norms are what is handed in
    monkeypatch.setattr(diagnosis, "subject", lambda made, task, **kw: made(task, **kw))
    assert diagnosis.diagnose(Steps, task).findings == ()
    for mistake in mistakes(task):
        named = [found for found, _ in diagnosis.diagnose(mistake, task).named]
        assert [found.name for found in named] == [mistake.name]
        if mistake.name == "wrong axes":
            assert named == [mistake]


@pytest.mark.parametrize(("norm", "choices", "code"), RIGHT)
def test_right_norms_in_three_styles_pass(norm, choices, code):
    for seed in range(3):
        assert diagnosis.examine(code, Task.of(norm, **choices), seed) is None


@pytest.mark.parametrize("source", [F, normlab.functional])
@pytest.mark.parametrize("norm", FUNCTIONS)
def test_functions_of_torch_and_normlab_pass_all_probes(norm, source):
    assert diagnosis.examine(getattr(source, norm), Task.of(norm, skip=())) is None


@pytest.mark.parametrize("source", [torch.nn, normlab])
@pytest.mark.parametrize("norm", CLASSES)
@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 5), (4, 6, 2, 5), (4, 6, 2, 5, 3)])
def test_layers_of_torch_and_normlab_pass_all_probes(norm, source, shape):
    name, task, rank = norm, Task.of(norm, shape=shape, skip=()), len(shape)
    if norm in ("BatchNorm", "InstanceNorm"):
        if norm == "InstanceNorm" and rank == 2:
            return  # has no positions to average over
        name += f"{max(1, rank - 2)}d"
        if norm == "InstanceNorm":
            task = replace(task, arguments=TRACKED)
    assert diagnosis.examine(getattr(source, name), task) is None


def test_a_finding_says_what_was_expected_what_came_and_where():
    def doubled(x, num_groups, weight, bias, eps):
        y = F.group_norm(x, num_groups, weight, bias, eps).clone()
        y[2, 1, 0, 3] = 7.0
        return y

    task = Task.of("group_norm")
    _, small = (p for p in probes.applying(task)[1:3])
    make = lambda task, **kw: diagnosis.subject(doubled, task, **kw)  # noqa: E731
    x = probes.Draw(0).input(task.shape)
    right = F.group_norm(x, 2)[2, 1, 0, 3].item()
    finding = probes.find(
        small, probes.expected(small, task), probes.ask(small, make, task)
    )
    assert finding.where == "output[2, 1, 0, 3]"
    assert finding.got == "7"
    assert float(finding.expected) == pytest.approx(right, abs=1e-3)
    assert finding.facts[0] == ("asked", "a small input")
    assert (
        probes.find(small, probes.expected(small, task), probes.expected(small, task))
        is None
    )


def test_a_mistake_that_no_one_named_is_told_by_its_first_finding():
    sentence, facts = diagnosis.examine(
        lambda x, g, w, b, eps: F.group_norm(x, g, w, b, eps) + 0.25,
        Task.of("group_norm"),
    )
    assert sentence == "The sets of values that share statistics are not standardized."
    assert dict(facts)["got"] == "0.25"
    assert dict(facts)["expected"] == "0"


def test_built_in_functions_that_hide_their_arguments_are_called_by_place():
    assert diagnosis.examine(torch.group_norm, Task.of("group_norm")) is None
    found = diagnosis.examine(torch.layer_norm, Task.of("group_norm"))
    assert found[0] == "wrong"
    assert found[1].startswith("The check cannot work with this answer. TypeError: ")


@pytest.mark.parametrize("norm", ["RMSNorm", "GroupNorm", "BatchNorm"])
def test_options_that_a_class_passes_on_reach_it(norm):
    layer = getattr(normlab, norm + "2d" * (norm == "BatchNorm"))

    class PassesOn(layer):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes, **options)

    class Ignores(layer):
        def __init__(self, *sizes, **options):
            super().__init__(*sizes)

    task = Task.of(norm, skip=())
    assert diagnosis.examine(PassesOn, task) is None
    assert "eps" in str(diagnosis.examine(Ignores, task))


def test_tensors_that_a_class_lacks_are_missed():
    class Bare(torch.nn.Module):
        def __init__(self, *sizes):
            super().__init__()

        def forward(self, x):
            return F.group_norm(x, 2)

    found = diagnosis.diagnose(Bare, Task.of("GroupNorm"))
    saved = {f.probe.name: f for f in found.findings}["what state_dict saves"]
    assert (saved.expected, saved.got) == ("a parameter", "missing")
    assert found.named[0][0].name == "weight and bias missing"


def test_whatever_comes_out_of_float16_is_put_down_to_its_squares():
    def halved(x, shape, weight, bias, eps):
        y = F.layer_norm(x, shape, weight, bias, eps)
        return y / 2 if x.abs().max() > 60 and x.dtype == torch.float16 else y

    found = diagnosis.diagnose(halved, Task.of("layer_norm", skip=()))
    assert [mistake.name for mistake, _ in found.named] == ["squares in float16"]


def test_two_mistakes_at_once_are_both_named():
    def both(x, rm, rv, weight, bias, training, momentum, eps):
        y = F.batch_norm(x, rm, rv, weight, None, training, 1 - momentum, eps)
        return y

    found = diagnosis.diagnose(both, Task.of("batch_norm"))
    named = {mistake.name for mistake, _ in found.named}
    assert named == {"bias missing", "momentum turned round"}
    sentence, _ = diagnosis.examine(both, Task.of("batch_norm"))
    assert "\nAnd: " in sentence


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_seeds_ask_with_other_numbers_and_judge_alike(seed):
    task = Task.of("layer_norm")
    small = probes.applying(task)[2]
    ours, first = (probes.expected(small, task, s)["output"] for s in (seed, 0))
    assert not torch.allclose(ours, first)
    mutant = next(m for m in MUTANTS if m.mistake == "eps outside the root")
    found = diagnosis.diagnose(mutant.code, mutant.task, seed)
    assert [mistake.name for mistake, _ in found.named] == [mutant.mistake]


@pytest.mark.parametrize(
    ("norm", "answer", "words"),
    [
        (
            "group_norm",
            3,
            r"A function of \(x, num_groups, weight, bias, eps\).*a number",
        ),
        ("group_norm", torch.nn.GroupNorm, "this is the class `GroupNorm`"),
        ("group_norm", torch.ones(2), "Hand in its name without brackets"),
        ("group_norm", lambda x: x, "The check calls `<lambda>.*too many positional"),
        (
            "GroupNorm",
            torch.nn.GroupNorm(2, 6),
            "hand in the class itself: `GroupNorm`",
        ),
        ("GroupNorm", F.group_norm, "derived from `torch.nn.Module`.*a function"),
        ("GroupNorm", int, "derived from `torch.nn.Module`.*the class `int`"),
        ("GroupNorm", torch.nn.Linear, None),
        ("LayerNorm", torch.nn.GroupNorm, r"The check calls `GroupNorm\(6\)`, but"),
    ],
)
def test_the_wrong_sort_of_object_gets_a_sentence(norm, answer, words):
    found = diagnosis.examine(answer, Task.of(norm))
    if words is None:  # the right sort of object, wrong in what it does
        assert found[0] == "wrong"
    else:
        assert len(found) == 2
        assert re.search(words, found[0], re.DOTALL)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.norm}-{task.shape}")
def test_all_probes_of_a_norm_take_less_than_100_ms(task):
    make = lambda task, **kw: Steps(task, **kw)  # noqa: E731
    spent = []
    for _ in range(5):
        start = time.process_time()
        for p in probes.applying(task):
            probes.ask(p, make, task)
        spent.append(time.process_time() - start)
    assert min(spent) < 0.1
