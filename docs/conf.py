"""Sphinx configuration. Pages run their code; reference, results and numbers are written from the package at build."""

import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.inventory import InventoryFile
from sphinx.writers.html5 import HTML5Translator

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
# Pages run in processes of their own, several at a time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found")  # of tqdm, where ipywidgets is missing

import generate  # noqa: E402

import dissensus  # noqa: E402

generate.write(HERE)

project = "dissensus"
author = "The dissensus authors"
copyright = "2026, the dissensus authors"
version = release = dissensus.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "README.md"]
language = "en"
smartquotes = False  # a flag begins with two hyphens
keep_warnings = True

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "dissensus"
html_static_path = ["_static"]
html_extra_path = ["reference/extra"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00695c", "color-brand-content": "#00695c"},
    "dark_css_variables": {"color-brand-primary": "#4db6ac", "color-brand-content": "#4db6ac"},
    "navigation_with_keys": True,
}

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "substitution", "attrs_inline"]
myst_heading_anchors = 3
myst_substitutions = generate.numbers()

nb_execution_mode = "force"  # while you write: make docs DOCS="-D nb_execution_mode=cache"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
python_maximum_signature_line_length = 90
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Shapes", "params_style"), "Shapes"]

copybutton_exclude = ".linenos, .gp, .go"


def check_inventory(app: Sphinx, error: Exception | None) -> None:
    """Every public name of every room has an entry in the reference."""
    if error is not None or app.builder.format != "html":
        return
    with (Path(app.outdir) / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", os.path.join)
    documented = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    missing = sorted(set(generate.public_names()) - documented)
    if missing:
        raise ExtensionError(f"public names without an entry in the reference: {', '.join(missing)}")


def plain_signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """Aliases of types by their names, and defaults that are made anew for each object as three dots."""
    if signature is not None:
        signature = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", signature).replace("<factory>", "...")
    return signature, result


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_displayed_math(self: HTML5Translator, node: nodes.math_block) -> None:
    formula = node.astext()
    if r"\\" in formula:
        formula = rf"\begin{{split}}{formula}\end{{split}}"
    self.body.append(f'<div class="math">{convert(formula, display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    # Browsers draw MathML by themselves: no script, no fonts to load.
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("build-finished", check_inventory)
