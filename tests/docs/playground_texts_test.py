#!/usr/bin/env python3
"""Checks the texts of the playground, examples/playground/texts.json, without a compiler:

- Each text has both languages. The Chinese text has Chinese characters, and no half-width
  punctuation beside them.
- Both languages have the same values: {0}, {1} …
- The page and the program use each text, and each text that they use is in the table.
- The page has no words of its own: no text between tags, and no labels.
- docs/playground/index.html has this table, and is smaller than 1 MB.

Argument: the root of the tree. A test with broken texts shows that every fault is found.
"""

import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
FOLDER = ROOT / "examples/playground"
PAGE = ROOT / "docs/playground/index.html"
LARGEST = 1_000_000  # bytes
HAN = "[\u4e00-\u9fff]"
HALF_WIDTH = re.compile(rf"{HAN}[,;:()!?]|[,;:()!?]{HAN}")
NO_SPACE = re.compile(rf"{HAN}[A-Za-z0-9{{]|[A-Za-z0-9}}]{HAN}")
VALUE = re.compile(r"\{(\d)")


def table_faults(texts):
    for name, languages in texts.items():
        if len(languages) != 2 or not all(isinstance(one, str) and one for one in languages):
            yield f"{name} has not two texts"
            continue
        english, chinese = languages
        if re.search(HAN, english):
            yield f"{name} has Chinese in the English text"
        if not re.search(HAN, chinese):
            yield f"{name} has no Chinese in the Chinese text"
        if HALF_WIDTH.search(chinese):
            yield f"{name} has half-width punctuation in Chinese"
        if NO_SPACE.search(chinese):
            yield f"{name} has no space between Chinese and another word"
        if set(VALUE.findall(english)) != set(VALUE.findall(chinese)):
            yield f"{name} has different values in the two languages"


def use_faults(texts, page, code):
    """`code` is the script and the program. `log.${kind}` uses log.X if "X" is in the code."""
    quoted = re.findall(r"['\"]([\w.-]+)['\"]|^  ([\w-]+): ", code, re.MULTILINE)
    named = {one or other for one, other in quoted}
    named |= set(re.findall(r"data-(?:text|label)=\"([^\"]*)\"", page))
    families = set(re.findall(r"`([a-z]+)\.\$\{", code))
    used = named | {f"{family}.{word}" for family in families for word in named}
    for name in sorted(set(texts) - used):
        if not name.startswith("error."):  # of the queues; the test in the browser causes each
            yield f"nothing uses {name}"
    groups = {name.partition(".")[0] for name in texts}
    for name in sorted(named - set(texts)):
        group, dot, rest = name.partition(".")
        if dot and rest not in ("", "h") and group in groups:
            yield f"the table has no {name}"


def word_faults(page):
    bare = re.sub(r"<(style|script)\b.*?</\1>|<!--.*?-->|<head>.*?</head>", "", page,
                  flags=re.DOTALL)
    for text in re.findall(r">([^<]*[^\W\d][^<]*)<", bare):
        yield f"page.html has the words '{text.strip()}'"
    for text in re.findall(r"\b(?:aria-label|title|placeholder)=\"([^\"]*)\"", bare):
        yield f"page.html has the words '{text}'"


class Texts(unittest.TestCase):
    maxDiff = None

    def test_every_text_has_both_languages_and_is_used(self):
        source = (FOLDER / "texts.json").read_text("utf-8")
        texts = json.loads(source)
        page = (FOLDER / "page.html").read_text("utf-8")
        code = "".join(path.read_text("utf-8") for path in sorted(FOLDER.glob("*.cc")))
        code += (FOLDER / "page.js").read_text("utf-8")
        self.assertGreater(len(texts), 100)
        self.assertEqual([], [*table_faults(texts), *use_faults(texts, page, code),
                              *word_faults(page)])
        made = PAGE.read_text("utf-8")
        self.assertIn(source, made, "run ./dev playground")
        self.assertLess(PAGE.stat().st_size, LARGEST)

    def test_each_fault_is_found(self):
        texts = {"good": ["One {0}", "一 {0}"], "bar.half": ["Half"], "bar.empty": ["Empty", ""],
                 "bar.other": ["With 词", "Word"], "bar.marks": ["a", "一,二"],
                 "bar.close": ["a", "一a"], "bar.values": ["{0} {1}", "{0} 个"],
                 "log.moves": ["moves", "移动"], "log.unused": ["unused", "没有用"]}
        page = ('<head><title data-text="good"></title></head><b data-text="bar.gone"></b>'
                '<p title="Say">Words <i>1</i></p><script>let words;</script>')
        code = ('text(`log.${kind}`) {"moves"} \'bar.half\' "bar.empty" "bar.other" "bar.marks" '
                '"bar.close" "bar.values" \'bar.lost\'')
        self.assertEqual(
            ["bar.half has not two texts", "bar.empty has not two texts",
             "bar.other has Chinese in the English text",
             "bar.other has no Chinese in the Chinese text",
             "bar.marks has half-width punctuation in Chinese",
             "bar.close has no space between Chinese and another word",
             "bar.values has different values in the two languages",
             "nothing uses log.unused", "the table has no bar.gone", "the table has no bar.lost",
             "page.html has the words 'Words'", "page.html has the words 'Say'"],
            [*table_faults(texts), *use_faults(texts, page, code), *word_faults(page)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
