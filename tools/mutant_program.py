"""How tools/mutate runs mutants: as a test process with limits. One program contains all mutants of
an area (mutant_schemata.py). A mutant runs only the tests that reach its code.
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
TREE = ROOT / "build/mutants"  # a release build without unity files
SETTINGS = {"DETENT_SEED": "1", "DETENT_MODEL_OPS": "600000"}
A_SECOND_MS = 1_000
LONGEST_MS = (30, 200, A_SECOND_MS, float("inf"))  # a mutant runs its tests in batches, by time
MOST_OF_A_FILE = 10_000  # mutants; kMost in mutant_schemata.py is the limit for all files
MOST_MEMORY = 4 << 30  # for the process of a mutant


def run_tests(program, limit, settings, only=()):
    """Runs the tests for at most `limit` seconds. A limit on CPU time ends them even if this
    process dies. Returns the failure; None if all tests pass."""
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
    """All mutants of an area in one program, with the objects of the release tree."""

    def __init__(self, area, work, masked, mutants_of, is_quick):
        self.area, self.work = area, work / area.name
        self.masked, self.mutants_of = masked, mutants_of
        self.program = self.work / "tests"
        self.is_quick = is_quick
        self.number_of = {}

    def build_all(self):
        self.work.mkdir(parents=True, exist_ok=True)
        launcher = "ccache" if shutil.which("ccache") else ""
        subprocess.run(["cmake", "--preset", "release", "-B", TREE, "-DDETENT_UNITY=OFF",
                        "-DDETENT_TESTS=ON", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"],
                       cwd=ROOT, check=True, capture_output=True)
        built = ninja("-j1", self.area.program)
        if built.returncode != 0:
            sys.exit(f"mutate: {self.area.program} does not compile without a fault:\n"
                     + built.stdout[-3000:])
        self.link(self.compile_all())
        self.look_which_tests_come_by()

    def compile_all(self):
        """The objects of the files with mutants, and the object that selects a mutant."""
        objects = [self.compile(path, number * MOST_OF_A_FILE)
                   for number, path in enumerate(self.area.mutated)]
        return [*objects, self.compile_main(self.area.mutated[0])]

    def compile_main(self, like):
        main = self.work / "main.cc"
        main.write_text(mutant_schemata.MAIN, encoding="utf-8")
        return self.compile_one(main, like)

    def command_of(self, path):
        commands = json.loads((TREE / "compile_commands.json").read_text(encoding="utf-8"))
        command = next(each["command"] for each in commands if each["file"] == str(ROOT / path))
        words = shlex.split(command)
        at = words.index("-o")
        return [word for word in words[:at] if not word.startswith("-O")] + ["-O1", "-w"]

    def compile_one(self, source, like):
        target = self.target_of(source)
        command = [*self.command_of(like), "-o", str(target), "-c", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ValueError(done.stderr)
        return target

    def target_of(self, source):
        return source.with_suffix(".o")

    def schemata_of(self, path, first):
        """The mutants of a file that have a place, except those that failed to compile before."""
        text = (ROOT / path).read_text(encoding="utf-8")
        blanked = "".join(" " * len(line) + "\n" if line.startswith("#")
                          else self.masked(line) + "\n" for line in text.splitlines())
        mutants = list(dict.fromkeys(self.mutants_of(path)))
        schemata = mutant_schemata.Schemata(text, blanked, mutants, first)
        wrong = self.wrong_of(path)
        if wrong.exists():
            known = json.loads(wrong.read_text(encoding="utf-8"))
            schemata.drop([number for number, mutant in schemata.mutants.items()
                           if [mutant.before, mutant.after] in known])
        return schemata

    def wrong_of(self, path):
        return self.work / (pathlib.Path(path).name + ".wrong")

    def note(self, path, schemata):
        """Records the mutants that compile, for this run and the next."""
        self.wrong_of(path).write_text(json.dumps(
            [(mutant.before, mutant.after) for mutant in schemata.placed
             if mutant not in schemata.mutants.values()]), encoding="utf-8")
        print(f"mutate: {path}: {len(schemata.placed)} mutants have a place, "
              f"{len(schemata.mutants)} compile", flush=True)
        self.number_of |= {mutant: number for number, mutant in schemata.mutants.items()}

    def compile(self, path, first):
        """Compiles the file with its mutants. Drops mutants that do not compile."""
        schemata = self.schemata_of(path, first)
        source = self.work / pathlib.Path(path).name
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
        self.note(path, schemata)
        return target

    def link(self, objects):
        last = ninja("-t", "commands", self.area.program).stdout.splitlines()[-1]
        words = self.linked(shlex.split(last.removeprefix(": && ").removesuffix(" && :")))
        at = words.index("-o")
        words[at + 1:at + 2] = [str(self.program), *map(str, objects)]
        subprocess.run(words, cwd=TREE, check=True)

    def linked(self, words):
        return words

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
        """The tests that reach a mutant, fast tests first."""
        return sorted((took_ms, name) for name, (took_ms, numbers) in self.tests.items()
                      if number in numbers or number in self.always)

    def try_mutant(self, mutant):
        """Returns ("killed", by), ("survived", "") or ("does not compile", "")."""
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


class HeaderProgram(OneProgram):
    """Like OneProgram, for headers. All tests are compiled with the mutants."""

    def __init__(self, area, work, masked, mutants_of, is_quick):
        super().__init__(area, work, masked, mutants_of, is_quick)
        self.overlay = self.work / "overlay"  # searched before the files of the tree
        self.object_of = {}  # by the object of the tree

    def lay_over(self, path, text):
        (self.overlay / path).parent.mkdir(parents=True, exist_ok=True)
        (self.overlay / path).write_text(text, encoding="utf-8")

    def sources(self):
        """The tests, each with its object in the tree."""
        folder = f"/{self.area.program}.dir/"
        commands = json.loads((TREE / "compile_commands.json").read_text(encoding="utf-8"))
        for each in commands:
            words = shlex.split(each["command"])
            if folder in (target := words[words.index("-o") + 1]):
                yield pathlib.Path(each["file"]).relative_to(ROOT), target

    def compile_all(self):
        for path, change in self.area.laid_over:
            self.lay_over(path, change((ROOT / path).read_text(encoding="utf-8")))
        all_schemata = {path: self.schemata_of(path, number * MOST_OF_A_FILE)
                        for number, path in enumerate(self.area.mutated)}
        for path, schemata in all_schemata.items():
            self.lay_over(path, schemata.text_with_all())
        sources = list(self.sources())
        for path, target in sources:
            self.object_of[target] = self.compile_test(str(path), all_schemata)
        for path, schemata in all_schemata.items():
            self.note(path, schemata)
        return [self.compile_main(str(sources[0][0]))]

    def compile_test(self, path, all_schemata):
        """Drops mutants that do not compile in this test. Tests that are already compiled still
        contain them, but they are never selected."""
        while True:
            try:
                return self.compile_one(ROOT / path, path)
            except ValueError as errors:
                if not self.drop_blamed(str(errors), all_schemata):
                    sys.exit(f"mutate: {path} does not compile with the mutants of headers:\n"
                             + str(errors)[:3000])

    def drop_blamed(self, errors, all_schemata):
        """Returns False if no mutant caused the error."""
        found = False
        for path, schemata in all_schemata.items():
            text = (self.overlay / path).read_text(encoding="utf-8")
            wrong = mutant_schemata.blamed(text, errors, str(self.overlay / path),
                                           schemata.mutants)
            if wrong:
                found = True
                schemata.drop(wrong)
                self.lay_over(path, schemata.text_with_all())
        return found

    def command_of(self, path):
        compiler, *words = super().command_of(path)
        if not compiler.endswith("++"):  # a compiler launcher, such as ccache
            compiler, words = words[0], words[1:]
        return [compiler, f"-I{self.overlay}/include", f"-I{self.overlay}/src", *words]

    def target_of(self, source):
        return self.work / (source.stem + ".o")

    def linked(self, words):
        return [str(self.object_of.get(word, word)) for word in words]
