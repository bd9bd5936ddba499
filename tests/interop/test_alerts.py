"""Alerts, their routes and the dashboards: against the registry, by Prometheus' own tools, and live.

The live part is one course of events: real calls fail, each in the way of another owner; the right alert reaches
the right receiver; it stops when the incident recovers; it is over when a success was verified.
"""
import collections
import http.server
import json
import re
import subprocess
import threading
import time
import types
import urllib.parse

import pytest
import yaml

from harness import CONFIGS, ROOT, Program, address, eventually, free_ports, http_get
from page_calls import Calls
from test_configs import accepts

OWNERS = ["credential_owner", "authorization_owner", "availability_owner", "integration_owner", "client_implementer",
          "tool_owner", "outcome_owner", "operator"]
# What Prometheus adds to every series, and what it says of every target.
SCRAPED = {"job", "instance"}


def rules(name):
    return [rule for group in yaml.safe_load((CONFIGS / name).read_text())["groups"] for rule in group["rules"]]


def registry():
    """Metric to labels by docs/metrics.md, which `cargo test` holds to the registries in the code."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*) \|", (ROOT / "docs/metrics.md").read_text(), re.M)
    known = {"up": set()}
    for name, kind, labels in rows:
        for ending in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
            known[name + ending] = set(filter(None, labels.split(", "))) | ({"le"} if ending == "_bucket" else set())
    return known


def recorded(known):
    """What otel-config/recording.yaml adds: each rule with the labels that it keeps."""
    return known | {rule["record"]: set(re.findall(r"\w+", "".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))
                    for rule in rules("recording.yaml")}


NAME = r"\b(?:mcp_verdict[\w:]*|otelcol_\w+|up)\b"


def unknown_in(expr, known):
    """Names and labels in a query that nobody exports."""
    metrics = re.findall(NAME, expr)
    wrong = {name for name in metrics if name not in known}
    for name, inside in re.findall(rf"({NAME})\{{([^}}]*)\}}", expr):
        wrong |= {f"{name}.{label}" for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inside)} - \
            {f"{name}.{label}" for label in known.get(name, set()) | SCRAPED}
    every = set().union(SCRAPED, *(known.get(name, set()) for name in metrics))
    for grouped in re.findall(r"\b(?:by|on) \(([^)]*)\)", expr):
        wrong |= set(re.findall(r"\w+", grouped)) - every
    return wrong


@pytest.mark.parametrize("name", ["recording.yaml", "alerts.yaml"])
def test_every_metric_and_label_in_a_rule_is_in_the_registry(name):
    """A rule over a name that nobody exports would be silent for ever."""
    known = recorded(registry())
    for rule in rules(name):
        assert re.findall(NAME, rule["expr"]) or rule["expr"].startswith("vector("), rule
        assert not unknown_in(rule["expr"], known), rule["expr"]


def test_an_unknown_name_is_found():
    """Guards the test above."""
    known = recorded(registry())
    assert unknown_in("mcp_verdict_verdict_total", known) == {"mcp_verdict_verdict_total"}
    assert unknown_in('sum by (agent) (mcp_verdict_verdicts_total{stat="a"})', known) == {"agent", "mcp_verdict_verdicts_total.stat"}


def test_every_alert_says_what_to_do_and_who_does_it():
    for rule in rules("alerts.yaml"):
        keeps = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))
        labels = keeps | set(rule["labels"]) | ({"instance", "job"} if "by (" not in rule["expr"] else set())
        assert {"summary", "description", "runbook"} <= set(rule["annotations"]), rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning", "ticket"), rule["alert"]
        assert rule["labels"].get("owner", "any") in [*OWNERS, "pipeline", "any"], rule["alert"]
        assert "owner" in labels, rule["alert"]
        for text in rule["annotations"].values():
            assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels, (rule["alert"], text)


COURSES = ["alerts.test.yaml", "alerts-slow.test.yaml", "alerts-from-events.test.yaml"]


@pytest.mark.parametrize("name", COURSES)
def test_alerts_fire_when_they_should_and_not_else(name):
    accepts(["promtool", "test", "rules", ROOT / "tests/interop" / name])


def variant(rule):
    """Rules that share an alert's name differ in one label, which the tests name."""
    told = {key: value for key, value in rule["labels"].items() if key in ("window", "lost")}
    return (rule["alert"], *told.values())


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    fires, silent = set(), set()
    for name in COURSES:
        for test in yaml.safe_load((ROOT / "tests/interop" / name).read_text())["tests"]:
            checks = [{tuple(re.findall(r'(?:alertname|window|lost)="([^"]*)"', sample["labels"])) for sample in check["exp_samples"]}
                      for check in test["promql_expr_test"]]
            here = set().union(*checks)
            fires |= here
            silent |= {alert for alert in here if any(alert not in check for check in checks)}
    wanted = {variant(rule) for name in ("alerts.yaml", "alerts-from-events.yaml") for rule in rules(name)}
    assert wanted <= fires, wanted - fires
    assert wanted <= silent, wanted - silent


def test_alertmanager_accepts():
    accepts(["amtool", "check-config", CONFIGS / "alertmanager.yaml"])


def routed(labels):
    """The receiver that Alertmanager picks."""
    command = ["amtool", "config", "routes", "test", f"--config.file={CONFIGS / 'alertmanager.yaml'}",
               *(f"{key}={value}" for key, value in labels.items())]
    return accepts(command).stdout.strip()


def test_every_alert_has_a_receiver_of_its_owner():
    for rule in rules("alerts.yaml") + rules("alerts-from-events.yaml"):
        for owner in [rule["labels"]["owner"]] if "owner" in rule["labels"] else OWNERS:
            over = "/over" if rule["alert"] == "McpIncidentUnresolved" else ""
            assert routed({"alertname": rule["alert"], **rule["labels"], "owner": owner}) == owner + over
    assert routed({"alertname": "Another"}) == "unowned"


# Live.

class Receiver:
    """Takes what Alertmanager posts: by path, every notification's alerts."""

    def __init__(self):
        self.got = collections.defaultdict(list)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                receiver.got[self.path.strip("/")].extend(body["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def has(self, path, alert, status, **labels):
        wanted = {"alertname": alert, **labels}
        return any(told["status"] == status and wanted.items() <= told["labels"].items() for told in self.got[path])


def hurried(folder, ports, receiver):
    """The shipped files with every wait and interval cut to a second or none."""
    for name in ("alerts.yaml", "recording.yaml"):
        content = yaml.safe_load((CONFIGS / name).read_text())
        for group in content["groups"]:
            for rule in group["rules"]:
                if "for" in rule:
                    rule["for"] = "0s"
        (folder / name).write_text(yaml.safe_dump(content))
    config = yaml.safe_load((CONFIGS / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [address(ports.metrics)]
    config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [address(ports.alertmanager)]
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    text = (CONFIGS / "alertmanager.yaml").read_text().replace("127.0.0.1:9095", address(receiver.port))
    config = yaml.safe_load(text)
    config["route"] |= {"group_wait": "1s", "group_interval": "1s"}
    (folder / "alertmanager.yaml").write_text(yaml.safe_dump(config))


@pytest.fixture(scope="module")
def watched(binary, tmp_path_factory):
    """mcp-verdict with the shipped configuration, Prometheus and Alertmanager with the shipped rules and routes."""
    folder = tmp_path_factory.mktemp("watched")
    ports = types.SimpleNamespace(**dict(zip(
        ("grpc", "http", "metrics", "health", "page", "prometheus", "alertmanager"), free_ports(7))))
    receiver = Receiver()
    hurried(folder, ports, receiver)
    env = {
        "MCP_VERDICT_GRPC_ENDPOINT": address(ports.grpc), "MCP_VERDICT_HTTP_ENDPOINT": address(ports.http),
        "MCP_VERDICT_METRICS_ENDPOINT": address(ports.metrics), "MCP_VERDICT_HEALTH_ENDPOINT": address(ports.health),
        "MCP_VERDICT_DATA": str(folder / "data"), "MCP_VERDICT_SETTLE": "1s",
    }
    also = folder / "also.yaml"
    also.write_text(yaml.safe_dump({
        "processors": {"mcp_verdict": {"owners": {"tool_owner": "#desk-team"}}},
        "exporters": {"file": {"path": str(folder / "out.jsonl")}},
        "service": {"traces": ["file"], "logs": ["file"], "metrics": ["file"], "profiles": ["file"],
                    "telemetry": {"page": {"endpoint": address(ports.page)}}}}))
    programs = [
        Program("mcp-verdict", [binary, "run", "--config", CONFIGS / "mcp-verdict.yaml", "--config", also], folder, env)
        .ready(ports.http, ports.metrics, ports.page),
        Program("alertmanager", ["prometheus-alertmanager", "--config.file", folder / "alertmanager.yaml",
                                 "--storage.path", folder / "alertmanager", "--cluster.listen-address=",
                                 "--web.listen-address", address(ports.alertmanager)], folder).ready(ports.alertmanager),
        Program("prometheus", ["prometheus", "--config.file", folder / "prometheus.yaml", "--storage.tsdb.path",
                               folder / "prometheus", "--web.listen-address", address(ports.prometheus)], folder)
        .ready(ports.prometheus),
    ]
    yield types.SimpleNamespace(ports=ports, receiver=receiver, calls=Calls(ports.http), folder=folder)
    for program in reversed(programs):
        program.stop()
    receiver.server.shutdown()


def answer(watched, query):
    url = f"http://127.0.0.1:{watched.ports.prometheus}/api/v1/query?query={urllib.parse.quote(query)}"
    return json.loads(http_get(url))["data"]["result"]


def firing(watched, **labels):
    alerts = json.loads(http_get(f"http://127.0.0.1:{watched.ports.prometheus}/api/v1/alerts"))["data"]["alerts"]
    return [alert for alert in alerts if alert["state"] == "firing" and labels.items() <= alert["labels"].items()]


# How a call ends, whose step is next, and which alert says so.
FAILURES = [
    ("401", "credential_owner", "McpCredentialRefused"),
    ("scope", "authorization_owner", "McpAccessDenied"),
    ("503", "availability_owner", "McpServerUnreachable"),
    ("expired", "integration_owner", "McpIntegrationBroken"),
    ("invalid_params", "client_implementer", "McpRequestRefused"),
    ("tool_error", "tool_owner", "McpToolFailing"),
    ("missing", "outcome_owner", "McpOutcomeWrong"),
    ("timeout", "operator", "McpEffectUnknown"),
]


def send(watched, end, owner):
    """One call to a server of the owner's own, so that one failure says nothing of another."""
    watched.calls.call(server=f"{owner.replace('_', '-')}.example.com", session=owner, end=end)


def test_each_failure_reaches_its_owner_and_nobody_else(watched):
    for end, owner, _ in FAILURES:
        send(watched, end, owner)
    got = watched.receiver
    for _, owner, alert in FAILURES:
        server = f"{owner.replace('_', '-')}.example.com"
        eventually(lambda: got.has(owner, alert, "firing", owner=owner, server=server), 20, f"{alert} at {owner}: {dict(got.got)}")
        if owner != "operator":
            eventually(lambda: got.has(f"{owner}/over", "McpIncidentUnresolved", "firing", server=server), 10, f"the incident of {owner}")
    for _, owner, alert in FAILURES:
        assert {told["labels"]["owner"] for told in got.got[owner]} == {owner}
    assert not got.got["unowned"]
    told, = [told for told in got.got["tool_owner"] if told["labels"]["alertname"] == "McpToolFailing"]
    assert told["labels"]["tool"] == "create_ticket" and told["labels"]["contact"] == "#desk-team"
    every = [told for alerts in got.got.values() for told in alerts]
    said = [text for told in every for text in told["annotations"].values()]
    assert said and not [text for text in said if not text or "<error" in text or "<no value>" in text]


def test_it_stops_when_the_incident_recovers_and_is_over_when_a_success_was_verified(watched):
    owner, server = "tool_owner", "tool-owner.example.com"
    assert firing(watched, alertname="McpToolFailing", server=server)
    send(watched, "answered", owner)
    eventually(lambda: not firing(watched, alertname="McpToolFailing", server=server), 15, "the alert to stop")
    # Nobody has verified anything: the incident goes on, and no receiver is told that it is over.
    time.sleep(3)
    assert firing(watched, alertname="McpIncidentUnresolved", server=server)
    assert not watched.receiver.has(owner, "McpToolFailing", "resolved")
    assert not watched.receiver.has(f"{owner}/over", "McpIncidentUnresolved", "resolved", server=server)
    send(watched, "verified", owner)
    eventually(lambda: watched.receiver.has(f"{owner}/over", "McpIncidentUnresolved", "resolved", server=server), 20,
               "the incident to be over")
    assert not firing(watched, alertname="McpIncidentUnresolved", server=server)
    # Others are not: each incident is its own.
    assert firing(watched, alertname="McpOutcomeWrong", server="outcome-owner.example.com")
