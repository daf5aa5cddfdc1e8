#!/usr/bin/env python3
"""Tests of tools/failed_tests: every failed test is named with the end of what it printed, the
others are not; what it reads is what this machine's ctest writes.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "failed_tests"

PROJECT = r"""
cmake_minimum_required(VERSION 3.20)
project(five NONE)
enable_testing()
add_test(NAME good COMMAND true)
add_test(NAME bad COMMAND sh -c "seq 100; printf 'a\\033[31mred <&> \\377'; exit 3")
add_test(NAME gone COMMAND /nonexistent/program)
add_test(NAME skipped COMMAND sh -c "exit 77")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
"""


def shown(*trees):
    return subprocess.run([TOOL, *trees], check=True, text=True,
                          capture_output=True).stdout


class FailedTests(unittest.TestCase):
    def test_names_those_that_failed_and_how_they_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
            tree = pathlib.Path(folder) / "release"
            subprocess.run(["cmake", "-S", folder, "-B", tree], check=True, capture_output=True)
            run = subprocess.run(["ctest", "--test-dir", tree, "--output-junit", "tests.xml"],
                                 check=False, capture_output=True)
            self.assertNotEqual(run.returncode, 0)
            lines = shown(tree).splitlines()
        self.assertEqual([line for line in lines if line.startswith("---")],
                         ["--- release: bad FAILED",
                          "--- release: gone FAILED Unable to find executable"])
        self.assertIn("100", lines)
        self.assertNotIn("50", lines)
        self.assertTrue(any("red <&>" in line for line in lines))

    def test_says_nothing_of_a_tree_that_ran_no_test(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(shown(folder), "")

    def test_shows_the_first_of_many_and_names_the_others(self):
        cases = "".join(f'<testcase name="t{i}" status="fail"><system-out>x</system-out></testcase>'
                        for i in range(14))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "tests.xml").write_text(f"<testsuite>{cases}</testsuite>",
                                                            encoding="utf-8")
            lines = shown(folder).splitlines()
        self.assertEqual(len(lines), 12 * 2 + 1)
        self.assertTrue(lines[-1].endswith("and 2 more: t12 t13"))

    def test_tells_what_a_busy_machine_may_be_the_reason_of(self):
        ended = "[ RUN      ] A.B\na.cc:1: Failure\n 1 FAILED TEST"
        for outputs, expected in (([ended], True), (["E\nFAILED (failures=1)"], True),
                                  (["not ok 1\n# pass 83\n# fail 1"], True),
                                  ([ended] * 3, True), ([ended] * 4, False),
                                  ([], False), ([""], False),
                                  (["[ RUN      ] A.B\n"], False),  # crashed, or hung
                                  (["test_a (T) ... "], False), (["ok 1 - a"], False),
                                  (["AssertionError: 3 is not 4"], False),
                                  (["WARNING: ThreadSanitizer: data race\n" + ended], False),
                                  (["a.cc:3:1: runtime error: overflow\n" + ended], False),
                                  ([ended, "a.cc:3: check failed: is_open"], False)):
            cases = "".join(f'<testcase name="t" status="fail"><system-out>{output}</system-out>'
                            "</testcase>" for output in outputs)
            with tempfile.TemporaryDirectory() as folder:
                report = pathlib.Path(folder) / "tests.xml"
                report.write_text(f"<testsuite>{cases}</testsuite>",
                                  encoding="utf-8")
                run = subprocess.run([TOOL, "--may-be-chance", folder], check=False)
            self.assertEqual(run.returncode == 0, expected, outputs)

    def test_a_run_that_left_no_report_is_not_chance(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(subprocess.run([TOOL, "--may-be-chance", folder],
                                            check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main()
