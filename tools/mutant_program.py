"""How tools/mutate runs mutants: a process of tests within limits, and the program that has all
mutants of an area in it (mutant_schemata.py), of which each is run with the tests that come by it.
"""

import json
import math
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys

import mutant_schemata

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / "build/release"
SETTINGS = {"DETENT_SEED": "1", "DETENT_MODEL_OPS": "600000"}
A_SECOND_MS = 1_000
LONGEST_MS = (30, 200, A_SECOND_MS, float("inf"))  # tests of a mutant are run in batches, by time
MOST_MEMORY = 4 << 30  # of a mutant's process


def run_tests(program, limit, settings, only=()):
    """For at most `limit` seconds, and no longer at work however this process ends. Returns: what
    was found; None when nothing was."""
    at_work = math.ceil(limit)
    bound = lambda: (os.setsid(),
                     resource.setrlimit(resource.RLIMIT_CPU, (at_work, at_work)),
                     resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)),
                     resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    words = [str(program), "--gtest_fail_fast", "--gtest_brief=1"]
    if only:
        words.append("--gtest_filter=" + ":".join(only))
    process = subprocess.Popen(words, env=os.environ | settings, text=True, errors="replace",
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=bound)
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return "time-out"
    if process.returncode == 0:
        return None
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "time-out"
    failed = re.search(r"^\[  FAILED  \] ([\w/.]+)", output, re.MULTILINE)
    stopped = re.search(r"check failed: (.*)", output)
    if failed:
        return failed[1]
    return f"check failed: {stopped[1]}" if stopped else f"exit {process.returncode}"


def ninja(*words):
    return subprocess.run(["ninja", "-C", str(TREE), *words], capture_output=True, text=True,
                          check=False)


class OneProgram:
    """All mutants of an area in one program, made from the release tree's objects."""

    def __init__(self, area, work, masked, mutants_of, is_quick):
        self.area, self.work = area, work / area.name
        self.masked, self.mutants_of = masked, mutants_of
        self.program = self.work / "tests"
        self.is_quick = is_quick
        self.number_of = {}

    def build_all(self):
        self.work.mkdir(parents=True, exist_ok=True)
        launcher = "ccache" if shutil.which("ccache") else ""
        subprocess.run(["cmake", "--preset", "release", "-DDETENT_TESTS=ON",
                        f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"], cwd=ROOT, check=True,
                       capture_output=True)
        built = ninja("-j1", self.area.program)
        if built.returncode != 0:
            sys.exit(f"mutate: {self.area.program} does not compile without a fault:\n"
                     + built.stdout[-3000:])
        objects, first = [], 0
        for path in self.area.mutated:
            objects.append(self.compile(path, first))
            first += 10_000
        main = self.work / "main.cc"
        main.write_text(mutant_schemata.MAIN, encoding="utf-8")
        objects.append(self.compile_one(main, self.area.mutated[0]))
        self.link(objects)
        self.look_which_tests_come_by()

    def command_of(self, path):
        commands = json.loads((TREE / "compile_commands.json").read_text(encoding="utf-8"))
        command = next(each["command"] for each in commands if each["file"] == str(ROOT / path))
        words = shlex.split(command)
        at = words.index("-o")
        return [word for word in words[:at] if not word.startswith("-O")] + ["-O1", "-w"]

    def compile_one(self, source, like):
        target = source.with_suffix(".o")
        command = [*self.command_of(like), "-o", str(target), "-c", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ValueError(done.stderr)
        return target

    def compile(self, path, first):
        """The file with its mutants; without those that do not compile."""
        text = (ROOT / path).read_text(encoding="utf-8")
        blanked = "".join(" " * len(line) + "\n" if line.startswith("#")
                          else self.masked(line) + "\n" for line in text.splitlines())
        mutants = list(dict.fromkeys(self.mutants_of(path)))
        schemata = mutant_schemata.Schemata(text, blanked, mutants, first)
        source = self.work / pathlib.Path(path).name
        placed = len(schemata.mutants)
        if source.with_suffix(".wrong").exists():  # of the last run: most still are
            known = json.loads(source.with_suffix(".wrong").read_text(encoding="utf-8"))
            schemata.drop([number for number, mutant in schemata.mutants.items()
                           if [mutant.before, mutant.after] in known])
        while True:
            source.write_text(schemata.text_with_all(), encoding="utf-8")
            try:
                target = self.compile_one(source, path)
                break
            except ValueError as errors:
                wrong = mutant_schemata.blamed(source.read_text(encoding="utf-8"), str(errors),
                                               source.name, schemata.mutants)
                if not wrong:
                    sys.exit(f"mutate: {path} does not compile with its mutants:\n"
                             + str(errors)[:3000])
                schemata.drop(wrong)
        source.with_suffix(".wrong").write_text(json.dumps(
            [(mutant.before, mutant.after) for mutant in schemata.placed
             if mutant not in schemata.mutants.values()]), encoding="utf-8")
        print(f"mutate: {path}: {len(mutants)} mutants, {placed} have a place, "
              f"{len(schemata.mutants)} compile", flush=True)
        self.number_of |= {mutant: number for number, mutant in schemata.mutants.items()}
        return target

    def link(self, objects):
        last = ninja("-t", "commands", self.area.program).stdout.splitlines()[-1]
        words = shlex.split(last.removeprefix(": && ").removesuffix(" && :"))
        at = words.index("-o")
        words[at + 1:at + 2] = [str(self.program), *map(str, objects)]
        subprocess.run(words, cwd=TREE, check=True)

    def look_which_tests_come_by(self):
        noted = self.work / "reached.txt"
        found = run_tests(self.program, 1800, SETTINGS | {"DETENT_REACHED": str(noted)})
        if found is not None:
            sys.exit(f"mutate: {self.area.name} fails without a fault: {found}")
        self.tests, self.always = {}, set()
        for line in noted.read_text(encoding="utf-8").splitlines():
            name, took_ms, numbers = line.split("\t")
            if not name:
                self.always = {int(number) for number in numbers.split()}
                continue
            self.tests[name] = (int(took_ms), {int(number) for number in numbers.split()})
        took = sum(took_ms for took_ms, _ in self.tests.values()) / 1000
        print(f"mutate: {self.area.name}: {len(self.tests)} tests take {took:.1f} s without a "
              "fault", flush=True)

    def tests_of(self, number):
        """Those that come by a mutant, the quick ones first."""
        return sorted((took_ms, name) for name, (took_ms, numbers) in self.tests.items()
                      if number in numbers or number in self.always)

    def try_mutant(self, mutant):
        """Returns: ("killed", by), ("survived", "") or ("does not compile", "")."""
        number = self.number_of.get(mutant)
        if number is None:
            return "does not compile", ""
        tests = self.tests_of(number)
        shortest = 0
        for longest in LONGEST_MS:
            batch = [test for test in tests if shortest <= test[0] < longest]
            shortest = longest
            if not batch:
                continue
            if self.is_quick and longest > A_SECOND_MS:
                break
            limit = 10 + 5 * sum(took_ms for took_ms, _ in batch) / 1000
            found = run_tests(self.program, limit, SETTINGS | {"DETENT_MUTANT": str(number)},
                              [name for _, name in batch])
            if found is not None:
                return "killed", found
        return "survived", ""
