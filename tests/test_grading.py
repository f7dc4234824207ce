"""Graded classes, from make assignment to the grades, with nbgrader itself."""

import base64
import csv
import html
import importlib.util
import io
import linecache
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import IPython.display
import nbformat
import pytest
import torch
import torch.nn.functional as F
from nbformat.v4 import new_code_cell
from torch import nn

import assignment
from normlab.exercises import Exercise, chapter06, chapters, todo
from normlab.grading import hand_in, judge
from normlab.grading.handin import MIME, packed
from normlab.grading.judge import apart, end, judged, result_from, verdict
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
SEED, SECONDS = 20301, 5


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
    right(nb, "6.7")


def looping(nb):
    put(nb, "6.4", "while True:\n    pass\n\ndef my_group_norm():\n    ...")
    put(
        nb, "6.5", "def num_groups_for(channels, least):\n    while True:\n        pass"
    )
    right(nb, "6.6", "6.7")


def stubborn(nb):
    """A loop that no interrupt ends, 10 MB printed, and a kernel that is ended."""
    loop = "while True:\n    try:\n        time.sleep(9)\n    except:\n        pass"
    put(nb, "6.4", f"import time\n\n{loop}")
    right(nb, "6.5", "6.7")
    printing = cell_of(nb, "answer-6-5")
    printing.source = printing.source.replace(
        ":\n", ":\n    print('x' * 10_000_000)\n", 1
    )
    printing.source += "\nprint('many lines\\n' * 1_000_000)"
    put(nb, "6.6", "import os\n\nos._exit(1)")


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
    "student-4": (raising, (0, 0, 0, 2)),
    "student-5": (looping, (0, 0, 2, 2)),
    "student-6": (stubborn, (0, 2, 0, 2)),
    "student-7": (memorized, (0, 0, 0, 2)),
    "student-8": (tampering, (0, 0, 0, 2)),
    "student-9": (forging, (0, 0, 0, 0)),
}


def shortened(nb):
    """The exercises and what they need; to run a whole chapter takes longer."""
    at = next(i for i, c in enumerate(nb.cells) if c.source.startswith("## Exercises"))
    needed = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"
    nb.cells[:at] = [new_code_cell(needed)]
    return nb


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of one chapter, with nine submissions graded and feedback written."""
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
        change(shortened(nb))
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


def text_of(page):
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())


def told(course, student, number):
    """What a graded cell shows after grading: the feedback page holds it."""
    cell = cell_of(graded(course, student), f"check-{number.replace('.', '-')}")
    (output,) = cell.outputs
    shown = text_of(output.data["text/html"])
    assert shown in text_of(feedback(course, student))
    return shown


@pytest.mark.parametrize("number", ANSWERS)
def test_the_feedback_names_the_mistake(course, number):
    shown = told(course, "student-3", number)
    assert "✗ Not yet" in shown
    assert WRONG[number][1] in shown
    assert "0 of 2 points" in shown


@pytest.mark.parametrize(
    ("student", "number", "words"),
    [
        ("student-1", "6.4", "✓ Correct (exercise 6.4)"),
        ("student-1", "6.4", "2 of 2 points"),
        ("student-2", "6.4", "… Not attempted (exercise 6.4)"),
        ("student-2", "6.7", "… Not attempted (exercise 6.7)"),
        ("student-4", "6.4", "SyntaxError: '(' was never closed"),
        ("student-4", "6.5", "ZeroDivisionError: division by zero"),
        ("student-4", "6.6", "NameError: name 'unknown' is not defined"),
        ("student-4", "6.6", "2: return x / unknown"),
        ("student-6", "6.6", "Your cell ended the notebook's kernel."),
        ("student-5", "6.4", "Your cell was still running when its time was over."),
        ("student-5", "6.5", "Is there a loop that never ends?"),
        ("student-6", "6.4", "running after 5 seconds and could not be interrupted"),
        ("student-6", "6.5", "Your code printed:"),
        ("student-8", "6.4", "Wrong axes: you averaged over N [C H W]"),
        ("student-9", "6.4", "No answer was handed in."),
    ],
)
def test_the_four_outcomes_and_what_the_feedback_says(course, student, number, words):
    assert words in told(course, student, number)


def test_what_is_printed_is_cut_short(course):
    cell = cell_of(graded(course, "student-6"), "answer-6-5")
    printed = "".join(o.text for o in cell.outputs if o.output_type == "stream")
    assert 10_000 < len(printed) < 25_000
    assert "truncated" in printed
    assert len(told(course, "student-6", "6.5")) < 2_000


def test_what_was_tampered_with_is_as_it_was(course):
    nb = graded(course, "student-8")
    source = nbformat.read(course / "source" / "chapter-06" / f"{NAME}.ipynb", 4)
    for number in ANSWERS:
        name = f"check-{number.replace('.', '-')}"
        assert cell_of(nb, name).source == cell_of(source, name).source
        assert cell_of(nb, name).metadata.nbgrader["points"] == 2


def test_marks_that_are_none_and_cells_that_are_gone_are_mended(course):
    from normlab.grading.autograde import Mend

    nb = release(course)
    for name in ("answer-6-4", "check-6-4", "check-6-7"):
        nb.cells.remove(cell_of(nb, name))
    cell_of(nb, "check-6-5").metadata["nbgrader"]["points"] = "all of them"
    nb.cells[-1].metadata["nbgrader"] = "full marks"
    nb.cells[-2].metadata["nbgrader"] = {"grade_id": "check-9-9", "grade": True}
    about = {
        "db_url": f"sqlite:///{course}/gradebook.db",
        "notebook": NAME,
        "assignment": "chapter-06",
    }
    Mend().preprocess(nb, {"nbgrader": about})
    marked = [c.metadata["nbgrader"] for c in nb.cells if "nbgrader" in c.metadata]
    graded = {marks.grade_id: marks.points for marks in marked if marks.grade}
    assert graded == {f"check-6-{i}": 2 for i in (4, 5, 6, 7)}
    names = [marks.grade_id for marks in marked]
    assert names.index("check-6-7") == names.index("answer-6-7") + 1
    assert len(names) == len({*names})


# The copies for students


def release(course):
    return nbformat.read(course / "release" / "chapter-06" / f"{NAME}.ipynb", 4)


def test_no_solution_and_no_seed_is_in_what_is_handed_out(course):
    files = [path for path in (course / "release").rglob("*") if path.is_file()]
    assert [path.name for path in files] == [f"{NAME}.ipynb"]
    text = "\n".join(cell.source for cell in release(course).cells)
    for one in chapter06.__dict__.values():
        if isinstance(one, Exercise) and "\n" in one.code:
            assert one.code not in text
    for word in ("SOLUTION\n", "HIDDEN", "hand_in", "solution()", str(SEED)):
        assert word not in text.replace("NORMLAB_SOLUTIONS", "")
    source = (course / "source" / "chapter-06" / f"{NAME}.ipynb").read_text()
    assert "hand_in" in source
    assert "BEGIN SOLUTION" in source


def test_all_else_is_as_in_the_chapter(course):
    chapter = nbformat.read(ROOT / "notebooks" / f"{NAME}.ipynb", 4)
    ours = {cell.id: cell for cell in release(course).cells}
    for cell in chapter.cells:
        if cell.cell_type == "code":
            copy = ours[cell.id]
            assert copy.source.split() == cell.source.split()
            if "nbgrader" not in copy.metadata:
                assert copy.outputs == cell.outputs  # figures, explorers, the quiz
    added = [cell for cell in release(course).cells if cell.id not in
             {cell.id for cell in chapter.cells}]  # fmt: skip
    assert len(added) == 2 + len(ANSWERS)
    assert not any(cell.metadata.editable for cell in added)


def test_links_out_of_the_file_lead_to_the_repository(course):
    text = "\n".join(c.source for c in release(course).cells if c.cell_type != "code")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert any("/blob/main/notebooks/07_rmsnorm.ipynb" in link for link in links)
    assert all(link.startswith(("https://", "#")) for link in links)


# The command


def test_a_folder_that_exists_is_never_touched(course):
    before = sorted(course.rglob("*"))
    made = make_assignment("--out", course, "--chapters", 6)
    assert made.returncode == 1
    assert "is there already" in made.stderr
    assert sorted(course.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--chapters", "6", "12"], "there is no chapter 12; name some of 00, 01,"),
        (["--chapters", "six"], "there is no chapter six"),
        (["--chapters", "00"], "with FIXED=1 those with one fixed answer do"),
        (["--seed", "a lot"], "SEED is a whole number above 0, such as 20301"),
        (["--seed", "0"], "SEED is a whole number above 0"),
    ],
)
def test_what_cannot_be_built_is_told_in_a_sentence(
    tmp_path, monkeypatch, arguments, sentence
):
    out = tmp_path / "course"
    with pytest.raises(SystemExit, match=f"^make assignment: .*{re.escape(sentence)}"):
        assignment.main(["--out", str(out), *arguments])
    assert not out.exists()


def test_without_nbgrader_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="nbgrader is not installed here") as error:
        assignment.main(["--out", str(tmp_path / "course")])
    assert "pip install --no-deps -r grading.lock" in str(error.value)


def test_every_chapter_can_be_built_and_fixed_answers_count_on_demand():
    for path in assignment.chosen([], fixed=False):
        nb = nbformat.read(path, 4)
        some, every = (assignment.counting(nb, fixed) for fixed in (False, True))
        assert 0 < len(some) <= len(every)
        assert {points for _, points in some} == {assignment.POINTS}
        assert {stub.exercise.fixed for stub, _ in some} == {False}
        graded = [
            cell.metadata.nbgrader
            for cell in assignment.source(nb, fixed=True).cells
            if cell.metadata.get("nbgrader", {}).get("grade")
        ]
        assert sum(marks["points"] for marks in graded) == sum(p for _, p in every)
    assert assignment.chosen(["0"], fixed=True)


# The judge


def test_an_answer_travels_with_what_it_uses_and_leaves_the_rest_behind():
    code = "half = 0.5\ndef help(x): return half * x\ndef f(x): return help(x)"
    before = cell(code, "f")
    answer, _ = pickle.loads(packed(before))
    before.__globals__["half"] = 100
    assert answer(4) == 2.0
    assert pickle.loads(packed(todo))[0] is todo


VARYING = [
    exercise
    for chapter in chapters().values()
    for exercise in chapter.values()
    if not exercise.fixed
]


@pytest.mark.parametrize("exercise", VARYING, ids=lambda exercise: exercise.number)
def test_every_solution_travels_and_is_found_correct(exercise):
    answer = cell(f"{exercise.given}\n{exercise.code}", exercise.name)
    result = verdict(exercise.number, packed(answer), SEED)
    assert result.correct, result


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((n for n in ()), "cannot be handed in, since it holds something"),
        (torch.zeros(9 * 2**20), "has 36 MiB; 32 is the most"),
    ],
)
def test_what_cannot_travel_is_told(answer, sentence):
    with pytest.raises(ValueError, match=sentence):
        packed(answer)


class Breaking:
    """Unpickled, it raises; what comes out of a notebook may be anything."""

    def __reduce__(self):
        return (int, ("no number",))


def test_the_judge_reads_whatever_comes():
    assert verdict("6.2", packed(chapter06.on_paper.answer), 5).correct
    assert verdict("6.2", packed(3), 5).outcome == "wrong"
    assert verdict("6.2", b"nonsense", 5).outcome == "error"
    assert verdict("6.2", packed(...), 5).outcome == "not attempted"
    broken = verdict("6.2", pickle.dumps((Breaking(), {})), 5)
    assert broken.outcome == "error"
    assert "no number" in broken.message
    with pytest.raises(ValueError, match=r"There is no exercise 6\.99"):
        verdict("6.99", b"", 5)


def cell(code, name):
    """What a cell of a notebook binds to a name."""
    names = {"__name__": "__main__", "torch": torch, "F": F, "nn": nn}
    exec(code, names)
    return names[name]


LEAVING = "import os\ndef leaving(*numbers): os._exit(3)"
# Compiled code that holds Python's lock: no thread can end it.
STUCK = "def stuck(*arguments): 10 ** 10**9"


def test_an_answer_that_ends_or_blocks_its_process_costs_no_other():
    answers = {
        "6.5": packed(cell(LEAVING, "leaving")),
        "6.6": packed(cell(STUCK, "stuck")),
        "6.2": packed(chapter06.on_paper.answer),
    }
    results = judged(answers, 5, seconds=12)
    end()
    assert "ended the process" in results["6.5"].message
    assert "12 seconds" in results["6.6"].message
    assert results["6.2"].correct
    assert judged({}, 5) == {}


class Attack:
    """An answer that runs code while it is read, in the process that judges it."""

    def __init__(self, code):
        self.code = code

    def __reduce__(self):
        return exec, (self.code,)


PIPE = """
import gc, multiprocessing.connection as c, os, time
pipes = [o for o in gc.get_objects() if isinstance(o, c.Connection) and o.writable]
"""
ATTACKS = {
    "begins a message": PIPE
    + "for o in pipes: os.write(o.fileno(), b'\\0\\0\\0d')\ntime.sleep(99)",
    "sends something else": PIPE
    + """for o in pipes: o.send_bytes(b'{"a": 1}')\nos._exit(0)""",
    "ends the judge": "import os\nos.kill(os.getppid(), 9)",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_on_the_judge_costs_no_other_answer(attack):
    answers = {
        "6.4": pickle.dumps((Attack(ATTACKS[attack]), {})),
        "6.2": packed(chapter06.on_paper.answer),
    }
    results = judged(answers, 5, seconds=12)
    end()
    assert results["6.4"].outcome == "error"
    assert results["6.2"].correct


def test_where_no_process_can_be_forked_one_is_started():
    spawn = multiprocessing.get_context("spawn")
    right = packed(chapter06.on_paper.answer)
    assert apart(spawn, "6.2", right, 5, 90)["outcome"] == "correct"
    late = apart(spawn, "6.2", right, 5, 0.01)
    assert late["outcome"] == "error"
    assert "still running after 0.01 seconds" in late["message"]
    left = apart(spawn, "6.5", packed(cell(LEAVING, "leaving")), 5, 90)
    assert left["message"] == "Your code ended the process that was to judge it."


def test_the_judge_answers_line_by_line(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        judge, "apart", lambda *of: asked.append(of[1:]) or {"of": of[1]}
    )
    line = '{"seed": 5, "seconds": 9, "answers": {"6.2": "AAE=", "6.4": ""}}\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(line + line.replace("9", "8")))
    judge.main()
    assert asked[:2] == [("6.2", b"\0\1", 5, 9), ("6.4", b"", 5, 9)]
    assert asked[2] == ("6.2", b"\0\1", 5, 8)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ['{"6.2": {"of": "6.2"}, "6.4": {"of": "6.4"}}'] * 2


def test_a_judge_that_has_ended_is_told_and_another_one_comes(monkeypatch):
    end()
    monkeypatch.setattr(judge, "__name__", "keyword")  # a module that ends in silence
    with pytest.raises(RuntimeError, match="has ended; is there memory left"):
        judged({"6.2": b""}, 5)
    end()
    assert judge._judge.cache_info().currsize == 0


def test_handing_in_shows_the_answer_and_nothing_of_it(monkeypatch):
    shown = []
    monkeypatch.setattr(
        IPython.display, "display", lambda data, raw: shown.append(data)
    )
    hand_in(417)
    (data,) = shown
    assert data["text/plain"] == ""
    assert pickle.loads(base64.b64decode(data[MIME]))[0] == 417


def test_errors_quote_the_line_of_the_cell():
    code, place = "def f(channels, least):\n    return unknown\n", "/ipykernel_1/2.py"
    names = {"__name__": "__main__"}
    exec(compile(code, place, "exec"), names)
    linecache.cache[place] = (len(code), None, code.splitlines(True), place)
    data = packed(names["f"])
    del linecache.cache[place]
    result = verdict("6.5", data, 5)
    assert result.message == "NameError: name 'unknown' is not defined"
    assert result.facts == (("line", "2: return unknown"),)


def test_a_judge_that_says_something_else_is_not_believed():
    fields = {"outcome": "full marks", "message": "", "facts": [], "printed": ""}
    with pytest.raises(ValueError, match="outcome 'full marks'"):
        result_from("6.2", fields)
