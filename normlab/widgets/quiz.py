"""Quiz: the questions of a chapter, answered with or without a kernel."""

import html

from traitlets import List, TraitError, validate

from normlab.widgets.base import Int, Widget


class Quiz(Widget):
    """Questions with one right choice, several, or a number; each answer explained.

    `questions` is a list in the form of jupyterquiz: dicts with ``question``, ``type``
    and ``answers``, where what stands between backticks is code.

    - ``multiple_choice`` and ``many_choice``: each answer has ``answer``, ``correct``
      and ``feedback``; of the first kind just one is correct.
    - ``numeric``: each answer has ``correct``, ``feedback`` and either ``value`` or
      ``range``, from a first number up to, not including, a second one; the answer of
      ``type`` ``default`` is for every other number. ``precision`` says to how many
      significant digits a value is compared.

    `solved` holds the indices of the questions answered right since the cell was run.
    A page without kernel checks the answers as well.

    >>> from normlab import quiz
    >>> made = quiz(6)
    >>> made.chapter, made.questions[0]["type"]
    (6, 'numeric')
    """

    stem = "quiz"
    state = ("chapter", "questions")

    chapter = Int().tag(sync=True)
    questions = List().tag(sync=True)
    solved = List(Int()).tag(sync=True)

    def __repr__(self):
        return f"quiz({self.chapter})"

    @validate("solved")
    def _check_solved(self, proposal):
        count = len(self.questions)
        for index in proposal.value:
            if not 0 <= index < count:
                there = f"0 to {count - 1}" if count else "there are none"
                raise TraitError(f"solved: {index} is no question's index; {there}.")
        return proposal.value

    def sentence(self):
        """What the quiz is, in words."""
        return f"Quiz on chapter {self.chapter}: {len(self.questions)} questions."

    def picture(self):
        """The questions as plain HTML, each with its answers in a fold."""
        return f"<ol>{''.join(map(_still, self.questions))}</ol>"


def _still(question):
    """One question for a page where no script runs."""
    code = question.get("code")
    shown = f"<pre><code>{html.escape(code)}</code></pre>" if code else ""
    answers = question["answers"]
    if question["type"] != "numeric":
        options = "".join(f"<li>{_marked(a['answer'])}</li>" for a in answers)
        shown += f"<ul>{options}</ul>"
    explained = "".join(
        f"<li>{'✓ Right' if a.get('correct') else '✗ Wrong'}: "
        f"{_marked(_name(a))}. {_marked(a['feedback'])}</li>"
        for a in answers
    )
    return (
        f"<li><p>{_marked(question['question'])}</p>{shown}"
        f"<details><summary>Answer</summary><ul>{explained}</ul></details></li>"
    )


def _name(answer):
    if "answer" in answer:
        return answer["answer"].removesuffix(".")
    if "value" in answer:
        return f"{answer['value']:g}"
    if "range" in answer:
        first, last = answer["range"]
        return f"from {first:g} to below {last:g}"
    return "any other number"


def _marked(text):
    """Escaped text; what stands between backticks becomes code."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))
