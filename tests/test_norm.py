"""The general layer: each built-in layer is one Norm, and any other pattern works."""

import copy

import pytest
import torch

import normlab
from normlab import axes
from parity import BFLOAT, DOUBLE, HALF, close, draw, outcome

SIZES = {"N": 4, "C": 6, "L": 5, "D": 5, "H": 3, "W": 2}
GROUPS = 3


def shape_of(row):
    sizes = SIZES | ({"D": 2} if "H" in row.pattern.axes else {})
    return tuple(sizes[axis] for axis in row.pattern.axes)


def steps(layer, shape):
    """Three steps of training, then eval: outputs, gradients and running statistics."""
    seen = []
    for step in range(3):
        x = draw(*shape, seed=step, spread=2, offset=1, dtype=DOUBLE).requires_grad_()
        y = layer(x)
        layer.zero_grad()
        y.sin().sum().backward()
        seen += [y, x.grad, *(p.grad.clone() for p in layer.parameters())]
    return [
        *seen,
        layer.eval()(x),
        *(b for b in layer.buffers() if b.is_floating_point()),
    ]


@pytest.mark.parametrize("momentum", [0.3, None])
@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("row", axes.LAYERS, ids=lambda r: f"{r.name}-{r.statistics}")
def test_every_layer_is_one_norm(row, affine, tracked, momentum):
    if row.running == "never":
        tracked = False
    if row.norm == "InstanceNorm" and momentum is None:
        momentum = 0.0  # it knows no cumulative average
    shape = shape_of(row)
    sizes = dict(zip(row.pattern.axes, shape, strict=True))
    if row.pattern.groups:
        sizes[row.pattern.groups] = GROUPS
    norm = normlab.Norm(
        row.statistics,
        row.parameters if affine else None,
        center=row.center,
        track_running_stats=tracked,
        momentum=momentum,
        eps=1e-3,
        sizes=sizes,
        dtype=DOUBLE,
    )
    if row.norm in ("LayerNorm", "RMSNorm"):
        normalized = [sizes[axis] for axis in row.pattern.reduced]
        args, kwargs = (normalized,), {"elementwise_affine": affine}
    elif row.norm == "GroupNorm":
        args, kwargs = (GROUPS, sizes["C"]), {"affine": affine}
    else:
        args = (sizes["C"],)
        kwargs = {"affine": affine, "track_running_stats": tracked}
        kwargs["momentum"] = momentum
    layer = getattr(normlab, row.name)(*args, eps=1e-3, dtype=DOUBLE, **kwargs)
    with torch.no_grad():
        for i, parameter in enumerate(layer.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=i + 5))
    norm.load_state_dict(layer.state_dict(), strict=True)
    expected, actual = (steps(each, shape) for each in (layer, norm))
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        close(one, other)


def by_definition(x, pattern, center=True, eps=1e-5, **sizes):
    """Set by set, in plain loops: what the pattern means."""
    ids = torch.from_numpy(axes.parse(pattern).on(x.shape, **sizes).set_ids.copy())
    y = torch.empty_like(x)
    for k in ids.unique():
        values = x[ids == k]
        mean = values.mean() if center else 0
        y[ids == k] = (values - mean) / ((values - mean).square().mean() + eps).sqrt()
    return y


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(
    ("pattern", "shape", "sizes"),
    [
        ("[N C H W]", (2, 3, 4, 2), {}),
        ("[N] C [H] W", (2, 3, 4, 2), {}),
        ("N C H W", (2, 3, 4, 2), {}),
        ("N ([C/G] G) [H W]", (2, 6, 4, 2), {"G": 3}),
        ("N (G [C/G]) H [W]", (2, 6, 4, 2), {"G": 3}),
        ("[N] (G [C/G])", (4, 6), {"G": 2}),
        ("N ([G] C/G) [W]", (4, 6, 5), {"G": 2}),
        ("N ...", (2, 3, 4), {}),
        ("N [...]", (2, 3, 4), {}),
        ("[...] D", (2, 3, 4), {}),
        ("[X]", (5,), {}),
        ("A B [C] D E F", (2, 1, 3, 2, 1, 2), {}),
    ],
)
def test_any_pattern_against_loops(pattern, shape, sizes, center):
    x = draw(*shape, spread=3, offset=1, dtype=DOUBLE)
    actual = normlab.Norm(pattern, center=center, sizes=sizes)(x)
    close(actual, by_definition(x, pattern, center, **sizes), atol=1e-9, rtol=1e-9)


def test_parameters_stand_at_their_axes():
    norm = normlab.Norm("N C [H] W", "C W", sizes={"C": 3, "W": 2})
    assert norm.weight.shape == norm.bias.shape == (3, 2)
    with torch.no_grad():
        norm.weight.copy_(torch.arange(6.0).view(3, 2))
        norm.bias.copy_(10 * torch.arange(6.0).view(3, 2))
    x = draw(2, 3, 4, 2)
    plain = normlab.Norm("N C [H] W")(x)
    factor = torch.arange(6.0).view(1, 3, 1, 2)
    close(norm(x).detach(), plain * factor + 10 * factor)
    assert normlab.Norm("N [D]", "D", center=False, sizes={"D": 3}).bias is None


def test_running_statistics_of_groups():
    norm = normlab.Norm(
        "N (G [C/G]) [L]", track_running_stats=True, momentum=None, sizes={"G": 2}
    )
    batches = [draw(3, 4, 5, seed=k, offset=k, dtype=DOUBLE) for k in (1, 2)]
    norm.double()
    for x in batches:
        norm(x)
    # of every sample and group: the mean, and the variance with n - 1
    sets = torch.stack(batches).view(2, 3, 2, 10)
    close(norm.running_mean, sets.mean(-1).mean((0, 1)))
    close(norm.running_var, sets.var(-1, correction=1).mean((0, 1)))
    assert norm.num_batches_tracked == 2
    mean, var = norm.running_mean.view(1, 2, 1), norm.running_var.view(1, 2, 1)
    expected = (batches[0].view(3, 2, 10) - mean) / (var + 1e-5).sqrt()
    close(norm.eval()(batches[0]), expected.view(3, 4, 5))
    empty = norm.train()(torch.empty(0, 4, 5, dtype=DOUBLE))
    assert empty.shape == (0, 4, 5)
    assert norm.running_mean.isfinite().all()


def test_a_split_axis_that_is_kept_has_running_statistics_too():
    norm = normlab.Norm(
        "[N] (G C/G) [L]",
        track_running_stats=True,
        momentum=1.0,
        sizes={"C": 4, "G": 2},
    )
    assert norm.running_mean.shape == (2, 2)
    x = draw(3, 4, 5)
    norm(x)
    close(norm.running_mean.flatten(), x.mean((0, 2)))


def test_16_bits_and_eps_none():
    for dtype in (HALF, BFLOAT):
        x = draw(4, 6, 5).to(dtype)
        norm = normlab.Norm("N (G [C/G]) [L]", "C", sizes={"C": 6, "G": 2})
        close(norm(x), normlab.GroupNorm(2, 6)(x))
        norm = normlab.Norm("N L [D]", center=False, eps=None)
        close(norm(x * 1e-3), normlab.RMSNorm(5)(x * 1e-3))


def test_memory_format_copies_and_text():
    x = draw(2, 4, 3, 3).contiguous(memory_format=torch.channels_last)
    norm = normlab.Norm("N (G [C/G]) [H W]", "C", sizes={"C": 4, "G": 2})
    y = norm(x)
    assert y.is_contiguous(memory_format=torch.channels_last)
    close(copy.deepcopy(norm)(x), y)
    assert repr(norm) == (
        "Norm('N (G [C/G]) [H W]', 'C', sizes={'C': 4, 'G': 2}, center=True, "
        "track_running_stats=False, momentum=0.1, eps=1e-05)"
    )
    assert norm.to("meta")(x.to("meta")).shape == x.shape


@pytest.mark.slow
def test_compiles_to_one_graph():
    norm = normlab.Norm("N (G [C/G]) [H W]", "C", sizes={"C": 4, "G": 2})
    torch._dynamo.reset()
    x = draw(2, 4, 3, 3)
    compiled = torch.compile(norm, fullgraph=True, backend="aot_eager")
    close(compiled(x), norm(x))
    tracked = normlab.Norm("[N] C [L]", track_running_stats=True, sizes={"C": 4})
    twin = copy.deepcopy(tracked)
    compiled = torch.compile(tracked, fullgraph=True, backend="aot_eager")
    for n in (2, 3, 4):
        close(compiled(draw(n, 4, 3)), twin(draw(n, 4, 3)))
    close(tracked.state_dict(), twin.state_dict())


ERRORS = [
    (("N [C", None), {}, axes.PatternError, "never closed"),
    (("N [C]", "D"), {}, axes.PatternError, "'D' is no axis"),
    (("N [C]", "C"), {}, ValueError,
     r"Norm: the parameters of 'N \[C\]' need the sizes of C before any input is seen, "
     r"but C came without; pass sizes=\{'C': ...\}"),
    (("N L [D]",), {"track_running_stats": True}, ValueError,
     r"running statistics of 'N L \[D\]' need the sizes of L .* sizes=\{'L': ...\}"),
    (("[N] (G C/G)",), {"track_running_stats": True, "sizes": {"G": 2}}, ValueError,
     r"need the sizes of G C/G .* C/G came without; pass sizes=\{'C': ...\}"),
    (("[N] C",), {"center": False, "track_running_stats": True}, ValueError,
     "Norm: running statistics are a mean and a variance, but center=False"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "kwargs", "error", "sentence"), ERRORS)
def test_errors_of_construction(args, kwargs, error, sentence):
    with pytest.raises(error, match=sentence):
        normlab.Norm(*args, **kwargs)


def test_errors_of_the_input():
    norm = normlab.Norm("[N] C [L]", "C", track_running_stats=True, sizes={"C": 3})
    with pytest.raises(axes.ShapeError, match="C"):
        norm(draw(2, 4, 5))
    with pytest.raises(axes.ShapeError, match="axes"):
        norm(draw(2, 3))
    with pytest.raises(
        ValueError, match=r"Norm: .* 1 value per set .*\(1, 3, 1\), and "
    ):
        norm(draw(1, 3, 1))
    with pytest.raises(RuntimeError, match=r"Norm: .* must all be torch.float64"):
        norm(draw(2, 3, 5, dtype=DOUBLE))
    with pytest.raises(NotImplementedError, match="Norm: the input must be a floating"):
        normlab.Norm("N [D]", center=False)(torch.ones(2, 3, dtype=torch.long))
    assert norm.num_batches_tracked == 0
    assert norm.eval()(draw(1, 3, 1)).shape == (1, 3, 1)
    # without batch or running statistics one value is its own mean, and gives 0
    assert normlab.Norm("N C")(draw(2, 3)).abs().max() == 0
    assert isinstance(outcome(normlab.Norm("[N] C"), draw(1, 3)), ValueError)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({"C": 8, "G": 3}, ValueError, "3 groups do not divide"),
        ({"C": 8, "G": 0}, ValueError, "0 groups do not divide"),
        ({"C": 8}, ValueError, "the number of groups G is missing"),
        ({"C": 8, "G": 4, "Z": 1}, ValueError, "'Z' is no axis"),
        ({"C": 8.0, "G": 4}, ValueError, "is 8.0"),
        (8, TypeError, "sizes must be a dict"),
    ],
)
def test_impossible_sizes_are_refused_at_once(sizes, error, message):
    with pytest.raises(error, match=message):
        normlab.Norm("N (G [C/G]) [...]", "C", sizes=sizes)
