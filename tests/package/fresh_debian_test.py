#!/usr/bin/env python3
"""Installs, upgrades, removes and purges the Debian packages with apt-get in a new Debian 12.

There it also runs the server from the tarball and as the unit does, compiles programs that use the
library, and builds the library with only g++ and CMake. `./dev package --test` builds the packages
and runs this test.

debootstrap makes the new Debian once, and a tarball keeps it. Its packages come from the same
source as those of this machine. It runs no systemd, so the test does the work of the unit: user,
variables, state folder, and the datagram with which the server reports that it is ready. From the
first start, the test has its own network, where all ports are free. It needs root and leaves no
files.

The arguments are the folder of the packages, the sources, and the tarball to keep.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PACKAGES, SOURCE, KEPT = map(pathlib.Path, sys.argv[1:4])
ROOT = pathlib.Path(tempfile.mkdtemp(prefix="detent-debian."))
# Packages that a user of the library has. The server needs none of them.
BASE_PACKAGES = "g++,cmake,make,pkg-config,ca-certificates"
# Packages that are needed to build the library.
LIBRARY_SOURCES = ("CMakeLists.txt", "LICENSE", "cmake", "include", "src", "packaging")
CLONE_NEWNS, CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP_RUNNING = 0x20000, 0x40000000, 0x8914, 0x41


def run(*command, **settings):
    process = subprocess.run([str(word) for word in command], text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **settings)
    if process.returncode != 0:
        raise AssertionError(f"{command} failed ({process.returncode}):\n{process.stdout}")
    return process.stdout


def inside(*command):
    """Runs a command in the new Debian, with a login environment. Returns its output."""
    return run("chroot", ROOT, "env", "-i", "HOME=/root", "LANG=C.UTF-8",
               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "DEBIAN_FRONTEND=noninteractive", *command)


def apt(*arguments):
    return inside("apt-get", "-q", "-y", "--no-install-recommends", *arguments)


def leave(namespace):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(namespace) != 0:
        raise OSError(ctypes.get_errno(), "unshare: this needs root")


def mirror():
    """The address from which apt of this machine gets Debian 12."""
    known = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages",
                "Origin: Debian", "Codename: bookworm").split()
    return known[0] if known else "http://deb.debian.org/debian"


def make_root():
    """Makes a new Debian in ROOT, with the settings that apt needs to reach the packages."""
    if not KEPT.exists():
        run("debootstrap", "--variant=minbase", f"--include={BASE_PACKAGES}", "bookworm", ROOT,
            mirror())
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        run("tar", "-C", ROOT, "-cf", f"{KEPT}.new", ".")
        os.replace(f"{KEPT}.new", KEPT)
    else:
        run("tar", "-C", ROOT, "-xf", KEPT)
    ROOT.chmod(0o755)
    for path in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
        shutil.copy(pathlib.Path("/", path), ROOT / path)
    shutil.copytree("/etc/apt/apt.conf.d", ROOT / "etc/apt/apt.conf.d", dirs_exist_ok=True)
    (ROOT / "etc/apt/sources.list").write_text(f"deb {mirror()} bookworm main\n")
    for folder in ("proc", "dev"):
        run("mount", "--bind", pathlib.Path("/", folder), ROOT / folder)
    apt("update")


def copy_packages():
    """Copies the packages, and makes a later version of the server package for an upgrade."""
    for path in PACKAGES.glob("*.deb"):
        shutil.copy(path, ROOT)
    [server] = ROOT.glob("detent_*.deb")
    later = ROOT / "later"
    run("dpkg-deb", "-R", server, later)
    control = (later / "DEBIAN/control").read_text()
    (later / "DEBIAN/control").write_text(re.sub(r"(Version: \S+)-1\n", r"\1-2\n", control))
    run("dpkg-deb", "-b", later, ROOT / "later.deb")
    shutil.rmtree(later)
    return server.name, next(ROOT.glob("libdetent-dev_*.deb")).name


def user():
    """The line of the user detent in /etc/passwd, or None."""
    return next((line for line in (ROOT / "etc/passwd").read_text().splitlines()
                 if line.startswith("detent:")), None)


def unit_settings():
    """The [Service] section of the installed unit. The last value of a name counts."""
    text = (ROOT / "usr/lib/systemd/system/detent.service").read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


@contextlib.contextmanager
def server():
    """Starts the server as the unit does, waits until it is ready, and stops it with SIGTERM."""
    unit = unit_settings()
    state = f"/var/lib/{unit['StateDirectory']}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(ROOT / "run/notify"))
        (ROOT / "run/notify").chmod(0o666)
        notified.settimeout(30)
        program = unit["ExecStart"].replace("${STATE_DIRECTORY}", state)
        with subprocess.Popen(
                ["chroot", str(ROOT), "setpriv", f"--reuid={unit['User']}",
                 f"--regid={unit['Group']}", "--clear-groups", "--no-new-privs",
                 "--inh-caps=-all", "env", "-i", unit["Environment"], f"STATE_DIRECTORY={state}",
                 "NOTIFY_SOCKET=/run/notify", "sh", "-c", f"umask {unit['UMask']}; exec {program}"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                while b"READY=1" not in notified.recv(4096):
                    pass
                yield process
            finally:
                process.terminate()
                said = process.stdout.read()
        (ROOT / "run/notify").unlink()
    if process.returncode != 0 or "error" in said:
        raise AssertionError(f"the server ended with {process.returncode}:\n{said}")


def exists(path):
    return os.path.lexists(ROOT / path)


class Debian(unittest.TestCase):
    """The tests run in the order of their names. Each continues where the previous one ended."""

    @classmethod
    def setUpClass(cls):
        cls.begin = time.monotonic()
        make_root()
        cls.server_package, cls.library_package = copy_packages()
        print(f"a new Debian 12 stands after {time.monotonic() - cls.begin:.0f} s", flush=True)

    def setUp(self):
        self.addCleanup(lambda: print(f"{self.id().split('.')[-1]}: at "
                                      f"{time.monotonic() - self.begin:.0f} s", flush=True))

    def test_0_the_tarball_needs_no_package(self):
        [tarball] = PACKAGES.glob("detent-*.tar.gz")
        run("tar", "-C", ROOT / "opt", "-xzf", tarball)
        program = f"/opt/{tarball.name.removesuffix('.tar.gz')}/bin/detent"
        with subprocess.Popen(["chroot", str(ROOT), program, "serve", "--data", "/opt/data",
                               "--http", "127.0.0.1:0", "--beanstalk", "off"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                url = re.search(r"http://[\d.:]+\d", process.stdout.readline())[0]
                inside(program, "put", "mail", '"hello"', "--server", url)
                self.assertIn("hello", inside(program, "lease", "mail", "--server", url))
            finally:
                process.terminate()
        self.assertEqual(process.returncode, 0)

    def test_1_the_library_needs_no_other_package(self):
        before = inside("dpkg-query", "-W", "-f", "${Package}\\n")
        apt("install", f"./{self.library_package}")
        added = set(inside("dpkg-query", "-W", "-f", "${Package}\\n").split())
        self.assertEqual(added - set(before.split()), {"libdetent-dev"})
        shutil.copytree(SOURCE / "tests/package/consumer", ROOT / "consumer")
        inside("cmake", "-S", "/consumer", "-B", "/consumer/build", "-DWAY=find_package")
        inside("cmake", "--build", "/consumer/build")
        inside("/consumer/build/consumer")
        inside("sh", "-ec", "g++ -std=c++20 /consumer/main.cc $(pkg-config --cflags --libs detent) "
               "-o /consumer/by_pkg_config && /consumer/by_pkg_config")
        apt("purge", "libdetent-dev")
        for path in ("include", "lib", "lib/cmake", "lib/pkgconfig", "share/doc"):
            self.assertEqual(list((ROOT / "usr" / path).glob("*detent*")), [])

    def test_2_the_start_page_is_true_for_a_user_of_the_library(self):
        for name in LIBRARY_SOURCES:
            source, target = SOURCE / name, ROOT / "sources" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        page = (SOURCE / "docs/start.md").read_text(encoding="utf-8")
        section = page.split("## The library in five minutes")[1]
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        (ROOT / "sources/app").mkdir()
        for language, name in (("cmake", "CMakeLists.txt"), ("cpp", "main.cc")):
            [text] = [text for kind, text in blocks if kind == language]
            (ROOT / "sources/app" / name).write_text(text, encoding="utf-8")
        commands = "".join(text for kind, text in blocks if kind == "sh").replace("sudo ", "")
        self.assertIn("half a second", inside("sh", "-exc", f"cd /sources\n{commands}"))

    def test_3_installed_it_serves_under_its_user(self):
        apt("install", f"./{self.server_package}")
        identity = int(user().split(":")[2])
        self.assertLess(identity, 1000, "a user of the system")
        self.assertTrue(user().endswith("/nologin"), user())
        data = (ROOT / "var/lib/detent").stat()
        self.assertEqual((data.st_uid, data.st_mode & 0o777), (identity, 0o700))
        self.assertTrue(exists("etc/systemd/system/multi-user.target.wants/detent.service"))
        leave(CLONE_NEWNET)
        with socket.socket() as lo:
            fcntl.ioctl(lo, SIOCSIFFLAGS, struct.pack("16sH", b"lo", IFF_UP_RUNNING))
        with server() as process:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            self.assertRegex(status, rf"Uid:\s+{identity}\s+{identity}\s")
            inside("detent", "put", "later", '"kept"', "--delay", "1h", "--key", "k")
            inside("detent", "put", "mail", '"now"')
            leased = inside("detent", "lease", "mail", "--wait", "5s", "--json")
            inside("detent", "complete", re.search(r'"lease": ?"([^"]+)"', leased)[1])
        self.assertTrue(list((ROOT / "var/lib/detent").iterdir()))

    def expect_kept_task(self):
        self.assertIn("kept", inside("detent", "get", "--queue", "later", "--key", "k"))

    def test_4_an_upgrade_keeps_tasks_and_settings(self):
        with (ROOT / "etc/detent/detent.toml").open("a", encoding="utf-8") as settings:
            settings.write('host-name = "mine"\n')
        apt("install", "./later.deb")
        self.assertIn("-2", inside("dpkg-query", "-W", "-f", "${Version}", "detent"))
        self.assertIn("mine", (ROOT / "etc/detent/detent.toml").read_text())
        with server():
            self.expect_kept_task()

    def test_5_removed_it_leaves_tasks_settings_and_user(self):
        apt("remove", "detent")
        self.assertFalse(exists("usr/bin/detent"))
        self.assertTrue(exists("etc/detent/detent.toml") and exists("var/lib/detent"))
        self.assertIsNotNone(user())

    def test_6_installed_again_it_goes_on(self):
        apt("install", "./later.deb")
        self.assertIn("mine", (ROOT / "etc/detent/detent.toml").read_text())
        self.assertFalse(exists("etc/systemd/system/detent.service"), "still masked")
        with server():
            self.expect_kept_task()

    def test_7_purged_nothing_is_left(self):
        apt("purge", "detent")
        for path in ("usr/bin/detent", "etc/detent", "var/lib/detent", "usr/share/doc/detent",
                     "etc/systemd/system/detent.service",
                     "etc/systemd/system/multi-user.target.wants/detent.service"):
            self.assertFalse(exists(path), path)
        self.assertIsNone(user())

    def test_8_and_then_it_begins_anew(self):
        apt("install", f"./{self.server_package}")
        with server(), self.assertRaises(AssertionError):
            self.expect_kept_task()


if __name__ == "__main__":
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("this needs root and debootstrap (apt-get install debootstrap)")
    leave(CLONE_NEWNS)  # the mounts below end with this process
    run("mount", "--make-rprivate", "/")
    try:
        unittest.main(argv=sys.argv[:1], failfast=True, exit=True)
    finally:
        for mounted in ("proc", "dev"):
            subprocess.run(["umount", "-l", ROOT / mounted], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--one-file-system", ROOT], check=False)
