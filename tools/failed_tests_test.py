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
    return subprocess.run([ROOT / "tools" / "failed_tests", *trees], check=True, text=True,
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


if __name__ == "__main__":
    unittest.main()
