"""The quizzes: their form, their keys, and what shows where no script runs."""

import html
import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from traitlets import TraitError

import quiz_keys
from normlab import quiz
from normlab.exercises import progress, quizzes
from normlab.widgets import Quiz

FILES = sorted(Path(quizzes.__file__).parent.glob("chapter??.json"))
QUESTIONS = [
    pytest.param(question, id=f"{file.stem[-2:]}-{i + 1}")
    for file in FILES
    for i, question in enumerate(json.loads(file.read_text(encoding="utf-8")))
]

# ------------------------------------------------------------------------------ form

TEXT = {"type": "string", "pattern": r"\S"}
FEEDBACK = {"type": "string", "minLength": 20}
RIGHT_OR_WRONG = {"type": "boolean"}


def _object(required, **optional):
    return {
        "type": "object",
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }


def _answers(*kinds):
    return {"type": "array", "minItems": 3, "items": {"oneOf": list(kinds)}}


OPTION = _object({"answer": TEXT, "correct": RIGHT_OR_WRONG, "feedback": FEEDBACK})
VALUE = {
    "type": {"const": "value"},
    "value": {"type": "number"},
    "correct": RIGHT_OR_WRONG,
    "feedback": FEEDBACK,
}
BOUNDS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
RANGE = {k: v for k, v in VALUE.items() if k != "value"}
RANGE |= {"type": {"const": "range"}, "range": BOUNDS}
DEFAULT = {"type": {"const": "default"}, "feedback": FEEDBACK}
OTHERS = {"code": TEXT, "key": {"type": ["string", "object"]}}
CHOICE = _object(
    {
        "question": TEXT,
        "type": {"enum": ["multiple_choice", "many_choice"]},
        "answers": _answers(OPTION),
    },
    **OTHERS,
)
NUMERIC = _object(
    {
        "question": TEXT,
        "type": {"const": "numeric"},
        "answers": _answers(_object(VALUE), _object(RANGE), _object(DEFAULT)),
    },
    precision={"type": "integer", "minimum": 1},
    **OTHERS,
)
SCHEMA = {"type": "array", "minItems": 6, "items": {"oneOf": [CHOICE, NUMERIC]}}


def plain(text):
    """Text without the marks of code, for comparing."""
    return " ".join(text.replace("`", "").lower().split())


def problems(question):
    """What is wrong with one question that has the right form: sentences."""
    answers, found = question["answers"], []
    right = [answer for answer in answers if answer.get("correct")]
    if question["type"] == "many_choice":
        if not 1 <= len(right) < len(answers):
            found.append("all or none of the answers are correct")
    elif len(right) != 1:
        found.append(f"{len(right)} answers are correct, not one")
    feedback = [plain(answer["feedback"]) for answer in answers]
    if len(set(feedback)) < len(feedback):
        found.append("a feedback is repeated")
    if question["type"] == "numeric":
        if [answer["type"] for answer in answers].count("default") != 1:
            found.append("any other number needs one answer of type default")
        found += overlaps(answers)
    else:
        options = [plain(answer["answer"]) for answer in answers]
        if len(set(options)) < len(options):
            found.append("an option stands twice")
    texts = [question["question"], *feedback]
    texts += [answer.get("answer", "") for answer in answers]
    for text in texts:
        if text.count("`") % 2:
            found.append(f"a backtick is left open: {text}")
        if "$" in text:
            found.append(f"formulas are not typeset: {text}")
    return found


def overlaps(answers):
    """Numbers for which two answers are given."""
    values = [a["value"] for a in answers if "value" in a]
    ranges = [a["range"] for a in answers if "range" in a]
    found = [f"{v} stands twice" for v in values if values.count(v) > 1]
    for low, high in ranges:
        found += [f"{v} is also in a range" for v in values if low <= v < high]
        others = [r for r in ranges if r != [low, high]]
        found += [f"the range at {low} overlaps" for a, b in others if a < high <= b]
        if not low < high:
            found.append(f"the range at {low} is empty")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_form(file):
    questions = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validate(questions, SCHEMA)
    found = {q["question"]: problems(q) for q in questions if problems(q)}
    assert found == {}


def test_no_question_is_asked_twice():
    asked = [plain(question.values[0]["question"]) for question in QUESTIONS]
    assert sorted(set(asked)) == sorted(asked)


def test_every_chapter_has_a_quiz():
    assert {f.stem for f in FILES} == {f"chapter{number:02d}" for number in range(11)}


GOOD = {
    "question": "2 + 2?",
    "type": "multiple_choice",
    "answers": [
        {"answer": "4", "correct": True, "feedback": "Two and two make four."},
        {"answer": "5", "correct": False, "feedback": "That is one too many."},
        {
            "answer": "`22`",
            "correct": False,
            "feedback": "That is 2 beside 2, as text.",
        },
    ],
}
VALUE_4 = {
    "type": "value",
    "value": 4,
    "correct": True,
    "feedback": "Two and two make four.",
}
RANGE_5 = {
    "type": "range",
    "range": [5, 9],
    "correct": False,
    "feedback": "Far too many for 2 + 2.",
}
OTHERWISE = {"type": "default", "feedback": "Count with your fingers."}


def numeric(*answers):
    return {**GOOD, "type": "numeric", "answers": list(answers)}


def changed(at, **changes):
    answers = [dict(answer) for answer in GOOD["answers"]]
    answers[at].update(changes)
    return {**GOOD, "answers": answers}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (GOOD, []),
        (numeric(VALUE_4, RANGE_5, OTHERWISE), []),
        (changed(1, correct=True), ["2 answers are correct, not one"]),
        (changed(0, correct=False), ["0 answers are correct, not one"]),
        (changed(1, feedback="two and two make `four`."), ["a feedback is repeated"]),
        (changed(2, answer="`5`"), ["an option stands twice"]),
        (changed(2, answer="`22"), ["a backtick is left open: `22"]),
        (changed(2, answer="$22$"), ["formulas are not typeset: $22$"]),
        (
            {**GOOD, "type": "many_choice", "answers": GOOD["answers"][1:]},
            ["all or none of the answers are correct"],
        ),
        (
            numeric(VALUE_4, RANGE_5),
            ["any other number needs one answer of type default"],
        ),
        (
            numeric({**VALUE_4, "value": 5}, RANGE_5, OTHERWISE),
            ["5 is also in a range"],
        ),
    ],
)
def test_a_bad_question_is_found(question, said):
    assert problems(question) == said


@pytest.mark.parametrize("missing", ["feedback", "correct", "answer"])
def test_the_schema_wants_all_parts_of_an_answer(missing):
    answers = [{k: v for k, v in a.items() if k != missing} for a in GOOD["answers"]]
    jsonschema.validate([GOOD] * 6, SCHEMA)
    for bad in ([{**GOOD, "answers": answers}] * 6, [GOOD] * 5):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, SCHEMA)


# ------------------------------------------------------------------------------ keys


def covers(answer, number, question):
    """Whether an answer of a numeric question is the one for this number."""
    if "range" in answer:
        low, high = answer["range"]
        return low <= number < high
    if "value" not in answer:
        return False
    digits = question.get("precision")
    if digits is None:
        return answer["value"] == number
    return f"{answer['value']:.{digits - 1}e}" == f"{number:.{digits - 1}e}"


@pytest.mark.parametrize("question", [q for q in QUESTIONS if "key" in q.values[0]])
def test_the_answer_marked_correct_is_the_one_computed(question):
    computed, answers = quiz_keys.compute(question["key"]), question["answers"]
    if question["type"] == "numeric":
        taken = [answer for answer in answers if covers(answer, computed, question)]
        assert [answer["correct"] for answer in taken] == [True], computed
    elif isinstance(computed, list):
        assert [answer["correct"] for answer in answers] == computed
    else:
        right = [plain(a["answer"]) for a in answers if a["correct"]]
        assert right == [plain(str(computed))]


def test_every_key_has_a_question():
    used = {q.values[0].get("key") for q in QUESTIONS if "key" in q.values[0]
            and isinstance(q.values[0]["key"], str)}  # fmt: skip
    assert used == set(quiz_keys.KEYS)


# ---------------------------------------------------------------------------- widget


def test_a_quiz_is_its_file_without_the_keys():
    made = quiz(6)
    stored = json.loads(FILES[0].with_name("chapter06.json").read_text("utf-8"))
    assert [q["question"] for q in made.questions] == [q["question"] for q in stored]
    assert any("key" in q for q in stored)
    assert not any("key" in q for q in made.questions)


def test_the_right_option_stands_anywhere():
    places = Counter(
        [answer["correct"] for answer in question["answers"]].index(True)
        for file in FILES
        for question in quiz(int(file.stem[-2:])).questions
        if question["type"] == "multiple_choice"
    )
    assert max(places.values()) <= 0.4 * places.total()


def test_text_and_html_are_stable_and_without_ids():
    first, again = (quiz(6)._repr_mimebundle_()[0] for _ in range(2))
    assert first["text/plain"] == again["text/plain"]
    assert re.fullmatch(
        r"quiz\(6\)\nQuiz on chapter 6: \d+ questions\.", first["text/plain"]
    )
    assert first["text/html"] == again["text/html"]
    assert not re.search(r"\bid=", first["text/html"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_without_script_all_questions_and_answers_stand_there(file):
    made = quiz(int(file.stem[-2:]))
    root = ElementTree.fromstring(made.to_html())
    items = root.findall("ol/li")
    assert len(items) == len(made.questions)
    for item, question in zip(items, made.questions, strict=True):
        assert plain("".join(item.find("p").itertext())) == plain(question["question"])
        fold = item.find("details")
        assert fold.find("summary").text == "Answer"
        shown = ["".join(row.itertext()) for row in fold.iter("li")]
        for row, answer in zip(shown, question["answers"], strict=True):
            sign = "✓ Right: " if answer.get("correct") else "✗ Wrong: "
            assert row.startswith(sign)
            assert plain(row).endswith(plain(answer["feedback"]))
    assert made.sentence() in root.find("p").text


def test_text_is_never_html():
    attack = "<img src=x onerror=alert(1)>"
    answers = [dict(a, answer=attack, feedback=attack) for a in GOOD["answers"]]
    bad = {**GOOD, "question": f"`{attack}`", "code": attack, "answers": answers}
    made = Quiz(chapter=0, questions=[bad]).to_html()
    assert "<img" not in made
    assert f"<p><code>{html.escape(attack)}</code></p>" in made


@pytest.mark.parametrize("chapter", [77, -1, "6", 6.0, None, True])
def test_a_chapter_without_quiz_is_refused(chapter):
    with pytest.raises(ValueError, match=re.escape(f"chapter {chapter!r} has no quiz")):
        quiz(chapter)


def test_a_whole_number_of_numpy_is_a_chapter():
    assert repr(quiz(np.int64(6))) == "quiz(6)"


@pytest.mark.parametrize("index", [-1, "last", 99, True])
def test_a_question_that_is_not_there_is_not_solved(index, monkeypatch, tmp_path):
    monkeypatch.setenv("NORMLAB_PROGRESS", str(tmp_path / "progress.json"))
    made = quiz(6)
    count = len(made.questions)
    index = count if index == "last" else index
    with pytest.raises(TraitError, match="solved"):
        made.solved = [index]
    made.set_state({"solved": [*range(count - 1), index]})  # as many as there are
    assert made.solved == []
    assert "solved" in made.error
    assert "quiz 6" not in progress.solved()
    with pytest.raises(TraitError, match="0 is no question's index; there are none"):
        Quiz(solved=[0])


def test_a_quiz_answered_right_is_noted_once_it_is_whole(monkeypatch, tmp_path):
    monkeypatch.setenv("NORMLAB_PROGRESS", str(tmp_path / "progress.json"))
    made, before = quiz(6), quiz(6).to_html()
    count = len(made.questions)
    made.set_state({"solved": list(range(count - 1))})  # as the page sends it
    assert "quiz 6" not in progress.solved()
    made.set_state({"solved": list(range(count))})
    assert "quiz 6" in progress.solved()
    assert made.to_html() == quiz(6).to_html() == before
