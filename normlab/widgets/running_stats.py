"""RunningStats: feed batches to BatchNorm, and see its buffers follow the data."""

from dataclasses import dataclass

import numpy as np
import torch
from traitlets import Bool, TraitError, Tuple, validate

from normlab import functional
from normlab.widgets.base import Float, Int
from normlab.widgets.explorer import Explorer, finite, standard_normal
from normlab.widgets.still_charts import still_lines

_EPS = 1e-5
_MOST = 500  # batches; more could not be told apart on the page


@dataclass(frozen=True)
class Batch:
    """One batch that went through: its values, the truth behind them, and the mode."""

    values: tuple
    mean: float
    var: float
    training: bool


class RunningStats(Explorer):
    """One channel of BatchNorm: batches pass, its running statistics chase the truth.

    Every trait can be set, observed and linked, from Python or on the page:

    - `mean`, `std`: the truth that the next batches are drawn from; `batch_size`;
      `seed`;
    - `momentum`: the weight of each new batch, or None for the plain average of all;
    - `unbiased`: store the variance with 1/(n-1), as PyTorch does, or with 1/n;
    - `training`: whether the next batches pass in train mode, which moves the buffers;
    - `given`: batches of your own, each a tuple of numbers, that pass first;
    - `fed`: what passed after them, ``(how many, mean, std, training)`` again and again
      (or call `feed`);
    - `fresh`: whether train and eval are compared on the next batch or on the last one.

    A change of `momentum`, `unbiased` or `batch_size` holds for all batches, as if it
    had been so from the start. What follows can be read: `batches`, `history` (the
    buffers before, and after each batch), `outputs`.

    >>> stats = RunningStats(given=((9, 11), (19, 21), (59, 61)), fresh=False)
    >>> round(stats.running_mean, 2)
    8.61
    >>> stats.momentum = None
    >>> round(stats.running_mean, 2), round(stats.running_var, 2)
    (30.0, 2.0)
    """

    stem = "running_stats"
    question = "How many batches until eval mode knows the data as train mode does?"
    start = {
        "mean": 4.0,
        "std": 2.0,
        "momentum": 0.1,
        "batch_size": 8,
        "unbiased": True,
        "training": True,
        "fresh": True,
        "given": (),
        "fed": (),
        "seed": 0,
    }
    limits = {
        "mean": (-1000, 1000),
        "std": (0, 1000),
        "momentum": (0, 1),
        "batch_size": (2, 256),
        "seed": (0, 2**32 - 1),
    }
    floats = ("given", "fed")
    constants = {"MOST": _MOST, "EPS": _EPS}

    mean = Float().tag(sync=True)
    std = Float().tag(sync=True)
    momentum = Float(allow_none=True).tag(sync=True)
    batch_size = Int().tag(sync=True)
    unbiased = Bool().tag(sync=True)
    training = Bool().tag(sync=True)
    fresh = Bool().tag(sync=True)
    given = Tuple().tag(sync=True)
    fed = Tuple().tag(sync=True)
    seed = Int().tag(sync=True)

    def feed(self, count=1):
        """Let `count` batches pass, drawn around `mean` with `std`, in this mode."""
        now = (self.mean, self.std, self.training)
        *before, last = self.fed or [(0, *now)]
        if tuple(last[1:]) != now:
            before, last = self.fed, (0, *now)
        self.fed = (*before, (last[0] + count, *now))

    # ------------------------------------------------------------- what can be read

    @property
    def batches(self):
        """Every `Batch` that has passed, the given ones first."""
        passed = [
            Batch(tuple(batch), float(np.mean(batch)), float(np.var(batch)), True)
            for batch in self.given
        ]
        drawn = 0
        for count, mean, std, training in self.fed:
            for _ in range(count):
                values = self._draw(drawn, mean, std)
                passed.append(Batch(values, mean, std**2, training))
                drawn += 1
        return passed

    @property
    def history(self):
        """(running mean, running variance) at the start and after each batch."""
        running = (
            torch.zeros(1, dtype=torch.float64),
            torch.ones(1, dtype=torch.float64),
        )
        tracked, seen = 0, [(0.0, 1.0)]
        for batch in self.batches:
            tracked += batch.training
            # None: each of k batches weighs 1/k
            momentum = 1 / max(tracked, 1) if self.momentum is None else self.momentum
            x = torch.tensor(batch.values, dtype=torch.float64)[:, None]
            var_before = running[1].clone()
            functional.batch_norm(
                x, *running, training=batch.training, momentum=momentum, eps=_EPS
            )
            if batch.training and not self.unbiased:
                new = x.var(correction=0)
                running[1].copy_((1 - momentum) * var_before + momentum * new)
            seen.append(tuple(float(buffer) for buffer in running))
        return seen

    @property
    def running_mean(self):
        """The buffer after the last batch."""
        return self.history[-1][0]

    @property
    def running_var(self):
        """The buffer after the last batch."""
        return self.history[-1][1]

    @property
    def probe(self):
        """The batch on which train and eval are compared."""
        if not self.fresh and self.batches:
            return self.batches[-1].values
        return self._draw(sum(count for count, *_ in self.fed), self.mean, self.std)

    @property
    def outputs(self):
        """What BatchNorm makes of the probe, in train and in eval: two arrays."""
        x = torch.tensor(self.probe, dtype=torch.float64)[:, None]
        running = torch.tensor(self.history[-1], dtype=torch.float64)
        return tuple(
            functional.batch_norm(
                x, *(buffers.reshape(2, 1)), training=training, momentum=0, eps=_EPS
            )
            .flatten()
            .numpy()
            for training, buffers in ((True, running.clone()), (False, running))
        )

    def _draw(self, place, mean, std):
        size = self.batch_size
        drawn = standard_normal(self.seed, size, place * size)
        return tuple((mean + std * drawn).tolist())

    def sentence(self):
        """What the explorer shows now, in words."""
        passed = len(self.batches)
        train, evaluated = self.outputs
        momentum = "None" if self.momentum is None else f"{self.momentum:.4g}"
        which = "The next batch" if self.fresh else "The last batch"
        return (
            f"After {passed} batch{'' if passed == 1 else 'es'} with momentum "
            f"{momentum}, the running mean is {self.running_mean:.2f} (true mean "
            f"{self.mean:.2f}) and the running variance {self.running_var:.2f} (true "
            f"variance {self.std**2:.2f}). {which} leaves train and eval up to "
            f"{np.abs(train - evaluated).max():.2f} apart."
        )

    def picture(self):
        """Both buffers as lines, from batch to batch, and the truth behind them."""
        history = self.history
        truth = [(batch.mean, batch.var) for batch in self.batches]
        if not truth:  # nothing has passed: the start, and what it has before it
            history, truth = 2 * history, [(self.mean, self.std**2)]
        panels = [
            (
                name,
                *([pair[i] for pair in line] for line in (history, truth[:1] + truth)),
            )
            for i, name in enumerate(("running mean", "running variance"))
        ]
        return still_lines(panels, self.sentence())

    # --------------------------------------------------------------- what is allowed

    @validate("mean", "std", "momentum", "batch_size", "seed")
    def _check(self, proposal):
        return self.check_limit(proposal)

    @validate("given")
    def _check_given(self, proposal):
        for i, batch in enumerate(proposal.value):
            if not isinstance(batch, (tuple, list)) or not finite(batch):
                raise TraitError(f"given: batch {i} is not a tuple of finite numbers.")
            if len(batch) < 2:
                raise TraitError(
                    f"given: batch {i} needs 2 values or more, because BatchNorm in "
                    "train mode refuses a single one."
                )
        return tuple(tuple(map(float, batch)) for batch in proposal.value)

    @validate("fed")
    def _check_fed(self, proposal):
        fed = proposal.value
        for i, part in enumerate(fed):
            if not _is_part(part, self.limits):
                raise TraitError(
                    f"fed: part {i} is not (how many, mean, std, training) with "
                    "numbers in their limits."
                )
        total = len(self.given) + sum(part[0] for part in fed)
        if total > _MOST:
            raise TraitError(
                f"fed: at most {_MOST} batches fit on the page, not {total}; reset, or "
                "feed fewer."
            )
        return tuple((part[0], float(part[1]), float(part[2]), part[3]) for part in fed)


def _is_part(part, limits):
    if not isinstance(part, (tuple, list)) or len(part) != 4:
        return False
    count, mean, std, training = part
    numbers = type(count) is int and count >= 1 and finite((mean, std))
    within = numbers and all(
        limits[name][0] <= value <= limits[name][1]
        for name, value in (("mean", mean), ("std", std))
    )
    return within and isinstance(training, bool)
