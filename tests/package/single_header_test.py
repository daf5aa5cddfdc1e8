#!/usr/bin/env python3
"""Uses detent_wheel.hpp, which tools/single_header makes: it compiles alone, with many warnings and
without exceptions, and two sources of one program can include it.

The arguments are compilers. Those that are not installed are left out, except for the first.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

COMPILERS = [sys.argv[1]]
for name in sys.argv[2:]:
    if shutil.which(name) not in (None, *map(shutil.which, COMPILERS)):
        COMPILERS.append(name)
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]

ONE = """
#include "detent_wheel.hpp"

int fired_elsewhere();

int main() {
  detent::TimerWheel wheel;
  detent::Timer timer;
  int fired = 0;
  wheel.schedule(timer, 10);
  wheel.advance(9, [&](detent::Timer&) noexcept { fired += 100; });
  wheel.advance(10, [&](detent::Timer&) noexcept { fired += 1; });
  return fired + fired_elsewhere() == 111 ? 0 : 1;
}
"""
OTHER = """
#include "detent_wheel.hpp"

int fired_elsewhere() {
  int fired = 0;
  detent::TimerWheel wheel;
  detent::FifoTimerWheel fifo;
  detent::FifoTimerWheel::Timer timer;
  detent::DenseWheel dense;
  fifo.schedule(timer, 5);
  fifo.advance(5, [&](detent::FifoTimerWheel::Timer&) noexcept { fired += 10; });
  if (dense.try_schedule(7, 5) != detent::TryScheduleResult::scheduled) return 0;
  dense.advance(5, [&](std::uint32_t) noexcept { fired += 100; });
  return fired;
}
"""


class SingleHeader(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_here(SOURCE / "tools/single_header", "detent_wheel.hpp")

    def run_here(self, *command):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, f"{command}:\n{done.stdout}")

    def test_two_sources_of_a_program_include_it(self):
        (self.folder / "one.cc").write_text(ONE, encoding="utf-8")
        (self.folder / "other.cc").write_text(OTHER, encoding="utf-8")
        for compiler in COMPILERS:
            for more in ([], ["-fno-exceptions", "-fno-rtti"]):
                with self.subTest(compiler=compiler, more=more):
                    self.run_here(compiler, *FLAGS, *more, "one.cc", "other.cc", "-o", "program")
                    self.run_here(self.folder / "program")

    def test_it_includes_no_other_file_and_names_the_licence(self):
        text = (self.folder / "detent_wheel.hpp").read_text(encoding="utf-8")
        self.assertNotIn('#include "', text)
        self.assertEqual(text.count("#pragma once"), 1)
        self.assertIn("Apache License, Version 2.0", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
