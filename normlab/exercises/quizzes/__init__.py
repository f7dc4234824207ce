"""The quizzes, one file a chapter, in jupyterquiz's form.

A question may have a ``key``: an expression that a test computes and compares with the
answer that is marked correct. The quiz does without it. In the files the answers may
stand in any order: a quiz shows them in another one.
"""

import hashlib
import json
from numbers import Integral
from pathlib import Path

from normlab.exercises import progress
from normlab.widgets import Quiz

_HERE = Path(__file__).parent


def quiz(chapter):
    """The quiz of a chapter, to be shown as the last line of a cell.

    Once all its questions are answered right, the file of `normlab.exercises.progress`
    notes it; that takes a kernel. Raises ValueError when the chapter has no quiz.

    >>> quiz(6)
    quiz(6)
    """
    file = None
    if isinstance(chapter, Integral) and not isinstance(chapter, bool):
        chapter = int(chapter)  # NumPy's whole numbers, too
        file = _HERE / f"chapter{chapter:02d}.json"
    if file is None or not file.is_file():
        found = sorted(int(path.stem[-2:]) for path in _HERE.glob("chapter??.json"))
        raise ValueError(
            f"quiz: chapter {chapter!r} has no quiz; "
            f"these have: {', '.join(map(str, found))}."
        )
    questions = json.loads(file.read_text(encoding="utf-8"))
    for question in questions:
        question.pop("key", None)
        if question["type"] != "numeric":
            question["answers"].sort(key=lambda a, q=question: _place(q, a))
    made = Quiz(chapter=chapter, questions=questions)
    made.observe(_record, "solved")
    return made


def _place(question, answer):
    """Where an answer goes: by no plan, but the same each time and everywhere."""
    text = question["question"] + answer["answer"]
    return hashlib.sha256(text.encode()).digest()


def _record(change):
    if len(set(change.new)) == len(change.owner.questions):
        progress.record(f"quiz {change.owner.chapter}")
