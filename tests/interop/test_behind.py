"""Collectors behind mcp-verdict that act on the verdict: one counts its events for Prometheus, one samples by it."""
import collections
import json
import time
import types
import urllib.parse

import pytest
import yaml

from harness import CONFIGS, Program, address, attributes, eventually, free_ports, http_get, otlp_lines, spans_of
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from page_calls import SECOND, Calls

SHARE = 30
DECISION_WAIT = 6


@pytest.fixture(scope="module")
def behind(binary, peers, tmp_path_factory):
    """mcp-verdict, and behind it both Collectors by their shipped configurations, and Prometheus."""
    folder = tmp_path_factory.mktemp("behind")
    grpc, http, metrics, health, page, events, counts, tail, prometheus = free_ports(9)
    env = {
        "MCP_VERDICT_GRPC_ENDPOINT": address(grpc), "MCP_VERDICT_HTTP_ENDPOINT": address(http),
        "MCP_VERDICT_METRICS_ENDPOINT": address(metrics), "MCP_VERDICT_HEALTH_ENDPOINT": address(health),
        "MCP_VERDICT_DATA": str(folder / "data"), "MCP_VERDICT_SETTLE": "1s",
        "MCP_VERDICT_BACKEND": f"http://{address(tail)}",
        "EVENTS_GRPC_ENDPOINT": address(events), "EVENTS_PROMETHEUS_ENDPOINT": address(counts),
        "TAIL_GRPC_ENDPOINT": address(tail), "TAIL_DECISION_WAIT": f"{DECISION_WAIT}s", "TAIL_SHARE": str(SHARE),
    }
    kept = folder / "kept.yaml"
    kept.write_text(yaml.safe_dump({
        "exporters": {"file": {"path": str(folder / "kept.jsonl"), "flush_interval": "200ms"}},
        "service": {"pipelines": {"traces": {"exporters": ["file"]}}}}))
    also = folder / "also.yaml"
    also.write_text(yaml.safe_dump({
        "exporters": {"otlp/events": {"endpoint": f"http://{address(events)}"},
                      "file": {"path": str(folder / "all.jsonl")}, "file/rest": {"path": str(folder / "rest.jsonl")}},
        "service": {"traces": ["otlp", "file"], "logs": ["otlp/events"], "metrics": ["file/rest"], "profiles": ["file/rest"],
                    "telemetry": {"page": {"endpoint": address(page)}}}}))
    config = yaml.safe_load((CONFIGS / "prometheus-from-events.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(CONFIGS / name) for name in config["rule_files"]]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [address(counts)]
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    programs = [
        Program("collector-events", [peers.collector, "--config", CONFIGS / "count-connector.yaml"], folder, env).ready(events, counts),
        Program("collector-tail", [peers.collector, "--config", CONFIGS / "tail-sampling.yaml", "--config", kept], folder, env).ready(tail),
        Program("prometheus", ["prometheus", "--config.file", folder / "prometheus.yaml", "--storage.tsdb.path",
                               folder / "prometheus", "--web.listen-address", address(prometheus)], folder).ready(prometheus),
        Program("mcp-verdict", [binary, "run", "--config", CONFIGS / "mcp-verdict.yaml", "--config", also], folder, env)
        .ready(http, metrics),
    ]
    yield types.SimpleNamespace(calls=Calls(http), prometheus=prometheus, folder=folder)
    for program in reversed(programs):
        program.stop()


ENDS = {"verified": "healthy", "answered": "unverified", "missing": "false_success", "tool_error": "tool_failed",
        "401": "needs_auth", "timeout": "effect_unknown"}
OWNERS = {"missing": "outcome_owner", "tool_error": "tool_owner", "401": "credential_owner", "timeout": "operator"}
# A hundred calls of either kind that nobody has to look at, three of every other.
COUNTS = {end: 100 if end in ("verified", "answered") else 3 for end in ENDS}


@pytest.fixture(scope="module")
def sent(behind):
    """Trace ids by how their call ended."""
    traces = collections.defaultdict(list)
    for end, count in COUNTS.items():
        for number in range(count):
            at = time.time_ns() - SECOND
            traces[end].append(behind.calls.call(at=at, end=end, session=f"{end}-{number}", server=f"{end}.example.com"))
    return traces


def ask(behind, path):
    return json.loads(http_get(f"http://127.0.0.1:{behind.prometheus}/api/v1/{path}"))["data"]


def test_events_alone_reach_each_owner(behind, sent):
    def firing():
        return {(a["labels"]["alertname"], a["labels"]["owner"], a["labels"]["server"], a["labels"]["tool"])
                for a in ask(behind, "alerts")["alerts"] if a["state"] == "firing"}
    wanted = {("McpFalseSuccess" if end == "missing" else "McpOwnerHasToAct", owner, f"{end}.example.com", "create_ticket")
              for end, owner in OWNERS.items()}
    eventually(lambda: wanted <= firing(), 40, f"{wanted}")
    assert firing() == wanted


def test_events_are_counted_each_once(behind, sent):
    """Every call by the state that it has, and every verified outcome."""
    def counted(query):
        found = ask(behind, "query?query=" + urllib.parse.quote(query))["result"]
        return {tuple(series["metric"].values()): float(series["value"][1]) for series in found}
    wanted = {(ENDS[end],): COUNTS[end] for end in ENDS}
    eventually(lambda: counted("sum by (state) (mcp_verdict_event_verdicts_total)") == wanted, 40, f"{wanted}")
    assert counted("sum by (server) (mcp_verdict_event_verified_total)") == {("verified.example.com",): COUNTS["verified"]}
    opened = counted('sum by (owner) (mcp_verdict_event_incidents_total{status="open"}) > bool 0')
    assert set(opened) == {("outcome_owner",), ("tool_owner",), ("credential_owner",)}


def traces_of(path):
    found = collections.defaultdict(set)
    for trace, span in spans_of(path):
        found[trace.hex()].add(span)
    return found


def test_every_trace_that_somebody_has_to_look_at_is_kept_whole_and_a_share_of_the_rest(behind, sent):
    everything, kept = behind.folder / "all.jsonl", behind.folder / "kept.jsonl"
    all_sent = {trace for traces in sent.values() for trace in traces}
    eventually(lambda: all_sent <= set(traces_of(everything)), 40, "every trace to leave mcp-verdict")
    bad = {trace for end in OWNERS for trace in sent[end]}
    eventually(lambda: bad <= set(traces_of(kept)), DECISION_WAIT + 40, "every trace with a problem")
    # What was decided no is not there a while later either.
    time.sleep(DECISION_WAIT)
    left, arrived = traces_of(everything), traces_of(kept)
    for trace in arrived:
        assert arrived[trace] == left[trace], "a trace that is kept is whole"
    states = collections.Counter(
        attributes(span).get("mcp_verdict.state") for data in otlp_lines(kept, TracesData) for group in data.resource_spans
        for part in group.scope_spans for span in part.spans)
    assert {ENDS[end] for end in OWNERS} <= set(states)
    for end in ("verified", "answered"):
        share = 100 * len(arrived.keys() & set(sent[end])) / COUNTS[end]
        assert SHARE / 2 < share < SHARE * 2, (end, share)
