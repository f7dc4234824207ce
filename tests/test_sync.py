"""SyncBatchNorm: real processes against one process with the whole batch."""

import multiprocessing

import pytest
import torch
from torch import nn

import normlab
import sync_workers as workers

# A fork server imports torch once for all; Windows has none, and imports it each time.
# It knows nothing of pytest's paths, and skips what it does not find: name what is
# installed, not sync_workers. Optimizers and DistributedDataParallel import dynamo.
method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else ""
context = multiprocessing.get_context(method or "spawn")
if method:
    context.set_forkserver_preload(["pytest", "torch._dynamo", "normlab.sync"])


def run(world, work, tmp_path, *arguments):
    """Start the processes, wait for them, return their exit codes."""
    processes = [
        context.Process(
            target=workers.start,
            args=(rank, world, tmp_path / "rendezvous", work, *arguments),
        )
        for rank in range(world)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(100)
    hanging = [process for process in processes if process.is_alive()]
    for process in hanging:
        process.kill()
        process.join()
    assert not hanging, f"{len(hanging)} of {world} processes hang"
    return [process.exitcode for process in processes]


@pytest.mark.parametrize("world", [1, 2, 4])
def test_many_processes_are_one(world, tmp_path):
    assert run(world, workers.everything, tmp_path) == [0] * world


def test_a_process_that_dies_is_an_error(tmp_path):
    caught = tmp_path / "caught.txt"
    assert run(2, workers.one_dies, tmp_path, caught) == [0, 3]
    assert "process 0 of 2 waited for the others in vain" in caught.read_text()


@pytest.fixture
def alone():
    """A layer without a process group, and BatchNorm1d with the same parameters."""
    ours, theirs = normlab.SyncBatchNorm(3), nn.BatchNorm1d(3)
    for layer in (ours, theirs):
        layer.weight.data.copy_(torch.tensor([1.0, 2.0, 3.0]))
    return ours, theirs


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5)])
def test_without_a_group_it_is_batch_norm(alone, shape):
    ours, theirs = alone
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    for _ in range(2):
        torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_input_without_channels():
    with pytest.raises(ValueError, match=r"must be \(N, C, \.\.\.\).*got shape \(3,\)"):
        normlab.SyncBatchNorm(3)(torch.randn(3))


def test_one_value_without_a_group():
    with pytest.raises(
        ValueError, match=r"SyncBatchNorm: .* more than 1 value per chan"
    ):
        normlab.SyncBatchNorm(3)(torch.randn(1, 3))


def test_checkpoints_move_between_all_three():
    ours, theirs = normlab.SyncBatchNorm(3, bias=False), nn.SyncBatchNorm(3, bias=False)
    ours(torch.randn(4, 3))
    one = normlab.BatchNorm2d(3, bias=False)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    one.load_state_dict(theirs.state_dict(), strict=True)
    again = normlab.SyncBatchNorm(3, bias=False)
    again.load_state_dict(one.state_dict(), strict=True)
    torch.testing.assert_close(again.state_dict(), ours.state_dict(), atol=0, rtol=0)
    assert repr(ours) == repr(theirs)


class Own(nn.BatchNorm1d):
    """A subclass: it may compute something else."""


def _model():
    shared = nn.BatchNorm2d(2, eps=1e-3)
    return nn.Sequential(
        nn.Conv2d(1, 2, 1), shared, shared, nn.BatchNorm1d(2, affine=False),
        normlab.BatchNorm3d(2, momentum=None), nn.SyncBatchNorm(2), nn.LayerNorm(2),
        Own(2),
    )  # fmt: skip


def test_convert_and_revert():
    model = _model().eval()
    kinds = [type(layer) for layer in model]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    parameters = list(model.parameters())
    assert normlab.SyncBatchNorm.convert_sync_batchnorm(model) is model
    converted = [type(layer) is normlab.SyncBatchNorm for layer in model]
    assert converted == [False, True, True, True, True, True, False, False]
    assert model[1] is model[2]
    assert (model[1].eps, model[4].momentum, model[1].training) == (1e-3, None, False)
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    torch.testing.assert_close(model.state_dict(), state, atol=0, rtol=0)
    normlab.SyncBatchNorm.revert_sync_batchnorm(model)
    assert [type(layer) for layer in model] == kinds
    x = torch.randn(2, 2, 3, 3)
    torch.testing.assert_close(model[1](x), x / (1 + 1e-3) ** 0.5)


def test_a_model_that_is_the_norm_itself():
    layer = normlab.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(4))
    assert isinstance(layer, normlab.SyncBatchNorm)
    assert layer(torch.randn(8, 4)).mean().abs() < 1e-6


def test_revert_must_know_what_to_make():
    model = nn.Sequential(normlab.SyncBatchNorm(4))
    with pytest.raises(ValueError, match=r"say it with to=normlab\.BatchNorm2d"):
        normlab.SyncBatchNorm.revert_sync_batchnorm(model)
    normlab.SyncBatchNorm.revert_sync_batchnorm(model, to=normlab.BatchNorm2d)
    assert type(model[0]) is normlab.BatchNorm2d


def test_revert_wants_a_batch_norm():
    model = nn.Sequential(normlab.SyncBatchNorm(4))
    with pytest.raises(
        ValueError, match=r"to must be a BatchNorm class, got .*LayerNor"
    ):
        normlab.SyncBatchNorm.revert_sync_batchnorm(model, to=nn.LayerNorm)
    assert type(model[0]) is normlab.SyncBatchNorm


def test_the_errors_name_the_layer():
    with pytest.raises(RuntimeError, match=r"SyncBatchNorm: .* num_features is 4"):
        normlab.SyncBatchNorm(4)(torch.randn(3, 5))
    with pytest.raises(TypeError, match=r"SyncBatchNorm: .* torch.Tensor, got list"):
        normlab.SyncBatchNorm(4)([[1.0] * 4])
