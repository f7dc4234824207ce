"""When an answer raises an error: which, and in which of the student's lines."""

import sys
import sysconfig
import traceback
from pathlib import Path

import torch

from normlab.exercises.limits import TimeUp

_LIBRARIES = (
    Path(__file__).resolve().parent.parent,
    Path(sysconfig.get_path("stdlib")),
    Path(sys.prefix),
    Path(torch.__file__).parent,
)


def text_of(thing):
    """str(thing), whatever its class makes of that: a text of no class but `str`."""
    try:
        return str.__str__(str(thing))
    except TimeUp:
        raise
    except BaseException:  # a text is wanted, not one more error
        return "its text cannot be read"


def explained(error):
    """The outcome when the answer raised an error: which, and in which line."""
    text = text_of(error).strip()
    if "ellipsis" in text.lower() and isinstance(error, TypeError):
        return "not attempted", "There is still a `...` in your code.", ()
    if isinstance(error, RecursionError):
        text = "the function calls itself for ever"
    message = (
        f"{type(error).__name__}: {text.splitlines()[0] if text else 'no message'}"
    )
    line = _line_of(error)
    if line is None:
        return "wrong", f"The check cannot work with this answer. {message}", ()
    return "error", message, (("line", line),)


def _line_of(error):
    """The last line of the student's own code on the way to an error."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if not any(file.is_relative_to(folder) for folder in _LIBRARIES):
            return f"{frame.lineno}: {frame.line}" if frame.line else str(frame.lineno)
    return None
