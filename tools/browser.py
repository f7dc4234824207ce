"""Find a Chromium for the browser tests, or install one.

    python tools/browser.py

takes the first of: what ``NORMLAB_BROWSER`` names, a Chromium or Chrome of this system,
Playwright's own, a new one from Playwright, and, on Debian or Ubuntu as root, the
package chromium. The tests call ``find()``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
FONTS = "fonts-liberation"
INSTALLERS = (
    [[sys.executable, "-m", "playwright", "install", "chromium"]],
    # What Debian recommends beside it is a hundred packages more, printing and all.
    [
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "--no-install-recommends", "chromium", FONTS],
    ],
)


def find():
    """The path of a Chromium that is installed, or None."""
    named = os.environ.get("NORMLAB_BROWSER")
    if named:
        return shutil.which(named)
    installed = [path for path in map(shutil.which, NAMES) if path]
    installed += [path for path in PLACES if Path(path).exists()]
    return (installed or [playwright()])[0]


def playwright():
    """The path of the Chromium that Playwright has downloaded, or None."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        path = p.chromium.executable_path
    return path if Path(path).exists() else None


def main():
    for commands in INSTALLERS:
        if find():
            break
        if commands[0][0] == "apt-get" and not (
            shutil.which("apt-get") and os.geteuid() == 0
        ):
            continue
        for command in commands:
            print("normlab:", *command, flush=True)
            if subprocess.run(command).returncode:
                break
    browser = find()
    if not browser:
        sys.exit(
            "normlab: the browser tests need Chromium or Chrome, and none was found or "
            "could be installed.\nInstall one (Debian, Ubuntu: sudo apt install "
            "chromium; macOS: brew install --cask google-chrome)\nor name one: "
            "NORMLAB_BROWSER=/path/to/chrome make test"
        )
    print("normlab: the browser is", browser)


if __name__ == "__main__":
    main()
