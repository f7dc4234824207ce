"""The five functions: PyTorch is the oracle, and what a norm must not depend on."""

import inspect

import hypothesis.strategies as st
import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as theirs
from hypothesis import HealthCheck, given, settings
from torch.func import grad, jacfwd, jacrev, jvp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db

import normlab.functional as ours
from normlab import _loops, _slices
from parity import (
    BFLOAT,
    CALLS,
    DOUBLE,
    FLOAT,
    HALF,
    LIBRARIES,
    arguments,
    close,
    draw,
    near_double,
    outcome,
    running,
    same_outcome,
)

OPS = {
    op.name.split(".")[-1]: op
    for op in op_db
    if op.name.split(".")[-1] in ours.__all__ and not op.variant_test_name
}
ALL = pytest.mark.parametrize("name", CALLS)
# those that take (N, C), and those that subtract the input's own mean
RANK_2 = [n for n in CALLS if n[0] != "i" and n not in ("layer-2", "rms-2")]
CENTERED = [n for n in CALLS if n[0] != "r" and not n.endswith("eval")]
# the tests of values alone, which no gradient forbids to compute in slices
BOTH_WAYS = pytest.mark.usefixtures("way")
# torch's own forward-mode rules are scripted on first use
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


def gradients(call, *tensors):
    """The gradients of a curved function of the output."""
    tensors = [t if t is None else t.clone().requires_grad_() for t in tensors]
    call(*tensors).sin().sum().backward()
    return [t if t is None else t.grad for t in tensors]


@pytest.fixture(params=["at once", "in slices"])
def way(request, monkeypatch):
    """All steps on the whole tensor, or on slices so small that there are many."""
    if request.param == "at once":
        monkeypatch.setattr(_slices, "allowed", lambda *tensors: False)
    else:
        monkeypatch.setattr(_slices, "SLICE", 8)


@pytest.mark.parametrize("name", ours.__all__)
def test_signature(name):
    expected = inspect.signature(getattr(theirs, name))
    assert inspect.signature(getattr(ours, name)) == expected


# ---- PyTorch's operator database


@pytest.mark.parametrize("with_gradient", [True, False])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (n, d)
        for n in OPS
        for d in (DOUBLE, FLOAT, torch.complex64)
        if d in OPS[n].dtypes
    ],
)
def test_samples_of_torch(name, dtype, with_gradient, monkeypatch):
    monkeypatch.setattr(_slices, "SLICE", 8)
    seen = 0
    for sample in OPS[name].sample_inputs("cpu", dtype, requires_grad=False):
        results = []
        for library in LIBRARIES:
            # the arguments are compared too: running statistics are updated in place
            args = [
                t.clone() if isinstance(t, torch.Tensor) else t for t in sample.args
            ]
            kwargs = dict(sample.kwargs)
            for key, value in kwargs.items():
                kwargs[key] = value.clone() if hasattr(value, "clone") else value
            x = sample.input.clone().requires_grad_(with_gradient)
            y = getattr(library, name)(x, *args, **kwargs)
            if with_gradient:
                y.abs().square().sum().backward()
            gradient = None if name == "instance_norm" and not x.numel() else x.grad
            results.append([y, gradient, args, kwargs])
        # torch draws values of up to 1e3
        tolerance = {} if dtype == DOUBLE else {"rtol": 1e-5, "atol": 1e-4}
        for actual, expected in zip(results[1], results[0], strict=True):
            close(actual, expected, **tolerance)
        seen += 1
    assert seen >= 5


@BOTH_WAYS
@pytest.mark.parametrize("dtype", [HALF, BFLOAT], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_samples_of_torch_in_16_bits(name, dtype):
    def convert(value, dtype):
        tensor = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.clone().to(dtype) if tensor else value

    for sample in OPS[name].sample_inputs("cpu", dtype, requires_grad=False):
        outputs = []
        for library, as_dtype in ((ours, dtype), (theirs, DOUBLE)):
            x, *args = (convert(v, as_dtype) for v in (sample.input, *sample.args))
            kwargs = {k: convert(v, as_dtype) for k, v in sample.kwargs.items()}
            if name == "rms_norm" and as_dtype == DOUBLE:  # 16 bits: float32's eps
                kwargs["eps"] = kwargs.get("eps") or torch.finfo(FLOAT).eps
            outputs.append([getattr(library, name)(x, *args, **kwargs), *args])
        for actual, exact in zip(*outputs, strict=True):
            if isinstance(actual, torch.Tensor):
                assert actual.dtype == dtype
                near_double(actual, exact)


@pytest.mark.parametrize("name", ["group_norm", "rms_norm"])
def test_error_inputs_of_torch(name):
    for error in OPS[name].error_inputs("cpu"):
        sample = error.sample_input
        with pytest.raises(error.error_type, match=r"Norm: .* must "):
            getattr(ours, name)(sample.input, *sample.args, **sample.kwargs)


# ---- any size, dtype


@ALL
@BOTH_WAYS
@given(
    shape=st.tuples(
        st.integers(0, 4),
        st.sampled_from([0, 2, 4]),
        *[st.integers(0, 4)] * 2,
    ),
    rank=st.integers(2, 4),
    affine=st.sampled_from(["both", "weight", "bias", "none"]),
    layout=st.sampled_from(["plain", "transposed", "channels_last", "sliced"]),
)
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # alike for all
)
def test_any_shape(name, shape, rank, affine, layout):
    if name[-1] == "2" and name[0] != "g" and rank < 3:
        rank = 3
    call, x, weight, bias = arguments(name, *shape[:rank], dtype=DOUBLE)
    if layout == "transposed":
        x = x.transpose(0, -1).contiguous().transpose(0, -1)
    elif layout == "channels_last" and rank == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    elif layout == "sliced":
        x = torch.stack([x, x + 1], -1)[..., 0]
    weight = weight if affine in ("both", "weight") else None
    bias = bias if affine in ("both", "bias") else None
    expected, actual = (
        outcome(call, library, x, weight, bias) for library in LIBRARIES
    )
    if isinstance(expected, IndexError) and not x.numel():
        # torch looks for the first of no weights; there is nothing to normalize
        assert actual.shape == x.shape
        return
    if name[0] == "b" and layout == "transposed" and rank == 4 and 1 in shape[2:]:
        # an axis of 1 leaves open which memory format this is, and torch's batch_norm
        # decides otherwise than its group_norm: the values alone must agree
        expected, actual = (
            t if isinstance(t, Exception) else t.contiguous()
            for t in (expected, actual)
        )
    same_outcome(expected, actual)


@pytest.mark.parametrize(
    ("name", "rank"),
    [(n, r) for n in CALLS for r in (2, 3, 4, 5) if r > 2 or n in RANK_2],
)
def test_gradients_of_order_1_and_2(name, rank):
    call, *tensors = arguments(name, *(4, 4, 3, 2, 2)[:rank], dtype=DOUBLE)
    if name.startswith("rms"):
        tensors = tensors[:2]
        call = lambda F, x, w, call=call: call(F, x, w, None)  # noqa: E731
    results = []
    for library in LIBRARIES:
        inputs = [t.clone().requires_grad_() for t in tensors]
        first = torch.autograd.grad(
            call(library, *inputs).sin().sum(), inputs, create_graph=True
        )
        second = torch.autograd.grad(sum(g.cos().sum() for g in first), inputs)
        results.append([*first, *second])
    for expected, actual in zip(*results, strict=True):
        close(actual, expected)


@pytest.mark.parametrize(
    "shape",
    [(0, 4, 3, 2), (3, 4, 0, 2), (3, 4, 1, 2), (1, 4, 2, 2), (2, 2, 1, 1)],
    ids=str,
)
@ALL
def test_gradients_at_sizes_0_and_1(name, shape):
    call, *tensors = arguments(name, *shape, dtype=DOUBLE)
    expected, actual = (
        outcome(lambda F=F: gradients(lambda *t: call(F, *t), *tensors[:2], None))
        for F in LIBRARIES
    )
    if name[0] in "ig" and 0 in shape:  # torch fails: an index error, NaN, no gradient
        assert [g.abs().sum().item() for g in actual[:2]] == [0, 0]
    elif isinstance(expected, Exception):
        assert type(actual) is type(expected)
    else:
        close(actual, expected)


@ALL
def test_gradients_against_finite_differences(name):
    call, *tensors = arguments(name, 3, 2, 2, 2, dtype=DOUBLE)
    tensors = [t.requires_grad_() for t in tensors[: 2 if name[0] == "r" else 3]]

    def run(x, weight, bias=None):
        return call(ours, x, weight, bias)

    assert torch.autograd.gradcheck(run, tensors, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(run, tensors)


@pytest.mark.parametrize("dtype", [HALF, BFLOAT], ids=str)
@ALL
def test_16_bit_gradients_against_float64(name, dtype):
    call, *tensors = arguments(name, 6, 4, 3, 5, dtype=dtype)
    if name[0] == "r":
        tensors = tensors[:2]

    def run(library, eps32, *args):
        if name == "rms-1":  # eps=None is float32's, whatever the reference's dtype
            return library.rms_norm(args[0], (5,), args[1], eps32)
        return call(library, *args, *[None] * (3 - len(args)))

    eps = torch.finfo(FLOAT).eps
    exact = gradients(
        lambda *args: run(theirs, eps, *args), *[t.double() for t in tensors]
    )
    actual = gradients(lambda *args: run(ours, None, *args).double(), *tensors)
    for got, expected in zip(actual, exact, strict=True):
        assert got.dtype == dtype
        # the output is rounded to 16 bits before sin, which moves the gradient a little
        error = (got.double() - expected).abs().max() / expected.abs().max()
        assert error < 4 * torch.finfo(dtype).eps


DTYPES = [DOUBLE, FLOAT, BFLOAT, HALF]


@BOTH_WAYS
@pytest.mark.parametrize("present", ["both", "weight", "bias", "none"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm", "layer_norm",
                                  "group_norm", "rms_norm"])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_mixed_dtypes(name, dtype, present):
    x = draw(4, 6, 5).to(dtype)
    for parameters in DTYPES:
        weight = (
            draw(6, seed=1).to(parameters) if present in ("both", "weight") else None
        )
        bias = draw(6, seed=2).to(parameters) if present in ("both", "bias") else None
        for buffers in DTYPES:
            pair = running(6, buffers)
            before = [t.clone() for t in pair]

            def call(library, x, weight, bias, pair):
                if name in ("batch_norm", "instance_norm"):
                    return getattr(library, name)(x, *pair, weight, bias, True)
                if name == "group_norm":
                    return library.group_norm(x, 2, weight, bias)
                last = x.transpose(1, 2)
                if name == "rms_norm":
                    return library.rms_norm(last, (6,), weight)
                return library.layer_norm(last, (6,), weight, bias)

            expected, actual = (
                outcome(call, F, x, weight, bias, pair) for F in LIBRARIES
            )
            mixed_bias = name == "instance_norm" and present == "bias"
            if mixed_bias and isinstance(expected, Exception) and parameters == FLOAT:
                continue  # torch refuses float32 bias without weight for 16-bit input
            assert isinstance(actual, Exception) == isinstance(expected, Exception)
            if isinstance(actual, Exception):
                assert type(actual) is type(expected)
                assert "must all be" in str(actual)
                with pytest.raises(RuntimeError, match="must all be"):
                    call(ours, x, weight, bias, pair)
                for now, then in zip(pair, before, strict=True):
                    assert torch.equal(now, then)  # left alone when the call raises
            else:
                assert actual.dtype == expected.dtype == dtype
                eps = torch.finfo(dtype).eps
                close(actual, expected, rtol=4 * eps, atol=16 * eps)


@BOTH_WAYS
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")], ids=str)
@ALL
def test_not_finite(name, value):
    call, x, weight, bias = arguments(name, 3, 4, 3, 2)
    x[1, 2, 1, 0] = value
    expected, actual = (call(library, x, weight, bias) for library in LIBRARIES)
    assert not expected.isfinite().all()
    close(actual, expected)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=str)
def test_running_statistics_keep_what_is_not_finite(name, value):
    x = draw(3, 4, 5)
    x[1, 2, 3] = value
    results = []
    for library in LIBRARIES:
        mean, var = running(4)
        getattr(library, name)(x, mean, var, None, None, True)
        results.append((mean, var))
    close(results[1], results[0])


# ---- numerics


@BOTH_WAYS
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("offset", [1e2, 1e4])
@pytest.mark.parametrize("name", CENTERED)
def test_large_mean(name, offset, channels_last):
    call, x, weight, bias = arguments(name, 4, 4, 8, 8)
    x = x + offset
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    exact = call(theirs, *(t.double() for t in (x, weight, bias))).float()
    # the input's own rounding is about offset * 6e-8; one-pass variance is off by 1
    close(call(ours, x, weight, bias), exact, atol=offset * 1e-6, rtol=1e-4)


@BOTH_WAYS
def test_small_spread_at_a_large_mean():
    row = torch.arange(16, dtype=FLOAT) * 1e-3
    for mean, allowed in ((0, 1e-6), (100, 2e-3), (1000, 2e-2), (10000, 0.2)):
        x = (row + mean)[None]
        exact = theirs.layer_norm((row.double() + mean)[None], (16,))
        assert (ours.layer_norm(x, (16,)).double() - exact).abs().max() < allowed
    x = torch.tensor([[40000.0, 40001, 40002, 40003]])
    expected = torch.tensor([[-1.34164, -0.44721, 0.44721, 1.34164]])
    close(ours.layer_norm(x, (4,)), expected, atol=1e-4, rtol=0)


def test_small_values_and_eps():
    x = torch.full((4,), 1e-4)
    for dtype, expected in (
        (FLOAT, 0.2782),
        (BFLOAT, 0.2793),
        (HALF, 0.2783),
        (DOUBLE, 1),
    ):
        actual = ours.rms_norm(x.to(dtype), (4,))[0].item()
        assert actual == pytest.approx(expected, abs=1e-4)
    assert ours.rms_norm(x, (4,), eps=1e-6)[0].item() == pytest.approx(0.0995, abs=1e-4)
    assert ours.rms_norm(x, (4,), eps=1e-5)[0].item() == pytest.approx(0.0316, abs=1e-4)
    tiny = torch.tensor([-9.9e-4, -9.9e-4, 9.9e-4, 9.9e-4])
    expected = torch.tensor([-1.0, -1, 1, 1])
    close(ours.layer_norm(tiny, (4,), eps=1e-12), expected, atol=1e-5, rtol=0)


@BOTH_WAYS
def test_squares_that_overflow_16_bits():
    x = torch.tensor([300.0, 400, 1000, -1000], dtype=HALF)
    expected = torch.tensor([0.3999, 0.5332, 1.333, -1.333], dtype=HALF)
    close(ours.rms_norm(x, (4,), eps=1e-6), expected, atol=1e-3, rtol=0)
    close(ours.layer_norm(x, (4,)), theirs.layer_norm(x, (4,)))


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_eps_is_not_lost_on_16_bit_running_statistics(name):
    x = draw(3, 4, 5, dtype=BFLOAT)
    stats = torch.zeros(4, dtype=BFLOAT), torch.full((4,), 1.0, dtype=BFLOAT)
    # 1.006 is 1.0078 in bfloat16: the sum must be taken in float32
    actual = getattr(ours, name)(x, *stats, None, None, False, eps=0.6e-2)
    exact = x.double() / 1.006**0.5
    assert torch.equal(actual, exact.to(BFLOAT))
    lost = (x.double() / torch.full((), 1.006, dtype=BFLOAT).double() ** 0.5).to(BFLOAT)
    assert not torch.equal(actual, lost)


def test_rms_norm_multiplies_before_it_rounds():
    x, weight = draw(64, 256, dtype=BFLOAT), draw(256, seed=1, dtype=BFLOAT)
    actual = ours.rms_norm(x, (256,), weight)
    assert torch.equal(actual, theirs.rms_norm(x, (256,), weight))
    rounded_first = ours.rms_norm(x, (256,)) * weight
    assert (actual != rounded_first).double().mean() > 0.2  # the order is visible


@BOTH_WAYS
def test_the_classic_mistakes_are_not_made():
    row = torch.tensor([[1.0, 0, 0, 0]])  # eps outside, or n - 1, would give 1.5
    close(ours.layer_norm(row, (4,))[0, 0].item(), 1.7320, atol=1e-4, rtol=0)
    column = torch.tensor([[0.0], [1], [2]])
    actual = ours.batch_norm(column, None, None, training=True)
    close(actual[2, 0].item(), 1.22474, atol=1e-4, rtol=0)


# ---- slice by slice


SLICED = {
    "layer": lambda x, w, b: ours.layer_norm(x, w.shape, w, b),
    "layer, weight": lambda x, w, b: ours.layer_norm(x, w.shape, w),
    "layer, bias": lambda x, w, b: ours.layer_norm(x, w.shape, None, b),
    "layer, plain": lambda x, w, b: ours.layer_norm(x, w.shape),
    "group": lambda x, w, b: ours.group_norm(x, 2, w, b),
    "group, weight": lambda x, w, b: ours.group_norm(x, 2, w),
    "group, bias": lambda x, w, b: ours.group_norm(x, 2, None, b),
    "group, plain": lambda x, w, b: ours.group_norm(x, 2),
}


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e20], ids=str)
@pytest.mark.parametrize(
    "shape", [(6,), (2, 6), (7, 4), (5, 4, 3), (3, 4, 40, 60), (2, 2, 3, 9000)], ids=str
)
@pytest.mark.parametrize("name", SLICED)
def test_slices_give_what_the_definition_gives(name, shape, offset, monkeypatch):
    if name.startswith("group") and len(shape) == 1:
        shape = (1, *shape)
    channels = shape[1] if name.startswith("group") else shape[-1]
    x = draw(*shape, spread=max(1.0, offset), offset=offset)  # 1e20 squared is infinite
    weight, bias = draw(channels, seed=1), draw(channels, seed=2)
    results = []
    for allowed in (False, True):
        monkeypatch.setattr(_slices, "allowed", lambda *tensors, a=allowed: a)
        results.append(SLICED[name](x, weight, bias))
        monkeypatch.setattr(_slices, "SLICE", max(8, x.numel() // 3))
    tolerance = 1e-6 * results[0].abs().max().item()
    close(results[1], results[0], rtol=1e-6, atol=tolerance)
    assert (1e20 > offset) or (results[1] - results[0]).abs().max() == 0


def test_slices_cover_every_set_once(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    seen = []
    exact = _slices._mean_square
    monkeypatch.setattr(
        _slices, "_mean_square", lambda c, dims: seen.append(len(c)) or exact(c, dims)
    )
    monkeypatch.setattr(_slices, "SLICE", 20)
    x = draw(7, 3, 4)
    close(ours.layer_norm(x, (4,)), theirs.layer_norm(x, (4,)))
    assert seen == [5, 5, 5, 5, 1]  # rows of 4 values
    seen.clear()
    close(ours.group_norm(x, 3), theirs.group_norm(x, 3))
    assert seen == [5, 5, 5, 5, 1]
    seen.clear()
    weight = draw(3)  # one per channel: samples stay whole
    close(ours.group_norm(x, 3, weight), theirs.group_norm(x, 3, weight))
    assert seen == [2, 2, 2, 1]


def test_slices_keep_their_digits_over_long_sets():
    x = draw(2, 2**20)
    exact = theirs.layer_norm(x.double(), x.shape[1:])
    assert (ours.layer_norm(x, x.shape[1:]) - exact).abs().max() < 1e-6


@pytest.mark.filterwarnings("ignore:.torch.jit.trace. is deprecated")
def test_slices_are_for_plain_values_alone():
    x, weight = draw(3, 4), torch.nn.Parameter(draw(4, seed=1))
    assert _slices.allowed(x, None)
    assert not _slices.allowed(x, weight)  # a gradient is wanted
    with torch.no_grad():
        assert _slices.allowed(x, weight)
        assert torch.equal(ours.layer_norm(x, (4,), weight)[0], _by_hand(x, weight)[0])
    assert not _slices.allowed(x.t())
    assert not _slices.allowed(x[:0])
    assert not _slices.allowed(x.to("meta"))
    assert not _slices.allowed(x.as_subclass(type("Marked", (torch.Tensor,), {})))
    asked = []
    ask = lambda t: asked.append(_slices.allowed(x)) or t * 2  # noqa: E731
    vmap(ask)(x)
    jvp(ask, (x,), (x,))
    torch.func.functionalize(ask)(x)
    grad(lambda t: ask(t).sum())(x)
    torch.jit.trace(ask, x, check_trace=False)
    make_fx(ask)(x)
    assert asked == [False] * 6
    with forward_ad.dual_level():
        assert not _slices.allowed(forward_ad.make_dual(x, x))
        assert not _slices.allowed(x, forward_ad.make_dual(x, x))
        assert _slices.allowed(x)


def _by_hand(x, weight):
    centered = x - x.mean(-1, keepdim=True)
    norm = torch.linalg.vector_norm(centered, dim=-1, keepdim=True)
    return centered * (norm.square() / 4 + 1e-5).rsqrt() * weight


# ---- what torch can do with it


TRANSFORMS = {
    "grad": lambda f, x: grad(lambda t: f(t).sin().sum())(x[0]),
    "jacrev": lambda f, x: jacrev(f)(x[0]),
    "jacfwd": lambda f, x: jacfwd(f)(x[0]),
    "jvp": lambda f, x: jvp(f, (x[0],), (x[1],)),
    "vmap": lambda f, x: vmap(f)(x),
    "vmap over axis 1": lambda f, x: vmap(f, in_dims=1)(x.transpose(0, 1).contiguous()),
    "vmap of grad": lambda f, x: vmap(grad(lambda t: f(t).sin().sum()))(x),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@ALL
def test_function_transforms(name, transform):
    call, x, weight, bias = arguments(name, 3, 4, 2, 2, dtype=DOUBLE)
    x = torch.stack([x, x.flip(0) * 2])
    expected, actual = (
        outcome(
            lambda F=F: TRANSFORMS[transform](lambda t: call(F, t, weight, bias), x)
        )
        for F in LIBRARIES
    )
    if isinstance(expected, RuntimeError):  # running statistics of no batch of theirs
        assert name.endswith("running")
        assert isinstance(actual, RuntimeError)
    else:
        torch.testing.assert_close(actual, expected)


@ALL
def test_forward_mode(name):
    results = []
    for library in LIBRARIES:
        call, x, weight, bias = arguments(name, 3, 4, 2, 2, dtype=DOUBLE)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, draw(*x.shape, seed=7, dtype=DOUBLE))
            results.append(forward_ad.unpack_dual(call(library, dual, weight, bias)))
    torch.testing.assert_close(results[1], results[0])


def test_forward_mode_leaves_no_tangent_in_the_running_statistics():
    mean, var = running(4)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(draw(3, 4, 2), draw(3, 4, 2, seed=1))
        ours.batch_norm(dual, mean, var, training=True)
        assert forward_ad.unpack_dual(mean).tangent is None
    assert not mean.requires_grad


@pytest.mark.parametrize("dtype", [FLOAT, BFLOAT], ids=str)
@ALL
@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_autocast(name, dtype):
    call, x, weight, bias = arguments(name, 3, 4, 3, 2)
    with torch.autocast("cpu", torch.bfloat16):
        expected, actual = (call(F, x.to(dtype), weight, bias) for F in LIBRARIES)
    eps = torch.finfo(dtype).eps
    close(actual, expected, rtol=2 * eps, atol=16 * eps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["batch-running", "layer-1", "group-2", "rms-1"])
def test_compiled_in_one_graph(name):
    call, *tensors = arguments(name, 3, 4, 3, 2)
    if name[0] == "r":
        tensors = tensors[:2]

    def run(*args):
        return call(ours, *args, *[None] * (3 - len(args)))

    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    close(compiled(*tensors), run(*tensors))
    close(gradients(compiled, *tensors), gradients(run, *tensors))


# ---- memory formats


def _sliced(x):
    return torch.cat([x, x], -1)[..., ::2]


LAYOUTS = {
    "contiguous": lambda x: x,
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "channels_last, 1 channel": lambda x: LAYOUTS["channels_last"](x[:, :1]),
    "channels_last, 1 position": lambda x: LAYOUTS["channels_last"](x[:, :, :1, :1]),
    "channels_last, sliced": lambda x: _sliced(LAYOUTS["channels_last"](x)),
    "channels_last, half the batch": lambda x: LAYOUTS["channels_last"](x)[::2],
    "channels_last_3d": lambda x: torch.stack([x, x], -1).contiguous(
        memory_format=torch.channels_last_3d
    ),
    "sliced": _sliced,
    "swapped": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "expanded": lambda x: x[:, :, :, :1].expand(-1, -1, -1, 3),
    "last axis first": lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1),
    "3 axes, transposed": lambda x: (
        x[..., 0].transpose(1, 2).contiguous().transpose(1, 2)
    ),
    "2 axes, transposed": lambda x: x[..., 0, 0].t().contiguous().t(),
}


@BOTH_WAYS
@pytest.mark.parametrize("layout", LAYOUTS)
@ALL
def test_memory_format(name, layout):
    x = LAYOUTS[layout](draw(4, 6, 3, 3, dtype=DOUBLE))
    call = CALLS[name][0]
    expected, actual = (outcome(call, F, x, None, None) for F in LIBRARIES)
    if (
        not isinstance(expected, Exception)
        and layout == "channels_last, half the batch"
    ):
        torch.testing.assert_close(actual, expected)
    else:
        same_outcome(expected, actual)


# ---- what a norm must not depend on


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("batch", [(slice(None), 1)]),
        ("batch-eval", [(slice(1, None),), (slice(None), 1), (0, 0, 0, 0)]),
        ("instance", [(slice(1, None),), (0, slice(1, None))]),
        ("layer-1", [(slice(1, None),), (0, 1), (0, 0, 1)]),
        ("layer-2", [(slice(1, None),), (0, 1)]),
        ("group-2", [(slice(1, None),), (0, slice(2, None))]),
        ("rms-1", [(slice(1, None),), (0, 1), (0, 0, 1)]),
    ],
)
def test_what_it_must_not_depend_on(name, others):
    call, x, weight, bias = arguments(name, 3, 4, 3, 2)
    cell = (0, 0, 0, 1)
    before = call(ours, x, weight, bias)[cell]
    for other in others:
        changed = x.clone()
        changed[other] = draw(*changed[other].shape, seed=9, spread=100)
        assert torch.equal(call(ours, changed, weight, bias)[cell], before), other
    # and what it does depend on: a neighbour in the same set, except in eval mode
    changed = x.clone()
    changed[0, 0, 0, 0] += 1
    same = torch.equal(call(ours, changed, weight, bias)[cell], before)
    assert same == name.endswith("eval")


@pytest.mark.parametrize("name", CENTERED)
def test_shift_and_scale_of_the_input_do_not_matter(name):
    call, x, weight, bias = arguments(name, 3, 4, 5, 8, dtype=DOUBLE)
    expected = call(ours, x, weight, bias)
    close(call(ours, 7 * x - 3, weight, bias), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", CENTERED)
def test_gradient_is_orthogonal_to_what_is_removed(name):
    call, x, weight, bias = arguments(name, 3, 4, 5, 2, dtype=DOUBLE)
    (gradient,) = gradients(lambda t: call(ours, t, weight, bias), x)
    assert gradient.abs().max() > 1e-2
    assert gradient.sum().abs() < 1e-10  # a shift changes nothing


# ---- errors


X = draw(4, 6, 5)
ONE, ZERO = torch.ones, torch.zeros
ERRORS = [
    # FR-001, FR-004: one value per set
    ("batch_norm", (ONE(1, 3), None, None, None, None, True), ValueError,
     r"BatchNorm: .* more than 1 value per channel, but the input \(1, 3\) has 1; "
     "use a larger batch"),
    ("instance_norm", (ONE(32, 4, 1, 1),), ValueError,
     r"InstanceNorm: .*\(32, 4, 1, 1\) has 1; .* a larger batch does not help"),
    ("instance_norm", (ONE(6),), ValueError, "more than 1 value per channel"),
    ("group_norm", (ONE(1, 10, 1), 10), ValueError,
     r"GroupNorm: .* with 10 groups the input \(1, 10, 1\) holds 1 value in each; use "
     "fewer groups"),
    # channels
    ("batch_norm", (ONE(4), None, None, None, None, True), IndexError,
     r"BatchNorm: .* channel axis \(axis 1\), got shape \(4,\); .*unsqueeze"),
    ("instance_norm", (ONE(4), ZERO(4), ONE(4), None, None, False), IndexError,
     "InstanceNorm: .* channel axis"),
    ("group_norm", (ONE(4), 2), RuntimeError, "GroupNorm: .* channel axis"),
    ("batch_norm", (X, ZERO(5), ONE(5)), RuntimeError,  # FR-035
     r"BatchNorm: running_mean has 5 values, but the input \(4, 6, 5\) has 6 channels, "
     r"and channels must be axis 1; axis 2 has size 5, so perhaps pass x.transpose"),
    ("batch_norm", (ONE(2, 6, 5, 7), ZERO(7), ONE(7)), RuntimeError,
     r"x.movedim\(3, 1\)"),
    ("batch_norm", (X, ZERO(6), ONE(7)), RuntimeError, r"running_var has 7 .* 1\.$"),
    ("batch_norm", (X, ZERO(6), ONE(6), ONE(5)), RuntimeError, "weight has 5 values"),
    ("batch_norm", (X, ZERO(6), ONE(6), None, ONE(5)), RuntimeError, "bias has 5"),
    ("batch_norm", (X, ZERO(1, 6), ONE(1, 6)), RuntimeError,
     r"running_mean must be a vector, .* got shape \(1, 6\); flatten"),
    ("instance_norm", (X, None, None, ONE(2, 3)), RuntimeError, "must be a vector"),
    ("group_norm", (X, 2, ONE(2, 3)), RuntimeError, "must be a vector"),
    ("group_norm", (X, 2, ONE(6), ONE(5)), RuntimeError, "bias has 5 values"),
    ("group_norm", (X, 4), RuntimeError,
     r"GroupNorm: axis 1 of the input \(4, 6, 5\) \(6\) must be divisible by "
     r"num_groups \(4\); 3 or 2 groups would fit"),
    ("group_norm", (X, -1), RuntimeError, "num_groups must be at least 1, got -1"),
    # running statistics
    ("batch_norm", (X, None, None), RuntimeError,
     "BatchNorm: training=False normalizes with running_mean and running_var, but "
     "running_mean and running_var is None; pass both"),
    ("batch_norm", (X, ZERO(6), None), RuntimeError, "but running_var is None"),
    ("batch_norm", (X, ZERO(6), None, None, None, True), ValueError,
     "must both be tensors or both be None, but running_var alone is None"),
    ("instance_norm", (X, None, ONE(6)), ValueError, "running_mean alone is None"),
    ("instance_norm", (X, None, None, None, None, False), RuntimeError,
     "InstanceNorm: use_input_stats=False normalizes with running_mean"),
    ("batch_norm", (X, ZERO(6), ONE(6), None, None, True, None), TypeError,
     r"momentum must be a number, got None; .* 1 / num_batches_tracked"),
    ("instance_norm", (X, None, None, None, None, True, None), TypeError, "momentum"),
    ("batch_norm", (X, None, None, None, None, True, 0.1, 0.0), ValueError,
     "BatchNorm: eps must be positive .* got 0.0; the default is 1e-5"),
    ("batch_norm", (X, ZERO(6), ONE(6), None, None, False, 0.1, -1.0), ValueError,
     "eps must be positive"),
    # trailing axes: FR-032
    ("layer_norm", (ONE(2, 3, 4, 5), (3,)), RuntimeError,
     r"LayerNorm: the last axes are normalized, .* must end in normalized_shape "
     r"\(3,\), got \(2, 3, 4, 5\); axis 1 has size 3, so perhaps pass "
     r"x.movedim\(1, -1\)"),
    ("layer_norm", (X, (7,)), RuntimeError, r"must end in .* got \(4, 6, 5\)\.$"),
    ("layer_norm", (X, (2, 4, 6, 5)), RuntimeError, "must end in normalized_shape"),
    ("layer_norm", (X, ()), RuntimeError, r"one axis, got \(\); .* pass \(5,\)"),
    ("layer_norm", (X, 5), TypeError, r"tuple or list of sizes, got 5; write \(5,\)"),
    ("layer_norm", (X, (5,), ONE(4)), RuntimeError,
     r"LayerNorm: weight must have the shape normalized_shape \(5,\), got \(4,\)"),
    ("layer_norm", (X, (5,), ONE(5), ONE(1, 5)), RuntimeError, r"bias .* \(1, 5\)"),
    ("rms_norm", (X, (4,)), RuntimeError, "RMSNorm: the last axes are normalized"),
    ("rms_norm", (X, (2, 4, 6, 5)), ValueError, "RMSNorm: the last axes are"),
    ("rms_norm", (X, (5,), ONE(1, 5)), RuntimeError, "RMSNorm: weight must have"),
    ("rms_norm", (X, 5), TypeError, "RMSNorm: normalized_shape must be a tuple"),
    # integers
    *[
        (name, (X.long(), *args), NotImplementedError,
         r"Norm: the input must be a floating-point tensor, got torch.int64 of shape "
         r"\(4, 6, 5\); convert it with x.float\(\)")
        for name, args in [
            ("batch_norm", (ZERO(6), ONE(6))), ("instance_norm", ()),
            ("layer_norm", ((5,),)), ("group_norm", (2,)), ("rms_norm", ((5,),)),
        ]
    ],
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "error", "sentence"), ERRORS)
def test_errors(name, args, error, sentence):
    with pytest.raises(error, match=sentence):
        getattr(ours, name)(*args)
    assert type(outcome(getattr(theirs, name), *args)) is error  # as torch raises


def test_errors_that_differ_from_torch():
    # torch divides by the 0; a number of groups below 1 is one kind of mistake here
    with pytest.raises(RuntimeError, match="num_groups must be at least 1, got 0"):
        ours.group_norm(X, 0)


LOOPED = [(3, 8), (3, 7), (2, 5, 1), (2, 3, 4, 6), (2, 2048), (2, 2049), (2, 64, 33)]


@pytest.mark.parametrize("shape", LOOPED, ids=str)
@pytest.mark.parametrize("offset", [0.0, 1e3], ids=str)
def test_loops_give_what_the_definition_gives(shape, offset):
    x, dims = draw(*shape, offset=offset), tuple(range(1 - len(shape), 0))
    for axes in (dims, dims[-1:]):
        _, centered, var = ours.statistics(x, axes)
        expected = centered, torch.rsqrt(var + 1e-5)
        got = _loops.center_and_scale(x, axes, 1e-5)
        for ours_, want in zip(got, expected, strict=True):
            close(ours_, want, rtol=3e-6, atol=2e-7 * max(1.0, offset))


@pytest.mark.parametrize("shape", LOOPED, ids=str)
@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan], ids=str)
@pytest.mark.parametrize("place", [0, -1], ids=str)
def test_a_set_with_a_value_that_is_not_finite_is_nan_in_loops(shape, value, place):
    x = draw(*shape)
    x[1].view(-1)[place] = value
    dims = tuple(range(1 - len(shape), 0))
    centered, scale = _loops.center_and_scale(x, dims, 1e-5)
    y = centered * scale
    assert y[1].isnan().all()
    close(y[0], ours.layer_norm(x[0], shape[1:]))


def test_loops_are_for_compiled_calls_that_record_nothing():
    asked = []

    def backend(graph, examples):
        asked.append(sum("amax" in str(node.target) for node in graph.graph.nodes))
        return graph

    def run(x, weight):
        return ours.layer_norm(x, (16,), weight)

    x, weight = draw(3, 16), torch.nn.Parameter(draw(16, seed=1))
    expected = run(x, weight)
    for inputs in ((x, weight), (x.t().contiguous().t(), weight), (x[:0], weight)):
        with torch.no_grad():
            torch._dynamo.reset()
            y = torch.compile(run, fullgraph=True, backend=backend)(*inputs)
        close(y, expected[: len(y)])
    torch._dynamo.reset()
    close(torch.compile(run, fullgraph=True, backend=backend)(x, weight), expected)
    assert asked == [1, 1, 0, 0]  # contiguous, made so, empty, with a gradient


def test_sizes_that_are_left_open_need_one_graph():
    graphs = []

    def backend(graph, examples):
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    norm = torch.compile(ours.group_norm, fullgraph=True, dynamic=True, backend=backend)
    for length in (5, 8, 9, 1023, 1024, 1025):  # short and long, odd and even sets
        x = draw(3, 6, length)
        with torch.no_grad():
            close(norm(x, 2), theirs.group_norm(x, 2))
    assert len(graphs) == 1


@pytest.mark.parametrize("height", [4, 5])
def test_an_exported_size_may_become_odd_or_even(height):
    class Layer(torch.nn.Module):
        def forward(self, x):
            return ours.group_norm(x, 3)

    free = ({2: torch.export.Dim("height")},)
    inputs = (draw(2, 3, height, 7),)
    with torch.no_grad():
        program = torch.export.export(Layer(), inputs, dynamic_shapes=free)
    for x in (draw(2, 3, 8, 7), draw(2, 3, 9, 7)):
        close(program.module()(x), theirs.group_norm(x, 3))
