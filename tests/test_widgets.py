"""The Python half of the explorers: traits, refusals, and what stands in for them."""

import html
import json
import re
import sys
import types
from xml.etree import ElementTree

import ipywidgets
import numpy as np
import pytest
import traitlets

from normlab import axes
from normlab.diagrams.style import THEMES
from normlab.widgets import AxisPicker, Widget, bundle, static_page

GROUPNORM = "N (G [C/G]) [H W]", (4, 8, 5, 5), 4


def refusal(change):
    with pytest.raises(traitlets.TraitError) as raised:
        change()
    return str(raised.value)


# ------------------------------------------------------------------ what can be read


def test_what_follows_from_the_traits():
    picker = AxisPicker(*GROUPNORM)
    assert picker.sets == axes.parse(picker.pattern).on((4, 8, 5, 5), G=4)
    assert picker.set_ids.shape == (4, 8, 5, 5)
    assert picker.set_ids[1, :, 0, 0].tolist() == [4, 4, 5, 5, 6, 6, 7, 7]
    assert not picker.set_ids.flags.writeable
    assert picker.layer.name == "GroupNorm"
    assert picker.torch_line == "torch.nn.GroupNorm(4, 8)"
    assert picker.normlab_line == "normlab.GroupNorm(4, 8)"


def test_values_are_small_whole_numbers_and_always_the_same():
    values = AxisPicker(*GROUPNORM).values
    assert values.shape == (4, 8, 5, 5)
    assert values.ravel()[:8].tolist() == [5, -5, -9, 0, -9, 5, -4, -9]
    assert set(np.unique(values)) == set(range(-9, 10))
    longer = AxisPicker("[N]", (1000,)).values
    assert longer[:800].tolist() == values.ravel().tolist()


@pytest.mark.parametrize(
    ("pattern", "shape", "groups"),
    [
        ("[N] C", (6, 8), 4),
        ("[N] C [H W]", (4, 8, 5, 5), 4),
        ("N C (G [D/G]) H W", (2, 4, 3, 3, 3), 1),
        ("N (G [C/G]) T", (6, 8, 4), 4),
        ("A [B]", (4, 4), 2),
    ],
)
def test_shape_and_groups_have_a_default_for_each_pattern(pattern, shape, groups):
    picker = AxisPicker(pattern)
    assert (picker.shape, picker.groups) == (shape, groups)


def test_default_groups_leave_more_than_one_channel_in_each():
    for channels, groups in ((1, 1), (2, 1), (6, 3), (7, 1), (256, 32)):
        assert AxisPicker("N (G [C/G])", (2, channels)).groups == groups


# --------------------------------------------------------------------- what is allowed


def test_a_pattern_is_stored_in_its_canonical_form():
    picker = AxisPicker(axes.parse("N  [C] [H]"))
    assert picker.pattern == "N [C H]"
    picker.pattern = " [N]  C [H] "
    assert picker.pattern == "[N] C [H]"


def test_a_new_pattern_brings_along_what_it_leaves_behind():
    picker = AxisPicker(*GROUPNORM, parameters="C H", cell=(3, 7, 4, 4))
    picker.pattern = "N C [L]"
    assert (picker.shape, picker.parameters, picker.cell) == ((4, 8, 6), None, ())
    picker.shape = (4, 10, 6)
    picker.pattern = "N (G [C/G]) [L]"
    assert picker.groups == 5
    picker.groups = 2
    picker.cell = (0, 9, 0)
    picker.shape = (4, 8, 6)
    assert (picker.groups, picker.cell) == (2, ())


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("pattern", "N [C", "pattern: this [ is never closed.\n    N [C\n      ^"),
        ("pattern", "N ... C", "a name for each axis that ... stands for"),
        ("pattern", "A B C D E F", "up to 5 axes, not 6"),
        ("pattern", 3, "expected a unicode string, not the int 3"),
        ("shape", (4, 8), "the pattern names 4 axes, but the shape (4, 8) has 2."),
        ("shape", (4, 10, 5, 5), "4 groups do not divide"),
        ("shape", (0, 8, 5, 5), "every size is 1 or more"),
        ("shape", (2**20, 8, 2**10, 5), "fewer than 2**31 values"),
        ("shape", (4.5, 8, 5, 5), "size 0 of the shape is 4.5"),
        ("groups", 3, "G = 2 or 4 would fit."),
        ("groups", 0, "groups: 1 or more are needed, not 0."),
        ("parameters", "C Q", "parameters: 'Q' is no axis"),
        ("parameters", "H C", "Write 'C H'."),
        ("cell", (0, 8, 0, 0), "cell: (0, 8, 0, 0) is no index into the shape"),
        ("cell", (0, 0), "is no index into the shape (4, 8, 5, 5)"),
        ("cell", (0, -1, 0, 0), "is no index into the shape"),
        ("cell", (0, 0.5, 0, 0), "is no index into the shape"),
        ("cell", (0, True, 0, 0), "is no index into the shape"),
        ("shape", "4855", "expected a tuple, not the str '4855'"),
        ("eps", -1.0, "eps: a number, 0 or more is needed, not -1.0."),
        ("eps", float("nan"), "eps: a number, 0 or more is needed, not nan."),
        ("weight", float("inf"), "weight: a finite number is needed, not inf."),
        ("bias", "x", "expected a float"),
        ("center", "yes", "expected a boolean"),
    ],
)
def test_a_refused_value_leaves_the_picker_as_it_was(name, value, reason):
    picker = AxisPicker(*GROUPNORM)
    before = picker.snapshot()
    assert reason in refusal(lambda: setattr(picker, name, value))
    assert picker.snapshot() == before
    picker.set_state({name: value})  # the same, coming from the page
    assert picker.snapshot() == before
    assert reason in picker.error
    picker.set_state({"groups": 2})
    assert (picker.groups, picker.error) == (2, "")


def test_a_refused_constructor():
    assert "this [ is never closed" in refusal(lambda: AxisPicker("N [C"))
    assert "expected, not int" in refusal(lambda: AxisPicker(3))
    assert "has 2" in refusal(lambda: AxisPicker("N C [L]", (2, 3)))
    assert "3 groups do not divide" in refusal(
        lambda: AxisPicker("N (G [C/G])", (2, 8), 3)
    )


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ("4855", "shape: a tuple of sizes such as (4, 8, 5, 5) is needed, not '4855'."),
        (5, "shape: a tuple of sizes such as (4, 8, 5, 5) is needed, not 5."),
        ({4}, "is needed, not {4}."),
        (("4", "8", "5", "5"), "size 0 of the shape is '4'"),
        ((4, True, 5, 5), "size 1 of the shape is True"),
        ((4, None, 5, 5), "size 1 of the shape is None"),
        ((), "names 4 axes, but the shape () has 0"),
    ],
)
@pytest.mark.parametrize("groups", [None, 1])
def test_a_shape_that_is_none_is_refused_with_a_sentence(shape, reason, groups):
    assert reason in refusal(lambda: AxisPicker(shape=shape, groups=groups))


def test_several_traits_change_together_or_not_at_all():
    picker = AxisPicker(*GROUPNORM)
    with picker.hold_trait_notifications():
        picker.shape = (2, 9, 3, 3)
        picker.groups = 3
    assert picker.torch_line == "torch.nn.GroupNorm(3, 9)"

    def both():
        with picker.hold_trait_notifications():
            picker.shape = (2, 10, 3, 3)
            picker.groups = 4

    assert "4 groups do not divide" in refusal(both)
    assert (picker.shape, picker.groups) == ((2, 9, 3, 3), 3)


def test_a_state_from_the_page_is_taken_over_as_a_whole():
    picker = AxisPicker(*GROUPNORM)
    seen = []
    picker.observe(lambda change: seen.append((change.name, change.new)))
    picker.set_state({"pattern": "N L [D]", "shape": [2, 3, 4], "cell": [1, 2, 3]})
    assert picker.pattern == "N L [D]"
    assert (picker.shape, picker.cell) == ((2, 3, 4), (1, 2, 3))
    assert ("shape", (2, 3, 4)) in seen


def test_the_page_hears_what_python_kept(monkeypatch):
    picker = AxisPicker(*GROUPNORM)
    sent = []
    monkeypatch.setattr(
        AxisPicker, "send_state", lambda self, key=None: sent.append(key)
    )
    picker.set_state({"groups": 3, "no such trait": 1})
    assert ["groups"] in sent


def test_composes_with_other_widgets():
    picker, slider = AxisPicker(*GROUPNORM), ipywidgets.IntSlider(min=1, max=8, value=4)
    box = ipywidgets.VBox([slider, picker])
    link = traitlets.link((slider, "value"), (picker, "groups"))
    slider.value = 2
    assert (picker.groups, box.children[1]) == (2, picker)
    link.unlink()


# -------------------------------------------------------------- what stands in for it


def test_text_form_is_stable_and_says_what_is_shown():
    for picker, text in (
        (
            AxisPicker(*GROUPNORM),
            "AxisPicker('N (G [C/G]) [H W]', (4, 8, 5, 5), groups=4)\n"
            "GroupNorm: N (G [C/G]) [H W] on (4, 8, 5, 5), G = 4. 50 values share each "
            "mean: 2 channels x 5 x 5 positions; 16 means in all.",
        ),
        (
            AxisPicker("[N] L [D]", (2, 3, 4), center=False, eps=1e-6, cell=(0, 1, 2)),
            "AxisPicker('[N] L [D]', (2, 3, 4), center=False, eps=1e-06, "
            "cell=(0, 1, 2))\n"
            "No built-in layer: [N] L [D] on (2, 3, 4). 8 values share each root mean "
            "square: 2 samples x 4 features; 3 root mean squares in all.",
        ),
    ):
        data, _ = picker._repr_mimebundle_()
        assert data["text/plain"] == text
        assert "application/vnd.jupyter.widget-view+json" in data
        again, _ = eval(repr(picker))._repr_mimebundle_()
        assert again["text/html"] == data["text/html"]
        assert picker.model_id not in data["text/html"]


def test_html_holds_the_state_a_picture_and_the_sentence():
    picker = AxisPicker("[N] C [H W]", (2, 3, 2, 2))
    root = ElementTree.fromstring(picker.to_html())
    assert root.attrib["class"] == "normlab-widget"
    assert root.attrib["data-widget"] == "axis_picker"
    state = json.loads(root.attrib["data-state"])
    assert AxisPicker(**state).snapshot() == picker.snapshot()
    svg = root.find("{http://www.w3.org/2000/svg}svg")
    assert svg.attrib["aria-label"] == picker.sentence()
    assert root.find("p").text == picker.sentence()
    assert not re.search(r"\bid=", picker.to_html())


def test_still_picture_colours_the_cells_by_set():
    """(2, 3, 2, 2): blocks of 2 x 2 cells, C to the right, N down."""
    svg = ElementTree.fromstring(AxisPicker("[N] C [H W]", (2, 3, 2, 2)).picture())
    corners = {}
    for path in svg:
        found = re.findall(r"M(\d+) (\d+)h10v10h-10z", path.attrib["d"])
        corners[path.attrib["fill"]] = [(int(x), int(y)) for x, y in found]
    assert len(corners) == 3  # one colour for each channel
    first, second, _third = corners.values()
    block = [(0, 0), (11, 0), (0, 11), (11, 11)]
    assert next(iter(corners)) == THEMES["light"].picked
    assert first == block + [(x, y + 28) for x, y in block]
    assert second == [(x + 28, y) for x, y in first]
    assert (svg.attrib["width"], svg.attrib["height"]) == ("77", "49")


def test_still_picture_of_a_large_tensor_says_what_it_leaves_out():
    picker = AxisPicker("N (G [C/G]) [H W]", (64, 256, 56, 56), 32)
    picture = picker.picture()
    drawn = picture.count("h10v10h-10z")
    assert 500 < drawn <= 1000
    counts = [int(n) for n in re.findall(r"(\d+) of", picture)]
    assert np.prod(counts) == drawn
    assert re.search(
        r"<p>Drawn: the first \d of 64 along N, \d of 256 along C,", picture
    )
    split = AxisPicker("N ([C/G] G)", (1, 6), 2).picture()
    assert len(set(re.findall(r'fill="(#\w+)"', split))) == 2


def test_page_holds_all_it_needs_and_nothing_that_ends_its_script():
    page = static_page(AxisPicker(*GROUPNORM), AxisPicker(), title="<norms> & more")
    assert "<title>&lt;norms&gt; &amp; more</title>" in page
    assert page.count('class="normlab-widget"') == 2
    assert page.count("</script>") == 1
    assert "normlabSources" in page
    assert not re.search(r"(src|href)=", page)
    script = bundle("axis_picker")
    sources = json.JSONDecoder().raw_decode(script.split(" = ", 1)[1])[0]
    assert list(sources) == ["axis_picker"]
    assert sources["axis_picker"]["esm"] == str(AxisPicker._esm)
    assert "axis_picker" in bundle()


def test_user_text_is_escaped():
    class Note(Widget):
        text = traitlets.Unicode().tag(sync=True)
        state = ("text",)

        def sentence(self):
            return self.text

    attack = '"><script>alert(1)</script>'
    made = Note(text=attack).to_html()
    assert "<script>" not in made
    assert f"<p>{html.escape(attack)}</p>" in made
    assert repr(Note(text="a")) == "Note(text='a')"


def test_a_widget_must_say_what_it_shows():
    with pytest.raises(NotImplementedError):
        Widget().sentence()


def test_scripts_are_one_module_without_imports_or_addresses():
    source = str(AxisPicker._esm)
    assert source.count("export default") == 1
    assert not re.search(r"^\s*import\b|\bimport\(", source, re.M)
    addresses = set(re.findall(r"https?://[^\s\"'`]+", source + str(AxisPicker._css)))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in source


def test_in_colab_the_output_asks_for_its_manager_of_third_party_widgets(monkeypatch):
    """anywidget says where Colab's manager is; our own output must pass that on."""
    url = "https://colab.example/manager.min.js"
    module = types.ModuleType("google.colab.output")
    module._widgets = types.SimpleNamespace(_installed_url=url)
    module.enable_custom_widget_manager = lambda: None
    monkeypatch.setitem(sys.modules, "google.colab.output", module)
    data, metadata = AxisPicker()._repr_mimebundle_()
    kind = "application/vnd.jupyter.widget-view+json"
    assert set(data) == {kind, "text/html", "text/plain"}
    assert metadata == {kind: {"colab": {"custom_widget_manager": {"url": url}}}}
