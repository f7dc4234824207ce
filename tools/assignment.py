"""Build a graded course for nbgrader from the chapters: make assignment.

    python tools/assignment.py --out course                     # all chapters
    python tools/assignment.py --out course --chapters 06 08    # these

``course`` is then a course directory of nbgrader, with one assignment a chapter:
``source`` holds the instructor's notebooks with the solutions, ``release`` the copies
for students without them, and ``nbgrader_config.py`` the seed. The notebooks in
``notebooks/`` and the exercises in ``normlab`` are the only source of it all.
"""

import argparse
import copy
import importlib.util
import os
import re
import secrets
import shutil
import sys
import time
from pathlib import Path, PurePosixPath

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from badges import BRANCH, ROOT, repository
from normlab.exercises import chapters
from solved import CHAPTER, stubs

NOTEBOOKS = ROOT / "notebooks"
# Points: for code and nets, judged by what they do, and for one value that is asked
# for, which is the same for all and counts only where an instructor wants it to.
POINTS, POINTS_FIXED = 2, 1

WELCOME = """\
**This copy is graded.** It has {count} exercises that count, with {points} points in
all. Put your answers into their cells, where `...` stands. What an answer needs must
stand in its own cell or in cells above it. Each `check` tells you at once what it
thinks; after handing in, the same check asks with other numbers and sizes. The cells
behind the answers belong to the grading; leave them as they are.

Solutions come after grading, and hints go on until the last but one. To hand in, save
the notebook, and give back this file under its own name."""

HOLD_BACK = "%env NORMLAB_SOLUTIONS=off"

GRADED = """\
# Exercise {number}: {points} points. Leave this cell as it is: it hands your answer in.
### BEGIN HIDDEN TESTS
from normlab.grading import hand_in

hand_in({answer})
### END HIDDEN TESTS"""

CONFIG = '''\
"""nbgrader, for a course built by make assignment. It stays with the instructor."""

from normlab.grading.autograde import configure

c = get_config()  # noqa: F821

# Which numbers and sizes the checks ask with. Who knows it can prepare for them.
configure(c, seed={seed})

c.CourseDirectory.course_id = "{course}"
c.Run.timeout = 60  # seconds for one cell
# c.LimitOutput.max_lines = 1000
'''


def fail(message):
    """End with a sentence in place of a traceback."""
    sys.exit(f"make assignment: {message}")


def assignment(path):
    """The name of a chapter's assignment; nbgrader allows no + in it."""
    return f"chapter-{path.name[:2]}"


def counting(nb, fixed=False):
    """The exercises' cells that count, with their points."""
    return [
        (stub, POINTS_FIXED if stub.exercise.fixed else POINTS)
        for stub in stubs(nb)
        if fixed or not stub.exercise.fixed
    ]


def source(nb, fixed=False):
    """The instructor's notebook: solutions marked, a graded cell behind each."""
    nb, behind = copy.deepcopy(nb), {}
    graded = counting(nb, fixed)
    for stub, points in graded:
        number = stub.exercise.number.replace(".", "-")
        cell = nb.cells[stub.index]
        start = cell.source.removesuffix(stub.check).rstrip("\n")
        # Where code was to come, two empty lines follow: nbgrader leaves one.
        space = "\n" if cell.source.startswith(("def ", "class ")) else ""
        cell.source = (
            f"{start}\n### BEGIN SOLUTION\n{stub.solution}\n### END SOLUTION\n"
            f"{space}{stub.check}"
        )
        cell.outputs, cell.execution_count = [], None
        cell.metadata["nbgrader"] = marks(f"answer-{number}", solution=True)
        text = GRADED.format(
            number=stub.exercise.number, points=points, answer=stub.bound
        )
        behind[stub.index] = locked(
            new_code_cell(text), f"check-{number}", grade=True, points=points
        )
    first = next(
        i
        for i, cell in enumerate(nb.cells)
        if cell.cell_type == "code" and CHAPTER.search(cell.source)
    )
    total = sum(points for _, points in graded)
    welcome = WELCOME.format(count=len(graded), points=total)
    cells = []
    for i, cell in enumerate(nb.cells):
        if i == first:
            cells.append(locked(new_code_cell(HOLD_BACK), "held-back"))
        if cell.cell_type == "markdown":
            cell.source = without_solutions(with_addresses(cell.source))
        cells.append(cell)
        if i == 0:
            cells.append(locked(new_markdown_cell(welcome), "welcome"))
        if i in behind:
            cells.append(behind[i])
    nb.cells = cells
    return nb


def marks(name, grade=False, solution=False, is_locked=False, points=None, kind="code"):
    """nbgrader's metadata of a cell."""
    found = {
        "schema_version": 3,
        "grade_id": name,
        "grade": grade,
        "solution": solution,
        "locked": is_locked,
        "task": False,
        "cell_type": kind,
    }
    return found | ({} if points is None else {"points": points})


def locked(cell, name, grade=False, points=None):
    """The cell, with a fixed id, to be read and not to be written in."""
    cell["id"] = name
    cell.metadata["nbgrader"] = marks(
        name, grade, is_locked=True, points=points, kind=cell.cell_type
    )
    return cell


def without_solutions(text):
    """A text that no longer sends the reader to ``solution()``."""
    call = r"`exercises\.\w+\.solution\(\)`"
    text = re.sub(rf";\s+then\s+{call}", "", text)
    return re.sub(rf",\s+and\s+{call}\s+at\s+the\s+end", "", text)


def with_addresses(text):
    """A text whose links into the course lead to the repository: here is one file."""
    base = f"{repository()[0]}/blob/{BRANCH}/"

    def moved(link):
        path, sign, place = link[1].partition("#")
        parts = []
        for part in PurePosixPath("notebooks", path).parts:
            parts = parts[:-1] if part == ".." else [*parts, part]
        return f"]({base}{'/'.join(parts)}{sign}{place})"

    return re.sub(r"\]\((?!\w+:|#)([^)\s]+)\)", moved, text)


def chosen(numbers, fixed):
    """The paths of the chapters; ends where there is nothing to grade."""
    paths = {
        path.name[:2]: path for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    }
    for number in numbers:
        if number.zfill(2) not in paths:
            listed = ", ".join(paths)
            fail(f"there is no chapter {number}; name some of {listed}.")
    known, found = chapters(), []
    for number in sorted({n.zfill(2) for n in numbers} or paths):
        exercises = known.get(int(number), {}).values()
        if any(fixed or not one.fixed for one in exercises):
            found.append(paths[number])
        elif numbers:
            fail(
                f"chapter {number} has no exercise that counts"
                + (
                    "; with FIXED=1 those with one fixed answer do."
                    if exercises
                    else ", since it has none with a check."
                )
            )
    return found


def generator(out):
    """A function that does what ``nbgrader generate_assignment NAME`` does in ``out``.

    The command itself would load nbgrader anew for each chapter. RuntimeError with what
    nbgrader says, where it fails.
    """
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import PyFileConfigLoader

    # nbgrader runs alembic by its name, also where the environment is not activated.
    bin_folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([bin_folder, os.environ.get("PATH", "")])
    config = PyFileConfigLoader("nbgrader_config.py", path=str(out)).load_config()
    config.CourseDirectory.root = str(out)
    api = NbGraderAPI(config=config)

    def generate(name):
        done = api.generate_assignment(name)
        if not done["success"]:
            raise RuntimeError(f"nbgrader says:\n{done['log']}{done.get('error', '')}")

    return generate


def build(out, paths, seed, fixed=False):
    """Write the course directory; show what each chapter has, and how long it took."""
    out.mkdir(parents=True)
    config = CONFIG.format(seed=seed, course=re.sub(r"\W+", "-", out.name))
    (out / "nbgrader_config.py").write_text(config, encoding="utf-8")
    (out / ".gitignore").write_text("*\n", encoding="utf-8")
    generate = generator(out)
    print(f"{'notebook':<28} {'exercises':>9} {'points':>6} {'seconds':>8}")
    for path in paths:
        start = time.perf_counter()
        nb = source(nbformat.read(path, as_version=4), fixed)
        place = out / "source" / assignment(path) / path.name
        place.parent.mkdir(parents=True)
        nbformat.write(nb, place)
        generate(assignment(path))
        graded = [
            cell.metadata.nbgrader.points
            for cell in nb.cells
            if cell.metadata.get("nbgrader", {}).get("grade")
        ]
        took = time.perf_counter() - start
        print(
            f"{path.name:<28} {len(graded):>9} {sum(graded):>6} {took:>8.1f}",
            flush=True,
        )


def main(argv=None):
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("course"))
    parser.add_argument("--chapters", nargs="*", default=[], metavar="06")
    parser.add_argument("--seed", help="of the checks; otherwise one that nobody knows")
    parser.add_argument(
        "--fixed", action="store_true", help="count exercises with one fixed answer too"
    )
    args = parser.parse_args(argv)
    if importlib.util.find_spec("nbgrader") is None:
        fail(
            "nbgrader is not installed here. `make assignment` installs it; without "
            "make: pip install --no-deps -r grading.lock"
        )
    try:
        seed = int(args.seed) if args.seed else secrets.randbelow(2**31 - 1) + 1
    except ValueError:
        seed = 0
    if seed < 1:
        fail(f"SEED is a whole number above 0, such as 20301, not {args.seed!r}.")
    out = args.out.expanduser().resolve()
    if out.exists():
        fail(
            f"{args.out} is there already, and may hold submissions and grades. "
            "Name another folder with OUT=..., or remove it yourself."
        )
    paths = chosen(args.chapters, args.fixed)
    try:
        build(out, paths, seed, args.fixed)
    except (RuntimeError, OSError) as error:
        shutil.rmtree(out, ignore_errors=True)
        fail(f"nothing was built, since {error}")
    print(
        f"\nHand out what is in {args.out}/release and keep the rest: the solutions "
        f"are in\n{args.out}/source, the seed in {args.out}/nbgrader_config.py. What "
        'comes\nnext stands in "How to grade" in book/instructors.md.'
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
