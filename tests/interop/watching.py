"""mcp-verdict watched by Prometheus and Alertmanager, and what names their files may use."""
import collections
import http.server
import json
import re
import threading
import types
import urllib.parse

import pytest
import yaml

from harness import CONFIGS, ROOT, Program, address, free_ports, http_get
from page_calls import Calls

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
    # As docs/alerting.md says: a team of its own goes before the others.
    config["route"]["routes"].insert(0, {"matchers": ['contact = "#payroll-oncall"'], "receiver": "payroll"})
    config["receivers"].append({"name": "payroll", "webhook_configs": [{"url": f"http://{address(receiver.port)}/payroll"}]})
    (folder / "alertmanager.yaml").write_text(yaml.safe_dump(config))


@pytest.fixture(scope="session")
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
        "processors": {"mcp_verdict": {
            "owners": {"tool_owner": "#desk-team"},
            "servers": {"payroll.example.com": {"owners": {"tool_owner": "#payroll-oncall"}}}}},
        "exporters": {"file": {"path": str(folder / "out.jsonl")}},
        "service": {"traces": ["file"], "logs": ["file"], "metrics": ["file"], "profiles": ["file"],
                    "telemetry": {"page": {"endpoint": address(ports.page)}}}}))

    def verdict():
        command = [binary, "run", "--config", CONFIGS / "mcp-verdict.yaml", "--config", also]
        return Program("mcp-verdict", command, folder, env).ready(ports.http, ports.metrics, ports.page)
    programs = [
        verdict(),
        Program("alertmanager", ["prometheus-alertmanager", "--config.file", folder / "alertmanager.yaml",
                                 "--storage.path", folder / "alertmanager", "--cluster.listen-address=",
                                 "--web.listen-address", address(ports.alertmanager)], folder).ready(ports.alertmanager),
        Program("prometheus", ["prometheus", "--config.file", folder / "prometheus.yaml", "--storage.tsdb.path",
                               folder / "prometheus", "--web.listen-address", address(ports.prometheus),
                               "--enable-feature=exemplar-storage"], folder)
        .ready(ports.prometheus),
    ]

    def restart():
        assert programs[0].stop() == 0, programs[0].tail()
        programs[0] = verdict()
    yield types.SimpleNamespace(ports=ports, receiver=receiver, calls=Calls(ports.http), restart=restart)
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
