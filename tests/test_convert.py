"""Swapped norms: the same outputs, gradients, steps and checkpoints, there and back."""

import copy

import pytest
import torch
from torch import nn

import normlab
from normlab import modules, replace_norms
from parity import DOUBLE, close, draw


class Block(nn.Module):
    """A residual block, as in ResNet."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside, momentum=None)
        self.shortcut = nn.Sequential(
            nn.Conv2d(inside, outside, 1, stride), nn.GroupNorm(2, outside)
        )

    def forward(self, x):
        y = self.norm1(self.conv1(x)).relu_()
        return (self.norm2(self.conv2(y)) + self.shortcut(x)).relu_()


def resnet():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
        Block(4, 8, 2),
        Block(8, 8, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.BatchNorm1d(8),
        nn.Linear(8, 5),
        nn.RMSNorm(5),
    )


def transformer(norm_first):
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, norm_first=norm_first, batch_first=True
    )
    final = nn.LayerNorm(8) if norm_first else None
    return nn.TransformerEncoder(layer, 2, final, enable_nested_tensor=False)


MODELS = {
    "resnet": (resnet, (4, 3, 8, 8), 9),
    "pre-norm": (lambda: transformer(True), (3, 5, 8), 5),
    "post-norm": (lambda: transformer(False), (3, 5, 8), 4),
}
EACH = pytest.mark.parametrize("name", MODELS)


def made(name):
    build, shape, norms = MODELS[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().double(), shape, norms


def kinds(model):
    """The norm classes of a model, in order."""
    every = [type(m) for m in model.modules()]
    return [cls for cls in every if cls.__name__ in modules.__all__]


@EACH
def test_training_evaluation_and_checkpoints(name):
    theirs, shape, norms = made(name)
    ours = replace_norms(copy.deepcopy(theirs))
    assert len(kinds(ours)) == norms
    assert all(cls.__module__ == "normlab.modules" for cls in kinds(ours))
    models = (theirs, ours)
    optimizers = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in models]
    for step in range(3):
        x = draw(*shape, seed=step, dtype=DOUBLE)
        outputs = []
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            outputs.append(model.train()(x))
            outputs[-1].square().sum().backward()
            optimizer.step()
        close(outputs[1], outputs[0])
        gradients = [[p.grad for p in m.parameters()] for m in models]
        close(gradients[1], gradients[0], atol=1e-9, rtol=1e-7)
    close(ours.state_dict(), theirs.state_dict())
    with torch.no_grad():  # transformers take their fast path here
        close(ours.eval()(x), theirs.eval()(x))
    for source, target in (models, models[::-1]):
        blank = copy.deepcopy(target)
        for tensor in blank.state_dict().values():
            tensor.zero_()
        blank.load_state_dict(source.state_dict(), strict=True)
        close(blank(x), source(x))


@EACH
def test_there_and_back(name):
    model, shape, _ = made(name)
    before, text, x = kinds(model), repr(model), draw(*shape, dtype=DOUBLE)
    tensors = {k: id(t) for k, t in model.state_dict(keep_vars=True).items()}
    expected = model.eval()(x)
    assert replace_norms(model) is model
    assert repr(model) == text
    assert replace_norms(model, to="torch") is model
    assert kinds(model) == before
    assert {k: id(t) for k, t in model.state_dict(keep_vars=True).items()} == tensors
    close(model(x), expected)


def test_an_optimizer_made_before_keeps_working():
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    weight = model[1].weight
    replace_norms(model)(draw(2, 3)).square().sum().backward()
    optimizer.step()
    assert model[1].weight is weight
    assert weight.abs().sum() != 4


def test_what_is_kept():
    shared = nn.BatchNorm1d(4).requires_grad_(False)
    model = nn.Sequential(nn.Linear(4, 4), shared, nn.Linear(4, 4), shared)
    seen = []
    forward = shared.register_forward_hook(lambda *_: seen.append("forward"))
    model[0].requires_grad_(True)
    shared.register_full_backward_hook(lambda *_: seen.append("backward"))
    shared.register_forward_pre_hook(lambda *_: seen.append("before"))
    shared.eval()
    replace_norms(model)
    assert model[1] is model[3]
    assert type(model[1]) is normlab.BatchNorm1d
    assert not model[1].training
    assert model[0].training
    assert not any(p.requires_grad for p in model[1].parameters())
    model(draw(2, 4)).sum().backward()
    assert seen == ["before", "forward"] * 2 + ["backward"] * 2
    forward.remove()  # handles stay valid
    seen.clear()
    model(draw(2, 4))
    assert seen == ["before"] * 2


@pytest.mark.parametrize("name", modules.__all__)
def test_a_norm_alone(name):
    args = (2, 4) if name == "GroupNorm" else (4,)
    layer = getattr(nn, name)(*args)
    assert type(replace_norms(layer)) is getattr(normlab, name)
    assert type(replace_norms(layer, to="torch")) is getattr(nn, name)


def test_what_is_left_alone():
    class Doubled(nn.LayerNorm):
        def forward(self, x):
            return 2 * super().forward(x)

    parametrized = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
    model = nn.Sequential(
        Doubled(4),
        nn.SyncBatchNorm(4),
        nn.LazyBatchNorm1d(),
        nn.Linear(4, 4),
        parametrized,
    )
    before = [type(m) for m in model.modules()]
    assert [type(m) for m in replace_norms(model).modules()] == before


def test_errors():
    sentence = "replace_norms: to must be 'normlab' or 'torch', got 'keras'"
    with pytest.raises(ValueError, match=sentence):
        replace_norms(nn.LayerNorm(3), to="keras")


def test_tools_that_look_for_a_batch_norm_find_ours():
    """They ask isinstance, and would pass by any other class without a word."""
    model = nn.Sequential(nn.BatchNorm1d(4))
    batches = [torch.full((2, 4), 3.0) + torch.tensor([[-1.0], [1.0]])] * 2
    replace_norms(model)
    torch.optim.swa_utils.update_bn(batches, model)
    assert model[0].running_mean.tolist() == [3] * 4
    assert isinstance(
        nn.SyncBatchNorm.convert_sync_batchnorm(model)[0], nn.SyncBatchNorm
    )


@pytest.mark.parametrize("model", [None, nn.BatchNorm2d])
def test_what_is_no_model(model):
    with pytest.raises(TypeError, match=r"must be an nn.Module, got .*not its class"):
        replace_norms(model)
