#!/usr/bin/env python3
"""Tests of tools/clang_tidy: which changes of a file need a new look at it."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parent / "clang_tidy"
LOADER = importlib.machinery.SourceFileLoader("clang_tidy", str(TOOL))
clang_tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("clang_tidy", LOADER))
LOADER.exec_module(clang_tidy)

BEFORE = r"""
#include <map>
#include "base/time.h"
// A comment with a "text" and it's fine.
/* Another
   comment. */
constexpr int kMost = 10'000;
const char kQuote = '"';  // NOLINT(some-check)
const char* const kText = "a \" quoted // text";
const char* const kRaw = R"x(raw ")" text)x";
TEST(Suite, OldName) { EXPECT_EQ(f("a"), 'b'); }
"""


class CodeOf(unittest.TestCase):
    def assert_same(self, old, new):
        self.assertIn(old, BEFORE)
        self.assertEqual(clang_tidy.code_of(BEFORE),
                         clang_tidy.code_of(BEFORE.replace(old, new)), new)

    def assert_other(self, old, new):
        self.assertIn(old, BEFORE)
        self.assertNotEqual(clang_tidy.code_of(BEFORE),
                            clang_tidy.code_of(BEFORE.replace(old, new)), new)

    def test_comments_texts_and_names_of_tests_do_not_count(self):
        self.assert_same("A comment with a", "Other words, with a")
        self.assert_same("Another\n   comment.", "One line.")
        self.assert_same("quoted // text", "other text")
        self.assert_same('raw ")" text', "other")
        self.assert_same("OldName", "NewName")
        self.assert_same('f("a")', 'f("bc")')
        self.assert_same("constexpr int kMost", "constexpr  int\n    kMost")
        self.assert_same("base/time.h", "base/clock.h")

    def test_all_else_counts(self):
        self.assert_other("<map>", "<set>")
        self.assert_other("10'000", "20'000")
        self.assert_other("""'"'""", "'x'")
        self.assert_other("'b'", "'c'")
        self.assert_other("NOLINT(some-check)", "NOLINT(other-check)")
        self.assert_other("// NOLINT(some-check)", "")
        self.assert_other("EXPECT_EQ", "EXPECT_NE")
        self.assert_other("kRaw", "kOther")


class RenamesSince(unittest.TestCase):
    def test_a_renamed_file_has_its_old_name(self):
        lines = "M\ta.cc\nR097\tsrc/b.h\tsrc/room/b.h\nA\tc.cc\n"
        with mock.patch.object(clang_tidy, "git", lambda *_: lines):
            self.assertEqual(clang_tidy.renames_since("HEAD"),
                             {"a.cc": "a.cc", "src/room/b.h": "src/b.h", "c.cc": "c.cc"})


if __name__ == "__main__":
    unittest.main()
