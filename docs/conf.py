"""How the site is built: `make docs`.

`SMARTCPD_QUICK_DOCS=1` shows the long examples of the gallery without running them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_site"), str(ROOT)]

import gallery  # noqa: E402
import generated_pages  # noqa: E402

from smartcpd import __version__  # noqa: E402

project = "smartcpd"
author = "The smartcpd developers"
version = release = __version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_site", "**/README.txt", "gallery/*.py", "gallery/*.ipynb"]

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist", "attrs_block"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False
numpydoc_show_class_members = False
templates_path = ["_site/templates"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = gallery.settings(quick=os.environ.get("SMARTCPD_QUICK_DOCS") == "1")

html_theme = "pydata_sphinx_theme"
html_title = "smartcpd"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# Pages that stand alone in their section have nothing to list at the side.
ALONE = ("index", "install", "faq", "design", "paper", "promises", "coming-from")
MADE_ALONE = ("generated/benchmarks", "generated/changelog")
html_sidebars = {page: [] for page in ALONE + MADE_ALONE}
html_context = {"default_mode": "auto"}
html_favicon = "_site/static/favicon.svg"
copyright = "The smartcpd developers, BSD-3-Clause"


def setup(app):
    app.connect("builder-inited", generated_pages.write_all)
