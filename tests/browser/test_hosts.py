"""Explorers in other people's pages: a walled-off frame, and the themes of VS Code.

Neither Colab nor VS Code runs here. Colab shows outputs in a sandboxed frame of another
origin; VS Code says its theme by a class and an attribute of <body>.
"""

import html

import pytest

from normlab.widgets import (
    AxisPicker,
    BatchMates,
    GroupWalk,
    Quiz,
    RunningStats,
    static_page,
)

ANSWERS = [
    {"answer": "a", "correct": True, "feedback": "Yes."},
    {"answer": "b", "correct": False, "feedback": "No."},
]
QUESTION = {"question": "Which?", "type": "multiple_choice", "answers": ANSWERS}


def test_in_a_sandboxed_frame_all_works(pages, tmp_path):
    widgets = [AxisPicker(), BatchMates(), RunningStats(), GroupWalk()]
    inner = static_page(*widgets, Quiz(chapter=1, questions=[QUESTION]))
    inner = inner.replace("<main>", "<main data-address>")  # follows in its address
    file = tmp_path / "frame.html"
    file.write_text(
        '<!doctype html><iframe sandbox="allow-scripts" width="1000" height="900" '
        f'srcdoc="{html.escape(inner)}"></iframe>',
        encoding="utf-8",
    )
    page = pages(viewport={"width": 1100, "height": 1000})
    page.complaints.clear()
    page.goto(file.as_uri())
    frame = page.frame_locator("iframe")
    for i in range(5):
        frame.locator(".normlab-widget[data-mounted=yes]").nth(i).wait_for()
    inside = page.frames[1]
    asked = "try { localStorage.length; 'open' } catch { 'closed' }"
    assert inside.evaluate(asked) == "closed"  # the wall is there

    frame.locator('[data-key="press N"]').click()
    pattern = frame.get_by_label("Pattern: brackets")
    assert pattern.input_value() == "[N] (G [C/G]) [H W]"
    frame.get_by_role("button", name="Feed 10").click()
    words = frame.locator(".RunningStats .nl-words").inner_text()
    assert words.startswith("After 10 batches")
    frame.get_by_role("button", name="more groups").click()
    assert "GroupNorm(2, 8)" in frame.locator(".GroupWalk .nl-words").inner_text()
    frame.locator(".Quiz input").first.check()
    frame.get_by_role("button", name="Check question 1").click()
    assert "Correct" in frame.locator(".nl-verdict").inner_text()

    copy = frame.locator('.AxisPicker [title="Copy the link to this state"]')
    copy.click()
    frame.locator(
        ".AxisPicker [aria-live]", has_text="the link to this state"
    ).wait_for()
    page.wait_for_timeout(300)  # the address would follow after 200 ms
    assert len(page.frames) == 2
    assert inside.url.split("#")[0] == "about:srcdoc"
    assert pattern.input_value() == "[N] (G [C/G]) [H W]"
    # The browser itself says that it keeps the clipboard shut; the button falls back.
    ours = [text for text in page.complaints if "Clipboard API has been" not in text]
    assert ours == []
    page.complaints.clear()


@pytest.mark.parametrize(
    ("kind", "theme"),
    [
        ("vscode-light", "light"),
        ("vscode-dark", "dark"),
        ("vscode-high-contrast", "dark"),
        ("vscode-high-contrast-light", "light"),
    ],
)
def test_the_themes_of_vs_code_are_followed_live(open_widgets, kind, theme):
    other = {"light": "dark", "dark": "light"}[theme]
    page = open_widgets(GroupWalk(), color_scheme=other)
    root = page.locator(".normlab")
    assert root.get_attribute("data-theme") == other
    page.evaluate("kind => { document.body.dataset.vscodeThemeKind = kind; }", kind)
    page.locator(f".normlab[data-theme={theme}]").wait_for(timeout=5000)
    page.evaluate("() => { delete document.body.dataset.vscodeThemeKind; }")
    page.locator(f".normlab[data-theme={other}]").wait_for(timeout=5000)
    page.evaluate("kind => { document.body.className = kind; }", kind)
    page.locator(f".normlab[data-theme={theme}]").wait_for(timeout=5000)
