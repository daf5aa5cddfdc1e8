#!/usr/bin/env python3
"""Tests of tools/soak and tools/reliability_report.

The committed page must agree with the ledger. Every goal must have rows and tests, and every known
mistake of published designs must have a test. Most tests use an invented ledger.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from soak_goals import GOALS, TITLES, Goal, ScriptGoal, done  # noqa: E402


def load(name):
    """A script without .py as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


report = load("reliability_report")
soak = load("soak")
TESTS = [path.read_text(encoding="utf-8") for folder in ("src", "tests")
         for path in (ROOT / folder).rglob("*.*") if path.suffix in (".cc", ".h")]


def run_of(goal, size, result="passed", seed=1):
    return {"goal": goal.name, "size": size, "seed": seed, "result": result,
            "commit": "0123456789ab", "date": "2026-11-22"}


class Page(unittest.TestCase):
    def test_the_committed_page_agrees_with_the_ledger(self):
        self.assertEqual(report.main(["--check"]), 0)

    def test_every_goal_has_a_row_even_without_runs(self):
        text = report.page([], {})
        for number in range(1, 19):
            self.assertIn(f"## G{number}: ", text)
        self.assertEqual(text.count("**Not run.**"), len(GOALS))

    def test_passed_runs_add_up_and_a_failed_run_stays_on_the_page(self):
        runs = [run_of(GOALS[0], 10**8), run_of(GOALS[0], 10**8, seed=2),
                run_of(GOALS[0], 10**8, "failed", 3)]
        row = report.row_of(GOALS[0], runs, {})
        self.assertEqual(row[2], "2 × 10⁸")
        self.assertEqual(row[3], "passed; **1 failed**; 20 % of the target")
        self.assertEqual(len(report.failures_of("G1", runs)), 1)
        self.assertEqual(report.failures_of("G2", runs), [])
        self.assertIn("size 10⁸, seed 3.", report.page(runs, {}))

    def test_a_run_of_an_unknown_goal_is_an_error(self):
        with self.assertRaises(ValueError):
            report.page([run_of(GOALS[0], 1) | {"goal": "G99"}], {})

    def test_a_test_without_runs_has_its_reason(self):
        row = report.row_of(GOALS[0], [], {GOALS[0].name: "the machine is small"})
        self.assertEqual(row[3], "**Not run.** the machine is small")

    def test_small_runs_do_not_add_up_if_the_target_is_for_one_run(self):
        goal = next(goal for goal in GOALS if goal.name.startswith("G14 seconds"))
        runs = [run_of(goal, 1800, seed=seed) for seed in range(1, 17)]
        row = report.row_of(goal, runs, {})
        self.assertIn(", in one run (", row[0])
        self.assertEqual(row[2:4], ["1 800", "passed; 6.25 % of the target"])
        self.assertEqual(soak.next_goal(runs, [goal]), goal)
        runs.append(run_of(goal, 8 * 3600))
        self.assertIsNone(soak.next_goal(runs, [goal]))
        self.assertEqual(done(goal, [run_of(goal, 8 * 3600, "failed")]), 0)

    def test_unused_finds_a_reason_that_no_row_needs(self):
        goal = GOALS[0]
        self.assertEqual(report.unused([], {goal.name: "the machine is small"}), [])
        self.assertEqual(report.unused([run_of(goal, 1)], {goal.name: "the machine is small"}),
                         [goal.name])
        self.assertEqual(report.unused([], {"G99": "there is none"}), ["G99"])

    def test_a_reason_that_no_row_needs_fails_the_check(self):
        kept = report.unused
        self.addCleanup(setattr, report, "unused", kept)
        report.unused = lambda runs, reasons: ["G99"]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(report.main(["--check"]), 1)
        self.assertIn("no row needs the reason 'G99'", said.getvalue())

    def test_a_test_with_some_runs_needs_no_reason(self):
        row = report.row_of(GOALS[0], [run_of(GOALS[0], 10**8)], {GOALS[0].name: "none was run"})
        self.assertEqual(row[3], "passed; 10 % of the target")


class Goals(unittest.TestCase):
    def test_every_goal_has_a_title_and_a_test(self):
        self.assertEqual(list(TITLES), [f"G{number}" for number in range(1, 19)])
        self.assertEqual({goal.name.split()[0] for goal in GOALS}, set(TITLES))

    def test_every_filter_names_existing_tests_that_read_their_size(self):
        for goal in GOALS:
            if not isinstance(goal, Goal):
                continue
            for one in goal.tests.split(":"):
                suite, _, name = one.replace("/*", "").partition(".")
                name = r"\w+" if name in ("*", "") else name
                pattern = re.compile(rf"TEST\w*\({suite}, {name}\)")
                self.assertTrue(any(pattern.search(text) for text in TESTS), goal.name)
            self.assertTrue(any(f'getenv("{goal.size_variable}")' in text for text in TESTS),
                            goal.size_variable)

    def test_a_goal_of_one_run_is_run_at_the_size_of_a_release(self):
        for goal in GOALS:
            if goal.is_of_one_run:
                self.assertEqual(goal.run_size, goal.release_size, goal.name)

    def test_the_remark_of_the_endurance_test_agrees_with_its_limits(self):
        text = (ROOT / "tests/durability/endurance_test.cc").read_text(encoding="utf-8")
        an_hour, noise = (float(re.search(rf"{name} = (\d+);", text)[1])
                          for name in ("kMostMbAnHour", "kNoiseMb"))
        for seconds, told in ((1800, 130), (8 * 3600, 9)):
            hours = 0.75 * seconds / 3600 / 2  # from the middle of one half to that of the other
            self.assertAlmostEqual(an_hour + noise / hours, told, delta=2)
            goal = next(goal for goal in GOALS if goal.name.startswith("G14 seconds"))
            self.assertIn(str(told), goal.remark)

    def test_every_script_exists_and_prints_the_expected_line(self):
        for goal in GOALS:
            if isinstance(goal, ScriptGoal):
                text = (ROOT / goal.script.split()[0]).read_text(encoding="utf-8")
                word = goal.passed.lstrip("^").split()[0].rstrip(":")
                self.assertIn(word, text, goal.name)

    def test_needs_prints_the_targets_to_build(self):
        told = subprocess.run([ROOT / "tools/soak", "GOALS=G7,G11", "--needs"], text=True,
                              capture_output=True, check=True).stdout
        self.assertEqual(told, "release detent_durability_test\n")


class Seeds(unittest.TestCase):
    def test_a_failed_seed_runs_again_and_a_passed_seed_does_not(self):
        runs = [run_of(GOALS[0], 1), run_of(GOALS[0], 1, "failed", 2)]
        self.assertEqual(soak.next_seed(GOALS[0], runs), 2)

    def test_the_goal_with_the_smallest_done_share_runs_next(self):
        two = GOALS[:2]
        runs = [run_of(two[0], two[0].release_size // 2)]
        self.assertEqual(soak.next_goal(runs, two), two[1])
        runs.append(run_of(two[1], two[1].release_size))
        self.assertEqual(soak.next_goal(runs, two), two[0])
        runs.append(run_of(two[0], two[0].release_size))
        self.assertIsNone(soak.next_goal(runs, two))

    def test_a_run_without_tests_or_with_a_skipped_test_has_not_passed(self):
        says = GOALS[0].says_passed
        self.assertTrue(says("[  PASSED  ] 12 tests.\n", 1))
        self.assertFalse(says("[  PASSED  ] 0 tests.\n", 1))
        self.assertFalse(says("[  PASSED  ] 11 tests.\n[  SKIPPED ] 1 test\n", 1))
        self.assertFalse(says("[  FAILED  ] 1 test\n", 1))

    def test_settings_can_be_arguments(self):
        settings, words = soak.read_settings(["GOALS=G6,G7", "30", "HOURS=0.5"])
        self.assertEqual((settings["GOALS"], settings["HOURS"], words), ("G6,G7", "0.5", ["30"]))
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            soak.read_settings(["GOALZ=G6"])


class KnownWrongAnswers(unittest.TestCase):
    def test_each_has_a_test(self):
        cases = "".join((ROOT / f"tests/regress/{folder}/cases.md").read_text(encoding="utf-8")
                        for folder in ("classic", "durable"))
        names = set(re.findall(r"`([A-Z]{2}_[A-Z0-9_]+)`", cases))
        self.assertGreaterEqual(len(names), 54)
        for name in sorted(names):
            pattern = re.compile(rf"TEST\w*\(\w+,\s+{name}(_\w+)?\)")
            self.assertTrue(any(pattern.search(text) for text in TESTS), name)


if __name__ == "__main__":
    unittest.main()
