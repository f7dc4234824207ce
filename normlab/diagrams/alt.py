"""Alt text: what a picture shows, for readers who do not see it.

A figure's label is its alt text. Jupyter stores a text/plain next to every image, by
default ``<Figure size 640x480 with 1 Axes>``; here it becomes the label, for every
figure that has one.
"""

import sys


def describe(ax, alt):
    """Make `alt` the alt text of these Axes, and part of their figure's."""
    ax.set_label(alt)
    figure = ax.get_figure(root=True)
    labels = [str(each.get_label()) for each in figure.axes]
    spoken = [label for label in labels if label and not label.startswith(("_", "<"))]
    figure.set_label(" ".join(dict.fromkeys(spoken)))


def register(shell=None):
    """Make IPython show a figure's label as its text; without IPython do nothing."""
    if shell is None and "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
    if shell is None:
        return
    plain = shell.display_formatter.formatters["text/plain"]

    def speak():
        plain.for_type_by_name("matplotlib.figure", "Figure", _spoken)

    # The inline backend starts with the first figure, and takes every formatter of
    # Figure away; ours is back before it shows the figure, at the end of the cell.
    shell.events.register("post_execute", speak)
    speak()


def _spoken(figure, printer, cycle):
    printer.text(str(figure.get_label()) or str(figure))
