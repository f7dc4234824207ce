"""AxisPicker on a plain page: no kernel, no network."""

import json

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from traitlets import TraitError

from normlab.widgets import AxisPicker

IMAGES = "N (G [C/G]) [H W]", (4, 8, 5, 5)


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def press_axis(page, label):
    page.locator(f'[data-key="press {label}"]').click()


def pattern(page):
    return page.get_by_label("Pattern")


def tiles(page):
    """Reduced, kept, values in each set, number of sets."""
    return page.locator(".nl-tile strong").all_inner_texts()


def lines(page):
    """The PyTorch and the normlab line."""
    return page.locator(".nl-code code").all_inner_texts()


def steps(page):
    """The last column of the arithmetic, by its name."""
    texts = page.locator(".nl-steps span").all_inner_texts()
    return dict(zip(texts[::3], texts[2::3], strict=True))


def number(text):
    return float(text.removeprefix("= ").replace("−", "-"))


def picked(page):
    """How many cells are picked out."""
    paths = page.locator(".nl-cells path:not(.nl-other)").all()
    return sum((path.get_attribute("d") or "").count("M") for path in paths)


def last_cell(page):
    """Where on the page the last cell is."""
    box = page.locator(".nl-picture svg").bounding_box()
    return box["x"] + box["width"] - 4, box["y"] + box["height"] - 4


def message(page):
    return page.locator(".nl-message").inner_text()


def test_a_newcomer_finds_the_answer_by_one_press(open_widgets):
    page = open_widgets(AxisPicker("[N] C [H W]", (4, 8, 5, 5)))
    assert tiles(page) == ["N H W", "C", "100", "8"]
    press(page, "GroupNorm")
    assert tiles(page) == ["C/G H W", "N G", "50", "16"]
    assert lines(page) == ["torch.nn.GroupNorm(4, 8)", "normlab.GroupNorm(4, 8)"]
    sentence = "50 values share each mean: 2 channels x 5 x 5 positions; 16 means"
    assert message(page) == f"{sentence} in all."


def test_axes_are_pressed_by_pointer_and_by_keyboard(open_widgets):
    page = open_widgets(AxisPicker("[N] C [H W]", (4, 8, 5, 5)))
    press_axis(page, "N")
    assert pattern(page).input_value() == "N C [H W]"
    page.keyboard.press("Tab")  # its size
    page.keyboard.press("Tab")  # C
    page.keyboard.press("Space")
    assert pattern(page).input_value() == "N [C H W]"
    assert lines(page)[0] == "torch.nn.LayerNorm((8, 5, 5))"
    pressed = page.locator(".nl-presses [aria-pressed=true]").all()
    labels = [button.get_attribute("aria-label") for button in pressed]
    assert labels == [
        f"{name}: reduced" for name in ("C, size 8", "H, size 5", "W, size 5")
    ]


def test_what_no_layer_does_is_said_and_still_made(open_widgets):
    page = open_widgets(AxisPicker("[N] C [H] W", (4, 8, 5, 6), parameters="C"))
    assert lines(page) == [
        "no built-in layer does this",
        "normlab.Norm('[N] C [H] W', 'C', sizes={'C': 8})",
    ]


def test_a_pattern_is_typed_and_its_errors_point_at_the_culprit(open_widgets):
    page = open_widgets(AxisPicker("[N] C [H W]", (4, 8, 5, 5)))
    box = page.locator(".nl-complaint")
    for text in ("N [C [H] W]", "N C H]", "N (C) [H W]", "N C H W!", "N ... C"):
        pattern(page).fill(text)
        with pytest.raises(TraitError) as refused:
            AxisPicker(text)
        assert box.inner_text().strip() == str(refused.value).strip()
        assert tiles(page) == ["N H W", "C", "100", "8"]  # nothing changes meanwhile
    pattern(page).fill("N  ([C/G]  G)  H W")
    assert box.is_hidden()
    assert tiles(page) == ["C/G", "N G H W", "2", "400"]
    pattern(page).blur()
    assert pattern(page).input_value() == "N ([C/G] G) H W"


def test_typed_text_is_never_read_as_html(open_widgets):
    page = open_widgets(AxisPicker())
    pattern(page).fill("<img src=x onerror=alert(1)> C")
    assert "<img src=x" in page.locator(".nl-complaint").inner_text()
    assert page.locator("img").count() == 0


def test_own_axes_get_a_size_and_keep_the_known_ones(open_widgets):
    page = open_widgets(AxisPicker(*IMAGES))
    pattern(page).fill("T [C V]")
    assert page.get_by_label("Size of C").input_value() == "8"
    page.get_by_label("Size of V").fill("7")
    page.keyboard.press("Enter")
    assert tiles(page) == ["C V", "T", "56", "4"]


def test_only_divisors_can_be_chosen_as_groups(open_widgets):
    page = open_widgets(AxisPicker(*IMAGES, groups=4))
    groups = page.get_by_label("Number of groups of C")
    offered = [
        option.get_attribute("value") for option in groups.locator("option").all()
    ]
    assert offered == ["0", "1", "2", "4", "8"]
    groups.select_option("8")
    assert tiles(page)[2:] == ["25", "32"]
    groups.select_option("0")
    assert pattern(page).input_value() == "N [C H W]"
    groups.select_option("4")
    assert pattern(page).input_value() == "N (G [C/G]) [H W]"


def test_a_size_that_the_groups_do_not_divide_moves_them_and_says_so(open_widgets):
    page = open_widgets(AxisPicker(*IMAGES, groups=4))
    page.get_by_label("Size of C").fill("6")
    page.keyboard.press("Enter")
    assert tiles(page) == ["C/G H W", "N G", "50", "12"]
    said = "C = 6 is not divisible by 4 groups, so G is now 3."
    assert message(page) == f"{said} These would fit: 1, 2, 3, 6."


def test_presets_come_from_the_table_and_move_to_axes_they_know(open_widgets):
    page = open_widgets(AxisPicker("[N] C [H W]", (4, 8, 5, 5)))
    seen = {}
    for norm in ("BatchNorm", "LayerNorm", "InstanceNorm", "GroupNorm"):
        press(page, norm)
        seen[norm] = pattern(page).input_value()
    assert seen == {
        "BatchNorm": "[N] C [H W]",
        "LayerNorm": "N [C H W]",
        "InstanceNorm": "N C [H W]",
        "GroupNorm": "N (G [C/G]) [H W]",
    }
    press(page, "RMSNorm")
    assert pattern(page).input_value() == "N L [D]"
    assert message(page).startswith("RMSNorm has no layer on N C H W, so the axes are")
    page.get_by_label("Layout").select_option("N D")
    assert lines(page)[0] == "torch.nn.RMSNorm(8)"


def test_undo_and_reset(open_widgets):
    page = open_widgets(AxisPicker("[N] C [H W]", (4, 8, 5, 5)))
    undo = page.get_by_role("button", name="Undo")
    assert undo.is_disabled()
    press_axis(page, "H")
    press(page, "GroupNorm")
    page.get_by_label("Size of N").fill("3")
    page.keyboard.press("Enter")
    undo.click()
    assert tiles(page)[3] == "16"
    undo.click()
    assert pattern(page).input_value() == "[N] C H [W]"
    press(page, "Reset")
    assert pattern(page).input_value() == "[N] C [H W]"
    undo.click()
    assert pattern(page).input_value() == "[N] C H [W]"


def test_arithmetic_of_the_cell_that_the_keyboard_reaches(open_widgets):
    picker = AxisPicker(*IMAGES, groups=4, weight=2.0, bias=-1.0)
    page = open_widgets(picker)
    page.locator(".nl-picture").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowRight")  # out of the block, into the next channel
    assert "Cell N 0, C 1, H 1, W 0" in page.locator(".nl-arithmetic").inner_text()
    values = picker.values[picker.set_ids == 0]
    x = picker.values[0, 1, 1, 0]
    normalized = (x - values.mean()) / np.sqrt(values.var() + 1e-5)
    shown = {name: number(text) for name, text in steps(page).items()}
    assert shown == pytest.approx(
        {
            "mean": values.mean(),
            "variance": values.var(),
            "normalized": normalized,
            "output": 2 * normalized - 1,
        },
        rel=2e-3,
    )
    live = page.locator("[aria-live]").inner_text()
    assert live.startswith(f"N 0, C 1, H 1, W 0: {x:.0f}, set 0, output")


def test_the_cell_under_the_pointer_shows_its_set_for_as_long(open_widgets):
    page = open_widgets(AxisPicker(*IMAGES, groups=4, cell=(0, 0, 0, 0)))
    where = page.locator(".nl-arithmetic p").first
    assert picked(page) == 50
    page.mouse.move(*last_cell(page))
    assert where.inner_text().startswith("Cell N 3, C 7, H 4, W 4 holds")
    assert "set 15 of 16" in where.inner_text()
    assert picked(page) == 50
    page.mouse.move(0, 0)
    assert "set 0 of 16" in where.inner_text()


def test_cells_can_be_coloured_by_the_weight_they_share(open_widgets):
    page = open_widgets(AxisPicker(*IMAGES, groups=4))
    press(page, "shared weight")
    assert picked(page) == 4 * 5 * 5
    page.get_by_label("Axes along which weight").select_option("C H W")
    assert picked(page) == 4
    assert "(8, 5, 5)" in page.locator(".nl-facts").inner_text()


@pytest.mark.parametrize(
    ("picker", "expected"),
    [
        (AxisPicker("[N] C", (1, 8)), "the output is the bias alone. PyTorch raises"),
        (AxisPicker("N C H W", (2, 2, 2, 2)), "the output is 0"),
        (AxisPicker("N L [D]", (2, 3, 1), center=False), "only its sign is left"),
        (AxisPicker("[N C H W]", (2, 2, 2, 2)), "Everything is reduced"),
        (AxisPicker("N C H [W]", (2, 2, 2, 4)), "the channels are not averaged"),
    ],
)
def test_warnings_teach(open_widgets, picker, expected):
    page = open_widgets(picker)
    assert page.locator(".nl-warning").count() == 1
    assert expected in message(page)


@pytest.mark.parametrize(
    ("picker", "answers"),
    [
        (
            AxisPicker("[N] C [L]"),
            ["In train yes", "Yes: padding along L", "Yes: eval"],
        ),
        (
            AxisPicker("N L [D]"),
            ["No: each sample", "No: no positions", "No: the same"],
        ),
        (
            AxisPicker("[N] (G [C/G]) L"),
            ["Yes: N is reduced", "No: no pos", "No, unless track"],
        ),
        (
            AxisPicker("N C [L]"),
            ["No: each", "Yes: padding along L", "No, unless track"],
        ),
    ],
)
def test_facts_about_batch_padding_and_modes(open_widgets, picker, answers):
    page = open_widgets(picker)
    shown = page.locator(".nl-facts dd").all_inner_texts()[2:]
    for text, answer in zip(shown, answers, strict=True):
        assert text.startswith(answer)


def test_a_link_restores_the_exact_state(open_widgets):
    picker = AxisPicker(
        *IMAGES, groups=2, center=False, parameters="", cell=(1, 2, 3, 4)
    )
    page = open_widgets(AxisPicker("[N] C [H W]"))
    page.evaluate(
        "state => location.hash = new URLSearchParams({'axis_picker-1': state})",
        json.dumps(picker.snapshot()),
    )
    page.get_by_text("set 2 of 8").wait_for()
    link = page.evaluate(
        """async () => {
          let copied;
          navigator.clipboard.writeText = async (text) => { copied = text; };
          document.querySelector('[title="Copy the link to this state"]').click();
          await Promise.resolve();
          return copied;
        }"""
    )
    again = open_widgets(AxisPicker(), hash="#" + link.split("#")[1])
    assert again.get_by_text("set 2 of 8").count() == 1
    assert pattern(again).input_value() == picker.pattern
    copied = again.evaluate(
        """async () => {
          let copied;
          navigator.clipboard.writeText = async (text) => { copied = text; };
          document.querySelector('[title="Copy the picker as a Python line"]').click();
          await Promise.resolve();
          return copied;
        }"""
    )
    assert copied == f"normlab.{picker!r}"


@pytest.mark.parametrize(
    "state",
    [
        {"pattern": "<b>", "shape": [2]},
        {"pattern": None, "shape": "x", "groups": -1, "cell": {}, "eps": "no"},
        {"shape": [1e9, 1e9, 1e9, 1e9]},
        {"parameters": "Q", "weight": None, "cell": [9, 9, 9, 9]},
        "not a state",
    ],
)
def test_a_link_with_nonsense_leaves_a_working_picker(open_widgets, state):
    fragment = json.dumps(state).replace(" ", "%20").replace("#", "%23")
    page = open_widgets(AxisPicker(), hash=f"#axis_picker-1={fragment}")
    press(page, "BatchNorm")
    assert lines(page)[0] == "torch.nn.BatchNorm2d(8)"


def test_a_large_tensor_is_abridged_and_says_so(open_widgets):
    page = open_widgets(AxisPicker("N (G [C/G]) [H W]", (64, 256, 56, 56), groups=32))
    paths = page.locator(".nl-cells path").all()
    drawn = sum((path.get_attribute("d") or "").count("M") for path in paths)
    assert drawn == 6 * 6 * 7 * 7
    legend = page.locator(".nl-legend").inner_text()
    assert (
        "6 of 64 along N, 6 of 256 along C, 7 of 56 along H, 7 of 56 along W" in legend
    )
    assert tiles(page)[2:] == ["25,088", "2,048"]
    press_axis(page, "N")
    press_axis(page, "G")
    assert "51,380,224 values: too many" in page.locator(".nl-values").inner_text()


def test_pressing_moves_nothing(open_widgets):
    page = open_widgets(AxisPicker("[N] C [H W]", (4, 8, 5, 5)))
    boxes = """() => [".nl-tiles", ".nl-picture", ".nl-facts", ".normlab"].map(name => {
        const box = document.querySelector(name).getBoundingClientRect();
        return [box.x, box.y, box.width, box.height];
    })"""
    before = page.evaluate(boxes)
    for name in (
        "BatchNorm",
        "LayerNorm",
        "InstanceNorm",
        "GroupNorm",
        "root mean square",
    ):
        press(page, name)
        assert page.evaluate(boxes) == before, name
    for label in ("N", "G", "H", "W"):
        press_axis(page, label)
        assert page.evaluate(boxes) == before, label
    pattern(page).fill("[")
    assert page.evaluate(boxes) == before


@pytest.mark.parametrize("width", [1280, 1000, 880, 780, 600, 360])
def test_the_choice_of_parameters_is_never_cut_off(open_widgets, width):
    page = open_widgets(AxisPicker("N C [H W]", (4, 8, 5, 5)), width=width)
    # The book's theme indents every <dd>.
    page.add_style_tag(content="dl[class]:not(.simple, .field) dd {margin-left: 2rem}")
    room, needed = page.locator(".nl-facts select").evaluate(
        """select => {
          const pen = document.createElement("canvas").getContext("2d");
          pen.font = getComputedStyle(select).font;
          const widths = [...select.options].map(o => pen.measureText(o.text).width);
          const arrowAndPadding = 40;
          return [select.clientWidth, Math.max(...widths) + arrowAndPadding];
        }"""
    )
    assert room >= needed


def test_the_theme_of_the_page_is_followed_live(open_widgets):
    page = open_widgets(AxisPicker())
    colour = "getComputedStyle(document.querySelector('.normlab')).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 24, 29)"
    seen = [page.evaluate(colour)]
    for change in (
        "document.documentElement.dataset.theme = 'dark'",  # a book
        "document.body.dataset.jpThemeLight = 'true'",  # JupyterLab
        "document.body.dataset.jpThemeLight = 'false'",
        "document.body.removeAttribute('data-jp-theme-light');"
        "document.body.className = 'vscode-light'",
        "document.body.className = 'vscode-dark'",
    ):
        page.evaluate(change)
        seen.append(page.evaluate(colour))
    page.evaluate(
        "document.body.className = ''; delete document.documentElement.dataset.theme"
    )
    seen.append(page.evaluate(colour))
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{colour} !== '{light}'")
    seen.append(page.evaluate(colour))
    page.emulate_media(color_scheme="light")
    assert seen == [light, dark, light, dark, light, dark, light, dark]


def test_reduced_motion_is_respected(open_widgets):
    page = open_widgets(AxisPicker(), reduced_motion="reduce")
    duration = (
        "getComputedStyle(document.querySelector('.normlab button')).transitionDuration"
    )
    assert page.evaluate(duration) == "0s"
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(duration) != "0s"
    page.emulate_media(reduced_motion="reduce")


@pytest.mark.parametrize("width", [1100, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_no_wider_than_the_page(open_widgets, width, theme):
    page = open_widgets(AxisPicker(*IMAGES), width=width, color_scheme=theme)
    page.locator("summary").click()
    pattern(page).fill("N [")
    results = Axe().run(page)
    serious = [
        (found["id"], [node["target"] for node in found["nodes"]])
        for found in results.response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_touch(open_widgets):
    page = open_widgets(
        AxisPicker("[N] C [H W]"), width=360, has_touch=True, is_mobile=True
    )
    page.locator('[data-key="press N"]').tap()
    assert pattern(page).input_value() == "N C [H W]"
    page.locator(".nl-picture").scroll_into_view_if_needed()
    page.touchscreen.tap(*last_cell(page))
    assert "Cell N 3, C 7, H 4, W 4" in page.locator(".nl-arithmetic").inner_text()
    heights = [b.bounding_box()["height"] for b in page.get_by_role("button").all()]
    assert min(heights) >= 44


def test_two_pickers_on_one_page_are_independent(open_widgets):
    page = open_widgets(AxisPicker("[N] C [H W]"), AxisPicker("N L [D]"))
    first, second = page.locator(".normlab").all()
    first.get_by_role("button", name="GroupNorm").click()
    assert first.get_by_label("Pattern").input_value() == "N (G [C/G]) [H W]"
    assert second.get_by_label("Pattern").input_value() == "N L [D]"
    assert page.locator(".normlab [id]").count() == 0


def test_without_script_a_picture_and_its_sentence_stand_there(chromium, tmp_path):
    from normlab.widgets import static_page

    picker = AxisPicker(*IMAGES, groups=4)
    file = tmp_path / "page.html"
    file.write_text(static_page(picker), encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.get_by_role("img", name=picker.sentence()).is_visible()
    assert page.get_by_text(picker.sentence()).is_visible()
    context.close()
