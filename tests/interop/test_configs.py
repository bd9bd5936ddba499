"""Every file of otel-config/ is loaded by the program that it is for."""
import os
import re
import subprocess
import urllib.parse

import pytest
import yaml

from harness import CONFIGS, ROOT, Program, address, eventually, free_ports, http_get


def accepts(command, env=None):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGS.glob("mcp-verdict*.yaml")))
def test_ours_is_valid(binary, name):
    accepts([binary, "validate", "--config", CONFIGS / name])


def test_a_mistake_is_found(binary, tmp_path):
    """Guards the test above: validate does look into the file."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((CONFIGS / "mcp-verdict.yaml").read_text().replace("settle:", "setle:"))
    done = subprocess.run([binary, "validate", "--config", wrong], capture_output=True, text=True, timeout=60)
    assert done.returncode == 64
    assert "setle" in done.stderr and "settle" in done.stderr


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGS.glob("collector-*.yaml"))
                         + ["count-connector.yaml", "tail-sampling.yaml"])
def test_collector_accepts(peers, name):
    accepts([peers.collector, "validate", "--config", CONFIGS / name])


def test_jaeger_accepts(peers):
    accepts([peers.jaeger, "validate", "--config", CONFIGS / "jaeger.yaml"])


def test_prometheus_accepts():
    for name in ("prometheus.yaml", "prometheus-from-events.yaml"):
        accepts(["promtool", "check", "config", CONFIGS / name])


def documented_metrics():
    """Names in docs/metrics.md, which `cargo test` holds to the registry."""
    return set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/metrics.md").read_text(), re.M))


def test_every_exported_metric_is_documented(verdict, desk_run):
    text = http_get(f"http://127.0.0.1:{verdict.metrics}/metrics")
    exported = {line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    ours = {name for name in exported if name.startswith(("mcp_verdict_", "otelcol_"))}
    assert "mcp_verdict_verdicts_total" in ours
    assert ours <= documented_metrics(), ours - documented_metrics()


def documented_queries():
    """The PromQL that README tells people to use, one query a line."""
    block, = re.findall(r"^```\n(sum[^`]*)^```", (ROOT / "README.md").read_text(), re.M)
    return block.splitlines()


def test_prometheus_fires_on_a_real_false_success(verdict, desk_run, tmp_path):
    """The whole way: a lost row, a verdict, a scrape, an alert."""
    port, = free_ports(1)
    config = yaml.safe_load((CONFIGS / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(CONFIGS / name) for name in config["rule_files"]]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [address(verdict.metrics)]
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
    prometheus = Program("prometheus", ["prometheus", "--config.file", tmp_path / "prometheus.yaml",
                                        "--storage.tsdb.path", tmp_path / "data",
                                        "--web.listen-address", address(port)], tmp_path).ready(port)
    try:
        def fired():
            alerts = yaml.safe_load(http_get(f"http://127.0.0.1:{port}/api/v1/alerts"))["data"]["alerts"]
            names = {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
            return {"McpFalseSuccess", "McpOutcomeWrong", "McpEffectUnknown"} <= names
        eventually(fired, 30, "alerts on the calls of the example client")
        for query in documented_queries():
            def answered():
                url = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(query)}"
                return yaml.safe_load(http_get(url))["data"]["result"]
            eventually(answered, 20, f"an answer to the README's query {query}")
    finally:
        prometheus.stop()


def snippets():
    """Every YAML block of README and docs that is a configuration; a list is of evidence rules."""
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", path.read_text(), re.M | re.S), 1):
            content = yaml.safe_load(block)
            if isinstance(content, list):
                block = yaml.safe_dump({"processors": {"mcp_verdict": {"evidence": content}}})
            elif "jobs" in content:
                continue  # A workflow of the code host.
            found.append(pytest.param(block, id=f"{path.name}-{number}"))
    return found


@pytest.mark.parametrize("block", snippets())
def test_documented_configuration_is_valid(binary, block, tmp_path):
    (tmp_path / "documented.yaml").write_text(block)
    accepts([binary, "validate", "--config", tmp_path / "documented.yaml"])
