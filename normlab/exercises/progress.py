"""What is solved, kept in a file on this machine. Nothing leaves it.

The file is JSON: ``{"solved": {"6.1": "2030-01-31", "quiz 6": ...}}``, in the folder
for such data that the system has, or where the environment variable NORMLAB_PROGRESS
says. A file that cannot be read is renamed and a new one begun; where a link stands,
all this happens to the file that it leads to. What is not a regular file, such as a
folder or ``/dev/null``, is left alone, and nothing is kept. Saving never fails aloud:
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
        return _read(_file())
    except (OSError, ValueError, RuntimeError):
        return {}


def record(number):
    """Note that an exercise is solved. Never raises."""
    # RuntimeError: there may be no home folder.
    with contextlib.suppress(OSError, RuntimeError):
        file = _file()
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


def off():
    """Why nothing can be kept, as a sentence; empty when it can."""
    try:
        _file()
    except (OSError, RuntimeError) as error:
        return (
            f"Progress is off: {error}. Let NORMLAB_PROGRESS name a file to keep what "
            "you solve."
        )
    return ""


class Progress:
    """What is solved, chapter by chapter, as text and as a table.

    `note` is a sentence above it; `quizzes` are the chapters that have a quiz.
    """

    def __init__(self, chapters, done, quizzes=(), note=""):
        self.note, self.rows = note, []
        for number, exercises in chapters.items():
            numbers = [one.number for one in exercises.values()]
            quiz = [f"quiz {number}"] if number in quizzes else []
            marks = [
                f"{'✓' if name in done else '·'} {name}" for name in numbers + quiz
            ]
            solved = sum(one in done for one in numbers)
            self.rows.append((number, solved, len(numbers), marks))

    def __repr__(self):
        lines = [
            f"Chapter {number}: {done} of {total} solved  {'  '.join(marks)}"
            for number, done, total, marks in self.rows
        ]
        return "\n".join([self.note, *lines] if self.note else lines)

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{number}</td><td>{done} of {total}</td>"
            f"<td>{escape('  '.join(marks))}</td></tr>"
            for number, done, total, marks in self.rows
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (
            f"{note}<table><caption>Solved (✓) and open (·)</caption><thead><tr>"
            '<th scope="col">Chapter</th><th scope="col">Exercises solved</th>'
            '<th scope="col">Exercises and quiz</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>"
        )


def progress():
    """Show what is solved, chapter by chapter, and which quizzes are finished."""
    from normlab.exercises import chapters

    files = (Path(__file__).parent / "quizzes").glob("chapter??.json")
    quizzes = {int(file.stem[-2:]) for file in files}
    return Progress(chapters(), solved(), quizzes, off())


def _file():
    """`path`, with links followed; OSError where no regular file is or can be."""
    file = Path(os.path.realpath(path()))
    if file.exists():
        if not file.is_file():  # replaced, a device would be lost to the whole system
            raise OSError(f"{file} is not a regular file")
    else:
        folder = next(one for one in file.parents if one.exists())
        if not folder.is_dir():
            raise OSError(f"{folder} is not a folder")
    return file


def _read(file):
    """The entries of the file; ValueError if it is not what `_write` writes."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except RecursionError:  # a RuntimeError, which would mean that there is no home
        raise ValueError("nested too deeply") from None
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
