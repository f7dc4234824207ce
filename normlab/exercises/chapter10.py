"""The exercises of chapter 10, many devices: shares are lists, no process starts."""

import types
from collections import OrderedDict
from numbers import Real

import torch
from torch import nn

from normlab import modules
from normlab.exercises import Free, Value
from normlab.exercises.compare import kind, show
from normlab.exercises.seeded import asked_seed, chance, drawn, gap

merged_by_hand = Value(
    "10.1",
    question=(
        "On paper: one process holds 2 and 4, another one 6, 6 and 12. Each sends the "
        "count of its values, their mean, and the sum of their squared distances from "
        "that mean. Merge the two, without going back to the values: answer with a "
        "dict with the keys `count`, `mean` and `squares`."
    ),
    answer={"count": 5, "mean": 6.0, "squares": 56.0},
    mistakes=[
        (
            {"count": 5, "mean": 5.5, "squares": 57.25},
            "5.5 is the average of the two means, 3 and 8. The share with three values "
            "has to count three times, the other one twice.",
        ),
        (
            {"count": 5, "mean": 6.0, "squares": 26.0},
            "2 and 24 are the distances within the shares. Each share's values are "
            "also off by as much as its mean is from 6.",
        ),
        (
            {"count": 5, "mean": 6.0, "squares": 39.0},
            "You count the distance of each mean from 6 once. It is there for every "
            "value of the share: twice 9, and three times 4.",
        ),
        (
            {"count": 5, "mean": 6.0, "squares": 11.2},
            "That is the variance. The sum is asked for, before it is divided by 5.",
        ),
    ],
    hints=[
        "They send (2, 3, 2) and (3, 8, 24). The sums of the values are 6 and 24.",
        "The mean is 30/5. Share 0 lies 3 away from it, share 1 lies 2 away.",
        "2 + 24 + 2 · 3² + 3 · 2².",
    ],
    why="The sum within the shares, and for each share its count times the squared "
    "distance between its mean and the common one. From the five values: "
    "16 + 4 + 0 + 0 + 36.",
)


who_shares = Value(
    "10.2",
    question=(
        "4 machines with 8 GPUs each, one process for a GPU. A process runs 16 "
        "micro-batches of 2 samples, adds their gradients up, and then comes one step "
        "of the optimizer. How many samples are in such a step, and how many share a "
        "mean with BatchNorm, with SyncBatchNorm, and with SyncBatchNorm over the GPUs "
        "of one machine? Answer with a dict with the keys `step`, `plain`, `sync` and "
        "`machine`."
    ),
    answer={"step": 1024, "plain": 2, "sync": 64, "machine": 16},
    mistakes=[
        (
            {"step": 1024, "plain": 32, "sync": 1024, "machine": 256},
            "Accumulation adds up gradients, not samples. When the second micro-batch "
            "arrives, the first has been normalized and is gone.",
        ),
        (
            {"step": 1024, "plain": 32, "sync": 64, "machine": 16},
            "Look at `plain` again: one forward pass of one process has 2 samples, "
            "however many more will follow.",
        ),
        (
            {"step": 64, "plain": 2, "sync": 64, "machine": 16},
            "Look at `step` again: the optimizer waits for 16 micro-batches.",
        ),
        (
            {"step": 1024, "plain": 2, "sync": 64, "machine": 8},
            "Look at `machine` again: 8 GPUs hold more than one sample each.",
        ),
        (
            {"step": 1024, "plain": 2, "sync": 32, "machine": 8},
            "You count processes. Each of them brings 2 samples along.",
        ),
    ],
    hints=[
        "Samples share a mean only if they are in the same forward pass: who is in it?",
        "A forward pass: 2 samples in a process, 8 processes in a machine, 32 in all.",
    ],
    why="Synchronizing joins what is computed at the same time, accumulation what "
    "comes one after the other. Only the first makes the set larger.",
)


whose_record = Value(
    "10.3",
    question=(
        "A new BatchNorm, momentum 0.1, sees the batch 2, 4, 6, 12 once. What is its "
        "`running_mean` afterwards: if one process takes the batch as a whole; on rank "
        "0, which writes the checkpoint, if two processes take two samples each, in "
        "order, under DDP with its defaults; if one process takes them as two "
        "micro-batches, accumulated; if two processes take them with SyncBatchNorm? "
        "Answer with a dict with the keys `whole`, `rank_0`, `accumulated` and `sync`."
    ),
    answer={"whole": 0.6, "rank_0": 0.3, "accumulated": 1.17, "sync": 0.6},
    mistakes=[
        (
            {"whole": 0.6, "rank_0": 0.3, "accumulated": 0.6, "sync": 0.6},
            "Look at `accumulated` again: every forward pass moves the running mean, "
            "and there are two of them.",
        ),
        (
            {"whole": 0.6, "rank_0": 0.3, "accumulated": 1.2, "sync": 0.6},
            "Nearly: the second update keeps nine tenths of what the first one left.",
        ),
        (
            {"whole": 0.6, "rank_0": 0.6, "accumulated": 1.17, "sync": 0.6},
            "Look at `rank_0` again: DDP averages gradients. A running mean has none, "
            "so what rank 1 measured does not get there.",
        ),
        (
            {"whole": 0.6, "rank_0": 0.9, "accumulated": 1.17, "sync": 0.6},
            "0.9 is what rank 1 holds, and what the next forward pass overwrites.",
        ),
        (
            {"whole": 0.6, "rank_0": 0.3, "accumulated": 1.17, "sync": 0.3},
            "Look at `sync` again: the means are merged before anything is done with "
            "them, the update of the running mean too.",
        ),
        (
            {"whole": 6, "rank_0": 3, "accumulated": 6, "sync": 6},
            "Those are means of samples. The running mean begins at 0 and moves a "
            "tenth of the way.",
        ),
    ],
    hints=[
        "The means are 6 for the whole batch, 3 and 9 for the halves. "
        "new = 0.9 · old + 0.1 · mean.",
        "Accumulated: 0 becomes 0.3, and then 0.9 · 0.3 + 0.1 · 9.",
    ],
    why="Three different records of the same four samples. Only SyncBatchNorm keeps "
    "the one of the whole batch.",
)


bytes_handed_over = Value(
    "10.4",
    question=(
        "A net has three layers `normlab.SyncBatchNorm`, of 32, 64 and 128 channels. "
        "On 4 processes it makes a training step, not its first, with 16 images of "
        "64 x 64 pixels each. How many collectives do the norms begin in forward and "
        "backward together, and how many bytes does each process hand to them? Answer "
        "with a dict with the keys `collectives` and `bytes`."
    ),
    answer={"collectives": 6, "bytes": 7192},
    mistakes=[
        (
            {"collectives": 6, "bytes": 3596},
            "That would be float32, as in PyTorch's layer. Ours sends float64.",
        ),
        (
            {"collectives": 3, "bytes": 3608},
            "That is the forward pass. Gradients of the statistics travel, too.",
        ),
        (
            {"collectives": 6, "bytes": 7168},
            "Nearly. In forward each layer sends a count beside its means and "
            "variances.",
        ),
        (
            {"collectives": 6, "bytes": 7216},
            "Nearly. You send the count in backward as well, where nobody needs it.",
        ),
        (
            {"collectives": 6, "bytes": 28768},
            "That is the sum over all four processes. What does one of them hand over?",
        ),
        (
            {"collectives": 12, "bytes": 7192},
            "Mean, variance and count travel together, in one message.",
        ),
    ],
    hints=[
        "Which of the numbers in the question matter? Not the size of the images.",
        "Forward: mean, variance and count, 2C + 1 numbers; backward: 2C.",
        "8 · (4C + 1) bytes for each layer, with C = 32, 64 and 128.",
    ],
    why="32C + 8 bytes a layer: 1032, 2056 and 4104. A batch ten times as large costs "
    "the same; a fourth layer costs two more waits.",
)


class ClippedBatchNorm(nn.BatchNorm2d):
    """A BatchNorm of somebody's own: outputs beyond 3 are cut off."""

    def forward(self, x):
        return super().forward(x).clamp(-3, 3)


def mixed_net():
    """A net for images (N, 3, H, W), with norms of many kinds."""
    block = OrderedDict(conv=nn.Conv2d(8, 8, 3), norm=modules.BatchNorm2d(8))
    head = OrderedDict(
        pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), norm=nn.BatchNorm1d(8)
    )
    layers = {
        "conv": nn.Conv2d(3, 8, 3),
        "norm1": nn.BatchNorm2d(8),
        "norm2": nn.GroupNorm(2, 8),
        "block": nn.Sequential(block),
        "norm3": nn.InstanceNorm2d(8, track_running_stats=True),
        "norm4": ClippedBatchNorm(8),
        "norm5": nn.SyncBatchNorm(8),
        "head": nn.Sequential(head),
    }
    return nn.Sequential(OrderedDict(layers))


converted_layers = Value(
    "10.5",
    question=(
        "`normlab.SyncBatchNorm.convert_sync_batchnorm` is given "
        "`exercises.mixed_net()`. Which layers are a `normlab.SyncBatchNorm` "
        "afterwards? Say it before you run it; answer with the set of their names as "
        'in `net.named_modules()`, such as `{"norm2", "head.flat"}`.'
    ),
    answer={"norm1", "block.norm", "norm5", "head.norm"},
    mistakes=[
        (
            {"norm1", "block.norm", "norm4", "norm5", "head.norm"},
            "norm4 is of a class derived from BatchNorm. It may compute something of "
            "its own, and does, so it is left alone.",
        ),
        (
            {"norm1", "block.norm", "norm3", "norm5", "head.norm"},
            "norm3 has running statistics, but InstanceNorm keeps N: none of its sets "
            "is cut.",
        ),
        (
            {"norm1", "block.norm", "norm2", "norm5", "head.norm"},
            "norm2 is a GroupNorm. It keeps N: none of its sets is cut.",
        ),
        (
            {"norm1", "block.norm", "head.norm"},
            "norm5 is PyTorch's SyncBatchNorm, which declines tensors of the CPU. It "
            "becomes ours.",
        ),
        (
            {"norm1", "norm5", "head.norm"},
            "block.norm is our own BatchNorm2d, and changes as PyTorch's does.",
        ),
        (
            {"norm1", "norm5"},
            "Every module of the net is visited, those inside of others as well.",
        ),
        (
            {"norm1", "block.norm", "norm5"},
            "head.norm is a BatchNorm1d, on (N, C). SyncBatchNorm takes that, too.",
        ),
    ],
    hints=[
        "Which sets does the cut between two processes divide? Those that reduce N.",
        "Four layers change. One that reduces N does not: look at its class.",
    ],
    why="Every BatchNorm, PyTorch's and ours, at any depth, and PyTorch's "
    "SyncBatchNorm. Not a derived class: check those by hand, since norm4 still "
    "averages over the samples beside it alone.",
)


def _judge_factor(answer):
    shares = [(12, 4), (6, 6, 6), (7, 1, 2)]
    if asked_seed():
        shares += [
            tuple(chance(i, j).randint(1, 20) for j in range(i)) for i in (2, 3, 4)
        ]
    for sizes in shares:
        n, processes = sum(sizes), len(sizes)
        for rank, size in enumerate(sizes):
            asked = f"`loss_factor({list(sizes)}, {rank})`"
            got = answer(list(sizes), rank)
            if isinstance(got, torch.Tensor) and got.numel() == 1:
                got = got.item()
            if isinstance(got, bool) or not isinstance(got, Real):
                return f"{asked} should be a number, but it is {show(got)}."
            wanted = processes * size / n
            if abs(got - wanted) < 1e-6:
                continue
            if abs(got - size / n) < 1e-6:
                return (
                    f"{asked} gave {show(got)}, the part of the samples. But DDP also "
                    f"divides the sum of the gradients by the {processes} processes: "
                    f"it comes out {processes} times too small."
                )
            if abs(got * wanted - 1) < 1e-6:
                return (
                    f"{asked} gave {show(got)}: turned round. A large share has to "
                    "count more than a small one."
                )
            if all(answer(list(sizes), other) == 1 for other in range(processes)):
                return (
                    f"{asked} gave 1, and leaves it as it is: a mean over {size} and "
                    "one over another number of samples count the same."
                )
            return f"{asked} should be {show(wanted)}, and is {show(got)}."
    return None


uneven_losses = Free(
    "10.6",
    judge=_judge_factor,
    expects=types.FunctionType,
    name="loss_factor",
    question=(
        "SyncBatchNorm weighs uneven shares by itself. The loss does not: each process "
        "takes the mean over its share, and DDP averages the gradients over the "
        "processes. With shares of 12 and 4, a sample of the small one counts three "
        "times as much as one of the large. Write `loss_factor(sizes, rank)`: what "
        "process `rank` has to multiply its loss by, so that the gradient after DDP is "
        "that of the mean over all samples. `sizes` is the list of the sizes of all "
        "shares, none of them 0."
    ),
    hints=[
        "Which factor would be right if DDP added the gradients up?",
        "It divides their sum by `len(sizes)`. What brings that back?",
        "`len(sizes) * sizes[rank] / sum(sizes)`.",
    ],
    solution="""
def loss_factor(sizes, rank):
    return len(sizes) * sizes[rank] / sum(sizes)
""",
    why="The share's size over the average size: 1.5 and 0.5 for 12 and 4, and 1 "
    "wherever the shares are even.",
    wrong=[
        (lambda sizes, rank: sizes[rank] / sum(sizes), "2 times too small"),
        (lambda sizes, rank: sum(sizes) / sizes[rank] / len(sizes), "turned round"),
        (lambda sizes, rank: 1, "gave 1, and leaves it as it is"),
        (lambda sizes, rank: sizes[rank] / max(sizes), "should be 1.5, and is 1"),
        (lambda sizes, rank: sizes[rank], "should be 1.5, and is 12"),
        (lambda sizes, rank: sizes, "should be a number, but it is [12, 4]"),
    ],
)


def sent_by(shares):
    """Counts (R,), means (R, C), and sums of squared distances (R, C) of the shares."""
    counts = torch.tensor([len(x) for x in shares])
    means = torch.stack([x.sum(0) / max(1, len(x)) for x in shares])
    squares = [
        (x - mean).square().sum(0) for x, mean in zip(shares, means, strict=True)
    ]
    return counts, means, torch.stack(squares)


# Sizes of the shares, what is added to all values, and how a sentence calls the case.
_CASES = (
    ((4, 4), 0.0, "Two shares of 4"),
    ((3, 1), 0.0, "Shares of 3 and 1"),
    ((0, 0, 5, 2), 0.0, "Four shares, of which the first two are empty"),
    (tuple(range(1, 65)), 0.0, "64 shares"),
    ((30, 10, 0, 20), 1e4, "Float32 values around 10,000"),
)


def _judge_merge(merge):
    for sizes, offset, case in _CASES:
        x = 2 * drawn(sum(sizes), 3, seed=len(sizes))
        x += offset + 3 * (torch.arange(len(x)) >= sizes[0])[:, None]
        sent = sent_by(x.split(sizes))
        found = _fault_of_merge(merge(*(t.clone() for t in sent)), x, sent)
        if found:
            return f"{case}: {found}"
    return None


def _fault_of_merge(got, x, sent):
    """What is wrong with the count, the mean and the squares of all values x."""
    if not isinstance(got, tuple | list) or len(got) != 3:
        return f"return count, mean and squares, a tuple of three, not {kind(got)}."
    count, mean, squares = (torch.as_tensor(t).detach().cpu().double() for t in got)
    if mean.shape != (3,) or squares.shape != (3,):
        return "mean and squares should have the shape of one share's, (C,)."
    if mean.isnan().any() or squares.isnan().any():
        return (
            "there is a NaN, since 0 was divided by 0. A share without values has "
            "weight 0."
        )
    if count.numel() != 1 or count.item() != len(x):
        return f"the count should be {len(x)}, and is {show(count)}."
    means, within = (t.double() for t in sent[1:])
    wanted = x.double().mean(0)
    total = (x.double() - wanted).square().sum(0)
    between = (means - wanted).square()
    if gap(mean, wanted) > 1e-6 * wanted.abs().max() + 1e-4:
        if gap(mean, means.mean(0)) < 1e-3:
            return (
                "you average the means as they are, so that a share counts the same "
                "whatever it holds. Weigh each by its count."
            )
        return f"the first mean should be {show(wanted[0])}, and is {show(mean[0])}."
    if gap(squares / total, torch.ones(3)) < 0.01:
        return None
    for other, sentence in (
        (
            within.sum(0),
            "that is the sum within the shares. The distances of their means from the "
            "common mean are missing.",
        ),
        (
            within.sum(0) + between.sum(0),
            "weigh the squared distance of each mean by the count of its share.",
        ),
        (total / len(x), "squares is the sum, not the variance."),
    ):
        if gap(squares / other, torch.ones(3)) < 0.01:
            return sentence
    facts = (
        f"the first of squares should be {show(total[0])}, and is {show(squares[0])}"
    )
    if wanted.abs().max() > 1e3:
        return (
            f"{facts}. Two large numbers were subtracted, and what they agree in was "
            "all that float32 could hold. Square nothing but distances from a mean."
        )
    return f"{facts}."


def _means_as_they_are(counts, means, squares):
    mean = means.mean(0)
    between = counts[:, None] * (means - mean).square()
    return counts.sum(), mean, (squares + between).sum(0)


def _by_squares_of_values(counts, means, squares):
    n, sums = counts.sum(), counts[:, None] * means
    mean = sums.sum(0) / n
    return n, mean, (squares + sums * means).sum(0) - n * mean.square()


def _within_alone(counts, means, squares):
    mean = (counts[:, None] * means).sum(0) / counts.sum()
    return counts.sum(), mean, squares.sum(0)


def _between_not_weighed(counts, means, squares):
    mean = (counts[:, None] * means).sum(0) / counts.sum()
    return counts.sum(), mean, (squares + (means - mean).square()).sum(0)


def _variance(counts, means, squares):
    n, mean, squares = _by_squares_of_values(counts, means, squares)
    return n, mean, squares / n


def _two_by_two(counts, means, squares):
    n, mean, total = counts[0], means[0], squares[0]
    for m, other, more in zip(counts[1:], means[1:], squares[1:], strict=True):
        distance = other - mean
        total = total + more + distance.square() * n * m / (n + m)
        mean, n = mean + distance * m / (n + m), n + m
    return n, mean, total


stable_merge = Free(
    "10.7",
    judge=_judge_merge,
    expects=types.FunctionType,
    name="merge",
    question=(
        "From an empty cell: R processes have each sent, for every channel, the count "
        "of their values, the mean, and the sum of the squared distances from it. "
        "Write `merge(counts, means, squares)`, for tensors of the shapes (R,), (R, C) "
        "and (R, C), that returns the same three for all values together: count, mean "
        "(C,) and squares (C,). Shares differ in size, an empty one sends zeros, there "
        "may be many, and their values may be float32 and around 10,000."
    ),
    hints=[
        "Begin with the mean: `counts[:, None]` broadcasts over the channels.",
        "To the sum within the shares comes what lies between them: for each share "
        "its count times the squared distance of its mean from the common one.",
        "`mean = (counts[:, None] * means).sum(0) / counts.sum()`, and then "
        "`(squares + counts[:, None] * (means - mean).square()).sum(0)`.",
    ],
    solution="""
def merge(counts, means, squares):
    weights = counts[:, None]
    mean = (weights * means).sum(0) / counts.sum()
    between = weights * (means - mean).square()
    return counts.sum(), mean, (squares + between).sum(0)
""",
    why="All shares at once, and no division by the count of a single one, so that an "
    "empty share does no harm. Merging two by two gives the same, if two empty shares "
    "are met with care.",
    wrong=[
        (_means_as_they_are, "Shares of 3 and 1: you average the means as they are"),
        (_by_squares_of_values, "around 10,000: the first of squares should be"),
        (_by_squares_of_values, "Square nothing but distances from a mean"),
        (_within_alone, "that is the sum within the shares"),
        (_between_not_weighed, "weigh the squared distance of each mean"),
        (_variance, "squares is the sum, not the variance"),
        (_two_by_two, "are empty: there is a NaN, since 0 was divided by 0"),
        (lambda counts, means, squares: means.mean(0), "a tuple of three, not a"),
    ],
)


def _to_share(x, n, mean, grad_means, grad_vars):
    return (grad_means.sum(0) + 2 * grad_vars.sum(0) * (x - mean)) / n


def _own_alone(x, n, mean, grad_means, grad_vars):
    return _to_share(x, n, mean, grad_means[:1], grad_vars[:1])


def _averaged(x, n, mean, grad_means, grad_vars):
    return _to_share(x, n, mean, grad_means, grad_vars) / len(grad_means)


def _own_count(x, n, mean, grad_means, grad_vars):
    return _to_share(x, max(1, len(x)), mean, grad_means, grad_vars)


def _own_mean(x, n, mean, grad_means, grad_vars):
    return _to_share(x, n, x.mean(0), grad_means, grad_vars)


def _mean_alone(x, n, mean, grad_means, grad_vars):
    return _to_share(x, n, mean, grad_means, 0 * grad_vars)


def _unbiased(x, n, mean, grad_means, grad_vars):
    return _to_share(x, n, mean, grad_means, grad_vars * n / (n - 1))


_BACKWARD = (
    (
        _own_alone,
        "You use what the loss of one process sends back. All losses were computed "
        "with the same mean and variance, so all of them have a say.",
    ),
    (
        _averaged,
        "You average the gradients of the processes. The loss is the sum of theirs: "
        "add them.",
    ),
    (
        _own_count,
        "You divide by the count of the share. A value moves the common mean by 1/n, "
        "and n counts the values of all processes.",
    ),
    (
        _own_mean,
        "You subtract the mean of the share. The variance was taken around the common "
        "mean.",
    ),
    (
        _mean_alone,
        "The part through the mean is right, the one through the variance is missing.",
    ),
    (_unbiased, "That is the gradient of the unbiased variance, divided by n - 1."),
)


def _judge_backward(answer):
    sizes = (5, 2, 0, 1)
    shares = [2 * drawn(n, 3, seed=n) + n for n in sizes]
    to_mean, to_var = drawn(4, 3, seed=7), drawn(4, 3, seed=8)
    batch = torch.cat(shares).requires_grad_()
    var, mean = torch.var_mean(batch, 0, correction=0)
    (to_mean * mean + to_var * var).sum().backward()
    known = len(batch), mean.detach(), to_mean, to_var
    for x, wanted in zip(shares, batch.grad.split(sizes), strict=True):
        got = answer(x.clone(), *known)
        if not isinstance(got, torch.Tensor) or got.shape != x.shape:
            return (
                f"For x of the shape {tuple(x.shape)} a tensor of that shape is asked "
                f"for, not {show(got)}."
            )
        if not len(x) or gap(got, wanted) < 1e-5:
            continue
        for other, sentence in _BACKWARD:
            if gap(got, other(x, *known)) < 1e-5:
                return sentence
        return (
            f"For a share of {len(x)} out of {len(batch)} values the first gradient "
            f"should be {show(wanted[0, 0])}, and is {show(got[0, 0])}."
        )
    return None


backward_by_hand = Free(
    "10.8",
    judge=_judge_backward,
    expects=types.FunctionType,
    name="through_statistics",
    question=(
        "The second collective. R processes have normalized with one merged `mean` "
        "and one merged biased variance of n values, both of shape (C,). The loss is "
        "the sum of their losses; that of process r has the gradient `grad_means[r]` "
        "for the mean and `grad_vars[r]` for the variance. A process has received all "
        "of these, as tensors of shape (R, C). Write `through_statistics(x, n, mean, "
        "grad_means, grad_vars)`: the gradient that reaches its share x, of shape "
        "(n_r, C), through mean and variance. (What comes straight through y is not "
        "asked for.)"
    ),
    hints=[
        "By how much does the mean move if one value moves by a little? And the "
        "variance?",
        "d mean / d x = 1/n, and d var / d x = 2 (x - mean) / n. Whose losses depend "
        "on the mean?",
        "`(grad_means.sum(0) + 2 * grad_vars.sum(0) * (x - mean)) / n`.",
    ],
    solution="""
def through_statistics(x, n, mean, grad_means, grad_vars):
    to_mean, to_var = grad_means.sum(0), grad_vars.sum(0)
    return (to_mean + 2 * to_var * (x - mean)) / n
""",
    why="The two sums over processes are all that has to travel: 2C numbers, whatever "
    "the shares hold. (The variance depends on the mean, too, but the distances from a "
    "mean add up to 0, and so does that part.)",
    wrong=[
        *_BACKWARD,
        (lambda x, *others: x, "the first gradient should be"),
        (lambda x, *others: x[:, :1], "a tensor of that shape is asked for"),
    ],
)


SCRIPT = """\
 1  dist.init_process_group("gloo", timeout=timedelta(minutes=10))
 2  net = normlab.SyncBatchNorm.convert_sync_batchnorm(make_net())
 3  ddp = DistributedDataParallel(net)
 4  optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
 5  for x, y in my_share(train_set):  # as many on each process
 6      loss = criterion(ddp(x), y)
 7      optimizer.zero_grad()
 8      loss.backward()
 9      optimizer.step()
10  if dist.get_rank() == 0:
11      with torch.no_grad():
12          print("accuracy", accuracy(net(x_test), y_test))
13      torch.save(net.state_dict(), "net.pt")
14  dist.destroy_process_group()
"""

waiting_line = Value(
    "10.9",
    question=(
        "Find the bug. `exercises.SCRIPT`, which the next cell prints, trains on two "
        "processes to the end. Then process 0 stops: SyncBatchNorm waited for the "
        "others in vain. In which line does it wait?"
    ),
    answer=12,
    mistakes=[
        *(
            (line, "Both processes come here, and no layer is called here.")
            for line in (1, 2, 3, 4, 7, 9)
        ),
        (
            5,
            "Unequal numbers of batches do end like this, but here they are equal, and "
            "the training came to its end.",
        ),
        (
            6,
            "Both processes come here, equally often, and meet. Which line calls the "
            "layer on one process alone?",
        ),
        (
            8,
            "Both processes come here, equally often, and meet. Which line calls the "
            "layer on one process alone?",
        ),
        (
            10,
            "From here on process 0 is alone, which does no harm as long as it calls "
            "nothing that waits for the other.",
        ),
        (
            11,
            "`no_grad` waits for nobody. But it is not `eval()`, either: which mode is "
            "the net in?",
        ),
        (13, "Saving calls no layer. The waiting happens before."),
        (14, "Process 1 comes here at once, and ends. Where is process 0 meanwhile?"),
    ],
    hints=[
        "A collective waits until every process of the group calls it. Which calls of "
        "the net are made by process 0 alone?",
        "In eval mode the layer sends nothing. Was `net.eval()` called?",
    ],
    why="The net is still in training mode, so each of its SyncBatchNorms asks process "
    "1 for its share, and that has left. `net.eval()` before line 12 mends it, and is "
    "needed anyway: the test batch would move the running statistics that line 13 "
    "saves.",
)
