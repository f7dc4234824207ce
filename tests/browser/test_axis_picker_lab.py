"""AxisPicker in JupyterLab, with a live kernel."""

import pytest

CELLS = (
    """
from IPython.display import display
import ipywidgets
from normlab.widgets import AxisPicker
picker = AxisPicker("[N] C [H W]", (4, 8, 5, 5), groups=4)
seen = []
picker.observe(lambda change: seen.append(change.new), "pattern")
picker""",
    "ipywidgets.VBox([picker])",
)


@pytest.fixture(scope="module")
def views(lab):
    """The two views of one picker, in a notebook that has been run."""
    lab.open("picker.ipynb", *CELLS)
    lab.run_all()
    views = lab.page.locator(".normlab.AxisPicker")
    views.nth(1).wait_for()
    assert views.count() == 2  # the HTML that stands in elsewhere is not shown here
    return views


def shows(view, text):
    """Wait until the view shows this text."""
    view.get_by_text(text, exact=True).first.wait_for(timeout=10_000)


def press(view, label):
    view.locator(f'[data-key="press {label}"]').click()


def test_python_sees_what_is_pressed_and_typed(lab, views):
    first, second = views.all()
    press(first, "N")
    shows(second, "normlab.InstanceNorm2d(8)")  # two views stay in step
    assert lab.python("print(picker.pattern, picker.layer.name, seen)") == (
        "N C [H W] InstanceNorm2d ['N C [H W]']"
    )
    second.get_by_label("Pattern").fill("N (G [C/G]) [H W]")
    shows(first, "torch.nn.GroupNorm(4, 8)")
    assert lab.python("print(picker.set_ids[1, :, 0, 0].tolist(), picker.groups)") == (
        "[4, 4, 5, 5, 6, 6, 7, 7] 4"
    )
    second.get_by_label("Pattern").blur()
    svg = first.locator(".nl-picture svg")
    box = svg.bounding_box()
    svg.click(position={"x": box["width"] - 4, "y": box["height"] - 4})
    shows(second, "16")
    second.get_by_text("set 15 of 16").wait_for()
    assert lab.python("print(picker.cell)") == "(3, 7, 4, 4)"


def test_the_page_shows_what_python_sets(lab, views):
    lab.python("picker.pattern = 'N L [D]'; picker.center = False")
    for view in views.all():
        shows(view, "torch.nn.RMSNorm(8)")
        assert view.get_by_label("Pattern").input_value() == "N L [D]"
    lab.python("picker.shape = (2, 3, 6)")
    shows(views.first, "torch.nn.RMSNorm(6)")
    link = "slider = ipywidgets.IntSlider(1, 1, 6)\n"
    link += "ipywidgets.link((slider, 'value'), (picker, 'eps'))"
    assert "Error" not in lab.python(link)
    lab.python("slider.value = 3")
    views.first.get_by_text("+ 3)").wait_for()


def test_what_python_refuses_is_answered_with_the_reason(lab, views):
    lab.python("picker.pattern = 'N (G [C/G]) [H W]'; picker.center = True")
    shows(views.first, "torch.nn.GroupNorm(4, 8)")
    message = "picker.set_state({'groups': 3})"
    assert lab.python(message) == ""
    notice = views.first.get_by_role("alert").filter(has_text="G = 2 or 4 would fit.")
    notice.wait_for()
    assert "C has 8 elements, which 3 groups do not divide." in notice.inner_text()
    assert lab.python("print(picker.groups)") == "4"
    press(views.first, "N")  # the widget lives, and the reason goes away
    notice.wait_for(state="hidden")
    assert lab.python("print(picker.pattern)") == "[N] (G [C/G]) [H W]"


def test_the_theme_of_jupyterlab_is_followed_live(lab, views):
    change = "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })"
    seen = []
    for name, expected in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        lab.page.evaluate(change, name)
        lab.page.locator(f".normlab[data-theme={expected}]").first.wait_for()
        seen.append(
            views.first.evaluate("view => getComputedStyle(view).backgroundColor")
        )
    assert seen == ["rgb(20, 24, 29)", "rgb(255, 255, 255)"]


def test_a_restarted_kernel_leaves_a_clear_state(lab, views):
    lab.page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.sessionContext
             .session.kernel.restart()"""
    )
    for view in views.all():
        view.get_by_text("The kernel is gone").wait_for(timeout=20_000)
    press(views.first, "H")  # the picture still works
    assert views.first.get_by_label("Pattern").input_value() == "[N] (G [C/G]) H [W]"
    lab.wait_for_kernel()
    lab.run_all()
    shows(views.first, "torch.nn.BatchNorm2d(8)")
    assert views.first.get_by_text("The kernel is gone").count() == 0
    press(views.first, "N")
    assert lab.python("print(picker.pattern)") == "N C [H W]"


def test_notebook_7(lab):
    lab.open("other.ipynb", CELLS[0], app="notebooks")
    lab.run_all()
    view = lab.page.locator(".normlab.AxisPicker")
    press(view, "N")
    shows(view, "torch.nn.InstanceNorm2d(8)")
    assert lab.python("print(picker.pattern)") == "N C [H W]"
