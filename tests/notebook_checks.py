"""What every chapter must satisfy: each check yields a sentence for each breach.

A check takes a ``Chapter``. ``test_notebooks.py`` runs all of ``CHECKS`` over all
chapters, and shows for every check a broken chapter that it rejects.
"""

import ast
import csv
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

import notebooks
from normlab.exercises import chapters

FOLDER = Path(__file__).parent.parent / "notebooks"
INSTALL = """\
try:
    import normlab
except ImportError:  # on Colab: fetch the package alone, leave its torch as it is
    %pip install --quiet --no-deps git+https://github.com/normlab/normlab
    import normlab"""
# By their numbers: the chapters that mirror a document, and those in the form of
# GroupNorm's thirteen sections under titles of their own. The rest have as many
# sections as they need.
MIRRORS = {1, 2, 6, 8}
THIRTEEN = {3, 4, 5, 7}
WITHOUT_SECTIONS = {0}
# Names that live for one cell and may be bound anew in another; so may a name that is
# a loop's target wherever it is bound.
SHORT_LIVED = {"_", "ax", "fig", "i"}
BULLET = re.compile(r"^[-*] ", re.MULTILINE)
PRIVATE = {
    "a machine path": r"(?<![\w.:/])/(?:root|home|Users|tmp|work|opt|usr|mnt|content)/|"
    r"\b[A-Z]:\\\\?Users\b",
    "a local address": r"\b(?:localhost|127\.0\.0\.1)\b",
    "a secret": r"\bAKIA[0-9A-Z]{16}|\bgh[pousr]_\w{30,}|\bhf_\w{30,}|\bsk-\w{20,}|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY",
}
UNSTABLE = {
    "a warning": r"\b\w*Warning\b",
    "a traceback": r"\bTraceback\b",
    "a memory address": r"\b0x[0-9a-fA-F]{6,}",
    "a device": r"\bdevice='|\bcuda\b",
    "rounding noise": r"\d\.\d+e-\d\d",
    "a negative zero": r"(?<![\w.])-0\.0*(?![\d.])",
}


@dataclass
class Chapter:
    """A notebook with what its name says: the chapter's number."""

    path: Path
    nb: nbformat.NotebookNode

    @classmethod
    def read(cls, path):
        return cls(path, nbformat.read(path, as_version=4))

    @property
    def number(self):
        return int(self.path.name[:2])

    @property
    def code(self):
        return notebooks.code_cells(self.nb)

    @property
    def markdown(self):
        return [cell for cell in self.nb.cells if cell.cell_type == "markdown"]

    @property
    def headings(self):
        """Every heading with its marks: "## 6.1 Title"."""
        lines = "\n".join(prose(cell) for cell in self.markdown).splitlines()
        return [line.rstrip() for line in lines if re.match("#+ ", line)]


def prose(cell):
    """A Markdown cell without its blocks of code."""
    return re.sub(r"^```.*?^```", "", cell.source, flags=re.DOTALL | re.MULTILINE)


def parsed(cell):
    """The statements of a code cell, IPython's own syntax turned into calls."""
    return ast.parse(TransformerManager().transform_cell(cell.source)).body


def texts(outputs):
    """What outputs say: all but pictures and the ids of widgets."""
    for output in outputs:
        if output.output_type == "stream":
            yield output.name, output.text
        for mime, data in sorted(output.get("data", {}).items()):
            if not mime.startswith("image/") and mime != notebooks.WIDGET:
                yield mime, data


# -- the frame ------------------------------------------------------------------------


def sections(chapter):
    """The numbered headings are those of sections.tsv, or count up from 1."""
    found = [line[3:] for line in chapter.headings if re.match(r"## \d", line)]
    number = chapter.number
    if number in MIRRORS:
        with (Path(__file__).parent / "sections.tsv").open(encoding="utf-8") as file:
            rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
        wanted = [" ".join(row) for row in rows if row[0].split(".")[0] == str(number)]
    elif number in WITHOUT_SECTIONS:
        return
    else:
        last = 13 if number in THIRTEEN else max(3, len(found))
        wanted = [f"{number}.{k} " for k in range(1, last + 1)]
        found = [re.sub(r"(?<=\d )\S.*", "", line) for line in found]
    if found != wanted:
        odd = next((f for f, w in zip(found, wanted, strict=False) if f != w), None)
        yield f"{len(found)} of {len(wanted)} sections; the first wrong one: {odd}"


def frame(chapter):
    """Title, goals, what we saw, exercises, quiz, outlook, in this order."""
    if not re.match(rf"# {chapter.number}\. \S", chapter.nb.cells[0].source):
        yield f'the first line is not "# {chapter.number}. Title"'
    if len([line for line in chapter.headings if line.startswith("# ")]) != 1:
        yield "there is not exactly one title"
    text = "\n".join(cell.source for cell in chapter.markdown)
    marks = ["In this chapter we saw", "Exercises", "Quiz", "What comes next"]
    places = [text.find("**In this chapter**")]
    places += [text.find(f"\n## {mark}\n") for mark in marks]
    if -1 in places or places != sorted(places):
        yield f"**In this chapter** or one of {marks} is missing or out of order"
        return
    last = [line[3:] for line in chapter.headings if line.startswith("## ")]
    if last[-4:] != marks:
        yield f"the last sections are not {marks}"
    ends = [text.find("\n## "), places[2]]
    goals, seen = (
        len(BULLET.findall(text[a:b])) for a, b in zip(places[:2], ends, strict=True)
    )
    if not 3 <= goals <= 5:
        yield f"{goals} goals, not 3 to 5 bullets"
    if seen != goals:
        yield f"{goals} goals but {seen} bullets on what we saw"
    checked = len(re.findall(r"^### Exercise \d", text, flags=re.MULTILINE))
    if checked < 5 and chapter.number not in WITHOUT_SECTIONS:
        yield f"{checked} exercises with a check, not at least 5"


def exercises(chapter):
    """Those of the chapter's module stand in it, in the module's words, checked."""
    code = "\n".join(cell.source for cell in chapter.code)
    if f"import chapter{chapter.number:02d} as exercises" not in code:
        return
    text = " ".join("\n".join(cell.source for cell in chapter.markdown).split())
    for name, exercise in chapters()[chapter.number].items():
        asked = f"### Exercise {exercise.number} {exercise.question}"
        if " ".join(asked.split()) not in text:
            yield f"exercise {exercise.number} is not there in its module's words"
        if f"\nexercises.{name}.check(" not in code:
            yield f"exercise {exercise.number} has no check"


def install_cell(chapter):
    """The first code cell gets normlab where it is missing, and does no more."""
    if not chapter.code or chapter.code[0].source != INSTALL:
        yield "the first code cell is not the install cell"


# -- reading --------------------------------------------------------------------------


def cell_length(chapter):
    """At most 12 lines, 25 for one definition; half of the cells at most 5."""
    lengths = []
    for index, cell in enumerate(chapter.nb.cells):
        if cell.cell_type != "code":
            continue
        lengths.append(len(cell.source.splitlines()))
        body = parsed(cell)
        one = len(body) == 1 and isinstance(body[0], (ast.ClassDef, ast.FunctionDef))
        if lengths[-1] > (25 if one else 12):
            yield f"{notebooks.where(chapter.nb, index)} has {lengths[-1]} lines"
        if not cell.source.strip():
            yield f"{notebooks.where(chapter.nb, index)} is empty"
    if lengths and statistics.median(lengths) > 5:
        yield f"the median code cell has {statistics.median(lengths)} lines, not <= 5"


def prose_per_cell(chapter):
    """25 to 130 words of prose for each code cell, headings not counted."""
    text = "\n".join(prose(cell) for cell in chapter.markdown)
    words = len(re.sub(r"^#+ .*", "", text, flags=re.MULTILINE).split())
    ratio = words / max(1, len(chapter.code))
    if not 25 <= ratio <= 130:
        yield f"{ratio:.0f} words of prose for each code cell, not 25 to 130"


def predictions(chapter):
    """At least four predictions, each with a cell after it that reveals the answer."""
    cells = chapter.nb.cells
    kinds = [cell.cell_type for cell in cells]
    count = 0
    for index, cell in enumerate(cells):
        for _ in re.findall(r"^\*\*Predict\.\*\* ", cell.source, flags=re.MULTILINE):
            count += 1
            if "code" not in kinds[index + 1 : index + 3]:
                yield f"{notebooks.where(chapter.nb, index)}: no cell reveals it"
    if count < 4:
        yield f"{count} predictions, not at least 4"


def plain_markdown(chapter):
    """No raw HTML, no picture from elsewhere: both fail somewhere."""
    for index, cell in enumerate(chapter.nb.cells):
        if cell.cell_type == "markdown":
            text = re.sub(r"`[^`\n]*`|\$[^$]*\$", "", prose(cell))
            if re.search(r"</?[a-zA-Z][^>]*>", re.sub(r"<https?://[^>\s]*>", "", text)):
                yield f"{notebooks.where(chapter.nb, index)} has raw HTML"
            if re.search(r"!\[[^]]*\]\(\s*\w+:", text):
                yield f"{notebooks.where(chapter.nb, index)} has an external image"


def shell_scripts(chapter):
    """No script begins with !: of #! in a draft, jupytext brings only the ! back."""
    for index, cell in enumerate(chapter.nb.cells):
        if re.search(r"^```.*\n!", cell.source, flags=re.MULTILINE):
            yield f"{notebooks.where(chapter.nb, index)}: a script lost the # of #!"


def links(chapter):
    """A link that stays in the course leads to a file, and its anchor to a heading."""
    for cell in chapter.markdown:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(cell)):
            if re.match(r"https://", target):
                continue
            name, _, anchor = target.partition("#")
            path = (chapter.path.parent / name) if name else chapter.path
            if re.match(r"\w+:", target) or not (path.exists() or not name):
                yield f"the link {target} leads nowhere"
            elif anchor and path.suffix == ".ipynb":
                other = chapter if not name else Chapter.read(path)
                titles = [re.sub(r"^#+ ", "", line) for line in other.headings]
                # as JupyterLab makes them, and as GitHub and the book do
                ids = {title.replace(" ", "-") for title in titles}
                ids |= {re.sub(r"[^\w-]", "", i.lower()) for i in ids}
                if anchor not in ids:
                    yield f"the link {target} names no heading there"


# -- code -----------------------------------------------------------------------------


OWN_SCOPE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_names(statements, loop=False):
    """(name, is a loop's target) for all names that statements bind in their scope."""
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield node.name, False
        elif isinstance(node, OWN_SCOPE):
            continue
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                yield node.id, loop
        elif isinstance(node, ast.For):
            yield from bound_names([node.target], loop=True)
            yield from bound_names([node.iter, *node.body, *node.orelse])
        else:
            yield from bound_names(ast.iter_child_nodes(node), loop)


def one_meaning(chapter):
    """No name of the notebook is bound in two cells, so a cell can be run again."""
    cells, lasting = {}, set()
    for number, cell in enumerate(chapter.code, start=1):
        for name, loop in bound_names(parsed(cell)):
            cells.setdefault(name, set()).add(number)
            if not loop:
                lasting.add(name)
    for name in sorted(lasting - SHORT_LIVED):
        if len(cells[name]) > 1:
            yield f"{name} is bound in the code cells {sorted(cells[name])}"


# -- what is stored -------------------------------------------------------------------


def run_in_order(chapter):
    """Run once, from the first cell to the last, with nothing gone wrong."""
    counts = [cell.execution_count for cell in chapter.code]
    if counts != list(range(1, len(counts) + 1)):
        yield f"not run from top to bottom: {counts}"
    yield from notebooks.problems(chapter.nb)


def stable_outputs(chapter):
    """Nothing that another machine, a GPU or another run would print differently."""
    for index, cell in enumerate(chapter.nb.cells):
        for _, text in texts(cell.get("outputs", [])):
            for what, pattern in UNSTABLE.items():
                if found := re.search(pattern, str(text)):
                    where = notebooks.where(chapter.nb, index)
                    yield f"{where} shows {what}: {found.group()}"


def nothing_private(chapter):
    """No path of a machine, no local address, no secret, in source or output."""
    for index, cell in enumerate(chapter.nb.cells):
        shown = [str(text) for _, text in texts(cell.get("outputs", []))]
        for what, pattern in PRIVATE.items():
            if found := re.search(pattern, "\n".join([cell.source, *shown])):
                where = notebooks.where(chapter.nb, index)
                yield f"{where} holds {what}: {found.group()}"


def stored_form(chapter):
    """Byte for byte what the tool writes: alt texts set, no state of one run; small."""
    text = chapter.path.read_text(encoding="utf-8")
    if text != notebooks.stored(chapter.nb):
        yield "not in the stored form; run make notebooks"
    if len(text.encode()) >= 1_500_000:
        yield f"{len(text.encode()) / 1e6:.1f} MB, not under 1.5"


CHECKS = (
    sections,
    frame,
    exercises,
    install_cell,
    cell_length,
    prose_per_cell,
    predictions,
    plain_markdown,
    shell_scripts,
    links,
    one_meaning,
    run_in_order,
    stable_outputs,
    nothing_private,
    stored_form,
)
