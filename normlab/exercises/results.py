"""What a student sees: results, hints and solutions, as text and as HTML."""

import html
import re
from dataclasses import dataclass

# outcome: sign, word, colour of the bar. The word says it all; sign and colour repeat
# it, and the colour is legible on light and dark ground.
OUTCOMES = {
    "correct": ("✓", "Correct", "#1b9e77"),
    "wrong": ("✗", "Not yet", "#d95f02"),
    "not attempted": ("…", "Not attempted", "#7f8b99"),
    "error": ("!", "Error in your code", "#cc4778"),
}


class Text(str):
    """A text that a notebook shows as Markdown."""

    def __repr__(self):
        return str(self)

    def _repr_markdown_(self):
        return str(self)


def _marked(text):
    """Escaped text; what stands between backticks becomes code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))


def _box(colour, inner):
    style = f"border-left: 4px solid {colour}; padding: 0.2em 0.8em; margin: 0.3em 0"
    return f'<div class="normlab-exercise" role="status" style="{style}">{inner}</div>'


@dataclass(frozen=True)
class Result:
    """The outcome of a check: one of four, and what there is to say about it.

    `facts` are pairs such as ("expected", "0.5"); `printed` is what the student's code
    printed meanwhile, shortened.
    """

    number: str
    outcome: str
    message: str
    facts: tuple[tuple[str, str], ...] = ()
    printed: str = ""

    @property
    def correct(self):
        """Whether the answer is right."""
        return self.outcome == "correct"

    def __repr__(self):
        sign, word, _ = OUTCOMES[self.outcome]
        lines = [f"{sign} {word} (exercise {self.number}). {self.message}".rstrip()]
        lines += [f"    {name}: {value}" for name, value in self.facts]
        if self.printed:
            lines += ["    your code printed:"]
            lines += [f"    | {line}" for line in self.printed.splitlines()]
        return "\n".join(lines)

    def _repr_html_(self):
        sign, word, colour = OUTCOMES[self.outcome]
        inner = f"<strong>{sign} {word}</strong> (exercise {html.escape(self.number)})"
        message = _marked(self.message)
        inner += f'<p style="white-space: pre-wrap; margin: 0.3em 0">{message}</p>'
        if self.facts:
            rows = "".join(
                f"<li><em>{html.escape(name)}:</em> "
                f'<code style="white-space: pre-wrap">{html.escape(value)}</code></li>'
                for name, value in self.facts
            )
            inner += f'<ul style="margin: 0.3em 0">{rows}</ul>'
        if self.printed:
            inner += f"<p>Your code printed:</p><pre>{html.escape(self.printed)}</pre>"
        return _box(colour, inner)


@dataclass(frozen=True)
class Hint:
    """One hint of several, from a nudge to nearly the solution."""

    number: str
    index: int
    total: int
    text: str

    @property
    def _heading(self):
        return f"Hint {self.index} of {self.total} (exercise {self.number})"

    def __repr__(self):
        return f"{self._heading}. {self.text}"

    def _repr_html_(self):
        inner = f"<strong>{html.escape(self._heading)}</strong>"
        text = _marked(self.text)
        inner += f'<p style="white-space: pre-wrap; margin: 0.3em 0">{text}</p>'
        return _box("#7f8b99", inner)


@dataclass(frozen=True)
class Solution:
    """The code of a solution and why it is right; in HTML a fold."""

    number: str
    code: str
    why: str = ""

    def __repr__(self):
        return f"Solution of exercise {self.number}\n\n{self.code}" + (
            f"\n\n{self.why}" if self.why else ""
        )

    def _repr_html_(self):
        why = f"<p>{_marked(self.why)}</p>" if self.why else ""
        return (
            f"<details><summary>Solution of exercise {html.escape(self.number)}"
            f"</summary><pre><code>{html.escape(self.code)}</code></pre>{why}</details>"
        )
