#!/usr/bin/env python3
"""Tests of tools/mutate: which faults it puts into a line of code and which lines it leaves alone,
and that the committed page is the one that the committed results make.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent


def load(name):
    """A script without .py as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # its dataclasses look it up
    loader.exec_module(module)
    return module


mutate = load("mutate")


def changes(*lines, name="code.cc"):
    """What becomes of the last of these lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return {mutant.after.strip() for mutant in mutate.mutants_of(str(path))
                if mutant.line == len(lines) - 1}


class Faults(unittest.TestCase):
    def test_a_condition_is_turned_round_and_its_parts_are_exchanged(self):
        self.assertEqual(changes("if (a < b && c) return;"),
                         {"if (!(a < b && c)) return;", "if (a <= b && c) return;",
                          "if (a < b || c) return;"})

    def test_a_number_is_off_by_one_either_way_but_not_below_nothing(self):
        self.assertEqual(changes("return 7;"), {"return 8;", "return 6;"})
        self.assertEqual(changes("return 0;"), {"return 1;"})

    def test_a_statement_is_taken_out_but_no_declaration_and_no_return(self):
        self.assertIn(";", changes("{", "  lists_.push(entry);"))
        self.assertNotIn(";", changes("{", "  const int a = b;"))
        self.assertNotIn(";", changes("{", "  return f(a);"))

    def test_a_part_of_a_statement_is_not_taken_out(self):
        self.assertNotIn(";", changes("call(a,", "  push(entry);"))

    def test_text_comments_checks_and_templates_are_left_alone(self):
        for line in ('throw_away("a < b");', "// a < b", "DETENT_CHECK(a < b);",
                     "template <int kBits = 1>", "static_assert(a < b);", "#if A < B"):
            self.assertEqual(changes("f(", line), set(), line)

    def test_functions_that_check_invariants_are_not_mutated(self):
        self.assertEqual(changes("void check_invariants() const {", "  if (a < b) abort();"), set())
        self.assertIn("if (a <= b) abort();",
                      changes("void check_all() {", "}", "  if (a < b) abort();"))

    def test_states_are_exchanged_in_the_table_of_states_only(self):
        self.assertIn("{ready, ready},", changes("{scheduled, ready},", name="lifecycle.cc"))
        self.assertEqual(changes("{scheduled, ready},"), set())

    def test_every_area_has_faults_to_draw_from_and_a_seed_draws_the_same(self):
        for area in mutate.AREAS:
            drawn = mutate.drawn(area, 1)
            self.assertGreater(len(drawn), area.count)
            self.assertEqual(drawn, mutate.drawn(area, 1))
            self.assertNotEqual(drawn, mutate.drawn(area, 2))


class Runs(unittest.TestCase):
    """Runs of mutate as a program. The areas only count the tried mutants."""

    def run_with(self, tried, *words, killed=9):
        """Its exit status and its output if this number of mutants is tried in each area."""
        with tempfile.TemporaryDirectory() as folder:
            replaced = {"REPORT": pathlib.Path(folder) / "page.md",
                        "RESULTS": pathlib.Path(folder) / "mutants.jsonl",
                        "marked": lambda results: results,
                        "run_area": lambda area, *_: tried.get(area.name, 0),
                        "survivors": lambda area, _: ["one"] * tried.get(area.name, 0),
                        "read_results": lambda: [
                            {"area": "wheel", "file": "a.h", "before": str(i), "after": "",
                             "by": "", "result": "killed" if i < killed else "survived"}
                            for i in range(10)]}
            before = {name: getattr(mutate, name) for name in replaced}
            vars(mutate).update(replaced)
            said = io.StringIO()
            try:
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                    status = mutate.main(list(words))
            except SystemExit as end:
                status = end.code
            finally:
                vars(mutate).update(before)
        return status, said.getvalue()

    EVERY = {area.name: 5 for area in mutate.AREAS}
    GOOD = "mutate: at least 90 %"

    def test_nine_killed_of_ten_pass_and_eight_fail(self):
        status, said = self.run_with(self.EVERY)
        self.assertEqual(status, 0)
        self.assertIn(self.GOOD, said)
        status, said = self.run_with(self.EVERY, killed=8)
        self.assertEqual(status, 1)
        self.assertNotIn(self.GOOD, said)

    def test_an_unknown_area_is_an_error(self):
        status, said = self.run_with(self.EVERY, "wheels")
        self.assertEqual(status, 2)
        self.assertIn("no area 'wheels'", said)

    def test_a_run_without_tried_mutants_fails(self):
        for tried, *words in (({},), ({"wheel": 5},), ({"wheel": 5}, "wheel", "cron"),
                              ({}, "--survivors"),
                              ({"wheel": 5}, "--survivors", "wheel", "cron")):
            status, said = self.run_with(tried, *words)
            self.assertEqual(status, 1, words)
            self.assertIn("no mutants were tried in", said)
            self.assertNotIn(self.GOOD, said)

    def test_an_area_may_have_no_survivors(self):
        self.assertEqual(self.run_with({"wheel": 5}, "--survivors")[0], 0)
        self.assertEqual(self.run_with({"wheel": 5}, "wheel")[0], 0)

    def test_report_alone_does_not_judge_the_mutants(self):
        status, said = self.run_with({}, "--report")
        self.assertEqual(status, 0)
        self.assertNotIn(self.GOOD, said)


def result(before, outcome="killed", **more):
    return {"area": "wheel", "file": "include/detent/timer_wheel.h", "before": before, "after": ";",
            "by": "", "result": outcome} | more


class Lines(unittest.TestCase):
    """Results of lines that have changed."""

    def mark(self, text, *results):
        """Which of these results are "gone", if the file has this text; None: there is no file."""
        with tempfile.TemporaryDirectory() as folder:
            if text is not None:
                (pathlib.Path(folder) / "a.h").write_text(text, encoding="utf-8")
            before, mutate.ROOT = mutate.ROOT, pathlib.Path(folder)
            try:
                marked = mutate.marked([each | {"file": "a.h"} for each in results])
            finally:
                mutate.ROOT = before
        return ["gone" in each for each in marked]

    def test_a_line_that_its_file_does_not_have_is_gone(self):
        here, other = result("a = 1;"), result("b = 2;")
        self.assertEqual(self.mark("  a = 1;\n", here, other), [False, True])
        self.assertEqual(self.mark(None, here), [True])

    def test_equal_lines_are_counted(self):
        first, second = result("a = 1;"), result("a = 1;", nth=1)
        self.assertEqual(self.mark("a = 1;\n", first, second), [False, True])
        self.assertEqual(self.mark("a = 1;\n  a = 1;\n", first, second), [False, False])

    def test_a_restored_line_is_not_gone(self):
        self.assertEqual(self.mark("a = 1;\n", result("a = 1;", gone=True)), [False])

    def test_mutants_of_changed_lines_have_their_own_column(self):
        page = mutate.report([result("a"), result("b", "survived", reason="Open"),
                              result("c", gone=True),
                              result("d", "survived", reason="Same", gone=True)])
        row = next(line for line in page.splitlines() if line.startswith("| wheel"))
        self.assertTrue(row.endswith("| 2 | 1 | 0 | 1 | 50.0 % | 2 |"), row)
        self.assertIn("`timer_wheel.h` 2,", row)
        self.assertIn("`occupancy.h` 0,", row)
        self.assertIn("| timer_wheel.h | `d` | `;` | Same ² |", page)
        self.assertIn("| timer_wheel.h | `b` | `;` | Open |", page)

    def test_an_area_without_mutants_has_no_share(self):
        row = next(line for line in mutate.report([result("a", gone=True)]).splitlines()
                   if line.startswith("| wheel"))
        self.assertTrue(row.endswith("| 0 | 0 | 0 | 0 | – | 1 |"), row)


class Results(unittest.TestCase):
    def test_the_committed_page_agrees_with_the_results(self):
        self.assertEqual(mutate.REPORT.read_text(encoding="utf-8"),
                         mutate.report(mutate.read_results()))

    def test_every_survivor_has_a_reason(self):
        for line in mutate.RESULTS.read_text(encoding="utf-8").splitlines():
            result = json.loads(line)
            if result["result"] == "survived":
                self.assertTrue(result.get("reason"), result)


if __name__ == "__main__":
    unittest.main()
