"""What the exercises of the bug museum do: judges, and answers they must reject.

A judge takes the answer and returns None when it is right, or the sentence to show.
"""

import copy
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

from normlab.exercises.seeded import asked_seed, chance, checking, other, plain


def alike(a, b):
    if not isinstance(a, torch.Tensor) or plain(a).shape != b.shape:
        return False
    return torch.allclose(plain(a), plain(b), rtol=1e-4, atol=1e-5)


def _at_other_places(find, net):
    """The names that ``find`` gives; a seed puts the net deeper, under other names."""
    if not asked_seed():
        return find(net)
    place = f"part{chance().randrange(10**6)}"
    found = find(nn.Sequential(OrderedDict([(place, net)])))
    if isinstance(found, list | tuple | set):
        found = [str(name).removeprefix(f"{place}.") for name in found]
    return found


# -- Patient 2: the layers that wake up ------------------------------------------------


def sleepers():
    second = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6))
    net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), second)
    for _ in range(3):
        net(3 * torch.randn(8, 4) + 1)
    return net


@checking()
def judge_freeze(freeze):
    net = sleepers()
    values = 2 * torch.randn(16, 6) + 1
    norms = (lambda: net[1]), (lambda: net[3][1])
    wanted = [copy.deepcopy(norm()).eval()(values) for norm in norms]
    freeze(net)
    before = {k: v.clone() for k, v in net.named_buffers()}
    for _ in range(2):
        net.train()
        net(torch.randn(8, 4))
    for name, buffer in net.named_buffers():
        if "running" in name and not buffer.equal(before.get(name, buffer)):
            return (
                f"After `net.train()` a forward pass moves `{name}` again: the layer "
                "woke up. It needs a `train` that leaves it in eval mode."
            )
    for norm, output in zip(norms, wanted, strict=True):
        if not alike(norm()(values), output):
            return (
                "The buffers stand still, but the output of a BatchNorm still comes "
                "from the batch. It must be in eval mode, not only without updates."
            )
    if not net[2].training:
        return "Dropout is asleep after `net.train()`. Freeze the BatchNorms alone."
    if not net[0].weight.requires_grad:
        return "The linear layer no longer learns. Freeze the BatchNorms alone."
    return None


def eval_once(net):
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.eval()


def no_momentum(net):
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d):
            layer.momentum = 0.0


def all_asleep(net):
    net.eval()
    net.train = lambda mode=True: net


# -- Patient 5: the teacher worse than its student -------------------------------------


def student_and_teacher():
    student = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
    teacher = copy.deepcopy(student)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(1.0)
    for _ in range(2):
        student(2 * torch.randn(16, 4) + 3)
    return student, teacher


@checking()
def judge_teacher(update):
    student, teacher = student_and_teacher()
    old, new = (copy.deepcopy(net.state_dict()) for net in (teacher, student))
    update(teacher, student, 0.9)
    if not all(v.equal(new[k]) for k, v in student.state_dict().items()):
        return "You changed the student. Only the teacher follows."
    for name, parameter in teacher.named_parameters():
        if alike(parameter, 0.9 * old[name] + 0.1 * new[name]):
            continue
        if parameter.equal(new[name]):
            return (
                f"The teacher's `{name}` is a copy of the student's; parameters are "
                "averaged: decay * teacher + (1 - decay) * student."
            )
        return f"The teacher's `{name}` is not 0.9 of the old and 0.1 of the student's."
    for name, buffer in teacher.named_buffers():
        averaged = 0.9 * old[name] + 0.1 * new[name]
        if buffer.equal(new[name]) or alike(buffer.float(), averaged.float()):
            continue
        if buffer.equal(old[name]) and buffer.is_floating_point():
            return (
                f"The teacher's `{name}` has not moved. It is no parameter but a "
                "buffer, and eval mode depends on it."
            )
        if buffer.is_floating_point():
            return f"The teacher's `{name}` is neither the student's nor an average."
    kept = copy.deepcopy(teacher.state_dict())
    student(torch.randn(16, 4) - 9)
    if not all(v.equal(kept[k]) for k, v in teacher.state_dict().items()):
        return (
            "Teacher and student now share a tensor: the student's next batch changed "
            "the teacher. Copy the values with `copy_`."
        )
    return None


def parameters_alone(teacher, student, decay):
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters(), strict=True):
            t.lerp_(s, 1 - decay)


def hard_copy(teacher, student, decay):
    teacher.load_state_dict(student.state_dict())


def turned_round(teacher, student, decay):
    parameters_alone(teacher, student, 1 - decay)


def shared_buffers(teacher, student, decay):
    parameters_alone(teacher, student, decay)
    for t, s in zip(teacher.buffers(), student.buffers(), strict=True):
        t.data = s.data


# -- Patient 6: the checkpoint that loads without a word -------------------------------


@checking()
def judge_never_measured(find):
    inner = nn.Sequential(
        nn.BatchNorm1d(6, affine=False), nn.LayerNorm(6),
        nn.BatchNorm1d(6, track_running_stats=False),
    )  # fmt: skip
    net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), inner, nn.BatchNorm1d(6))
    net[1](torch.randn(16, 6))
    net[3].num_batches_tracked.fill_(500)  # the file had the counter, and no more
    centred = nn.Sequential(nn.BatchNorm1d(6))
    centred[0].running_var.fill_(2.0)  # e.g. inputs whose mean is 0
    for model, wanted in ((net, {"2.0", "3"}), (centred, set())):
        found = _at_other_places(find, model)
        if not isinstance(found, list | tuple | set):
            return "Return a list of names, such as `['1', '4.0']`."
        for name in sorted(wanted - {*found}):
            if name == "3":
                return (
                    "You miss a layer with statistics of 0 and 1 whose counter says "
                    "500: the counter was in the file, the statistics were not. Look "
                    "at the statistics themselves."
                )
            return "You miss a layer deeper down, or one without weight and bias."
        for name in sorted({*found} - wanted):
            if model is centred:
                return (
                    "You name a layer with `running_var` 2, so it was measured; its "
                    "mean is 0 because its inputs have mean 0."
                )
            return f"You name {name!r}, which has statistics, or needs none."
    return None


def by_counter(net):
    return [
        name
        for name, layer in net.named_modules()
        if getattr(layer, "num_batches_tracked", None) is not None
        and layer.num_batches_tracked == 0
    ]


def by_mean(net):
    means = {
        name.removesuffix(".running_mean"): buffer
        for name, buffer in net.named_buffers()
        if name.endswith("running_mean")
    }
    return [name for name, mean in means.items() if not mean.any()]


# -- Patient 9: the bias that nobody needs ---------------------------------------------


@checking()
def judge_drop_bias(drop_bias):
    conv, norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
    with torch.no_grad():
        conv.bias.add_(torch.tensor([2.0, -1.0, 0.5, 3.0]))
        norm.weight.uniform_(0.5, 2)
        norm.bias.normal_()
        for _ in range(5):
            norm(conv(torch.randn(8, 3, 6, 6)))
    x = torch.randn(8, 3, 6, 6)
    wanted = {mode: output(conv, norm, x, mode) for mode in ("eval", "training")}
    drop_bias(conv, norm)
    if conv.bias is not None:
        return "The convolution still has a bias. Set `conv.bias = None`."
    off = (output(conv, norm, x, "eval") - wanted["eval"]).abs().max().item()
    if off > 1e-4:
        return (
            f"In eval mode the output moved by {off:.2f}. The layer still subtracts a "
            "`running_mean` in which the old bias is contained."
        )
    if not alike(output(conv, norm, x, "training"), wanted["training"]):
        return (
            "Eval is right, but training is not: there the batch mean removes the bias "
            "by itself. Correct `running_mean`, which only eval uses, not `norm.bias`."
        )
    return None


def output(conv, norm, x, mode):
    with torch.no_grad():
        return copy.deepcopy(norm).train(mode == "training")(conv(x))


def bias_gone(conv, norm):
    conv.bias = None


def bias_zero(conv, norm):
    norm.running_mean -= conv.bias.detach()
    nn.init.zeros_(conv.bias)


def into_norm_bias(conv, norm):
    with torch.no_grad():
        norm.bias += norm.weight * conv.bias / (norm.running_var + norm.eps).sqrt()
    conv.bias = None


# -- Patient 11: sensors that stay unequal ---------------------------------------------


@checking()
def judge_sensor_norm(answer):
    if not (isinstance(answer, type) and issubclass(answer, nn.Module)):
        return "Hand in the class `SensorNorm` itself, derived from `nn.Module`."
    ours, wanted = answer(4), nn.BatchNorm1d(4)
    scales = torch.tensor([1.0, 10.0, 100.0, 1000.0])
    for length in (4, other(7)):
        x = torch.randn(8, length, 4) * scales + 5
        y, z = ours(x), wanted(x.transpose(1, 2)).transpose(1, 2)
        if y.shape != x.shape:
            return f"The output has the shape {tuple(y.shape)}, not {tuple(x.shape)}."
        if not alike(y, z):
            spread = ", ".join(f"{s:.2f}" for s in y.std((0, 1), correction=0).tolist())
            return (
                f"On an input {tuple(x.shape)} the features come out with deviations "
                f"{spread}. Each feature should have mean 0 and deviation 1 over all "
                "samples and times."
            )
    if not alike(ours.eval()(x), wanted.eval()(x.transpose(1, 2)).transpose(1, 2)):
        return "In eval mode it should use running statistics, one pair per feature."
    return None


class LastAxis(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return self.norm(x)


class AsItIs(LastAxis):
    def __init__(self, features):
        super().__init__(features)
        self.norm = nn.BatchNorm1d(features)


class NoStatistics(LastAxis):
    def __init__(self, features):
        super().__init__(features)
        self.norm = nn.BatchNorm1d(features, track_running_stats=False)

    def forward(self, x):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


# -- Patient 13: the longest neighbour -------------------------------------------------


@checking()
def judge_masked(masked):
    lengths = torch.tensor([5, 3, 1])
    x = 2 * torch.randn(3, 4, 7) + 3
    mask = torch.arange(7) < lengths[:, None]
    x = x * mask[:, None]
    flat = x.transpose(1, 2)[mask]
    wanted = torch.zeros(3, 7, 4)
    wanted[mask] = F.batch_norm(flat, None, None, training=True)
    wanted = wanted.transpose(1, 2)
    y = masked(x, mask)
    if not isinstance(y, torch.Tensor) or y.shape != x.shape:
        return f"The output should be a tensor of the input's shape, {tuple(x.shape)}."
    if not alike(y.transpose(1, 2)[mask], wanted.transpose(1, 2)[mask]):
        padded = F.batch_norm(x, None, None, training=True)
        if alike(y * mask[:, None], padded * mask[:, None]):
            return (
                "The padding is still in the statistics: mean and variance are those "
                "of all positions. Hiding it afterwards is too late."
            )
        ratio = flat.numel() / (4 * 7 * 3)
        mean = flat.mean(0) * ratio
        var = (flat - mean).square().mean(0)
        halfway = (flat - mean) / (var + 1e-5).sqrt()
        late = (flat - mean) / (var * ratio + 1e-5).sqrt()
        if any(alike(y.transpose(1, 2)[mask], one) for one in (halfway, late)):
            return (
                "You sum over the valid positions but divide by the number of all. "
                "Divide by how many are valid: `mask.sum()`."
            )
        return "The valid positions are not normalized by their own mean and variance."
    if not alike(y, wanted):
        return "Set the padded positions to 0 again: multiply by the mask at the end."
    return None


def hidden_afterwards(x, mask):
    return F.batch_norm(x, None, None, training=True) * mask[:, None]


def count_of_all(x, mask):
    valid = mask[:, None].float()
    mean = (x * valid).mean((0, 2), keepdim=True)
    var = ((x - mean).square() * valid).mean((0, 2), keepdim=True)
    return (x - mean) / (var + 1e-5).sqrt() * valid


def not_hidden(x, mask):
    flat = x.transpose(1, 2)[mask]
    mean, var = flat.mean(0), flat.var(0, correction=0)
    return (x - mean[:, None]) / (var + 1e-5).sqrt()[:, None]


# -- Patient 14: the norm from the tutorial --------------------------------------------


class TwoMistakes(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def deviation(self, x):
        return x.std(-1, keepdim=True) + self.eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        return self.weight * (x - mean) / self.deviation(x) + self.bias


class EpsOutside(TwoMistakes):
    def deviation(self, x):
        return x.std(-1, keepdim=True, correction=0) + self.eps


class Unbiased(TwoMistakes):
    def deviation(self, x):
        return (x.var(-1, keepdim=True) + self.eps).sqrt()


# -- Patient 16: always the same token -------------------------------------------------


def squares_in_float16(x, normalized_shape, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def stays_wide(x, normalized_shape, weight, eps):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


# -- Patient 18: gains that shrink -----------------------------------------------------


class HomeMade(nn.Module):
    """An RMSNorm that someone wrote; its name is all that type checks can see."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


LlamaRMSNorm = type("LlamaRMSNorm", (HomeMade,), {})


ScaleNorm = type("ScaleNorm", (HomeMade,), {})


@checking()
def judge_gains(find):
    image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.LayerNorm([2, 3, 3]), nn.Flatten())
    net = nn.Sequential(
        nn.Linear(4, 4), nn.Sequential(LlamaRMSNorm(4), nn.Linear(4, 4, bias=False)),
        image, nn.BatchNorm1d(18), ScaleNorm(18), nn.GroupNorm(2, 18, affine=False),
    )  # fmt: skip
    wanted = {"1.0.weight", "2.1.weight", "2.1.bias", "3.weight", "3.bias", "4.weight"}
    found = _at_other_places(find, net)
    if not isinstance(found, list | tuple | set):
        return "Return a list of names, such as `['1.weight', '4.0.bias']`."
    names = {name for name, _ in net.named_parameters()}
    if not all(name in names for name in found):
        return "Return names as in `net.named_parameters()`, none of other things."
    for name in sorted(wanted - {*found}):
        if name in ("1.0.weight", "4.weight"):
            layer = net.get_submodule(name.removesuffix(".weight"))
            return (
                f"You miss the gains of a `{type(layer).__name__}`: it is no class of "
                "PyTorch, so `isinstance` does not know it."
            )
        if name.startswith("2.1"):
            return (
                "You miss a LayerNorm over three axes: its weight has three "
                "dimensions, and is one of a norm all the same."
            )
        return f"You miss `{name}`, of a {type(net[int(name[0])]).__name__}."
    for name in sorted({*found} - wanted):
        return f"You name `{name}`, which belongs to no norm."
    return None


def by_class(net):
    norms = nn.LayerNorm | nn.RMSNorm | nn.BatchNorm1d | nn.GroupNorm
    return [
        f"{path}.{name}"
        for path, layer in net.named_modules()
        if isinstance(layer, norms)
        for name, _ in layer.named_parameters(recurse=False)
    ]


def by_dimensions(net):
    return [name for name, p in net.named_parameters() if p.dim() < 2]


def by_both(net):
    return {*by_class(net), *by_dimensions(net)}
