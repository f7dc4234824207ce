"""Sphinx extension: explorers, math and links that need neither kernel nor network.

- A stored explorer, or ``{explorer} AxisPicker`` with its arguments as JSON on a page,
  is a still picture until the page's script mounts it. The script holds just the
  explorers of that page.
- MathJax comes from the package sphinx-mathjax-offline.
- Every chapter has a line that says where to run it (tools/badges.py makes the links).
- What course.py finds in notebooks, glossary and docstrings is filled in.
"""

import hashlib
import html
import json
import re
import shutil
import struct
import sys
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import urlencode

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective, SphinxRole

import normlab

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]

import badges  # noqa: E402
import course  # noqa: E402

WIDGET = re.compile(r'class="normlab-widget" data-widget="(\w+)"')
# A hub's address is not known here, so the reader's takes the place of this one.
HUB = "https://hub.invalid"


# ------------------------------------------------------------------------- explorers


class Explorer(SphinxDirective):
    """An explorer on a page: its class, and its arguments as a JSON object.

    With the option ``:address:`` the page's address follows the explorer's state.
    """

    has_content = True
    required_arguments = 1
    option_spec = {"address": directives.flag}

    def run(self):
        arguments = json.loads("\n".join(self.content) or "{}")
        text = getattr(normlab, self.arguments[0])(**arguments).to_html()
        if "address" in self.options:
            text = f"<div data-address>{text}</div>"
        return [nodes.raw("", text, format="html")]


class StateLinks(SphinxDirective):
    """Links to this page with its explorer in another state: lines `title = {...}`."""

    has_content = True
    required_arguments = 1

    def run(self):
        stem = getattr(normlab, self.arguments[0]).stem
        rows = []
        for line in self.content:
            title, _, state = line.partition(" = ")
            # As mount.js reads it, and whole: a link must not keep what was there.
            shown = getattr(normlab, self.arguments[0])(**json.loads(state))
            address = urlencode({f"{stem}-1": json.dumps(shown.snapshot())})
            rows.append(
                f'<li><a href="#{html.escape(address)}">{html.escape(title)}</a> '
                f'<code class="literal">{html.escape(shown.pattern)}</code></li>'
            )
        listing = f'<ul class="states">{"".join(rows)}</ul>'
        return [nodes.raw("", listing, format="html")]


def add_explorers(app, context):
    """Load the script of the explorers that a page shows, if it shows any."""
    from normlab.widgets import bundle

    stems = sorted(set(WIDGET.findall(context["body"])))
    if stems:
        name = f"explorers-{'-'.join(stems)}.js"
        folder = Path(app.outdir, "_static")
        folder.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_text(bundle(*stems), encoding="utf-8")
        app.add_js_file(name, loading_method="async", fetchpriority="high")


# ------------------------------------------------------------------------------ math


def use_local_mathjax(app, config):
    config.mathjax_path = "mathjax/tex-mml-chtml.js"
    # normlab.js starts it when the explorers are live; it then sets what comes in view.
    config.mathjax_options = {"type": "text/later", "id": "mathjax"}
    config.mathjax3_config = {"loader": {"load": ["ui/lazy"]}}


def copy_mathjax(app, exception):
    """MathJax without the bundles and the SVG output that no page asks for."""
    target = Path(app.outdir, "_static", "mathjax")
    if exception or app.builder.format != "html" or target.exists():
        return
    files = distribution("sphinx-mathjax-offline")
    source = Path(files.locate_file("sphinx-mathjax-offline/static/mathjax"))
    unused = {p.name for p in source.glob("*.js")} - {"tex-mml-chtml.js"} | {"svg"}
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*unused))


# ------------------------------------------------------------------------ every page


def lighten(app, exception):
    """Leave out what the theme loads for nothing, and let no script hold a page up.

    For nothing are 1.5 MB for icons of one's own, where the theme's are in a font; and
    the index for a search while typing, which is off: search.html loads its own. Only
    the script whose variables are set within the page has to run before it goes on.
    """
    if exception or app.builder.format != "html":
        return
    icons = r"<script defer src=\S*/fontawesome\.js\S*></script>"
    search = r"<script src=\S*(searchtools|language_data|searchindex)\.js\S*></script>"
    holding = r'<script (?=(data-\S+ )?src=)(?!src="\S*/documentation_options\.js)'
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        kept = re.sub(icons, "", text)
        if page.name != "search.html":
            kept = re.sub(search, "", kept)
            kept = re.sub(holding, "<script defer ", kept)
        if kept != text:
            page.write_text(kept, encoding="utf-8")
    Path(app.outdir, "_static", "scripts", "fontawesome.js").unlink(missing_ok=True)


def launchers(hub, pagename):
    """The line on top of a chapter that says where its cells run."""
    notebook = f"{pagename}.ipynb"
    found = badges.links(notebook, hub or HUB)
    own = found.pop("JupyterHub")
    items = [f'<a href="{html.escape(url)}">{name}</a>' for name, url in found.items()]
    if hub:
        items.append(f'<a href="{html.escape(own)}">JupyterHub</a>')
    else:
        items.append(
            "<details><summary>JupyterHub</summary>"
            f'<form data-link="{html.escape(own)}" data-hub="{html.escape(HUB)}">'
            '<label>Address of your hub <input type="url" required '
            'placeholder="https://hub.example.edu"></label> '
            "<button>Open</button></form></details>"
        )
    items.append(f'<a href="../_sources/{notebook}" download>Download .ipynb</a>')
    return (
        '<div class="launchers" role="group" aria-label="Run this chapter">'
        "<p>The outputs below are stored; the explorers work as they are. "
        f"To run and change the cells:</p>{''.join(items)}</div>"
    )


def size_of(path):
    """Width and height of a PNG, from its header; None for anything else."""
    with open(path, "rb") as file:
        head = file.read(24)
    is_png = head.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", head[16:24]) if is_png else None


def sized_image(app):
    """Give an image its size, so that nothing jumps, and load it when it is near."""
    files = {name: source for source, name in app.builder.images.items()}

    def improve(match):
        name = match[2].rpartition("/")[2]
        size = files.get(name) and size_of(Path(app.srcdir, files[name]))
        extra = f' width="{size[0]}" height="{size[1]}"' if size else ""
        return f'{match[0]}{extra} loading="lazy" decoding="async"'

    return improve


def improve_page(app, pagename, templatename, context, doctree):
    body = context.get("body")
    # Thebe is not used and asks a CDN for its script; MathJax is used where math is.
    unused = "thebe" if 'class="math' in (body or "") else "thebe|mathjax"
    context["script_files"][:] = [
        script
        for script in context["script_files"]
        if not re.search(
            unused, f"{script.filename} {script.attributes.get('body')}", re.I
        )
    ]
    if not body:
        return
    body = re.sub(r'<img ([^>]*?)src="([^"]+)"', sized_image(app), body)
    # The number of a chapter or section, the Chinese words, and the predictions.
    body = re.sub(
        r"<(h[12])>(\d+(?:\.\d+)?\.?) ", r'<\1><span class="number">\2</span> ', body
    )
    body = body.replace('<span class="zh">', '<span class="zh" lang="zh-Hans">')
    body = body.replace(
        "<p><strong>Predict.</strong>", '<p class="predict"><strong>Predict.</strong>'
    )
    # Sphinx calls the references a list whose entries are no list items.
    body = body.replace('<div role="list" class="citation-list">', "<div>")
    if pagename.startswith("notebooks/"):
        row = launchers(app.config.normlab_hub, pagename)
        body = body.replace("</h1>", f"</h1>{row}", 1)
    context["body"] = body
    add_explorers(app, context)


class Chinese(SphinxRole):
    def run(self):
        return [nodes.inline("", self.text, classes=["zh"])], []


def fill_in(app, docname, source):
    if docname.startswith("notebooks/"):
        source[0] = course.mend_links(source[0])
    else:
        source[0] = course.fill(source[0])
        for name in ("glossary.yml", "references.bib"):
            app.env.note_dependency(str(course.BOOK / name))


def code_digest():
    """Changes with what pages are made from besides their text."""
    files = [*HERE.glob("*.py"), Path(badges.__file__)]
    files += Path(normlab.__file__).parent.rglob("*.*")
    digest = hashlib.sha256()
    for file in sorted(f for f in files if f.suffix in {".py", ".js", ".css"}):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def setup(app):
    app.add_config_value("normlab_code", code_digest(), "env")
    app.add_config_value("normlab_hub", "", "html")
    app.add_directive("explorer", Explorer)
    app.add_directive("explorer-states", StateLinks)
    app.add_role("zh", Chinese())
    app.connect("config-inited", use_local_mathjax)
    app.connect("source-read", fill_in)
    app.connect("html-page-context", improve_page, priority=900)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
