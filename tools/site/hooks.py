"""Hooks of MkDocs for the site; mkdocs.yml names this file.

- The navigation is that of docs/README.md and docs/zh/README.md. Each page shows the navigation of
  its language, and a link to the same page in the other language.
- A Markdown page outside docs/ is in the site, under repository/, if a page of the site links to
  it. A link to any other file of the repository becomes plain text, with the path as its tooltip.
- Headings have the anchors that GitHub makes.
- The search finds Chinese words: jieba divides the text into words.
"""

import copy
import json
import os
import pathlib
import posixpath
import re
import urllib.parse

import jieba
from markdown.blockprocessors import build_block_parser
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUTSIDE = "repository/"  # where the pages from outside docs/ are in the site
NOT_FOR_READERS = (".json", ".jsonl")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*?$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
SECTION = re.compile(r"^## (.+?)$\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
CHINESE = re.compile(r"<!-- begin:chinese -->(.*?)<!-- end:chinese -->", re.DOTALL)
HAN = re.compile(r"[\u4e00-\u9fff]+")
ITEM = re.compile(r" {0,3}(?:[-*]|\d+\.) ")


# ---- Paths of the repository and pages of the site.

def path_in_repository(uri):
    """The path of the source of a page: `docs/start.md` for `start.md`."""
    return uri.removeprefix(OUTSIDE) if uri.startswith(OUTSIDE) else "docs/" + uri


def page_of(path):
    """The page of the site for a path of the repository."""
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE + path


def target_of(uri, link):
    """The path in the repository to which a page links. None for an address."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return None
    here = posixpath.dirname(path_in_repository(uri))
    return posixpath.normpath(posixpath.join(here, urllib.parse.unquote(parts.path)))


def links_of(text):
    return LINK.findall(FENCE.sub("", text))


def on_files(files, config):
    for file in list(files):
        if file.src_uri.endswith(NOT_FOR_READERS):
            files.remove(file)
    pages = [file.src_uri for file in files.documentation_pages()]
    for uri in pages:  # grows: pages from outside may link to further pages
        path = path_in_repository(uri)
        for _, link in links_of((ROOT / path).read_text("utf-8")):
            target = target_of(uri, link)
            if target is None or not target.endswith(".md") or target.startswith("docs/"):
                continue
            if page_of(target) not in pages and (ROOT / target).is_file():
                pages.append(page_of(target))
                file = File(page_of(target), config["docs_dir"], config["site_dir"],
                            config["use_directory_urls"])
                file.abs_src_path = str(ROOT / target)
                files.append(file)
    files.append(File("mark.svg", str(ROOT / "dashboard"), config["site_dir"], False))
    return files


# ---- Markdown as GitHub reads it.

class Links(Treeprocessor):
    """Changes links that leave docs/. MkDocs then makes links to pages of the site relative."""

    def __init__(self, md, hooks):
        super().__init__(md)
        self.hooks = hooks

    def run(self, root):
        for element in root.iter():
            attribute = {"a": "href", "img": "src"}.get(element.tag)
            link = element.get(attribute) if attribute else None
            target = target_of(self.hooks.page, link) if link else None
            if target is None:
                continue
            uri = page_of(target)
            if uri in self.hooks.files:
                _, _, _, query, fragment = urllib.parse.urlsplit(link)
                here = posixpath.dirname(self.hooks.page) or "."
                element.set(attribute, urllib.parse.urlunsplit(
                    ("", "", posixpath.relpath(uri, here), query, fragment)))
            elif element.tag == "a" and (ROOT / target).exists():
                element.tag = "span"
                element.attrib.clear()
                element.set("class", "source")
                element.set("title", target)


class Lists(Preprocessor):
    """Begins a list without an empty line before it, as GitHub does."""

    def run(self, lines):
        result, in_fence = [], False
        for line in lines:
            if line.lstrip().startswith(("```", "~~~")):
                in_fence = not in_fence
            before = result[-1] if result else ""
            if not in_fence and re.match(r"[-*] |1\. ", line) and before.strip() and \
                    not ITEM.match(before) and not before.startswith(" "):
                result.append("")
            result.append(line)
        return result


class AsOnGitHub(Extension):
    def __init__(self):
        super().__init__()
        self.page, self.files = "", ()

    def extendMarkdown(self, md):  # the name is Markdown's
        md.tab_length = 2  # of nested lists
        md.parser = build_block_parser(md)
        md.parser.blockprocessors["code"].tab_length = 4
        md.preprocessors.register(Lists(md), "lists_as_on_github", 10)
        md.treeprocessors.register(Links(md, self), "links_in_the_repository", 1)


GITHUB = AsOnGitHub()


def slug(heading, _separator):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def on_page_markdown(markdown, page, config, files):
    GITHUB.page, GITHUB.files = page.file.src_uri, files
    return markdown


# ---- Navigation and languages.

def english_navigation():
    index = (ROOT / "docs/README.md").read_text("utf-8")
    seen, navigation = {"README.md"}, ["README.md"]
    for title, body in SECTION.findall(index):
        pages = []
        for _, link in links_of(body):
            uri = page_of(target_of("README.md", link))
            if uri not in seen and not uri.startswith("zh/"):
                seen.add(uri)
                pages.append(uri)
        navigation.append({title: pages})
    return navigation


def chinese_navigation():
    index = (ROOT / "docs/zh/README.md").read_text("utf-8")
    navigation = ["zh/README.md"]
    for item in re.split(r"^- ", CHINESE.search(index)[1], flags=re.MULTILINE)[1:]:
        pages = [{text: page_of(target_of("zh/README.md", link))} for text, link in links_of(item)]
        title, colon, _ = item.partition("：")
        if colon and "[" not in title:
            navigation.append({title: pages})
        else:
            navigation += pages
    return navigation


def on_config(config):
    config["nav"] = [{"English": english_navigation()}, {"中文": chinese_navigation()}]
    config["markdown_extensions"].insert(0, GITHUB)  # before those that add to its parser
    config["mdx_configs"]["toc"] = {"slugify": slug, "permalink": True}
    return config


def other_language(uri, files):
    """The same page in the other language, or the first page of that language."""
    if uri == "zh/README.md":
        return page_of("README.md")
    if uri.startswith("zh/"):
        return uri.removeprefix("zh/")
    translated = "zh/" + path_in_repository(uri).removeprefix("docs/")
    return translated if translated in files else "zh/README.md"


def on_page_context(context, page, config, nav):
    is_chinese = page.file.src_uri.startswith("zh/")
    section = nav.items[1 if is_chinese else 0]
    shown = copy.copy(nav)
    shown.items, shown.homepage = section.children, section.children[0]
    context["nav"] = shown
    config["theme"]["language"] = "zh" if is_chinese else "en"
    files = GITHUB.files
    other = files.get_file_from_path(other_language(page.file.src_uri, files)).url
    english, chinese = (other, page.url) if is_chinese else (page.url, other)
    config["extra"]["alternate"] = [
        {"name": "English", "link": english, "lang": "en"},
        {"name": "中文", "link": chinese, "lang": "zh"},
    ]
    return context


# ---- Search.

def on_post_build(config):
    """Divides the Chinese text of the search index into words, and writes the list of words."""
    jieba.setLogLevel("WARNING")
    words = set()

    def divide(run):
        found = list(jieba.cut(run[0]))
        words.update(found)
        return "\u200b" + "\u200b".join(found) + "\u200b"

    folder = pathlib.Path(config["site_dir"]) / "search"
    index = json.loads((folder / "search_index.json").read_text("utf-8"))
    for entry in index["docs"]:
        for field in ("title", "text"):
            entry[field] = HAN.sub(divide, entry[field])
    (folder / "search_index.json").write_text(json.dumps(index, ensure_ascii=False), "utf-8")
    (folder / "words.js").write_text(
        f'var chineseWords = new Set("{" ".join(sorted(words))}".split(" "));\n', "utf-8")
