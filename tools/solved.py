"""The solved version of a notebook, each solution from the exercise itself.

A notebook has one cell for each exercise of its chapter: a stub, and the check that
ends it. `normlab.exercises` has the solutions. Here the two meet, so nothing has to be
written twice: ``stubs(nb)`` finds the cells, ``Stub.solution`` is the code that solves
one under the names of the notebook, and ``Stub.solved`` the cell with it in.
"""

import io
import re
import tokenize
from dataclasses import dataclass

from normlab.exercises import Exercise, chapters

CHAPTER = re.compile(
    r"^from normlab\.exercises import chapter(\d\d) as exercises$", re.M
)
# The last line of an exercise's cell; what it hands in is a name that the stub binds.
CHECK = re.compile(r"^exercises\.(\w+)\.check\(([A-Za-z_]\w*)\)\Z", re.M)


@dataclass(frozen=True)
class Stub:
    """The cell of one exercise: its place in ``nb.cells``, and what it binds.

    `name` is what the chapter's module calls the exercise, `bound` what the notebook
    calls the answer, and `check` the line that hands it in.
    """

    index: int
    name: str
    bound: str
    check: str
    exercise: Exercise

    @property
    def solution(self):
        """The exercise's own solution, which binds `bound`; without the check.

        Most solutions bind ``answer``; a notebook with seven answers needs a name for
        each.
        """
        return renamed(self.exercise.code, self.exercise.name, self.bound)

    @property
    def solved(self):
        """The cell's code with the solution in the stub's place."""
        return f"{self.solution}\n\n\n{self.check}"


def stubs(nb):
    """The exercises' cells of a notebook, in their order.

    ValueError if an exercise of its chapter has no cell, or two.
    """
    code = [
        (index, cell.source)
        for index, cell in enumerate(nb.cells)
        if cell.cell_type == "code"
    ]
    chapter = CHAPTER.search("\n".join(source for _, source in code))
    exercises = chapters()[int(chapter[1])] if chapter else {}
    found = {name: [] for name in exercises}
    for index, source in code:
        check = CHECK.search(source)
        if check and check[1] in found and check.start():
            name, bound = check.groups()
            stub = Stub(index, name, bound, check[0], exercises[name])
            found[name].append(stub)
    for name, cells in found.items():
        if len(cells) != 1:
            number = exercises[name].number
            raise ValueError(
                f"Exercise {number} ({name}) has {len(cells)} cells, not 1."
            )
    return sorted((cells[0] for cells in found.values()), key=lambda stub: stub.index)


def renamed(code, old, new):
    """Code in which a name is another one; texts and comments stay as they are."""
    lines = code.splitlines(keepends=True)
    found = [
        token.start
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.NAME and token.string == old
    ]
    for row, column in reversed(found):  # from the end: the places before stay right
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)
