#!/usr/bin/env python3
"""Tests of tools/mutant_schemata.py: a program with all mutants of a file, of which one is chosen,
does what the file with that one fault does, whatever the statement is that the fault is in.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import mutant_schemata  # noqa: E402, beside this file
from mutate_test import mutate  # noqa: E402

PROGRAM = r"""
extern "C" int printf(const char*, ...);
extern "C" void _exit(int);
bool step() {  // ends a loop that a fault has made endless
  static unsigned steps;
  if (steps == 5000) _exit(9);
  return ++steps;
}
struct Pair { int a; int b; };
constexpr int kMost = 7;
constexpr int kSize = 3;
int numbers[kSize] = {4, 5, 6};
template <class F> int twice(F f) { return f(1) + f(2); }
int pick(int a) {
  switch (a + 1) {
    case 2: return 20;
    case 3:
      a += 5;
      break;
    default:
      a = a * 2;
  }
  return a;
}
int sum(int from, int until) {
  int total = 0;
  for (int i = from; i < until && step(); ++i) total += i;
  for (int number : numbers) {
    if (number < 5) continue;
    else if (number == 5 && total > 3) total += 10;
    else
      total -= 1;
  }
  while (total > 100 || total < 0) {
    step();
    total = total > 100 ? total - 7 : total + 1;
    if (total == 50) break;
  }
  return total;
}
int compare(Pair p) {
  const int a = p.a * 2, b = p.b;
  const bool is_less = a < b;
  const Pair both{.a = a, .b = b + 1};
  if (const int d = both.b - a; d > 2 &&
      d < 9) {
    return d;
  }
  const auto add = [&](int x) {
    if (x > 1) return x + kMost;
    ++p.a;
    return x;
  };
  int result = twice([p](int x) { return x * p.b; }) + twice(add);
  if (!is_less) result--;
  do {
    result -= 3;
  } while (step() && result > 20);
  return result + p.a;
}
int main() {
  for (int a = 0; a < 5; a++) {
    step();
    printf("%d %d %d %d\n", pick(a), sum(a, 6), sum(a, a), compare({a, 3}));
  }
}
"""
CHOICE = """
extern "C" char* getenv(const char*);
extern "C" int atoi(const char*);
bool detent_mutant(int number) noexcept {
  const char* text = getenv("DETENT_MUTANT");
  return text != nullptr && atoi(text) == number;
}
"""


def compiled(folder, text, name):
    """The program, or None when it does not compile."""
    source, program = folder / f"{name}.cc", folder / name
    source.write_text(text, encoding="utf-8")
    done = subprocess.run(["g++", "-std=c++20", "-w", str(source), "-o", str(program)],
                          capture_output=True, text=True, check=False)
    return (program, "") if done.returncode == 0 else (None, done.stderr)


def output_of(program, mutant=None):
    """How it ends, and what it prints."""
    environment = {} if mutant is None else {"DETENT_MUTANT": str(mutant)}
    try:
        done = subprocess.run(["timeout", "20", str(program)], env={"PATH": "/usr/bin:/bin"}
                              | environment, capture_output=True, text=True, check=False)
    except UnicodeDecodeError:
        return "no text"
    return "ends by itself no more" if done.returncode == 124 else (done.returncode, done.stdout)


class Choice(unittest.TestCase):
    def test_the_chosen_mutant_does_what_the_file_with_that_fault_does(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            path = folder / "file.cc"
            path.write_text(PROGRAM, encoding="utf-8")
            blanked = "".join(mutate.masked(line) + "\n" for line in PROGRAM.splitlines())
            mutants = list(mutate.mutants_of(str(path)))
            schemata = mutant_schemata.Schemata(PROGRAM, blanked, mutants, 0)
            placed = len(schemata.mutants)
            while True:
                text = schemata.text_with_all()
                program, errors = compiled(folder, text + CHOICE, "all")
                if program:
                    break
                wrong = mutant_schemata.blamed(text, errors, "all.cc", schemata.mutants)
                self.assertTrue(wrong, errors)
                schemata.drop(wrong)
            # The size of an array is no constant any more, and goes without its mutants.
            self.assertEqual(len(schemata.mutants), placed - 2)
            self.assertGreater(placed, 0.85 * len(mutants))
            plain, _ = compiled(folder, PROGRAM, "plain")
            as_it_was = output_of(plain)
            self.assertEqual(output_of(program), as_it_was)
            differ = 0
            for number, mutant in list(schemata.mutants.items())[::2]:  # all would take long
                lines = PROGRAM.splitlines()
                lines[mutant.line] = mutant.after
                alone, _ = compiled(folder, "\n".join(lines), "alone")
                self.assertIsNotNone(alone, mutant)
                expected = output_of(alone)
                differ += expected != as_it_was
                self.assertEqual(output_of(program, number), expected, mutant)
            self.assertGreater(differ, 30)


class Blame(unittest.TestCase):
    TEXT = "int a;\n/*mutant 7*/ if (detent_mutant(7))\nx\nelse\n/*end*/\ny\nint a[kSize];\n"

    def test_an_error_is_that_of_the_mutant_in_whose_lines_it_is(self):
        for line, found in ((1, set()), (2, {7}), (3, {7}), (5, {7}), (6, set())):
            self.assertEqual(self.blamed(f"a.cc:{line}:3: error"), found)
        self.assertEqual(self.blamed("b.cc:3:3: error"), set())

    def test_or_that_of_the_constants_which_its_line_names(self):
        self.assertEqual(self.blamed("a.cc:7:3: error"), {8})

    def blamed(self, errors):
        mutants = {7: mutate.Mutant("a.cc", 1, "number", "x", "y"),
                   8: mutate.Mutant("a.cc", 2, "number", "constexpr int kSize = 3;", "")}
        return mutant_schemata.blamed(self.TEXT, errors, "a.cc", mutants)


class Chooser(unittest.TestCase):
    def test_the_number_is_read_and_each_test_notes_what_it_came_by(self):
        for name in ("DETENT_MUTANT", "DETENT_REACHED"):
            self.assertIn(f'getenv("{name}")', mutant_schemata.MAIN)
        self.assertTrue(re.search(r"\bRUN_ALL_TESTS\(\)", mutant_schemata.MAIN))


if __name__ == "__main__":
    unittest.main()
