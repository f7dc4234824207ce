"""What all explorers share: the Python half, and the page without kernel."""

import html
import json
from dataclasses import asdict
from pathlib import Path

import anywidget
import traitlets

from normlab import axes
from normlab.axes.notation import POSITIONS
from normlab.diagrams.style import THEMES

_HERE = Path(__file__).parent
# A set's colour is one of four, a sum over the kept axes from the last one on: with
# these steps, neighbours along any of them differ.
COLOUR_STEPS = (1, 2, 3, 1, 2)
# What notation.js knows from Python.
_NOTATION = {
    "LAYERS": [asdict(row) for row in axes.LAYERS],
    "POSITIONS": sorted(POSITIONS),
}


def _colours():
    """The sheet with the colours of sets: those of the diagrams, tested there."""
    rules = []
    for name, theme in THEMES.items():
        where = ".normlab" if name == "light" else f'.normlab[data-theme="{name}"]'
        colours = {
            "picked": theme.picked,
            "on-picked": theme.on_picked,
            "cell-line": theme.line,
            **{f"set-{i}": tint for i, tint in enumerate(theme.tints)},
        }
        lines = "".join(f"  --nl-{k}: {v};\n" for k, v in colours.items())
        rules.append(f"{where} {{\n{lines}}}")
    for i in range(len(THEMES["light"].tints)):
        rules.append(f".normlab .nl-set-{i} {{\n  fill: var(--nl-set-{i});\n}}")
        rules.append(f".normlab .nl-on-{i} {{\n  stroke: var(--nl-set-{i});\n}}")
    return "\n".join(rules)


def _read(name):
    return (_HERE / name).read_text(encoding="utf-8")


class _Number:
    def validate(self, obj, value):
        if isinstance(value, bool):
            self.error(obj, value)
        return super().validate(obj, value)


class Int(_Number, traitlets.Int):
    """A whole number. True and False are none, though Python counts with them."""


class Float(_Number, traitlets.Float):
    """A number. True and False are none, though Python counts with them."""


class Widget(anywidget.AnyWidget):
    """One explorer: traits that the front end of the same stem shows and changes.

    A subclass names its `stem` and the traits that make up its `state`, and says what
    stands in its place where no script runs: `sentence` and `picture`. `constants` are
    what its script knows from Python and never changes; `parts` are more script files,
    `styles` more style sheets.

    A state that the validators refuse is never taken over: set from Python it raises
    `traitlets.TraitError`; coming from the page, it is answered with the reason
    (`error`) and the state that Python still holds. Numbers are declared as `Int` and
    `Float` of this module, which refuse True and False. A name that is no trait raises
    TypeError.
    """

    stem = ""
    state = ()
    parts = ()
    styles = ()
    constants = {}
    by_stem = {}

    error = traitlets.Unicode(help="Why the last change was refused.").tag(sync=True)

    def __init_subclass__(cls, **kwargs):
        # One module for each widget: what is loaded from text cannot import its
        # neighbours, neither in a notebook nor on a page opened as a file.
        if "stem" in vars(cls):
            constants = {**_NOTATION, "COLOUR_STEPS": COLOUR_STEPS, **cls.constants}
            lines = [
                f"export const {k} = {json.dumps(v)};" for k, v in constants.items()
            ]
            shared = ("base.js", "notation.js", "cells.js")
            sources = map(_read, (*shared, *cls.parts, f"{cls.stem}.js"))
            cls._esm = "\n".join([*lines, *sources])
            sheets = ("base.css", *cls.styles, f"{cls.stem}.css")
            cls._css = "\n".join([_colours(), *map(_read, sheets)])
            Widget.by_stem[cls.stem] = cls
        super().__init_subclass__(**kwargs)

    def __init__(self, **traits):
        unknown = set(traits) - set(self.trait_names())
        if unknown:
            raise TypeError(
                f"{type(self).__name__}: {', '.join(sorted(unknown))} cannot be set; "
                f"these can: {', '.join(self.state)}."
            )
        super().__init__(**traits)

    def snapshot(self):
        """The state as a dict of JSON values."""
        return {name: getattr(self, name) for name in self.state}

    def sentence(self):
        """What the widget shows now, in words."""
        raise NotImplementedError

    def picture(self):
        """What the widget shows now, as a still SVG; may be empty."""
        return ""

    def set_state(self, sync_data):
        """Take over a state from the page, or refuse it and say why."""
        try:
            super().set_state(sync_data)
        except traitlets.TraitError as refusal:
            self.send_state([name for name in sync_data if name in self.keys])
            self.error = str(refusal)
        else:
            self.error = ""

    def __repr__(self):
        arguments = ", ".join(f"{k}={v!r}" for k, v in self.snapshot().items())
        return f"{type(self).__name__}({arguments})"

    def to_html(self):
        """The widget for a page without kernel: a still picture until it is mounted."""
        state = json.dumps(self.snapshot(), sort_keys=True)
        return (
            f'<div class="normlab-widget" data-widget="{self.stem}" '
            f'data-state="{html.escape(state)}">{self.picture()}'
            f"<p>{html.escape(self.sentence())}</p></div>"
        )

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        # Without ids, so that a stored notebook compares equal when it is run again.
        data["text/html"] = self.to_html()
        data["text/plain"] = f"{self!r}\n{self.sentence()}"
        return data, metadata


def bundle(*stems):
    """The script that a page needs to mount widgets: their sources, and `mount.js`.

    Without arguments, for every widget. Load it anywhere on the page, once.
    """
    classes = {stem: Widget.by_stem[stem] for stem in stems or sorted(Widget.by_stem)}
    sources = {
        stem: {"esm": str(cls._esm), "css": str(cls._css)}
        for stem, cls in classes.items()
    }
    # "</script>" must not stand inside a script element.
    text = json.dumps(sources, sort_keys=True).replace("</", "<\\/")
    return f"globalThis.normlabSources = {text};\n{_read('mount.js')}"


def static_page(*widgets, title="normlab"):
    """One HTML page that holds these widgets and needs neither kernel nor network.

    >>> from normlab.widgets import AxisPicker, static_page
    >>> page = static_page(AxisPicker("[N] C [H W]"), title="BatchNorm")
    >>> page.startswith("<!doctype html>")
    True
    """
    divs = "\n".join(widget.to_html() for widget in widgets)
    script = bundle(*sorted({widget.stem for widget in widgets}))
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>body {{ max-width: 70rem; margin: 0 auto; padding: .5rem }}</style>
<main>
{divs}
</main>
<script>
{script}
</script>
</html>
"""
