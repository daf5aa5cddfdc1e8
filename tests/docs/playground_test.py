#!/usr/bin/env python3
"""Builds the playground again, and compares it with docs/playground/index.html.

Argument: the root of the tree. Needs emscripten.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()


class Playground(unittest.TestCase):
    def test_the_page_is_of_these_sources(self):
        kept = (ROOT / "docs/playground/index.html").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "index.html"
            subprocess.run([ROOT / "examples/playground/build", page], check=True)
            self.assertTrue(page.read_bytes() == kept, "run ./dev playground")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
