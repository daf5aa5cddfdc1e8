#!/usr/bin/env python3
"""explore.py CC: explores every state of shard_lease.pml by Spin, and of its broken variants.

The protocol must hold in all of them, with each of its steps taken in some; of the variants, each
must be found out. CC is a compiler of the GNU kind, for the program in C that Spin writes.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = Path(__file__).with_name("shard_lease.pml")
FEWEST_STATES = 1_000_000  # of the protocol: fewer, and the model has lost something
DEPTH = "-m100000"  # a search that is cut off says so, and fails here


def variants():
    """The names that the model's head lists, so that one without a test is not possible."""
    head = MODEL.read_text().split("*/")[0]
    return re.findall(r"^ \*   ([A-Z_]+)  ", head, re.MULTILINE)


def explore(compiler, variant, folder):
    """What the search says about the model with VARIANT defined (None: the protocol itself)."""
    defined = [f"-D{variant}"] if variant else []
    run = lambda *command: subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True).stdout
    run("spin", *defined, "-a", str(MODEL))
    run(compiler, "-x", "c", "-w", "-O2", "-DSAFETY", "-DCOLLAPSE", "-o", "search", "pan.c")
    return run("./search", DEPTH, "-E")


def faults_of_protocol(report):
    states = int(re.search(r"(\d+) states, stored", report).group(1))
    if "errors: 0" not in report:
        yield "the protocol breaks:\n" + report
    if "max search depth too small" in report:
        yield "the search was cut off"
    if states < FEWEST_STATES:
        yield f"only {states} states; there were more than {FEWEST_STATES}"
    for line in re.findall(r"shard_lease.pml:\d+, state \d+, \"(?!-end-)(.*)\"", report):
        yield f"no state has taken this step: {line}"
    print(f"the protocol was explored in {states} states")


def main():
    compiler = sys.argv[1] if len(sys.argv) > 1 else "cc"
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        faults += faults_of_protocol(explore(compiler, None, folder))
        for variant in variants():
            if re.search("assertion violated", explore(compiler, variant, folder)):
                print(f"{variant} is found out")
            else:
                faults.append(f"{variant} is not found out")
    if len(variants()) < 4:
        faults.append("the model's head lists fewer than four variants")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
