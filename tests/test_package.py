"""The package itself: its public names, and the device it computes on."""

import os
import subprocess
import sys

import pytest
import torch

import normlab


def test_every_public_name_loads():
    for name in normlab.__all__:
        assert getattr(normlab, name) is not None
    assert set(normlab.__all__) <= set(dir(normlab))


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'normlab' has no attribute 'BathNorm'"):
        _ = normlab.BathNorm


def test_import_is_lazy():
    code = (
        "import sys, normlab; print({'torch', 'numpy', 'anywidget'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_device_from_the_environment(monkeypatch):
    monkeypatch.setenv("NORMLAB_DEVICE", "cpu")
    assert normlab.device() == torch.device("cpu")


def test_device_by_default(monkeypatch):
    monkeypatch.delenv("NORMLAB_DEVICE", raising=False)
    for found, expected in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda found=found: found)
        assert normlab.device() == torch.device(expected)


def test_an_unknown_device_is_refused(monkeypatch):
    monkeypatch.setenv("NORMLAB_DEVICE", "gpu")
    with pytest.raises(ValueError, match="'gpu' is not a device that PyTorch knows"):
        normlab.device()


def test_an_absent_device_is_refused(monkeypatch):
    absent = f"cuda:{torch.cuda.device_count()}"
    monkeypatch.setenv("NORMLAB_DEVICE", absent)
    with pytest.raises(ValueError, match=f"no usable '{absent}' device"):
        normlab.device()
    assert os.environ["NORMLAB_DEVICE"] == absent
