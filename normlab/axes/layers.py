"""The built-in layers, as one table of data, and the search in it."""

import re
from dataclasses import dataclass

from normlab.axes.notation import parse


@dataclass(frozen=True)
class Layer:
    """One built-in layer, on one layout of its input.

    `running` tells whether it keeps running statistics, to use in eval: ``"default"``,
    ``"optional"`` (off unless asked for) or ``"never"``. `affine` tells whether it has
    parameters unless told otherwise, and `bias` whether a bias is one of them.
    """

    name: str
    statistics: str
    parameters: str
    center: bool = True
    running: str = "never"
    affine: bool = True
    bias: bool = True

    @property
    def pattern(self):
        """The statistics, parsed."""
        return parse(self.statistics)

    @property
    def norm(self):
        """The name of the norm without its rank: BatchNorm for BatchNorm2d."""
        return re.sub(r"\dd$", "", self.name)

    def fits(self, pattern):
        """Whether the layer reduces what the pattern reduces, whatever the names."""
        # BatchNorm and InstanceNorm come in one class for each number of axes; the
        # others take any number.
        any_rank = {"LayerNorm": "k*r+", "RMSNorm": "k*r+", "GroupNorm": "kgr*"}
        if "..." in pattern.axes and self.norm not in any_rank:
            return False
        form = any_rank.get(self.norm, _form(self.pattern))
        return re.fullmatch(form, _form(pattern)) is not None

    def parameters_in(self, pattern):
        """The axes of `pattern` along which this layer's parameters differ."""
        if self.norm in ("LayerNorm", "RMSNorm"):
            return tuple(dim.axis for dim in pattern.dims if dim.reduced)
        return pattern.axes[1:2]

    def names_shared(self, pattern):
        """How many dimensions both write alike: the same name, kept or reduced."""
        return len(set(self.pattern.dims) & set(pattern.dims))

    def call(self, sets, parameters=None):
        """The call that makes the layer for these sets: ``GroupNorm(4, 8)``."""
        if self.norm in ("LayerNorm", "RMSNorm"):
            sizes = [sets.split_shape[i] for i in sets.reduced_dims]
            arguments = [str(tuple(sizes)) if len(sizes) > 1 else str(sizes[0])]
            switch = "elementwise_affine"
        else:
            groups = sets.pattern.groups
            arguments = [str(sets.sizes[groups])] if groups else []
            arguments.append(str(sets.shape[1]))
            switch = "affine"
        if parameters is not None and bool(parameters) != self.affine:
            arguments.append(f"{switch}={bool(parameters)}")
        return f"{self.name}({', '.join(arguments)})"


def _form(pattern):
    """One letter an axis: k kept, r reduced, g groups of neighbours, x other splits."""
    form = ""
    for axis in pattern.axes:
        parts = [(d.label, d.reduced) for d in pattern.dims if d.axis == axis]
        if len(parts) == 1:
            form += "r" if parts[0][1] else "k"
        else:
            groups = (pattern.groups, False), (f"{axis}/{pattern.groups}", True)
            form += "g" if tuple(parts) == groups else "x"
    return form


LAYERS = (
    Layer("BatchNorm1d", "[N] C", "C", running="default"),
    Layer("BatchNorm1d", "[N] C [L]", "C", running="default"),
    Layer("BatchNorm2d", "[N] C [H W]", "C", running="default"),
    Layer("BatchNorm3d", "[N] C [D H W]", "C", running="default"),
    Layer("LayerNorm", "N [D]", "D"),
    Layer("LayerNorm", "N L [D]", "D"),
    Layer("LayerNorm", "N [C H W]", "C H W"),
    Layer("InstanceNorm1d", "N C [L]", "C", running="optional", affine=False),
    Layer("InstanceNorm2d", "N C [H W]", "C", running="optional", affine=False),
    Layer("InstanceNorm3d", "N C [D H W]", "C", running="optional", affine=False),
    Layer("GroupNorm", "N (G [C/G])", "C"),
    Layer("GroupNorm", "N (G [C/G]) [L]", "C"),
    Layer("GroupNorm", "N (G [C/G]) [H W]", "C"),
    Layer("GroupNorm", "N (G [C/G]) [D H W]", "C"),
    Layer("RMSNorm", "N [D]", "D", center=False, bias=False),
    Layer("RMSNorm", "N L [D]", "D", center=False, bias=False),
)


def find(pattern, center=True, parameters=None):
    """The row of `LAYERS` that a pattern is, or None; see `Pattern.layer`."""
    wanted = pattern.parameter_axes(parameters or "")
    fitting = [
        row
        for row in LAYERS
        if row.center == center
        and row.fits(pattern)
        and (not wanted or wanted == row.parameters_in(pattern))
    ]
    # A row that names the axes as the pattern does is what its author meant.
    return max(fitting, key=lambda row: row.names_shared(pattern), default=None)
