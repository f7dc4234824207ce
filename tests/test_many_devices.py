"""The script of chapter 10, run as its readers run it: under torchrun."""

import importlib.util
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import torch

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
