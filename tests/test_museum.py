"""The bug museum: the answers of its exercises, found anew from its patients."""

import ast
import copy

import matplotlib as mpl
import pytest
import torch

import normlab
from normlab.exercises import chapter09
from notebook_checks import FOLDER, Chapter, bound_names, parsed


@pytest.fixture(scope="module")
def museum():
    """A function: what the notebook binds to some names, when run as far as needed."""
    mpl.use("agg")
    setup, *cells = Chapter.read(FOLDER / "09_bug_museum.ipynb").code[1:]
    room = {"normlab": normlab}
    exec(setup.source, room)
    definitions = (ast.FunctionDef, ast.ClassDef)
    for cell in cells:
        if all(isinstance(node, definitions) for node in parsed(cell)):
            exec(cell.source, room)

    def get(*names):
        for cell in cells:
            if {*names} & {name for name, _ in bound_names(parsed(cell))}:
                exec(cell.source, room)
        return [room[name] for name in names]

    return get


def test_every_patient_has_an_exercise_and_a_report():
    chapter = Chapter.read(FOLDER / "09_bug_museum.ipynb")
    text = "\n".join(cell.source for cell in chapter.nb.cells)
    patients = text.split("\n## ")[0].count("## 9.") + text.count("\n## 9.")
    exercises = vars(chapter09).values()
    numbers = [e.number for e in exercises if hasattr(e, "number")]
    assert patients == len(numbers) == 18
    for k, patient in enumerate(text.split("## 9.")[1:], start=1):
        assert patient.startswith(f"{k} Patient {k}: ")
        before, _, after = patient.partition("**Diagnosis.**")
        assert f"### Exercise 9.{k}\n" in before
        assert ".check(" in before
        assert "https://github.com/" not in before  # it would give the cause away
        assert "https://github.com/" in after


def test_questions_are_those_of_the_exercises():
    chapter = Chapter.read(FOLDER / "09_bug_museum.ipynb")
    asked = {
        cell.source.split("\n")[0].removeprefix("### Exercise "): cell.source
        for cell in chapter.markdown
        if cell.source.startswith("### Exercise ")
    }
    for exercise in vars(chapter09).values():
        if hasattr(exercise, "number"):
            question = " ".join(exercise.question.split())
            assert question in " ".join(asked[exercise.number].split())


def test_entries_that_drift(museum):
    pretrained, head_training = museum("pretrained", "head_training")
    backbone = pretrained()
    before = copy.deepcopy(backbone.state_dict())
    head_training(backbone, mode=True)
    after = backbone.state_dict()
    moved = {name for name, old in before.items() if not old.equal(after[name])}
    assert moved == chapter09.drifting_features.answer


def test_momentum_of_the_port(museum):
    (ported,) = museum("ported")
    answer = chapter09.jumping_validation.answer
    net = ported(**{answer["argument"]: answer["value"]})
    keras = torch.zeros(8)
    for seed in range(20):
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(seed)) + 2
        keras = 0.99 * keras + 0.01 * net[0](x).mean(0)
        net(x)
    assert torch.allclose(net[1].running_mean, keras, atol=1e-6)


def test_batch_that_poisons(museum):
    names = "make_classifier", "labelled", "train_skipping", "recordings"
    make_classifier, labelled, train_skipping, recordings = museum(*names)
    net, answer = make_classifier(), chapter09.poisoned_average.answer
    batches = labelled(recordings)
    train_skipping(net, batches[:answer])
    assert all(buffer.isfinite().all() for buffer in net.buffers())
    train_skipping(net, batches[answer : answer + 1])
    assert not all(buffer.isfinite().all() for buffer in net.buffers())


def test_momentum_of_the_checkpointed_block(museum):
    two_blocks, plain = museum("TwoBlocks", "plain_net")
    fit, steps = museum("fit", "steps_to_take")
    net = two_blocks(save_memory=True, momentum=chapter09.counted_twice.answer)
    fit(net, steps, torch.nn.functional.cross_entropy)
    for name, buffer in net.named_buffers():
        if "running" in name:
            assert torch.allclose(buffer, plain.get_buffer(name), atol=1e-6)


def test_pattern_of_the_lucky_size(museum):
    (patches,) = museum("patches")
    x = torch.randn(16, 8, 8, 8, generator=torch.Generator().manual_seed(0))
    norm = normlab.Norm(str(chapter09.lucky_size.answer), eps=patches[1].eps)
    assert torch.allclose(patches[1](x), norm(x), atol=1e-5)


def test_layer_that_is_silent(museum):
    net, x = museum("flat_net", "head_inputs")
    index, values = chapter09.silent_layer.answer
    assert net[:index](x).std(0).max() > 0.1
    assert net[: index + 1](x).std(0).max() < 1e-3
    assert net[index].num_channels // net[index].num_groups == values


def test_line_that_is_first_wrong(museum):
    (weather,) = museum("weather")
    lines = [lines_of_the_station(x) for x in (weather, weather.double())]
    off = [
        ((a - b).abs() / b.abs().mean()).max().item()
        for a, b in zip(*lines, strict=True)
    ]
    answer = chapter09.weather_station.answer
    assert max(off[: answer - 1], default=0) < 0.01
    assert not off[answer - 1] < 0.5


def lines_of_the_station(x):
    mean, square = x.mean(0), (x * x).mean(0)
    return mean, square - mean * mean, x - mean


def test_causes_to_choose(museum):
    ranker, published = museum("ranker", "published")
    assert chapter09.company_of_others.answer == "b"
    assert not ranker.training
    assert ranker[1].running_mean is None
    assert chapter09.blank_pages.answer == "c"
    assert published["1.weight"].abs().max() < 0.2
