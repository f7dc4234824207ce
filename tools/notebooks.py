"""Execute notebooks and store their outputs in one byte-stable form.

    python tools/notebooks.py                       # all of notebooks/
    python tools/notebooks.py notebooks/06*.ipynb   # these
    python tools/notebooks.py --check               # run nothing: is the form right?

Every notebook runs top to bottom in a fresh kernel, each cell once, in its own
folder. A notebook that raises, writes to stderr or shows a figure without alt text
is reported, and its file is left as it was.
"""

import argparse
import hashlib
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python"}
METADATA = {  # the lexer is the one that knows IPython's %pip, for the book
    "kernelspec": KERNEL | {"name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
CELL_METADATA = {"tags", "mystnb", "slideshow"}
# The kernel's peak memory in MiB. Linux counts KiB, macOS bytes; Windows asks psutil.
PEAK = {
    "win32": "__import__('psutil').Process().memory_info().peak_wset / 2**20",
    "darwin": "__import__('resource').getrusage(0).ru_maxrss / 2**20",
}.get(sys.platform, "__import__('resource').getrusage(0).ru_maxrss / 2**10")


def execute(nb, folder, timeout=120):
    """Run ``nb`` in place; return the peak memory in MiB and, or None, what failed."""
    client = NotebookClient(
        nb,
        timeout=timeout,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        record_timing=False,
        coalesce_streams=True,
        force_raise_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    nb.cells.append(nbformat.v4.new_code_cell(PEAK))
    index, failure = 0, None
    with client.setup_kernel():
        try:
            for index, cell in enumerate(nb.cells):
                client.execute_cell(cell, index)
        except CellExecutionError as error:
            failure = f"raised {error.ename}: {error.evalue}"
        except CellTimeoutError:
            failure = f"took more than {timeout} s"
        except DeadKernelError:
            failure = "ended the kernel (out of memory?)"
    peak = nb.cells.pop()
    if failure:
        return 0.0, f"{where(nb, index)} {failure}"
    return float(peak.outputs[0].data["text/plain"]), None


def code_cells(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def where(nb, index):
    """A cell as a person would look for it: its number and its first line."""
    return f"cell {index + 1} ({(nb.cells[index].source.splitlines() or [''])[0]})"


def images(cell):
    """The alt texts of the pictures that a cell shows: their text/plain."""
    return [
        " ".join(output.data.get("text/plain", "").split())
        for output in cell.get("outputs", [])
        if any(mime.startswith("image/") for mime in output.get("data", {}))
    ]


def problems(nb):
    """What the outputs of ``nb`` must not hold, one sentence each."""
    for index, cell in enumerate(nb.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                yield f"{where(nb, index)} raised {output.ename}: {output.evalue}"
            elif output.get("name") == "stderr":
                yield f"{where(nb, index)} wrote to stderr: {output.text.strip()}"
        if len(images(cell)) > 1:
            yield f"{where(nb, index)} shows more than one figure; split the cell"
        for alt in images(cell):
            if not alt or re.fullmatch("<.*>", alt):
                yield (
                    f"{where(nb, index)} shows a figure without alt text; import "
                    'normlab.diagrams, then fig.set_label("What the picture shows.")'
                )


def stored(nb):
    """The text of the file for ``nb``: no ids, times or widget state of one run."""
    nb = nbformat.from_dict(nb | {"metadata": METADATA, "nbformat_minor": 5})
    for cell in nb.cells:
        kept = CELL_METADATA & cell.metadata.keys()
        cell.metadata = nbformat.from_dict({k: cell.metadata[k] for k in kept})
        for output in cell.get("outputs", []):
            if WIDGET in output.get("data", {}):
                model = hashlib.sha256(cell.id.encode()).hexdigest()[:32]
                output.data[WIDGET]["model_id"] = model
        cell.metadata.get("mystnb", {}).get("image", {}).pop("alt", None)
        for alt in images(cell):  # where MyST-NB looks for it
            image = cell.metadata.setdefault("mystnb", {}).setdefault("image", {})
            image["alt"] = alt
    return nbformat.writes(nb).rstrip("\n") + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--check", action="store_true", help="write and run nothing")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one cell")
    args = parser.parse_args(argv)
    failed = False
    print(f"{'notebook':<28} {'cells':>6} {'code':>5} {'seconds':>8} {'peak MiB':>9}")
    for path in args.paths or sorted(NOTEBOOKS.glob("*.ipynb")):
        before = path.read_text(encoding="utf-8")
        nb = nbformat.reads(before, as_version=4)
        start, peak, failure = time.perf_counter(), 0.0, None
        if not args.check:
            peak, failure = execute(nb, path.resolve().parent, args.timeout)
        found = [failure] if failure else list(problems(nb))
        after = stored(nb)
        if args.check and after != before:
            found.append("is not in the stored form; run make notebooks")
        elif not found and after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
        row = f"{path.name:<28} {len(nb.cells):>6} {len(code_cells(nb)):>5}"
        print(row, f"{time.perf_counter() - start:>8.1f} {peak:>9.0f}", flush=True)
        for problem in found:
            print("   ", re.sub(r"\x1b\[[0-9;]*m", "", problem))
        failed |= bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
