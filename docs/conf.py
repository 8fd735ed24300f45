"""Settings of the documentation site; what is generated comes from ``generate.py``."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import generate  # noqa: E402

import fastmmc  # noqa: E402

project = "fastmmc"
author = "The fastmmc developers"
version = release = fastmmc.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
]
# Included by a page.
exclude_patterns = ["_build", "generated/*.md"]
templates_path = ["_templates"]

# Every reference has to be found but those to libraries whose inventories would be fetched.
nitpicky = True
# The attributes of an estimator stand in its own list, which numpydoc tries to link to.
nitpick_ignore_regex = [
    (r"py:.*", r"(numpy|scipy|sklearn|joblib|dask|matplotlib)\..*"),
    (r"py:obj", r"\w+_"),
]

autosummary_generate = True
autosummary_filename_map = generate.page_names()
# Types stand in the docstrings, in words.
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
# Members are listed by the template, which knows those of this package.
numpydoc_show_class_members = False

# In MathML, which browsers show as it is: pages load nothing from elsewhere.
html_math_renderer = "mathml"
highlight_language = "none"

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
# Executed by CI by themselves; a page shows what is stored.
nb_execution_mode = "off"
suppress_warnings = ["config.cache"]

# What has long lines of code gets the whole width.
wide = [
    "gallery",
    "features",
    "coming_from",
    *(f"tables/{path.stem}" for path in generate.ROOT.glob("asv_benchmarks/paper_tables/*.md")),
    *(f"notebooks/{path.stem}" for path in generate.ROOT.glob("notebooks/*.ipynb")),
]

html_theme = "pydata_sphinx_theme"
html_title = "fastmmc"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("sort.js", {"defer": "defer"})]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], **dict.fromkeys(wide, [])},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {name: [] for name in ("index", "start", "which")}
project_copyright = "The fastmmc developers, BSD-3-Clause"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Before Sphinx looks for pages.
generate.write_all()


def setup(app):
    """Fit what Sphinx finds in the package to the site."""
    app.connect("autodoc-process-docstring", generate.fit_docstring, priority=100)
    app.connect("autodoc-process-docstring", generate.group_options, priority=900)
    app.connect("autodoc-process-signature", generate.true_signature)
    app.connect("autodoc-skip-member", generate.skip_foreign)
    renderers = [(generate.write_formula, None), (generate.write_displayed_formula, None)]
    app.add_html_math_renderer("mathml", *renderers)
