#!/usr/bin/env python3
"""Checks the container image that tools/image makes, and runs it with runc.

umoci unpacks the image and translates its settings for runc, as container runtimes do. The
container has a read-only root, no privileges and its own network. runc needs root: for other users,
only the tests of the files run.

The arguments are the build tree, cpack, and a work folder.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from child_programs import wait_until  # needs the path above

BUILD, CPACK, WORK = sys.argv[1:4]
WORK = pathlib.Path(WORK)
TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/image"
BUNDLE, DATA, TOKENS = WORK / "bundle", WORK / "data", WORK / "tokens.toml"
USER = 7070
NAME = f"detent-image-test-{os.getpid()}"
RUNC = ["runc", "--root", str(WORK / "runc")]


def run(*command, **settings):
    """Runs a command. If it fails, the error contains its output."""
    process = subprocess.run([str(word) for word in command], text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **settings)
    if process.returncode != 0:
        raise AssertionError(f"{command} failed ({process.returncode}):\n{process.stdout}")
    return process.stdout


def make_image():
    shutil.rmtree(WORK, ignore_errors=True)
    run(CPACK, "--config", f"{BUILD}/CPackConfig.cmake", "-G", "TGZ", "-B", WORK / "packages")
    [tarball] = (WORK / "packages").glob("*.tar.gz")
    for name in ("image.tar", "again.tar"):
        run(TOOL, tarball, WORK / name, env=os.environ | {"SOURCE_DATE_EPOCH": "86400"})
    with tarfile.open(WORK / "image.tar") as image:
        image.extractall(WORK / "layout")


def layout(path):
    return json.loads((WORK / "layout" / path).read_text(encoding="utf-8"))


def blob(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


make_image()
[MANIFEST] = layout("index.json")["manifests"]
IMAGE = layout(blob(MANIFEST))
CONFIG = layout(blob(IMAGE["config"]))


class Files(unittest.TestCase):
    def test_the_same_input_gives_the_same_bytes(self):
        self.assertEqual((WORK / "image.tar").read_bytes(), (WORK / "again.tar").read_bytes())
        self.assertEqual(CONFIG["created"], "1970-01-02T00:00:00Z")

    def test_each_blob_has_its_digest_and_size(self):
        for descriptor in (MANIFEST, IMAGE["config"], *IMAGE["layers"]):
            data = (WORK / "layout" / blob(descriptor)).read_bytes()
            self.assertEqual(len(data), descriptor["size"])
            self.assertEqual(f"sha256:{hashlib.sha256(data).hexdigest()}", descriptor["digest"])

    def test_docker_load_finds_the_same_blobs(self):
        [entry] = layout("manifest.json")
        self.assertEqual(entry["Config"], blob(IMAGE["config"]))
        self.assertEqual(entry["Layers"], [blob(layer) for layer in IMAGE["layers"]])
        self.assertEqual(entry["RepoTags"],
                         [MANIFEST["annotations"]["org.opencontainers.image.ref.name"]])

    def test_it_has_the_program_and_no_shell(self):
        with tarfile.open(WORK / "layout" / blob(IMAGE["layers"][0])) as layer:
            members = {member.name: member for member in layer}
        programs = [name for name, member in members.items()
                    if member.isfile() and member.mode & 0o111 and ".so" not in name]
        self.assertEqual(programs, ["usr/local/bin/detent"])
        for name, member in members.items():
            owner = USER if name == "data" else 0
            self.assertEqual((member.uid, member.gid), (owner, owner), name)
            if not member.issym() and name != "tmp":
                self.assertEqual(member.mode & 0o022, 0, name)
        for name in ("etc/ssl/certs/ca-certificates.crt", "etc/os-release",
                     "usr/share/zoneinfo/Asia/Shanghai", "var/lib/dpkg/status.d/libssl3",
                     "usr/local/share/doc/detent/licenses/libssl3",
                     "usr/share/doc/libc6/copyright"):
            self.assertTrue(members[name].isfile(), name)


@unittest.skipIf(os.geteuid() != 0, "runc needs root")
class Container(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reference = MANIFEST["annotations"]["org.opencontainers.image.ref.name"]
        run("umoci", "unpack", "--image", f"{WORK / 'layout'}:{reference}", BUNDLE)
        cls.settings = json.loads((BUNDLE / "config.json").read_text(encoding="utf-8"))
        DATA.mkdir(mode=0o700)
        os.chown(DATA, USER, USER)
        made = cls.output("token", "new", "--name", "ops", "--scope", "admin")
        cls.token = re.search(r"dt_[\w-]+", made)[0]
        TOKENS.write_text("".join(line for line in made.splitlines(True) if line[0] != "#"))
        TOKENS.chmod(0o640)
        os.chown(TOKENS, 0, USER)

    @classmethod
    def configure(cls, arguments, tokens):
        """Writes the settings of umoci for runc, with what a careful administrator adds."""
        settings = json.loads(json.dumps(cls.settings))
        settings["process"].update(terminal=False, capabilities={}, rlimits=[],
                                   args=CONFIG["config"]["Entrypoint"] + arguments)
        settings["root"]["readonly"] = True
        settings["mounts"] = [mount for mount in settings["mounts"]
                              if mount["destination"] not in ("/data", "/sys", "/sys/fs/cgroup")]
        for source, target in ((DATA, "/data"), *([(TOKENS, "/etc/detent/tokens.toml")]
                                                  if tokens else [])):
            settings["mounts"].append({"destination": target, "source": str(source),
                                       "type": "bind", "options": ["bind"]})
        settings["linux"].pop("resources", None)
        (BUNDLE / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        return [*RUNC, "run", "--bundle", str(BUNDLE), NAME]

    @classmethod
    def finish(cls, *arguments, tokens=False):
        """Runs the program in a new container until it ends."""
        return subprocess.run(cls.configure(list(arguments), tokens), text=True, check=False,
                              capture_output=True, timeout=30)

    @classmethod
    def output(cls, *arguments):
        ended = cls.finish(*arguments)
        if ended.returncode != 0:
            raise AssertionError(f"{arguments}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    @contextlib.contextmanager
    def server(self):
        """Runs the command of the image, waits until it is ready, and stops it."""
        with subprocess.Popen(self.configure(CONFIG["config"]["Cmd"], tokens=True), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                ready = process.stdout.readline()
                if "ready at http://0.0.0.0:7070" not in ready:
                    self.fail(ready + process.stderr.read())
                yield
            finally:
                run(*RUNC, "kill", NAME, CONFIG["config"]["StopSignal"])
                _, log = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, log)
        self.assertIn("info stopped", log)

    def inside(self, *command):
        return run(*RUNC, "exec", "--env", f"DETENT_TOKEN={self.token}", NAME, *command)

    def test_it_serves_under_its_user_and_keeps_tasks(self):
        check = CONFIG["config"]["Healthcheck"]["Test"]
        self.assertEqual(check[0], "CMD")
        with self.server():
            run(*RUNC, "exec", NAME, *check[1:])
            self.inside("detent", "put", "mail", '"kept"', "--delay", "1h", "--key", "k")
            with self.assertRaisesRegex(AssertionError, "token"):
                run(*RUNC, "exec", NAME, "detent", "put", "mail", "1")
            state = json.loads(run(*RUNC, "state", NAME))
            status = pathlib.Path(f"/proc/{state['pid']}/status").read_text()
            self.assertRegex(status, rf"Uid:\t{USER}\t{USER}\t")
            self.assertRegex(status, r"CapEff:\t0+\n")
        with self.server():
            self.assertIn("kept", self.inside("detent", "get", "--queue", "mail", "--key", "k"))

    def test_a_signal_from_outside_reloads_the_tokens(self):
        def knows_the_token():
            asked = subprocess.run([*RUNC, "exec", "--env", f"DETENT_TOKEN={token}", NAME, "detent",
                                    "queues"], check=False, capture_output=True)
            return asked.returncode == 0

        with self.server():
            made = self.inside("detent", "token", "new", "--name", "late", "--scope", "read")
            token = re.search(r"dt_[\w-]+", made)[0]
            # A new file in its place would stay invisible: the container has mounted this file.
            with TOKENS.open("a", encoding="utf-8") as file:
                file.write(made)
            self.assertFalse(knows_the_token())
            run(*RUNC, "kill", NAME, "HUP")
            wait_until(knows_the_token, 30, "the server knows the new token")

    def test_without_tokens_it_does_not_start(self):
        ended = self.finish(*CONFIG["config"]["Cmd"])
        self.assertEqual(ended.returncode, 2)
        self.assertIn("/etc/detent/tokens.toml", ended.stderr)

    def test_the_health_check_fails_without_a_server(self):
        self.assertEqual(self.finish(*CONFIG["config"]["Healthcheck"]["Test"][2:]).returncode, 1)

    def test_time_zones_are_there(self):
        self.assertIn("+08:00", self.output("cron", "next", "0 9 * * *", "--zone",
                                            "Asia/Shanghai", "--count", "1"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
