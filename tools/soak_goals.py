"""The goals of a release, G1 to G18, and the tests of each goal.

tools/soak runs the tests, and tools/reliability_report writes a row for each. A test is a program
that reads its size from the environment or from its arguments. The same program with a smaller size
is part of `./dev test`. Each has a planted fault that it must find.
"""

import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Goal:
    """Tests that read their size from the environment, and the size that a release requires."""

    name: str  # the number of the goal, and the things that the size counts
    program: str  # build/TREE/FOLDER/TARGET
    tests: str  # a filter; a typed test runs once for each queue
    size_variable: str
    run_size: int
    release_size: int  # the target for the sum of all runs
    is_of_one_run: bool = False  # only one run of release_size reaches the goal
    remark: str = ""  # for the row: the limits of the test

    def targets(self):
        """The targets to build, as (build tree, target)."""
        _, tree, *_, target = self.program.split("/")
        return [(tree, target)]

    def settings(self, seed, size):
        return {self.size_variable: str(size), "DETENT_SEED": str(seed)}

    def command(self, _seed, _size):
        return [str(ROOT / self.program), f"--gtest_filter={self.tests}"]

    def says_passed(self, output, _size):
        """A run passes if at least one test ran, all tests passed, and no test was skipped."""
        return re.search(r"^\[  PASSED  \] [1-9]\d* tests?\.$", output,
                         re.MULTILINE) and "[  SKIPPED ]" not in output


@dataclasses.dataclass(frozen=True)
class FuzzGoal:
    """New inputs for a program of tests/fuzz. build/fuzz keeps inputs that reach new code, and the
    next run starts from them. It also keeps inputs that fail."""

    inputs: str
    run_size: int = 10**6
    release_size: int = 5 * 10**8
    is_of_one_run = False
    remark = ""

    @property
    def name(self):
        return f"G12 fuzzed inputs: {self.inputs}"

    def targets(self):
        return [("asan", f"detent_{self.inputs}_fuzz")]

    def settings(self, _seed, _size):
        return {}

    def command(self, seed, size):
        found = ROOT / "build/fuzz" / self.inputs
        found.mkdir(parents=True, exist_ok=True)
        return [str(ROOT / f"build/asan/tests/fuzz/detent_{self.inputs}_fuzz"),
                f"-seed={seed}", f"-runs={size}", "-max_len=1500", "-timeout=20",
                f"-artifact_prefix={ROOT}/build/fuzz/", str(found),
                str(ROOT / "tests/fuzz/corpus" / self.inputs)]

    def says_passed(self, output, size):
        ended = re.search(r"^Done (\d+) runs", output, re.MULTILINE)
        return ended and int(ended[1]) >= size


@dataclasses.dataclass(frozen=True)
class ScriptGoal:
    """A script that takes its size, its seed and the program as arguments. At its end it prints a
    line if it passed."""

    name: str
    script: str  # with {size} and {seed}
    passed: str  # the line that it prints if it passed
    run_size: int
    release_size: int
    needs: tuple = (("release", "detent"),)
    is_of_one_run = False
    remark = ""

    def targets(self):
        return list(self.needs)

    def settings(self, _seed, _size):
        return {}

    def command(self, seed, size):
        words = self.script.format(size=size, seed=seed).split()
        return [sys.executable, str(ROOT / words[0]), *words[1:]]

    def says_passed(self, output, _size):
        return re.search(self.passed, output, re.MULTILINE)


WHEEL_TEST = "build/release/src/wheel/detent_wheel_test"
WHEEL_TEST_ASAN = "build/asan/src/wheel/detent_wheel_test"
EXPLORE_TEST = "build/release/tests/explore/detent_explore_test"
RUNTIME_TEST = "build/release/src/runtime/detent_runtime_test"
RUNTIME_TEST_TSAN = "build/tsan/src/runtime/detent_runtime_test"
ENGINE_TEST = "build/release/src/engine/detent_engine_test"
POSTGRES_TEST = "build/release/src/store/postgres/detent_store_postgres_test"
DURABILITY_TEST = "build/release/tests/durability/detent_durability_test"
FAULTS_TEST = "build/release/tests/durability/detent_faults_test"
SIMULATION_TEST = "build/release/tests/simulation/detent_simulation_test"
ORACLE_TEST = "build/release/tests/oracle/detent_oracle_test"
# A fault lasts as long as a lease, and the cluster needs the same time again to recover. With
# leases of 2 s, a pause or a round of partitions takes 5 to 8 s on an idle machine. If a run fails,
# the logs of the nodes are kept.
CLUSTER = ("tests/cluster/cluster_test.py build/release/detent --lease-ms 2000 --seed {seed} "
           "--rounds {size} --keep build/soak/{seed}")

# The title of each goal: the sections of docs/reports/reliability.md.
TITLES = {
    "G1": "10⁹ random operations, 10⁸ under ASan and UBSan, 10⁸ under TSan",
    "G2": "small queues, exhaustively: no timer early, no timer more than a tick late",
    "G3": "virtual time across 12 days, 2³² ms, 2³⁶ ms, 2038 and 2262",
    "G4": "10⁶ explored schedules of add, cancel, fire and stop",
    "G5": "a simulated cluster with 10⁵ seeds; 1 000 seeds run twice with equal traces",
    "G6": "1 000 kills of the server, 300 in a cluster, 200 of PostgreSQL: acknowledged tasks stay",
    "G7": "10 000 power cuts: acknowledged tasks stay; without syncs the test must find a loss",
    "G8": "failing syncs, full disks, few descriptors: no false acknowledgement, no crash",
    "G9": "300 owners paused beyond their lease, 200 partitions: no write of an old owner",
    "G10": "clocks that are stepped, wrong, drifting or suspended",
    "G11": "the lease of a shard, explored completely by Spin, with broken variants that it finds",
    "G12": "5 × 10⁸ fuzzed inputs for each parser",
    "G13": "cron in all time zones, 20 years, 50 expressions, compared with croner",
    "G14": "memory is freed after 10⁷ cancels; memory, descriptors and disk stay bounded for 8 h",
    "G15": "10⁶ tasks of one queue due in one second do not delay the other queues",
    "G16": "a start with 10⁷ tasks, a tenth overdue; 10⁷ ready tasks without workers",
    "G17": "tasks come and go during a long transaction",
    "G18": "at least 90 % of 100 mutants killed; branch coverage",
}

GOALS = (
    Goal("G1 operations on every queue, compared with sorted sets", WHEEL_TEST,
         "TimerQueueModel/*.AgreesWithSortedSets", "DETENT_MODEL_OPS", 10**8, 10**9),
    Goal("G1 operations on every queue under ASan and UBSan", WHEEL_TEST_ASAN,
         "TimerQueueModel/*.AgreesWithSortedSets", "DETENT_MODEL_OPS", 10**7, 10**8),
    Goal("G1 operations of several threads on a Scheduler under TSan", RUNTIME_TEST_TSAN,
         "SchedulerStress.*", "DETENT_STRESS_OPS", 10**6, 10**8),
    Goal("G2 ticks of small queues, exhaustively", WHEEL_TEST,
         "TimerQueueExhaustive/*", "DETENT_SMALL_TICKS", 140, 140, is_of_one_run=True),
    Goal("G3 ticks of virtual time across landmarks", WHEEL_TEST,
         "TimerQueueLandmark/*", "DETENT_VIRTUAL_TICKS", 10**8, 10**8, is_of_one_run=True),
    Goal("G4 explored schedules of each scenario", EXPLORE_TEST,
         "SchedulerSchedules.*", "DETENT_EXPLORE_SCHEDULES", 10**5, 10**6),
    Goal("G5 runs of a simulated cluster with all faults", SIMULATION_TEST,
         "ClusterSimulation.TheContractHoldsUnderAllFaults", "DETENT_CLUSTER_RUNS", 2000, 10**5),
    Goal("G5 seeds that run twice and must give equal traces", SIMULATION_TEST,
         "ClusterSimulation.ASeedDeterminesTheRun", "DETENT_CLUSTER_TWICE", 200, 1000),
    Goal("G6 kill -9 of the server under load", FAULTS_TEST, "Kills.*", "DETENT_KILLS", 200, 1000),
    ScriptGoal("G6 kill -9 of a node of a cluster", CLUSTER + " --faults kill", "^good in",
               20, 300),
    ScriptGoal("G6 kill -9 of PostgreSQL under a cluster", CLUSTER + " --faults postgres",
               "^good in", 20, 200),
    Goal("G7 power cuts", DURABILITY_TEST, "PowerCuts.*", "DETENT_POWER_CUTS", 2500, 10**4),
    Goal("G8 failing syncs, full disks and few descriptors", FAULTS_TEST,
         "FailingSync.*:FullDisk.*:FewDescriptors.*", "DETENT_SYNC_FAULTS", 60, 60,
         is_of_one_run=True),
    ScriptGoal("G9 pauses of a node beyond its lease", CLUSTER + " --faults pause", "^good in",
               75, 300),
    ScriptGoal("G9 rounds of two partitions: from the database and from the other nodes",
               CLUSTER + " --faults cut_database,cut_nodes", "^good in", 25, 100),
    Goal("G10 runs of a recurring timer while the wall clock is stepped at random", RUNTIME_TEST,
         "SchedulerRecurringClock.*:SchedulerWallStep.*", "DETENT_CLOCK_RUNS", 10**4, 10**5),
    Goal("G10 runs of the engine while its clock is stepped and suspended", ENGINE_TEST,
         "EngineClock.*", "DETENT_CLOCK_RUNS", 2000, 10**4),
    ScriptGoal("G11 complete explorations of the model and its variants", "tests/model/explore.py",
               "^the protocol was explored", 1, 1, needs=()),
    *map(FuzzGoal, ("beanstalk_commands", "config_files", "http_messages", "json_bodies",
                    "cron_expressions", "stored_tasks", "stored_schedules")),
    FuzzGoal("http_routes", run_size=10**5, release_size=5 * 10**6),
    FuzzGoal("timer_queue", run_size=10**4, release_size=10**6),
    Goal("G13 time zones with equal results of cron and croner", ORACLE_TEST,
         "CronOracle.AgreesWithCroner", "DETENT_ORACLE_ZONES", 20, 447),
    Goal("G14 seconds of a server under load", FAULTS_TEST, "Endurance.*",
         "DETENT_ENDURANCE_SECONDS", 8 * 3600, 8 * 3600, is_of_one_run=True,
         remark="1 800 s find memory that grows by 130 MB an hour, 28 800 s by 9 MB an hour"),
    Goal("G14 tasks scheduled and cancelled", FAULTS_TEST,
         "Memory.*", "DETENT_MEMORY_TASKS", 10**7, 10**7, is_of_one_run=True,
         remark="memory in use returns to within 10 %; the process keeps 10 MB more, in pages "
                "that still hold small objects"),
    Goal("G14 rounds of failing and releasing the same tasks: disk space", FAULTS_TEST,
         "Disk.*", "DETENT_DISK_CYCLES", 1000, 1000, is_of_one_run=True),
    Goal("G15 tasks due in one second of virtual time: order of hand-outs", ENGINE_TEST,
         "EngineStorm.AMillionTasksOfASecondLeaveTheOthersInTime", "DETENT_STORM_TASKS", 10**6,
         10**6, is_of_one_run=True,
         remark="[engine-figures.md](../internals/engine-figures.md) has the lateness by the "
                "clock. It is within its target in process without workers. It is above its "
                "target over HTTP and with workers"),
    Goal("G16 tasks at a start with overdue tasks", FAULTS_TEST,
         "Boot.*", "DETENT_BOOT_TASKS", 10**7, 10**7, is_of_one_run=True),
    Goal("G16 ready tasks without workers", FAULTS_TEST,
         "ReadyBacklog.*", "DETENT_BOOT_TASKS", 10**7, 10**7, is_of_one_run=True),
    Goal("G17 tasks that came and went during a long transaction", POSTGRES_TEST,
         "PostgresBloatTest.*", "DETENT_BLOAT_TASKS", 10**6, 10**6, is_of_one_run=True),
    ScriptGoal("G18 mutants", "tools/mutate --count {size} --seed {seed}", "^mutate: at least 90 %",
               25, 100, needs=()),
)


def done(goal, runs):
    """The size of a goal that was reached: the sum of all passed runs, or the largest passed run if
    only one run counts."""
    sizes = [run["size"] for run in runs if run["goal"] == goal.name and run["result"] == "passed"]
    return max(sizes, default=0) if goal.is_of_one_run else sum(sizes)
