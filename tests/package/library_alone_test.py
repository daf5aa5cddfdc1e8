#!/usr/bin/env python3
"""Configures, builds, installs and uses the library alone (-DDETENT_SERVER=OFF).

The build finds only a compiler and CMake: PATH has nothing else, and Boost is hidden. Each header
that the build reads must be ours or belong to the compiler. The program that uses the library is
the one in docs/start.md.

The arguments are a work folder, the compiler, and optionally its launcher, such as ccache. The test
of the headers needs dpkg and is skipped without it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

WORK, COMPILER, LAUNCHER = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PREFIX, BUILD = WORK / "prefix", WORK / "build"
TOOLS = ("cmake", "ninja", "as", "ld", "ar", "ranlib", "nm", "objcopy", "objdump", "strip")
# Packages that belong to g++ on Debian.
OF_THE_COMPILER = r"libc6-dev|linux-libc-dev|libgcc-\d+-dev|libstdc\+\+-\d+-dev|libcrypt-dev"


def run(*command, **settings):
    environment = {"PATH": str(WORK / "bin")} | {
        name: value for name, value in os.environ.items() if "CCACHE" in name or name == "HOME"}
    process = subprocess.run([str(word) for word in command], env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                             **settings)
    if process.returncode != 0:
        raise AssertionError(f"{command} failed ({process.returncode}):\n{process.stdout}")
    return process.stdout


def configure(source, build, *settings):
    launcher = shutil.which(LAUNCHER[0]) if LAUNCHER else ""
    return run("cmake", "-S", source, "-B", build, "-G", "Ninja", *settings,
               f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}")


def headers_read():
    """The headers of the whole build that are not ours, from the dependency files of ninja."""
    lines = set(re.findall(r"^ +(\S+)$", run("ninja", "-C", BUILD, "-t", "deps"), re.MULTILINE))
    paths = {(BUILD / line).resolve() for line in lines}
    return {path for path in paths if SOURCE not in path.parents}


class LibraryAlone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        (WORK / "bin").mkdir(parents=True)
        for tool in TOOLS:
            (WORK / "bin" / tool).symlink_to(shutil.which(tool))
        configure(SOURCE, BUILD, "-DDETENT_SERVER=OFF", "-DCMAKE_BUILD_TYPE=Debug",
                  "-DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON")
        run("cmake", "--build", BUILD)
        run("cmake", "--install", BUILD, "--prefix", PREFIX)

    def test_the_program_of_the_start_page_finds_it_and_runs(self):
        page = (SOURCE / "docs/start.md").read_text(encoding="utf-8")
        app = WORK / "app"
        app.mkdir()
        for name, language in (("CMakeLists.txt", "cmake"), ("main.cc", "cpp")):
            [text] = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
            (app / name).write_text(text, encoding="utf-8")
        configure(app, app / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}")
        run("cmake", "--build", app / "build")
        self.assertEqual(run(app / "build/app"), "a quarter of a second\nhalf a second\n")
        needed = run(shutil.which("readelf"), "-d", app / "build/app")
        self.assertLessEqual(set(re.findall(r"\[lib([a-z_+]+)[.-]", needed)),
                             {"stdc++", "gcc_s", "c", "m"})

    def test_a_component_that_it_has_not_is_named(self):
        app = WORK / "durable"
        app.mkdir()
        (app / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES CXX)\n"
            "find_package(detent REQUIRED COMPONENTS durable)\n", encoding="utf-8")
        with self.assertRaisesRegex(AssertionError, "(?s)no component 'durable'.*SERVER=OFF"):
            configure(app, app / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}")

    def test_it_read_no_header_but_its_own_and_the_compilers(self):
        if shutil.which("dpkg-query") is None:
            self.skipTest("dpkg-query, which knows whose a header is, is not installed")
        read = headers_read()
        self.assertGreater(len(read), 50)
        owned = run(shutil.which("dpkg-query"), "-S", *read)
        foreign = [line for line in owned.splitlines()
                   if not re.match(rf"({OF_THE_COMPILER})(:\w+)?: ", line)]
        self.assertEqual(foreign, [])

    def test_it_builds_the_library_only(self):
        archives = {path.name for path in BUILD.rglob("*.a")}
        self.assertEqual(archives, {f"libdetent_{layer}.a"
                                    for layer in ("base", "calendar", "runtime")})
        self.assertFalse((PREFIX / "bin").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
