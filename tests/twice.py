"""What nbval does with a cell, done once more, and each solution in its stub's place.

nbval runs every cell of a notebook once and compares what it shows with what is stored.
With this plugin a cell then runs again, in the same kernel, and must show the same. An
exercise's stub is followed by its solution, twice as well, which must be found correct;
so the rest of the notebook is that of a student who solved all.
"""

import copy
import os

import nbformat
import pytest
from nbval.plugin import IPyNbCell, NbCellError

import solved


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Start a kernel so that it keeps no progress: no reader solves anything here."""
    if not isinstance(item, IPyNbCell):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NORMLAB_PROGRESS", os.devnull)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    result = yield
    if isinstance(item, IPyNbCell):
        run(item, "run a second time")
        stub = stub_of(item)
        if stub:
            solve(item, stub)
    return result


def run(item, how):
    """Run a cell as nbval does; what it finds is said to be found in this run."""
    try:
        item.runtest()
    except NbCellError as error:
        error.args = (f"{error} ({how})",)
        raise


def solve(item, stub):
    """Run a stub's solution twice: it must be found correct both times."""
    stored, checked = item.cell, item.options["check"]
    item.cell = copy.deepcopy(stored)
    item.cell.source = stub.solved
    item.options["check"] = False  # the stub's output is what is stored
    try:
        for how in ("its solution", "its solution, run a second time"):
            run(item, how)
            shown = [out.get("data", {}).get("text/plain") for out in item.test_outputs]
            correct = f"✓ Correct (exercise {stub.exercise.number})"
            if not any(correct in (text or "") for text in shown):
                item.raise_cell_error(f"Not found correct: {shown} ({how})")
    finally:
        item.cell, item.options["check"] = stored, checked


def stub_of(item):
    """The exercise that the cell asks for, or None."""
    notebook = item.parent
    if not hasattr(notebook, "stubs"):
        nb = nbformat.read(notebook.path, as_version=4)
        notebook.stubs = {nb.cells[s.index].source: s for s in solved.stubs(nb)}
    return notebook.stubs.get(item.cell.source)
