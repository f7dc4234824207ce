"""Wrong norms, written as a student would write them: one mistake in each.

They share nothing with the diagnosis, which has its own idea of every mistake.
"""

from mutants import (
    batch_norm,
    batch_norm_class,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from mutants.registry import MUTANTS

__all__ = [
    "MUTANTS",
    "batch_norm",
    "batch_norm_class",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "rms_norm",
]
