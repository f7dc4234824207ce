"""BatchMates: move the other samples of a batch, and see whose output follows."""

import numpy as np
import torch
from traitlets import Bool, TraitError, Tuple, Unicode, observe, validate

from normlab import functional
from normlab.widgets.base import Float, Int
from normlab.widgets.explorer import Explorer, check_shape, finite, standard_normal
from normlab.widgets.still_charts import still_bars

NORMS = ("BatchNorm", "LayerNorm", "InstanceNorm", "GroupNorm", "RMSNorm")
_EPS = 1e-5
_MODES = (("train", True), ("eval", False))


class BatchMates(Explorer):
    """Sample 0 stays as it is; its batch mates are moved and scaled. Who notices?

    Every trait can be set, observed and linked, from Python or on the page:

    - `shape`: (N, C, L), samples, channels and positions; `values`: the N*C*L numbers
      of the batch, or ``()`` for numbers drawn from `seed`;
    - `shift`, `scale`: the mates' values become ``scale * value + shift``;
    - `groups`: for GroupNorm; `track_running_stats`: whether BatchNorm keeps running
      statistics, here those of a new layer, mean 0 and variance 1, for eval mode;
    - `alone`: compare with sample 0 alone in the batch, not with the mates unmoved;
    - `norm`, `training`, `element`: the output of sample 0 whose gradient is shown.

    What follows from them can be read: `inputs`, `changes`, `output(...)`, `gradient`.
    Anything that does not fit raises `traitlets.TraitError`.

    >>> mates = BatchMates(shape=(3, 1, 1), values=(0, 1, 5))
    >>> mates.gradient.round(3).ravel().tolist()
    [0.176, -0.22, 0.044]
    >>> BatchMates(shift=3.0).changes["LayerNorm"]
    (0.0, 0.0)
    """

    stem = "batch_mates"
    question = "Does a sample\u2019s output change when only the other samples change?"
    start = {
        "shape": (4, 4, 3),
        "values": (),
        "seed": 0,
        "shift": 0.0,
        "scale": 1.0,
        "groups": 2,
        "track_running_stats": True,
        "alone": False,
        "norm": "BatchNorm",
        "training": True,
        "element": 0,
    }
    limits = {
        "seed": (0, 2**32 - 1),
        "shift": (-1000, 1000),
        "scale": (0, 1000),
        "norm": NORMS,
    }
    floats = ("values",)
    constants = {"SIZES": ((1, 8), (1, 8), (1, 8)), "EPS": _EPS}

    shape = Tuple().tag(sync=True)
    values = Tuple().tag(sync=True)
    seed = Int().tag(sync=True)
    shift = Float().tag(sync=True)
    scale = Float().tag(sync=True)
    groups = Int().tag(sync=True)
    track_running_stats = Bool().tag(sync=True)
    alone = Bool().tag(sync=True)
    norm = Unicode().tag(sync=True)
    training = Bool().tag(sync=True)
    element = Int().tag(sync=True)

    # ------------------------------------------------------------- what can be read

    @property
    def inputs(self):
        """The batch, its mates moved: a float64 array of the shape (N, C, L)."""
        return self._batch(moved=True)

    @property
    def changes(self):
        """For each norm, how far its output for sample 0 moved, in train and in eval.

        The largest absolute difference; None where the layer refuses such a batch.
        """
        return {
            norm: tuple(self._change(norm, training) for _, training in _MODES)
            for norm in NORMS
        }

    @property
    def gradient(self):
        """How the output `element` of sample 0 reacts to each input, for `norm`.

        None where the layer refuses such a batch.
        """
        x = torch.from_numpy(self.inputs).requires_grad_()
        y = self._apply(x, self.norm, self.training)
        if y is None:
            return None
        (gradient,) = torch.autograd.grad(y[0].flatten()[self.element], x)
        return gradient.numpy()

    def output(self, norm, training):
        """What the norm makes of the whole batch; None where it refuses it."""
        y = self._apply(torch.from_numpy(self.inputs), norm, training)
        return None if y is None else y.numpy()

    def _batch(self, moved):
        size = int(np.prod(self.shape))
        flat = self.values or standard_normal(self.seed, size)
        x = np.array(flat, dtype=np.float64).reshape(self.shape)
        if moved:
            x[1:] = self.scale * x[1:] + self.shift
        return x

    def _change(self, norm, training):
        before = self._batch(moved=False)[: 1 if self.alone else None]
        pair = [
            self._apply(torch.from_numpy(x), norm, training)
            for x in (before, self.inputs)
        ]
        if pair[0] is None or pair[1] is None:
            return None
        return float((pair[1][0] - pair[0][0]).abs().max())

    def _apply(self, x, norm, training):
        channels = x.shape[1]
        try:
            if norm == "BatchNorm":
                mean, var = x.new_zeros(channels), x.new_ones(channels)
                if not self.track_running_stats:
                    mean, var, training = None, None, True
                return functional.batch_norm(x, mean, var, training=training, eps=_EPS)
            if norm == "InstanceNorm":
                return functional.instance_norm(x, eps=_EPS)
            if norm == "GroupNorm":
                return functional.group_norm(x, self.groups, eps=_EPS)
            trailing = list(x.shape[1:])
            if norm == "LayerNorm":
                return functional.layer_norm(x, trailing, eps=_EPS)
            return functional.rms_norm(x, trailing, eps=_EPS)
        except ValueError:  # one value in each set
            return None

    def sentence(self):
        """What the explorer shows now, in words."""
        n, c, length = self.shape
        said = [
            f"{n} samples of {c} channels x {length} positions; the mates of sample 0 "
            f"are scaled by {self.scale:.4g} and shifted by {self.shift:.4g}.",
        ]
        for i, (mode, _) in enumerate(_MODES):
            moved = [
                f"{norm} (by up to {pair[i]:.2f})"
                for norm, pair in self.changes.items()
                if pair[i] is not None and pair[i] > 1e-6
            ]
            names = ", ".join(moved) or "no norm"
            said.append(
                f"In {mode} mode the mates move the output of sample 0 under {names}."
            )
        return " ".join(said)

    def picture(self):
        """A bar for each norm and mode: how far the output of sample 0 moved."""
        rows = [
            (f"{norm}, {mode}", pair[i])
            for norm, pair in self.changes.items()
            for i, (mode, _) in enumerate(_MODES)
        ]
        return still_bars(rows, self.sentence())

    # --------------------------------------------------------------- what is allowed

    @validate("seed", "shift", "scale", "norm")
    def _check(self, proposal):
        return self.check_limit(proposal)

    @validate("shape")
    def _check_shape(self, proposal):
        return check_shape(proposal.value, "N C L", self.constants["SIZES"])

    @validate("values")
    def _check_values(self, proposal):
        values, size = proposal.value, int(np.prod(self.shape))
        if not finite(values) or len(values) not in (0, size):
            raise TraitError(
                f"values: {size} finite numbers are needed for the shape {self.shape}, "
                "or () to draw them."
            )
        return tuple(map(float, values))

    @validate("groups")
    def _check_groups(self, proposal):
        groups, channels = proposal.value, self.shape[1]
        if groups < 1 or channels % groups:
            raise TraitError(
                f"groups: {groups} groups do not divide {channels} channels."
            )
        return groups

    @validate("element")
    def _check_element(self, proposal):
        most = self.shape[1] * self.shape[2] - 1
        if not 0 <= proposal.value <= most:
            raise TraitError(
                f"element: a sample's outputs are numbered 0 to {most}, without "
                f"{proposal.value}."
            )
        return proposal.value

    @observe("shape")
    def _fit_the_rest(self, change):
        """Give a fitting value to each trait that no longer fits."""
        _, channels, length = self.shape
        with self.hold_trait_notifications():
            if len(self.values) not in (0, int(np.prod(self.shape))):
                self.values = ()
            if channels % self.groups:
                self.groups = max(g for g in range(1, self.groups) if channels % g == 0)
            if self.element >= channels * length:
                self.element = 0
