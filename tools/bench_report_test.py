#!/usr/bin/env python3
"""Tests of tools/bench_report, bench_compare and bench_run and of bench/wheel/count_instructions:
what decides something in them; and that docs/benchmarks.md is what they make.

Figures are made up, so what the report says of them is known beforehand.
"""

import dataclasses
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from bench_pages import benchmarks_page, raw, targets  # noqa: E402
from bench_pages.charts import line_chart  # noqa: E402
from bench_pages.figures import (Figures, figure, short_count, short_value, size,  # noqa: E402
                                 winners)


def load(path):
    """A script without .py as a module."""
    name = path.name
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


bench_report = load(ROOT / "tools" / "bench_report")
bench_compare = load(ROOT / "tools" / "bench_compare")
bench_run = load(ROOT / "tools" / "bench_run")
count_instructions = load(ROOT / "bench" / "wheel" / "count_instructions")

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
                        "<!-- end:memory-table -->\nafter\n"
                        "![cost](cost-schedule.svg)\n")
        bench_report.update_page(page, self.folder)
        once = page.read_text()
        self.assertTrue(once.startswith(
            "before\n<!-- begin:memory-table -->\n\n| bytes per timer |"))
        self.assertIn("<!-- end:memory-table -->\nafter\n", once)
        self.assertNotIn("old", once)
        self.assertIn("| TimerWheel | - | - | 32.0 |", once)
        bench_report.update_page(page, self.folder)
        self.assertEqual(page.read_text(), once)
        self.assertIn("HeapQueue", (self.folder / "cost-schedule.svg").read_text())

    def test_a_page_that_shows_the_charts_of_another_folder_gets_none(self):
        page = self.folder / "zh/page.md"
        page.parent.mkdir()
        page.write_text("<!-- begin:crossover -->\n<!-- end:crossover -->\n"
                        "![cost](../cost-schedule.svg)\n")
        bench_report.update_page(page, self.folder)
        self.assertEqual([page], list(page.parent.iterdir()))

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
        self.assertEqual([figure(each) for each in (0.04661, 2.5, 97.13, 0, 691_234)],
                         ["0.0466", "2.5", "97.1", "0", "691 000"])
        self.assertEqual([size(each) for each in (1, 1_000, 16_384, 65_535, 10_000_000)],
                         ["1", "1 k", "16 Ki", "65.5 k", "10 M"])


TARGETS = """
[calibration]
1000 = 50
[defaults.core]
program = "timers_bench"
unit = "ns"
[defaults.server]
program = "server_bench"
unit = "/s"
[[target]]
id = "cancel"
area = "core"
what = "Wheel, cancel"
counts = [100, 1000]
most = [10, 10]
scales = true
measure = "cancel"
ours = "Wheel"
rivals = ["libev", "libuv"]
limit = {program = "limit_bench", who = "64 B / 4 KiB", measure = "independent", text = "a line"}
why = "dear"
[[target]]
id = "faster"
area = "core"
what = "Wheel, mixed"
ratio = 3
measure = "mixed"
ours = "Wheel"
rivals = ["libuv"]
[[target]]
id = "disk"
area = "server"
what = "disk"
most = 150
unit = "B"
steady = true
measure = "disk"
ours = "detent"
[[target]]
id = "accept"
area = "server"
what = "accept"
least = 300_000
measure = "accept"
ours = "detent"
rivals = ["Redis", "NATS"]
limit = "1 M/s"
[why]
dear = "A line more."
"""
# What a run left behind: benchmark → rows of Figures.
MEASURED = {
    "timers_bench": [(100, "Wheel", "cancel", 12), (100, "libev", "cancel", 30),
                     (100, "libuv", "cancel", 24), (100, "Wheel", "mixed", 10),
                     (100, "Wheel", "mixed", 12), (100, "Wheel", "mixed", 11),
                     (100, "libuv", "mixed", 34)],
    "timers_large": [(1_000, "Wheel", "cancel", 12)],
    "limit_bench": [(100, "64 B / 4 KiB", "independent", 2),
                    (1_000, "64 B / 4 KiB", "dependent", 75)],
    "server_bench": [(7, "detent", "accept", 290_000), (7, "Redis", "accept", 145_000),
                     (7, "NATS", "accept", 100_000), (7, "detent", "disk", 140)]}


class Targets(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "targets.toml"
        path.write_text(TARGETS)
        self.targets, self.why = targets.load_targets(path)
        self.kept = {"rows": {}, "runs": {}, "growth": {}}

    def measure(self, foreign=0.02, programs=tuple(MEASURED), commit="abc", status=0,
                measured=MEASURED):
        """Keeps what those programs measured while others used that share of the machine."""
        figures = {name: Figures.of(measured[name]) for name in programs}
        runs = {name: {"program": name, "command": f"{name} --quick", "commit": commit,
                       "date": "2026-01-02", "machine": "2 × X", "foreign": foreign,
                       "status": status}
                for name in programs}
        return targets.keep(self.kept, self.targets, figures, runs)

    def table(self, area):
        return {row[0].split("`")[1]: row[1:] for row in
                targets.area_table(area, self.targets, self.kept).rows}

    def test_each_count_of_a_target_is_a_target(self):
        self.assertEqual([each.id for each in self.targets],
                         ["cancel-100", "cancel-1k", "faster", "disk", "accept"])

    def test_a_row_has_aim_figure_noise_best_peer_ratio_limit_verdict_and_run(self):
        self.measure()
        run = str(list(self.kept["runs"]).index("2026-01-02 abc timers_bench --quick") + 1)
        self.assertEqual(self.table("core")["cancel-100"],
                         ["≤ 10 ns", "12 ns", "–", "24 libuv", "2 ×", "2 ns: a line",
                          "**missed**", run])
        self.assertEqual(self.table("core")["faster"][:5],
                         ["≥ 3 × faster", "11 ns", "18 %", "34 libuv", "3.1 ×"])

    def test_an_aim_of_another_machine_is_scaled_by_what_memory_takes_here(self):
        self.measure()
        self.assertEqual(self.table("core")["cancel-1k"][0], "≤ 10 ns (here 15)")
        self.assertEqual(self.table("core")["cancel-1k"][6], "met")

    def test_an_aim_of_another_machine_is_scaled_by_another_figure_of_the_run(self):
        here = {"who": "Redis", "measure": "accept", "value": 290_000}
        self.targets = [dataclasses.replace(each, set_where=here) for each in self.targets]
        self.measure()
        self.assertEqual(self.table("server")["accept"][0], "≥ 300 000 /s (here 150 000)")
        self.assertEqual(self.table("server")["accept"][6], "met")

    def test_more_is_better_where_the_aim_is_a_least(self):
        self.measure()
        row = self.table("server")["accept"]
        self.assertEqual(row[3:7], ["145 000 Redis", "2 ×", "1 M/s", "**missed**"])

    def test_a_ratio_aim_is_judged_by_the_peer_of_the_same_run(self):
        self.measure()
        self.assertEqual(self.table("core")["faster"][6], "met")
        self.kept["rows"]["faster"]["best"] = 32.9
        self.assertEqual(self.table("core")["faster"][6], "**missed**")

    def test_what_nobody_measured_is_called_not_measured(self):
        self.assertEqual(set(row[6] for row in self.table("core").values()), {"not measured"})
        self.assertEqual(targets.summary(self.targets, self.kept).rows[-1],
                         ["all", "0", "0", "5"])

    def test_a_busy_machine_replaces_nothing(self):
        self.measure()
        before = dict(self.kept["rows"])
        said = self.measure(foreign=0.4, commit="def")
        self.assertEqual(self.kept["rows"], before)
        self.assertEqual(len(said), 4)
        self.assertFalse([name for name in self.kept["runs"] if " def " in name])

    def test_a_busy_machine_tells_bytes_that_nobody_has_measured(self):
        self.measure(foreign=0.4)
        self.assertEqual(set(self.kept["rows"]), {"disk"})

    def test_a_later_run_replaces_its_own_rows_only(self):
        self.measure()
        self.measure(programs=("server_bench",), commit="def")
        names = {program: f"2026-01-02 {commit} {program} --quick"
                 for program, commit in (("server_bench", "def"), ("timers_bench", "abc"))}
        self.assertEqual(self.kept["rows"]["accept"]["run"], names["server_bench"])
        self.assertEqual(self.kept["rows"]["faster"]["run"], names["timers_bench"])
        self.assertNotIn("2026-01-02 abc server_bench --quick", self.kept["runs"])

    def test_a_run_that_failed_is_not_kept(self):
        said = self.measure(status=1)
        self.assertEqual(self.kept, {"rows": {}, "runs": {}, "growth": {}})
        self.assertIn("timers_bench: it ended with status 1; its results are not kept", said)

    def test_a_run_of_changes_that_are_not_committed_is_not_kept(self):
        for commit in ("abc-dirty", "unknown"):
            said = self.measure(commit=commit)
            self.assertEqual(self.kept["rows"], {})
            self.assertEqual(len(said), len(MEASURED))

    def test_an_older_run_of_changes_that_are_not_committed_is_marked(self):
        self.measure(programs=("timers_bench",))
        for run in self.kept["runs"].values():
            run["commit"] += "-dirty"
        self.assertEqual(targets.runs_table(self.kept).rows[0][1],
                         "abc **and uncommitted changes**")

    def grow(self, *sizes, **how):
        """Keeps lines of growth of such sizes, each figure its size."""
        measures = ("put us", "put /s", "ready s", "disk B")
        rows = [(at, "waiting", measure, at) for measure in measures for at in sizes]
        return self.measure(programs=("growth_bench",), measured={"growth_bench": rows}, **how)

    def grown(self):
        lines = self.kept["growth"]["growth_bench"]["lines"]["waiting"]
        return {measure: [at for at, _ in line] for measure, line in lines.items()}

    def test_a_busy_machine_tells_no_growth_by_the_wall(self):
        self.grow(10, 100, foreign=0.4)
        self.assertEqual(self.grown(), {"put us": [10, 100], "disk B": [10, 100]})
        self.grow(10, 100)
        self.assertEqual(set(self.grown()), {"put us", "put /s", "ready s", "disk B"})

    def test_lines_of_growth_are_replaced_only_when_no_size_gets_lost(self):
        self.grow(10, 100)
        said = self.grow(10, 50, commit="def")
        self.assertEqual(self.grown()["put us"], [10, 100])
        self.assertIn("waiting put us 100", said[0])
        self.assertEqual([run["commit"] for run in self.kept["runs"].values()], ["abc"])
        self.assertEqual(self.grow(10, 100, 1_000, commit="def"), [])
        self.assertEqual(self.grown()["put us"], [10, 100, 1_000])

    def test_a_miss_is_explained_or_said_not_to_be(self):
        self.measure()
        text = "\n".join(block.markdown()
                         for block in targets.misses(self.targets, self.why, self.kept))
        self.assertIn("**`cancel-100`.** A line more.", text)
        self.assertIn(f"**`accept`.** {targets.UNEXPLAINED}", text)
        self.assertNotIn("cancel-1k", text)

    def test_two_targets_of_one_name_are_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "targets.toml"
            path.write_text(TARGETS.replace('id = "accept"', 'id = "disk"'))
            with self.assertRaises(ValueError):
                targets.load_targets(path)

    def test_what_idle_cost_says_becomes_figures(self):
        figures = Figures.of(raw.idle_rows(
            "asked    counts    p50 0.100 ms  p99 0.2 ms  max 0.3 ms  (no task)\n"
            "loaded   1000000 tasks, 100 of them with a key, in 9 s\n"
            "idle     0.0123 % of a core, 0.50 wake-ups/s, over 20 s; at rest 5 s after loading; "
            "120 MB\n           engine  0.01 %  0.5/s\n"
            "asked    counts    p50 0.200 ms  p99 0.3 ms  max 0.4 ms  (1000000 tasks)\n"
            "by key   100 moved: 150 thousand/s\n"))
        self.assertEqual([figures.get(1_000_000, "detent", measure) for measure in
                          ("CPU %", "wake-ups /s", "counts ms", "moved /s")],
                         [0.0123, 0.5, 0.2, 150_000])
        self.assertEqual(raw.idle_rows("it failed"), [])


class BenchmarksPage(unittest.TestCase):

    def setUp(self):
        self.targets, self.why = targets.load_targets(ROOT / "bench" / "targets.toml")
        self.kept = targets.load_kept(ROOT / "bench" / "results.json")
        self.page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")

    def test_it_has_a_row_for_every_target(self):
        for target in self.targets:
            self.assertEqual(self.page.count(f"<sub>`{target.id}`</sub>"), 1, target.id)

    def test_it_is_what_the_kept_results_make(self):
        sections = benchmarks_page.sections(self.targets, self.why, self.kept)
        self.assertEqual(benchmarks_page.fill(self.page, sections), self.page,
                         "tools/bench_report --write-page")
        for name, chart in benchmarks_page.charts(self.kept).items():
            self.assertEqual((ROOT / "docs" / "images" / f"{name}.svg").read_text(), chart, name)

    def test_busy_runs_tell_no_growth_by_the_wall(self):
        for growth in self.kept["growth"].values():
            if self.kept["runs"][growth["run"]]["foreign"] > targets.BUSY:
                for who, lines in growth["lines"].items():
                    self.assertFalse(list(filter(targets.is_by_the_wall, lines)), who)

    def test_a_look_in_little_is_not_kept(self):
        text = (ROOT / "dev").read_text("utf-8")
        self.assertRegex(text, r"--quick\) keep= && bench_quickly ;;")
        self.assertIn("tools/bench_report $keep $pages", text)

    def test_every_miss_on_it_is_explained(self):
        self.assertNotIn(targets.UNEXPLAINED, self.page)

    def test_every_explanation_belongs_to_a_target(self):
        self.assertEqual(set(self.why) - {target.why for target in self.targets}, set())

    def test_kept_results_name_targets_and_runs_that_are_there(self):
        self.assertEqual(set(self.kept["rows"]) - {target.id for target in self.targets}, set())
        for row in [*self.kept["rows"].values(), *self.kept["growth"].values()]:
            self.assertIn(row["run"], self.kept["runs"])


class BenchCompare(unittest.TestCase):

    KEY = (100, "TimerWheel", "cancel")

    def compared(self, *rounds, measure="cancel"):
        """Rounds of A, B, A; what is told."""
        key = (100, "TimerWheel", measure)
        return bench_compare.changes(bench_compare.summarize(
            [bench_compare.round_of(*(Figures.of([(*key, value)]) for value in values), None)
             for values in rounds]))

    def test_six_percent_slower_is_told_and_four_is_not(self):
        self.assertEqual(self.compared((100, 104, 100), (100, 104, 100)), [])
        [(key, ratio, is_worse)] = self.compared((100, 106, 100), (100, 106, 100))
        self.assertEqual((key, round(ratio, 3), is_worse), (self.KEY, 1.06, True))

    def test_a_difference_within_the_noise_is_not_told(self):
        self.assertEqual(self.compared((100, 110, 108), (100, 112, 94), (100, 111, 107)), [])

    def test_a_higher_rate_is_better(self):
        [(_, _, is_worse)] = self.compared((100, 120, 100), measure="accept 32")
        self.assertFalse(is_worse)

    def test_derived_figures_and_peers_are_left_out(self):
        figures = Figures.of([(*self.KEY, 1), (100, "Go", "cancel", 1),
                              (100, "TimerWheel", "cancel x", 1)])
        told = bench_compare.round_of(figures, figures, figures, {"TimerWheel"})
        self.assertEqual(set(told), {self.KEY})


class BenchRun(unittest.TestCase):

    def setUp(self):
        self.share = bench_run.ForeignShare()
        self.share.began -= 1_000  # s
        self.share.busy -= 1e6  # as if so many seconds had been worked since

    def test_own_work_is_not_foreign(self):
        self.share.own -= 1e6
        self.assertLess(self.share.so_far(), 0.01)

    def test_what_others_used_is(self):
        self.assertEqual(self.share.so_far(), 1)


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
