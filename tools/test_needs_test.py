#!/usr/bin/env python3
"""Tests of tools/test_needs: which tests it says were not run, and when that is a failure.

The table of needs and the answers of ctest are made up.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import tempfile
import unittest
from unittest import mock

PROGRAM = pathlib.Path(__file__).resolve().parent / "test_needs"


def load():
    loader = importlib.machinery.SourceFileLoader("test_needs", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("test_needs", loader))
    loader.exec_module(module)
    return module


test_needs = load()
NEEDS = {"here": (lambda: True, "Here"), "away": (lambda: False, "The Away Program"),
         "gone": (lambda: False, "Gone")}
LABELS = [("plain", []), ("with_here", ["slow", "needs_here"]), ("with_away", ["needs_away"]),
          ("with_both", ["needs_gone", "needs_away"]), ("with_gone", ["needs_gone"])]
RAN = "<testsuite>%s</testsuite>"


class TestNeeds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for name, value in (("NEEDS", NEEDS), ("labels_of", lambda _: LABELS)):
            patch = mock.patch.object(test_needs, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def report(self, cases="", skip_nothing="0"):
        (self.tree / "tests.xml").write_text(RAN % cases, "utf-8")
        out = io.StringIO()
        with mock.patch.dict(os.environ, DETENT_SKIP_NOTHING=skip_nothing), \
                contextlib.redirect_stdout(out):
            status = test_needs.report(self.tree)
        return status, out.getvalue()

    def test_each_test_that_lacks_something_is_named_once(self):
        status, out = self.report()
        self.assertEqual(status, 0)
        self.assertIn("The Away Program is not installed: with_away with_both\n", out)
        self.assertIn("Gone is not installed: with_gone\n", out)
        self.assertNotIn("with_here", out)
        self.assertIn("./dev setup full", out)

    def test_it_is_a_failure_where_nothing_may_be_skipped(self):
        self.assertEqual(self.report(skip_nothing="1")[0], 1)

    def test_a_test_that_skipped_itself_is_named_with_its_reason(self):
        with mock.patch.object(test_needs, "NEEDS", {"here": NEEDS["here"]}):
            for output, reason, status in (
                    ("a.cc:1: Skipped\nno file system may be mounted here\n",
                     "no file system may be mounted here", 0),
                    ("test_x ... skipped 'fish is not installed'\nOK", "fish is not installed", 1),
                    ("skipped: strace is not installed\n", "strace is not installed", 1)):
                case = f"<testcase name='t'><system-out>{output}</system-out></testcase>"
                found, out = self.report(case, skip_nothing="1")
                self.assertEqual((found, out.splitlines()[0]), (status, f"skipped: t: {reason}"))

    def test_nothing_is_said_when_all_ran(self):
        with mock.patch.object(test_needs, "NEEDS", {"here": NEEDS["here"]}):
            case = "<testcase name='t' status='run'><system-out>[ OK ]</system-out></testcase>"
            self.assertEqual(self.report(case, skip_nothing="1"), (0, ""))


class Missing(unittest.TestCase):
    def test_the_table_has_every_label_of_the_tests(self):
        root = PROGRAM.parents[1]
        used = set()
        for file in [*root.glob("tests/*/CMakeLists.txt"), *root.glob("src/**/CMakeLists.txt"),
                     root / "bench/CMakeLists.txt"]:
            used |= {word.removeprefix("needs_") for word in
                     test_needs.re.findall(r"needs_[a-z_]+", file.read_text("utf-8"))}
        self.assertEqual(used, set(test_needs.NEEDS))


if __name__ == "__main__":
    unittest.main()
