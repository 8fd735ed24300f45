"""Execute every notebook and check that none is stored with outputs."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

folder = Path(__file__).parent.parent / "notebooks"
for path in sorted(folder.glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if any(cell.outputs or cell.execution_count for cell in code):
        raise SystemExit(f"{path.name} is stored with outputs; strip them")
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    print(f"{path.name}: {len(code)} cells ran")
