"""The stand-in for a GPU refuses what a GPU refuses, and computes what it computes."""

import numpy as np
import pytest
import torch
from torch import nn

import stand_in


@pytest.fixture
def device():
    with stand_in.Operations(), stand_in.Constructors():
        yield torch.device(stand_in.NAME)


def test_it_computes_what_the_cpu_computes_but_for_rounding(device):
    x, found = torch.randn(16, 3, generator=torch.Generator().manual_seed(0)), []
    for place in ("cpu", device):
        torch.manual_seed(1)  # layers draw on the CPU, then move
        net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
        net.to(place)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = net(x.to(place)).square().mean()
            loss.backward()
            optimizer.step()
        found.append([loss, net[0].weight, net[1].running_var])
    assert {t.device.type for t in found[1]} == {stand_in.NAME}
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there.cpu(), here, rtol=1e-4, atol=1e-5)
    assert not torch.equal(found[1][1].cpu(), found[0][1])


def test_it_gives_the_same_values_the_same_rounding(device):
    x = torch.tensor([0.1, 0.2, 0.7], device=device)
    assert torch.equal(x.exp(), x.exp())
    assert torch.equal(x.cpu(), torch.tensor([0.1, 0.2, 0.7]))
    assert not torch.equal(x.exp().cpu(), x.cpu().exp())


@pytest.mark.parametrize(
    ("use", "error", "said"),
    [
        (lambda x: x + torch.ones(3), RuntimeError, "same device"),
        (lambda x: torch.ones(3) @ x, RuntimeError, "same device"),
        (lambda x: x.numpy(), TypeError, "Tensor.cpu"),
        (lambda x: np.asarray(x), TypeError, "Tensor.cpu"),
        (
            lambda x: x.normal_(generator=torch.Generator().manual_seed(0)),
            RuntimeError,
            "generator",
        ),
    ],
    ids=["add", "matmul", "numpy", "asarray", "generator"],
)
def test_it_refuses_what_a_gpu_refuses(device, use, error, said):
    x = torch.tensor([1.0, 2.0, 3.0], device=device)
    with pytest.raises(error, match=said):
        use(x)


def test_it_allows_what_a_gpu_allows(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    assert (x * torch.tensor(2.0)).tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    assert x[torch.tensor([1])].tolist() == [[3.0, 4.0, 5.0]]
    x[0] = torch.tensor([7.0, 8.0, 9.0])
    assert x.cpu().tolist() == [[7.0, 8.0, 9.0], [3.0, 4.0, 5.0]]
    assert f"{x.sum():.1f} {x.max().item():.0f}" == "36.0 9"
    assert "another device" in str(x)  # a print that forgets .cpu() is seen


def test_it_draws_other_numbers_and_leaves_those_of_the_cpu(device):
    torch.manual_seed(0)
    first, second = torch.randn(5), torch.randn(5)
    torch.manual_seed(0)
    assert not torch.equal(torch.randn(5, device=device).cpu(), first)
    assert torch.equal(torch.randn(5), first)
    assert not torch.equal(torch.randn(5, device=device).cpu(), second)
    assert torch.equal(torch.randn(5), second)
