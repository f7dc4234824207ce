"""What the book takes from the course: links, terms, references, names."""

import re
import shlex
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

import badges
import build_book
import normlab

sys.path.append(str(badges.ROOT / "book" / "_ext"))
import course

SIX = "notebooks/06_groupnorm.ipynb"


def test_links_open_the_chapter_on_colab_and_binder():
    assert badges.links(SIX) == {
        "Colab": "https://colab.research.google.com/github/normlab/normlab/blob/main/"
        "notebooks/06_groupnorm.ipynb",
        "Binder": "https://mybinder.org/v2/gh/normlab/normlab/main"
        "?labpath=notebooks%2F06_groupnorm.ipynb",
    }


def test_a_changed_style_alone_builds_the_book_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(build_book, "ROOT", tmp_path)
    monkeypatch.setattr(build_book, "HTML", tmp_path / "html")
    for folder in (tmp_path / "book" / "_static", tmp_path / "html" / "_static"):
        folder.mkdir(parents=True)
        (folder / "normlab.css").write_text("a { color: red }")
    assert not build_book.style_has_changed()
    (tmp_path / "book" / "_static" / "normlab.css").write_text("a { color: tan }")
    assert build_book.style_has_changed()
    (tmp_path / "html" / "_static" / "normlab.css").unlink()
    assert build_book.style_has_changed()


def test_a_hub_clones_the_repository_and_opens_the_chapter_in_it():
    url = urlsplit(badges.links(SIX, "https://hub.example.edu/")["JupyterHub"])
    assert (url.scheme, url.netloc) == ("https", "hub.example.edu")
    assert url.path == "/hub/user-redirect/git-pull"
    assert parse_qs(url.query) == {
        "repo": ["https://github.com/normlab/normlab"],
        "branch": ["main"],
        "urlpath": ["lab/tree/normlab/notebooks/06_groupnorm.ipynb"],
    }


def test_another_repository_in_pyproject_changes_every_link(tmp_path, monkeypatch):
    text = (badges.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    fork = text.replace("github.com/normlab/normlab", "github.com/someone/norms")
    (tmp_path / "pyproject.toml").write_text(fork, encoding="utf-8")
    monkeypatch.setattr(badges, "ROOT", tmp_path)
    links = badges.links(SIX, "https://hub.example.edu")
    assert all("someone" in url and "normlab" not in url for url in links.values())


def test_badges_are_printed_for_every_chapter():
    command = [sys.executable, "tools/badges.py", *shlex.split("--hub https://h.org")]
    done = subprocess.run(command, cwd=badges.ROOT, capture_output=True, text=True)
    rows = done.stdout.splitlines()
    assert [row.split("`")[1] for row in rows] == [
        path.removeprefix("notebooks/").removesuffix(".ipynb")
        for path in badges.notebooks()
    ]
    badge = r"\[!\[Open in (\w+)\]\(https://[^)\s]+\)\]\(https://[^)\s]+\)"
    assert re.findall(badge, rows[6]) == ["Colab", "Binder", "JupyterHub"]


def test_the_table_of_contents_holds_every_chapter_in_order():
    chapters = [f for f in course.table_of_contents() if f.startswith("notebooks/")]
    assert [f"{name}.ipynb" for name in chapters] == badges.notebooks()


def test_a_section_becomes_a_link_with_its_title():
    assert course.fill("See {section}`6.7`.") == (
        "See [6.7 num_groups=C: every channel its own group]"
        "(../notebooks/06_groupnorm.ipynb#67-num_groupsc-every-channel-its-own-group)."
    )
    with pytest.raises(KeyError):
        course.fill("{section}`6.99`")


def test_a_chapter_cut_from_the_book_leaves_no_dead_link(monkeypatch):
    monkeypatch.setattr(course, "table_of_contents", lambda: ["notebooks/06_groupnorm"])
    assert course.fill("{chapter}`5`, {chapter}`6`") == (
        "chapter 5, [chapter 6](../notebooks/06_groupnorm.ipynb)"
    )
    cards = "\n".join(course.chapter_cards())
    assert "6. GroupNorm" in cards
    assert "InstanceNorm" not in cards
    text = "[5](05_instancenorm.ipynb#x), [6](06_groupnorm.ipynb)"
    assert course.mend_links(text) == (
        "[5](https://github.com/normlab/normlab/blob/main/notebooks/"
        "05_instancenorm.ipynb), [6](06_groupnorm.ipynb)"
    )


def test_a_heading_is_linked_to_in_either_spelling():
    for anchor in ("#What-comes-next", "#what-comes-next"):
        for name in ("", "06_groupnorm.ipynb"):
            mended = course.mend_links(f"[on]({name}{anchor})")
            assert mended == f"[on]({name}#what-comes-next)"


def test_papers_and_documentation_in_the_chapters_are_references():
    linked = set()
    for chapter in filter(lambda c: c.in_book, course.chapters().values()):
        links = re.findall(r"\]\((https?://[^)\s]+)\)", chapter.markdown)
        linked |= {u for u in links if "arxiv.org/" in u or "docs.pytorch.org/" in u}
    assert linked == set(course.references().values())


def test_every_term_is_used_in_the_sections_it_names():
    terms = yaml.safe_load((course.BOOK / "glossary.yml").read_text(encoding="utf-8"))
    missing = []
    for term, entry in terms.items():
        assert entry.keys() <= {"zh", "in", "means"}, term
        for number in entry["in"].split():
            chapter = course.chapters()[number.partition(".")[0]]
            _, _, rest = chapter.markdown.partition(f"## {chapter.sections[number]}\n")
            section = re.split(r"^## ", rest, maxsplit=1, flags=re.M)[0]
            section = f"{chapter.sections[number]} {section}".lower()
            words = set(re.findall(r"\w+", term.lower())) - {"and", "mode", "of"}
            # By its stem: reduced, reduces; fold, folding.
            if not all(word[:5] in section for word in words):
                missing.append((term, number))
    assert missing == []


def test_the_reference_documents_every_public_name():
    parts = course.api_names()
    shown = [course.resolve(name) for names in parts.values() for name in names]
    missing = [
        name
        for name in normlab.__all__
        if name not in normlab._MODULES and getattr(normlab, name) not in shown
    ]
    assert missing == []
