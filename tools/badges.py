"""The links that open a chapter elsewhere, and the badges of the README.

    python tools/badges.py                                  # Colab and Binder
    python tools/badges.py --hub https://hub.example.edu    # your JupyterHub too

Owner and repository stand in pyproject.toml, under [project.urls]. The book puts the
same links on top of every chapter.
"""

import argparse
import tomllib
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

ROOT = Path(__file__).resolve().parents[1]
BRANCH = "main"
BADGES = {
    "Colab": "https://colab.research.google.com/assets/colab-badge.svg",
    "Binder": "https://mybinder.org/badge_logo.svg",
    "JupyterHub": "https://img.shields.io/badge/launch-JupyterHub-f37726.svg",
}


def repository():
    """The address of the repository, and its "owner/name"."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    url = project["project"]["urls"]["Repository"]
    return url, urlsplit(url).path.strip("/")


def notebooks():
    """The chapters, as paths from the root of the repository."""
    return [f"notebooks/{p.name}" for p in sorted((ROOT / "notebooks").glob("*.ipynb"))]


def links(notebook, hub=""):
    """Where ``notebook`` opens, by name. JupyterHub only if ``hub`` says which."""
    url, name = repository()
    found = {
        "Colab": f"https://colab.research.google.com/github/{name}/blob/{BRANCH}/"
        + quote(notebook),
        "Binder": f"https://mybinder.org/v2/gh/{name}/{BRANCH}?"
        + urlencode({"labpath": notebook}),
    }
    if hub:
        # nbgitpuller clones the repository into the home folder of whoever follows
        # the link, or updates it there without touching what they changed.
        query = {
            "repo": url,
            "branch": BRANCH,
            "urlpath": f"lab/tree/{name.split('/')[1]}/{notebook}",
        }
        found["JupyterHub"] = (
            f"{hub.rstrip('/')}/hub/user-redirect/git-pull?{urlencode(query)}"
        )
    return found


def badges(notebook, hub=""):
    """The links as Markdown images, in one line."""
    return " ".join(
        f"[![Open in {name}]({BADGES[name]})]({url})"
        for name, url in links(notebook, hub).items()
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hub", default="", help="address of a JupyterHub")
    args = parser.parse_args(argv)
    for notebook in notebooks():
        print(f"| `{Path(notebook).stem}` | {badges(notebook, args.hub)} |")


if __name__ == "__main__":
    main()
