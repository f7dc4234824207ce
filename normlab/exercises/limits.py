"""Running a student's code: within a time limit, and with what it prints held back.

The code runs in a thread of its own, because signals and alarms neither exist on
Windows nor reach a notebook's main thread while it waits. When time is up, or the
student interrupts, an exception is thrown into that thread. It arrives between two
steps of Python code, so an endless loop ends, also one that catches everything: from
then on each further line of the student's raises it again. A single call into compiled
code that never returns cannot be ended this way: the thread is left behind and ends
with the kernel. Compiled code that never lets go of Python's lock (``10 ** 10 ** 9``)
stops the waiting thread as well, and code that ends the process (``os._exit``, a crash
in compiled code) ends the kernel: only another process could survive those. Threads
that the code started itself go on. And where a debugger or coverage traces every call,
CPython 3.11 makes all threads wait until the exception has arrived, so there a call
that does not return is waited for. An import is let finish first, if it does so soon:
one half of a module would make every later import fail.
"""

import contextlib
import ctypes
import io
import sys
import threading
import time
import warnings
from dataclasses import dataclass

# Threads other than the main one get half a megabyte on macOS: too little for deep
# recursion, which should end in a RecursionError rather than in a dead kernel.
STACK = 16 * 1024 * 1024
LINES, CHARACTERS = 10, 600
IMPORT = 30.0  # seconds more for a module that is being imported


# Set in a thread that runs a student's code.
_this = threading.local()


class TimeUp(BaseException):
    """Thrown into the student's code; ``except Exception`` lets it pass.

    Python makes the object in the thread it was thrown into, the only place from which
    the lines of that thread can be traced: code that catches it meets it again.
    """

    def __init__(self, *args):
        super().__init__(*args)
        if getattr(_this, "runs", False):
            frame = sys._getframe(1)
            while frame and frame.f_code.co_filename != __file__:
                frame.f_trace = _again
                frame = frame.f_back
            sys.settrace(_again)


def _again(frame, event, argument):
    # An import that fails has to take its module back.
    if event == "line" and frame.f_code.co_filename != __file__ and not _imports(frame):
        raise TimeUp
    return _again


def _imports(frame):
    return frame.f_code.co_filename.startswith("<frozen importlib")


@dataclass
class Run:
    """What became of a call: `state` is done, raised, late, stuck or interrupted.

    Late code was stopped; what is stuck could not be.
    """

    state: str = "late"
    value: object = None
    error: BaseException | None = None
    printed: str = ""


class _Printed(io.TextIOBase):
    """Keeps the first characters written and forgets the others."""

    def __init__(self):
        super().__init__()
        self._kept = ""
        self._more = False

    def write(self, text):
        text = str.__str__(text)  # a class of the student's may slice as it likes
        room = CHARACTERS - len(self._kept)
        self._kept += text[:room]
        self._more |= len(text) > room
        return len(text)

    def shortened(self):
        lines = self._kept.splitlines()
        more = self._more or len(lines) > LINES
        return "\n".join([*lines[:LINES], *(["(and more)"] if more else [])])


def run(function, seconds):
    """Call function() for at most that many seconds; never raises."""
    result, finished, printed = Run(), threading.Event(), _Printed()

    def work():
        _this.runs = True
        with contextlib.suppress(TimeUp):
            try:
                result.value = function()
                result.state = "done"
            except TimeUp:
                raise
            except BaseException as error:  # SystemExit and MemoryError, too
                result.error, result.state = error, "raised"
            finally:
                finished.set()

    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("ignore")
        thread, heard, ended = _start(work), result, "late"
        try:
            _wait(finished, seconds)
        except KeyboardInterrupt:
            ended = "interrupted"
        if not finished.is_set():
            stopped = _stop(thread)
            # A new object: what the thread may still do is not heard.
            heard = Run(ended if stopped or ended == "interrupted" else "stuck")
    heard.printed = printed.shortened()
    return heard


def _start(work):
    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=work, daemon=True, name="normlab-exercise")
        thread.start()
    finally:
        threading.stack_size(before)
    return thread


def _wait(finished, seconds):
    # In short steps: on Windows a wait cannot be interrupted from the keyboard.
    step = 0.1
    while seconds > 0 and not finished.wait(min(step, seconds)):
        seconds -= step


def _importing(thread):
    frame = sys._current_frames().get(thread.ident)
    while frame and not _imports(frame):
        frame = frame.f_back
    return frame is not None


def _stop(thread):
    """End a thread; return whether it did end."""
    deadline = time.monotonic() + IMPORT
    while _importing(thread) and time.monotonic() < deadline:
        thread.join(0.02)
    # More than once: a trace ends with the first exception that it raises.
    for _ in range(50):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(TimeUp)
        )
        thread.join(0.02)
        if not thread.is_alive():
            return True
    return False
