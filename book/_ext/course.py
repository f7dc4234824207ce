"""What the pages take from the course itself, so that it stands nowhere twice.

In a page's Markdown, ``<!-- normlab: chapters -->`` is replaced by the cards of all
chapters, likewise ``exercises``, ``glossary``, ``citations`` and ``api``;
``{section}`6.7` `` becomes a link to that section of its chapter, and ``{chapter}`6` ``
one to the chapter.
"""

import inspect
import json
import re
from functools import cache
from pathlib import Path

import yaml
from myst_parser.mdit_to_docutils.base import default_slugify
from pybtex.database import parse_file

import badges
import normlab
from normlab import exercises

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"


# ---------------------------------------------------------------------- the chapters


class Chapter:
    """A notebook: its number, its title, how it begins, and its sections."""

    def __init__(self, path):
        self.path = path
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        self.markdown = "\n\n".join(
            "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
        )
        head, _, rest = self.markdown.partition("\n")
        self.number, self.title = re.fullmatch(r"# (\d+)\. (.+)", head).groups()
        self.sentence = re.split(r"(?<=[.?!])\s", " ".join(rest.split()), maxsplit=1)[0]
        minutes = re.search(r"about (\d+) minutes|About (\d+) minutes", rest)
        self.minutes = minutes and next(filter(None, minutes.groups()))
        headings = re.findall(r"^## ((\d+\.\d+) .+)$", self.markdown, re.M)
        self.sections = {number: title for title, number in headings}

    @property
    def in_book(self):
        return f"notebooks/{self.path.stem}" in table_of_contents()

    def link(self, text, anchor=""):
        """A Markdown link from a page of the book; its text alone, if cut from it."""
        link = f"[{text}](../notebooks/{self.path.name}{anchor})"
        return link if self.in_book else text


@cache
def chapters():
    """All chapters by number, also those that the book leaves out."""
    found = map(Chapter, sorted((ROOT / "notebooks").glob("*.ipynb")))
    return {chapter.number: chapter for chapter in found}


@cache
def table_of_contents():
    """The files of the book, in its order, as _toc.yml names them."""
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    return [page["file"] for part in toc["parts"] for page in part["chapters"]]


def section_link(number):
    """A Markdown link to a section such as 6.7, with its title."""
    chapter = chapters()[number.partition(".")[0]]
    title = chapter.sections[number]
    return chapter.link(title, "#" + default_slugify(re.sub(r"[`$*]", "", title)))


def chapter_link(number):
    return chapters()[number].link(f"chapter {number}")


def chapter_cards():
    yield "::::{grid} 1 2 2 3\n:gutter: 3\n:class-container: chapters\n"
    by_file = {f"notebooks/{c.path.stem}": c for c in chapters().values()}
    for file in filter(by_file.get, table_of_contents()):
        chapter = by_file[file]
        short = chapter.title.split(": ")[0].split("? ")
        title = short[0] + ("?" if len(short) > 1 else "")
        yield f":::{{grid-item-card}} {chapter.number}. {title}"
        yield f":link: ../{file}\n:link-type: doc\n"
        yield chapter.sentence
        if chapter.minutes:
            yield f"\n[about {chapter.minutes} minutes]{{.minutes}}"
        yield ":::\n"
    yield "::::"


def exercises_by_difficulty():
    """A table with links to all exercises of the chapters, by what the answer is."""
    yield "| Chapter | Easier: a letter, a value or a pattern | Harder: code |"
    yield "|---|---|---|"
    for number, found in exercises.chapters().items():
        chapter = chapters()[str(number)]
        links = {False: [], True: []}
        for exercise in found.values():
            anchor = "#" + default_slugify(f"Exercise {exercise.number}")
            is_code = isinstance(exercise, exercises.Code | exercises.Free)
            links[is_code].append(chapter.link(exercise.number, anchor))
        easier, harder = (", ".join(kind) or "none" for kind in links.values())
        yield f"| {chapter.link(number)} | {easier} | {harder} |"


def mend_links(text):
    """A chapter's text with its links as the book needs them.

    JupyterLab calls a heading ``#Its-words``, MyST ``#its-words``. A chapter that is
    cut from the book is linked to in the repository.
    """
    text = re.sub(
        r"\]\((\w*(?:\.ipynb)?)#([^)\s]+)\)",
        lambda m: f"]({m[1]}#{default_slugify(m[2].replace('-', ' '))})",
        text,
    )
    for chapter in chapters().values():
        if not chapter.in_book:
            url = f"{badges.repository()[0]}/blob/{badges.BRANCH}/notebooks/"
            name = re.escape(chapter.path.name)
            text = re.sub(rf"\]\(({name})[^)]*\)", rf"]({url}\1)", text)
    return text


# ----------------------------------------------------------------------- the glossary


def glossary():
    """The terms of glossary.yml, in the order of the alphabet."""
    terms = yaml.safe_load((BOOK / "glossary.yml").read_text(encoding="utf-8"))
    yield "```{glossary}"
    for term, entry in sorted(terms.items(), key=lambda item: item[0].lower()):
        yield term
        chinese = f"{{zh}}`{entry['zh']}` · " if "zh" in entry else ""
        where = ", ".join(f"{{section}}`{number}`" for number in entry["in"].split())
        yield f"  {chinese}{' '.join(entry['means'].split())}\n"
        yield f"  In the chapters: {where}.\n"
    yield "```"


# --------------------------------------------------------------------- the references


def references():
    """The addresses of the papers and pages in references.bib, by their keys."""
    entries = parse_file(str(BOOK / "references.bib")).entries
    return {
        key: entry.fields.get("url")
        or f"https://arxiv.org/abs/{entry.fields['eprint']}"
        for key, entry in entries.items()
    }


def cited():
    """The keys of references.bib by the number of the chapter that links to them."""
    return {
        number: [k for k, url in references().items() if f"]({url})" in c.markdown]
        for number, c in chapters().items()
        if c.in_book
    }


def citations():
    for number, keys in cited().items():
        if keys:
            yield f"- {{chapter}}`{number}`: {{cite:t}}`{','.join(keys)}`"


# ------------------------------------------------------------------------------- api

# What each part of the reference holds; every public name of normlab is in one.
API = {
    "Layers": "BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm InstanceNorm1d "
    "InstanceNorm2d InstanceNorm3d GroupNorm RMSNorm Norm SyncBatchNorm",
    "A whole model": "replace_norms device",
    "Functions": "functional",
    "The notation": "axes",
    "Diagrams": "diagrams",
    "Explorers": "widgets",
    "Exercises": "quiz progress exercises",
}


def api_names():
    """For each part of the reference, the full names that it documents."""
    parts = {}
    for heading, names in API.items():
        parts[heading] = []
        for name in filter(normlab.__all__.__contains__, names.split()):
            thing = getattr(normlab, name)
            inner = thing.__all__ if inspect.ismodule(thing) else [""]
            parts[heading] += [f"normlab.{name}.{n}".rstrip(".") for n in inner]
    return parts


def resolve(name):
    """The thing that a full name such as normlab.axes.parse names."""
    thing = normlab
    for part in name.split(".")[1:]:
        thing = getattr(thing, part)
    return thing


def api():
    for heading, names in api_names().items():
        yield f"## {heading}\n\n````{{eval-rst}}"
        for name in names:
            thing = resolve(name)
            if inspect.isclass(thing):
                yield f".. autoclass:: {name}"
                if name.startswith("normlab.axes"):
                    yield "   :members:"
            elif callable(thing):
                yield f".. autofunction:: {name}"
        yield "````\n"


# ------------------------------------------------------------------------- filling in

MAKERS = {
    "chapters": chapter_cards,
    "exercises": exercises_by_difficulty,
    "glossary": glossary,
    "citations": citations,
    "api": api,
}


def fill(text):
    """A page's Markdown with what it asks for put in."""
    text = re.sub(r"<!-- normlab: (\w+) -->", lambda m: "\n".join(MAKERS[m[1]]()), text)
    text = re.sub(r"\{section\}`([\d.]+)`", lambda m: section_link(m[1]), text)
    return re.sub(r"\{chapter\}`(\d+)`", lambda m: chapter_link(m[1]), text)
