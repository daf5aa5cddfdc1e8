#!/usr/bin/env python3
"""Compiles the C++ examples of the pages and of the header comments, without warnings. An example
that cannot be compiled must say why.

examples.cc.in has the code around each example. A line with only … splits an example into two
parts. Every other … is removed. Arguments: the root of the tree, the compiler, and further
compiler arguments.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
COMPILE = [*sys.argv[2:], "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}",
           "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-Wno-unused-variable",
           "-Wno-unused-but-set-variable", "-Wno-unused-parameter", "-Wno-unused-private-field",
           "-Wno-unused-function", "-Wno-unknown-warning-option",
           "-Wno-subobject-linkage"]  # because #line names headers
# chinese_test.py compares the examples of the Chinese pages with those of the English pages.
PAGES = [ROOT / "README.md", ROOT / "clients/cpp/README.md",
         *(page for page in sorted((ROOT / "docs").rglob("*.md"))
           if not page.is_relative_to(ROOT / "docs/zh"))]
HEADERS = [path for path in sorted((ROOT / "include").rglob("*.h")) if "internal" not in path.parts]
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^//(?:     .*)?\n)+", re.MULTILINE)
STATEMENT = re.compile(r"[)}];\s*(//.*)?$", re.MULTILINE)


def blocks(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return BLOCK.findall(text)
    indented = (re.sub(r"^//(     )?", "", block, flags=re.MULTILINE)
                for block in INDENTED.findall(text))
    return [block.strip("\n") + "\n" for block in indented if STATEMENT.search(block)]


def statements(block):
    """The statements, in a form that is valid at any place."""
    block = re.sub(r"^(#include|using namespace) .*\n", "", block, flags=re.MULTILINE)
    return block.replace("int main()", "void main_()").replace("…", "")


def parts(block):
    return re.split(r"^…\n", block, flags=re.MULTILINE)


class Examples(unittest.TestCase):
    def test_they_compile_without_a_warning(self):
        template = ROOT / "tests/docs/examples.cc.in"
        shown = {str(path.relative_to(ROOT)): blocks(path) for path in PAGES + HEADERS}
        used = set()
        lines = []
        for number, line in enumerate(template.read_text(encoding="utf-8").splitlines(), 1):
            if not (match := re.fullmatch(r"@(.+)@(\d+)(?:\.(\d+))?@", line)):
                lines.append(line)
                continue
            path, index, part = match[1], int(match[2]), match[3]
            self.assertLessEqual(index, len(shown[path]), f"{path} has no example {index}")
            block = shown[path][index - 1]
            used.add((path, index))
            lines += [f'#line 1 "{path}, example {index}"',
                      statements(parts(block)[int(part) - 1] if part else block),
                      f'#line {number + 1} "{template}"']
        there = {(path, index) for path, all_of in shown.items()
                 for index in range(1, len(all_of) + 1)}
        self.assertEqual(there - used, set(), "examples.cc.in does not use these examples")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "examples.cc")
            source.write_text("\n".join(lines), encoding="utf-8")
            compiled = subprocess.run([*COMPILE, source], text=True, capture_output=True,
                                      check=False)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def test_a_mistake_is_told_in_words(self):
        mistakes = (
            ("struct Fixed { Fixed(const Fixed&) = delete; };"
             "detent::DelayQueue<Fixed> queue;", "T must be std::movable"),
            ("struct Key {}; detent::DelayMap<Key, int> map;", "need a hash"),
            ("struct Key {}; struct Hash { std::size_t operator()(const Key&); };"
             "detent::DelayMap<Key, int, Hash> map;", "keys of a DelayMap are compared"),
            ("void f(detent::DelayMap<int, std::unique_ptr<int>>& map) { map.get(1); }",
             "for with() and take()"),
        )
        includes = '#include "detent/delay_map.h"\n#include "detent/delay_queue.h"\n'
        for text, words in mistakes:
            compiled = subprocess.run([*COMPILE, "-xc++", "-"], input=includes + text, text=True,
                                      capture_output=True, check=False)
            self.assertNotEqual(compiled.returncode, 0, text)
            self.assertIn(words, compiled.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
