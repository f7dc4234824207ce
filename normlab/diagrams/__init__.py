"""Figures of the course, by matplotlib: a figure function draws and returns its Axes.

They take data and `ax=None`, never show, and leave matplotlib's settings alone. A
figure's label is its alt text, and Jupyter stores it beside the image.
"""

from normlab.diagrams.alt import register
from normlab.diagrams.charts import draw_images, draw_lines
from normlab.diagrams.comparison import draw_comparison
from normlab.diagrams.flow import draw_flow
from normlab.diagrams.sets import draw_sets
from normlab.diagrams.values import draw_values

__all__ = [
    "draw_comparison",
    "draw_flow",
    "draw_images",
    "draw_lines",
    "draw_sets",
    "draw_values",
]

register()
