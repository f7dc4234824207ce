"""The steps put into nbgrader: mend a submission, run it within limits, judge it."""

import base64
import os
from collections import Counter

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell, new_output
from nbgrader import preprocessors as steps
from nbgrader import utils
from nbgrader.api import Gradebook
from traitlets import Integer

from normlab.exercises.results import Result
from normlab.grading.handin import LIMIT, MIME
from normlab.grading.judge import judged

# In the metadata of cells: what nbgrader knows them by. Numbers are written 6-4.
ANSWER, CHECK = "answer-", "check-"


def configure(c, seed):
    """Set nbgrader's configuration `c` up for a course that make assignment built."""
    c.Run.seed = seed
    c.ClearSolutions.code_stub = {"python": ""}  # the stub stands above the solution
    # Figures and explorers keep their stored outputs in the student's copy.
    c.GenerateAssignment.preprocessors = [
        steps.IncludeHeaderFooter,
        steps.LockCells,
        steps.ClearSolutions,
        steps.CheckCellMetadata,
        steps.ComputeChecksums,
        steps.SaveCells,
        steps.ClearHiddenTests,
        steps.ComputeChecksums,
        steps.CheckCellMetadata,
    ]
    c.Autograde.sanitize_preprocessors = [
        steps.ClearOutput,
        Mend,
        steps.DeduplicateIds,
        steps.OverwriteKernelspec,
        steps.OverwriteCells,
        steps.CheckCellMetadata,
    ]
    c.Autograde.autograde_preprocessors = [
        Run,
        steps.IgnorePattern,
        steps.LimitOutput,
        steps.SaveAutoGrades,
        steps.AssignLatePenalties,
        steps.CheckCellMetadata,
    ]


class Mend(steps.NbGraderPreprocessor):
    """Gives nbgrader's cells their metadata back, and puts back those that are gone."""

    def preprocess(self, nb, resources):
        """As nbgrader calls it, before it restores the sources of locked cells."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            source = gradebook.find_notebook(about["notebook"], about["assignment"])
            points = {cell.name: cell.max_score for cell in source.grade_cells}
            solutions = {cell.name for cell in source.solution_cells}
            known = {
                cell.name: (
                    cell.source,
                    _marks(cell, points.get(cell.name), cell.name in solutions),
                )
                for cell in source.source_cells
            }
        for cell in nb.cells:
            marks = cell.metadata.pop("nbgrader", None)
            name = marks.get("grade_id") if isinstance(marks, dict) else None
            if name in known:
                cell.metadata["nbgrader"] = known[name][1]
        self._put_back(nb, known)
        return nb, resources

    def _put_back(self, nb, known):
        # Each behind the cell that came before it, or at the end.
        places = {}
        for i, cell in enumerate(nb.cells):
            places.setdefault(cell.metadata.get("nbgrader", {}).get("grade_id"), i)
        before = None
        for name, (source, marks) in known.items():
            if name not in places and marks.grade:
                self.log.warning("The cell %s was missing and is put back", name)
                cell = new_code_cell(source, metadata={"nbgrader": marks})
                at = places[before] + 1 if before in places else len(nb.cells)
                nb.cells.insert(at, cell)
                places = {
                    other: i + (i >= at) for other, i in places.items()
                } | {name: at}  # fmt: skip
            before = name


def _marks(cell, points, is_solution):
    marks = {
        "schema_version": 3,
        "grade_id": cell.name,
        "cell_type": cell.cell_type,
        "checksum": cell.checksum,
        "grade": points is not None,
        "solution": is_solution,
        "locked": cell.locked,
        "task": False,
    }
    return nbformat.from_dict(marks | ({} if points is None else {"points": points}))


class Run(steps.Execute):
    """Runs a submission cell by cell, within limits, and has its answers judged.

    A cell that takes too long is interrupted. One that goes on all the same, or ends
    the kernel, is left out when everything is run anew, so that it costs no other
    exercise. No cell keeps more than `characters` of what it prints.
    """

    seed = Integer(0, help="The seed of the checks. Keep it for yourself.").tag(
        config=True
    )
    timeout = Integer(
        60,
        help="Seconds for the cell of an answer; other cells get five times as many.",
    ).tag(config=True)
    anew = Integer(3, help="How often to run anew after a kernel was lost.").tag(
        config=True
    )
    characters = Integer(20_000, help="How much of its output a cell keeps.").tag(
        config=True
    )

    def preprocess(self, nb, resources, km=None):
        """As nbgrader calls it; the graded cells come back with their verdicts."""
        self._left_out, self._at = {}, -1
        self.shutdown_kernel = "immediate"
        alone = {"NORMLAB_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}  # on a shared machine
        with utils.setenv(NORMLAB_PROGRESS=os.devnull, **alone):
            for _ in range(self.anew + 1):
                self._shown = Counter()
                try:
                    nb, resources = super().preprocess(nb, resources, km)
                    break
                except DeadKernelError:
                    self._left_out[self._at] = "ended the notebook's kernel"
                except CellTimeoutError:
                    self._left_out[self._at] = (
                        f"was still running after {self.timeout} seconds and could not "
                        "be interrupted"
                    )
        self._judge(nb)
        return nb, resources

    def preprocess_cell(self, cell, resources, index):
        """Run one cell, unless it was found to end the kernel."""
        self._at = index
        if index in self._left_out:
            cell.outputs = [_error("LeftOut", self._left_out[index])]
            return cell, resources
        return super().preprocess_cell(cell, resources, index)

    def _get_timeout(self, cell):
        # What the course itself computes on the way is not in a hurry.
        ours = cell is not None and "nbgrader" not in cell.metadata
        return self.timeout * (5 if ours else 1)

    def process_message(self, msg, cell, cell_index):
        """Take an output in, shortened."""
        content = msg["content"]
        if msg["msg_type"] == "stream":
            room = self.characters - self._shown[cell_index]
            self._shown[cell_index] += len(content["text"])
            if room <= 0:
                return None
            if len(content["text"]) > room:
                content["text"] = content["text"][:room] + "\n(and more)\n"
        elif msg["msg_type"] in ("display_data", "execute_result"):
            data = content["data"]
            most = 2 * LIMIT if MIME in data else 100 * self.characters
            if sum(len(str(value)) for value in data.values()) > most:
                content["data"] = {"text/plain": "(a very large output, left out)"}
        return super().process_message(msg, cell, cell_index)

    def _judge(self, nb):
        cells = {
            cell.metadata.nbgrader.grade_id: cell
            for cell in nb.cells
            if "nbgrader" in cell.metadata and cell.cell_type == "code"
        }
        graded = {
            name.removeprefix(CHECK).replace("-", "."): cell
            for name, cell in cells.items()
            if utils.is_grade(cell)
        }
        answers = {number: _handed_in(cell) for number, cell in graded.items()}
        came = {number: data for number, data in answers.items() if data}
        results = judged(came, self.seed)
        for number, cell in graded.items():
            result = results.get(number) or _without_answer(
                number, cells.get(ANSWER + number.replace(".", "-")), cell
            )
            most = cell.metadata.nbgrader.points
            cell.outputs = [_verdict(result, most if result.correct else 0, most)]


def _error(name, sentence):
    return new_output("error", ename=name, evalue=sentence, traceback=[sentence])


def _handed_in(cell):
    """The bytes that a graded cell shows, or None."""
    for output in reversed(cell.outputs):
        data = output.get("data", {}).get(MIME)
        if isinstance(data, str):
            try:
                return base64.b64decode(data, validate=True)
            except ValueError:
                return None
    return None


def _without_answer(number, answer, check):
    """The result where nothing was handed in: what the two cells raised."""
    errors = {
        output.ename: output.evalue
        for cell in (check, answer)
        for output in (cell.outputs if cell else ())
        if output.output_type == "error"
    }
    message = "No answer was handed in."
    if "CellTimeoutError" in errors:
        message += " Your cell was still running when its time was over."
    elif "LeftOut" in errors:
        message += f" Your cell {errors['LeftOut']}."
    elif errors:
        name, text = errors.popitem()  # the answer's own, if it raised one
        message += f" {name}: {text}" if name != "ValueError" else f" {text}"
    return Result(number, "error", message)


def _verdict(result, points, most):
    """The verdict as nbgrader reads it: a number is the points, the HTML is shown."""
    html = f"{result._repr_html_()}<p>{points:g} of {most:g} points</p>"
    data = {"text/plain": f"{float(points)}", "text/html": html}
    return new_output("execute_result", data=data, execution_count=None)
