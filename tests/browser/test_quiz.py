"""The quizzes in a browser: without kernel and network, and in JupyterLab."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from normlab import quiz
from normlab.widgets import Quiz

ATTACK = "<img src=x onerror=alert(1)>"
QUESTIONS = [
    {
        "question": "Which axis does `LayerNorm(D)` average over?",
        "type": "multiple_choice",
        "answers": [
            {"answer": "`N`", "correct": False, "feedback": "N is kept."},
            {"answer": "`D`", "correct": True, "feedback": "It is the last one."},
        ],
    },
    {
        "question": "Which norms subtract a mean?",
        "type": "many_choice",
        "answers": [
            {"answer": "BatchNorm", "correct": True, "feedback": "Of a channel."},
            {"answer": "LayerNorm", "correct": True, "feedback": "Of a token."},
            {"answer": "RMSNorm", "correct": False, "feedback": "It only divides."},
        ],
    },
    {
        "question": "The mean of 0 and 1?",
        "type": "numeric",
        "precision": 2,
        "answers": [
            {"type": "value", "value": 0.5, "correct": True, "feedback": "Half."},
            {"type": "value", "value": 1, "correct": False, "feedback": "The sum."},
            {"type": "range", "range": [2, 3], "correct": False, "feedback": "Big."},
            {"type": "default", "feedback": "Add, then halve."},
        ],
    },
    {
        "question": f"What is {ATTACK}?",
        "type": "multiple_choice",
        "code": f"x = '{ATTACK}'",
        "answers": [
            {"answer": ATTACK, "correct": True, "feedback": f"Text: {ATTACK}"},
            {"answer": "a picture", "correct": False, "feedback": "Never read so."},
        ],
    },
]


@pytest.fixture
def page(open_widgets):
    return open_widgets(Quiz(chapter=6, questions=QUESTIONS))


def check(page, number):
    page.get_by_role("button", name=f"Check question {number}", exact=True).click()


def verdict(page, number):
    """What stands below a question, in lines."""
    place = page.locator("form").nth(number - 1).get_by_role("status")
    return place.locator("p").all_inner_texts()


def score(page):
    return page.locator(".nl-score").inner_text()


def test_one_choice(page):
    assert score(page) == "0 of 4 answered correctly."
    check(page, 1)
    assert verdict(page, 1) == ["… Nothing to check yet. Choose an answer first."]
    page.get_by_label("N", exact=True).check()
    assert verdict(page, 1) == []  # what was said of another answer is gone
    check(page, 1)
    assert verdict(page, 1) == ["✗ Not yet.", "N is kept."]
    page.get_by_label("D", exact=True).check()
    check(page, 1)
    assert verdict(page, 1) == ["✓ Correct.", "It is the last one."]
    assert score(page) == "1 of 4 answered correctly."
    check(page, 1)
    assert score(page) == "1 of 4 answered correctly."


def test_several_choices(page):
    page.get_by_label("BatchNorm").check()
    check(page, 2)
    assert verdict(page, 2) == [
        "… Right so far, but there is more to choose.",
        "✓ BatchNorm: Of a channel.",
    ]
    page.get_by_label("RMSNorm").check()
    check(page, 2)
    assert verdict(page, 2) == [
        "✗ Not yet.",
        "✓ BatchNorm: Of a channel.",
        "✗ RMSNorm: It only divides.",
    ]
    page.get_by_label("RMSNorm").uncheck()
    page.get_by_label("LayerNorm", exact=True).check()
    check(page, 2)
    assert verdict(page, 2)[0] == "✓ Correct."
    assert score(page) == "1 of 4 answered correctly."


@pytest.mark.parametrize(
    ("typed", "first", "second"),
    [
        ("0.5", "✓ Correct.", "Half."),
        (" 1/2 ", "✓ Correct.", "Half."),
        ("5e-1", "✓ Correct.", "Half."),
        ("0.5003", "✓ Correct.", "Half."),
        ("0.52", "✗ Not yet.", "Add, then halve."),
        ("1", "✗ Not yet.", "The sum."),
        ("2", "✗ Not yet.", "Big."),
        ("3", "✗ Not yet.", "Add, then halve."),
        ("\u22121", "✗ Not yet.", "Add, then halve."),
    ],
)
def test_a_number(page, typed, first, second):
    page.get_by_label("Your answer").fill(typed)
    page.keyboard.press("Enter")
    assert verdict(page, 3) == [first, second]


@pytest.mark.parametrize("typed", ["", "  ", "half", "0,5", "1/2/3", "/2", "1 2"])
def test_what_is_not_a_number(page, typed):
    page.get_by_label("Your answer").fill(typed)
    check(page, 3)
    advice = "Enter a number such as 0.5, 1/2 or 1200, without a comma."
    assert verdict(page, 3) == [f"… Nothing to check yet. {advice}"]


def test_all_by_keyboard(page):
    page.locator("form input").first.focus()
    page.keyboard.press("ArrowDown")  # the second radio button
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert verdict(page, 1)[0] == "✓ Correct."
    for key in ("Tab", "Space", "Tab", "Space", "Tab", "Tab", "Space"):
        page.keyboard.press(key)
    assert verdict(page, 2)[0] == "✓ Correct."
    page.keyboard.press("Tab")
    page.keyboard.type("0.5")
    page.keyboard.press("Enter")
    assert verdict(page, 3)[0] == "✓ Correct."
    assert score(page) == "3 of 4 answered correctly."


def test_clear_all_answers(page):
    page.get_by_label("D", exact=True).check()
    check(page, 1)
    page.get_by_label("Your answer").fill("7")
    page.get_by_role("button", name="Clear all answers").click()
    assert not page.get_by_label("D", exact=True).is_checked()
    assert page.get_by_label("Your answer").input_value() == ""
    assert verdict(page, 1) == []
    assert score(page) == "0 of 4 answered correctly."


def test_text_is_never_html(page):
    form = page.locator("form").nth(3)
    assert ATTACK in form.locator("legend").inner_text()
    assert form.locator("pre").inner_text() == f"x = '{ATTACK}'"
    form.get_by_label(ATTACK).check()
    check(page, 4)
    assert verdict(page, 4)[1] == f"Text: {ATTACK}"
    assert page.locator("img").count() == 0
    assert page.locator("form").first.locator("legend code").inner_text() == (
        "LayerNorm(D)"
    )


def test_two_quizzes_on_a_page_do_not_meet(open_widgets):
    page = open_widgets(*(Quiz(chapter=n, questions=QUESTIONS) for n in (1, 2)))
    for box in page.get_by_label("D", exact=True).all():
        box.check()
    assert [b.is_checked() for b in page.get_by_label("D", exact=True).all()] == [
        True,
        True,
    ]


@pytest.mark.parametrize("chapter", range(11))
def test_every_quiz_can_be_answered(open_widgets, chapter):
    made = quiz(chapter)
    page = open_widgets(made)
    for i, question in enumerate(made.questions):
        form = page.locator("form").nth(i)
        if question["type"] == "numeric":
            right = next(a for a in question["answers"] if a.get("correct"))
            number = right.get("value", sum(right.get("range", [0])) / 2)
            form.get_by_label("Your answer").fill(str(number))
        for answer, box in zip(
            question["answers"], form.locator("[name=choice]").all(), strict=False
        ):
            if answer["correct"]:
                box.check()
        check(page, i + 1)
        assert verdict(page, i + 1)[0] == "✓ Correct.", question["question"]
    count = len(made.questions)
    assert score(page) == f"{count} of {count} answered correctly."


@pytest.mark.parametrize("width", [1100, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_no_wider_than_the_page(open_widgets, width, theme):
    page = open_widgets(quiz(3), width=width, color_scheme=theme)
    forms = page.locator("form").all()
    for form in forms:
        box = form.locator("input").first
        box.fill("1") if box.get_attribute("type") == "text" else box.check()
        form.get_by_role("button").click()
    assert page.locator("[data-outcome]").count() == len(forms)
    found = Axe().run(page).response["violations"]
    failing = {v["id"]: [n["target"] for n in v["nodes"]] for v in found}
    failing.pop("page-has-heading-one", None)  # that is for the page around to have
    assert failing == {}
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_without_script_the_questions_and_their_answers_show(chromium, tmp_path):
    from normlab.widgets import static_page

    made = quiz(6)
    file = tmp_path / "quiz.html"
    file.write_text(static_page(made), encoding="utf-8")
    context = chromium.new_context(
        java_script_enabled=False, viewport={"width": 360, "height": 800}
    )
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.get_by_text(made.sentence()).is_visible()
    first = made.questions[0]
    right = next(a["feedback"] for a in first["answers"] if a.get("correct"))
    assert page.locator("li > p").first.inner_text() == first["question"].replace(
        "`", ""
    )
    assert not page.get_by_text(right).is_visible()
    page.get_by_text("Answer", exact=True).first.click()
    assert page.get_by_text(right).is_visible()
    context.close()


def test_in_jupyterlab_with_the_keyboard_and_a_kernel(lab):
    made = f"made = Quiz(chapter=6, questions={QUESTIONS!r})"
    cell = f"from normlab.widgets import Quiz\n{made}\nmade"
    lab.open("quiz.ipynb", cell, "1 + 1")
    lab.run_all()
    view = lab.page.locator(".normlab.Quiz")
    expect(view).to_have_count(1)
    # At the end of the run the notebook takes the focus.
    lab.page.locator(".jp-OutputArea-output", has_text=re.compile(r"^2$")).wait_for()
    lab.wait_for_kernel()
    view.locator("input").first.focus()
    lab.page.keyboard.press("ArrowDown")  # moves the choice, not to the next cell
    expect(view.get_by_label("D", exact=True)).to_be_checked()
    lab.page.keyboard.press("Tab")
    lab.page.keyboard.press("Enter")
    expect(view.locator("form").first.get_by_role("status")).to_have_text(
        re.compile("Correct")
    )
    assert lab.python("print(made.solved)") == "[0]"
