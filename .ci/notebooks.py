"""Execute the notebooks and compare what they show with the outputs that are stored in them.

    python .ci/notebooks.py [--write] [NAME ...]

Texts are compared word for word, numbers up to a tolerance, as searches end elsewhere on other
processors; seconds are not compared, and of figures only that they are there and how large.
Warnings are shown here and not stored. ``--write`` stores what was shown; read the sentences
around it then.
"""

import argparse
import difflib
import os
import re
import struct
from base64 import b64decode
from copy import deepcopy
from math import isclose
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
TIME = re.compile(rf"{NUMBER}(?= (?:µs|ms|s|seconds)\b)|(?<=seconds )\s*{NUMBER}")
RELATIVE, ABSOLUTE = 0.05, 0.02
# What a figure may be larger or smaller: its edges follow the texts on its axes.
FIGURE = 0.1


def main():
    """Execute the notebooks that are asked for, and store or compare their outputs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the outputs")
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of names, as 05")
    args = parser.parse_args()
    # CI draws without a screen, where a notebook would show no figures.
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    stale = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not args.names or path.name.startswith(tuple(args.names)):
            stale += update(path) if args.write else check(path)
    if stale:
        raise SystemExit(f"{stale} cells show what is not stored: see .ci/notebooks.py --write")


def update(path):
    """Store what a notebook shows; no cell is stale then."""
    nbformat.write(execute(nbformat.read(path, as_version=4)), path)
    print(f"{path.name}: stored, {path.stat().st_size / 1000:.0f} kB", flush=True)
    return 0


def check(path):
    """Return the number of cells whose outputs differ from the stored ones, and say how."""
    stored = nbformat.read(path, as_version=4)
    fresh = execute(stored)
    pairs = enumerate(zip(stored.cells, fresh.cells, strict=True))
    stale = 0
    for number, (old, new) in pairs:
        if new.cell_type == "code" and not alike(old.outputs, new.outputs):
            stale += 1
            shown = [text_of(cell.outputs).splitlines() for cell in (old, new)]
            print(f"{path.name}, cell {number} ({new.source.splitlines()[0]}) is stale:")
            print(*difflib.unified_diff(*shown, "stored", "shown now", lineterm=""), sep="\n")
    print(f"{path.name}: {stale or 'no'} stale cells", flush=True)
    return stale


def execute(notebook):
    """Return an executed copy that has nothing of the machine in it but its outputs."""
    fresh = deepcopy(notebook)
    NotebookClient(fresh, timeout=600, resources={"metadata": {"path": FOLDER}}).execute()
    fresh.metadata = notebook.metadata
    for cell in fresh.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = tidy(cell.outputs)
    return fresh


def tidy(outputs):
    """Join the pieces of what was printed, as they depend on time; show and drop warnings."""
    kept = []
    for output in outputs:
        if output.output_type == "stream" and output.name == "stderr":
            print(output.text, end="")
        elif output.output_type == "stream" and kept and kept[-1].output_type == "stream":
            kept[-1].text += output.text
        else:
            if "execution_count" in output:
                output.execution_count = None
            kept.append(output)
    return kept


def alike(old, new):
    """Return whether outputs have the same words, near numbers, and figures of near sizes."""
    before, after = text_of(old), text_of(new)
    if re.sub(NUMBER, "#", before) != re.sub(NUMBER, "#", after):
        return False
    numbers = zip(re.findall(NUMBER, before), re.findall(NUMBER, after), strict=True)
    if not all(near(float(a), float(b), RELATIVE, ABSOLUTE) for a, b in numbers):
        return False
    sizes = [[size for output in outputs for size in size_of(output)] for outputs in (old, new)]
    return len(sizes[0]) == len(sizes[1]) and all(
        near(a, b, FIGURE, 0) for a, b in zip(*sizes, strict=True)
    )


def near(a, b, relative, absolute):
    return isclose(a, b, rel_tol=relative, abs_tol=absolute)


def text_of(outputs):
    """Return what outputs say, line by line, without times and the spaces that align columns."""
    texts = [
        output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs
    ]
    lines = TIME.sub("#", "\n".join(texts)).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


def size_of(output):
    """Return width and height of a figure, in pixels; nothing of other outputs."""
    figure = output.get("data", {}).get("image/png")
    return struct.unpack(">II", b64decode(figure)[16:24]) if figure else ()


if __name__ == "__main__":
    main()
