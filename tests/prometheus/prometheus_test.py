#!/usr/bin/env python3
"""Tests the metrics of the real program with a real Prometheus.

Prometheus must scrape every metric with the value that follows from the work before. It must accept
the alert rules and the Grafana dashboard under packaging/, and these may use only metrics that the
program has.

Arguments: the program and the folder of the sources.
"""

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

PROGRAM, SOURCE = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(SOURCE / "tests/cluster"))
from stand import Stand  # noqa: E402

RULES = SOURCE / "packaging/prometheus/detent.rules.yml"
BOARD = SOURCE / "packaging/grafana/detent.json"
METRIC = re.compile(r"\b(?:detent|process)_\w+")
RECORDED = re.findall(r"record: (\S+)", RULES.read_text())  # the names of the recorded figures

# All metrics of a server. Each has a query that has a result only if the metric is right after
# work(). Other systems rely on these names.
SANE = {
    "detent_tasks": 'detent_tasks{queue="mail",state="ready"} == 3',
    "detent_oldest_ready_age_seconds": 'detent_oldest_ready_age_seconds{queue="mail"} < 100',
    "detent_queue_events_total":
        'detent_queue_events_total{queue="mail",event="completed"} == 5 and ignoring(queue, event)'
        ' detent_queue_events_total{queue="once",event="lease_expired"} == 1',
    "detent_window_tasks": "detent_window_tasks == 3",
    "detent_window_limit_tasks": "detent_window_limit_tasks > 1e5",
    "detent_memory_budget_bytes": "detent_memory_budget_bytes > 1e8",
    "detent_waiting_workers": "detent_waiting_workers == 0",
    "detent_schedules": "detent_schedules == 1",
    "detent_scheduled_total": "detent_scheduled_total == 11",
    "detent_fired_total": "detent_fired_total == 10",
    "detent_leased_total": "detent_leased_total == 8",
    "detent_completed_total": "detent_completed_total == 5",
    "detent_failed_total": "detent_failed_total == 1",
    "detent_cancelled_total": "detent_cancelled_total == 1",
    "detent_dead_total": "detent_dead_total == 2",
    "detent_lease_expired_total": "detent_lease_expired_total == 1",
    "detent_lease_conflicts_total": "detent_lease_conflicts_total == 1",
    "detent_quarantined_total": "detent_quarantined_total == 0",
    "detent_orphans_total": "detent_orphans_total == 0",
    "detent_lateness_seconds": "detent_lateness_seconds_count == 10"
                               " and detent_lateness_seconds_sum < 100"
                               ' and ignoring(le) detent_lateness_seconds_bucket{le="+Inf"} == 10',
    "detent_late_seconds_total": "sum by (job) (detent_late_seconds_total) < 100"
                                 " and count by (job) (detent_late_seconds_total) == 4",
    "detent_late_tasks_total": 'sum by (job) (detent_late_tasks_total{cause!="worker"}) == 0'
                               " and count by (job) (detent_late_tasks_total) == 4",
    "detent_store_commit_seconds": "detent_store_commit_seconds_count > 10"
                                   " and detent_store_commit_seconds_sum > 0",
    "detent_store_batch_size": "detent_store_batch_size_sum == 19"
                               " and detent_store_batch_size_count > 10",
    "detent_http_request_seconds": 'detent_http_request_seconds_count{route="/v1/tasks"} == 11',
    "detent_http_request_duration_seconds":
        'detent_http_request_duration_seconds_count{route="/v1/tasks",code="201"} == 11',
    "detent_store_up": "detent_store_up == 1",
    "detent_refuses_tasks": "detent_refuses_tasks == 0",
    "process_resident_memory_bytes": "process_resident_memory_bytes > 1e6",
    "process_cpu_seconds_total": "process_cpu_seconds_total > 0",
    "process_start_time_seconds": "abs(process_start_time_seconds - time()) < 600",
    "process_open_fds": "process_open_fds > 5",
    "process_max_fds": "process_max_fds > process_open_fds",
    "detent_shard_epoch": "detent_shard_epoch == 1",
    "detent_build_info": 'detent_build_info{version=~"[0-9.]+"} == 1',
    "detent_webhook_deliveries_total":
        "sum by (job) (detent_webhook_deliveries_total) == 0 and"
        " count by (job) (detent_webhook_deliveries_total) == 8",
    "detent_webhook_calls": "detent_webhook_calls == 0",
    "detent_webhook_waiting": "detent_webhook_waiting == 0",
}
# Only a single server has the first metrics, and only a node of a cluster has the second.
ALONE = {"detent_data_free_bytes": "detent_data_free_bytes > 0",
         "detent_data_min_free_bytes": "detent_data_min_free_bytes == 256 * 1024 * 1024",
         "detent_backup_last_success_timestamp_seconds":
             "detent_backup_last_success_timestamp_seconds > time() - 3600",
         "detent_backup_last_bytes": "detent_backup_last_bytes > 1000",
         "detent_backup_last_copied_bytes": "detent_backup_last_copied_bytes > 1000"}
NODE = {"detent_cluster_nodes"}
# Only a server with an external scheduler, with sinks, or with traces has these metrics. The second
# server of this test has all three.
EXTERNAL = {
    "detent_trace_spans_total":
        "sum by (job) (detent_trace_spans_total) == 0 and"
        " count by (job) (detent_trace_spans_total) == 3",
    "detent_external_tasks": "detent_external_tasks == 0",
    "detent_external_handed_over_total": "detent_external_handed_over_total == 0",
    "detent_external_handed_back_total": "detent_external_handed_back_total == 0",
    "detent_external_errors_total": "detent_external_errors_total == 0",
    "detent_external_damaged_total": "detent_external_damaged_total == 0",
    "detent_external_lost": "detent_external_lost == 0",
    "detent_sink_deliveries_total":
        "sum by (job) (detent_sink_deliveries_total) == 0 and"
        " count by (job) (detent_sink_deliveries_total) == 3",
    "detent_sink_under_way": "detent_sink_under_way == 0",
    "detent_sink_up": "detent_sink_up == 1",
}
ALL = set(SANE) | set(ALONE) | NODE | set(EXTERNAL)


def http(url, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"},
                                     method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read().decode()


def until(look, what):
    """Calls `look` until it returns a true value, and returns this value. Fails after a minute."""
    give_up = time.monotonic() + 60
    while not (found := look()):
        if time.monotonic() > give_up:
            raise AssertionError(f"not within a minute: {what}")
        select.select([], [], [], 0.05)
    return found


class Process:
    """A program that prints its address on one of its outputs."""

    def __init__(self, folder, command, says):
        self.log = Path(tempfile.mkdtemp(dir=folder)) / "log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        match = until(lambda: re.search(says, self.log.read_text()) or self.ended(), command[0])
        self.address = match[1]

    def ended(self):
        if self.process.poll() is not None:
            raise AssertionError(self.log.read_text())

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Server(Process):
    def __init__(self, folder, *flags):
        super().__init__(folder, [
            PROGRAM, "serve", "--data", tempfile.mkdtemp(dir=folder), "--http", "127.0.0.1:0",
            "--beanstalk", "off", *flags], r"http://([\d.:]+)")

    def call(self, method, path, body=None):
        return json.loads(http(f"http://{self.address}{path}", method, body))

    def metrics(self):
        return http(f"http://{self.address}/metrics")

    def back_up(self, folder):
        subprocess.run([PROGRAM, "backup", tempfile.mkdtemp(dir=folder), "--server",
                        f"http://{self.address}"], check=True, stdout=subprocess.DEVNULL)


class Prometheus(Process):
    """A Prometheus that scrapes its targets ten times per second and has the alert rules."""

    def __init__(self, folder, **jobs):
        config = {"global": {"scrape_interval": "100ms", "evaluation_interval": "1s"},
                  "rule_files": [str(RULES)],
                  "scrape_configs": [
                      {"job_name": job, "static_configs": [{"targets": [server.address]}]}
                      for job, server in jobs.items()]}
        file = Path(folder) / "prometheus.yml"
        file.write_text(json.dumps(config))  # JSON is YAML
        super().__init__(folder, [
            "prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder}/tsdb",
            "--web.listen-address=127.0.0.1:0"], r'"Listening on" address=([\d.:]+)')

    def query(self, expression):
        """Returns the data of the answer. Raises AssertionError if the expression is invalid."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            answer = http(f"http://{self.address}/api/v1/query?{query}")
        except urllib.error.HTTPError as error:
            if error.code == 503:  # Prometheus is starting
                return {"result": []}
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        return json.loads(answer)["data"]

    def wait_for(self, expression, job=None):
        """Waits until the expression has a result; with `job`, a result of this job."""
        def answered():
            found = self.query(expression)["result"]
            return [one for one in found if job in (None, one["metric"].get("job"))]
        return until(answered, expression)


def work(server):
    """Does the work that SANE expects: ten due tasks and one later task; eight are leased, and
    three are ready at the end."""
    mail = {"queue": "mail", "payload": 1}
    for _ in range(8):
        server.call("POST", "/v1/tasks", mail)
    for _ in range(2):
        server.call("POST", "/v1/tasks", {"queue": "once", "payload": 1, "max_attempts": 1})
    later = server.call("POST", "/v1/tasks", {**mail, "delay": "1h"})
    http(f"http://{server.address}/v1/tasks/{later['id']}", "DELETE")
    server.call("PUT", "/v1/schedules/yearly", {"cron": "0 0 1 1 *", "queue": "mail",
                                                "payload": 1})

    def lease(queue, **more):
        tasks = server.call("POST", f"/v1/queues/{queue}/lease", {"max": 6, **more})["tasks"]
        return [task["lease"] for task in tasks]

    leases = lease("mail")
    server.call("POST", "/v1/leases/complete", {"leases": leases[:5]})
    server.call("POST", "/v1/leases/complete", {"leases": leases[:1]})  # a conflict
    server.call("POST", "/v1/leases/release", {"leases": leases[5:]})
    server.call("POST", "/v1/leases/fail", {"leases": lease("once", max=1), "error": "no"})
    lease("once", visibility_timeout="1ms")  # this lease expires
    until(lambda: server.call("GET", "/v1/stats")["tasks"]["dead"] == 2, "the lease expires")


def names_in(metrics):
    """Returns the names of the metric families."""
    return {match[1] for match in re.finditer(r"^# TYPE (\w+)", metrics, re.M)}


def series(names):
    return names | {name + end for name in names for end in ("_bucket", "_sum", "_count")}


def filled_in(expression):
    """Returns the expression of a panel with the variables replaced."""
    for variable, value in {"$job": "detent", "$instance": ".*", "$queue": ".*",
                            "$__rate_interval": "1m"}.items():
        expression = expression.replace(variable, value)
    return expression


def metrics_in(text):
    """Returns the names of the metrics that a text uses, without the recorded figures."""
    for name in RECORDED:
        text = text.replace(name, "")
    return set(METRIC.findall(text))


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.server = cls.started(Server(folder.name))
        sinks = Path(folder.name) / "sinks.txt"
        sinks.write_text("mail redis://127.0.0.1:1/mail\n")
        sinks.chmod(0o600)
        far = cls.started(Server(folder.name))  # the external scheduler; its metrics are not used
        other = cls.started(Server(folder.name, "--external", f"http://{far.address}",
                                   "--sinks", str(sinks), "--otlp-endpoint",
                                   "http://127.0.0.1:1"))
        cls.other = other
        work(cls.server)
        for server in (cls.server, other):
            server.back_up(folder.name)
        cls.prometheus = cls.started(
            Prometheus(folder.name, detent=cls.server, detent_external=other))

    @classmethod
    def started(cls, process):
        cls.addClassCleanup(process.stop)
        return process

    def test_every_metric_is_scraped_with_the_right_value(self):
        for name, sane in {**SANE, **ALONE}.items():
            with self.subTest(name):
                self.prometheus.wait_for(sane, job="detent")
        for name, sane in EXTERNAL.items():
            with self.subTest(name):
                self.prometheus.wait_for(sane, job="detent_external")

    def test_the_table_of_this_test_has_all_metrics(self):
        alone = set(SANE) | set(ALONE)
        self.assertEqual(names_in(self.server.metrics()), alone)
        self.assertEqual(names_in(self.other.metrics()), alone | set(EXTERNAL))

    def test_the_reference_has_all_metrics_and_no_others(self):
        page = (SOURCE / "docs/reference/metrics.md").read_text()
        rows = re.findall(r"^\| (`(?:detent|process)_.*?) \|", page, re.M)
        told = {name for row in rows for name in METRIC.findall(row)}
        self.assertEqual(told, ALL)

    def test_promtool_accepts_the_metrics(self):
        for server in (self.server, self.other):
            run = subprocess.run(["promtool", "check", "metrics"], input=server.metrics(),
                                 capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))

    def test_a_node_of_a_cluster_has_the_same_metrics(self):
        stand = Stand(PROGRAM)
        try:
            stand.start()
            url = stand.urls()["a"]
            for number in range(12):
                http(f"{url}/v1/tasks", "POST", {"queue": f"mail-{number}", "payload": 1})
            ready = 0
            for address in stand.urls().values():
                metrics = http(f"{address}/metrics")
                run = subprocess.run(["promtool", "check", "metrics"], input=metrics,
                                     capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))
                self.assertEqual(names_in(metrics), set(SANE) | NODE)
                self.assertIn('\ndetent_cluster_nodes{state="alive"} 2\n', metrics)
                ready += sum(int(count) for count in re.findall(
                    r'^detent_tasks\{[^}]*state="ready"[^}]*\} (\d+)$', metrics, re.M))
            self.assertEqual(ready, 12)
        finally:
            stand.stop()

    def test_promtool_accepts_the_alert_rules_and_their_tests(self):
        for command in (["check", "rules", RULES],
                        ["test", "rules", SOURCE / "tests/prometheus/rules_test.yml"]):
            run = subprocess.run(["promtool", *command], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_alert_rules_use_known_metrics_and_are_tested_and_documented(self):
        rules = RULES.read_text()
        without_comments = re.sub(r"^\s*#.*", "", rules, flags=re.M)
        self.assertEqual(metrics_in(without_comments) - series(ALL), set())
        tested = (SOURCE / "tests/prometheus/rules_test.yml").read_text()
        guide = (SOURCE / "docs/operating/monitoring.md").read_text()
        for alert in re.findall(r"alert: (\w+)", rules):
            with self.subTest(alert):
                # One test fires the alert, and one test does not.
                self.assertEqual(len(re.findall(rf"alertname: {alert}\b", tested)), 2)
                self.assertIn(f"`{alert}`", guide)
        for name in RECORDED:
            with self.subTest(name):
                self.assertIn(f"- expr: {name}\n", tested)
                self.assertIn(f"`{name}`", guide)

    def test_prometheus_evaluates_the_alert_rules(self):
        def rules():
            groups = json.loads(http(f"http://{self.prometheus.address}/api/v1/rules"))
            found = [rule for group in groups["data"]["groups"] for rule in group["rules"]]
            return found if all(rule["health"] != "unknown" for rule in found) else None
        for rule in until(rules, "all rules evaluated"):
            self.assertEqual(rule["health"], "ok", rule)

    def test_every_expression_of_the_dashboard_has_an_answer(self):
        board = json.loads(BOARD.read_text())
        known = series(ALL) | {"up"}
        self.prometheus.wait_for("count_over_time(detent_scheduled_total[1m]) > 5")
        for panel in board["panels"]:
            for target in panel["targets"]:
                expression = filled_in(target["expr"])
                with self.subTest(panel["title"], expression=expression):
                    self.assertEqual(metrics_in(expression) - known, set())
                    if "detent_external_" in expression:
                        expression = expression.replace('job="detent"', 'job="detent_external"')
                    self.prometheus.wait_for(expression)
        for annotation in board["annotations"]["list"]:
            with self.subTest(annotation["name"]):  # an annotation may have no event
                self.assertEqual(metrics_in(annotation["expr"]) - known, set())
                self.assertIn("result", self.prometheus.query(filled_in(annotation["expr"])))

    def test_the_variables_of_the_dashboard_list_labels_of_known_metrics(self):
        board = json.loads(BOARD.read_text())
        variables = {one["name"]: one for one in board["templating"]["list"]}
        self.assertEqual(set(variables), {"datasource", "job", "instance", "queue"})
        used = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
        for name in ("job", "instance", "queue"):
            variable = variables[name]
            with self.subTest(name):
                self.assertIn(f"${name}", used)
                self.assertEqual(variable["definition"], variable["query"]["query"])
                asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
                found = self.prometheus.wait_for(filled_in(asked[1]))
                self.assertIn(asked[2], found[0]["metric"])

    def test_each_part_of_the_dashboard_has_the_fields_that_grafana_needs(self):
        board = json.loads(BOARD.read_text())
        source = {"type": "prometheus", "uid": "${datasource}"}
        for panel in board["panels"]:
            with self.subTest(panel["title"]):
                self.assertIn(panel["type"], ("stat", "timeseries", "table"))
                self.assertTrue(panel["title"])
                self.assertTrue(panel["description"].endswith("."))
                self.assertEqual(panel["datasource"], source)
                self.assertEqual(set(panel["gridPos"]), {"x", "y", "w", "h"})
                self.assertEqual(set(panel["fieldConfig"]), {"defaults", "overrides"})
                names = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(names), len(set(names)))
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"], source)
                steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
                values = [step["value"] for step in steps]
                self.assertEqual(values[:1], [None][:len(values)])  # the first step has no limit
                self.assertEqual(values[1:], sorted(values[1:]))
        for annotation in board["annotations"]["list"]:
            with self.subTest(annotation["name"]):
                self.assertEqual(annotation["datasource"], source)
                self.assertTrue(annotation["enable"])
                self.assertTrue(annotation["iconColor"])

    def test_the_panels_of_the_dashboard_do_not_overlap(self):
        board = json.loads(BOARD.read_text())
        ids = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                     for y in range(at["y"], at["y"] + at["h"])}
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells


if __name__ == "__main__":
    os.environ.pop("DETENT_URL", None)
    unittest.main(argv=sys.argv[:1])
