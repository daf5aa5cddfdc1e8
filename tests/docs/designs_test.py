#!/usr/bin/env python3
"""Checks that each page of docs/designs has the parts of the template:

- four questions with answers: where the timer goes, tick 256, the cost of a cancel, the classic bug
- the idea in three sentences, and a still figure with numbered moments
- the words that readers know, beside those of Detent
- pseudo-code, and a link to our file
- one timer, traced tick by tick, and a table of ranges
- the cost in O() and in measured nanoseconds
- at least three mistakes of published implementations: input, wrong output, correction and test
- who uses the design, and when not to use it

chinese_test.py compares the Chinese pages with these; here only their idea is counted. Argument:
the root of the tree. A test with broken pages shows that every fault is found.
"""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
NOT_A_DESIGN = {"README.md", "comparison.md"}
QUESTIONS = ("Where does a", "What happens at tick 256", "What does a cancel cost",
             "What is the classic bug")
SECTIONS = ("The idea", "Pseudo-code", "One", "Ranges", "Cost", "Known mistakes", "Who uses it",
            "When not to use it")
WORDS = ("tick", "wheel size", "interval", "current time", "expiration", "bucket", "overflow")
MISTAKE = ["mistake", "input", "wrong output", "correction"]  # and the test that shows it
SHOWN = re.compile(r"`\w+\.(?:\w+|\*)`|\w+_test\.cc|\]\(http")
SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FIGURE = re.compile(r"^!\[[^\]]*\]\(([^)]*figures/[\w/-]+\.svg)\)", re.MULTILINE)
MOMENT = re.compile(r'<text class="title"[^>]*>(\d+)\.')
LINES = range(6, 27)  # of pseudo-code


def sections_of(text):
    """Title → text. The part before the first section has the title ''."""
    parts = SECTION.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}


def tables_of(text):
    """The tables as lists of rows, without the line of dashes."""
    tables = re.findall(r"(?:^\|.*\|$\n?)+", FENCE.sub("", text), re.MULTILINE)
    return [[[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
             for number, row in enumerate(table.splitlines()) if number != 1] for table in tables]


def sentences_of_idea(text):
    """The number of sentences between the heading and the figure."""
    words = re.sub(r"`[^`]*`|\([^)]*\)", "X", FIGURE.split(text)[0])
    return len(re.findall(r"[.?!](?=\s|$)|[。？！]", words))


def figure_faults(page, idea):
    found = FIGURE.search(idea)
    if not found:
        yield "the idea has no figure"
        return
    file = page.parent / found[1]
    numbers = MOMENT.findall(file.read_text("utf-8")) if file.exists() else []
    if len(numbers) < 3 or numbers != [str(one) for one in range(1, len(numbers) + 1)]:
        yield f"{found[1]} has not three or more numbered moments"


def word_faults(text):
    rows = [row for table in tables_of(text) if "you know it as" in table[0][0] for row in table]
    known = "".join(row[0] for row in rows).lower().replace(" ", "")  # Kafka writes currentTimeMs
    for word in WORDS:
        if word.replace(" ", "") not in known:
            yield f"the table of words has no '{word}'"


def code_faults(text):
    if not any(block.count("\n") in LINES for block in FENCE.findall(text)):
        yield f"no pseudo-code of {LINES[0]} to {LINES[-1]} lines"
    if not re.search(r"\]\((?:\.\./)+(?:include|src|examples)/", text):
        yield "no link to our file beside the pseudo-code"


def mistake_faults(text):
    tables = [table for table in tables_of(text) if table[0][:-1] == MISTAKE]
    rows = [row for table in tables for row in table[1:]]
    if len(rows) < 3:
        yield f"{len(rows)} mistakes, 3 are needed: {' | '.join(MISTAKE)}"
    for row in rows:
        if not all(row) or not SHOWN.search(row[-1]):
            yield f"a mistake has an empty cell or no test: {row[0]}"


def faults_of(page):
    parts = sections_of(page.read_text("utf-8"))

    def part(title):
        return next((text for name, text in parts.items() if name.startswith(title)), "")

    questions = [row[0] for table in tables_of(parts[""]) for row in table]
    yield from (f"no question '{one}'" for one in QUESTIONS
                if not any(question.startswith(one) for question in questions))
    missing = [title for title in SECTIONS if not part(title).strip()]
    yield from (f"no section '{title}'" for title in missing)
    if missing:
        return
    count = sentences_of_idea(part("The idea"))
    if count != 3:
        yield f"the idea has {count} sentences instead of 3"
    yield from figure_faults(page, "".join(parts.values()))
    yield from word_faults("".join(parts.values()))
    yield from code_faults(part("Pseudo-code"))
    if not any(len(table) > 4 for table in tables_of(part("One"))):
        yield "no trace of 4 rows or more"
    if not any(len(table) > 2 for table in tables_of(part("Ranges"))):
        yield "no table of ranges"
    cost = part("Cost")
    if "O(" not in cost or not re.search(r"\d ns\b|nanoseconds", cost):
        yield "the cost has no O() or no measured nanoseconds"
    yield from mistake_faults(part("Known mistakes"))


def findings(root):
    for page in sorted((root / "docs/designs").glob("*.md")):
        if page.name in NOT_A_DESIGN:
            continue
        yield from (f"{page.name}: {fault}" for fault in faults_of(page))
        chinese = root / "docs/zh/designs" / page.name
        idea = sections_of(chinese.read_text("utf-8")).get("思路", "") if chinese.exists() else ""
        count = sentences_of_idea(idea)
        if count != 3:
            yield f"zh/{page.name}: the idea has {count} sentences instead of 3"


GOOD = """# A wheel

| question | answer |
|---|---|
| Where does a timer go? | There. |
| What happens at tick 256? | No work. |
| What does a cancel cost? | 5 ns. |
| What is the classic bug? | An early timer. |

## The idea
One. Two (e.g. this). Three.

![Wheel: three moments](figures/good.svg)

| you know it as | Detent says |
|---|---|
| tick, wheel size, `interval`, currentTime, expiration, bucket, overflow | words |

## Pseudo-code
```
1
2
3
4
5
6
```
[code](../../include/detent/a.h)

## One timer, tick by tick
| tick | hand |
|---|---|
| 1 | 1 |
| 2 | 2 |
| 3 | 3 |
| 4 | 4 |

## Ranges
| level | slots |
|---|---|
| 0 | 8 |
| 1 | 8 |

## Cost
O(1), 5 ns.

## Known mistakes
| mistake | input | wrong output | correction | test |
|---|---|---|---|---|
| a | 1 | 2 | 3 | `Port.AB_CASE` |
| b | 1 | 2 | 3 | a_test.cc |
| c | 1 | 2 | 3 | [a page](https://a.example) |

## Who uses it
One.

## When not to use it
Never.
"""
CHINESE = "# 轮\n## 思路\n一。二（X）。三。\n"
# The name of a page, the change of its text, and the findings.
PLANTED = (
    ("bug", ("What is the classic bug", "Which bug is known"),
     "no question 'What is the classic bug'"),
    ("code", ("1\n2\n", ""), "no pseudo-code of 6 to 26 lines"),
    ("cost", ("O(1), 5 ns", "O(1)"), "the cost has no O() or no measured nanoseconds"),
    ("few", ("| c | 1 | 2 | 3 | [a page](https://a.example) |\n", ""),
     "2 mistakes, 3 are needed: mistake | input | wrong output | correction"),
    ("figure", ("good.svg", "gone.svg"), "figures/gone.svg has not three or more numbered moments"),
    ("good", ("", "")),
    ("idea", ("One. Two", "One, two"), "the idea has 2 sentences instead of 3"),
    ("link", ("../../include/detent/a.h", "a.md"), "no link to our file beside the pseudo-code"),
    ("none", ("## Ranges", "## Sizes"), "no section 'Ranges'"),
    ("range", ("| 0 | 8 |\n", ""), "no table of ranges"),
    ("shown", ("| a_test.cc |", "| see there |"), "a mistake has an empty cell or no test: b"),
    ("trace", ("| 4 | 4 |\n", ""), "no trace of 4 rows or more"),
    ("word", (", bucket,", ","), "the table of words has no 'bucket'"),
)


class Designs(unittest.TestCase):
    maxDiff = None

    def test_each_page_has_the_parts_of_the_template(self):
        self.assertGreater(len(list((ROOT / "docs/designs").glob("*.md"))), 10)
        self.assertEqual([], list(findings(ROOT)))

    def test_each_fault_is_found_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            (root / "docs/designs/figures").mkdir(parents=True)
            (root / "docs/zh/designs").mkdir(parents=True)
            (root / "docs/designs/figures/good.svg").write_text("".join(
                f'<text class="title" x="1">{number}. Tick</text>' for number in (1, 2, 3)))
            (root / "docs/designs/README.md").write_text("# Designs\n", "utf-8")
            for name, (old, new), *_ in PLANTED:
                self.assertIn(old, GOOD)
                (root / f"docs/designs/{name}.md").write_text(GOOD.replace(old, new), "utf-8")
                (root / f"docs/zh/designs/{name}.md").write_text(CHINESE, "utf-8")
            (root / "docs/zh/designs/good.md").write_text(CHINESE.replace("二", "一。二"), "utf-8")
            expected = [f"{name}.md: {fault}" for name, _, *faults in PLANTED for fault in faults]
            expected.append("zh/good.md: the idea has 4 sentences instead of 3")
            self.assertEqual(sorted(expected), sorted(findings(root)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
