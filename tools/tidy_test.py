#!/usr/bin/env python3
"""Proves that tools/tidy catches what its rules forbid: plants a violation of each in a tree that
is clean without it, checks that tree and looks for the rule at the right place. What the program
makes of findings (lines, exit status) is tested by running it.

Rules that must not fire (a clock in its file, a word in a comment) are planted too. The last test
asks that every rule has a violation here, so that a new rule comes with one.
"""

import contextlib
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.dont_write_bytecode = True
TIDY = pathlib.Path(__file__).resolve().parent / "tidy"
sys.path.insert(0, str(TIDY.parent))

from tidy_rules import RULES, check_tree  # noqa: E402  (needs the path above)
from tidy_rules.prose import PATTERNS  # noqa: E402

HEAD = "// The purpose of this file.\n"

CLEAN = {
    "include/detent/tick.h": HEAD + "#pragma once\n#include <cstdint>\n",
    "include/detent/timer_wheel.h": HEAD + '#pragma once\n#include "detent/tick.h"\n',
    "include/detent/scheduler.h": HEAD + "#pragma once\n",
    "src/wheel/CMakeLists.txt": "detent_add_layer(wheel PUBLIC_HEADERS\n"
                                "  detent/tick.h detent/timer_wheel.h NEEDS x)\n",
    "src/runtime/CMakeLists.txt": "detent_add_layer(runtime PUBLIC_HEADERS detent/scheduler.h)\n",
    "src/base/mutex.h": HEAD + "#pragma once\n#include <mutex>\nstruct M { std::mutex m; };\n",
    "src/base/clock.h": HEAD + "#pragma once\n",
    "src/base/machine_time.h": HEAD + "#pragma once\n",
    "src/base/machine_time.cc":
        '#include "base/machine_time.h"\nauto t = std::chrono::steady_clock::now();\n',
    "src/base/result.h": HEAD + "#pragma once\n#include <tl/expected.hpp>\n",
    "src/store/store.h": HEAD + '#pragma once\n#include "base/result.h"\n#include "task/task.h"\n',
    "src/task/task.h": HEAD + "#pragma once\nint count();\n",
    "src/task/task.cc": '#include "task/task.h"\n\n#include <string>\n',
    "src/protocol/CMakeLists.txt": "detent_add_layer(protocol SOURCES words.cc)\n",
    "src/protocol/json/CMakeLists.txt": "# Its files are in the list above.\n",
    "src/task/task_test.cc": '#include <gtest/gtest.h>\n\n#include "task/task.h"\n',
    "src/net/server.cc": HEAD + "#include <boost/beast/http.hpp>\n#include <sys/epoll.h>\n",
    "src/engine/engine.cc": HEAD + '#include "detent/scheduler.h"\n#include "store/store.h"\n',
    "src/protocol/words.cc": HEAD + "int tube = 0, ttr = 0;\n",
    "bench/a_bench.cc": HEAD + "#include <event2/event.h>\nauto t = clock::steady_clock::now();\n",
    "tests/e2e/a_test.cc": HEAD + '#include "server/server.h"\n',
    "examples/a.cc": HEAD + "#include <mutex>\nstd::mutex m;\n",
    "tools/report.py": '"""Prints a report."""\n\n\ndef report():\n    return 0\n',
}

LONG_BODY = "  step();\n" * 69
SEVENTY_ONE = "{\n" + LONG_BODY + "}\n"  # 71 lines with its braces
SEVENTY = "{\n" + LONG_BODY.replace("  step();\n", "", 1) + "}\n"


@contextlib.contextmanager
def folder_with(files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        yield folder


def check_repository(files):
    """The same of a repository that keeps all of the files."""
    with folder_with(files) as folder:
        for words in (["init", "-q"], ["add", "--force", "."]):
            subprocess.run(["git", "-C", folder, *words], check=True)
        return check_tree(folder)


def check(files):
    with folder_with(files) as folder:
        return check_tree(folder)


def run_tidy(files):
    """Runs the program over a tree of `files`; returns its exit status and its output's lines."""
    with folder_with(files) as folder:
        run = subprocess.run([sys.executable, TIDY, folder], capture_output=True, text=True,
                             check=False)
        return run.returncode, run.stdout.splitlines()


def cpp(text):
    return HEAD + text


def prose(path, text):
    """`text` as a page or as a comment, whichever the name of the file asks for."""
    lines = textwrap.wrap(text, 90)
    if path.endswith(".md"):
        return "# A page\n\n" + "\n".join(lines) + "\n"
    mark = "# " if path.endswith(".py") else "// "
    head = "// A file.\n#pragma once\n" if path.endswith(".h") else '"""A file."""\n'
    head = HEAD + "\n" if path.endswith((".cc", ".js", ".ts", ".mjs")) else head
    return head + "".join(mark + line + "\n" for line in lines)


PLAIN = "The wheel fires the due timers. " * 100
FIFTY_ONE = "The wheel " + "the due timers and " * 12 + "stops."
FIFTY = FIFTY_ONE.replace(" and stops", " stops")
TWO_HITS = "Nothing is lost, and nobody waits."
THREE_HITS = "Nothing is lost, nobody waits, and what is due is fired."

# For each pattern of words: a sentence that has it, and the words that are reported.
WORDS = [
    ("The wheel fires what is due.", "what"),
    ("An answer is sent to whose task has ended.", "to whose"),
    ("The wheel drops nothing.", "nothing"),
    ("The lease is to be kept.", "is to be"),
    ("The wheel fires the next one.", "next one"),
    ("This is the queue of which the worker reads.", "of which"),
    ("The wheel starts anew.", "anew"),
    ("The worker waits meanwhile.", "meanwhile"),
    ("The queues are served by turns.", "by turns"),
    ("All are fired but for late timers.", "but for"),
    ("The wheel turns as ever.", "as ever"),
    ("The cell is beside its slot.", "beside"),
    ("The worker likewise stops.", "likewise"),
    ("The task and the record thereof are removed.", "thereof"),
    ("Each timer fires, be it early or late.", "be it"),
    ("The timer fires none the less.", "none the less"),
]

# (rule, file, its prose, the area that is above its limit)
AREA_VIOLATIONS = [
    ("plain-words", path, PLAIN + 2 * "The wheel fires what is due. ", area)
    for path, area in (("README.md", "README.md"), ("CHANGELOG.md", "README.md"),
                       ("docs/concepts/a.md", "docs"), ("include/detent/tick.h", "include"),
                       ("src/task/t.cc", "src"), ("dashboard/a.js", "dashboard"),
                       ("clients/python/a.py", "clients"), ("clients/cpp/README.md", "clients"),
                       ("clients/typescript/a.ts", "clients"), ("clients/go/a.go", "clients"),
                       ("tests/e2e/a_test.mjs", "tests"))
] + [("long-sentences", "docs/a.md", PLAIN + 6 * (FIFTY + " "), "docs"),
     ("long-sentences", "src/task/t.cc", PLAIN + 6 * (FIFTY + " "), "src")]

# (rule, file, text with the violation, its line). The text replaces the file of the clean tree.
VIOLATIONS = [
    ("layering", "src/task/task.h", cpp('#pragma once\n#include "engine/engine.h"\n'), 3),
    ("layering", "src/engine/e.cc", cpp('#include "net/server.h"\n'), 2),
    ("layering", "src/net/n.cc", cpp('#include "task/task.h"\n'), 2),
    ("layering", "src/engine/e.cc", cpp('#include "store/rocksdb/store.h"\n'), 2),
    ("layering", "src/store/postgres/p.cc", cpp('#include "store/rocksdb/store.h"\n'), 2),
    ("layering", "src/store/s.cc", cpp('#include "detent/scheduler.h"\n'), 2),
    ("layering", "src/wheel/w.cc", cpp('#include "base/result.h"\n'), 2),
    ("layering", "src/base/b.cc", cpp('#include "detent/timer_wheel.h"\n'), 2),
    ("layering", "src/task/t.cc", cpp('#include "task/test_folder.h"\n'), 2),
    ("layering", "src/task/t.cc", cpp('#include "tests/support/server.h"\n'), 2),
    ("layering", "src/wheel/wheel_fixture.h", cpp('#pragma once\n#include "task/task.h"\n'), 3),
    ("layering", "src/server/m.cc", cpp('#include "store/rocksdb/rocksdb_store.h"\n'), 2),
    ("layering", "src/engine/e.cc", cpp('#include "engine/testing/e.h"\n'), 2),
    ("rooms", "src/engine/values/v.cc", cpp('#include "engine/engine.h"\n'), 2),
    ("rooms", "src/engine/e.cc", cpp('#include "engine/thread/t.h"\n'), 2),
    ("rooms", "src/engine/unheard/u.h", cpp("#pragma once\n"), 1),
    ("layering", "src/unheard/u.cc", cpp('#include "base/result.h"\n'), 2),
    ("layering", "include/detent/tick.h", cpp('#pragma once\n#include "detent/scheduler.h"\n'), 3),
    ("layering", "include/detent/timer_wheel.h",
     cpp('#pragma once\n#include "detent/scheduler.h"\n'), 3),
    ("layering", "include/detent/scheduler.h", cpp('#pragma once\n#include "base/clock.h"\n'), 3),
    ("third-party", "src/engine/e.cc", cpp("#include <rocksdb/db.h>\n"), 2),
    ("third-party", "src/task/t.cc", cpp("#include <tl/expected.hpp>\n"), 2),
    ("third-party", "src/server/s.cc", cpp("#include <boost/asio/ip/tcp.hpp>\n"), 2),
    ("third-party", "src/server/s.cc", cpp("#include <boost/json.hpp>\n"), 2),
    ("third-party", "src/server/s.cc", cpp("#include <CLI/CLI.hpp>\n"), 2),
    ("third-party", "src/engine/e.cc", cpp("#include <spdlog/spdlog.h>\n"), 2),
    ("third-party", "src/engine/e.cc", cpp("#include <prometheus/counter.h>\n"), 2),
    ("third-party", "src/base/b.cc", cpp("#include <fmt/format.h>\n"), 2),
    ("third-party", "src/task/t.cc", cpp("#include <gtest/gtest.h>\n"), 2),
    ("third-party", "src/task/t.cc", cpp("#include <curl/curl.h>\n"), 2),
    ("third-party", "src/wheel/w.cc", cpp("#include <sys/timerfd.h>\n"), 2),
    ("third-party", "include/detent/tick.h", cpp("#pragma once\n#include <fmt/format.h>\n"), 3),
    ("third-party", "src/net/zz.cc", cpp("#include <boost/beast/core.hpp>\n"), 2),
    ("third-party", "src/net/n.h", cpp("#pragma once\n#include <boost/beast/core.hpp>\n"), 3),
    ("public-header", "include/detent/extra.h", cpp("#pragma once\n"), 1),
    ("clock", "src/task/t.cc", cpp("auto t = std::chrono::system_clock::now();\n"), 2),
    ("clock", "src/task/t_test.cc", cpp("auto t = std::chrono::steady_clock :: now();\n"), 2),
    ("clock", "src/net/n.cc", cpp("int r = clock_gettime(CLOCK_MONOTONIC, &now);\n"), 2),
    ("clock", "src/task/t.cc", cpp("auto t = std::time(nullptr);\n"), 2),
    ("clock", "src/task/t.cc", cpp("auto t = ::time(&now);\n"), 2),
    ("clock", "src/task/t.cc", cpp("int r = gettimeofday(&now, nullptr);\n"), 2),
    ("clock", "tests/e2e/t.cc", cpp("void f() { std::this_thread::sleep_for(1ms); }\n"), 2),
    ("clock", "tests/e2e/t.cc", cpp("void f() { std::this_thread::sleep_until(t); }\n"), 2),
    ("clock", "tests/e2e/t.cc", cpp("void f() { usleep(10); }\n"), 2),
    ("clock", "tests/e2e/t.cc", cpp("void f() { nanosleep(&t, nullptr); }\n"), 2),
    ("clock", "tests/e2e/t.cc", cpp("void f() { sleep(1); }\n"), 2),
    ("clock", "tests/e2e/t.cc", cpp("void f() { ::sleep(seconds); }\n"), 2),
    ("random", "src/task/t.cc", cpp("std::random_device device;\n"), 2),
    ("random", "src/task/t_test.cc", cpp("std::mt19937_64 engine(1);\n"), 2),
    ("random", "src/task/t.cc", cpp("int r = rand();\n"), 2),
    ("random", "src/task/t.cc", cpp("void f() { srand(1); }\n"), 2),
    ("mutex", "src/task/t.cc", cpp("std::mutex m;\n"), 2),
    ("mutex", "src/task/t.cc", cpp("std::shared_mutex m;\n"), 2),
    ("mutex", "src/task/t_test.cc", cpp("std::condition_variable c;\n"), 2),
    ("mutex", "src/net/n.cc", cpp("void f() { std::lock_guard lock(m); }\n"), 2),
    ("mutex", "src/net/n.cc", cpp("pthread_mutex_t m;\n"), 2),
    ("glossary", "src/task/t.cc", cpp("int tube = 0;\n"), 2),
    ("glossary", "src/engine/e.cc", cpp("int run_at_ = 0;\n"), 2),
    ("glossary", "src/wheel/w.cc", cpp("int bucket = 0;\n"), 2),
    ("glossary", "examples/a.cc", cpp("int jiffies = 0;\n"), 2),
    ("log-action", "src/task/t.cc", cpp('void f() {\n  log_error("it failed", {{"cause", why()}});'
                                        '\n  log_warning("x", {{"action", "wait"}});\n}\n'), 3),
    ("machine-path", "src/task/t.cc", cpp("// see /" "work/main/x\n"), 2),
    ("machine-path", "docs/a.md", "# A\n\nSee .." "/shared/design.\n", 3),
    ("machine-path", "CMakeLists.txt", "# Root.\nset(X /" "work/x)\n", 2),
    ("file-size", "src/task/t.cc", cpp("int a;\n" * 800), 801),
    ("function-size", "src/task/t.cc", cpp("int f(int x) " + SEVENTY_ONE), 2),
    ("function-size", "src/task/t.cc",
     cpp("\nclass A {\n void f() const " + SEVENTY_ONE + "};\n"), 4),
    ("function-size", "src/task/t.cc",
     cpp("namespace a {\nA::A(int x) : Base{x}, m_{x, 2}, n_(x) " + SEVENTY_ONE + "}\n"), 3),
    ("function-size", "src/task/t_test.cc", cpp("TEST(Thing, IsTrue) " + SEVENTY_ONE), 2),
    ("function-size", "src/task/t.cc",
     cpp("const char* brace = \"{\";\nint n = 1'000; // {\ntemplate <class T>\nT f() "
         + SEVENTY_ONE), 4),
    ("function-size", "src/task/t.cc", cpp("#define OPEN {\nvoid f() " + SEVENTY_ONE), 3),
    ("function-size", "tools/report.py",
     '"""A."""\n\n\ndef f():\n' + "    step()\n" * 70, 4),
    ("file-head", "src/task/t.cc", "int a;\n", 1),
    ("file-head", "src/task/t.h", "#pragma once\n", 1),
    ("file-head", "tools/report.py", "import os\n", 1),
    ("file-head", "tools/a", "#!/bin/sh\necho\n", 1),
    ("pragma-once", "src/task/t.h", cpp("int a;\n"), 1),
    ("pragma-once", "src/task/t.h", cpp("// #pragma once\n"), 1),
    ("own-header-first", "src/task/task.cc", '#include <string>\n#include "task/task.h"\n', 1),
    ("own-header-first", "src/runtime/scheduler/scheduler.cc",
     cpp('#include "base/result.h"\n#include "detent/scheduler.h"\n'), 2),
    ("line-length", "src/task/t.cc", cpp("// " + "x" * 98 + "\n"), 2),
    ("line-length", "src/task/CMakeLists.txt", "# " + "x" * 99 + "\n", 1),
    ("reason", "src/task/task.cc", '#include "task/task.h"\n\nint a = 1;\n(void)count();\n', 4),
    ("reason", "src/task/task.cc", '#include "task/task.h"\n\nint a = 1;\n} catch (...) {\n', 4),
    ("listed", "src/protocol/words_test.cc", cpp("int a;\n"), 1),
    ("listed", "src/protocol/word.cc", cpp("int a;\n"), 1),
    ("listed", "src/protocol/json/ords.cc", cpp("int a;\n"), 1),
    ("kept", "tools/__pycache__/a.cpython-311.pyc", "", 1),
    ("kept", "tools/__pycache__/a.txt", "", 1),
    ("kept", "tools/a.pyc", "", 1),
    ("kept", "--folder/000038.sst", "x" * (512 * 1024 + 1), 1),
    ("sentence", "docs/a.md", prose("docs/a.md", "Plain English. " + FIFTY_ONE), 3),
    ("sentence", "docs/a.md", f"# A\n\n- An item\n- {THREE_HITS}\n", 4),
    ("sentence", "docs/a.md", f"# A\n\n| a |\n|---|\n| {THREE_HITS} |\n", 5),
    ("sentence", "docs/a.md", f"# A\n\n```sh\nnothing\n```\n{THREE_HITS}\n", 6),
    ("sentence", "src/task/t.cc", prose("t.cc", FIFTY_ONE), 3),
    ("sentence", "src/task/t.cc", cpp(f"int a;  // {THREE_HITS}\n"), 2),
    ("sentence", "src/task/t.cc",
     cpp("int a;  // Nothing is lost, nobody waits,\n        // and what is due is fired.\n"), 2),
    ("sentence", "clients/python/a.py", f'"""A file.\n\n{THREE_HITS}\n"""\n', 3),
    ("sentence", "clients/python/a.py", f'"""A file."""\nx = """\n"""\n# {THREE_HITS}\n', 4),
    ("sentence", "dashboard/a.js", f"/**\n * A file.\n *\n * {THREE_HITS}\n */\n", 4),
    ("allowance", "src/task/t.cc", cpp("int a;  // tidy-ok(clock): because\n"), 2),
    ("allowance", "src/task/t.cc", cpp("int a;  // tidy-ok(clocks): because\n"), 2),
    ("allowance", "src/task/t.cc", cpp("int a = rand();  // tidy-ok(random)\n"), 2),
]

HARMLESS = [
    ("an error with an action", "src/task/t.cc",
     cpp('void f() {\n  log_error("it failed",\n'
         '            {{"cause", why()}, {"action", "wait"}});\n}\n')),
    ("a test of the log", "src/task/t_test.cc",
     cpp('#include <gtest/gtest.h>\n\nvoid f() { log_error("it failed"); }\n')),
    ("a result that is discarded for a reason", "src/task/task.cc",
     '#include "task/task.h"\n\n// It is zero.\n(void)count();\n'),
    ("a word in a comment or a string", "src/task/t.cc",
     cpp('// std::mutex, sleep(1), tube, #include "engine/engine.h"\nauto s = "rand() tube";\n')),
    ("a test of the wheel that uses base", "src/wheel/w_test.cc",
     cpp('#include <gtest/gtest.h>\n\n#include "base/mutex.h"\n')),
    ("a test that uses what tests share", "src/task/t_test.cc",
     cpp('#include "tests/support/server.h"\n')),
    ("a fixture that uses googletest", "src/task/task_fixture.h",
     cpp("#pragma once\n#include <gtest/gtest.h>\n")),
    ("an allowance with a reason", "src/task/t.cc",
     cpp("// tidy-ok(random): the reason\nint a = rand();\n")),
    ("a member that is called like a function of C", "src/task/t.cc",
     cpp("auto a = record.time(0) + clock->sleep(1) + Rng::rand();\n"
         "class A {\n  void sleep();\n  void b() { sleep(); }\n};\nvoid A::sleep() {}\n")),
    ("70 lines", "src/task/t.cc", cpp("void f() " + SEVENTY)),
    ("a long class of short functions", "src/task/t.cc",
     cpp("class A {\n" + "  int f() { return 1; }\n" * 100 + "};\n")),
    ("a long table", "src/task/t.cc", cpp("constexpr int k[] = {\n" + "  1,\n" * 100 + "};\n")),
    ("a long file that says why", "src/task/t.cc",
     cpp("// Long because the table is one.\n" + "int a;\n" * 900)),
    ("100 characters that are more bytes", "src/task/t.cc", cpp("// " + "→" * 97 + "\n")),
    ("a digit separator and a quote", "src/task/t.cc",
     cpp("int a = 1'000;\nchar c = '\"';\nint b = 2'000;  // \"rand()\n")),
    ("a program that a folder above lists by its name", "src/protocol/json/words.cc",
     cpp("int a;\n")),
    ("sentences of 50 words and of two hits", "docs/a.md",
     prose("docs/a.md", FIFTY + " " + TWO_HITS)),
    ("a sentence that is allowed", "src/task/t.cc",
     cpp(f"// tidy-ok(sentence): a quotation\n// {THREE_HITS}\n")),
    ("words in code and in targets of links", "docs/a.md",
     "# A\n\n    nothing none nobody\n\n```\nnothing none nobody\n```\n\n"
     "`nothing none nobody` of\n[a page](nothing/none/nobody.md), [none/nothing/what](a.md).\n"),
    ("words in examples of comments", "src/task/t.cc",
     cpp("//     nothing none nobody what\nauto url = \"a // nothing none nobody\";\n")),
    ("words in strings of Python", "tests/a_test.py",
     '"""A test."""\nTEXT = """\nnothing none nobody neither\n"""\n'),
    ("the value None in Python", "clients/python/a.py",
     '"""A file."""\n# None for None: None, or None.\n'),
    ("a table of figures", "docs/a.md", "# A\n\n| a |\n|---|\n| 1 none 2 nothing 3 nobody |\n"),
    ("a question", "docs/a.md", "# A\n\nWhat fires, what waits, and what is lost?\n"),
    ("a page that a program writes", "docs/reports/a.md", f"# A\n\n{THREE_HITS}\n"),
    ("a page of benchmarks", "docs/benchmarks-xeon.md", f"# A\n\n{THREE_HITS}\n"),
    ("a Chinese page that quotes English", "docs/zh/a.md", f"# A\n\n{THREE_HITS}\n"),
    ("a page outside the areas", "examples/a/README.md", f"# A\n\n{THREE_HITS}\n"),
    ("a page of plain English", "docs/a.md", prose("docs/a.md", PLAIN)),
    ("one hit in 600 words", "docs/a.md", prose("docs/a.md", PLAIN + "It drops nothing.")),
    ("a high rate of few words", "docs/a.md", prose("docs/a.md", TWO_HITS)),
    ("the trace where CI names it", ".ci/run", "#!/bin/sh\n# CI.\nx=.." "/shared/data\n"),
]


class Rules(unittest.TestCase):
    def test_a_clean_tree_passes(self):
        report = check(CLEAN)
        self.assertEqual((report.findings, report.file_count), ([], len(CLEAN)))

    def test_each_violation_is_caught_alone_and_at_its_line(self):
        for rule, path, text, line in VIOLATIONS:
            with self.subTest(rule=rule, path=path, text=text[:90]):
                look = check_repository if rule == "kept" else check
                found = look(CLEAN | {path: text}).findings
                if rule == "allowance":  # what it fails to allow is found as well
                    found = [finding for finding in found if finding.rule == rule]
                places = [(finding.rule, finding.path, finding.line) for finding in found]
                self.assertEqual(places, [(rule, path, line)], found)

    def test_an_area_above_its_limit_is_found_with_its_worst_sentences(self):
        for rule, path, text, area in AREA_VIOLATIONS:
            with self.subTest(rule=rule, path=path):
                found = check(CLEAN | {path: prose(path, text)}).findings
                self.assertEqual([(finding.path, finding.rule) for finding in found],
                                 [(area, rule)])
                worst = found[0].message.splitlines()[1:]
                self.assertEqual(len(worst), 5)
                self.assertTrue(worst[0].startswith(f"    {path}:"), worst)

    def test_each_pattern_of_words_is_found_and_says_what_to_write_instead(self):
        self.assertEqual(len(WORDS), len(PATTERNS))
        for (sentence, words), (_, instead) in zip(WORDS, PATTERNS):
            with self.subTest(words):
                page = {"docs/a.md": prose("docs/a.md", PLAIN + f"{sentence} " * 3)}
                message, = (finding.message for finding in check(CLEAN | page).findings)
                self.assertIn(f"; instead of '{words}': {instead}. The worst:\n", message)

    def test_what_is_harmless_passes(self):
        for meaning, path, text in HARMLESS:
            with self.subTest(meaning):
                self.assertEqual(check(CLEAN | {path: text}).findings, [])

    def test_what_python_compiles_may_lie_beside_what_git_keeps(self):
        compiled = {"tools/__pycache__/a.pyc": "", ".gitignore": "__pycache__/\n"}
        with folder_with(CLEAN | compiled) as folder:
            for words in (["init", "-q"], ["add", "."]):
                subprocess.run(["git", "-C", folder, *words], check=True)
            self.assertEqual(check_tree(folder).findings, [])
        self.assertEqual(check(CLEAN | compiled).findings, [], "no repository, as an archive")

    def test_a_file_of_600_lines_is_a_warning(self):
        report = check(CLEAN | {"src/task/t.cc": cpp("int a;\n" * 599)})
        self.assertEqual(report.findings, [])
        self.assertEqual([(w.path, w.rule) for w in report.warnings],
                         [("src/task/t.cc", "file-size")])

    def test_a_folder_has_at_most_45_files(self):
        many = {f"src/task/more_{number}.h": cpp("#pragma once\n") for number in range(45)}
        found = check(CLEAN | many).findings
        self.assertEqual([(finding.path, finding.rule) for finding in found],
                         [("src/task", "rooms")])

    def test_every_rule_has_a_violation_here(self):
        planted = {rule for rule, _, _, _ in VIOLATIONS + AREA_VIOLATIONS}
        self.assertEqual(set(RULES), planted)


class Program(unittest.TestCase):
    def test_succeeds_for_a_clean_tree(self):
        status, lines = run_tidy(CLEAN)
        self.assertEqual((status, lines), (0, [f"tidy: {len(CLEAN)} files, 0 findings"]))

    def test_fails_and_says_path_line_rule_and_what_is_allowed(self):
        status, lines = run_tidy(CLEAN | {"src/task/t.cc": cpp("std::mutex m;\n")})
        self.assertEqual(status, 1)
        self.assertEqual(lines[0], "src/task/t.cc:2: mutex: 'std::mutex' is not used here; "
                         "use Mutex, MutexLock and CondVar (src/base/mutex.h)")

    def test_does_not_fail_for_a_warning(self):
        status, lines = run_tidy(CLEAN | {"src/task/t.cc": cpp("int a;\n" * 599)})
        self.assertEqual(status, 0)
        self.assertTrue(lines[0].endswith("(a warning)"), lines)

    def test_fails_when_there_is_nothing_to_check(self):
        self.assertEqual(run_tidy({})[0], 1)


if __name__ == "__main__":
    unittest.main()
