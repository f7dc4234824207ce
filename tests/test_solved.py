"""The solved version of each notebook: every exercise's own solution in its cell."""

import ast

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import solved
from normlab.exercises import chapters
from notebook_checks import FOLDER, bound_names, parsed

PATHS = sorted(FOLDER.glob("*.ipynb"))
IMPORT = "from normlab.exercises import chapter00 as exercises"
CHECK = "exercises.shape_of_the_mean.check(shape)"


def notebook(*sources):
    return new_notebook(cells=[new_code_cell(text) for text in (IMPORT, *sources)])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_exercise_is_solved_under_the_name_that_the_notebook_gives_it(path):
    nb = nbformat.read(path, as_version=4)
    stubs = solved.stubs(nb)
    exercises = chapters().get(int(path.name[:2]), {})
    assert [stub.name for stub in stubs] == [*exercises]
    for stub in stubs:
        assert stub.bound in dict(bound_names(parsed(new_code_cell(stub.solved))))
        assert stub.solved.endswith(f"\n{stub.check}")
        assert stub.solved != nb.cells[stub.index].source
        assert "..." in nb.cells[stub.index].source


def test_what_the_solution_binds_is_renamed_and_nothing_else():
    code = 'answer = answers["answer"]  # the answer\nanswer += 1; print(answer)\n'
    assert solved.renamed(code, "answer", "mean_answer") == (
        'mean_answer = answers["answer"]  # the answer\n'
        "mean_answer += 1; print(mean_answer)\n"
    )


def test_a_stub_becomes_its_solution():
    nb = notebook("x = 1", f"shape = ...  # yours\n{CHECK}", CHECK, "y = 2")
    (stub,) = solved.stubs(nb)
    assert (stub.index, stub.name, stub.bound) == (2, "shape_of_the_mean", "shape")
    names = {}
    exec(stub.solution, names)
    assert stub.exercise.check(names["shape"]).correct
    assert stub.solved == f"{stub.solution}\n\n\n{CHECK}"
    assert ast.parse(stub.solved)
    assert nb.cells[2].source == f"shape = ...  # yours\n{CHECK}"


@pytest.mark.parametrize("count", [0, 2])
def test_an_exercise_without_a_cell_of_its_own_is_an_error(count):
    nb = notebook(*[f"shape = ...\n{CHECK}"] * count)
    with pytest.raises(ValueError, match=rf"0\.1 \(shape_of_the_mean\) has {count} c"):
        solved.stubs(nb)


def test_a_notebook_without_exercises_has_no_stubs():
    nb = new_notebook(cells=[new_code_cell("x = 1")])
    assert solved.stubs(nb) == []
