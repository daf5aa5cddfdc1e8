#!/usr/bin/env python3
"""Tests of tools/hooks/commit-msg, with real commits in a temporary repository, and of the part of
tools/setup that makes git call it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
BODY = "\n\nThe wheel skipped a slot. A test shows it."


class Repository(unittest.TestCase):
    """A repository whose first commit has a.cc and a.md, without settings of this machine."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("GIT_")}
        self.environment |= {"HOME": folder.name, "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true",
                             "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com",
                             "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com"}
        shutil.copytree(ROOT / "tools" / "hooks", self.root / "tools" / "hooks")
        self.git("init", "-q", "-b", "main")
        self.change("a.cc")
        self.change("a.md")
        self.git("commit", "-q", "-m", "Begin" + BODY)

    def run_git(self, *words, **environment):
        return subprocess.run(["git", *words], cwd=self.root, env=self.environment | environment,
                              capture_output=True, text=True, check=False)

    def git(self, *words, **environment):
        run = self.run_git(*words, **environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def change(self, name):
        with (self.root / name).open("a", encoding="utf-8") as file:
            file.write("a line\n")
        self.git("add", name)


class Hook(Repository):
    def setUp(self):
        super().setUp()
        self.git("config", "core.hooksPath", "tools/hooks")

    def assert_refused(self, reason, *words):
        before = self.git("rev-parse", "HEAD")
        run = self.run_git("commit", *words)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(reason, run.stderr)
        self.assertEqual(self.git("rev-parse", "HEAD"), before)

    def test_accepts_72_characters_and_a_body(self):
        for subject in ("wheel: fire each slot", "s" * 72, "→" * 72):
            with self.subTest(subject):
                self.change("a.cc")
                self.git("commit", "-m", subject + BODY)

    def test_refuses_73_characters(self):
        self.change("a.cc")
        self.assert_refused("The subject has 73 characters; at most 72 are allowed",
                            "-m", "s" * 73 + BODY)

    def test_refuses_a_second_line_that_git_joins_to_the_subject(self):
        self.change("a.cc")
        self.assert_refused("The subject has 101 characters", "-m", "s" * 50 + "\n" + "b" * 50)

    def test_refuses_a_period_at_the_end_of_the_subject(self):
        self.change("a.md")
        self.assert_refused("The subject ends with a period", "-m", "docs: fix a link.")

    def test_refuses_an_empty_body_if_code_changes(self):
        for body in ("", "\n\n", "\n\nSigned-off-by: A <a@example.com>"):
            with self.subTest(body):
                self.change("a.cc")
                self.change("a.md")
                self.assert_refused("The body is empty", "-m", "wheel: fire each slot" + body)

    def test_accepts_an_empty_body_if_only_pages_change(self):
        for name in ("a.md", "时间.md"):
            with self.subTest(name):
                self.change(name)
                self.git("commit", "-m", "docs: fix a link")

    def test_looks_only_at_the_files_of_the_commit(self):
        self.change("a.cc")
        self.change("a.md")
        self.git("commit", "-m", "docs: fix a link", "a.md")
        self.assert_refused("The body is empty", "-m", "wheel: fire each slot", "a.cc")

    def test_refuses_a_rename_of_code_to_a_page_without_a_body(self):
        self.git("mv", "a.cc", "b.md")
        self.assert_refused("The body is empty", "-m", "docs: rename a page")

    def test_refuses_to_take_the_body_away_by_amending(self):
        self.change("a.cc")
        self.git("commit", "-m", "wheel: fire each slot" + BODY)
        self.assert_refused("The body is empty", "--amend", "-m", "wheel: fire each slot")

    def test_checks_the_first_commit_of_a_repository(self):
        self.git("checkout", "-q", "--orphan", "other")
        run = self.run_git("commit", "-m", "Begin")
        self.assertIn("The body is empty", run.stderr)
        self.git("commit", "-m", "Begin" + BODY)

    def test_says_everything_that_is_wrong_and_how_to_go_on(self):
        self.change("a.cc")
        run = self.run_git("commit", "-m", "s" * 72 + ".")
        for part in ("has 73 characters", "ends with a period", "body is empty", "CONTRIBUTING.md"):
            self.assertIn(part, run.stderr)
        again = run.stderr.splitlines()[-1].strip()
        self.assertEqual(again, f'git commit --edit --file="{self.root}/.git/COMMIT_EDITMSG"')

    def test_does_not_count_comments_of_the_editor(self):
        self.change("a.cc")
        write = f"printf 'wheel: fire each slot\\n\\n# {'c' * 80}.\\n' >"
        run = self.run_git("commit", "--verbose", GIT_EDITOR=write)
        self.assertIn("The body is empty", run.stderr)
        write = f"printf 'wheel: fire each slot\\n\\nA body.\\n# {'c' * 80}.\\n' >"
        self.git("commit", GIT_EDITOR=write)

    def test_does_not_take_the_diff_of_verbose_for_a_body(self):
        self.change("a.cc")
        run = self.run_git("commit", "--verbose", GIT_EDITOR="sed -i '1s/^/wheel: fire/'")
        self.assertIn("The body is empty", run.stderr)

    def test_accepts_lines_with_a_hash_if_no_editor_is_open(self):
        self.change("a.cc")
        self.git("commit", "-m", "wheel: fire each slot\n\n#12 has the report.")

    def test_merges_pass(self):
        self.git("checkout", "-q", "-b", "b" * 80)
        self.change("b.cc")
        self.git("commit", "-m", "b: begin" + BODY)
        self.git("checkout", "-q", "main")
        self.git("merge", "--no-ff", "b" * 80)
        self.git("commit", "--amend", "--no-edit")
        self.git("reset", "-q", "--hard", "HEAD^")
        self.git("merge", "--no-ff", "-m", "s" * 80 + ".", "b" * 80)

    def test_reverts_and_fixups_pass(self):
        self.change("a.cc")
        self.git("commit", "-m", "s" * 72 + BODY)
        self.git("revert", "--no-edit", "HEAD")
        self.git("revert", "--no-edit", "HEAD")
        self.assertTrue(self.git("log", "-1", "--format=%s").startswith("Re"))
        for option in ("--fixup=HEAD", "--squash=HEAD", "--fixup=amend:HEAD"):
            self.change("a.cc")
            self.git("commit", option)


class Setup(Repository):
    """Runs tools/setup without packages, and with the library that it would fetch in place."""

    def setUp(self):
        super().setUp()
        shutil.copy(ROOT / "tools" / "setup", self.root / "tools" / "setup")
        (self.root / "dashboard/node_modules/uplot").mkdir(parents=True)
        lock = (ROOT / "dashboard/package-lock.json").read_text(encoding="utf-8")
        (self.root / "dashboard/package-lock.json").write_text(lock, encoding="utf-8")
        package = json.loads(lock)["packages"]["node_modules/uplot"]
        (self.root / "dashboard/node_modules/uplot/package.json").write_text(
            f'{{\n  "version": "{package["version"]}"\n}}\n', encoding="utf-8")

    def hooks_path_after_setup(self):
        run = subprocess.run(["sh", "tools/setup"], cwd=self.root, capture_output=True, text=True,
                             env=self.environment | {"DETENT_SKIP_SETUP": "1"}, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, "setup: DETENT_SKIP_SETUP=1: not looking at packages\n")
        return self.run_git("config", "core.hooksPath").stdout.strip()

    def test_makes_git_call_the_hook(self):
        self.assertEqual(self.hooks_path_after_setup(), "tools/hooks")
        self.change("a.cc")
        self.assertIn("The body is empty", self.run_git("commit", "-m", "wheel: fire").stderr)
        self.assertEqual(self.hooks_path_after_setup(), "tools/hooks", "a second time")

    def test_keeps_the_hooks_path_of_the_user(self):
        self.git("config", "--global", "core.hooksPath", "/elsewhere")
        self.assertEqual(self.hooks_path_after_setup(), "/elsewhere")

    def test_keeps_the_hooks_that_the_checkout_has(self):
        hook = self.root / ".git/hooks/pre-push"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\n", encoding="utf-8")
        self.assertEqual(self.hooks_path_after_setup(), "")

    def test_works_in_an_archive_without_git(self):
        shutil.rmtree(self.root / ".git")
        self.assertEqual(self.hooks_path_after_setup(), "")

    def test_does_not_change_a_repository_around_an_archive(self):
        inner = self.root / "archive"
        for folder in ("tools", "dashboard"):
            shutil.copytree(self.root / folder, inner / folder)
        subprocess.run(["sh", "tools/setup"], cwd=inner, check=True, capture_output=True,
                       env=self.environment | {"DETENT_SKIP_SETUP": "1"})
        self.assertEqual(self.run_git("config", "core.hooksPath").stdout, "")


if __name__ == "__main__":
    unittest.main()
