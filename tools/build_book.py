"""Build the course as a website: book/_build/html.

    python tools/build_book.py

Takes the notebooks with their stored outputs and runs nothing. A warning is an error.
What has not changed since the last build is not built again.
"""

import filecmp
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "book" / "_build" / "html"
COMMAND = [
    *(sys.executable, "-c", "from jupyter_book.cli.main import main; main()"),
    *("build", ".", "--config", "book/_config.yml", "--toc", "book/_toc.yml"),
    *("--path-output", "book", "-W", "--keep-going", "-q"),
]


def style_has_changed():
    """Sphinx copies style and scripts only with a page that has changed."""
    folders = ROOT / "book" / "_static", HTML / "_static"
    _, different, missing = filecmp.cmpfiles(
        *folders, [path.name for path in folders[0].iterdir()], shallow=False
    )
    return bool(different or missing)


def build():
    """Build, and return what the build says and whether it is right."""
    command = [*COMMAND, *["--all"] * style_has_changed()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode == 0


if __name__ == "__main__":
    text, right = build()
    if not right:
        sys.exit(text)
    print("The book is", HTML / "index.html")
