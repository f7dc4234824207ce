"""What is solved, kept in a file on this machine. Nothing leaves it.

The file is JSON: ``{"solved": {"6.1": "2030-01-31", ...}}``, in the folder for such
data that the system has, or where the environment variable NORMLAB_PROGRESS says. A
file that cannot be read is renamed and a new one begun. Saving never fails aloud:
whether an answer is right does not depend on a disk.
"""

import contextlib
import datetime
import json
import os
import sys
import time
from html import escape
from pathlib import Path

# Seconds to wait for another kernel, and after which its lock counts as left behind.
PATIENCE, STALE = 2.0, 10.0


def path():
    """Where the file is or will be."""
    chosen = os.environ.get("NORMLAB_PROGRESS")
    if chosen:
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "normlab" / "progress.json"


def solved():
    """The exercises solved: number to date. Empty when there is no readable file."""
    try:
        return _read(path())
    except (OSError, ValueError, RuntimeError):
        return {}


def record(number):
    """Note that an exercise is solved. Never raises."""
    # RuntimeError: there may be no home folder.
    with contextlib.suppress(OSError, RuntimeError):
        file = path()
        file.parent.mkdir(parents=True, exist_ok=True)
        with _lock(file):
            try:
                entries = _read(file)
            except FileNotFoundError:
                entries = {}
            except ValueError:
                _set_aside(file)
                entries = {}
            if number not in entries:
                entries[number] = datetime.date.today().isoformat()
                _write(file, entries)


class Progress:
    """What is solved, chapter by chapter, as text and as a table."""

    def __init__(self, chapters, done):
        self.rows = [
            (
                number,
                sum(one.number in done for one in exercises.values()),
                len(exercises),
                [
                    f"{'✓' if one.number in done else '·'} {one.number}"
                    for one in exercises.values()
                ],
            )
            for number, exercises in chapters.items()
        ]

    def __repr__(self):
        return "\n".join(
            f"Chapter {number}: {done} of {total} solved  {'  '.join(marks)}"
            for number, done, total, marks in self.rows
        )

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{number}</td><td>{done} of {total}</td>"
            f"<td>{escape('  '.join(marks))}</td></tr>"
            for number, done, total, marks in self.rows
        )
        return (
            "<table><caption>Exercises solved (✓) and open (·)</caption><thead><tr>"
            '<th scope="col">Chapter</th><th scope="col">Solved</th>'
            f'<th scope="col">Exercises</th></tr></thead><tbody>{rows}</tbody></table>'
        )


def progress():
    """Show what is solved, chapter by chapter."""
    from normlab.exercises import chapters

    return Progress(chapters(), solved())


def _read(file):
    """The entries of the file; ValueError if it is not what `_write` writes."""
    data = json.loads(file.read_text(encoding="utf-8"))
    entries = data.get("solved") if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        raise ValueError("no entries")
    if not all(isinstance(value, str) for value in entries.values()):
        raise ValueError("an entry is not a date")
    return entries


def _write(file, entries):
    # Another name first, then the switch: a reader sees the old file or the new one.
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    new.write_text(json.dumps({"solved": entries}, indent=1), encoding="utf-8")
    os.replace(new, file)


def _set_aside(file):
    kept = file.with_name(f"{file.stem}.damaged-{time.time_ns()}{file.suffix}")
    os.replace(file, kept)


@contextlib.contextmanager
def _lock(file):
    """One kernel at a time: the holder of a file that only one can create."""
    lock = file.with_name(file.name + ".lock")
    deadline = time.monotonic() + PATIENCE
    held = False
    while not held and time.monotonic() < deadline:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            held = True
        except (FileExistsError, PermissionError):  # Windows: being deleted
            with contextlib.suppress(OSError):
                if time.time() - lock.stat().st_mtime > STALE:
                    lock.unlink()  # its kernel died
            time.sleep(0.01)
    try:
        yield  # after so long without a lock, an entry is better than none
    finally:
        if held:
            with contextlib.suppress(OSError):
                lock.unlink()
