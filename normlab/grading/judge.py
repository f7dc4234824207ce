"""The judge: reads answers as bytes and asks each exercise's check about them.

    python -m normlab.grading.judge

reads one request a line, ``{"seed": 7, "seconds": 45, "answers": {"6.4": <base64>}}``,
and answers with a line that gives for each number the fields of a
`normlab.exercises.results.Result`. Each answer is judged in a process of its own, so
that none changes what another one gets, and what does not return is ended from outside.
"""

import atexit
import base64
import contextlib
import json
import linecache
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import asdict
from functools import cache

from normlab.exercises import blame, chapters
from normlab.exercises.results import OUTCOMES, Result

# The check stops itself after 10 seconds. These are for what it cannot stop, and for a
# process to come up first where it is not forked.
SECONDS = 45


ENDED = "Your code ended the process that was to judge it."


def judged(answers, seed, seconds=SECONDS):
    """The results for answers (number to bytes), from a process of this module."""
    if not answers:
        return {}
    verdicts = _ask(answers, seed, seconds)
    if verdicts is not None:
        return {number: result_from(number, verdicts[number]) for number in answers}
    # One of them ended the judge: each gets a judge that the others cannot end.
    results = {}
    for number, data in answers.items():
        alone = _ask({number: data}, seed, seconds)
        if alone is not None:
            results[number] = result_from(number, alone[number])
        elif _ask({}, seed, seconds) is None:
            raise RuntimeError(
                "The process that judges has ended; is there memory left?"
            )
        else:
            results[number] = Result(number, "error", ENDED)
    return results


def _ask(answers, seed, seconds):
    """What the judge says of the answers; None, and no judge, if it has ended."""
    request = {
        "seed": seed,
        "seconds": seconds,
        "answers": {n: base64.b64encode(data).decode() for n, data in answers.items()},
    }
    judge, line = _judge(), ""
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(request), file=judge.stdin, flush=True)
        line = judge.stdout.readline()
    if not line:
        end()
        return None
    return json.loads(line)


@cache
def _judge():
    """The process: it takes a while to load PyTorch, so it serves all notebooks."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"NORMLAB_PROGRESS": os.devnull, "OMP_NUM_THREADS": "1"},
        text=True,
    )
    atexit.register(end)
    return process


def end():
    """Let the process go; the next answers get another one."""
    if _judge.cache_info().currsize:
        process = _judge()
        _judge.cache_clear()
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        process.wait()


def result_from(number, fields):
    """A `Result` from what a judge sent; ValueError if it sent something else."""
    outcome, message, printed = (
        fields[key] for key in ("outcome", "message", "printed")
    )
    facts = tuple((str(name), str(value)) for name, value in fields["facts"])
    if outcome not in OUTCOMES:
        raise ValueError(f"The judge sent the outcome {outcome!r}.")
    return Result(number, outcome, str(message), facts, str(printed))


def verdict(number, data, seed):
    """The result for one answer; what its reading raises is the answer's error."""
    exercise = _exercise(number)
    try:
        answer, lines = pickle.loads(data)
        for name, text in lines.items():
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    except Exception as error:
        _, message, facts = blame.explained(error)
        return Result(number, "error", message, facts)
    return exercise.check(answer, seed=seed)


def _exercise(number):
    for exercises in chapters().values():
        for exercise in exercises.values():
            if exercise.number == number:
                return exercise
    raise ValueError(f"There is no exercise {number}.")


def _work(pipe, number, data, seed):
    # What an answer writes past Python must not reach the verdicts.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    pipe.send_bytes(json.dumps(asdict(verdict(number, data, seed))).encode())
    pipe.close()
    os._exit(0)  # whatever threads the answer left behind


def apart(context, number, data, seed, seconds):
    """The fields of the result for one answer, from a process of its own."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_work, args=(theirs, number, data, seed), daemon=True
    )
    process.start()
    theirs.close()
    # Read in a thread: an answer may find the pipe, and begin what it never ends.
    found = []
    reader = threading.Thread(
        target=lambda: found.append(_fields(ours, number)), daemon=True
    )
    reader.start()
    reader.join(seconds)
    late = reader.is_alive()
    process.kill()
    process.join()
    if not late:
        return found[0]
    message = f"Your code was still running after {seconds:g} seconds and was stopped."
    return asdict(Result(number, "error", message))


def _fields(pipe, number):
    try:
        fields = json.loads(pipe.recv_bytes())
        return asdict(result_from(number, fields))
    except Exception:  # whatever an answer may have written there
        return asdict(Result(number, "error", ENDED))


def main():
    """Answer the requests, one after the other."""
    # A fork has torch and the exercises loaded already; elsewhere it is not safe.
    context = multiprocessing.get_context(
        "fork" if sys.platform == "linux" else "spawn"
    )
    chapters()
    for line in sys.stdin:
        request = json.loads(line)
        seed, seconds = request["seed"], request["seconds"]
        verdicts = {
            number: apart(context, number, base64.b64decode(data), seed, seconds)
            for number, data in request["answers"].items()
        }
        print(json.dumps(verdicts), flush=True)


if __name__ == "__main__":
    main()
