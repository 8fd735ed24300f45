"""Private names of other libraries are used in one place, which says when one is gone."""

import ast
from pathlib import Path

import pytest

import fastmmc
from fastmmc.core import compat

PACKAGE = Path(fastmmc.__file__).parent
OLDEST = PACKAGE.parent / ".ci" / "oldest.txt"
OTHERS = ("sklearn", "numba", "scipy", "numpy", "threadpoolctl", "joblib")


@pytest.mark.parametrize("name", compat.PRIVATE)
def test_private_names_are_there(name):
    """Where this fails, :data:`compat.TRIED` says which versions have them."""
    assert getattr(compat, name) is not None


@pytest.mark.parametrize("name", compat.PRIVATE)
def test_a_name_that_vanished_is_told_with_the_versions_that_have_it(name, monkeypatch):
    library, module, private = compat.PRIVATE[name]
    monkeypatch.setitem(compat.PRIVATE, name, (library, module, f"{private}_gone"))
    oldest, newest = compat.TRIED[library]
    message = f"has no {module}.{private}_gone, .* with {library} {oldest} to {newest}: install"
    with pytest.raises(ImportError, match=message):
        getattr(compat, name)


def test_the_oldest_versions_tried_are_those_that_are_tested():
    pinned = dict(line.split("==") for line in OLDEST.read_text().split())
    assert {name: oldest for name, (oldest, _) in compat.TRIED.items()}.items() <= pinned.items()


def private_names(tree):
    """Yield names that begin with an underscore and come from other libraries."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in OTHERS:
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
            yield from (name for name in names if name.startswith("_"))
            # Numba's own parts have no underscore; its events are documented.
            if node.module.startswith("numba.core."):
                yield node.module


def test_no_other_file_uses_private_names():
    for file in PACKAGE.rglob("*.py"):
        found = list(private_names(ast.parse(file.read_text())))
        assert not found, f"{file} uses {found}: such names belong to core/compat.py"


def test_private_names_are_noticed():
    code = "from sklearn.svm import _libsvm\nfrom numba.core.caching import X\nimport numba\n"
    assert list(private_names(ast.parse(code))) == ["_libsvm", "numba.core.caching"]
