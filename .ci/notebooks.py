"""Execute the notebooks and compare what they show with the outputs that are stored in them.

    python .ci/notebooks.py [--write] [NAME ...]

Texts are compared word for word, numbers up to a tolerance, as searches end elsewhere on other
processors; seconds are not compared, and of figures only that they are there and how large.
Cells tagged ``varies``, where a close decision hangs on rounding, are executed and not compared.
Warnings are shown here and not stored. ``--write`` stores what was shown; read the sentences
around it then.
"""

import argparse
import difflib
import os
import re
from copy import deepcopy
from math import isclose
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parent.parent / "notebooks"

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
TIME = re.compile(rf"{NUMBER}(?= (?:µs|ms|s|seconds)\b)|(?<=seconds )\s*{NUMBER}")
RELATIVE, ABSOLUTE = 0.05, 0.02


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
            try:
                stale += update(path) if args.write else check(path)
            except CellExecutionError as error:
                stale += 1
                print(f"{path.name}: {error}")
    if stale:
        raise SystemExit(f"{stale} cells fail, or show what is not stored (--write stores it)")


def update(path):
    """Store what a notebook shows; no cell is stale then."""
    nbformat.write(execute(nbformat.read(path, as_version=4)), path)
    print(f"{path.name}: stored, {path.stat().st_size / 1000:.0f} kB", flush=True)
    return 0


def check(path):
    """Return the number of cells whose outputs differ from the stored ones, and say how."""
    stored = nbformat.read(path, as_version=4)
    fresh = execute(stored)
    stale = 0
    for number, (old, new) in enumerate(zip(stored.cells, fresh.cells, strict=True)):
        texts = [text_of(cell.get("outputs", ())) for cell in (old, new)]
        if "varies" not in new.metadata.get("tags", ()) and not alike(*texts):
            stale += 1
            print(f"{path.name}, cell {number} ({new.source.splitlines()[0]}) is stale:")
            lines = (text.splitlines() for text in texts)
            print(*difflib.unified_diff(*lines, "stored", "shown now", lineterm=""), sep="\n")
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
    """Return whether texts have the same words and near numbers."""
    if re.sub(NUMBER, "#", old) != re.sub(NUMBER, "#", new):
        return False
    numbers = zip(re.findall(NUMBER, old), re.findall(NUMBER, new), strict=True)
    return all(isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE) for a, b in numbers)


def text_of(outputs):
    """Return what outputs say, without times and the spaces that align columns.

    A figure says how large it is and how many axes it has.
    """
    texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in outputs]
    lines = TIME.sub("#", "\n".join(texts)).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


if __name__ == "__main__":
    main()
