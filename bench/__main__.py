"""Print the tables as Markdown: ``python -m bench``, ``python -m bench norms``."""

import sys
from importlib import import_module

NAMES = ("norms", "diagrams", "widgets", "book")


def markdown(rows):
    """The rows as a Markdown table, the first one being its header."""
    header, *body = rows
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        print(
            f"## {name}\n\n{markdown(import_module(f'bench.{name}').table())}\n",
            flush=True,
        )
