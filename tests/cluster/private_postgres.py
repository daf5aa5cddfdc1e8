"""A PostgreSQL for one test, in a temporary folder and on a local port. It is removed with the
test.

If the test runs as root, PostgreSQL runs under the account `postgres`, because it refuses root. All
its processes can be killed together, like in a failure of its machine. Data that it had written to
files exists after the next start.
"""

import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from child_programs import die_with_parent, free_port, wait_until  # needs the path above


class PrivatePostgres:
    fsync = "off"

    def __init__(self):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            raise FileNotFoundError("PostgreSQL is not installed: tools/setup full")
        self.programs = pathlib.Path(programs[-1])
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="detent-cluster-"))
        self.account = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        if self.account:
            os.chown(self.folder, self.account.pw_uid, self.account.pw_gid)
        self.port = free_port()
        self.process = None
        self.run("initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "trust", "-N",
                 "--no-locale", "-E", "UTF8")
        self.start()
        self.run("createdb", "-h", self.folder, "-p", str(self.port), "-U", "postgres", "cluster")

    def as_account(self):
        if not self.account:
            return {}
        return {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}

    def run(self, program, *arguments):
        subprocess.run([self.programs / program, *arguments], check=True, cwd="/",
                       stdout=subprocess.DEVNULL, **self.as_account())

    def start(self):
        log = self.folder / "log"
        with open(log, "ab") as output:
            seen = output.tell()
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", "-k", self.folder, "-c",
                 "listen_addresses=127.0.0.1", "-p", str(self.port), "-c", f"fsync={self.fsync}",
                 "-c", "shared_buffers=32MB", "-c", "max_connections=200"], cwd="/",
                stdout=output, stderr=output, preexec_fn=die_with_parent, **self.as_account())
        wait_until(lambda: b"system is ready to accept" in log.read_bytes()[seen:], 30,
                   "PostgreSQL starts")

    def kill(self):
        """Sends SIGKILL to the postmaster and to all processes that it has started."""
        group = [self.process.pid, *children_of(self.process.pid)]
        for process in group:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself after the postmaster
        self.process.wait()
        wait_until(lambda: not any(is_alive(process) for process in group), 30,
                   "PostgreSQL is gone")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def is_alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children_of(parent):
    children = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = pathlib.Path(stat).read_text()
        except OSError:
            continue
        if int(text.rsplit(")", 1)[1].split()[1]) == parent:
            children.append(int(text.split()[0]))
    return children
