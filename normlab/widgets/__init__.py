"""Explorers: small widgets in which a reader changes a norm and sees what happens.

One widget is three files of the same stem: ``axis_picker.py``, ``.js`` and ``.css``.
The front end runs with a kernel (JupyterLab, Notebook, VS Code, Colab) and, the same
file, on a plain HTML page. To add one, say ``group_walk``:

1. ``group_walk.py``: a subclass of `Widget` (see `normlab.widgets.base`) with

   - typed traits, tagged ``sync=True``, each a JSON value, for what the reader changes;
   - ``state``: the names of the traits that a page, a link and the text form carry;
   - validators that raise `traitlets.TraitError` with the reason, as a sentence;
   - ``sentence()`` and ``picture()``: what stands where no script runs.

2. ``group_walk.js``: has ``export default { render({ model, el }) {...} }``, which
   starts with ``const view = openView({ model, el, name: "GroupWalk" })`` and returns
   ``view.close``. It uses what ``base.js`` (elements, theme, traffic with the model),
   ``notation.js`` (`normlab.axes` in the browser) and ``cells.js`` (the picture of a
   tensor) define: they are joined to one module, with the files named in the class's
   ``parts``, so there are no imports. Of the model it uses only ``get``, ``set``,
   ``save_changes``, ``on`` and ``off``. It computes its numbers in functions without
   DOM, which it exports so that a test can compare them with Python's.

3. ``group_walk.css``: rules that begin with ``.normlab.GroupWalk``; the colours are the
   variables of ``base.css``, which carry both themes; those of sets come from
   `normlab.diagrams.style`.

4. Import it below, and in `normlab` name it among the names that load on first use.

A widget that asks one question and answers it with sliders and charts begins with
`Explorer` (`normlab.widgets.explorer`) and ``openExplorer`` (``explorer.js``): rules
for the state that both sides read, Reset, links, the answer in words.

User text goes into the page as text alone: `element(tag, properties, ...children)` of
``base.js`` never reads HTML.
"""

from normlab.widgets.axis_picker import AxisPicker
from normlab.widgets.base import Widget, bundle, static_page
from normlab.widgets.batch_mates import BatchMates
from normlab.widgets.group_walk import GroupWalk
from normlab.widgets.quiz import Quiz
from normlab.widgets.running_stats import RunningStats

__all__ = [
    "AxisPicker",
    "BatchMates",
    "GroupWalk",
    "Quiz",
    "RunningStats",
    "Widget",
    "bundle",
    "static_page",
]
