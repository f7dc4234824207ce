"""Every chapter satisfies every check, and every check rejects a broken chapter."""

import ast
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import notebooks
import solved
from normlab import exercises
from notebook_checks import CHECKS, FOLDER, INSTALL, Chapter, bound_names, parsed

PATHS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_chapter(check, path):
    found = list(check(Chapter.read(path)))
    assert not found, "\n".join(found)


# -- run twice ------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_a_student_answers_changes_no_other_cell(path):
    # So the two versions may share a run: without answers no cell can fail that runs
    # with them. (That the stubs alone run top to bottom, nbval shows.)
    nb = nbformat.read(path, as_version=4)
    bound = {stub.bound: stub.index for stub in solved.stubs(nb)}
    for index, cell in enumerate(nb.cells):
        if cell.cell_type == "code":
            read = {
                node.id
                for statement in parsed(cell)
                for node in ast.walk(statement)
                if isinstance(node, ast.Name)
            }
            assert {bound[name] for name in read & bound.keys()} <= {index}


@pytest.mark.slow
def test_what_may_not_run_twice_and_a_solution_that_is_wrong_are_found(tmp_path):
    exercise = exercises.chapters()[0]["shape_of_the_mean"]
    stub = "shape = ...\nexercises.shape_of_the_mean.check(shape)"
    begun = exercise.check(...)
    shown = {"text/plain": repr(begun), "text/html": begun._repr_html_()}
    cells = [
        ("from normlab.exercises import chapter00 as exercises", []),
        (stub, [new_output("execute_result", shown, execution_count=2)]),
        ("x = 0", []),
        ("x += 1; print(x)", [new_output("stream", name="stdout", text="1\n")]),
    ]
    nb = new_notebook(
        cells=[
            new_code_cell(source, outputs=outputs, execution_count=count)
            for count, (source, outputs) in enumerate(cells, 1)
        ]
    )
    for name in ("right", "wrong"):
        nbformat.write(nb, tmp_path / f"{name}.ipynb")
    (tmp_path / "spoiler.py").write_text(
        "from normlab.exercises import chapter00\n\n"
        "def pytest_runtest_setup(item):\n"
        "    if item.path.stem == 'wrong':\n"
        "        chapter00.shape_of_the_mean.code = 'answer = (4,)'\n"
    )
    here = Path(__file__).parent
    folders = here, here.parent / "tools", tmp_path
    plugins = ["-p", "twice", "-p", "spoiler", "-p", "no:cacheprovider"]
    # -rN: no summary, which says each failure again, cut short or not as CI is set.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", *plugins,
         "--color=no", "-rN", f"--rootdir={tmp_path}", "-c", os.devnull, tmp_path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders)),
                          "PYTEST_ADDOPTS": ""},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "3 failed, 5 passed" in done.stdout
    assert done.stdout.count("Cell 3: Cell outputs differ (run a second time)") == 2
    wrong = "Cell 1: Not found correct: ['✗ Not yet (exercise 0.1)"
    assert done.stdout.count(wrong) == 1
    assert "shape = (4,)" in done.stdout


# -- the checks themselves ------------------------------------------------------------


def good_cells():
    """A small chapter 3 with which every check is content."""
    words = "The mean is taken over the batch and the positions of one channel. " * 8
    bullets = "\n- find the mean\n- find the variance\n- find the error\n"
    tasks = "".join(f"### Exercise 3.{k}\n\nDo it.\n\n" for k in range(1, 6))
    cells = [
        new_markdown_cell(f"# 3. BatchNorm\n\n**In this chapter**\n{bullets}"),
        new_code_cell(INSTALL),
    ]
    for k in range(1, 14):
        guess = "**Predict.** What will it show?" if k < 5 else "See [3.1](#3.1-Mean)."
        cells += [
            new_markdown_cell(f"## 3.{k} Mean\n\n{words}\n\n{guess}"),
            new_code_cell(f"mean_{k} = {k}\nprint(mean_{k})"),
        ]
        cells[-1].outputs = [new_output("stream", name="stdout", text=f"{k}\n")]
    figure = {"image/png": "iVBORw0KGgo=", "text/plain": "A line that rises."}
    cells[-1].outputs = [new_output("display_data", figure)]
    cells += [
        new_markdown_cell(f"## In this chapter we saw\n{bullets}"),
        new_markdown_cell(f"## Exercises\n\n{tasks}## Quiz\n\nSix questions."),
        new_markdown_cell("## What comes next\n\n[This](03_norm.ipynb#31-mean) again."),
    ]
    codes = [cell for cell in cells if cell.cell_type == "code"]
    for count, cell in enumerate(codes, start=1):
        cell.execution_count = count
    return cells


def chapter_of(cells, folder, name="03_norm.ipynb"):
    for index, cell in enumerate(cells):
        cell.id = f"cell-{index}"
    path = folder / name
    nb = nbformat.from_dict(new_notebook(cells=cells))
    path.write_text(notebooks.stored(nb), encoding="utf-8", newline="\n")
    return Chapter.read(path)


def source(index, text):
    """A change to a chapter: cell ``index`` reads ``text``."""
    return lambda cells: cells[index].update(source=text)


def replaced(index, old, new):
    """A change to a chapter: ``new`` for ``old`` in cell ``index``."""

    def change(cells):
        assert old in cells[index].source
        cells[index].source = cells[index].source.replace(old, new)

    return change


def all_prose(text):
    """A change to a chapter: every Markdown cell reads ``text``."""
    return lambda cells: [
        cell.update(source=text) for cell in cells if cell.cell_type == "markdown"
    ]


def all_code(text):
    """A change to a chapter: every code cell reads ``text``."""
    return lambda cells: [
        cell.update(source=text) for cell in cells if cell.cell_type == "code"
    ]


def shows(text, name="stdout"):
    """A change to a chapter: its second code cell writes ``text``."""
    output = new_output("stream", name=name, text=text)
    return lambda cells: cells[3].update(outputs=[output])


def error(cells):
    cells[3].outputs = [new_output("error", ename="KeyError", evalue="'a'")]


def figure(alt, count=1):
    """A change to a chapter: its second code cell shows a figure described by alt."""
    output = new_output("display_data", {"image/png": "iVBORw0=", "text/plain": alt})
    return lambda cells: cells[3].update(outputs=[output] * count)


LINE = "print(1)\n"
IMPORT = "from normlab.exercises import chapter03 as exercises"
DEFINITION = "def f():\n" + "    print(1)\n" * 25
BROKEN = [
    ("sections", replaced(4, "3.2", "3.3"), "13 of 13 sections; the first wrong one"),
    ("sections", lambda cells: cells.pop(4), "12 of 13 sections"),
    ("frame", replaced(0, "# 3. ", "# "), "the first line is not"),
    ("frame", replaced(4, "##", "#"), "not exactly one title"),
    ("frame", replaced(0, "**In this", "**In that"), "missing or out of order"),
    ("frame", lambda cells: cells.insert(-3, cells.pop()), "missing or out of order"),
    ("frame", lambda cells: cells.append(cells.pop(4)), "the last sections are not"),
    ("frame", replaced(0, "- find the mean\n", ""), "2 goals, not 3 to 5 bullets"),
    ("frame", replaced(-3, "- find the mean\n", ""), "3 goals but 2 bullets"),
    ("frame", replaced(-2, "### Exercise 3.2", "Task 2"), "4 exercises with a check"),
    ("frame", replaced(-2, "## Quiz\n", ""), "missing or out of order"),
    ("frame", replaced(-2, "## Quiz", "## More\n\n## Quiz"), "last sections are not"),
    ("exercises", source(3, IMPORT), "3.1 is not there in its module's words"),
    ("exercises", source(3, IMPORT), "exercise 3.1 has no check"),
    ("install_cell", replaced(1, "--quiet ", ""), "not the install cell"),
    ("cell_length", source(3, LINE * 13), r"cell 4 \(print\(1\)\) has 13 lines"),
    ("cell_length", source(3, DEFINITION), r"cell 4 \(def f\(\):\) has 26 lines"),
    ("cell_length", source(3, " "), r"cell 4 \( \) is empty"),
    ("cell_length", all_code(LINE * 6), "the median code cell has 6"),
    ("prose_per_cell", all_prose("Few words."), "2 words of prose for each code cell"),
    ("prose_per_cell", all_prose("word " * 200), "243 words of prose"),
    ("predictions", replaced(2, "**Predict.**", ""), "3 predictions, not at least 4"),
    ("predictions", replaced(-1, "[This]", "**Predict.** [This]"), "no cell reveals"),
    ("plain_markdown", replaced(2, "The", "<b>The</b>"), "cell 3 .* has raw HTML"),
    ("plain_markdown", replaced(2, "The", "![](https://a.b/c.png)"), "external image"),
    ("shell_scripts", replaced(2, "The", "```sh\n!/bin/sh"), "lost the # of #!"),
    ("links", replaced(-1, "03_norm", "04_norm"), "04_norm.ipynb#31-mean leads nowher"),
    ("links", replaced(-1, "#31-mean", "#32"), "#32 names no heading there"),
    (
        "links",
        replaced(-1, "03_norm.ipynb", "http://a.b"),
        "a.b.* leads nowhere",
    ),
    ("one_meaning", source(5, "mean_1 = 2"), r"mean_1 is bound in the code cells \[2"),
    ("run_in_order", lambda cells: cells[3].update(execution_count=7), "not run from"),
    ("run_in_order", error, "cell 4 .* raised KeyError: 'a'"),
    ("run_in_order", shows("hm", "stderr"), "cell 4 .* wrote to stderr: hm"),
    ("run_in_order", figure("<Figure size 640x480 with 1 Axes>"), "without alt text"),
    ("run_in_order", figure(" "), "without alt text"),
    ("run_in_order", figure("A line.", count=2), "shows more than one figure"),
    ("stable_outputs", shows("UserWarning: no"), "shows a warning: UserWarning"),
    ("stable_outputs", shows("Traceback (most"), "shows a traceback: Traceback"),
    ("stable_outputs", shows("<A at 0x7fb99d>"), "shows a memory address: 0x7fb99d"),
    ("stable_outputs", shows("[1.], device='cuda:0'"), "shows a device"),
    ("stable_outputs", shows("error 3.7e-09"), "shows rounding noise: 3.7e-09"),
    ("stable_outputs", shows("[0.5, -0.000]"), "shows a negative zero: -0.000"),
    ("nothing_private", shows("in /home/me/x.py"), "holds a machine path: /home/"),
    ("nothing_private", source(3, "open('/tmp/x')"), "holds a machine path: /tmp/"),
    ("nothing_private", shows("http://localhost:8888"), "holds a local address: local"),
    ("nothing_private", source(3, "x = 'ghp_" + "a" * 36 + "'"), "holds a secret: ghp"),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_good_chapter_passes(check, tmp_path):
    assert list(check(chapter_of(good_cells(), tmp_path))) == []


@pytest.mark.parametrize(("name", "change", "sentence"), BROKEN)
def test_a_broken_chapter_is_rejected(name, change, sentence, tmp_path):
    (check,) = (check for check in CHECKS if check.__name__ == name)
    cells = good_cells()
    change(cells)
    found = list(check(chapter_of(cells, tmp_path)))
    with pytest.raises(AssertionError, match=sentence):
        assert found == [], found


def test_every_check_has_a_broken_chapter():
    named = {name for name, _, _ in BROKEN} | {"stored_form"}  # tested below
    assert named == {check.__name__ for check in CHECKS}


def test_titles_of_a_mirrored_chapter_are_those_of_its_document(tmp_path):
    (check,) = (check for check in CHECKS if check.__name__ == "sections")
    chapter = chapter_of(good_cells(), tmp_path, "06_norm.ipynb")
    assert list(check(chapter)) == ["13 of 13 sections; the first wrong one: 3.1 Mean"]
    cells = good_cells()
    cells[2].source = "## 3.1 Mean of a batch"
    assert list(check(chapter_of(cells, tmp_path))) == []


def test_a_later_chapter_has_as_many_sections_as_it_needs(tmp_path):
    (check,) = (check for check in CHECKS if check.__name__ == "sections")
    cells = good_cells()
    for cell in cells:
        cell.source = cell.source.replace("## 3.", "## 10.")
    del cells[-5]  # the last section
    assert list(check(chapter_of(cells, tmp_path, "10_norm.ipynb"))) == []
    replaced(4, "10.2", "10.3")(cells)
    found = list(check(chapter_of(cells, tmp_path, "10_norm.ipynb")))
    assert found == ["12 of 12 sections; the first wrong one: 10.3 "]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"nbformat"', '"nbformat" ', "not in the stored form"),
        ('{\n  "kernelspec"', '{"widgets": {},\n  "kernelspec"', "the stored form"),
        ("A line that rises.", "A line that falls.", "not in the stored form"),
        ("iVBORw0KGgo=", "A" * 1_500_000, "1.5 MB, not under 1.5"),
    ],
)
def test_another_form_is_rejected(old, new, sentence, tmp_path):
    (check,) = (check for check in CHECKS if check.__name__ == "stored_form")
    chapter = chapter_of(good_cells(), tmp_path)
    text = chapter.path.read_text(encoding="utf-8")
    assert old in text
    chapter.path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert sentence in "; ".join(check(Chapter.read(chapter.path)))


@pytest.mark.parametrize(
    ("code", "lasting", "loops"),
    [
        ("a = b.c = d[0] = 1", {"a"}, set()),
        ("for i, (j, k) in f(n := 3): m = i", {"m", "n"}, {"i", "j", "k"}),
        ("with open(p) as f: x, *y = f", {"f", "x", "y"}, set()),
        ("def f(a):\n    b = a\nclass C:\n    d = 1", {"f", "C"}, set()),
        ("s = [t for t in u]; v = lambda w: w", {"s", "v"}, set()),
        ("import torch\n%pip list\nx += 1", {"x"}, set()),
    ],
)
def test_bound_names(code, lasting, loops):
    names = list(bound_names(parsed(new_code_cell(code))))
    assert {name for name, loop in names if not loop} == lasting
    assert {name for name, loop in names if loop} == loops


# -- the tool -------------------------------------------------------------------------


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook of these code cells; return its path."""

    def write(*sources):
        path = tmp_path / "a.ipynb"
        nb = new_notebook(cells=[new_code_cell(text) for text in sources])
        nbformat.write(nb, path)
        return path

    return write


@pytest.mark.slow
def test_the_tool_runs_and_stores(notebook, capsys):
    path = notebook(
        "import os\nprint('a', flush=True)\nprint(os.path.basename(os.getcwd()))",
        "from IPython.display import display\n"
        "display({'image/png': 'iVBORw0=', 'text/plain': 'A  small\\nfigure.'},"
        "raw=True)",
        "import ipywidgets\nipywidgets.IntSlider()",
    )
    assert notebooks.main([str(path)]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["notebook", "cells", "code", "seconds", "peak", "MiB"]
    name, cells, code, seconds, peak = row.split()
    assert (name, cells, code) == ("a.ipynb", "3", "3")
    assert 0 < float(seconds) < 60
    assert 30 < float(peak) < 1000
    first = path.read_bytes()
    nb = nbformat.read(path, as_version=4)
    assert nb.cells[0].outputs[0].text == f"a\n{path.parent.name}\n"
    assert nb.cells[1].metadata.mystnb.image.alt == "A small figure."
    model = nb.cells[2].outputs[0].data[notebooks.WIDGET]["model_id"]
    assert model == hashlib.sha256(nb.cells[2].id.encode()).hexdigest()[:32]
    assert nb.metadata == notebooks.METADATA
    assert [cell.execution_count for cell in nb.cells] == [1, 2, 3]
    assert notebooks.main([str(path)]) == 0
    assert path.read_bytes() == first
    assert notebooks.main(["--check", str(path)]) == 0
    path.write_text(path.read_text().replace('"nbformat"', '"nbformat" '))
    assert notebooks.main(["--check", str(path)]) == 1
    assert "not in the stored form" in capsys.readouterr().out


@pytest.mark.slow
def test_the_tool_leaves_a_failing_notebook_alone(notebook, capsys):
    path = notebook("a = 1", "a / 0\n", "print('never')")
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "cell 2 (a / 0) raised ZeroDivisionError: division by zero" in out
    assert path.read_bytes() == before


@pytest.mark.slow
def test_the_tool_stops_a_cell_that_takes_too_long(notebook, capsys):
    path = notebook("import time", "time.sleep(60)")
    assert notebooks.main(["--timeout", "1", str(path)]) == 1
    assert "cell 2 (time.sleep(60)) took more than 1 s" in capsys.readouterr().out
