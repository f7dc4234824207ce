"""Figures of the course, by matplotlib: a figure function draws and returns its Axes.

They take data and `ax=None`, never show, and leave matplotlib's settings alone. A
figure's label is its alt text, and Jupyter stores it beside the image.
"""

from normlab.diagrams.alt import register
from normlab.diagrams.sets import draw_sets

__all__ = ["draw_sets"]

register()
