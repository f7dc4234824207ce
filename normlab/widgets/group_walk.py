"""GroupWalk: from one group of all channels to one group for each channel."""

import numpy as np
import torch
from traitlets import TraitError, Tuple, observe, validate

from normlab import axes, functional
from normlab.widgets.base import Float, Int
from normlab.widgets.explorer import Explorer, check_shape, standard_normal
from normlab.widgets.still import still

_EPS = 1e-5
_PATTERN = "N (G [C/G]) [H W]"
_OFFSETS = 2**20  # where in the stream the channels' own means and scales begin


class GroupWalk(Explorer):
    """Walk G through the divisors of C; see the sets, and how far the output moves.

    Every trait can be set, observed and linked, from Python or on the page:

    - `groups`: G, a divisor of C; G = 1 averages what LayerNorm averages, G = C what
      InstanceNorm does;
    - `shape`: (N, C, H, W); `seed`;
    - `spread`: how much the channels differ in mean and scale, 0 for not at all;
    - `sample`: the one whose channels are shown.

    What follows from them can be read: `sets`, `set_ids`, `values`, `output(groups)`,
    `profile(groups)`, `distances`. Anything that does not fit raises
    `traitlets.TraitError`.

    >>> walk = GroupWalk(groups=4)
    >>> walk.sets.num_sets, walk.sets.values_per_set
    (8, 32)
    >>> list(walk.distances), walk.distances[1][0], walk.distances[8][1]
    ([1, 2, 4, 8], 0.0, 0.0)
    """

    stem = "group_walk"
    question = "What does each step from LayerNorm to InstanceNorm take away?"
    start = {"shape": (2, 8, 4, 4), "groups": 1, "spread": 1.0, "sample": 0, "seed": 0}
    limits = {"spread": (0, 10), "seed": (0, 2**32 - 1)}
    constants = {
        "SIZES": ((1, 8), (1, 64), (1, 8), (1, 8)),
        "PATTERN": _PATTERN,
        "OFFSETS": _OFFSETS,
        "EPS": _EPS,
    }

    shape = Tuple().tag(sync=True)
    groups = Int().tag(sync=True)
    spread = Float().tag(sync=True)
    sample = Int().tag(sync=True)
    seed = Int().tag(sync=True)

    # ------------------------------------------------------------- what can be read

    @property
    def sets(self):
        """The pattern applied to the shape: a `normlab.axes.Sets`."""
        return axes.parse(_PATTERN).on(self.shape, G=self.groups)

    @property
    def set_ids(self):
        """The number of every cell's set: an integer array of the tensor's shape."""
        return self.sets.set_ids

    @property
    def values(self):
        """Drawn numbers, each channel with a mean and a scale of its own."""
        channels = self.shape[1]
        own = standard_normal(self.seed, 2 * channels, _OFFSETS)
        mean = 2 * self.spread * own[:channels, None, None]
        scale = 1 + self.spread * np.abs(own[channels:, None, None]) / 2
        drawn = standard_normal(self.seed, int(np.prod(self.shape)))
        return mean + scale * drawn.reshape(self.shape)

    def output(self, groups):
        """What GroupNorm makes of `values` with so many groups."""
        x = torch.from_numpy(self.values)
        return functional.group_norm(x, groups, eps=_EPS).numpy()

    def profile(self, groups):
        """Mean and deviation of each channel of `sample`, after GroupNorm."""
        output = self.output(groups)[self.sample]
        return output.mean((1, 2)), output.std((1, 2))

    @property
    def distances(self):
        """For each divisor G: the output's distance to G = 1, and to G = C.

        The root mean square of the difference, over all values.
        """
        channels = self.shape[1]
        ends = self.output(1), self.output(channels)
        return {
            groups: tuple(
                float(np.sqrt(np.square(self.output(groups) - end).mean()))
                for end in ends
            )
            for groups in range(1, channels + 1)
            if channels % groups == 0
        }

    def sentence(self):
        """What the explorer shows now, in words."""
        first, last = self.distances[self.groups]
        spread = [self.profile(groups)[0].std() for groups in (1, self.groups)]
        return (
            f"GroupNorm({self.groups}, {self.shape[1]}) on {self.shape}. "
            f"{self.sets.describe()} The output is {first:.2f} away from one group "
            f"of all channels and {last:.2f} from one group for each channel. The "
            f"means of the channels still spread by {spread[1]:.2f}, of "
            f"{spread[0]:.2f} at G = 1."
        )

    def picture(self):
        """The tensor's cells, each in the colour of its set."""
        return still(self.sets, self.sentence())

    # --------------------------------------------------------------- what is allowed

    @validate("spread", "seed")
    def _check(self, proposal):
        return self.check_limit(proposal)

    @validate("shape")
    def _check_shape(self, proposal):
        shape = check_shape(proposal.value, "N C H W", self.constants["SIZES"])
        if shape[2] * shape[3] == 1:
            raise TraitError(
                "shape: H and W may not both be 1, because one group for each channel "
                "would then hold one value."
            )
        return shape

    @validate("groups")
    def _check_groups(self, proposal):
        groups, channels = proposal.value, self.shape[1]
        if groups < 1 or channels % groups:
            fitting = [str(g) for g in range(1, channels + 1) if channels % g == 0]
            raise TraitError(
                f"groups: {groups} groups do not divide {channels} channels; these "
                f"would: {', '.join(fitting)}."
            )
        return groups

    @validate("sample")
    def _check_sample(self, proposal):
        if not 0 <= proposal.value < self.shape[0]:
            raise TraitError(
                f"sample: the samples are numbered 0 to {self.shape[0] - 1}, without "
                f"{proposal.value}."
            )
        return proposal.value

    @observe("shape")
    def _fit_the_rest(self, change):
        """Give a fitting value to each trait that no longer fits."""
        samples, channels = self.shape[:2]
        with self.hold_trait_notifications():
            if channels % self.groups:
                self.groups = max(g for g in range(1, self.groups) if channels % g == 0)
            self.sample = min(self.sample, samples - 1)
