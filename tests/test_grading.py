"""Graded classes, from make assignment to the grades, with nbgrader itself."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell

from normlab.exercises import chapter06
from solved import stubs

pytest.importorskip("nbgrader", reason="make test installs it, from grading.lock")

ROOT = Path(__file__).resolve().parents[1]
NAME = "06_groupnorm"
ANSWERS = {
    "6.4": "my_group_norm",
    "6.5": "num_groups_for",
    "6.6": "interleaved_norm",
    "6.7": "future_leaks_answer",
}
SEED, SECONDS = 20301, 8


def environment(**more):
    """As of a shell in which the environment is active; compiled files are kept."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    return env | {"PATH": path, "OMP_NUM_THREADS": "1"} | more


def make_assignment(*arguments, **env):
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "assignment.py", *map(str, arguments)],
        env=environment(**env), capture_output=True, text=True,
    )  # fmt: skip


def nbgrader(course, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


# The submissions


def cell_of(nb, name):
    (cell,) = (
        c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name
    )
    return cell


def put(nb, number, code):
    """An answer in its cell, in the place of the stub."""
    cell = cell_of(nb, f"answer-{number.replace('.', '-')}")
    cell.source = f"{code}\n\n\n{cell.source.splitlines()[-1]}"


def first(nb, code):
    """A cell of the student's own, behind the imports."""
    at = next(i for i, c in enumerate(nb.cells) if c.source.startswith("%env"))
    nb.cells.insert(at + 2, new_code_cell(code))


def right(nb, *numbers):
    for stub in stubs(nbformat.read(ROOT / "notebooks" / f"{NAME}.ipynb", 4)):
        if stub.exercise.number in (numbers or ANSWERS):
            put(nb, stub.exercise.number, stub.solution)


WRONG = {
    "6.4": (
        "def my_group_norm(x, num_groups, weight, bias, eps):\n"
        "    var, mean = torch.var_mean(x, (1, 2, 3), correction=0, keepdim=True)\n"
        "    y = (x - mean) / torch.sqrt(var + eps)\n"
        "    return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)",
        "Wrong axes: you averaged over N [C H W]",
    ),
    "6.5": (
        "def num_groups_for(channels, least):\n    return min(32, channels)",
        "which does not divide",
    ),
    "6.6": (
        "def interleaved_norm(x, num_groups):\n    return F.group_norm(x, num_groups)",
        "That is GroupNorm: your groups hold neighbours.",
    ),
    "6.7": ("future_leaks_answer = exercises.live_net()", "earlier outputs move by"),
}


def wrong(nb, *numbers):
    for number in numbers or ANSWERS:
        put(nb, number, WRONG[number][0])


def raising(nb):
    put(nb, "6.4", "def my_group_norm(x, num_groups, weight, bias, eps:\n    return x")
    put(
        nb, "6.5", "num_groups = 1 / 0\n\ndef num_groups_for(channels, least):\n    ..."
    )
    put(nb, "6.6", "def interleaved_norm(x, num_groups):\n    return x / unknown")
    put(nb, "6.7", "import os\n\nos._exit(1)")


def looping(nb):
    put(nb, "6.4", "while True:\n    pass\n\ndef my_group_norm():\n    ...")
    put(
        nb, "6.5", "def num_groups_for(channels, least):\n    while True:\n        pass"
    )
    right(nb, "6.6", "6.7")


def stubborn(nb):
    loop = "while True:\n    try:\n        time.sleep(9)\n    except:\n        pass"
    put(nb, "6.4", f"import time\n\n{loop}")
    right(nb, "6.5", "6.6", "6.7")


def printing(nb):
    right(nb)
    for number in ("6.4", "6.5"):
        cell = cell_of(nb, f"answer-{number.replace('.', '-')}")
        cell.source = cell.source.replace(":\n", ":\n    print('x' * 10_000_000)\n", 1)
        cell.source += "\nprint('many lines\\n' * 1_000_000)"


def memorized(nb):
    """What the check asks in the student's notebook, and the outputs of that run."""
    said = []

    def recorded(function):
        def call(*args, **kwargs):
            out = function(*args, **kwargs)
            said.append(out.detach().tolist() if torch.is_tensor(out) else out)
            return out

        return call

    heads = {
        "6.4": ("group_norm", "my_group_norm(x, num_groups, weight, bias, eps)"),
        "6.5": ("number_of_groups", "num_groups_for(channels, least)"),
        "6.6": ("every_gth_channel", "interleaved_norm(x, num_groups)"),
    }
    for number, (name, head) in heads.items():
        exercise, names = getattr(chapter06, name), {"torch": torch}
        exec(exercise.code, names)
        said.clear()
        answer = recorded(names[exercise.name])
        if number == "6.4":  # its arguments are read from the signature

            def answer(x, num_groups, weight, bias, eps, answer=answer):
                return answer(x, num_groups, weight, bias, eps)

        assert exercise.check(answer).correct
        put(
            nb,
            number,
            f"said, calls = {said!r}, []\n\n\ndef {head}:\n    calls.append(1)\n"
            "    value = said[(len(calls) - 1) % len(said)]\n"
            "    return torch.tensor(value) if isinstance(value, list) else value",
        )
        cell = cell_of(nb, f"answer-{number.replace('.', '-')}")
        cell.source = re.sub(r"\b(said|calls)\b", rf"\1_{number[-1]}", cell.source)
    right(nb, "6.7")


def tampering(nb):
    right(nb, "6.7")
    wrong(nb, "6.4", "6.5", "6.6")
    first(
        nb,
        "import builtins\nfrom normlab.exercises import checker, results\n"
        "done = results.Result('6.4', 'correct', '')\n"
        "checker.Exercise.check = lambda *a, **k: done\n"
        "checker.Code._judge = checker.Free._judge = lambda *a: None\n"
        "exercises.group_norm = exercises.number_of_groups = exercises.future_leaks\n"
        "exercises.every_gth_channel.judge = lambda answer: None\n"
        "torch.allclose = lambda *a, **k: True\npoints = 100\ncheck = print",
    )
    edited = cell_of(nb, "check-6-4")
    edited.source = "2.0"
    edited.metadata.nbgrader["points"] = 100
    edited.metadata |= {"editable": True, "deletable": True}
    nb.cells.remove(cell_of(nb, "check-6-5"))
    nb.cells.remove(cell_of(nb, "held-back"))
    unmarked = cell_of(nb, "check-6-6")
    unmarked.metadata.nbgrader |= {"grade": False, "locked": False}
    unmarked.source, unmarked.cell_type = "Full marks.", "markdown"
    del unmarked["outputs"], unmarked["execution_count"]
    # The answer's cell may lose its mark and the graded one go: a name is enough.
    del cell_of(nb, "answer-6-7").metadata["nbgrader"]
    nb.cells.remove(cell_of(nb, "check-6-7"))


def forging(nb):
    wrong(nb)
    first(
        nb,
        "import sys, types\nfrom IPython.display import display\n"
        "fake = types.ModuleType('normlab.grading')\n"
        "fake.hand_in = lambda answer: display({'text/plain': '2.0'}, raw=True)\n"
        "sys.modules['normlab.grading'] = fake",
    )


SUBMISSIONS = {  # what they do, and the points for 6.4, 6.5, 6.6 and 6.7
    "student-1": (right, (2, 2, 2, 2)),
    "student-2": (lambda nb: None, (0, 0, 0, 0)),
    "student-3": (wrong, (0, 0, 0, 0)),
    "student-4": (raising, (0, 0, 0, 0)),
    "student-5": (looping, (0, 0, 2, 2)),
    "student-6": (stubborn, (0, 2, 2, 2)),
    "student-7": (printing, (2, 2, 2, 2)),
    "student-8": (memorized, (0, 0, 0, 2)),
    "student-9": (tampering, (0, 0, 0, 2)),
    "student-10": (forging, (0, 0, 0, 0)),
}


def shortened(nb):
    """Without what was read before the exercises, apart from imports and helpers."""
    at = next(i for i, c in enumerate(nb.cells) if c.source.startswith("## Exercises"))
    nb.cells[5:at] = [c for c in nb.cells[5:10] if c.source.startswith("def ")]
    return nb


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of one chapter, with ten submissions graded and feedback written."""
    course = tmp_path_factory.mktemp("class") / "course"
    made = make_assignment("--out", course, "--chapters", 6, "--seed", SEED)
    assert made.returncode == 0, made.stderr
    config = course / "nbgrader_config.py"
    text = config.read_text().replace(
        "c.Run.timeout = 60", f"c.Run.timeout = {SECONDS}"
    )
    config.write_text(text)
    for student, (change, _) in SUBMISSIONS.items():
        nb = nbformat.read(course / "release" / "chapter-06" / f"{NAME}.ipynb", 4)
        nb = nb if student == "student-1" else shortened(nb)
        change(nb)
        place = course / "submitted" / student / "chapter-06" / f"{NAME}.ipynb"
        place.parent.mkdir(parents=True)
        place.write_text(nbformat.writes(nb))
    nbgrader(course, "autograde", "chapter-06")
    nbgrader(course, "generate_feedback", "chapter-06")
    nbgrader(course, "export")
    return course


def graded(course, student):
    path = course / "autograded" / student / "chapter-06" / f"{NAME}.ipynb"
    return nbformat.read(path, 4)


def feedback(course, student):
    path = course / "feedback" / student / "chapter-06" / f"{NAME}.html"
    return path.read_text(encoding="utf-8")


def points(course, student):
    """The points of each exercise, by nbgrader's own gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        grades = gradebook.find_submission_notebook(NAME, "chapter-06", student).grades
        found = {grade.name: grade.score for grade in grades}
        assert not any(grade.needs_manual_grade for grade in grades)
    assert found.keys() == {f"check-{n.replace('.', '-')}" for n in ANSWERS}
    return tuple(found[name] for name in sorted(found))


pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("student", SUBMISSIONS)
def test_every_submission_gets_the_grade_it_should(course, student):
    assert points(course, student) == SUBMISSIONS[student][1]


def test_the_export_has_all_students(course):
    with open(course / "grades.csv", newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert rows.keys() == SUBMISSIONS.keys()
    for student, (_, expected) in SUBMISSIONS.items():
        assert float(rows[student]["score"]) == sum(expected)
        assert float(rows[student]["max_score"]) == 8
