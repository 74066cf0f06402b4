"""Settings of the site, which `make docs` builds with Sphinx into build/site."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_ext"))

project = "heedful"
author = "The heedful authors"
copyright = "The heedful authors"
language = os.environ.get("HEEDFUL_DOCS_LANGUAGE", "en")
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "site_docstrings",
    "site_links",
    "site_math",
    "site_notebooks",
    "site_reference",
    "site_search",
    "site_slides",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext", "_templates", "_static", "locale", "jupyter_execute"]
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!heedful).*"), (r"py:.*", r"heedful\..*\.(Array|Callable|Any)")]

# The texts: Markdown, with formulas between dollars. Lessons are notebooks written in Markdown.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}  # .rst, first: pages of autosummary
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "attrs_block", "attrs_inline"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst-nb.lexer"]  # which only the kernel of an executed notebook knows

# Every cell of a notebook runs; an error fails the build. Outputs are cached by the code of the lesson, in a folder
# named by the library's content (`make docs`), so that a change of either runs it again.
nb_execution_mode = os.environ.get("HEEDFUL_DOCS_EXECUTE", "cache")
nb_execution_cache_path = str(ROOT / "build" / "site-cache" / os.environ.get("HEEDFUL_DOCS_CACHE", "outputs"))
nb_execution_timeout = 1800  # per cell; a busy machine is slow, and no lesson takes a minute on an idle one
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_execution_excludepatterns = ["python.ipynb", "own-model.ipynb"]  # which the tests run
os.environ.pop("HEEDFUL_DATA", None)  # lessons need nothing that a learner has not
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # matrices this small gain nothing from a second thread

# The reference: docstrings are Markdown (site_docstrings makes reStructuredText of them).
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100

# Translations: Start, the lessons and the glossary. The other pages exist once, in English.
LANGUAGES = {"en": "English", "vi": "Tiếng Việt", "zh_CN": "中文"}
TRANSLATED = ["index.md", "start/*", "lessons/*", "teaching/*", "glossary.md"]
site_translated_pages = TRANSLATED
locale_dirs = ["locale"]
gettext_compact = False
gettext_uuid = False
gettext_location = False  # a catalog has texts, no places that change with every line
gettext_additional_targets = []
intersphinx_mapping = {}
if language != "en" or os.environ.get("HEEDFUL_DOCS_MESSAGES"):
    include_patterns = TRANSLATED
if language != "en":
    intersphinx_mapping = {"site": ("..", str(ROOT / "build" / "site" / "objects.inv"))}
    nb_code_prompt_show = {"vi": "Xem lời giải", "zh_CN": "看答案"}[language]
    nb_code_prompt_hide = {"vi": "Ẩn lời giải", "zh_CN": "收起答案"}[language]
else:
    nb_code_prompt_show = "Show the answer"
    nb_code_prompt_hide = "Hide the answer"

html_theme = "furo"
html_title = "heedful"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
if language == "zh_CN":
    html_js_files.append(("search-zh.js", {"priority": 100}))
html_favicon = "_static/icon.svg"
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "source_repository": "https://github.com/heedful/heedful/",
    "source_branch": "main",
    "source_directory": "docs/",
    "top_of_page_buttons": ["view"],
    "light_css_variables": {"color-brand-primary": "#174a8c", "color-brand-content": "#174a8c"},
    "dark_css_variables": {"color-brand-primary": "#8ab8ff", "color-brand-content": "#8ab8ff"},
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/languages.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_context = {"site_languages": LANGUAGES, "site_language": language}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp"
