#!/usr/bin/env python3
"""Checks that the documentation is consistent with the tree:

- Every relative link in every *.md has its target, with its anchor.
- Every path and every test that a page mentions exists. The index lists every page under docs/,
  and docs/zh/README.md every Chinese page.
- Every known wrong answer and every class of bugs has a test. Every feature has a test, example or
  benchmark. Every name of the glossary is in the code, and every term has one meaning.
- Figures that pages copy from the code are equal to those in the code. This includes the limits of
  the entry points in the threat model.

Argument: the root of the tree. The tests also use small trees with broken pages, to show that
each check can fail.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()

FOLDERS = "bench|cmake|dashboard|docs|examples|include|packaging|src|tests|tools"
# A path from the root, in running text or in backticks. `{a,b}` and `*` stand for several paths.
PATH = re.compile(rf"(?<![\w./:-])(?:\.\./)*((?:{FOLDERS})/[\w./{{}},*-]*[\w}}*/])")
# A file name without a path, or as in an #include: `slab.h`, `detent/cron.h`.
NAME = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:h|cc|py|mjs|cjs|md|toml|svg|pml))`")
# Further tests after a test with its path: "src/wheel/a_test.cc, b_test.cc".
TEST_FILE = re.compile(r"(?<![\w./`*}…-])(\w+_test\.(?:cc|py|mjs))\b")
BENCHMARK = re.compile(r"`\w+_bench[` ]")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# `Suite.TestThatSaysSomething`, `Suite.*`
TEST_NAME = re.compile(r"`([A-Z]\w+)\.([A-Z]\w{7,}|\*)`")
# The name of a test without its suite: a sentence of many words.
SENTENCE = re.compile(r"`((?:[A-Z][a-z0-9]*){5,})`")
CASE = re.compile(r"`([A-Z]{2}_[A-Z0-9_]+)`")
CASE_PAGES = ("tests/regress/*/cases.md", "docs/internals/failure-modes.md")
# A row of failure-modes.md: number, where it happened, how it is prevented, which test shows it.
CLASS = re.compile(r"^\| \*\*(\d+)\. .*\| (.*) \|$", re.MULTILINE)
CLASSES = 35
SHOWING_FILE = re.compile(r"`[\w/]+_test\.\w+`|`tests/[\w/.]+`")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*?$", re.DOTALL | re.MULTILINE)
SKIPPED = {"node_modules", "build", "data", ".git"}
# Figures that a page copies from the code: the page and a pattern, the source and a pattern.
FIGURES = (
    ("docs/README.md", r"(\d+) classes of bugs", "docs/internals/failure-modes.md",
     r"^# Failure modes: (\d+) classes of bugs"),
    ("docs/glossary.md", r"(\d+) cells", "include/detent/internal/cell_lists.h",
     r"with (\d+) cells and an occupancy word"),
    ("docs/concepts/time.md", r"schedule_on`, in your process \| (\d+) hours",
     "src/runtime/dates/recurring_dates.cc", r"kWrongClock = std::chrono::hours\{(\d+)\}"),
    ("docs/concepts/time.md", r"schedules of the server \| (\d+) hours",
     "src/engine/schedules/schedule_registry.cc",
     r"kLongestStepBack = std::chrono::hours\{(\d+)\}"),
    ("docs/guides/scheduler.md", r"more than (\d+) hours", "src/runtime/dates/recurring_dates.cc",
     r"kWrongClock = std::chrono::hours\{(\d+)\}"),
    ("docs/guides/recurring.md", r"up to (\d+) hours", "src/engine/schedules/schedule_registry.cc",
     r"kLongestStepBack = std::chrono::hours\{(\d+)\}"),
    ("docs/guides/choosing-a-queue.md", r"empty `TimerWheel` takes (\d+) KB",
     "include/detent/timer_wheel.h", r"(\d+) KB\s+//\s+per wheel"),
    *(("docs/guides/choosing-a-queue.md", words, "docs/guides/choosing-a-queue.md",
       r"\| FifoTimerWheel or TimerWheel \| FifoTimerWheel \| FifoTimerWheel, from " + table)
      for words, table in (
          (r"cheaper than on `TimerWheel` below ([\d ]+) timers", r"([\d.]+ k) TimerWheel"),
          (r"fire a timer is cheaper below ([\d ]+) timers",
           r".*FifoTimerWheel, from ([\d.]+ k) about"),
          (r"dearer from ([\d ]+) on", r".*about equal, from ([\d.]+ k) TimerWheel"))),
    ("CONTRIBUTING.md", r"at most ([\d.]+) hits per", "tools/tidy_rules/prose.py",
     r"HITS_PER_1000 = ([\d.]+)"),
    ("CONTRIBUTING.md", r"A sentence has at most (\d+) words", "tools/tidy_rules/prose.py",
     r"SENTENCE_WORDS, SENTENCE_HITS = (\d+)"),
)
# A limit in a table of the threat model, with its constant: "16 KiB of head (`max_header_bytes`)".
LIMIT = re.compile(r"(\d(?:[\d ]*\d)?)(?: (KiB|MiB|s)\b)?[^(),;|]*\(`(\w+)`\)")
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": 1000}
MILLISECONDS = {"milliseconds": 1, "seconds": 1000, "minutes": 60_000, "hours": 3_600_000}
# Folders of files that are not in this tree: a user's program, or built and installed files.
ELSEWHERE = {"app", "build", "etc", "share", "usr"}
# Files of other projects or of users, and files that are created at run time.
NOT_OURS = {"cases.md", "detent.toml", "tokens.toml", "sd_notify.h", "main.cc", "app.cc", "app.py",
            "app.mjs", "x_test.cc"}


def pages(root):
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    paths = listed.stdout.split() if listed.returncode == 0 else []
    return [root / path for path in paths] or [
        path for path in root.rglob("*.md") if not SKIPPED & set(path.relative_to(root).parts)]


def anchors(text):
    """The anchors of the headings, as GitHub makes them."""
    seen, found = {}, set()
    for heading in re.findall(r"^#{1,6} +(.*?)[ #]*$", FENCE.sub("", text), re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        found.add(slug if count == 0 else f"{slug}-{count}")
    return found


def expand(path):
    """Returns all paths that `a/{b,c}.h` stands for."""
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [one for part in match[1].split(",")
            for one in expand(path[:match.start()] + part + path[match.end():])]


def is_there(root, path):
    path = path.rstrip("/")
    if "*" in path:
        return any(root.glob(path))
    # A page may name a test or an example as its program, without the file ending.
    return (root / path).exists() or any(root.glob(path + ".*"))


def broken_links(root, page):
    text = page.read_text("utf-8")
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = path.partition("?")[0]
        goal = (page.parent / path).resolve() if path else page
        if not goal.exists() or not goal.is_relative_to(root):
            yield f"{page.relative_to(root)}: nothing is at {target}"
        elif anchor and goal.suffix == ".md" and anchor not in anchors(goal.read_text("utf-8")):
            yield f"{page.relative_to(root)}: no heading is {target}"


def broken_paths(root, page, names):
    text = page.read_text("utf-8")
    bare = re.sub(r"\]\([^)]*\)", "]", text)
    for found in PATH.findall(bare):
        for path in expand(found):
            if not is_there(root, path) and not is_there(page.parent, path):
                yield f"{page.relative_to(root)}: there is no {path}"
    for name in NAME.findall(bare) + TEST_FILE.findall(bare):
        path = pathlib.PurePosixPath(name)
        ours = name in NOT_OURS or path.parts[0] in {*FOLDERS.split("|"), *ELSEWHERE}
        if not ours and not any(str(known).endswith("/" + name) for known in names[path.name]):
            yield f"{page.relative_to(root)}: no file is called {name}"


class Names(dict):
    """All files of the tree, by name."""

    def __init__(self, root):
        super().__init__()
        for path in root.rglob("*"):
            if not SKIPPED & set(path.relative_to(root).parts):
                self.setdefault(path.name, []).append("/" + str(path.relative_to(root)))

    def __missing__(self, key):
        return []


def unlisted(root):
    """Pages under docs/ to which docs/README.md has no link; docs/zh/README.md lists docs/zh/."""
    ours, chinese = root / "docs/README.md", root / "docs/zh/README.md"
    linked = {index: {(index.parent / target.partition("#")[0]).resolve()
                      for target in LINK.findall(index.read_text("utf-8"))}
              for index in (ours, chinese)}
    for page in sorted((root / "docs").rglob("*.md")):
        index = chinese if page.is_relative_to(chinese.parent) and page != chinese else ours
        if page != ours and page.resolve() not in linked[index]:
            yield f"{page.relative_to(root)} is not in {index.relative_to(root)}"


def unshown_features(root):
    """Rows of docs/features.md whose last cell names no test, example or benchmark."""
    page = root / "docs/features.md"
    for line in page.read_text("utf-8").splitlines() if page.exists() else []:
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if not line.startswith("| ") or len(cells) != 3 or cells[2] == "shown by":
            continue
        runs = [path for path in PATH.findall(re.sub(r"\]\([^)]*\)", "]", cells[2]))
                if path.split("/")[0] in ("src", "tests", "examples", "tools")]
        if not runs and not BENCHMARK.search(cells[2]):
            yield f"docs/features.md: nothing shows: {cells[0]}"


def terms_not_in_code(root):
    """Names in the glossary's cells "in code" that no source has."""
    page = root / "docs/glossary.md"
    if not page.exists():
        return
    known = {word for folder in ("include", "src") for ending in ("h", "cc")
             for path in (root / folder).rglob(f"*.{ending}")
             if not path.name.endswith("_test.cc")
             for word in re.findall(r"\w+", re.sub(r"//.*", "", path.read_text("utf-8")))}
    for line in page.read_text("utf-8").splitlines():
        cells = line.split("|")
        for word in re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", "".join(cells[3:4])))):
            if word not in known:
                yield f"docs/glossary.md: the code has no {word}"


def value_of(figure):
    """Reads a number: `3.5 k` and `3 500` are equal."""
    digits = re.sub(r"[ k]", "", figure)
    return round(float(digits) * (1000 if "k" in figure else 1))


def wrong_figures(root):
    """Figures in FIGURES that differ from those in the code, or that the page does not have."""
    for page, words, source, code_words in FIGURES:
        if not (root / page).exists() or not (root / source).exists():
            continue
        told = re.findall(words, " ".join((root / page).read_text("utf-8").split()))
        real = re.search(code_words, (root / source).read_text("utf-8"))
        if not real or not told or set(map(value_of, told)) != {value_of(real[1])}:
            yield f"{page}: {', '.join(told) or 'no figure'}, but {source} has " \
                  f"{real[1] if real else 'none'}"


def limit_in_code(name, sources):
    """The value of a constant, and whether it is a time, which is in milliseconds; or None."""
    for text in sources:
        found = re.search(rf"([^\n;]*)\b{name}\s*[={{]\s*([^;,\n]+)", text)
        if not found:
            continue
        units = re.findall(r"milliseconds|seconds|minutes|hours", found[1] + found[2])
        value = re.sub(r"(?:std::)?(?:size_t|uint64_t|chrono::\w+)|[{}']", "", found[2]).strip()
        if re.fullmatch(r"[\d *<]+", value):
            return eval(value) * (MILLISECONDS[units[-1]] if units else 1)
    return None


def wrong_limits(root):
    """Rows of entry points in the threat model that name no test, or a limit that the code does not
    have."""
    page = root / "docs/internals/threat-model.md"
    _, _, text = (page.read_text("utf-8") if page.exists() else "").partition("## Entry points\n")
    for line in text.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if not line.startswith("| ") or cells[0] == "entry point":
            continue
        where = f"docs/internals/threat-model.md: {cells[0]}"
        if len(cells) != 5 or not (TEST_NAME.search(cells[4]) or PATH.search(cells[4])):
            yield f"{where}: names no test"
            continue
        sources = [(root / path).read_text("utf-8") for path in PATH.findall(cells[2])
                   if (root / path).is_file()]
        for figure, unit, name in LIMIT.findall(cells[2]):
            told, real = value_of(figure) * UNITS[unit], limit_in_code(name, sources)
            if told != real:
                yield f"{where}: {name} is {told}, but {real} in the code"


def terms_of(cell):
    """The terms of a row: `turn, hand` has two, `shard (of a cluster)` has one."""
    return [term.strip() for term in re.split(r"[,/→](?![^(]*\))", cell) if term.strip()]


def double_terms(root):
    """Terms that two rows of the glossary explain."""
    page = root / "docs/glossary.md"
    seen = set()
    for line in page.read_text("utf-8").splitlines() if page.exists() else []:
        cells = line.split("|")
        if len(cells) < 4 or cells[1].strip() in ("term", "---"):
            continue
        for term in terms_of(cells[1]):
            if term in seen:
                yield f"docs/glossary.md: two rows explain '{term}'"
            seen.add(term)


def tests_of(root):
    return "".join(path.read_text("utf-8") for folder in ("src", "tests")
                   for path in (root / folder).rglob("*_test.cc"))


def is_test(sources, suite, name):
    return re.search(rf"TEST(?:_F|_P)?\({suite},\s*{name}\)", sources)


def missing_tests(root, page, sources):
    text = page.read_text("utf-8")
    for suite, name in TEST_NAME.findall(text):
        if not is_test(sources, suite, r"\w+" if name == "*" else name):
            yield f"{page.relative_to(root)}: there is no test {suite}.{name}"
    if page.match(CASE_PAGES[1]):
        for name in SENTENCE.findall(text):
            if not is_test(sources, r"\w+", name):
                yield f"{page.relative_to(root)}: there is no test {name}"


def cases_without_test(root, sources):
    """Cases without a test. The name of a test may continue after the case: `AB_CASE_WhatHolds`."""
    for page in (page for pattern in CASE_PAGES for page in root.glob(pattern)):
        for case in CASE.findall(page.read_text("utf-8")):
            if not is_test(sources, r"\w+", rf"{case}(?:_[A-Z][A-Z0-9]*[a-z][A-Za-z0-9]*)?"):
                yield f"{page.relative_to(root)}: no test is called {case}"


def classes_without_test(root):
    """Rows that are missing in the table of classes, or that name no test."""
    page = root / CASE_PAGES[1]
    rows = dict(CLASS.findall(page.read_text("utf-8")))
    for number in range(1, CLASSES + 1):
        shown_by = rows.get(str(number), "")
        if not any(kind.search(shown_by) for kind in (TEST_NAME, CASE, SHOWING_FILE)):
            yield f"{page.relative_to(root)}: no test shows class {number}"


def findings(root):
    names = Names(root)
    sources = tests_of(root)
    for page in pages(root):
        yield from broken_links(root, page)
        yield from broken_paths(root, page, names)
        yield from missing_tests(root, page, sources)
    yield from unlisted(root)
    yield from unshown_features(root)
    yield from terms_not_in_code(root)
    yield from wrong_figures(root)
    yield from wrong_limits(root)
    yield from double_terms(root)
    yield from cases_without_test(root, sources)
    yield from classes_without_test(root)


class Docs(unittest.TestCase):
    maxDiff = None

    def test_what_is_named_is_there(self):
        self.assertGreater(len(pages(ROOT)), 20)
        self.assertEqual([], list(findings(ROOT)))


BROKEN = {
    "docs/README.md": "[a](a.md) [f](internals/failure-modes.md) [gone](gone.md) "
                      "[ok](a.md?lang=zh) [head](a.md#no-such) [out](../../etc) "
                      "[features](features.md) [zh](zh/README.md) "
                      "[glossary](glossary.md) [threats](internals/threat-model.md) "
                      "25 classes of bugs",
    "docs/a.md": "# One\n## `Two` of *them*\n[ok](#one) [ok](#two-of-them) [no](#three)\n"
                 "```\n[in code](nowhere.md)\n```\n"
                 "src/there.cc, src/{there,gone}.cc, src/*.xy, build/src/any.cc, "
                 "`there.h` `detent/there.h` `absent.h` https://example.org/src/x.cc\n"
                 "`Port.SaysWhatHolds` `Port.*` `Port.SaysSomethingElse`\n",
    "docs/features.md": "| feature | where | shown by |\n|---|---|---|\n| **Part** | | |\n"
                        "| timers | `there.h` | [a](a.md), src/some_test.cc, none_test.cc |\n"
                        "| speed | here | `some_bench` |\n| ease | [a](a.md) | [a guide](a.md) |\n",
    "docs/zh/README.md": "[a](a.md)\n",
    "docs/zh/a.md": "", "docs/zh/lonely.md": "",
    "docs/glossary.md": "| term | meaning | in code | not |\n|---|---|---|---|\n"
                        "| port | a `door` | `Port`, `Gone::port_of()` | `gate` |\n"
                        "| port (of a ship) | its left, 64 cells |\n| side, port | 1 / 2 |\n",
    "docs/lonely.md": "",
    "docs/internals/failure-modes.md": "# Failure modes: 35 classes of bugs\n" + "".join(
        f"| **{number}. Wrong** | there | {shown_by} |\n" for number, shown_by in enumerate(
            ["`Port.SaysWhatHolds`", "`AB_TESTED`", "`AB_GONE`", "`some_test.cc`: all of it",
             "read with care", "`SaysThatItAllHoldsNow`, `tests/regress/x/cases.md`"]
            + ["`tests/regress/`"] * 28, 1)),
    "docs/internals/threat-model.md":
        "## Entry points\n| entry point | by | limits | guards | tests |\n|---|---|---|---|---|\n"
        "| good | all | 16 KiB (`kHead`), 10 s (`kTime`). src/limits.h | a | `Port.AB_TESTED` |\n"
        "| door | all | 8 KiB of head (`kHead`), 1 (`kGone`). src/limits.h | a | `Port.*` |\n"
        "| gate | all | none | a | none |\n\n## Threats\n| not | a | limit |\n",
    "src/limits.h": "int kHead = 16 * 1024;\nconstexpr milliseconds kTime{10'000};  // long\n",
    "include/detent/internal/cell_lists.h": "// with 56 cells and an occupancy word",
    "src/there.cc": "struct Port; void port_of();  // Gone", "include/detent/there.h": "",
    "src/some_test.cc": "TEST(Port, AB_TESTED)\nTEST_F(Port, AB_LONG_ASentence) // AB_MISSING\n"
                        "TEST(Port, SaysWhatHolds)",
    "tests/regress/x/cases.md":
        "| `AB_TESTED` | no | yes |\n| `AB_LONG`, `AB_MISSING` | no | yes |\n",
}
EXPECTED = [
    "docs/README.md: 25, but docs/internals/failure-modes.md has 35",
    "docs/README.md: no heading is a.md#no-such",
    "docs/README.md: nothing is at ../../etc",
    "docs/README.md: nothing is at gone.md",
    "docs/a.md: no file is called absent.h",
    "docs/a.md: no heading is #three",
    "docs/a.md: there is no src/*.xy",
    "docs/a.md: there is no src/gone.cc",
    "docs/a.md: there is no test Port.SaysSomethingElse",
    "docs/features.md: no file is called none_test.cc",
    "docs/features.md: nothing shows: ease",
    "docs/glossary.md: 64, but include/detent/internal/cell_lists.h has 56",
    "docs/glossary.md: the code has no Gone",
    "docs/glossary.md: two rows explain 'port'",
    "docs/internals/failure-modes.md: no test is called AB_GONE",
    "docs/internals/failure-modes.md: no test shows class 35",
    "docs/internals/failure-modes.md: no test shows class 5",
    "docs/internals/failure-modes.md: there is no test SaysThatItAllHoldsNow",
    "docs/internals/threat-model.md: door: kGone is 1, but None in the code",
    "docs/internals/threat-model.md: door: kHead is 8192, but 16384 in the code",
    "docs/internals/threat-model.md: gate: names no test",
    "docs/lonely.md is not in docs/README.md",
    "docs/zh/lonely.md is not in docs/zh/README.md",
    "tests/regress/x/cases.md: no test is called AB_MISSING",
]


class BrokenPages(unittest.TestCase):
    def test_each_fault_is_found_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for path, text in BROKEN.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, "utf-8")
            self.assertEqual(EXPECTED, sorted(findings(root)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
