#!/usr/bin/env python3
"""Checks the units in packaging/ with the tools of systemd, which does not have to run.

The units are valid. `systemd-analyze security` rates the service at most 2.0, and rates a unit
without the hardening worse. The test checks the unit with the user that systemd makes, and with the
user of the Debian package. The backup runs as root with one privilege, and is rated at most 2.5.

The arguments are the program and the unit of the server.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, TEMPLATE = sys.argv[1:3]


def analyze(unit, *arguments, name="detent.service"):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_text(unit, encoding="utf-8")
        return subprocess.run(["systemd-analyze", *arguments, str(path)], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def security(unit, threshold=20):
    """Runs the analysis. The exit status is 0 if the exposure is at most a tenth of `threshold`."""
    return analyze(unit, "security", "--offline=true", f"--threshold={threshold}")


def unit_of(user):
    template = pathlib.Path(TEMPLATE).read_text(encoding="utf-8")
    return template.replace("@DETENT_PROGRAM@", PROGRAM).replace("@DETENT_USER@", user)


UNIT = unit_of("DynamicUser=yes")
PACKAGED_UNIT = unit_of("User=detent\nGroup=detent")
FOLDER = pathlib.Path(TEMPLATE).parent
BACKUP = (FOLDER / "detent-backup.service.in").read_text(encoding="utf-8").replace(
    "@DETENT_PROGRAM@", PROGRAM)
TIMER = (FOLDER / "detent-backup.timer").read_text(encoding="utf-8")


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

    def test_the_backup_and_its_timer_are_valid(self):
        with tempfile.TemporaryDirectory() as folder:
            units = {"detent-backup.service": BACKUP, "detent-backup.timer": TIMER,
                     "detent.service": UNIT}
            for name, text in units.items():
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
            verified = subprocess.run(
                ["systemd-analyze", "verify", "--man=no", f"{folder}/detent-backup.timer"],
                text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((verified.returncode, verified.stdout), (0, ""))
        dates = subprocess.run(["systemd-analyze", "calendar",
                                re.search(r"OnCalendar=(.*)", TIMER)[1]], check=False,
                               stdout=subprocess.DEVNULL)
        self.assertEqual(dates.returncode, 0)

    def test_the_backup_has_no_privilege_but_to_read(self):
        self.assertIn("\nCapabilityBoundingSet=CAP_DAC_READ_SEARCH\n", BACKUP)
        rated = security(BACKUP, threshold=25)
        self.assertEqual(rated.returncode, 0, rated.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
