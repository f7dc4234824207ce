"""What each process does in tests/test_sync.py; spawned, so it must be importable.

Every process makes the whole batch from the same seed, keeps its own shard, and
compares what it gets with one process working on the whole batch.
"""

import datetime
import os

import pytest
import torch
import torch.distributed as dist
from torch import nn

import normlab

SHARDS = {
    1: [[12]],
    2: [[6, 6], [9, 3], [12, 0]],
    4: [[3, 3, 3, 3], [6, 1, 4, 1], [0, 7, 0, 5]],
}
SHAPES = [(12, 3), (12, 3, 5), (12, 3, 4, 2), (12, 3, 2, 2, 2)]


def start(rank, world, file, work, *arguments):
    """Join the group over loopback, do the work, leave."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=20)
    options = {"init_method": f"file://{file}", "rank": rank, "world_size": world}
    dist.init_process_group("gloo", timeout=timeout, **options)
    try:
        work(rank, world, *arguments)
    finally:
        dist.destroy_process_group()


def _shard(tensor, sizes, rank):
    return tensor.split(sizes)[rank].detach().clone()


def _draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _pair(momentum=0.1, dtype=torch.float64, **options):
    """A SyncBatchNorm and the BatchNorm of one process, with the same parameters."""
    sync = normlab.SyncBatchNorm(3, momentum=momentum, dtype=dtype, **options)
    one = normlab.SyncBatchNorm(3, momentum=momentum, dtype=dtype, **options)
    for layer in (sync, one):
        for i, parameter in enumerate(layer.parameters()):
            parameter.data.copy_(_draw(3, seed=100 + i))
    return sync, one


def _alone(layer, x):
    """What BatchNorm makes of the whole batch, in this process."""
    training = layer.training
    momentum = layer.momentum
    if training and layer.track_running_stats:
        layer.num_batches_tracked += 1
        if momentum is None:
            momentum = 1 / layer.num_batches_tracked.item()
    return torch.nn.functional.batch_norm(
        x,
        layer.running_mean,
        layer.running_var,
        layer.weight,
        layer.bias,
        training or layer.running_mean is None,
        momentum,
        layer.eps,
    )


def equal_one_process(rank, world):
    """Outputs, gradients and buffers over ten steps equal those of one process."""
    for i, sizes in enumerate(SHARDS[world]):
        for j, shape in enumerate(SHAPES):
            _ten_steps(rank, sizes, shape, *_pair(momentum=(0.1, None)[(i + j) % 2]))
    _ten_steps(rank, SHARDS[world][1 % len(SHARDS[world])], (12, 3, 4),
               *_pair(bias=False))  # fmt: skip
    _ten_steps(rank, SHARDS[world][0], (12, 3, 4), *_pair(affine=False))
    _ten_steps(rank, SHARDS[world][0], (12, 3), *_pair(track_running_stats=False))


def _ten_steps(rank, sizes, shape, sync, one):
    for step in range(10):
        x, upstream = _draw(*shape, seed=step) * 3 + 2, _draw(*shape, seed=50 + step)
        whole = x.clone().requires_grad_()
        mine = _shard(x, sizes, rank).requires_grad_()
        expected, output = _alone(one, whole), sync(mine)
        torch.testing.assert_close(output, _shard(expected, sizes, rank))
        one.zero_grad()
        sync.zero_grad()
        (expected * upstream).sum().backward()
        (output * _shard(upstream, sizes, rank)).sum().backward()
        torch.testing.assert_close(mine.grad, _shard(whole.grad, sizes, rank))
        for ours, theirs in zip(sync.parameters(), one.parameters(), strict=True):
            summed = ours.grad.clone()
            dist.all_reduce(summed)
            torch.testing.assert_close(summed, theirs.grad)
    for ours, theirs in zip(sync.buffers(), one.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)
    if sync.num_batches_tracked is not None:
        assert sync.num_batches_tracked.item() == 10


def lower_precision(rank, world):
    """16-bit input keeps its type; a large mean loses nothing to cancellation."""
    sizes = SHARDS[world][-1]
    x = _draw(12, 3, 4, seed=7)
    reference = torch.nn.functional.batch_norm(x, None, None, training=True)
    for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        layer = normlab.SyncBatchNorm(3)
        output = layer(_shard(x, sizes, rank).to(dtype))
        assert output.dtype == dtype
        expected = _shard(reference, sizes, rank)
        torch.testing.assert_close(output.double(), expected, atol=tolerance, rtol=0)
    shifted = (x + 1e4).float()
    reference = torch.nn.functional.batch_norm(
        shifted.double(), None, None, training=True
    )
    output = normlab.SyncBatchNorm(3)(_shard(shifted, sizes, rank))
    expected = _shard(reference, sizes, rank)
    torch.testing.assert_close(output.double(), expected, atol=2e-3, rtol=0)


def eval_is_silent(rank, world):
    """In eval one process alone may call the layer: the others are not asked."""
    sync, one = _pair()
    sync.eval()
    one.eval()
    if rank == 0:
        x = _draw(5, 3)
        torch.testing.assert_close(sync(x), _alone(one, x))
    dist.barrier()


def one_value_in_all(rank, world):
    """One value per channel in the whole group is refused by every process."""
    layer = normlab.SyncBatchNorm(3)
    x = torch.ones(1 if rank == 0 else 0, 3)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        layer(x)
    assert layer.running_mean.tolist() == [0, 0, 0]
    if world > 1:  # one value in each process is enough
        assert layer(torch.full((1, 3), float(rank))).shape == (1, 3)


def settings_differ(rank, world):
    """Channel counts that differ end in an error in every process."""
    layer = normlab.SyncBatchNorm(3 + (rank == world - 1))
    match = f"must be the same on all processes, got 3 on rank 0.*4 on rank {world - 1}"
    with pytest.raises(RuntimeError, match=match):
        layer(torch.randn(4, layer.num_features))


def subgroups(rank, world):
    """Each process group has statistics of its own."""
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    layer = normlab.SyncBatchNorm(1, process_group=pairs[rank // 2], momentum=1.0)
    layer(torch.tensor([[10.0 * rank], [10.0 * rank + 2]]))
    assert layer.running_mean.item() == 10 * (rank // 2 * 2) + 6


def _net():
    torch.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Flatten(), nn.Linear(4 * 36, 5), nn.BatchNorm1d(5),
    )  # fmt: skip
    return net.double()


def _train(net, rows):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(50):
        x, y = _draw(8, 1, 8, 8, seed=step), _draw(8, 5, seed=1000 + step)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
        optimizer.step()


def ddp_training(rank, world):
    """50 steps under DistributedDataParallel end where one process ends."""
    alone = _net()
    _train(alone, slice(None))
    net = normlab.SyncBatchNorm.convert_sync_batchnorm(_net())
    assert [type(net[i]) for i in (1, 5)] == [normlab.SyncBatchNorm] * 2
    ddp = nn.parallel.DistributedDataParallel(net)
    share = 8 // world
    _train(ddp, slice(rank * share, (rank + 1) * share))
    for (name, ours), theirs in zip(
        net.state_dict().items(), alone.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(
            ours, theirs, msg=lambda m, name=name: f"{name}: {m}"
        )


def everything(rank, world):
    """All that one group can check, so that processes start once."""
    equal_one_process(rank, world)
    lower_precision(rank, world)
    eval_is_silent(rank, world)
    one_value_in_all(rank, world)
    ddp_training(rank, world)
    if world > 1:
        settings_differ(rank, world)
    if world == 4:
        subgroups(rank, world)


def one_dies(rank, world, caught_file):
    """The last process dies before the collective; the others get an error."""
    if rank == world - 1:
        os._exit(3)
    try:
        normlab.SyncBatchNorm(3)(torch.randn(4, 3))
    except RuntimeError as error:
        with open(caught_file, "w") as file:
            file.write(str(error))
