#!/usr/bin/env python3
"""Checks that each Chinese page has the structure of its English page:

- docs/zh/X.md has an English page docs/X.md; docs/zh/README.md belongs to README.md. Both pages
  link to each other before their first section.
- Both have the same levels of sections, code blocks, images and numbers of table rows, in the same
  order. The words of a code block ```chart are translated; its branches, pages and classes are not.
  An image with a Chinese version, zh/NAME in its folder, is that version on the Chinese page.
  Sections that a program writes are equal. The part between the comments begin:chinese and
  end:chinese has no counterpart.
- Each section names the same code and the same numbers. Numbers up to 12 may be words, or months.
- Chinese text has full-width punctuation, and a space between Chinese and Latin words. A line does
  not end between two Chinese characters, because a browser would show a space there.

Argument: the root of the tree. A test with broken pages shows that every fault is found.
"""

import itertools
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*?$", re.DOTALL | re.MULTILINE)
WRITTEN = re.compile(r"<!-- begin:.*?<!-- end:[\w-]+ -->", re.DOTALL)
ONLY_CHINESE = re.compile(r"<!-- begin:chinese -->.*?<!-- end:chinese -->", re.DOTALL)
ONLY_MARKS = re.compile(r"<!-- (?:begin|end):chinese -->")
HEADING = re.compile(r"^(#{1,6}) (.*)$", re.MULTILINE)
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
# Not read as text: written sections, and indented examples.
NOT_TEXT = re.compile(rf"{WRITTEN.pattern}|^ {{4,}}[^-\d\s].*?$", re.DOTALL | re.MULTILINE)
THOUSANDS = re.compile(r"(?<=\d)[ ,](?=\d{3}(?!\d))")  # 10 000 and 10,000 are 10000
MONTHS = 12
HAN = "[\u4e00-\u9fff]"
FAULTS = (
    ("half-width punctuation", re.compile(rf"{HAN}[,;:()!?\"]|[,;:()!?\"]{HAN}|{HAN}\.(?!\w)")),
    ("no space between Chinese and Latin", re.compile(rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9%]{HAN}")),
    ("a line ends between two Chinese characters", re.compile(rf"{HAN}\n *{HAN}")),
)


def english_of(root, page):
    path = page.relative_to(root / "docs/zh")
    return root / path if str(path) == "README.md" else root / "docs" / path


def levels(page):
    """The level and the words of each heading."""
    return [(len(mark), words) for mark, words in HEADING.findall(FENCE.sub("", page))]


def chart_lines(block):
    """The lines of a chart without their words: the branch, and the pages, options and classes."""
    return [re.findall(r"[├└]|[\w-]+\.md|--\w+|(?:[A-Z][a-z]+){2,}", line)
            for line in block.splitlines()]


def code_blocks(page):
    """The code blocks. The words of a block ```chart are translated."""
    return [chart_lines(match[0]) if match[0].startswith("```chart") else match[0]
            for match in FENCE.finditer(page)]


def written_sections(page):
    return WRITTEN.findall(page)


def table_rows(page):
    """The number of rows of each table."""
    lines = FENCE.sub("", page).splitlines()
    return [len(list(rows)) for is_row, rows in itertools.groupby(
        lines, key=lambda line: line.startswith("|")) if is_row]


def in_chinese(image):
    """The Chinese version of an image, zh/NAME in its folder; the image itself if it has none."""
    chinese = image.parent / "zh" / image.name
    return chinese if chinese.exists() else image


def images(page, path):
    return [(path.parent / target).resolve() for target in IMAGE.findall(FENCE.sub("", page))]


def text_of(page):
    """The text of a page without code, targets of links and emphasis. The lines stay."""
    page = ONLY_MARKS.sub("", page)
    page = FENCE.sub(lambda match: "\n" * match[0].count("\n"), page)
    page = NOT_TEXT.sub(lambda match: "\n" * match[0].count("\n"), page)
    page = re.sub(r"`[^`\n]*`", "X", page)
    page = HEADING.sub(r"\1 \2 #", page)  # the paragraph below begins a line of its own
    return LINK.sub(r"\1", page).replace("*", "")


def facts(page):
    """The inline code and the numbers of each section."""
    for section in HEADING.split(WRITTEN.sub("", FENCE.sub("", page)))[::3]:
        section = re.sub(r"\n\s*", " ", section)
        text = THOUSANDS.sub("", LINK.sub(r"\1", re.sub(r"`[^`]*`", "", section)))
        yield ({f"`{code}`" for code in re.findall(r"`([^`]*)`", section)}
               | {one for one in re.findall(r"\d+(?:\.\d+)?", text) if float(one) > MONTHS})


def first_difference(english, chinese):
    for number, (one, other) in enumerate(itertools.zip_longest(english, chinese), 1):
        if one != other:
            return number, one, other
    return None


def structure_faults(english, chinese, english_path, chinese_path):
    found = first_difference([level for level, _ in levels(english)],
                             [level for level, _ in levels(chinese)])
    if found:
        number = found[0] - 1
        words = [page[number][1] if number < len(page) else "no section"
                 for page in (levels(english), levels(chinese))]
        yield f"section {found[0]} is '{words[0]}' in English, '{words[1]}' in Chinese"
    for kind, parts in (
            ("code block", (code_blocks(english), code_blocks(chinese))),
            ("written section", (written_sections(english), written_sections(chinese))),
            ("number of rows of table", (table_rows(english), table_rows(chinese))),
            ("image", (list(map(in_chinese, images(english, english_path))),
                       images(chinese, chinese_path)))):
        found = first_difference(*parts)
        if found:
            yield f"{kind} {found[0]} differs from the English page"


def fact_faults(english, chinese):
    titles = ["the beginning", *(f"section '{words}'" for _, words in levels(chinese))]
    for title, ours, theirs in zip(titles, facts(english), facts(chinese)):
        for words, only in (("English", ours - theirs), ("Chinese", theirs - ours)):
            if only:
                yield f"{title}: only in {words}: {', '.join(sorted(only))}"


def link_faults(english, chinese, english_path, chinese_path):
    for page, path, other, words in ((english, english_path, chinese_path, "中文"),
                                     (chinese, chinese_path, english_path, "English")):
        link = f"[{words}]({os.path.relpath(other, path.parent)})"
        if link not in page.split("\n## ")[0]:
            yield f"{path.name} has no link {link} before its first section"


def text_faults(chinese):
    text = text_of(chinese)
    for words, pattern in FAULTS:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            around = text[max(0, match.start() - 6):match.end() + 6].replace("\n", "⏎")
            yield f"line {line}: {words}: {around}"


def findings(root):
    for path in sorted((root / "docs/zh").rglob("*.md")):
        name, english_path = path.relative_to(root), english_of(root, path)
        if not english_path.exists():
            yield f"{name}: there is no English page {english_path.relative_to(root)}"
            continue
        english, chinese = english_path.read_text("utf-8"), path.read_text("utf-8")
        pages, paths = (english, chinese), (english_path, path)
        counterpart = english, ONLY_CHINESE.sub("", chinese)
        faults = list(structure_faults(*counterpart, *paths)) or list(fact_faults(*counterpart))
        for fault in (*faults, *link_faults(*pages, *paths), *text_faults(chinese)):
            yield f"{name}: {fault}"


class Chinese(unittest.TestCase):
    maxDiff = None

    def test_each_page_has_the_structure_of_its_english_page(self):
        self.assertGreater(len(list((ROOT / "docs/zh").rglob("*.md"))), 1)
        self.assertEqual([], list(findings(ROOT)))


ENGLISH = """# Page
[中文](zh/{name}.md)

## One
`run` (or `--all`) takes 10 % of the time, that is 1,500 s, since 2 May 2026.
```sh
run one  # it
```
```chart
Is it one?
├─ yes ─ a.md  OneWheel
└─ no ── b.md  detent --two
```
![a](a.svg)
![c](c.svg)

| a | b |
|---|---|
| 1 | 2 |

### Part
## Two
<!-- begin:t -->
| 1 |
<!-- end:t -->
"""
CHINESE = """# 页
[English](../{name}.md)

<!-- begin:chinese -->
| 只有中文页面有 |
<!-- end:chinese -->
## 一
用 `run` 运行（`--all`）一次，占 10 % 的时间，即 1 500 s，2026 年 5 月 2 日起，见[二](#二)和 [Two](#二)。
**注意**：
“一行”可以在标点之后结束，
也可以在 word
之后结束。
```sh
run one  # it
```
```chart
是一吗？
├─ 是 ── a.md  OneWheel
└─ 否 ── b.md  detent --two
```
![甲](../a.svg)

![丙](../zh/c.svg)

| 甲 | 乙 |
|---|---|
| 1 | 2 |

### 部分
## 二
<!-- begin:t -->
| 1 |
<!-- end:t -->
"""
# The name of a planted page, the change of its text, and the findings.
PLANTED = (
    ("block", ("run one  # it", "run one  # 它"), "code block 1 differs from the English page"),
    ("chart", ("a.md  OneWheel", "a.md  TwoWheel"), "code block 2 differs from the English page"),
    ("code", ("`--all`", "`--none`"), "section '一': only in English: `--all`",
     "section '一': only in Chinese: `--none`"),
    ("colon", ("注意**：", "注意**:"), "line 9: half-width punctuation: Two。\n注意:\n“一行”可"),
    ("comma", ("一次，占", "一次,占"), "line 8: half-width punctuation: 运行（X）一次,占 10 %"),
    ("good", ("", "")),
    ("image", ("../a.svg", "../b.svg"), "image 1 differs from the English page"),
    ("image_in_english", ("../zh/c.svg", "../c.svg"), "image 2 differs from the English page"),
    ("line", ("之后结束，\n", "之后结束\n"),
     "line 10: a line ends between two Chinese characters: 在标点之后结束\n也可以在 wo"),
    ("link", ("[English](../link.md)", "[English](../good.md)"),
     "link.md has no link [English](../link.md) before its first section"),
    ("number", ("1 500", "1 600"), "section '一': only in English: 1500",
     "section '一': only in Chinese: 1600"),
    ("order", ("### 部分\n## 二", "## 二\n### 部分"),
     "section 3 is 'Part' in English, '二' in Chinese"),
    ("row", ("| 1 | 2 |\n", ""), "number of rows of table 1 differs from the English page"),
    ("section", ("## 二\n", ""), "section 4 is 'Two' in English, 'no section' in Chinese"),
    ("space", ("用 `run`", "用`run`"),
     "line 8: no space between Chinese and Latin: # 一 #\n用X 运行（X）"),
    ("written", ("| 1 |\n<", "| 2 |\n<"), "written section 1 differs from the English page"),
)


class BrokenPages(unittest.TestCase):
    maxDiff = None

    def test_each_fault_is_found_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            (root / "docs/zh").mkdir(parents=True)
            for name, (old, new), *_ in PLANTED:
                (root / f"docs/{name}.md").write_text(ENGLISH.format(name=name), "utf-8")
                chinese = CHINESE.format(name=name)
                self.assertIn(old, chinese)
                (root / f"docs/zh/{name}.md").write_text(chinese.replace(old, new), "utf-8")
            (root / "docs/zh/c.svg").touch()
            (root / "docs/zh/alone.md").write_text("# 页\n", "utf-8")
            (root / "README.md").write_text("# Name\n", "utf-8")
            (root / "docs/zh/README.md").write_text("# 名\n[English](../../README.md)\n", "utf-8")
            expected = ["README.md: README.md has no link [中文](docs/zh/README.md) before its first "
                        "section", "alone.md: there is no English page docs/alone.md"]
            expected += [f"{name}.md: {fault.replace(chr(10), '⏎')}"
                         for name, _, *faults in PLANTED for fault in faults]
            self.assertEqual([f"docs/zh/{one}" for one in expected], list(findings(root)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
