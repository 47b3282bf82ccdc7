# How Sphinx makes the site of docs/: `make site` (docs/adr/0140-the-site.md). The source folder is the project's own, so that each link means
# the file that it means in the repository.
import os
import re
from pathlib import Path

project = "dpproxy"
html_title = "dpproxy"
author = "the authors of dpproxy"
version = os.environ.get("DPPROXY_VERSION", "")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/README"
include_patterns = ["README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md", "examples/**.md"]
myst_heading_anchors = 4  # `[…](sql.md#joins)` as a Git host makes them
suppress_warnings = ["myst.header"]  # the changelog has no second level

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False
smartquotes = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
highlight_language = "none"

HEADING = re.compile(r"^## (.+)$")
DECISIONS = "Decisions"
ENTRY = re.compile(r"^(?:\| |- )\[[^\]]*\]\(([^)#]+\.md)\)")


def navigation(start):
    """The parts of the start page, and the pages that each part lists first in a row: the page is the navigation."""
    parts, folder = [], os.path.dirname(root_doc)
    for line in start.splitlines():
        if heading := HEADING.match(line):
            parts.append((heading[1], []))
        elif parts and (entry := ENTRY.match(line)):
            parts[-1][1].append("/" + os.path.normpath(os.path.join(folder, entry[1])).removesuffix(".md"))
    return [(name, pages) for name, pages in parts if pages and name != DECISIONS]


def add_navigation(app, docname, source):
    if docname.startswith("docs/adr/"):  # a hundred of them would hide everything else: the start page lists them
        source[0] = "---\norphan: true\n---\n" + source[0]
    if docname == root_doc:
        for name, pages in navigation(source[0]):
            source[0] += "\n\n```{toctree}\n:hidden:\n:caption: %s\n\n%s\n```\n" % (name, "\n".join(pages))


def add_front_door(app):
    """index.html leads to the start page."""
    yield "index", {"start": app.builder.get_relative_uri("index", root_doc)}, "front.html"


SOURCE = re.compile(r'download="" href="([^"]*_downloads/[0-9a-f]+/[^"/]+\.go)"')


def show_sources(app, failure):
    """Go files that documents link to are shown as text: a folder with Go files would be a package of the project's, below bin."""
    if failure:
        return
    for file in Path(app.outdir, "_downloads").rglob("*.go"):
        file.rename(file.with_name(file.name + ".txt"))
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text()
        if (shown := SOURCE.sub(r'href="\1.txt"', text)) != text:
            page.write_text(shown)


templates_path = ["templates"]


def setup(app):
    app.connect("build-finished", show_sources)
    app.connect("source-read", add_navigation)
    app.connect("html-collect-pages", add_front_door)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
