"""The notation of the course: which elements of a tensor share statistics.

A pattern names every axis of a tensor. Brackets mark the axes that are reduced; each
position of the others, the kept axes, has statistics of its own. Parentheses split one
axis in groups, and ``...`` stands for any number of axes.

>>> sets = parse("N (G [C/G]) [H W]").on((4, 8, 5, 5), G=4)
>>> sets.sentence
'50 values share each mean: 2 channels x 5 x 5 positions; 16 means in all.'
>>> sets.statistics_shape
(4, 4, 1, 1, 1)
>>> sets.torch_line()
'torch.nn.GroupNorm(4, 8)'

Needs NumPy alone. Diagrams, widgets, tables and tests all read their facts from here.
"""

from normlab.axes.layers import LAYERS, Layer
from normlab.axes.notation import Pattern, PatternError, ShapeError, parse
from normlab.axes.sets import Sets

__all__ = ["LAYERS", "Layer", "Pattern", "PatternError", "Sets", "ShapeError", "parse"]
