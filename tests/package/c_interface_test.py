#!/usr/bin/env python3
"""Checks libdetent.so from outside: it exports exactly the functions of detent/detent.h, its SONAME
has the version of this header, and it needs only the libraries of C and C++.

The arguments are the library and nm.
"""

import pathlib
import re
import subprocess
import sys
import unittest

LIBRARY, NM = sys.argv[1:3]
HEADER = pathlib.Path(__file__).resolve().parent.parent.parent / "include/detent/detent.h"
TEXT = HEADER.read_text(encoding="utf-8")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class CInterface(unittest.TestCase):
    def test_it_exports_exactly_the_functions_of_the_header(self):
        declared = re.findall(r"^DETENT_API [^;]*?\b(detent_\w+)\(", TEXT, re.MULTILINE)
        self.assertGreater(len(declared), 15)
        lines = output_of(NM, "-D", "--defined-only", LIBRARY).splitlines()
        self.assertEqual(sorted(line.split()[-1] for line in lines), sorted(declared))

    def test_the_soname_has_the_version_of_the_header(self):
        version = re.search(r"#define DETENT_ABI_VERSION (\d+)", TEXT)[1]
        dynamic = output_of("readelf", "-d", LIBRARY)
        self.assertEqual(re.findall(r"SONAME.*\[(.*)\]", dynamic), [f"libdetent.so.{version}"])
        needed = re.findall(r"NEEDED.*\[lib([\w+]+)[.-]", dynamic)
        self.assertLessEqual(set(needed), {"c", "gcc_s", "m", "stdc++"})

    def test_every_function_is_documented(self):
        lines = TEXT.splitlines()
        self.assertEqual([line for before, line in zip(lines, lines[1:])
                          if line.startswith("DETENT_API ") and not before.startswith("///")], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
