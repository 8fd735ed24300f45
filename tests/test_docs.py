"""The pages of the documentation: their examples, and the check of their links."""

import ast
import doctest
import inspect
import re
import runpy
from pathlib import Path

import pytest

import fastmmc

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    path for path in [*DOCS.glob("*.md"), *DOCS.glob("guide/*.md")] if ">>>" in path.read_text()
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_examples_of_a_page(path):
    # A fence would count as expected output.
    text = "\n".join("" if line[:3] == "```" else line for line in path.read_text().splitlines())
    page = doctest.DocTestParser().get_doctest(text, {}, path.stem, str(path), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(page).failed == 0


def test_the_guide_has_examples():
    assert {"start", "rls", "choice", "competitive"} <= {path.stem for path in PAGES}


@pytest.mark.slow  # .ci/run has it run from a wheel
def test_the_example_of_the_readme(capsys):
    runpy.run_path(str(ROOT / ".ci" / "readme_example.py"))
    code = capsys.readouterr().out
    exec(compile(code, "README.md", "exec"), {})
    assert "1,797 points in 10 clusters, converged" in capsys.readouterr().out


@pytest.mark.slow
def test_pictures_of_the_gallery_are_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    for draw in runpy.run_path(str(ROOT / "notebooks" / "pictures.py"))["PICTURES"].values():
        assert draw().axes


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\(([^)#]*)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 10
    assert not [link for link in links if not (ROOT / link).is_file()]


def test_dead_links_are_found(tmp_path):
    dead_links = runpy.run_path(str(DOCS / "check_links.py"))["dead_links"]
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="top-title"></h1><a href="sub/b.html#there"></a><a href="#top-title"></a>'
        '<a href="https://example.org/x"></a><img src="gone.png"><a href="sub/b.html#not"></a>'
    )
    (tmp_path / "sub" / "b.html").write_text('<p id="there"></p><a href="../c.html"></a>')
    assert {(str(page), link) for page, link in dead_links(tmp_path)} == {
        ("a.html", "gone.png"),
        ("a.html", "sub/b.html#not"),
        ("sub/b.html", "../c.html"),
    }


def test_every_public_name_has_a_section_on_the_api_page():
    tree = ast.parse((DOCS / "generate.py").read_text(encoding="utf-8"))
    sections = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "SECTIONS"
    )
    values = [getattr(fastmmc, name) for name in fastmmc.__all__]
    named = [v for v in values if inspect.isclass(v) or inspect.isfunction(v)]
    assert all(set(v.__module__.split(".")) & set(sections) for v in named)
