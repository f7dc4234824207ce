"""The exercises of chapter 8, one view of all of them."""

import inspect
import types
from collections import OrderedDict

import torch
from torch import nn

from normlab.exercises import Choice, Free, Pattern, Value, diagnosis, probes
from normlab.exercises.compare import show
from normlab.exercises.nets import names_the_layer
from normlab.exercises.seeded import asked_seed, chance, drawn, other, seeded
from normlab.norm import Norm

weights_standardized = Pattern(
    "8.1",
    question=(
        "Weight standardization normalizes no activations but the weight of a "
        "convolution, with the axes O, I, H, W: output channels, input channels, rows "
        "and columns. Every output filter gets mean 0 and variance 1. Write the "
        "pattern."
    ),
    answer="O [I H W]",
    mistakes=[
        (
            "O I [H W]",
            "You measure each little map by itself. A filter holds all its input "
            "channels.",
        ),
        ("[O] I [H W]", "You average over the filters and keep the input channels."),
        ("[O I H W]", "All filters share one mean here; each should have its own."),
    ],
    hints=[
        "There is one mean for each output filter. Which axis counts the filters?",
        "O is kept; all that a filter holds is reduced.",
    ],
    why="One set for each output channel: the sets of LayerNorm, on a weight.",
)

same_camera = Pattern(
    "8.2",
    question=(
        "In 8.12 every column of every picture had a gain and an offset of its own. "
        "Let them now be the same for all pictures, a property of the camera. Write "
        "the pattern, on (N, C, H, W), with the largest sets that share both."
    ),
    answer="[N] C [H] W",
    mistakes=[
        (
            "N C [H] W",
            "That works, but throws away more than the camera did: each picture "
            "loses its own columns' means. All pictures share the nuisance, so they "
            "may share the statistics.",
        ),
        (
            "[N] C [H W]",
            "All columns share one mean here, but each has a gain and an offset of its "
            "own.",
        ),
        (
            "[N] C H [W]",
            "These sets are rows. The amplifier belongs to a column: keep W.",
        ),
        (
            "[N C H] W",
            "Nearly: that mixes the channels. Nothing was said of channels that share "
            "an amplifier.",
        ),
    ],
    hints=[
        "Which elements share one gain and one offset? All those belong in one set.",
        "The pixels of one column, in all pictures: reduce N and H.",
    ],
    why="It is a norm that depends on the batch, so it needs running statistics, one "
    "for each channel and column, to read a single picture.",
)

counted = Value(
    "8.3",
    question=(
        '`normlab.Norm("N (G [C/G]) H [W]", "C H", sizes=...)` with G = 3 gets an '
        "input of shape (2, 12, 5, 7). How many values share a mean, how many means "
        "are there, and how many parameters has the layer, weight and bias together? "
        "Answer with a dict with the keys `values`, `means`, `parameters`."
    ),
    answer={"values": 28, "means": 30, "parameters": 120},
    mistakes=[
        (
            {"values": 28, "means": 30, "parameters": 24},
            "The second pattern says C H: weight and bias differ from row to row, too.",
        ),
        (
            {"values": 28, "means": 30, "parameters": 60},
            "You counted the weights. There are as many biases.",
        ),
        (
            {"values": 140, "means": 6, "parameters": 120},
            "H stands outside the brackets: each row has a mean of its own.",
        ),
        (
            {"values": 21, "means": 40, "parameters": 120},
            "There are 3 groups, so a group holds 4 channels.",
        ),
    ],
    hints=[
        "The reduced axes are C/G and W. Multiply their sizes.",
        "Values times means is the size of the input, 840.",
        "4 · 7 values; 2 · 3 · 5 means; 2 · 12 · 5 parameters.",
    ],
    why="Two patterns, two counts: the first tells the statistics, the second the "
    "parameters, and they need not match.",
)

halves = Choice(
    "8.4",
    question=(
        "A batch of 8 is too large for the memory. You run two halves of 4, add the "
        "gradients of their summed losses, and want the gradient of the whole batch. "
        "Behind which layers do you get it? Answer with the set of letters."
    ),
    options={
        "a": "`nn.BatchNorm2d(8)`",
        "b": "`nn.BatchNorm2d(8).eval()`",
        "c": "`nn.BatchNorm2d(8, track_running_stats=False).eval()`",
        "d": "`nn.GroupNorm(4, 8)`",
        "e": "`nn.InstanceNorm2d(8, track_running_stats=True)`",
        "f": "`nn.LayerNorm((8, 5, 5))`",
    },
    answer={"b", "d", "e", "f"},
    mistakes={
        "a": "Look at (a) again: each half is normalized with statistics of its own.",
        "b": "Look at (b) again: where do its statistics come from?",
        "c": "Look at (c) again: it has no buffers to use, so eval takes the batch's "
        "statistics as well.",
        "d": "Look at (d) again: is N in the set?",
        "e": "Look at (e) again: in training its statistics come from the map itself. "
        "The buffers move differently, but no gradient goes through them.",
        "f": "Look at (f) again: is N in the set?",
    },
    hints=[
        "The sum of the gradients is right wherever no sample enters another's output.",
        "Two questions for each: is N in the set, and do the statistics come from the "
        "input? Only two yeses spoil it.",
    ],
    why="Accumulating gradients enlarges the batch of the loss, never the batch of "
    "BatchNorm's statistics.",
)


def _judge_general(answer):
    def leading(x, normalized_shape):
        return tuple(range(x.dim() - len(normalized_shape)))

    asked = {
        "batch_norm": lambda x, eps: answer(x, (1,), eps=eps),
        "instance_norm": lambda x, eps: answer(x, (0, 1), eps=eps),
        "layer_norm": lambda x, normalized_shape, eps: answer(
            x, leading(x, normalized_shape), eps=eps
        ),
        "rms_norm": lambda x, normalized_shape, eps: answer(
            x, leading(x, normalized_shape), center=False, eps=eps
        ),
        "group_norm": lambda x, num_groups, eps: answer(
            x, (0, 1), num_groups=num_groups, eps=eps
        ),
    }
    for norm, function in asked.items():
        arguments = tuple(inspect.signature(function).parameters)[1:]
        task = probes.Task.of(norm, arguments=arguments, by_hand=True)
        found = diagnosis.examine(function, task, asked_seed())
        if found is not None:
            *_, message, _ = found
            return f"Used as {task.title}: {message}"
    return None


def _without_groups(x, kept, num_groups=None, center=True, eps=1e-5):
    dims = tuple(d for d in range(x.dim()) if d not in kept)
    if center:
        x = x - x.mean(dims, keepdim=True)
    return x * torch.rsqrt(x.square().mean(dims, keepdim=True) + eps)


def _always_centered(x, kept, num_groups=None, center=True, eps=1e-5):
    return _without_groups(x, kept, num_groups, True, eps)


def _reduces_kept(x, kept, num_groups=None, center=True, eps=1e-5):
    centered = x - x.mean(kept, keepdim=True)
    return centered / (centered.square().mean(kept, keepdim=True) + eps).sqrt()


norm_by_kept_axes = Free(
    "8.5",
    judge=_judge_general,
    expects=types.FunctionType,
    name="norm_keeping",
    question=(
        "Keras names the kept axes. From an empty cell, write the norm that does, for "
        "tensors of any rank: `norm_keeping(x, kept, num_groups=None, center=True, "
        "eps=1e-5)`. `kept` is a tuple of dimensions that are not reduced. With "
        "`num_groups`, dimension 1 is split in groups, and of it the group is kept. "
        "Without `center` it divides by the root mean square. It will be used as all "
        "five norms. Use no norm of PyTorch."
    ),
    hints=[
        "All dimensions that are not in `kept` are reduced, and that is a tuple for "
        "`mean`.",
        "With groups, reshape to `(n, num_groups, c // num_groups, *rest)`. The new "
        "dimension 2 is reduced, and what came after 1 moves up by one.",
        "Center first, if asked; then the mean square of what is left serves both "
        "kinds: `x * torch.rsqrt(x.square().mean(dims, keepdim=True) + eps)`. "
        "`reshape` to the first shape at the end.",
    ],
    solution="""
def norm_keeping(x, kept, num_groups=None, center=True, eps=1e-5):
    shape = x.shape
    if num_groups is not None:
        x = x.reshape(shape[0], num_groups, -1, *shape[2:])
        kept = [d + (d > 1) for d in kept]
    dims = tuple(d for d in range(x.dim()) if d not in kept)
    if center:
        x = x - x.mean(dims, keepdim=True)
    y = x * torch.rsqrt(x.square().mean(dims, keepdim=True) + eps)
    return y.reshape(shape)
""",
    why="Which values, and whether the mean goes: no more tells the five apart, before "
    "parameters and buffers.",
    wrong=[
        (_without_groups, "Used as GroupNorm: Wrong axes"),
        (_always_centered, "Used as RMSNorm: You subtract the mean"),
        (_reduces_kept, "Used as BatchNorm: Wrong axes: you averaged over N [C] H W"),
    ],
)


def _judge_detector(answer):
    weak = nn.BatchNorm2d(6)
    weak.weight.data.fill_(1e-2)
    layers = {
        "BatchNorm2d in training": (nn.BatchNorm2d(6), True),
        "BatchNorm2d in eval": (nn.BatchNorm2d(6).eval(), False),
        "BatchNorm2d without running statistics, in eval": (
            nn.BatchNorm2d(6, track_running_stats=False).eval(),
            True,
        ),
        "InstanceNorm2d": (nn.InstanceNorm2d(6), False),
        "LayerNorm((6, 4, 4))": (nn.LayerNorm((6, 4, 4)), False),
        "GroupNorm(3, 6)": (nn.GroupNorm(3, 6), False),
        'Norm("[N] C [H] W")': (Norm("[N] C [H] W"), True),
        "BatchNorm2d with weights of 0.01": (weak, True),
    }
    order = list(layers.items())
    if asked_seed():
        chance().shuffle(order)
    for name, (layer, mixes) in order:
        x = drawn(other(4), 6, 4, 4, seed=1)
        x_before = x.clone()
        before = {k: v.clone() for k, v in layer.state_dict().items()}
        mode = layer.training
        got = answer(layer, x)
        if isinstance(got, torch.Tensor) and got.numel() == 1:
            got = got.item()
        if not isinstance(got, bool):
            return f"The function should return True or False, not {show(got)}."
        if got != mixes:
            fact = "do" if mixes else "do not"
            return f"The samples of {name} {fact} influence each other; you say {got}."
        if layer.training != mode:
            return f"{name} comes back in another mode. Put it back, or leave it."
        after = layer.state_dict()
        if not all(torch.equal(after[key], before[key]) for key in before):
            return (
                f"{name} comes back with other running statistics: your forward pass "
                "moved them. Try it on a `copy.deepcopy` of the layer."
            )
        if not torch.equal(x, x_before):
            return "Your function changes x itself. Work on `x.clone()`."
    return None


def _by_copy(layer, x):
    other = x.clone()
    other[1:] = 100 * other[1:] + 50
    return not torch.allclose(layer(x)[0], layer(other)[0])


def _by_name(layer, x):
    return isinstance(layer, nn.BatchNorm2d)


mixing_detector = Free(
    "8.6",
    judge=_judge_detector,
    expects=types.FunctionType,
    name="mixes_samples",
    question=(
        "Write `mixes_samples(layer, x)`: True if, in the mode the layer is in, the "
        "output for one sample of the batch x depends on the other samples. It is to "
        "hold for any layer, without asking its name, and leaves layer and x as they "
        "were: parameters, running statistics and mode."
    ),
    hints=[
        "`coupling` in 8.10 does most of it. What does a forward pass in training "
        "leave behind?",
        "`probe = copy.deepcopy(layer)` may be run as often as you like.",
        "Replace `x[1:]` in a clone, run both through the copy, and compare the first "
        "outputs with `torch.equal`.",
    ],
    solution="""
import copy

def mixes_samples(layer, x):
    probe, other = copy.deepcopy(layer), x.clone()
    other[1:] = 100 * other[1:] + 50
    with torch.no_grad():
        return not torch.equal(probe(x)[0], probe(other)[0])
""",
    why="Only a run tells: the class name says neither where the statistics come from "
    "nor what the mode does.",
    wrong=[
        (_by_copy, "comes back with other running statistics"),
        (_by_name, "BatchNorm2d in eval do not influence"),
    ],
)


def moody_net():
    """A net for (N, 3, 8, 8) pictures, in eval mode, with norms of mixed origin."""
    with seeded(8):
        layers = {
            "conv1": nn.Conv2d(3, 8, 3, padding=1),
            "norm1": nn.BatchNorm2d(8),
            "conv2": nn.Conv2d(8, 8, 3, padding=1),
            "norm2": Norm("N C [H] W", "C", sizes={"C": 8}),
            "relu2": nn.ReLU(),
            "conv3": nn.Conv2d(8, 8, 3, padding=1),
            "norm3": Norm("[N] C [H W]", "C", sizes={"C": 8}),
            "relu3": nn.ReLU(),
            "conv4": nn.Conv2d(8, 8, 3, padding=1),
            "norm4": Norm(
                "[N] C [H] W",
                "C",
                sizes={"C": 8, "W": 8},
                track_running_stats=True,
            ),
        }
    return nn.Sequential(OrderedDict(layers)).eval()


_INNOCENT = {
    "norm1": "norm1 reduces N, but it is in eval and has buffers: its statistics are "
    "fixed.",
    "norm2": "norm2 keeps N: no other sample is in its sets.",
    "norm4": "norm4 reduces N, but it tracks running statistics, and in eval it uses "
    "them.",
}

moody_layer = Free(
    "8.7",
    fixed=True,
    judge=names_the_layer("norm3", _INNOCENT),
    question=(
        "Find the bug. `exercises.moody_net()` is in eval mode. All the same, its "
        "answer for a picture depends on what else is in the batch. Which layer is to "
        'blame? Answer with its name in quotes, as in `named_children()`: `"conv1"` '
        "and so on."
    ),
    hints=[
        "Print the net. Which norms reduce N? Which of those have somewhere else to "
        "take their statistics from?",
        "Your `mixes_samples` of the last exercise can be asked about each layer: "
        "`for name, layer in exercises.moody_net().named_children()`, with the "
        "output of the layer before as x.",
    ],
    solution='answer = "norm3"',
    why="N is in the set of norm1, norm3 and norm4, but norm3 alone has no running "
    "statistics to use in eval.",
    wrong=[*_INNOCENT.items(), ("conv1", "Look at the norms")],
)
