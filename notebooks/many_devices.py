"""The script of chapter 10: one process with the whole batch, or many with a share.

    python many_devices.py "layer batch" "train sync"
    torchrun --standalone --nproc_per_node 2 many_devices.py "layer batch" "train sync"

The jobs, each in quotes; NORM is batch, sync, torch-sync or group:

    layer NORM [SIZES]     one step of one layer; SIZES: how many samples each rank gets
    train NORM [0]         a small net under DistributedDataParallel; 0: leave each
                           rank its own buffers (broadcast_buffers=False)
    cost NORM CHANNELS     bytes handed to collectives in a step, and its time

Rank 0 prints what every rank reports; with --save FILE it writes a file instead.
"""

import argparse
import datetime
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import normlab

LOOPBACK = "127.0.0.1"
NORMS = {
    "batch": nn.BatchNorm1d,
    "sync": normlab.SyncBatchNorm,
    "torch-sync": nn.SyncBatchNorm,
    "group": lambda channels: nn.GroupNorm(1, channels),
}


def join():
    """Enter the group of the processes that torchrun started; else stay alone."""
    if "RANK" not in os.environ:
        return
    if os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"]:
        # All on this machine: talk over its loopback, called lo0 on macOS.
        for _, name in socket.if_nameindex():
            if name in ("lo", "lo0"):
                os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))


def place():
    """The rank of this process, and how many there are."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def share(batch, sizes=()):
    """The samples of this process: sizes[rank] of them, or an equal part."""
    rank, world = place()
    parts = batch[: sum(sizes)].split(sizes) if sizes else batch.tensor_split(world)
    return parts[rank]


def layer(norm, *sizes):
    """One training step on [0, 1, 8, 9]; the loss is the first output of rank 0."""
    x = share(torch.tensor([[0.0], [1], [8], [9]], dtype=torch.float64), sizes).clone()
    module = NORMS[norm](1).double()
    try:
        y = module(x.requires_grad_())
    except ValueError as error:
        return {"x": x.detach(), "error": str(error)}
    # every rank calls backward: it holds a collective too
    (y[:1].sum() if place()[0] == 0 else 0 * y.sum()).backward()
    report = {"x": x.detach(), "y": y.detach(), "grad": x.grad}
    return report | dict(module.named_buffers())


def readings(step):
    """16 samples of 4 channels: eight around 0, then eight around 8."""
    generator = torch.Generator().manual_seed(step)
    noise = torch.randn(16, 4, generator=generator, dtype=torch.float64)
    return noise + 8 * (torch.arange(16) >= 8).double()[:, None]


def make_net(norm):
    """The norm on the raw channels, and a linear layer: the same in every process."""
    torch.manual_seed(0)
    return nn.Sequential(NORMS[norm](4), nn.Linear(4, 1)).double()


def train(norm, broadcast_buffers=1, steps=80):
    """Learn to tell the mean of a sample's channels; report loss and state."""
    net = parallel = make_net(norm)
    history = []
    if dist.is_initialized():
        options = {"broadcast_buffers": bool(broadcast_buffers)}
        parallel = DistributedDataParallel(net, **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        x = share(readings(step))
        loss = (parallel(x) - x.mean(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if norm != "group":  # which keeps none
            history.append(net[0].running_mean[0].item())
    state = {name: value.clone() for name, value in net.state_dict().items()}
    return {"loss": loss.item(), "history": history, "state": state}


def cost(norm, channels, rounds=30):
    """What one training step of one layer on (8, channels, 16) hands over and takes."""
    module, x = NORMS[norm](channels), torch.randn(8, channels, 16)
    module(x.requires_grad_()).sum().backward()  # the first step does more: it checks
    with (
        mock.patch.object(dist, "all_gather", wraps=dist.all_gather) as gather,
        mock.patch.object(dist, "all_reduce", wraps=dist.all_reduce) as reduce,
    ):
        module(x).sum().backward()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        module(x).sum().backward()
        seconds.append(time.perf_counter() - start)
    return {
        "forward": [call.args[1].nbytes for call in gather.call_args_list],
        "backward": [call.args[0].nbytes for call in reduce.call_args_list],
        "milliseconds": 1000 * statistics.median(seconds),
    }


JOBS = {"layer": layer, "train": train, "cost": cost}


def job(text):
    """Check a job's words, for argparse."""
    name, norm, *numbers = [*text.split(), "", ""][: max(2, len(text.split()))]
    if name not in JOBS or norm not in NORMS or not all(n.isdigit() for n in numbers):
        raise argparse.ArgumentTypeError(
            f'a job is like "layer sync 3 1": one of {", ".join(JOBS)}, one of '
            f"{', '.join(NORMS)}, and whole numbers, got {text!r}"
        )
    return text


def reports_of_all(text):
    """Do a job; return on rank 0 the reports of all ranks in order."""
    name, norm, *numbers = text.split()
    report = JOBS[name](norm, *map(int, numbers))
    rank, world = place()
    reports = [report] * world
    if dist.is_initialized():
        dist.gather_object(report, reports if rank == 0 else None)
    return reports


def shown(value):
    """A value for print: three digits, and at most eight numbers."""
    if isinstance(value, torch.Tensor):
        value = value.flatten().tolist()
    if isinstance(value, float):
        return f"{round(value, 3) + 0.0:.3f}"  # + 0.0 turns -0.0 into 0.0
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value[:8])) + ", ..." * (len(value) > 8) + "]"
    if isinstance(value, dict):
        return " ".join(f"{name} {shown(part)}" for name, part in value.items())
    return str(value)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", nargs="*", type=job, default=["layer batch"])
    parser.add_argument("--save", metavar="FILE", help="write, with torch.save")
    args = parser.parse_args()
    join()
    try:
        found = {text: reports_of_all(text) for text in args.jobs}
        rank, world = place()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    if rank == 0 and args.save:
        torch.save(found, args.save)
    elif rank == 0:
        for text, reports in found.items():
            print(text)
            for r, report in enumerate(reports):
                print(f"  rank {r} of {world}")
                for name, value in report.items():
                    print(f"    {name:<20}", shown(value))


def launch(*arguments, processes=2, timeout=110):
    """Run this script under torchrun, all on this machine; return what it printed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "torch.distributed.run"]
        command += ["--nproc_per_node", str(processes), "--local_addr", LOOPBACK]
        # They meet in a file. --standalone would meet on a port, by way of libuv,
        # which the builds of torch for Windows lack.
        command += ["--rdzv_backend", "c10d", "--rdzv_conf", "store_type=file"]
        command += ["--rdzv_endpoint", os.path.join(folder, "meeting")]
        command += [__file__, *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as torchrun:
            try:
                output, errors = torchrun.communicate(timeout=timeout)
            finally:  # too slow or interrupted: it stops its processes, then itself
                torchrun.terminate()
    if torchrun.returncode:
        raise RuntimeError(errors)
    return output


if __name__ == "__main__":
    main()
