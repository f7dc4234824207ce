"""The layers: drop-ins for torch.nn, in training, in checkpoints and in their words."""

import copy
import inspect
import io
import pickle

import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap
from torch.testing._internal.common_modules import module_db

import normlab
from normlab import modules
from parity import BFLOAT, DOUBLE, FLOAT, HALF, close, draw, near_double, outcome

TRACKED = [n for n in modules.__all__ if n.startswith(("Batch", "Instance"))]
INFOS = {
    info.name.split(".")[-1]: info
    for info in module_db
    if info.name.split(".")[-1] in modules.__all__
}

# layer, arguments, keywords, shape of the input
BUILDS = [
    ("BatchNorm1d", (6,), {}, (4, 6)),
    ("BatchNorm1d", (6,), {"momentum": None}, (4, 6, 5)),
    ("BatchNorm1d", (6,), {"affine": False}, (4, 6, 5)),
    ("BatchNorm2d", (6, 1e-3, 0.3), {"bias": False}, (4, 6, 5, 3)),
    ("BatchNorm2d", (6,), {"track_running_stats": False}, (4, 6, 5, 3)),
    ("BatchNorm3d", (6,), {"momentum": 1.5}, (4, 6, 2, 2, 2)),
    ("InstanceNorm1d", (6,), {}, (4, 6, 5)),
    ("InstanceNorm1d", (6,), {"affine": True, "track_running_stats": True}, (6, 5)),
    ("InstanceNorm2d", (6,), {"track_running_stats": True}, (4, 6, 5, 3)),
    ("InstanceNorm2d", (6,), {"affine": True, "bias": False}, (6, 5, 3)),
    ("InstanceNorm2d", (6, 1e-3, None, True, True), {}, (4, 6, 5, 3)),
    ("InstanceNorm3d", (6,), {"affine": True}, (4, 6, 2, 2, 2)),
    ("InstanceNorm3d", (6,), {"track_running_stats": True}, (6, 2, 2, 2)),
    ("LayerNorm", (5,), {}, (4, 6, 5)),
    ("LayerNorm", ([6, 5],), {"bias": False}, (4, 6, 5)),
    ("LayerNorm", (torch.Size([5]), 1e-2, False), {}, (5,)),
    ("GroupNorm", (3, 6), {}, (4, 6)),
    ("GroupNorm", (2, 6, 1e-3), {"bias": False}, (4, 6, 5, 3)),
    ("GroupNorm", (6, 6), {"affine": False}, (4, 6, 5)),
    ("RMSNorm", (5,), {}, (4, 6, 5)),
    ("RMSNorm", ((6, 5), 1e-2), {}, (4, 6, 5)),
    ("RMSNorm", (5,), {"elementwise_affine": False}, (4, 6, 5)),
]
EACH = pytest.mark.parametrize(
    ("name", "args", "kwargs", "shape"), BUILDS, ids=lambda v: str(v).replace(" ", "")
)


def pair(name, *args, **kwargs):
    """torch's layer and ours, with the same parameters, none of them 0 or 1."""
    theirs = getattr(nn, name)(*args, **kwargs)
    ours = getattr(normlab, name)(*args, **kwargs)
    with torch.no_grad():
        for i, parameter in enumerate(theirs.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=i + 1))
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return theirs, ours


def train(layer, shape, steps=3, dtype=FLOAT):
    """Some steps of training, then eval: all outputs, gradients and buffers."""
    seen = []
    optimizer = torch.optim.SGD([*layer.parameters(), nn.Parameter(torch.ones(1))], 0.1)
    for step in range(steps):
        x = draw(*shape, seed=step, spread=step + 1, offset=2, dtype=dtype)
        x.requires_grad_()
        y = layer(x)
        y.square().sin().sum().backward()
        seen += [y, x.grad, *(p.grad.clone() for p in layer.parameters())]
        optimizer.step()
        optimizer.zero_grad()
    return [*seen, layer.eval()(x), *layer.state_dict().values()]


@EACH
def test_training_and_evaluation(name, args, kwargs, shape):
    results = [train(layer.double(), shape, dtype=DOUBLE) for layer in pair(
        name, *args, **kwargs)]  # fmt: skip
    assert len(results[0]) == len(results[1]) >= 7
    for expected, actual in zip(*results, strict=True):
        close(actual, expected)


@EACH
def test_construction(name, args, kwargs, shape):
    theirs, ours = pair(name, *args, **kwargs)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert vars(ours).keys() == vars(theirs).keys()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    for layer in (theirs, ours):
        layer.reset_parameters()
    close(ours.state_dict(), theirs.state_dict())
    made = getattr(normlab, name)(*args, device="meta", dtype=DOUBLE, **kwargs)
    for tensor in (*made.parameters(), *made.buffers()):
        assert tensor.is_meta
        assert tensor.dtype in (DOUBLE, torch.long)


@pytest.mark.parametrize("name", modules.__all__)
def test_constructor_arguments(name):
    def arguments(cls):
        parameters = inspect.signature(cls).parameters.values()
        return [(p.name, p.default, p.kind) for p in parameters]

    expected = arguments(getattr(nn, name))
    assert arguments(getattr(normlab, name)) == expected
    forwards = [getattr(library, name).forward for library in (nn, normlab)]
    assert arguments(forwards[1]) == arguments(forwards[0])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT, HALF, BFLOAT], ids=str)
@pytest.mark.parametrize("name", INFOS)
def test_module_inputs_of_torch(name, dtype, training):
    info = INFOS[name]
    options = {"device": "cpu", "requires_grad": False, "training": training}
    for sample in info.module_inputs_func(info, dtype=dtype, **options):
        made, x = sample.constructor_input, sample.forward_input.args[0]
        theirs, ours = (
            cls(*made.args, **made.kwargs).train(training)
            for cls in (info.module_cls, getattr(normlab, name))
        )
        ours.to(dtype)
        if dtype in (HALF, BFLOAT):
            if name == "RMSNorm" and theirs.eps is None:
                theirs.eps = torch.finfo(FLOAT).eps
            near_double(ours(x), theirs.double()(x.double()))
            assert all(b.dtype in (dtype, torch.long) for b in ours.buffers())
        else:
            expected = theirs.to(dtype)(x)
            close(ours(x), expected)
            close(ours.state_dict(), theirs.state_dict())


@pytest.mark.parametrize(
    "name", [n for n in INFOS if INFOS[n].module_error_inputs_func]
)
def test_error_inputs_of_torch(name):
    info = INFOS[name]
    options = {"device": "cpu", "dtype": FLOAT, "requires_grad": False}
    for error in info.module_error_inputs_func(info, training=True, **options):
        made = error.module_error_input.constructor_input
        x = error.module_error_input.forward_input
        with pytest.raises(error.error_type, match=r"Norm: .* must be "):
            getattr(normlab, name)(*made.args, **made.kwargs)(*x.args)


# ---- moving, copying, saving


@EACH
def test_copies(name, args, kwargs, shape):
    layer = pair(name, *args, **kwargs)[1]
    x = draw(*shape)
    layer(x)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    loaded = getattr(normlab, name)(*args, **kwargs)
    loaded.load_state_dict(torch.load(file, weights_only=True), strict=True)
    expected = layer.eval()(x)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded):
        close(other.eval()(x), expected)
        assert not {id(t) for t in other.parameters()} & {
            id(t) for t in layer.parameters()
        }
    for convert, dtype in (("half", HALF), ("bfloat16", BFLOAT), ("double", DOUBLE)):
        moved = getattr(copy.deepcopy(layer), convert)()
        assert moved(x.to(dtype)).dtype == dtype
        for tensor in moved.state_dict().values():
            assert tensor.dtype in (dtype, torch.long)
    assert copy.deepcopy(layer).to("meta")(x.to("meta")).shape == x.shape


@pytest.mark.parametrize("name", TRACKED)
def test_checkpoints_without_a_counter(name):  # FR-025
    layer = getattr(normlab, name)(3, affine=True, track_running_stats=True)
    layer.num_batches_tracked.fill_(7)
    saved = layer.state_dict()
    del saved["num_batches_tracked"]
    missing = layer.load_state_dict(dict(saved), strict=True)  # no metadata: old
    assert missing.missing_keys == []
    assert layer.num_batches_tracked == 7
    fresh = getattr(normlab, name)(3, affine=True, track_running_stats=True)
    fresh.to("meta").load_state_dict(dict(saved), strict=True, assign=True)
    assert fresh.num_batches_tracked == 0
    with pytest.raises(RuntimeError, match=r'Missing key.*"num_batches_tracked"'):
        layer.load_state_dict(saved, strict=True)  # metadata of version 2


def test_a_partial_load_reports_the_statistics():  # FR-026
    source = normlab.BatchNorm1d(2, momentum=1.0)
    source(torch.tensor([[10.0, 0], [12, 4]]))
    saved = {k: v for k, v in source.state_dict().items() if k in ("weight", "bias")}
    fresh = normlab.BatchNorm1d(2)
    report = fresh.load_state_dict(saved, strict=False)
    assert report.missing_keys == ["running_mean", "running_var"]
    x = torch.tensor([[11.0, 2]])
    close(source.eval()(x), torch.zeros(1, 2))
    close(fresh.eval()(x), x, atol=1e-4, rtol=0)


def test_statistics_for_a_layer_that_tracks_none():
    saved = dict(nn.InstanceNorm1d(3, track_running_stats=True).state_dict())
    del saved["num_batches_tracked"]
    sentence = "InstanceNorm1d: the checkpoint has running_mean and running_var, but "
    with pytest.raises(RuntimeError, match=sentence):
        normlab.InstanceNorm1d(3).load_state_dict(saved)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        normlab.BatchNorm1d(3, track_running_stats=False).load_state_dict(saved)
    recent = nn.InstanceNorm1d(3, track_running_stats=True).state_dict()
    with pytest.raises(RuntimeError, match="Unexpected key") as caught:
        normlab.InstanceNorm1d(3).load_state_dict(recent)  # its version is known
    assert "the checkpoint has" not in str(caught.value)


# ---- mode and running statistics


@pytest.mark.parametrize("name", TRACKED)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("made", [True, False])
def test_tracking_switched_later(name, made, training):
    rank = int(name[-2])
    results = []
    for layer in pair(name, 3, track_running_stats=made):
        layer.train(training).track_running_stats = not made
        x = draw(4, 3, *[2] * rank)
        results.append((outcome(layer, x), layer.state_dict()))
    (expected, before), (actual, after) = results
    assert isinstance(actual, Exception) == isinstance(expected, Exception)
    if isinstance(actual, Exception):
        assert type(actual) is type(expected)
    else:
        close(actual, expected)
    close(after, before)


def test_reset():
    layer = normlab.BatchNorm1d(2)
    layer(torch.tensor([[0.0, 10], [2, 20]]))
    layer.reset_running_stats()
    close(layer.state_dict(), normlab.BatchNorm1d(2).state_dict())


def test_batches_are_weighed_by_momentum():  # FR-012, FR-013
    for momentum, mean, var in ((0.0, 0, 1), (1.0, 60, 2), (0.1, 8.61, 1.271),
                                (None, 30, 2)):  # fmt: skip
        layer = normlab.BatchNorm1d(1, momentum=momentum)
        for center in (10.0, 20.0, 60.0):
            y = layer(torch.tensor([[center - 1], [center + 1]]))
        close(y, torch.tensor([[-1.0], [1.0]]), atol=1e-5, rtol=0)  # whatever momentum
        assert layer.running_mean.item() == pytest.approx(mean)
        assert layer.running_var.item() == pytest.approx(var)
        assert layer.num_batches_tracked == 3


def test_biased_variance_normalizes_and_unbiased_is_kept():  # FR-014
    layer = normlab.BatchNorm1d(1, momentum=1.0)
    x = torch.tensor([[0.0], [1], [2], [3]])
    row = torch.tensor([-1.34164, -0.44721, 0.44721, 1.34164])
    close(layer(x).flatten(), row, atol=1e-4, rtol=0)
    assert layer.running_var.item() == pytest.approx(5 / 3)
    row = torch.tensor([-1.16189, -0.38730, 0.38730, 1.16189])
    close(layer.eval()(x).flatten(), row, atol=1e-4, rtol=0)


def test_frozen_parameters_do_not_freeze_statistics():  # FR-008, FR-010
    layer = normlab.BatchNorm1d(2).requires_grad_(False)
    with torch.no_grad():
        layer(torch.tensor([[0.0, 10], [2, 20]]))
    close(layer.running_mean, torch.tensor([0.1, 1.5]))
    close(layer.running_var, torch.tensor([1.1, 5.9]))
    assert layer.num_batches_tracked == 1
    # eval mode does not freeze the parameters either
    layer.eval().requires_grad_(True)
    layer(torch.tensor([[0.0, 10], [2, 20]])).square().sum().backward()
    assert layer.weight.grad.abs().min() > 0


def test_too_few_updates():  # FR-015
    layer = normlab.BatchNorm1d(1)
    for _ in range(5):
        layer(torch.tensor([[98.0], [102]]))
    assert layer.running_mean.item() == pytest.approx(40.951, abs=1e-3)
    assert layer.running_var.item() == pytest.approx(3.867, abs=1e-3)


def test_an_average_never_forgets_nan():  # FR-016
    layer = normlab.BatchNorm1d(1)
    layer(torch.tensor([[0.0], [float("nan")]]))
    for step in range(5):
        assert layer(draw(4, 1, seed=step)).isfinite().all()
    assert layer.running_mean.isnan()
    assert layer.eval()(draw(4, 1)).isnan().all()


def test_who_depends_on_the_neighbours():  # FR-020
    x = draw(3, 4, 3, 3)
    others = torch.cat([x[:1], 9 * x[1:] + 1])
    coupled = {
        "train": normlab.BatchNorm2d(4),
        "eval, untracked": normlab.BatchNorm2d(4, track_running_stats=False).eval(),
    }
    alone = {
        "eval": normlab.BatchNorm2d(4).eval(),
        "instance": normlab.InstanceNorm2d(4),
        "group": normlab.GroupNorm(2, 4),
        "layer": normlab.LayerNorm(3),
        "rms": normlab.RMSNorm(3),
    }
    for layer in coupled.values():
        assert (layer(x)[0] - layer(others)[0]).abs().max() > 1
    for layer in alone.values():
        assert torch.equal(layer(x)[0], layer(others)[0])


def test_group_norm_of_one_group_is_layer_norm_without_parameters():  # FR-031
    x = draw(2, 3, 4, 5)
    layer = normlab.LayerNorm([3, 4, 5], elementwise_affine=False)
    close(normlab.GroupNorm(1, 3, affine=False)(x), layer(x))
    pixels = normlab.LayerNorm(3, elementwise_affine=False)(x.movedim(1, -1))
    assert (pixels.movedim(-1, 1) - layer(x)).abs().max() > 0.5
    assert normlab.LayerNorm([3, 4, 5]).weight.shape == (3, 4, 5)
    assert normlab.GroupNorm(1, 3).weight.shape == (3,)


def test_groups_of_one_value_give_the_bias():  # FR-003
    layer = normlab.GroupNorm(10, 10)
    with torch.no_grad():
        layer.bias.copy_(torch.arange(10.0))
    expected = layer.bias.detach().expand(64, 10).contiguous()
    for shape in ((64, 10, 1), (64, 10)):
        close(layer(draw(*shape)).detach().view(64, 10), expected, atol=1e-4, rtol=0)


# ---- what torch can do with it


@pytest.mark.slow
def test_cumulative_average_compiles_to_one_graph():  # FR-061
    layer = normlab.BatchNorm1d(2, momentum=None)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for mean in (4.0, 8.0):
        compiled(torch.full((3, 2), mean) + torch.tensor([[-1.0], [0], [1]]))
    close(layer.running_mean, torch.tensor([6.0, 6.0]))
    assert layer.num_batches_tracked == 2


def test_export_shows_where_statistics_come_from():  # FR-058
    for layer in (
        normlab.InstanceNorm2d(3).eval(),
        normlab.BatchNorm2d(3, track_running_stats=False).eval(),
    ):
        program = torch.export.export(layer, (draw(2, 3, 4, 4),))
        names = [str(node.target) for node in program.graph.nodes]
        # the sums of the values and of their squares: of the input, in eval
        assert sum("sum" in name for name in names) == 2


def test_an_ensemble_under_vmap():
    x = draw(3, 4, 6, 5)
    results = []
    for layer in pair("BatchNorm1d", 6):
        state = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
        stacked = {k: torch.stack([v, v, v]).detach() for k, v in state.items()}

        def run(state, x, layer=layer):
            return functional_call(layer, state, (x,))

        results.append((vmap(run)(stacked, x), stacked))
    torch.testing.assert_close(results[1], results[0])
    assert results[1][1]["num_batches_tracked"].tolist() == [1, 1, 1]


# ---- errors


def ones(*shape):
    return torch.ones(shape)


ERRORS = [
    (lambda L: L.BatchNorm1d(3)(ones(1, 3)), ValueError,  # FR-001
     r"BatchNorm1d: .* more than 1 value per channel, but the input \(1, 3\) has 1; "
     "use a larger batch .* drop the last batch of one"),
    (lambda L: L.BatchNorm1d(3, track_running_stats=False).eval()(ones(1, 3)),  # FR-002
     ValueError,
     r"BatchNorm1d: .*\(1, 3\) has 1; with track_running_stats=False there are no "
     r"running statistics, so eval mode uses the batch's too"),
    (lambda L: L.InstanceNorm2d(4)(ones(32, 4, 1, 1)), ValueError,  # FR-004
     "a larger batch does not help"),
    (lambda L: L.InstanceNorm2d(4).eval()(ones(32, 4, 1, 1)), ValueError,
     r"its positions have shrunk to one"),
    (lambda L: L.BatchNorm1d(5)(ones(2, 3, 5)), RuntimeError,  # FR-035
     r"channels must be axis 1; axis 2 has size 5, so perhaps pass x.transpose"),
    (lambda L: L.BatchNorm1d(5)(ones(2, 3, 5, 5)), ValueError,
     r"BatchNorm1d: the input must be 2-D or 3-D, got 4-D of shape \(2, 3, 5, 5\); .*"
     r"\(N, C\) or \(N, C, L\)"),
    (lambda L: L.BatchNorm2d(5)(ones(2, 5)), ValueError, "must be 4-D, got 2-D"),
    (lambda L: L.BatchNorm3d(5)(ones(2, 5)), ValueError, "must be 5-D, got 2-D"),
    (lambda L: L.InstanceNorm1d(5)(ones(5)), ValueError, "2-D or 3-D, got 1-D"),
    (lambda L: L.InstanceNorm2d(5)(ones(5, 2)), ValueError, "must be 3-D or 4-D"),
    (lambda L: L.InstanceNorm3d(5)(ones(5, 2)), ValueError, "must be 4-D or 5-D"),
    (lambda L: L.InstanceNorm1d(5, affine=True)(ones(2, 4, 3)), ValueError,
     r"InstanceNorm1d: the input's channels \(axis 1 of \(2, 4, 3\)\) must be "
     r"num_features \(5\); make the layer for 4\."),
    (lambda L: L.InstanceNorm1d(5, affine=True)(ones(4, 3)), ValueError, r"axis 0"),
    (lambda L: L.GroupNorm(4, 10), ValueError,  # FR-051
     r"GroupNorm: num_channels \(10\) must be divisible by num_groups \(4\); 5 or 2 "
     "groups would fit"),
    (lambda L: L.GroupNorm(6, 2), ValueError, "2 or 1 groups would fit"),
    (lambda L: L.GroupNorm(2, 4)(ones(2, 6, 3)), RuntimeError, "weight has 4 values"),
    (lambda L: L.LayerNorm(3)(ones(2, 3, 4, 5)), RuntimeError,  # FR-032
     r"axis 1 has size 3, so perhaps pass x.movedim\(1, -1\)"),
    (lambda L: L.RMSNorm(3)(ones(2, 4)), RuntimeError, r"must end in .* got \(2, 4\)"),
    (lambda L: L.LayerNorm(3).half()(ones(2, 3)), RuntimeError,  # FR-048
     r"LayerNorm: .* must all be torch.float32 .*; convert the layer with .to"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "error", "sentence"), ERRORS)
def test_errors(run, error, sentence):
    with pytest.raises(error, match=sentence):
        run(normlab)
    assert type(outcome(run, nn)) is error


@pytest.mark.parametrize("num_groups", [0, -1])
def test_groups_below_one_are_refused_early(num_groups):  # FR-051: torch divides by 0,
    # and takes -1 until the first forward
    sentence = rf"GroupNorm: num_groups must be at least 1, got {num_groups} \(with "
    with pytest.raises(ValueError, match=sentence):
        normlab.GroupNorm(num_groups, 4)


def test_a_call_that_raises_leaves_the_statistics_alone():
    layer = normlab.BatchNorm1d(3)
    before = copy.deepcopy(layer.state_dict())
    for bad in (ones(1, 3), ones(2, 5), ones(2, 3).double()):
        with pytest.raises((ValueError, RuntimeError), match="BatchNorm"):
            layer(bad)
    close(layer.state_dict(), before)


def test_num_features_that_is_not_needed_warns():
    x = draw(2, 4, 3)
    sentence = r"InstanceNorm1d: .*\(axis 1 of .* must be num_features \(5\); not used"
    with pytest.warns(UserWarning, match=sentence) as caught:
        close(normlab.InstanceNorm1d(5)(x), nn.InstanceNorm1d(4)(x))
    assert caught[0].filename == nn.modules.module.__file__  # as torch's own warning


def test_small_maps_that_torch_takes_too():  # FR-001
    two = normlab.BatchNorm2d(3)(draw(1, 3, 2, 1))
    close(two.abs(), torch.ones(1, 3, 2, 1), atol=1e-2, rtol=0)
    nine = normlab.BatchNorm2d(3)(draw(1, 3, 4, 4))
    close(nine.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-4, rtol=0)


@pytest.mark.parametrize("layer", [normlab.BatchNorm1d(2), normlab.LayerNorm(2)])
@pytest.mark.parametrize("x", [None, [[1.0, 2.0]]])
def test_the_input_is_a_tensor(layer, x):
    with pytest.raises(
        TypeError, match=r"Norm.*: the input must be a torch.Tensor, got"
    ):
        layer(x)


def test_torch_fx_traces_a_model_in_which_our_layers_are_leaves():
    model = nn.Sequential(nn.Linear(6, 8), normlab.LayerNorm(8), normlab.RMSNorm(8))
    with pytest.raises(TypeError, match=r"LayerNorm: .*is_leaf_module say True"):
        torch.fx.symbolic_trace(model)

    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, module, name):
            ours = type(module).__module__.startswith("normlab")
            return ours or super().is_leaf_module(module, name)

    traced = torch.fx.GraphModule(model, Tracer().trace(model))
    x = torch.randn(4, 6)
    assert torch.equal(traced(x), model(x))


def test_exports_with_any_batch_size():
    layers = normlab.BatchNorm2d(4), normlab.InstanceNorm2d(4, track_running_stats=True)
    for layer in layers:
        sizes = ({0: torch.export.Dim("batch")},)
        layer.eval()
        exported = torch.export.export(layer, (draw(2, 4, 3, 3),), dynamic_shapes=sizes)
        x = draw(4, 4, 3, 3)  # as many samples as channels
        close(exported.module()(x), layer(x))
