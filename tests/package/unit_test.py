#!/usr/bin/env python3
"""Checks packaging/detent.service.in with the tools of systemd, which does not have to run.

The unit is valid. `systemd-analyze security` rates it at most 2.0, and rates a unit without the
hardening worse. The test checks the unit with the user that systemd makes, and with the user of the
Debian package.

The arguments are the program and the unit.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, TEMPLATE = sys.argv[1:3]


def analyze(unit, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "detent.service")
        path.write_text(unit, encoding="utf-8")
        return subprocess.run(["systemd-analyze", *arguments, str(path)], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def security(unit):
    """Runs the analysis. The exit status is 0 if the exposure is at most 2.0."""
    return analyze(unit, "security", "--offline=true", "--threshold=20")


def unit_of(user):
    template = pathlib.Path(TEMPLATE).read_text(encoding="utf-8")
    return template.replace("@DETENT_PROGRAM@", PROGRAM).replace("@DETENT_USER@", user)


UNIT = unit_of("DynamicUser=yes")
PACKAGED_UNIT = unit_of("User=detent\nGroup=detent")


class Unit(unittest.TestCase):
    def test_systemd_finds_nothing_wrong(self):
        for unit in (UNIT, PACKAGED_UNIT):
            verified = analyze(unit, "verify", "--man=no")
            self.assertEqual((verified.returncode, verified.stdout), (0, ""))

    def test_systemd_finds_something_wrong_when_there_is(self):
        self.assertNotEqual(analyze(UNIT.replace("Type=notify", "Type=notice"), "verify",
                                    "--man=no").stdout, "")

    def test_it_is_tried_again_without_end_once_the_network_is_up(self):
        for line in ("StartLimitIntervalSec=0", "Restart=on-failure",
                     "Wants=network-online.target", "After=network-online.target"):
            self.assertIn(f"\n{line}\n", UNIT)

    def test_exposure_is_at_most_2(self):
        for unit in (UNIT, PACKAGED_UNIT):
            rated = security(unit)
            self.assertEqual(rated.returncode, 0, rated.stdout)

    def test_exposure_is_more_without_the_system_call_filter(self):
        self.assertNotEqual(security(re.sub(r"SystemCallFilter=.*\n", "", UNIT)).returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
