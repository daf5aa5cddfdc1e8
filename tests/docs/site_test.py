#!/usr/bin/env python3
"""Builds the site of the documentation, and checks it:

- Every link and every anchor leads to a page and a heading of the site. A link that leads out of
  the site has an address, or is plain text that names a file of the repository.
- No page loads anything from another server.
- Each page has all headings, code blocks, list items, table rows and images of its Markdown.
- The navigation has every page of docs/ in its language.

Argument: the root of the tree. A test with a broken site shows that every fault is found.
"""

import html.parser
import pathlib
import posixpath
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(sys.argv[1]).resolve()

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*?$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE_BLOCK = re.compile(r"^(?:#.*)?\n((?: {4}.*\n|\n)+)", re.MULTILINE)
LIST_ITEM = re.compile(r" *(?:[-*]|\d{1,2}\.) ")
# The files that a page loads by itself, without a click.
LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
STYLE_ADDRESS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
# The parts of an article that are compared with the Markdown.
PARTS = {"h1": "heading", "h2": "heading", "h3": "heading", "h4": "heading", "pre": "code block",
         "li": "list item", "tr": "table row", "img": "image"}


class Page(html.parser.HTMLParser):
    """Links, anchors, loaded files, and the number of each part of the article."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loaded, self.files = [], set(), [], []
        self.navigation = set()
        self.parts = dict.fromkeys(PARTS.values(), 0)
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        for name in ("id", "name"):
            self.anchors.add(values.get(name))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
            if "md-nav__link" in (values.get("class") or ""):
                self.navigation.add(values["href"])
        if tag in LOADED and values.get(LOADED[tag]):
            self.loaded.append(values[LOADED[tag]])
        if values.get("class") == "source":
            self.files.append(values["title"])
        if tag == "article":
            self.open.append(tag)
        if self.open and tag in PARTS:
            self.parts[PARTS[tag]] += 1

    def handle_endtag(self, tag):
        if tag == "article":
            self.open.pop()


def is_outside(address):
    parts = urllib.parse.urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def resolved(here, address):
    """The file of the site for an address on the page `here`, and the anchor."""
    parts = urllib.parse.urlsplit(address)
    path = urllib.parse.unquote(parts.path)
    base = "" if path.startswith("/") else posixpath.dirname(here)
    target = posixpath.normpath(posixpath.join(base, path.lstrip("/"))) if path else here
    return target, urllib.parse.unquote(parts.fragment)


def pages_of(site):
    return {str(path.relative_to(site)): Page(path.read_text("utf-8"))
            for path in sorted(site.rglob("*.html"))}


def broken_links(site, pages):
    for name, page in pages.items():
        for address in page.links + page.loaded:
            if is_outside(address) or address.startswith(("mailto:", "data:", "javascript:")):
                continue
            target, anchor = resolved(name, address)
            if (site / target).is_dir():
                target = posixpath.normpath(posixpath.join(target, "index.html"))
            if not (site / target).is_file():
                yield f"{name}: nothing is at {address}"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name}: no anchor is {address}"


def outside_requests(site, pages):
    for name, page in pages.items():
        yield from (f"{name}: loads {address}" for address in page.loaded if is_outside(address))
    for path in [*site.rglob("*.css"), *site.rglob("*.svg"), *site.rglob("*.html")]:
        for found in STYLE_ADDRESS.findall(path.read_text("utf-8")):
            if is_outside("".join(found)):
                yield f"{path.relative_to(site)}: loads {''.join(found)}"


def missing_files(root, pages):
    for name, page in pages.items():
        yield from (f"{name}: there is no {path}" for path in page.files
                    if not (root / path).exists())


def parts_of(markdown):
    """The number of each part, as GitHub reads Markdown."""
    text = COMMENT.sub("", markdown)
    bare = FENCE.sub("", text)
    indented = [block for block in CODE_BLOCK.findall(bare) if block.strip()]
    lines = CODE_BLOCK.sub("\n", bare).splitlines()
    dividers = sum(re.match(r"\|[-:| ]*-[-:| ]*\|$", line) is not None for line in lines)
    return {
        "heading": len(re.findall(r"^#{1,4} ", bare, re.MULTILINE)),
        "code block": len(FENCE.findall(text)) + len(indented),
        "list item": sum(LIST_ITEM.match(line) is not None for line in lines),
        "table row": sum(line.startswith("|") for line in lines) - dividers,
        "image": sum(len(re.findall(r"!\[", line)) for line in lines),
    }


def html_of(path):
    """The page of the site for a Markdown page of the repository."""
    uri = path.removeprefix("docs/") if path.startswith("docs/") else "repository/" + path
    return re.sub(r"README\.md$", "index.md", uri).removesuffix(".md") + ".html"


def lost_parts(root, pages, paths):
    for path in paths:
        page = pages.get(html_of(path))
        if page is None:
            yield f"{path} is not in the site"
            continue
        for part, count in parts_of((root / path).read_text("utf-8")).items():
            if page.parts[part] != count:
                yield f"{path}: {part}s: {count}, in the site {page.parts[part]}"


def not_in_navigation(pages, paths):
    shown = {index: {resolved(index, address)[0] for address in pages[index].navigation}
             for index in ("index.html", "zh/index.html") if index in pages}
    for path in paths:
        index = "zh/index.html" if path.startswith("docs/zh/") else "index.html"
        if html_of(path) not in shown[index]:
            yield f"{path} is not in the navigation of {index}"


def markdown_pages(root):
    return [str(path.relative_to(root)) for path in sorted((root / "docs").rglob("*.md"))]


def findings(root, site):
    pages = pages_of(site)
    paths = markdown_pages(root)
    outside = [name.removeprefix("repository/").replace("index.html", "README.html")
               .removesuffix(".html") + ".md" for name in pages if name.startswith("repository/")]
    yield from broken_links(site, pages)
    yield from outside_requests(site, pages)
    yield from missing_files(root, pages)
    yield from lost_parts(root, pages, paths + outside)
    yield from not_in_navigation(pages, paths)


class Site(unittest.TestCase):
    maxDiff = None

    def test_it_is_complete_and_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder) / "site"
            subprocess.run([ROOT / "tools/site/build", site], check=True)
            self.assertEqual([], list(findings(ROOT, site)))


PAGE = "<nav>{navigation}</nav><article>{text}</article>"
BROKEN = {
    "index.html": PAGE.format(
        navigation='<a class="md-nav__link" href="a.html">A</a>',
        text='<h1 id="one">One</h1><a href="a.html#there">there</a><a href="a.html#gone">gone</a>'
             '<a href="b.html">gone</a><a href="#one">one</a><a href="https://example.org/">x</a>'
             '<img src="https://example.org/x.png"><span class="source" title="src/x.cc">x</span>'),
    "a.html": PAGE.format(navigation="", text='<h1 id="there">There</h1><ul><li>one two</ul>'),
    "a.css": "@import 'https://example.org/a.css'; b { background: url(b.png) }",
    "zh/index.html": PAGE.format(navigation="", text="<h1>Z</h1><pre>x</pre>"),
}
MARKDOWN = {
    "docs/README.md": "# One\n![x](x.png)\n",
    "docs/a.md": "# There\n- one\n- two\n",
    "docs/zh/README.md": "# Z\n\n```sh\n# x\n- x\n```\n",
    "docs/zh/a.md": "",
}
EXPECTED = [
    "a.css: loads https://example.org/a.css",
    "docs/README.md is not in the navigation of index.html",
    "docs/a.md: list items: 2, in the site 1",
    "docs/zh/README.md is not in the navigation of zh/index.html",
    "docs/zh/a.md is not in the navigation of zh/index.html",
    "docs/zh/a.md is not in the site",
    "index.html: loads https://example.org/x.png",
    "index.html: no anchor is a.html#gone",
    "index.html: nothing is at b.html",
    "index.html: there is no src/x.cc",
]


class BrokenSite(unittest.TestCase):
    def test_each_fault_is_found_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in [*MARKDOWN.items(),
                               *(("site/" + path, text) for path, text in BROKEN.items())]:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, "utf-8")
            self.assertEqual(EXPECTED, sorted(findings(root, root / "site")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
