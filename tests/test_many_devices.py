"""Chapter 10: its script, run under torchrun as readers run it, and its exercises."""

import importlib.util
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist
from torch import nn

import normlab
from normlab.exercises import chapter10 as exercises

SCRIPT = Path(__file__).parent.parent / "notebooks" / "many_devices.py"


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("many_devices", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def running(mark):
    """The processes whose command line holds the mark."""
    found = psutil.process_iter(["cmdline"])
    return [p for p in found if any(mark in word for word in p.info["cmdline"] or ())]


EXPECTED = """\
layer batch
  rank 0 of 2
    x                    [0.000, 1.000]
    y                    [-1.000, 1.000]
    grad                 [0.000, 0.000]
    running_mean         [0.050]
    running_var          [0.950]
    num_batches_tracked  [1]
  rank 1 of 2
    x                    [8.000, 9.000]
    y                    [-1.000, 1.000]
    grad                 [0.000, 0.000]
    running_mean         [0.850]
    running_var          [0.950]
    num_batches_tracked  [1]
layer sync 3 1
  rank 0 of 2
    x                    [0.000, 1.000, 8.000]
    y                    [-1.116, -0.868, 0.868]
    grad                 [0.109, -0.122, -0.002]
    running_mean         [0.450]
    running_var          [3.067]
    num_batches_tracked  [1]
  rank 1 of 2
    x                    [9.000]
    y                    [1.116]
    grad                 [0.015]
    running_mean         [0.450]
    running_var          [3.067]
    num_batches_tracked  [1]
"""


@pytest.mark.slow
def test_two_processes_under_torchrun(script):
    assert script.launch("layer batch", "layer sync 3 1") == EXPECTED


@pytest.mark.slow
def test_a_run_that_is_stopped_leaves_nothing_behind(script, tmp_path):
    mark = str(tmp_path / "never.pt")
    rounds = ["train batch"] * 1000
    with pytest.raises(subprocess.TimeoutExpired):
        # long enough to start, or not: nothing may be left in either case
        script.launch(*rounds, "--save", mark, timeout=12)
    deadline = time.monotonic() + 10
    while running(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = running(mark)
    for process in left:
        process.kill()
    assert not left


def test_one_process_without_a_launcher(script):
    """The whole batch: BatchNorm's own numbers."""
    x = torch.tensor([[0.0], [1], [8], [9]], dtype=torch.float64, requires_grad=True)
    norm = torch.nn.BatchNorm1d(1).double()
    norm(x)[0].sum().backward()
    for kind in ("batch", "sync"):
        (report,) = script.reports_of_all(f"layer {kind}")
        torch.testing.assert_close(report["grad"], x.grad)
        torch.testing.assert_close(report["running_var"], norm.running_var)


@pytest.mark.parametrize("text", ["layer", "layer batch x", "draw batch", "layer lrn"])
def test_a_job_that_is_none(script, text):
    with pytest.raises(
        script.argparse.ArgumentTypeError, match=r'a job is like "layer sync 3 1"'
    ) as caught:
        script.job(text)
    assert str(caught.value).endswith(f"got {text!r}")


# -- the exercises: what they ask, computed -------------------------------------------


@pytest.fixture(autouse=True)
def _own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("NORMLAB_PROGRESS", str(tmp_path / "progress.json"))


def test_merged_by_hand():
    x = torch.tensor([2.0, 4, 6, 6, 12])
    squares = (x - x.mean()).square().sum()
    answer = {"count": len(x), "mean": x.mean().item(), "squares": squares.item()}
    assert exercises.merged_by_hand.check(answer).correct


def test_who_shares():
    gpus = torch.arange(4 * 8 * 16 * 2).view(4, 8, 16, 2)  # machine, GPU, micro-batch
    answer = {
        "step": gpus.numel(),
        "plain": gpus[0, 0, 0].numel(),
        "sync": gpus[:, :, 0].numel(),
        "machine": gpus[0, :, 0].numel(),
    }
    assert exercises.who_shares.check(answer).correct


def test_whose_record():
    batch = torch.tensor([[2.0], [4], [6], [12]])

    def record(*batches):
        layer = nn.BatchNorm1d(1)
        for x in batches:
            layer(x)
        return layer.running_mean

    whole, first, both = record(batch), record(batch[:2]), record(*batch.split(2))
    # that the synchronized one is the whole's is proved in test_sync
    answer = {"whole": whole, "rank_0": first, "accumulated": both, "sync": whole}
    answer = {name: value.item() for name, value in answer.items()}
    assert exercises.whose_record.check(answer).correct


def test_bytes_handed_over(monkeypatch):
    sent = []

    def all_gather(parts, tensor, group):
        sent.append(tensor.nbytes)
        for part in parts:
            part.copy_(tensor)

    def all_reduce(tensor, group):
        sent.append(tensor.nbytes)

    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda group: 4)
    monkeypatch.setattr(dist, "get_rank", lambda group: 1)
    monkeypatch.setattr(dist, "all_gather", all_gather)
    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    layers = [normlab.SyncBatchNorm(c, process_group="four") for c in (32, 64, 128)]
    for _ in range(2):
        sent.clear()  # the first step sends more
        for layer in layers:
            x = torch.randn(16, layer.num_features, 8, 8, requires_grad=True)
            layer(x).sum().backward()
    answer = {"collectives": len(sent), "bytes": sum(sent)}
    assert exercises.bytes_handed_over.check(answer).correct


def test_converted_layers():
    net = normlab.SyncBatchNorm.convert_sync_batchnorm(exercises.mixed_net())
    kinds = {name: type(layer) for name, layer in net.named_modules()}
    names = {name for name, kind in kinds.items() if kind is normlab.SyncBatchNorm}
    assert exercises.converted_layers.check(names).correct
    assert kinds["norm4"] is exercises.ClippedBatchNorm


def test_the_factors_of_uneven_losses_make_the_gradient_of_all_samples():
    names = {}
    exec(exercises.uneven_losses.code, names)
    factors = [names["loss_factor"]([12, 4], rank) for rank in (0, 1)]
    weight = torch.zeros(1, requires_grad=True)
    x, y = torch.randn(2, 16, generator=torch.Generator().manual_seed(0))

    def gradient(x, y):
        return torch.autograd.grad((weight * x - y).square().mean(), weight)[0]

    parts = zip(x.split([12, 4]), y.split([12, 4]), strict=True)
    first, second = (gradient(*part) for part in parts)
    after_ddp = (factors[0] * first + factors[1] * second) / 2
    torch.testing.assert_close(after_ddp, gradient(x, y))
    assert not torch.allclose((first + second) / 2, gradient(x, y), rtol=0.01)


def test_a_merge_two_by_two_is_right_if_it_is_careful():
    def merge(counts, means, squares):
        n, mean, total = 0, 0.0, 0.0
        for m, other, more in zip(counts, means, squares, strict=True):
            if m:
                n, distance = n + m, other - mean
                total = total + more + distance.square() * (m * (n - m) / n)
                mean = mean + distance * (m / n)
        return n, mean, total

    assert exercises.stable_merge.check(merge).correct
    result = exercises.stable_merge.check(
        lambda n, m, s: (n.sum() + 1, *merge(n, m, s)[1:])
    )
    assert "Two shares of 4: the count should be 8, and is 9." in result.message


def test_the_line_that_waits_calls_the_net_on_one_process():
    lines = exercises.SCRIPT.splitlines()
    assert [int(line[:2]) for line in lines] == list(range(1, len(lines) + 1))
    assert "(net(x_test)" in lines[exercises.waiting_line.answer - 1]
    assert not any(".eval()" in line for line in lines)
