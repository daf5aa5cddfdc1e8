#!/usr/bin/env python3
"""Tests of tools/coverage_report: it counts the reports of gcovr and llvm-cov, replaces the line of
a folder, and the committed page agrees with the committed figures.
"""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = str(ROOT / "tools/coverage_report")
loader = importlib.machinery.SourceFileLoader("coverage_report", SCRIPT)
coverage_report = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("coverage_report", loader))
loader.exec_module(coverage_report)


def line(count, branches=(), **more):
    return {"count": count, "branches": [{"count": each} for each in branches], **more}


REPORT = {"files": [
    {"lines": [line(3), line(0), line(0, **{"gcovr/noncode": True})]},
    {"lines": [
        line(2, (2, 0), **{"gcovr/decision": {"type": "conditional", "count_true": 2,
                                              "count_false": 0}}),
        line(1, (1, 1, 0), **{"gcovr/decision": {"type": "uncheckable"}}),
        line(1, (), **{"gcovr/decision": {"type": "switch", "count": 1}})]}]}


HEADER = """template <class T> void f(T a) {
  if constexpr (kIsOne<T>) a();
  DETENT_CHECK(a > 1 &&
               (a < 9 || a == 20));
  if (a > 2) a();
}
"""
PATH = "include/detent/internal/f.h"


def instance(root, path, *branches):
    return {"filenames": [f"{root}/{path}"],
            "branches": [[line, column, line, column + 5, times_true, times_false, 0, 0, 4]
                         for line, column, times_true, times_false in branches]}


class Templates(unittest.TestCase):
    def conditions(self, *functions):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / PATH).parent.mkdir(parents=True)
            (root / PATH).write_text(HEADER, encoding="utf-8")
            report = {"data": [{"functions": [instance(root, *each) for each in functions]}]}
            return coverage_report.conditions(report, root)

    def test_all_instances_of_a_template_share_one_condition(self):
        self.assertEqual(self.conditions((PATH, (5, 7, 3, 0)), (PATH, (5, 7, 0, 2))),
                         {(PATH, 5, 7): [3, 2]})
        self.assertEqual(self.conditions((PATH, (5, 7, 3, 0)), (PATH, (5, 7, 4, 0))),
                         {(PATH, 5, 7): [7, 0]})

    def test_conditions_of_checks_and_of_if_constexpr_are_left_out(self):
        self.assertEqual(self.conditions((PATH, (2, 17, 0, 0), (3, 16, 2, 0), (4, 17, 2, 0),
                                          (4, 26, 0, 2), (5, 7, 1, 1))),
                         {(PATH, 5, 7): [1, 1]})

    def test_files_without_templates_are_left_out(self):
        self.assertEqual(self.conditions(("src/base/slab.h", (1, 1, 1, 0))), {})


class Coverage(unittest.TestCase):
    def test_lines_branches_and_decisions_are_counted_over_all_files(self):
        self.assertEqual(coverage_report.counted(REPORT),
                         {"lines": [4, 5], "branches": [3, 5], "decisions": [2, 3]})

    def test_a_new_measurement_of_a_folder_replaces_its_line(self):
        figures = [{"folder": "store"}, {"folder": "engine", "lines": [1, 2]}]
        figures = coverage_report.add(figures, "engine", REPORT)
        self.assertEqual([each["folder"] for each in figures], ["engine", "store"])
        self.assertEqual(figures[0]["lines"], [4, 5])
        figures = [coverage_report.add([], "engine", REPORT)[0] | {"date": "d", "commit": "c"}]
        self.assertIn("| engine | 80.0 % of 5 | 60.0 % of 5 | 66.7 % of 3 "
                      "| `./dev coverage engine` | d | `c` |", coverage_report.page(figures))

    def test_a_missing_figure_is_a_dash(self):
        figures = [{"folder": "wheel", "lines": [9, 10], "branches": [1, 2], "date": "d",
                    "commit": "c"}]
        self.assertIn("| wheel | 90.0 % of 10 | 50.0 % of 2 | – | `./dev coverage wheel`",
                      coverage_report.page(figures))

    def test_the_page_names_the_folders_without_figures(self):
        every = [{"folder": folder, "lines": [1, 1], "branches": [1, 1], "decisions": [1, 1],
                  "commit": "c", "date": "d"} for folder in coverage_report.FOLDERS]
        self.assertIn("yet: calendar, wheel.\n", coverage_report.page(
            [each for each in every if each["folder"] not in ("calendar", "wheel")]))
        self.assertNotIn("Not measured", coverage_report.page(every))

    def test_its_folders_are_the_default_folders_of_dev_coverage(self):
        dev = (coverage_report.ROOT / "dev").read_text("utf-8")
        told = next(line for line in dev.splitlines() if "set -- wheel" in line)
        self.assertEqual(sorted(told.split("set -- ")[1].split()), list(coverage_report.FOLDERS))

    def test_the_committed_page_agrees_with_the_figures(self):
        self.assertEqual(coverage_report.PAGE.read_text("utf-8"),
                         coverage_report.page(coverage_report.read_figures()))


if __name__ == "__main__":
    unittest.main()
