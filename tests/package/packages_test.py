#!/usr/bin/env python3
"""Checks the packages that CPack makes of a build tree: files, dependencies, and lintian.

Also checks that CMake and pkg-config find the unpacked library in any folder, and that the program
of the tarball serves. fresh_debian_test.py tests the installation.

The arguments are the build tree, cpack, a work folder, and the compiler of the build tree.
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import unittest

BUILD, CPACK, WORK, COMPILER = sys.argv[1:5]
WORK = pathlib.Path(WORK)
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent

SERVER_FILES = {
    "etc/detent/detent.toml", "usr/bin/detent", "usr/lib/systemd/system/detent.service",
    "usr/lib/systemd/system/detent-backup.service", "usr/lib/systemd/system/detent-backup.timer",
    "usr/share/bash-completion/completions/detent", "usr/share/zsh/site-functions/_detent",
    "usr/share/fish/vendor_completions.d/detent.fish", "usr/share/man/man1/detent.1.gz",
    *(f"usr/share/doc/detent/{file}"
      for file in ("changelog.Debian.gz", "changelog.gz", "copyright", "detent.rules.yml",
                   "grafana/detent.json"))}
LIBRARY_PLACES = re.compile(
    r"usr/(include/detent/([a-z]+/)?[a-z0-9_]+\.h|lib/libdetent_[a-z_]+\.a|"
    r"lib/pkgconfig/[a-z-]+\.pc|lib/cmake/detent/[a-z-]+\.cmake|"
    r"share/doc/libdetent-dev/(changelog(\.Debian)?\.gz|copyright))")
PROGRAM_FILES = {"bin/detent", "share/man/man1/detent.1", "share/doc/detent/LICENSE",
                 "share/doc/detent/detent.toml", "share/doc/detent/detent.rules.yml",
                 "share/doc/detent/detent.spdx.json",
                 "share/doc/detent/grafana/detent.json", "share/bash-completion/completions/detent",
                 "share/zsh/site-functions/_detent",
                 "share/fish/vendor_completions.d/detent.fish"}
LIBRARIES, LICENSES = "lib/detent/", "share/doc/detent/licenses/"
GLIBC = re.compile(r"(ld-linux-[\w-]+|lib(c|m|mvec|pthread|dl|rt|resolv|anl))\.so\.\d")


def run(*command, **settings):
    """Runs a command. If it fails, the error contains its output."""
    settings.setdefault("env", os.environ)
    process = subprocess.run([str(word) for word in command], text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **settings)
    if process.returncode != 0:
        raise AssertionError(f"{command} failed ({process.returncode}):\n{process.stdout}")
    return process.stdout


class Package:
    """A .deb package: its fields, its maintainer scripts, and its files unpacked under `root`."""

    def __init__(self, name):
        [self.path] = (WORK / "packages").glob(f"{name}_*.deb")
        self.root = WORK / name
        run("dpkg-deb", "-R", self.path, self.root)
        self.control = self.root / "DEBIAN"

    def field(self, name):
        return run("dpkg-deb", "-f", self.path, name).strip()

    def files(self):
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")
                if not path.is_dir() and self.control not in path.parents}

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8")


shutil.rmtree(WORK, ignore_errors=True)
run(CPACK, "--config", f"{BUILD}/CPackConfig.cmake", "-B", WORK / "packages")
SERVER, LIBRARY = Package("detent"), Package("libdetent-dev")


class Packages(unittest.TestCase):
    def test_the_server_holds_these_files_and_no_other(self):
        self.assertEqual(SERVER.files(), SERVER_FILES)

    def test_the_library_holds_headers_archives_and_what_finds_them(self):
        files = LIBRARY.files()
        self.assertEqual([file for file in files if not LIBRARY_PLACES.fullmatch(file)], [])
        headers = {f"usr/{path.relative_to(SOURCE)}"
                   for path in (SOURCE / "include").rglob("*.h")}
        of_the_shared_library = {"usr/include/detent/detent.h"}
        self.assertEqual(headers - files, of_the_shared_library,
                         "public headers that no layer installs")

    def test_all_belongs_to_root_and_nobody_else_may_write(self):
        for package in (SERVER, LIBRARY):
            for line in run("dpkg-deb", "-c", package.path).splitlines():
                self.assertRegex(line, r"^[d-]rw[x-]r-[x-]r-[x-] root/root ")

    def test_fields(self):
        version = re.search(r"detent VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        for package in (SERVER, LIBRARY):
            self.assertEqual(package.field("Version"), f"{version}-1")
            self.assertEqual(package.field("Architecture"),
                             run("dpkg", "--print-architecture").strip())
            self.assertGreater(len(package.field("Description").splitlines()), 3)
        depends = SERVER.field("Depends")
        for name in ("adduser", "librocksdb7.8", "libpq5", "libssl3", "libstdc++6"):
            self.assertRegex(depends, rf"(^|, ){re.escape(name)}\b")
        self.assertNotIn("-dev", depends)
        self.assertEqual(LIBRARY.field("Depends"), "", "the library needs a compiler only")

    def test_lintian_finds_no_error(self):
        if shutil.which("lintian") is None:
            self.skipTest("lintian is not installed")
        run("lintian", "--fail-on", "error", SERVER.path, LIBRARY.path)

    def test_the_file_of_settings_is_the_administrators(self):
        self.assertEqual(SERVER.text("DEBIAN/conffiles").split(), ["/etc/detent/detent.toml"])
        run(SERVER.root / "usr/bin/detent", "serve", "--print-config", "--config",
            SERVER.root / "etc/detent/detent.toml")

    def test_the_unit_starts_the_installed_program_under_the_package_user(self):
        unit = SERVER.text("usr/lib/systemd/system/detent.service")
        self.assertIn("\nExecStart=/usr/bin/detent serve ", unit)
        self.assertIn("\nUser=detent\nGroup=detent\n", unit)
        self.assertNotRegex(unit, "DynamicUser=|@DETENT")
        backup = SERVER.text("usr/lib/systemd/system/detent-backup.service")
        self.assertIn("\nExecStart=/usr/bin/detent backup ", backup)

    def test_scripts_are_sound(self):
        for script in ("postinst", "prerm", "postrm"):
            run("sh", "-n", SERVER.control / script)
        self.assertFalse((LIBRARY.control / "postinst").exists())

    def test_what_is_read_holds_what_it_should(self):
        page = (SOURCE / "docs/reference/detent.1").read_bytes()
        packed = SERVER.root / "usr/share/man/man1/detent.1.gz"
        self.assertEqual(gzip.decompress(packed.read_bytes()), page)
        for package, name in ((SERVER, "detent"), (LIBRARY, "libdetent-dev")):
            folder = package.root / "usr/share/doc" / name
            self.assertIn(b"# Changelog",
                          gzip.decompress((folder / "changelog.gz").read_bytes()))
            self.assertIn("License: Apache-2.0", (folder / "copyright").read_text())
        for completion in SERVER_FILES:
            if "complet" in completion or "zsh" in completion:
                self.assertGreater(len(SERVER.text(completion)), 1000, completion)

    def test_the_program_is_stripped_and_looks_for_libraries_where_the_system_does(self):
        headers = run("readelf", "-dS", SERVER.root / "usr/bin/detent")
        self.assertNotRegex(headers, r"RPATH|RUNPATH|\.symtab|\.debug")


class Consumers(unittest.TestCase):
    """Uses the unpacked package in another folder. Its files must not name the build folder."""

    prefix = LIBRARY.root / "usr"

    def test_no_path_of_the_build_is_left(self):
        for path in [*self.prefix.rglob("*.cmake"), *self.prefix.rglob("*.pc")]:
            text = path.read_text(encoding="utf-8")
            self.assertNotIn(str(SOURCE), text, path)
            self.assertNotIn(BUILD, text, path)

    def test_cmake(self):
        build = WORK / "consumer"
        run("cmake", "-S", HERE / "consumer", "-B", build, "-G", "Ninja", "-DWAY=find_package",
            "-DPARTS=asio;durable", "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build, "--target", "consumer", "plugin", "host")
        run(build / "consumer")

    def compile(self, sources, package, program):
        environment = os.environ | {"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", package, env=environment).split()
        run(COMPILER, "-std=c++20", *sources, "-o", program, *flags)
        run(program)

    def test_pkg_config(self):
        self.compile([HERE / "consumer/main.cc"], "detent", WORK / "by_pkg_config")

    def test_pkg_config_durable(self):
        self.compile([SOURCE / "examples/13_durable_scheduler.cc"], "detent-durable",
                     WORK / "durable_by_pkg_config")

    def test_pkg_config_client(self):
        self.compile([HERE / "consumer/main.cc", HERE / "consumer/client.cc"], "detent-client",
                     WORK / "client_by_pkg_config")


class Tarball(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        [path] = (WORK / "packages").glob("detent-*.tar.gz")
        cls.folder = WORK / path.name.removesuffix(".tar.gz")
        with tarfile.open(path) as tarball:
            tarball.extractall(WORK)
        cls.files = {str(file.relative_to(cls.folder)) for file in cls.folder.rglob("*")
                     if file.is_file()}

    def names(self, place):
        return {file.removeprefix(place) for file in self.files if file.startswith(place)}

    def test_it_holds_these_files_the_libraries_and_their_licenses(self):
        self.assertEqual({file for file in self.files
                          if not file.startswith((LIBRARIES, LICENSES))}, PROGRAM_FILES)
        depends = {name.split()[0] for name in SERVER.field("Depends").split(", ")}
        licenses = tuple(self.names(LICENSES))
        # A package can have a longer name that another package provides: libspdlog1.10-fmt9.
        self.assertEqual({name for name in depends if not name.startswith(licenses)},
                         {"adduser", "libc6", "tzdata"})

    def test_the_program_needs_only_glibc(self):
        libraries = self.names(LIBRARIES)
        for file in ("bin/detent", *(LIBRARIES + name for name in libraries)):
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", self.folder / file))
            self.assertTrue(needed, file)
            for name in needed:
                self.assertTrue(name in libraries or GLIBC.fullmatch(name), f"{file}: {name}")

    def test_the_program_finds_the_libraries_beside_it(self):
        loaded = re.findall(r"(\S+) => (\S+) \(", run("ldd", self.folder / "bin/detent"))
        for name, path in loaded:
            if not GLIBC.fullmatch(name):
                self.assertTrue(path.startswith(str(self.folder)), path)
        headers = run("readelf", "-dS", self.folder / "bin/detent")
        self.assertNotRegex(headers, r"RUNPATH|\.symtab|\.debug")

    def test_its_page_names_the_glibc_that_it_needs(self):
        needed = run("readelf", "-V", self.folder / "bin/detent",
                     *(self.folder / LIBRARIES / name for name in self.names(LIBRARIES)))
        versions = {tuple(map(int, version.split(".")))
                    for version in re.findall(r"GLIBC_([\d.]+)", needed)}
        page = (SOURCE / "docs/operating/install.md").read_text()
        self.assertIn("glibc " + ".".join(map(str, max(versions))), page)

    def test_it_serves(self):
        program = self.folder / "bin/detent"
        with subprocess.Popen([program, "serve", "--data", WORK / "data", "--http", "127.0.0.1:0",
                               "--beanstalk", "off"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as server:
            try:
                url = re.search(r"http://[\d.:]+", server.stdout.readline())[0]
                run(program, "put", "mail", '"hello"', "--server", url)
                self.assertIn("hello", run(program, "lease", "mail", "--server", url))
            finally:
                server.terminate()
        self.assertEqual(server.returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
