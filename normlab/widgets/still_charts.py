"""Still charts, bars and lines, for pages on which no script runs."""

import html

# Readable on light and on dark pages; what is drawn differs in form too.
_INK = "#7d8894"
_MARK = "#3b8bd6"
_WIDTH, _SIDE, _ROW = 480, 150, 20
_PANEL = 110


def still_bars(rows, label):
    """One bar for each (name, length); a length of None is written as refused."""
    longest = max([length for _, length in rows if length] or [1.0])
    drawn = []
    for i, (name, length) in enumerate(rows):
        y = i * _ROW
        drawn.append(_text(_SIDE - 8, y + 14, name, "end"))
        if length is None:
            drawn.append(_text(_SIDE, y + 14, "refused"))
            continue
        width = round(length / longest * (_WIDTH - _SIDE - 60), 1)
        drawn.append(
            f'<rect x="{_SIDE}" y="{y + 3}" width="{width}" height="{_ROW - 6}" '
            f'fill="{_MARK}"/>'
        )
        drawn.append(_text(_SIDE + width + 6, y + 14, f"{length:.2f}"))
    return _svg("".join(drawn), len(rows) * _ROW, label)


def still_lines(panels, label):
    """For each (name, values, truth): both as lines, the truth dashed."""
    drawn = []
    for i, (name, values, truth) in enumerate(panels):
        low, high = min(*values, *truth), max(*values, *truth)
        rise = (_PANEL - 36) / ((high - low) or 1)
        step = (_WIDTH - 70) / max(len(values) - 1, 1)
        floor = (i + 1) * _PANEL - 10
        drawn.append(_text(0, i * _PANEL + 14, f"{name} (dashed: the truth)"))
        drawn.append(_text(0, floor, f"{low:.2f}"))
        drawn.append(_text(0, floor - rise * (high - low) + 10, f"{high:.2f}"))
        for line, colour, dash in (
            (truth, _INK, ' stroke-dasharray="6 4"'),
            (values, _MARK, ""),
        ):
            points = " ".join(
                f"{60 + k * step:.1f},{floor - (value - low) * rise:.1f}"
                for k, value in enumerate(line)
            )
            drawn.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" '
                f'stroke-width="2"{dash}/>'
            )
    return _svg("".join(drawn), len(panels) * _PANEL, label)


def _text(x, y, words, anchor="start"):
    return (
        f'<text x="{x}" y="{y:.0f}" text-anchor="{anchor}" fill="{_INK}" '
        f'font-family="sans-serif" font-size="12">{html.escape(words)}</text>'
    )


def _svg(drawn, height, label):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 0 {_WIDTH} {height}" style="max-width: 100%; '
        f'height: auto" aria-label="{html.escape(label)}">{drawn}</svg>'
    )
