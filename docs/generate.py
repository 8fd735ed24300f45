"""What the site takes from the package: the API pages, the table of methods, tables, notebooks."""

import inspect
import os
import re
import shutil
from enum import Enum
from pathlib import Path

import yaml
from architecture import draw
from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sklearn.base import BaseEstimator

import fastmmc
from fastmmc import datasets, plotting
from fastmmc.cli import _make_parser
from fastmmc.core.docstrings import attribute_docs, entry, insert_section, section
from fastmmc.data.sizes import BINARY_BALANCE
from fastmmc.registry import METHODS

DOCS = Path(__file__).parent
ROOT = DOCS.parent

# Sections of the API page, in their order: titles of the modules that the names come from.
SECTIONS = {
    "choice": "Everything chosen for you",
    "rls": "Regularised least squares",
    "evolution": "Evolution of two clusters",
    "alternating": "Alternating machines",
    "cutting_plane": "Cutting planes",
    "competitive": "Competitive learning and constraints",
    "annealing": "Sums of distances",
    "sdp": "Semidefinite programs",
    "recursive": "Splits in two",
    "trees": "Results",
    "segmentation": "Pictures",
    "factors": "Hat matrices",
    "block_factor": "Hat matrices",
    "influence": "What a clustering goes by",
    "profile": "What a cluster is",
    "numbering": "Numbers that last",
    "results": "Results",
    "status": "Results",
    "saving": "Files",
    "execution": "Progress",
}

# The options of a long signature by what they are about; the others are about the search.
OPTIONS = {
    "Points": "X k",
    "What you know": "known_labels known_trust must_link cannot_link link_penalty sample_weight "
    "trim semi_supervised per_constraint",
    "Sizes": "sizes balance target_sizes min_size max_size score_balance",
    "Distances and kernel": "metric standardize kernel sigma gamma degree coef0 kernel_params lam",
    "Low rank and memory": "rank landmarks rank_tol dtype memory_size",
    "Search": "",
    "Run": "n_init random_state n_jobs max_time callback verbose",
}
# Signatures with more parameters are cut, and their options have headings.
LONG = 15

# Pages of benchmarks by what they are about, and what the sidebar calls them; pages that are not
# named here come last under their titles.
BENCHMARKS = {
    "At a glance": {
        "README": "What the figures mean",
        "all_methods": "Every method, every data set",
        "suite": "A public suite",
        "shapes": "Made shapes",
        "choice": "The choice without labels",
    },
    "Tables of the papers": {
        "umc_rls": "UMC-RLS (2012)",
        "umc_rls_bounds": "UMC-RLS with bounds on sizes",
        "evo_mmc": "EvoMMC (2009)",
        "iter_svr": "iterSVR (2007)",
        "iter_svr_pairs": "iterSVR, all pairs of digits",
        "cutting_plane": "CPMMC and CPM3C (2008)",
        "competitive": "Competitive learning (2013)",
        "sammc": "SAMMC (2019)",
        "sdp": "Semidefinite programs (2004, 2006)",
    },
    "Knowledge and doubt": {
        "known_labels": "Few known labels",
        "links": "Must-links and cannot-links",
        "memberships": "Probabilities",
        "mixed": "Numbers and categories",
    },
    "Size and time": {
        "grid": "Points, features, clusters",
        "growth": "Growth along each",
        "large_quality": "Quality of large sets",
        "large_shapes": "Shapes of ten million points",
        "dense_or_low_rank": "Dense or low rank",
        "blocks": "Points in blocks",
        "parquet": "A large Parquet file",
        "ablation_search": "Searches compared",
        "ablation_choice": "Numbers of cluster, changed alone",
    },
}

# What no signature tells, after the docstrings' Notes and the measurements on this site: the time
# of a start, with n points, d features, k clusters and rank r, and how far a method goes.
_MACHINES = "one n × n array up to 10,000 points, low rank above"
_STREAMS = "streams in bounded memory; several workers"
COSTS = {
    "c-rpcl": ("n k d an epoch, for each constraint of a point once more", _STREAMS),
    "cluster": ("the cube of up to 4,500 cells, for each kernel", "any n, and blocks"),
    "cpm3c": ("n k d a plane; n³ once for a dense kernel", "kernels of low rank above 500 points"),
    "cpmmc": ("n d a plane", "a million points"),
    "cvqe": ("n k d a round, k² a violated constraint", "what fits into memory"),
    "evo-mmc": ("n³ once, then n² a start", "one n × n array"),
    "fast-evo-mmc": ("n r² once, then r a flip", "56,000 × 784"),
    "fscl": ("n k d an epoch", _STREAMS),
    "gmmc": ("a program of n variables", "150 points"),
    "iter-ls-svm": ("n³ once, then n² a round; n r² and n r of rank r", _MACHINES),
    "iter-svm": ("about n² a round; n r² of rank r", _MACHINES),
    "iter-svr": ("about n² a round; n r² of rank r", _MACHINES),
    "lcvqe": ("n k d a round", "what fits into memory"),
    "o-lcvqe": ("n k d an epoch, for each constraint of a point once more", _STREAMS),
    "recursive-mmc": ("that of its method on every cluster that is split", "that of its method"),
    "rpcl": ("n k d an epoch", _STREAMS),
    "sammc": ("n k d a step of the descent", "a million points"),
    "sdp-mmc": ("a program of n² / 2 variables", "150 points"),
    "umc-rls": ("n³ once, then n²; n r² and n r of rank r", "ten million points, of low rank"),
    "wta": ("n k d an epoch", _STREAMS),
}


def write_all():
    """Write all generated pages anew, and copy those that live elsewhere in the repository."""
    for name in ("api", "generated", "notebooks", "tables"):
        shutil.rmtree(DOCS / name, ignore_errors=True)
        (DOCS / name).mkdir()
    (DOCS / "generated" / "methods.md").write_text(methods_table(), encoding="utf-8")
    (DOCS / "generated" / "commands.md").write_text(commands(), encoding="utf-8")
    (DOCS / "generated" / "papers.md").write_text(papers(), encoding="utf-8")
    draw(DOCS / "generated" / "architecture.svg")
    (DOCS / "api" / "index.rst").write_text(api_page(), encoding="utf-8")
    _copy(ROOT / "notebooks", "notebooks", "*.ipynb", "*.png")
    _copy(ROOT / "asv_benchmarks" / "paper_tables", "tables", "*.md", "*.png")
    for page in sorted((DOCS / "tables").glob("*.md")):
        page.write_text(mark_older(page.read_text(encoding="utf-8")), encoding="utf-8")
    (DOCS / "generated" / "benchmarks.md").write_text(benchmarks(), encoding="utf-8")


def _copy(source, name, *patterns):
    """Copy files into a folder of pages, so that links between them hold."""
    for pattern in patterns:
        for path in source.glob(pattern):
            shutil.copy2(path, DOCS / name)


def mark_older(text):
    """Return a page of benchmarks with a note if an earlier version made it, which it names."""
    made = re.search(r"^(Made|Joined) by .*?\n\n", text, re.M | re.S)
    version = re.search(r"fastmmc (\d[\w.]*)", made.group() if made else "")
    if version is None or version.group(1) == fastmmc.__version__:
        return text
    note = (
        f"```{{note}}\nMade with fastmmc {version.group(1)}; this is {fastmmc.__version__}, and "
        "some figures may have changed since. [What changed](../upgrade.md).\n```\n\n"
    )
    return text[: made.end()] + note + text[made.end() :]


def benchmarks():
    """Return lists of the pages of benchmarks in Markdown, under headings that the sidebar has."""
    pages = {path.stem for path in (DOCS / "tables").glob("*.md")}
    groups = {
        title: {name: short for name, short in names.items() if name in pages}
        for title, names in BENCHMARKS.items()
    }
    others = pages.difference(*groups.values())
    lists = []
    for title, names in (groups | {"Others": dict.fromkeys(sorted(others), "")}).items():
        rows = [
            f"{short} <tables/{name}>" if short else f"tables/{name}"
            for name, short in names.items()
        ]
        if title == "At a glance":
            rows.insert(0, "Measured <measured>")
        if rows:
            lists += ["```{toctree}", ":maxdepth: 1", f":caption: {title}", "", *rows, "```", ""]
    return "\n".join(lists)


def methods_table():
    """Return the table of all methods in Markdown, in the order of the sections."""
    rows = ["| method | clusters | sizes | input | time | scale |", "| - " * 6 + "|"]
    for name, method in sorted(METHODS.items(), key=lambda item: _place(item[1])):
        names = f"{{func}}`~fastmmc.{method.function.__name__}`"
        cells = (names, _clusters(method), _sizes(method), _told(method), *COSTS[name])
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _place(method):
    return list(SECTIONS).index(_home(method.function))


def _home(value):
    """Return the module of the package, or the family, that a public name comes from."""
    return next(part for part in value.__module__.split(".") if part in SECTIONS)


def _clusters(method):
    if method.binary:
        return "2"
    return "k, or found" if _default(method, "k") == "auto" else "k"


def _default(method, name):
    return inspect.signature(method.function).parameters[name].default


def _sizes(method):
    if "sizes" in method.parameters:
        return "about equal, given, or free"
    if _clusters(method) == "k, or found":
        return "any, or bounded"
    if "balance" in method.parameters:
        default = _default(method, "balance")
        percent = 100 * (BINARY_BALANCE if default is None else default)
        return f"equal within {percent:g}\N{NO-BREAK SPACE}% of n, or given"
    if "score_balance" in method.parameters:
        return "any; the scores balance"
    if "method" in method.parameters:
        return "those of its method"
    return "any"


def _told(method):
    parts = []
    if not method.binary and _default(method, "k") is inspect.Parameter.empty:
        parts.append("k")
    if "must_link" in method.parameters:
        parts.append("constraints")
    if "known_labels" in method.parameters:
        parts.append("known labels")
    return "; ".join(parts) or "nothing"


def commands():
    """Return the help of every command in Markdown."""
    os.environ["COLUMNS"] = "72"  # what fits beside two sidebars
    parsers = _make_parser()[1].values()
    return "\n".join(
        f"## {parser.prog}\n\n```text\n{parser.format_help()}```\n" for parser in parsers
    )


def papers():
    """Return the references of ``CITATION.cff`` in Markdown, each with the functions it is of."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return "\n".join(_paper(**reference) for reference in yaml.safe_load(text)["references"])


def _paper(scope, title, authors, year, journal=None, conference=None, publisher=None, **where):
    """Return one reference in Markdown, after the functions that it is to be cited for."""
    functions = ", ".join(f"{{func}}`~fastmmc.{name}`" for name in scope.split(", "))
    names = ", ".join(f"{one['given-names']} {one['family-names']}" for one in authors)
    place = journal or (conference or publisher)["name"]
    number = f" {where['volume']}({where['issue']})" if journal else ""
    return f"{functions}\n: {names}. {title}. {place}{number}, {year}.\n"


def public_names():
    """Return a dict of the full names on the API page by the title of their section."""
    sections = {title: [] for title in SECTIONS.values()}
    for name in fastmmc.__all__:
        value = getattr(fastmmc, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            sections[SECTIONS[_home(value)]].append(f"fastmmc.{name}")
    sections["The table of methods"] = ["fastmmc.METHODS", "fastmmc.registry.Method"]
    sections["Several workers"] = [
        f"fastmmc.distributed.{name}" for name in ("fit_restarts", "fit_sharded")
    ]
    sections["Pictures of results"] = _names_in(plotting, r"[A-Z]\w*Display|write_\w+")
    sections["Data sets"] = _names_in(datasets, r"load|read_npz|make_\w+")
    return sections


def _names_in(module, pattern):
    return [f"{module.__name__}.{name}" for name in vars(module) if re.fullmatch(pattern, name)]


def page_names():
    """Return a dict of other file names for classes that differ from a function in case only."""
    names = [name for group in public_names().values() for name in group]
    small = [name for name in names if name.lower() == name]
    return {
        name: f"{name}.estimator" for name in names if name not in small and name.lower() in small
    }


def api_page():
    """Return the API page in reStructuredText, with a summary of every public name."""
    lines = ["API reference", "=============", ""]
    lines += ["Every public name, by what it belongs to.", "", ".. currentmodule:: fastmmc", ""]
    for title, names in public_names().items():
        lines += [title, "-" * len(title), "", ".. autosummary::", "   :toctree: .", ""]
        lines += [f"   {name.removeprefix('fastmmc.')}" for name in names] + [""]
    return "\n".join(lines)


def fit_docstring(app, what, name, value, options, lines):
    """Make a docstring reStructuredText: indented formulas literal, bars not substitutions.

    Results get the attributes that they inherit.
    """
    if what == "data":
        lines[:] = inspect.getdoc(fastmmc.registry).splitlines()
    if what == "class" and issubclass(value, fastmmc.ClusteringResult):
        lines[:] = _with_inherited_attributes(value, "\n".join(lines)).split("\n")
    fitted, title = [], ""
    for number, line in enumerate(lines):
        if number + 1 < len(lines) and re.fullmatch("-{3,}", lines[number + 1]):
            title = line
        free = title in ("", "Notes")
        indented = line.startswith("    ")
        opens = indented and fitted and not fitted[-1] and free
        if opens and not _within_literal(fitted):
            fitted += ["::", ""]
        literal = (free and indented) or title == "Examples"
        fitted.append(line if literal else _escape(line))
    lines[:] = fitted
    if what in ("function", "class") and _is_long(value):
        lines[:] = _with_example_first(lines)


def _is_long(value):
    """Return whether a function or an estimator has so many parameters that they are grouped."""
    if inspect.isclass(value) and not issubclass(value, BaseEstimator):
        return False
    return len(inspect.signature(value).parameters) > LONG


def _with_example_first(lines):
    """Return a docstring with the first block of its examples below its first line."""
    start = lines.index("Examples") + 2
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    return [lines[0], "", *lines[start:end], "", *lines[1:]]


def group_options(app, what, name, value, options, lines):
    """Put headings between the parameters of a long signature, and tables in place of choices.

    That is after numpydoc has made a list of them, an item of which begins with its name in bold.
    """
    if what not in ("function", "class") or not _is_long(value):
        return
    start = lines.index(":Parameters:")
    end = next(i for i in range(start + 1, len(lines)) if lines[i] and lines[i][0] != " ")
    items = {}
    for line in lines[start + 1 : end]:
        if item := re.match(r"    \*\*(\w+)\*\*", line):
            items[item.group(1)] = []
        if items:
            [*items.values()][-1].append(line)
    items = {name: _choices_as_table(item) for name, item in items.items()}
    groups = {title: names.split() for title, names in OPTIONS.items()}
    known = {"n_clusters", *sum(groups.values(), [])}
    groups["Points"].append("n_clusters")
    groups["Search"] = [name for name in items if name not in known]
    grouped = []
    for title, names in groups.items():
        found = [line for name in items if name in names for line in items[name]]
        if found:
            grouped += [f"    .. rubric:: {title}", "", *found, ""]
    lines[start + 1 : end] = ["", *grouped]


def _choices_as_table(lines):
    """Return the lines of a parameter whose values are a list, with a table in its place."""
    first = next((i for i, line in enumerate(lines) if re.match(r' {8}- "', line)), None)
    if first is None:
        return lines
    last = next(
        (i for i in range(first, len(lines)) if not re.match(r" {8}(- |  )|$", lines[i])),
        len(lines),
    )
    table = ["        .. list-table::", "            :widths: 22 78", ""]
    for line in lines[first:last]:
        if item := re.match(r' {8}- ("[^:]*"): (.*)', line):
            values = ", ".join(f"``{value}``" for value in item.group(1).split(", "))
            table += [f"            * - {values}", f"              - {item.group(2)}"]
        else:
            table.append(f"      {line}" if line else line)
    return [*lines[:first], *table, "", *lines[last:]]


def _with_inherited_attributes(kind, text):
    own = section(text, "Attributes")
    inherited = [
        entry(name, *about)
        for name, about in attribute_docs(kind).items()
        if f"{name} : " not in own
    ]
    return insert_section(text, "Attributes", "\n".join(inherited))


def _within_literal(lines):
    """Return whether the last lines belong to a literal block that has begun."""
    last = next((line for line in reversed(lines) if line), "")
    return last.startswith("    ") or last.endswith("::")


def _escape(line):
    """Escape bars but in code."""
    parts = re.split(r"(``.*?``|`.*?`)", line)
    return "".join(p if p.startswith("`") else p.replace("|", r"\|") for p in parts)


def skip_foreign(app, what, name, value, skip, options):
    """Leave out what is inherited from other packages."""
    function = getattr(value, "fget", None) or getattr(value, "func", None) or value
    module = getattr(function, "__module__", None) or ""
    return skip or not module.startswith("fastmmc")


def true_signature(app, what, name, value, options, signature, returns):
    """Return the signature of a class as ``inspect`` sees it, without types; none of an enum.

    Long ones are cut where keywords begin, which are listed below.
    """
    if what in ("function", "class") and _is_long(value):
        parameters = inspect.signature(value).parameters.values()
        first = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        return f"({', '.join([*first, '*', '...'])})", returns
    if what != "class":
        return None
    if issubclass(value, Enum):
        return "", None
    parameters = inspect.signature(value).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(bare)), returns


def write_formula(translator, node):
    """Write a formula within a line as MathML."""
    translator.body.append(_mathml(node, "inline"))
    raise SkipNode


def write_displayed_formula(translator, node):
    """Write a formula of its own lines as MathML."""
    translator.body.append(f'<div class="formula">{_mathml(node, "block")}</div>')
    raise SkipNode


def _mathml(node, display):
    """Convert a formula; bars of a norm stay as tall as its first line."""
    text = convert(node.astext(), display=display)
    return text.replace("<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>')
