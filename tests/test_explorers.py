"""The Python half of BatchMates, RunningStats and GroupWalk."""

import json
import re
from xml.etree import ElementTree

import ipywidgets
import numpy as np
import pytest
import torch
import traitlets

import normlab
from normlab.widgets import AxisPicker, BatchMates, GroupWalk, Quiz, RunningStats
from normlab.widgets.explorer import standard_normal

EXPLORERS = (BatchMates, RunningStats, GroupWalk)


def refusal(change):
    with pytest.raises(traitlets.TraitError) as raised:
        change()
    return str(raised.value)


# --------------------------------------------------------------------- drawn numbers


def test_drawn_numbers_are_the_same_for_a_seed_and_go_on_where_they_stopped():
    drawn = standard_normal(3, 1000)
    assert np.array_equal(standard_normal(3, 400, 600), drawn[600:])
    assert abs(np.corrcoef(drawn, standard_normal(4, 1000))[0, 1]) < 0.1
    # the first ones, written down: a change would change every picture
    first = [-0.4237823486328125, 1.4593353271484375, -0.143157958984375]
    assert standard_normal(0, 3).tolist() == first


def test_drawn_numbers_look_normal():
    drawn = standard_normal(0, 200_000)
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.var() - 1) < 0.01
    assert abs((drawn**3).mean()) < 0.02
    shares = [(np.abs(drawn) < k).mean() for k in (1, 2, 3)]
    assert shares == pytest.approx([0.683, 0.954, 0.997], abs=0.006)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.01


# ------------------------------------------------------------------------ BatchMates


def test_only_batch_statistics_let_the_mates_in():
    moved = BatchMates(shift=3.0, scale=2.0).changes
    assert moved["BatchNorm"][0] > 0.5
    assert moved["BatchNorm"][1] == 0
    for norm in ("LayerNorm", "InstanceNorm", "GroupNorm", "RMSNorm"):
        assert moved[norm] == (0, 0)
    untracked = BatchMates(shift=3.0, scale=2.0, track_running_stats=False).changes
    assert untracked["BatchNorm"] == (moved["BatchNorm"][0],) * 2


def test_changes_against_torch_layers():
    mates = BatchMates(shift=-2.0, scale=0.5, seed=7, groups=4)
    before = torch.from_numpy(BatchMates(seed=7).inputs)
    now = torch.from_numpy(mates.inputs)
    assert torch.equal(before[0], now[0])
    assert torch.equal(before[1:] * 0.5 - 2, now[1:])
    layers = {
        "BatchNorm": torch.nn.BatchNorm1d(4),
        "LayerNorm": torch.nn.LayerNorm((4, 3)),
        "InstanceNorm": torch.nn.InstanceNorm1d(4),
        "GroupNorm": torch.nn.GroupNorm(4, 4),
        "RMSNorm": torch.nn.RMSNorm((4, 3), eps=1e-5),
    }
    for norm, layer in layers.items():
        for i, training in enumerate((True, False)):
            layer = layer.double().train(training)
            if norm == "BatchNorm":
                layer.reset_running_stats()
            old, new = layer(before)[0], layer(now)[0]
            if norm == "BatchNorm":
                layer.reset_running_stats()
                new = layer(now)[0]
            assert mates.output(norm, training)[0] == pytest.approx(
                new.detach().numpy(), abs=1e-9
            )
            change = (new - old).abs().max().item()
            assert mates.changes[norm][i] == pytest.approx(change, abs=1e-9)


def test_a_sample_compared_with_itself_alone():
    values = (0.0, 0.0, 1.0, 1.0)
    mates = BatchMates(shape=(2, 1, 2), values=values, alone=True)
    # alone, [0, 0] has variance 0 and gives 0; with [1, 1] it is one deviation below
    assert mates.changes["BatchNorm"] == pytest.approx((1, 0), abs=1e-4)
    assert mates.changes["LayerNorm"] == (0, 0)


def test_gradient_of_batchnorm_on_three_numbers():
    mates = BatchMates(shape=(3, 1, 1), values=(0, 1, 5))
    expected = [0.176, -0.220, 0.044]
    assert mates.gradient.ravel() == pytest.approx(expected, abs=5e-4)
    mates.training = False
    assert mates.gradient.ravel().tolist() == [pytest.approx(1, abs=1e-5), 0, 0]
    mates.norm = "RMSNorm"
    assert mates.gradient.ravel()[1:].tolist() == [0, 0]


def test_a_batch_that_a_layer_refuses_has_no_numbers():
    mates = BatchMates(shape=(1, 2, 1), groups=2)
    assert mates.changes == {
        "BatchNorm": (None, 0.0),
        "LayerNorm": (0.0, 0.0),
        "InstanceNorm": (None, None),
        "GroupNorm": (None, None),
        "RMSNorm": (0.0, 0.0),
    }
    assert mates.gradient is None
    assert mates.output("BatchNorm", True) is None
    assert "refused" in mates.picture()


# ---------------------------------------------------------------------- RunningStats


@pytest.mark.parametrize(
    ("momentum", "mean"),
    [(0.0, 0.0), (1.0, 60.0), (0.1, 8.61), (None, 30.0)],
)
def test_three_batches_with_each_momentum(momentum, mean):
    """Means 10, 20, 60; the counterpart of torch.nn.BatchNorm1d."""
    batches = ((9, 11), (19, 21), (59, 61))
    stats = RunningStats(given=batches, momentum=momentum)
    layer = torch.nn.BatchNorm1d(1, momentum=momentum).double()
    for batch in batches:
        layer(torch.tensor(batch, dtype=torch.float64)[:, None])
    assert stats.running_mean == pytest.approx(mean)
    assert stats.running_mean == pytest.approx(layer.running_mean.item())
    assert stats.running_var == pytest.approx(layer.running_var.item())


@pytest.mark.parametrize(("momentum", "mean"), [(0.999, 20.03), (0.001, 0.08)])
def test_momentum_read_the_other_way_round(momentum, mean):
    stats = RunningStats(given=((9, 11), (49, 51), (19, 21)), momentum=momentum)
    assert round(stats.running_mean, 2) == mean


def test_the_buffer_keeps_the_unbiased_variance_and_train_uses_the_biased_one():
    stats = RunningStats(given=((0, 1, 2, 3),), momentum=1.0, fresh=False)
    train, evaluated = stats.outputs
    assert stats.running_var == pytest.approx(1.66667, abs=1e-5)
    assert train == pytest.approx([-1.34164, -0.44721, 0.44721, 1.34164], abs=1e-5)
    assert evaluated == pytest.approx([-1.16189, -0.3873, 0.3873, 1.16189], abs=1e-5)
    stats.unbiased = False
    assert stats.running_var == pytest.approx(1.25)
    assert stats.outputs[0] == pytest.approx(stats.outputs[1])


def test_too_few_updates_leave_eval_far_away():
    stats = RunningStats(given=((98, 102),) * 5, fresh=False)
    assert stats.running_mean == pytest.approx(40.951)
    assert round(stats.running_var, 3) == 3.867
    train, evaluated = stats.outputs
    assert train == pytest.approx([-1, 1], abs=1e-4)
    assert [round(float(y), 1) for y in evaluated] == [29.0, 31.0]


def test_batches_in_eval_leave_the_buffers_alone():
    stats = RunningStats()
    stats.feed(3)
    stats.feed()
    stats.training = False
    stats.mean = 9.0
    stats.feed(2)
    assert stats.fed == ((4, 4.0, 2.0, True), (2, 9.0, 2.0, False))
    history = stats.history
    assert history[4] == history[5] == history[6]
    assert [batch.training for batch in stats.batches] == [True] * 4 + [False] * 2
    assert [batch.mean for batch in stats.batches] == [4.0] * 4 + [9.0] * 2


def test_history_is_what_a_torch_layer_keeps():
    for momentum in (0.3, None):
        stats = RunningStats(momentum=momentum, batch_size=5, seed=2)
        stats.feed(7)
        layer = torch.nn.BatchNorm1d(1, momentum=momentum).double()
        assert stats.history[0] == (0, 1)
        for batch, (mean, var) in zip(stats.batches, stats.history[1:], strict=True):
            layer(torch.tensor(batch.values, dtype=torch.float64)[:, None])
            assert mean == pytest.approx(layer.running_mean.item())
            assert var == pytest.approx(layer.running_var.item())
        x = torch.tensor(stats.probe, dtype=torch.float64)[:, None]
        assert stats.probe not in [batch.values for batch in stats.batches]
        for layer_mode, output in zip((True, False), stats.outputs, strict=True):
            copy = torch.nn.BatchNorm1d(1).double().train(layer_mode)
            copy.load_state_dict(layer.state_dict())
            assert output == pytest.approx(copy(x).detach().numpy().ravel())


def test_the_same_batches_come_with_every_momentum():
    stats = RunningStats()
    stats.feed(5)
    before = stats.batches
    stats.momentum = None
    assert stats.batches == before
    values = np.concatenate([batch.values for batch in before])
    assert stats.running_mean == pytest.approx(values.mean())


# ------------------------------------------------------------------------- GroupWalk


def test_the_ends_of_the_walk_are_layernorm_and_instancenorm():
    walk = GroupWalk(spread=2.0)
    x = torch.from_numpy(walk.values)
    layer = torch.nn.functional.layer_norm(x, x.shape[1:]).numpy()
    instance = torch.nn.functional.instance_norm(x).numpy()
    assert np.abs(walk.output(1) - layer).max() < 1e-9
    assert np.abs(walk.output(8) - instance).max() < 1e-9
    for groups, (first, last) in walk.distances.items():
        between = torch.nn.functional.group_norm(x, groups).numpy()
        assert first == pytest.approx(np.sqrt(((between - layer) ** 2).mean()))
        assert last == pytest.approx(np.sqrt(((between - instance) ** 2).mean()))
    firsts, lasts = zip(*walk.distances.values(), strict=True)
    assert list(firsts) == sorted(firsts)
    assert list(lasts) == sorted(lasts, reverse=True)


def test_what_the_walk_takes_away_are_the_differences_between_channels():
    walk = GroupWalk(shape=(2, 12, 5, 3), sample=1, seed=5)
    assert walk.sets.num_sets == 2
    means, deviations = walk.profile(12)
    assert np.abs(means).max() < 1e-9
    assert deviations == pytest.approx(np.ones(12), abs=1e-4)
    spreads = [walk.profile(groups)[0].std() for groups in (1, 2, 3, 4, 6, 12)]
    assert spreads[0] > 0.3
    assert spreads[0] > spreads[3] > spreads[5]
    x = walk.values[1]
    assert walk.profile(1)[0] == pytest.approx(
        (x.mean((1, 2)) - x.mean()) / np.sqrt(x.var() + 1e-5)
    )


def test_without_spread_the_channels_have_mean_0_and_scale_1():
    values = GroupWalk(shape=(8, 2, 8, 8), spread=0.0).values
    assert values.mean((0, 2, 3)) == pytest.approx([0, 0], abs=0.15)
    assert values.std((0, 2, 3)) == pytest.approx([1, 1], abs=0.1)


def test_set_ids_follow_the_groups():
    walk = GroupWalk(groups=2)
    assert walk.set_ids[1, :, 0, 0].tolist() == [2, 2, 2, 2, 3, 3, 3, 3]
    walk.groups = 8
    assert walk.set_ids[1, :, 0, 0].tolist() == list(range(8, 16))


# -------------------------------------------------------------------- what is allowed


@pytest.mark.parametrize(
    ("widget", "name", "value", "reason"),
    [
        (BatchMates, "shift", 1001.0, "shift: from -1000 to 1000 is allowed, not 1001"),
        (BatchMates, "scale", -1.0, "scale: from 0 to 1000 is allowed, not -1.0."),
        (BatchMates, "scale", float("nan"), "is allowed, not nan."),
        (BatchMates, "norm", "BathNorm", "norm: one of BatchNorm, LayerNorm, Instance"),
        (BatchMates, "shape", (4, 4), "shape: sizes of N C L are needed, not (4, 4)."),
        (BatchMates, "shape", (4, 2.5, 1), "shape: sizes of N C L are needed, not"),
        (BatchMates, "shape", (9, 4, 3), "shape: N may be from 1 to 8, which 9 is not"),
        (BatchMates, "groups", 3, "groups: 3 groups do not divide 4 channels."),
        (BatchMates, "groups", 0, "groups: 0 groups do not divide 4 channels."),
        (BatchMates, "element", 12, "numbered 0 to 11, without 12."),
        (BatchMates, "element", -1, "numbered 0 to 11, without -1."),
        (BatchMates, "values", (1, 2), "48 finite numbers are needed for the shape"),
        (BatchMates, "values", ("a",) * 48, "48 finite numbers are needed"),
        (BatchMates, "values", (True,) * 48, "48 finite numbers are needed"),
        (RunningStats, "given", ((1, True),), "given: batch 0 is not a tuple of"),
        (RunningStats, "momentum", 1.5, "momentum: from 0 to 1 is allowed, not 1.5."),
        (RunningStats, "batch_size", 1, "batch_size: from 2 to 256 is allowed, not 1."),
        (RunningStats, "std", -1.0, "std: from 0 to 1000 is allowed"),
        (
            RunningStats,
            "given",
            ((1, 2), (3,)),
            "given: batch 1 needs 2 values or more",
        ),
        (RunningStats, "given", (3,), "given: batch 0 is not a tuple of finite"),
        (RunningStats, "fed", ((1, 2.0, 3.0),), "fed: part 0 is not (how many, mean"),
        (RunningStats, "fed", ((0, 0.0, 1.0, True),), "fed: part 0 is not"),
        (RunningStats, "fed", ((1, 0.0, -1.0, True),), "fed: part 0 is not"),
        (RunningStats, "fed", ((1, 0.0, 1.0, 1),), "fed: part 0 is not"),
        (RunningStats, "fed", ((501, 0.0, 1.0, True),), "at most 500 batches fit"),
        (
            GroupWalk,
            "groups",
            3,
            "3 groups do not divide 8 channels; these would: 1, 2",
        ),
        (GroupWalk, "groups", 0, "groups: 0 groups do not divide 8 channels"),
        (GroupWalk, "shape", (2, 8, 1, 1), "shape: H and W may not both be 1"),
        (GroupWalk, "sample", 2, "sample: the samples are numbered 0 to 1, without 2."),
        (GroupWalk, "spread", 11.0, "spread: from 0 to 10 is allowed, not 11.0."),
        (GroupWalk, "seed", -1, "seed: from 0 to 4294967295 is allowed, not -1."),
        (GroupWalk, "groups", "x", "expected an int"),
    ],
)
def test_a_refused_value_leaves_the_explorer_as_it_was(widget, name, value, reason):
    explorer = widget()
    before = explorer.snapshot()
    assert reason in refusal(lambda: setattr(explorer, name, value))
    assert explorer.snapshot() == before
    explorer.set_state({name: value})  # the same, coming from the page
    assert explorer.snapshot() == before
    assert reason in explorer.error
    assert reason in refusal(lambda: widget(**{name: value}))


def test_a_new_shape_brings_along_what_it_leaves_behind():
    mates = BatchMates(values=tuple(range(48)), groups=4, element=11)
    mates.shape = (2, 6, 1)
    assert (mates.values, mates.groups, mates.element) == ((), 3, 0)
    walk = GroupWalk(groups=8, sample=1)
    walk.shape = (1, 12, 4, 4)
    assert (walk.groups, walk.sample) == (6, 0)


@pytest.mark.parametrize("widget", [*EXPLORERS, AxisPicker, Quiz])
def test_a_wrong_name_is_refused_and_a_layout_is_not(widget):
    with pytest.raises(TypeError) as raised:
        widget(group=4)
    assert str(raised.value) == (
        f"{widget.__name__}: group cannot be set; these can: {', '.join(widget.state)}."
    )
    assert widget(layout=ipywidgets.Layout(width="50%")).layout.width == "50%"


@pytest.mark.parametrize("widget", [*EXPLORERS, AxisPicker, Quiz])
def test_true_is_no_number(widget):
    explorer = widget()
    numbers = [
        name
        for name in widget.state
        if isinstance(widget.class_traits()[name], traitlets.Int | traitlets.Float)
    ]
    assert numbers
    for name in numbers:
        for value in (True, False):
            assert f"not the bool {value}" in refusal(
                lambda name=name, value=value: setattr(explorer, name, value)
            )
            explorer.set_state({name: value})
            assert f"not the bool {value}" in explorer.error


def test_composes_with_other_widgets():
    walk, slider = GroupWalk(), ipywidgets.IntSlider(min=1, max=8, value=1)
    traitlets.link((slider, "value"), (walk, "groups"))
    seen = []
    walk.observe(lambda change: seen.append(change.new), "groups")
    slider.value = 4
    assert (walk.groups, seen) == (4, [4])
    assert ipywidgets.VBox([slider, walk]).children[1] is walk


def test_a_state_from_the_page_has_lists_where_python_has_tuples():
    stats = RunningStats()
    stats.set_state({"fed": [[2, 4, 2, True]], "momentum": None})
    assert stats.fed == ((2, 4.0, 2.0, True),)
    assert stats.error == ""
    assert len(stats.history) == 3


# -------------------------------------------------------------- what stands in for it


@pytest.mark.parametrize("widget", EXPLORERS)
def test_names_load_on_first_use_and_each_asks_a_question(widget):
    assert getattr(normlab, widget.__name__) is widget
    assert widget.question.endswith("?")
    assert widget.question in json.loads(
        re.search(r"QUESTION = (.*);", str(widget._esm)).group(1)
    )


@pytest.mark.parametrize(
    ("explorer", "text"),
    [
        (
            BatchMates(shift=2.0),
            "BatchMates(shift=2.0)\n"
            "4 samples of 4 channels x 3 positions; the mates of sample 0 are scaled "
            "by 1 and shifted by 2. In train mode the mates move the output of sample "
            "0 under BatchNorm (by up to 2.17). In eval mode the mates move the output "
            "of sample 0 under no norm.",
        ),
        (
            RunningStats(given=((9, 11), (19, 21)), momentum=None, fresh=False),
            "RunningStats(momentum=None, fresh=False, given=((9.0, 11.0), "
            "(19.0, 21.0)))\n"
            "After 2 batches with momentum None, the running mean is 15.00 (true mean "
            "4.00) and the running variance 2.00 (true variance 4.00). The last batch "
            "leaves train and eval up to 3.83 apart.",
        ),
        (
            GroupWalk(groups=8),
            "GroupWalk(groups=8)\n"
            "GroupNorm(8, 8) on (2, 8, 4, 4). 16 values share each mean: 1 channel x 4 "
            "x 4 positions; 16 means in all. The output is 0.69 away from one group of "
            "all channels and 0.00 from one group for each channel. The means of the "
            "channels still spread by 0.00, of 0.66 at G = 1.",
        ),
    ],
)
def test_text_form_is_stable_and_says_what_is_shown(explorer, text):
    data, _ = explorer._repr_mimebundle_()
    assert data["text/plain"] == text
    again = eval(repr(explorer))
    assert again.snapshot() == explorer.snapshot()
    assert again.to_html() == explorer.to_html()
    assert explorer.model_id not in data["text/html"]


@pytest.mark.parametrize("widget", EXPLORERS)
def test_html_holds_the_state_a_picture_and_the_sentence(widget):
    explorer = widget()
    root = ElementTree.fromstring(explorer.to_html())
    assert root.attrib["data-widget"] == explorer.stem
    state = json.loads(root.attrib["data-state"])
    assert widget(**state).snapshot() == explorer.snapshot()
    svg = root.find("{http://www.w3.org/2000/svg}svg")
    assert svg.attrib["aria-label"] == root.find("p").text == explorer.sentence()


def test_still_bars_are_as_long_as_the_changes():
    mates = BatchMates(shift=3.0, track_running_stats=False)
    svg = ElementTree.fromstring(mates.picture())
    bars = [float(n.attrib["width"]) for n in svg if n.tag.endswith("rect")]
    assert bars == [270, 270, 0, 0, 0, 0, 0, 0, 0, 0]
    words = [n.text for n in svg if n.tag.endswith("text")]
    change = f"{mates.changes['BatchNorm'][0]:.2f}"
    assert words[:4] == ["BatchNorm, train", change, "BatchNorm, eval", change]


def test_still_lines_run_through_the_buffers():
    stats = RunningStats(given=((9, 11), (9, 11)), momentum=0.5)
    svg = ElementTree.fromstring(stats.picture())
    lines = [n.attrib["points"] for n in svg if n.tag.endswith("polyline")]
    places = [[tuple(map(float, p.split(","))) for p in line.split()] for line in lines]
    truth, mean, *_ = places
    # 0, 5, 7.5 on a scale of 0 to 10, over a floor at 100, 74 high
    assert mean == [(60, 100), (265, 63), (470, 44.5)]
    assert [y for _, y in truth] == [26, 26, 26]
    labels = [n.text for n in svg if n.tag.endswith("text")]
    assert labels[:3] == ["running mean (dashed: the truth)", "0.00", "10.00"]
    empty = ElementTree.fromstring(RunningStats().picture())
    lines = [n.attrib["points"] for n in empty if n.tag.endswith("polyline")]
    assert lines[:2] == ["60.0,26.0 470.0,26.0", "60.0,100.0 470.0,100.0"]


@pytest.mark.parametrize("widget", EXPLORERS)
def test_scripts_are_one_module_without_imports_or_addresses(widget):
    source = str(widget._esm)
    assert source.count("export default") == 1
    assert not re.search(r"^\s*import\b|\bimport\(", source, re.M)
    addresses = set(re.findall(r"https?://[^\s\"'`]+", source + str(widget._css)))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in source
