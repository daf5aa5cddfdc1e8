#!/usr/bin/env python3
"""Checks that each figure of README.md and docs/ has a text for readers who cannot see it:

- The alternative text of an image has the form "Subject: description", with at least four words
  after the colon. On a Chinese page it is in Chinese, with a full-width colon.
- An SVG file has a title or a label.
- A figure of text (branches in a code block) follows a sentence that ends with a colon.

The pages that a program writes (docs/benchmarks*.md and docs/reports/) are left out. Argument: the
root of the tree. A test with broken pages shows that every fault is found.
"""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
WRITTEN = ("benchmarks", "reports")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*?$", re.DOTALL | re.MULTILINE)
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
TAG = re.compile(r"<img\b[^>]*>")
BRANCH = re.compile("[├└┌│]")
HAN = re.compile("[\u4e00-\u9fff]")
ENGLISH = re.compile(r"(?P<subject>\w.{2,}?): (?P<seen>\S+(?: \S+){3,})$")
CHINESE = re.compile(r"(?P<subject>.{2,}?)：(?P<seen>.{8,})$")
LABEL = re.compile(r"<title[^>]*>\s*[^<\s]|<svg\b[^>]*\baria-label=\"[^\"]")


def says_what_is_seen(text, is_chinese):
    if text.endswith((".", "。")):
        return False
    if not is_chinese:
        return bool(ENGLISH.match(text)) and not HAN.search(text)
    found = CHINESE.match(text)
    return bool(found and HAN.search(found["subject"]) and HAN.search(found["seen"]))


def faults_of(page, is_chinese):
    text = page.read_text("utf-8")
    for fence in FENCE.finditer(text):
        before = text[:fence.start()].rstrip()
        if BRANCH.search(fence[0]) and not before.endswith((":", "：")):
            yield "a figure of text follows no sentence with a colon"
    bare = FENCE.sub("", text)
    for tag in TAG.findall(bare):
        yield f"write {tag} as ![text](file)"
    for words, target in IMAGE.findall(bare):
        if not says_what_is_seen(words, is_chinese):
            yield f"{target}: '{words}' is not 'Subject: what is to be seen'"
        file = page.parent / target
        if file.suffix == ".svg" and file.exists() and not LABEL.search(file.read_text("utf-8")):
            yield f"{target} has no title and no label"


def pages(root):
    yield root / "README.md"
    for path in sorted((root / "docs").rglob("*.md")):
        if not path.relative_to(root / "docs").parts[0].startswith(WRITTEN):
            yield path


def findings(root):
    for page in pages(root):
        for fault in faults_of(page, "zh" in page.relative_to(root).parts):
            yield f"{page.relative_to(root)}: {fault}"


class Figures(unittest.TestCase):
    maxDiff = None

    def test_each_figure_says_what_is_to_be_seen(self):
        images = sum(len(IMAGE.findall(page.read_text("utf-8"))) for page in pages(ROOT))
        self.assertGreater(images, 40)
        self.assertEqual([], list(findings(ROOT)))


BROKEN = {
    "README.md": "![Good: all of this is here](docs/good.svg)\n![](docs/good.svg)\n"
                 "```\n![in code](x.svg)\n```\n",
    "docs/good.svg": "<svg><title>Good</title></svg>",
    "docs/label.svg": '<svg role="img" aria-label="Good"></svg>',
    "docs/bare.svg": "<svg><title> </title></svg>",
    "docs/a.md": "![A wheel](good.svg)\n![A wheel: 4 moments](label.svg)\n"
                 "![Wheel: all of its four moments](bare.svg)\n"
                 "![Wheel: all of its four moments.](good.svg)\n<img src=\"good.svg\">\n\n"
                 "A chart:\n```\n├─ one\n```\nText.\n```\n└─ two\n```\n",
    "docs/benchmarks.md": "![](good.svg)", "docs/reports/b.md": "![](good.svg)",
    "docs/zh/a.md": "![时间轮：指针走到第 94 槽](../good.svg)\n![Wheel: all of its four moments](../good.svg)"
                    "\n![Wheel：all of its four moments](../good.svg)\n\n图：\n```\n├─ 一\n```\n",
}
EXPECTED = [
    "README.md: docs/good.svg: '' is not 'Subject: what is to be seen'",
    "docs/a.md: a figure of text follows no sentence with a colon",
    "docs/a.md: write <img src=\"good.svg\"> as ![text](file)",
    "docs/a.md: good.svg: 'A wheel' is not 'Subject: what is to be seen'",
    "docs/a.md: label.svg: 'A wheel: 4 moments' is not 'Subject: what is to be seen'",
    "docs/a.md: bare.svg has no title and no label",
    "docs/a.md: good.svg: 'Wheel: all of its four moments.' is not 'Subject: what is to be seen'",
    "docs/zh/a.md: ../good.svg: 'Wheel: all of its four moments' is not "
    "'Subject: what is to be seen'",
    "docs/zh/a.md: ../good.svg: 'Wheel：all of its four moments' is not "
    "'Subject: what is to be seen'",
]


class BrokenPages(unittest.TestCase):
    maxDiff = None

    def test_each_fault_is_found_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for path, text in BROKEN.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, "utf-8")
            self.assertEqual(EXPECTED, list(findings(root)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
