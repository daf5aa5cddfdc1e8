#!/usr/bin/env python3
"""Tests of tools/bench_report and bench/count_instructions: the parts that decide something.

Figures are made up, so what the report says of them is known beforehand.
"""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from bench_pages.charts import line_chart  # noqa: E402
from bench_pages.figures import Figures, short_count, short_value, winners  # noqa: E402


def load(path):
    """A script without .py as a module."""
    name = path.name
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


bench_report = load(ROOT / "tools" / "bench_report")
count_instructions = load(ROOT / "bench" / "count_instructions")

SWEEP = """timers,queue,measure,repetition,value
100,HeapQueue,schedule,1,5
100,HeapQueue,schedule,2,900
100,HeapQueue,schedule,3,4
100,TimerWheel,schedule,1,10
10000,HeapQueue,schedule,1,20
10000,TimerWheel,schedule,1,10
1000000,HeapQueue,schedule,1,10.5
1000000,TimerWheel,schedule,1,10
1000000,HeapQueue,bytes,1,40
1000000,TimerWheel,bytes,1,32
1000000,null,bytes,1,0
"""


class BenchReport(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.csv = self.folder / "timers_sweep.csv"
        self.csv.write_text(SWEEP)

    def test_figures_are_medians_of_repetitions(self):
        self.assertEqual(Figures(self.csv).get(100, "HeapQueue", "schedule"), 5)
        self.assertIsNone(Figures(self.csv).get(100, "HeapQueue", "fire"))

    def test_the_cheaper_changes_where_the_lines_cross_on_logarithmic_axes(self):
        won = winners(Figures(self.csv), ("HeapQueue", "TimerWheel"), "schedule")
        self.assertEqual([each.queue for each in won], ["HeapQueue", "TimerWheel", None])
        self.assertEqual(won[1].from_count, 1_000)  # half as dear, then twice: in the middle

    def test_crossover_says_who_is_cheaper_from_where_on(self):
        table = bench_report.crossover_table(Figures(self.csv))
        self.assertEqual(table.rows, [["HeapQueue or TimerWheel",
                                       "HeapQueue, from 1 k TimerWheel, from 100 k about equal",
                                       "-", "-"]])

    def test_a_page_gets_its_sections_and_charts_and_keeps_the_rest(self):
        page = self.folder / "page.md"
        page.write_text("before\n<!-- begin:memory-table -->\nold\n"
                        "<!-- end:memory-table -->\nafter\n")
        bench_report.update_page(page, self.folder)
        once = page.read_text()
        self.assertTrue(once.startswith("before\n<!-- begin:memory-table -->\n\n| bytes a timer |"))
        self.assertTrue(once.endswith("<!-- end:memory-table -->\nafter\n"))
        self.assertNotIn("old", once)
        self.assertIn("| TimerWheel | - | - | 32.0 |", once)
        bench_report.update_page(page, self.folder)
        self.assertEqual(page.read_text(), once)
        self.assertIn("HeapQueue", (self.folder / "cost-schedule.svg").read_text())

    def test_a_marker_that_nothing_fills_is_an_error(self):
        for text in ("no marker", "<!-- begin:other -->\n<!-- end:other -->",
                     "<!-- begin:crossover -->\n"):
            page = self.folder / "page.md"
            page.write_text(text)
            with self.assertRaises(SystemExit):
                bench_report.update_page(page, self.folder)

    def test_labels_of_a_chart_do_not_overlap(self):
        chart = line_chart("t", {str(i): [(1, 10), (100, 10)] for i in range(9)}, ("x", "y"))
        labels = [line for line in chart.splitlines() if 'text-anchor="start"' in line]
        places = sorted(float(line.split('y="')[1].split('"')[0]) for line in labels[1:])
        self.assertEqual(len(places), 9)
        self.assertTrue(all(b - a >= 13.9 for a, b in zip(places, places[1:])))

    def test_figures_are_short(self):
        self.assertEqual(short_count(10_000), "10 k")
        self.assertEqual(short_value(12_345.6), "12 300")
        self.assertEqual(short_value(None), "-")


class CountInstructions(unittest.TestCase):

    def test_five_percent_more_is_allowed_and_more_is_not(self):
        table = {"TimerWheel": {"cancel": 100.0, "fire": 10.0}}
        same = {"TimerWheel": {"cancel": 105.0, "fire": 11.0}}
        more = {"TimerWheel": {"cancel": 105.1, "fire": 10.0}}
        self.assertEqual(list(count_instructions.regressions(same, table)), [])
        self.assertEqual(len(list(count_instructions.regressions(more, table))), 1)

    def test_an_operation_that_is_in_one_of_the_two_only_is_told(self):
        table = {"TimerWheel": {"cancel": 100.0}}
        self.assertEqual(len(list(count_instructions.regressions({}, table))), 1)

    def test_the_driver_is_taken_away(self):
        counts = {"null": {"cancel": 2.0}, "TimerWheel": {"cancel": 12.0}}
        self.assertEqual(count_instructions.without_driver(counts),
                         {"TimerWheel": {"cancel": 10.0}})


if __name__ == "__main__":
    unittest.main()
