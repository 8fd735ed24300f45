"""The house rules, checked on the source."""

import ast
import dataclasses
import hashlib
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from enum import IntEnum
from pathlib import Path

import pytest
from numpydoc.validate import validate

import fastmmc

PACKAGE = Path(fastmmc.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Imports go one way: a layer may use those before it.
# What is built upon any method of the families comes after them.
COMPOSED = ["choice", "trees", "recursive"]
INNER = ["_loops", "topic", "methods", "sharded", "estimators"]  # within a family
LAYERS = ["shared", *INNER, *COMPOSED, "top"]
TOP = {
    "segmentation",
    "distributed",
    "plotting",
    "cli",
    "__main__",
}


SHARED = {"core", "kernels", "data"}
# Evolution searches labels of two clusters over the hat matrices of the RLS family.
BUILT_UPON = {"evolution": "rls"}
FAMILIES = {f.parent.name for f in PACKAGE.glob("*/__init__.py")} - {*SHARED, *TOP, *COMPOSED}


def layer(module):
    family, _, inner = module.partition(".")
    if family in FAMILIES:
        # A family's own __init__ gathers what its modules offer.
        if inner == "":
            return "estimators"
        last = inner.split(".")[-1]
        return "_loops" if last.startswith("_loops") else inner if inner in INNER else "topic"
    if module == "fastmmc" or family in TOP:
        return "top"
    return family if family in COMPOSED else "shared"


def module_name(file):
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts) or "fastmmc"


def test_the_layers_name_what_is_there():
    modules = {module_name(file) for file in FILES}
    assert {*COMPOSED, *TOP} <= modules
    assert all(any(layer(name) == inner for name in modules) for inner in LAYERS)


def imported_modules(file):
    modules = {module_name(other) for other in FILES}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fastmmc"):
            base = node.module.removeprefix("fastmmc").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                yield inner if inner in modules else base or "fastmmc"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "fastmmc":
                    yield alias.name.removeprefix("fastmmc").lstrip(".") or "fastmmc"


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_imports_go_one_way(file):
    name = module_name(file)
    mine = LAYERS.index(layer(name))
    family = name.split(".")[0]
    for other in imported_modules(file):
        theirs = LAYERS.index(layer(other))
        assert theirs <= mine, f"{name} imports {other}, which stands above it"
        if family in FAMILIES and "." in other:
            known = {family, BUILT_UPON.get(family), *SHARED}
            assert other.split(".")[0] in known, f"{name} reaches into another family: {other}"


LOOPS = pytest.mark.parametrize(
    "file", [f for f in FILES if f.name.startswith("_loops")], ids=module_name
)


@LOOPS
def test_loop_files_hold_compiled_loops_only(file):
    tree = ast.parse(file.read_text())
    held = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef)
    for node in tree.body:
        named = isinstance(node, ast.ClassDef) and ast.unparse(node.bases[0]) == "NamedTuple"
        assert named or isinstance(node, held), f"line {node.lineno} is no loop"
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(d) for d in node.decorator_list]
            assert decorators in (["njit"], ["njit_sum"]), f"{node.name} is not compiled"
            if decorators == ["njit_sum"]:
                compares = any(isinstance(n, ast.Compare | ast.If) for n in ast.walk(node))
                assert not compares, f"{node.name} does more than sum"
    allowed = {"typing", "numpy", "fastmmc.core.jit", "numba"}
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert imported <= allowed | {m for m in imported if re.search(r"\._loops", m or "")}


def test_compiled_functions_are_in_files_named_loops():
    loops = {file for file in FILES if "@njit" in file.read_text()}
    assert loops <= {file for file in FILES if file.name.startswith("_loops")}


@LOOPS
def test_compiled_functions_of_other_files_are_pinned(file):
    """Numba's cache does not see a change in another file, so a digest in the caller must."""
    text = file.read_text()
    for module in imported_modules(file):
        if "._loops" in module:
            other = PACKAGE / (module.replace(".", "/") + ".py")
            digest = hashlib.sha256(other.read_bytes()).hexdigest()[:12]
            assert f"# compiled-with: {other.name} {digest}" in text


def test_compiler_options_are_set_in_one_place():
    pattern = re.compile(r"^\s*(?:import|from) numba\b|fastmath", re.M)
    assert [file.name for file in FILES if pattern.search(file.read_text())] == ["jit.py"]


def test_no_print_outside_the_command_line():
    calls = [
        (file, node.lineno)
        for file in FILES
        if file.parent.name != "cli"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    ]
    assert not calls


def test_no_message_names_a_distribution_that_is_not_published():
    pattern = re.compile("pip install '?fastmmc")
    assert not [file for file in FILES if pattern.search(file.read_text())]


def test_no_global_random_state():
    drawn = r"np\.random\.(seed|rand|randn|randint|random|shuffle|permutation|choice)\("
    assert not [file for file in FILES if re.search(drawn, file.read_text())]


def test_all_is_sorted_and_true():
    assert fastmmc.__all__ == sorted(set(fastmmc.__all__))
    assert all(hasattr(fastmmc, name) for name in fastmmc.__all__)


def test_dir_lists_public_names_only():
    assert sorted(dir(fastmmc)) == sorted([*fastmmc.__all__, "__version__"])


# What an import must not bring: extras, backends that joblib itself has not loaded yet, and what is
# loaded when it is asked for.
HEAVY = ["matplotlib", "PIL", "rich", "pandas", "dask", "distributed", "cvxpy", "IPython", "bokeh"]
HEAVY += ["joblib._dask", "fastmmc.plotting", "fastmmc.distributed", "fastmmc.cli"]
HEAVY += ["fastmmc.competitive.sharded"]

IMPORT = """
import json, sys, warnings
import numba, numpy as np, sklearn.cluster, threadpoolctl
try: import sklearn.callback
except ImportError: pass  # scikit-learn itself looks for rich there

def look():
    printed, errors, filters = np.get_printoptions(), np.geterr(), warnings.filters[:]
    threads = numba.get_num_threads(), threadpoolctl.threadpool_info()
    return printed, errors, filters, threads

def find(name):
    value = fastmmc
    for part in name.split("."):
        value = getattr(value, part, None)
    return value

modules, before = set(sys.modules), look()
import fastmmc
brought, unchanged = sorted(set(sys.modules) - modules), look() == before
missing = [name for name in sys.argv[1:] if find(name) is None]
try: fastmmc.plottings
except AttributeError as error: wrong = str(error)
listed = dir(fastmmc)
print(json.dumps([brought, unchanged, listed, missing, wrong]))
"""


def documented_names():
    """Return every ``fastmmc.name`` of README, site, notebooks and docstrings."""
    pages = (ROOT / "docs").rglob("*.md")
    texts = [ROOT / "README.md", *pages, *(ROOT / "notebooks").glob("*.ipynb"), *FILES]
    pattern = re.compile(r"\bfastmmc\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)")
    imports = re.compile(r"\s*(>>> )?(from fastmmc|import fastmmc\.)")
    names = {
        name
        for file in texts
        for line in file.read_text(encoding="utf-8").splitlines()
        if not imports.match(line)
        for name in pattern.findall(line)
    }
    features = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    calls = re.findall(r"^\| (`.*?) \|", features, re.M)
    names |= {name for cell in calls for name in re.findall(r"`([a-z_.]+)\((?:X|image)", cell)}
    return names


def test_import():
    """Of a new process: it brings nothing heavy, changes nothing global, and offers all names."""
    names = documented_names()
    assert {"plotting", "distributed.fit_sharded", "datasets.load", "wta"} <= names
    command = [sys.executable, "-c", IMPORT, *sorted(names | {"plotting.ClusterDisplay"})]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    brought, unchanged, listed, missing, wrong = json.loads(out)
    assert not set(HEAVY) & set(brought)
    assert unchanged
    assert {"plotting", "distributed"} <= set(listed)
    assert missing == []
    assert "plottings" in wrong


def test_the_readme_is_short_and_counts_the_methods():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 700
    assert f"all {len(fastmmc.METHODS)} methods" in text


def project():
    """Return what the package says of itself."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_pythons_are_the_same_everywhere():
    said = re.findall(r":: (3\.\d+)", "\n".join(project()["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r'"(3\.\d+)"', workflow) == said
    assert project()["requires-python"] == f">={said[0]}"


def test_every_method_has_a_paper_to_cite():
    scopes = re.findall(r"^    scope: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    cited = {name for scope in scopes for name in scope.split(", ")}
    assert {method.function.__name__ for method in fastmmc.METHODS.values()} <= cited


def test_version_and_date_are_those_of_the_changelog():
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, day = re.findall(r"^## \[(\d.*)\] - (.*)$", changelog, re.M)[0]
    assert fastmmc.__version__ == version or ".dev" in fastmmc.__version__
    assert f"\nversion: {version}\n" in citation and f"\ndate-released: {day}\n" in citation


def test_addresses_yet_to_come_stand_in_the_metadata_only():
    """Those of the project are placeholders until it has a home, so that no page may link there."""
    urls = project()["urls"].values()
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("notebooks/*.ipynb")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not [url for url in urls if url in text], f"{page} links to a placeholder"


# Besides what ``fastmmc`` itself offers; every other module is for the package's own use.
PUBLIC_MODULES = ("datasets", "distributed", "plotting")


def public_objects():
    for name in fastmmc.__all__:
        value = getattr(fastmmc, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"fastmmc.{name}"
    for name in PUBLIC_MODULES:
        module = importlib.import_module(f"fastmmc.{name}")
        for key, value in vars(module).items():
            own = key in getattr(module, "__all__", ()) or (
                getattr(value, "__module__", None) == module.__name__ and not key.startswith("_")
            )
            if own and inspect.isfunction(value):
                yield f"fastmmc.{name}.{key}"


# Of numpydoc's checks: summary, parameters all documented and none invented, returns, sections.
DOC_ERRORS = {"GL01", "GL03", "GL07", "GL08", "SS03", "PR01", "PR02", "RT01"}


@pytest.mark.parametrize("name", sorted(set(public_objects())))
def test_docstrings(name):
    value = getattr(fastmmc, name.removeprefix("fastmmc."), None)
    wanted = DOC_ERRORS
    if dataclasses.is_dataclass(value) or (inspect.isclass(value) and issubclass(value, IntEnum)):
        wanted = DOC_ERRORS - {"PR01"}  # their fields stand under Attributes
    assert not [error for error in validate(name)["errors"] if error[0] in wanted]


@pytest.mark.parametrize("function, most", [(fastmmc.umc_rls, 900), (fastmmc.cluster, 500)])
def test_docstrings_are_short_and_name_the_guide(function, most):
    text = inspect.getdoc(function)
    assert len(text.split()) <= most
    title = re.search(r'guide, "(.*?)"', " ".join(text.split()))[1]
    pages = (ROOT / "docs" / "guide").glob("*.md")
    assert f"# {title}" in {page.read_text(encoding="utf-8").splitlines()[0] for page in pages}


@pytest.mark.parametrize("name", sorted(set(public_objects())))
def test_what_is_public_has_an_example(name):
    module, _, key = name.rpartition(".")
    assert "Examples\n" in inspect.getdoc(getattr(importlib.import_module(module), key))


@pytest.mark.parametrize("method", fastmmc.METHODS.values(), ids=lambda m: m.name)
def test_registry_entries_are_whole(method):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", method.name)
    assert "Examples" in method.function.__doc__ and "References" in method.function.__doc__
    assert "Examples" in method.estimator.__doc__
    assert getattr(fastmmc, method.function.__name__) is method.function
    assert getattr(fastmmc, method.estimator.__name__) is method.estimator
    assert method.paper and method.summary
