"""Real clients and a real server, judged on the way to Jaeger.

Each route runs an example client that sees a success, a tool error, a 401 and a timeout (and over Python
also a call whose outcome is verified, and one whose row was lost). What it saw must be found by Jaeger's
tag search on the verdict's state, and every span that it exported must have arrived as it was.
"""
import json
import os
import subprocess
import sys
import types

import pytest

from harness import (CONFIGS, EXAMPLES, Desk, attributes, eventually, http_get, jaeger_traces, log_records_of, run_client,
                     spans_of, tags_of, without_verdict)

PYTHON = {"success": "unverified", "tool_error": "tool_failed", "unauthorized": "needs_auth",
          "timeout": "effect_unknown", "verified": "healthy", "lost_row": "false_success"}
TYPESCRIPT = {step: PYTHON[step] for step in ("success", "tool_error", "unauthorized", "timeout")}
STDIO = {step: state for step, state in PYTHON.items() if step != "unauthorized"}

# name: client, its arguments, OTLP protocol, through a Collector in front, what must be found
ROUTES = {
    "python over HTTP": ("python", ["http"], "grpc", False, PYTHON),
    "python over HTTP with a session": ("python", ["http", "--mode", "legacy"], "http/protobuf", False, PYTHON),
    "python over stdio": ("python", ["stdio"], "grpc", False, STDIO),
    "typescript over HTTP": ("typescript", ["http"], "grpc", False, TYPESCRIPT),
    "python, a Collector in front": ("python", ["http"], "grpc", True, PYTHON),
}
SERVICES = {"python": "ticket-desk-agent", "typescript": "ticket-desk-ts-agent"}
REQUEST_SCOPES = ("mcp-python-sdk", "@traceloop/instrumentation-mcp")


@pytest.fixture(scope="module", params=ROUTES, ids=lambda name: name.replace(" ", "-"))
def route(request, verdict, backend, tmp_path_factory):
    """One run of a client: what it saw, what it and its server exported, what must be found."""
    client, arguments, protocol, front, expected = ROUTES[request.param]
    target = request.getfixturevalue("in_front") if front else verdict
    port = target.grpc if protocol == "grpc" else target.http
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    folder = tmp_path_factory.mktemp("route")
    if client == "python":
        command = [sys.executable, EXAMPLES / "python/client.py"]
    else:
        command = ["node", request.getfixturevalue("typescript_client")]
    desk = Desk(folder, env) if arguments[0] == "http" else None
    target_argument = desk.url if desk else "stdio"
    seen, files = run_client([*command, target_argument, *arguments[1:]], folder, env)
    if desk:
        files.append(desk.spans)
        desk.program.stop()
    exported = spans_of(*files)
    assert exported, "the client exported nothing"
    return types.SimpleNamespace(service=SERVICES[client], seen=seen, exported=exported, expected=expected,
                                 files=[path for path in files if path.exists()])


def test_the_client_saw_what_this_test_is_about(route):
    """Guards the rest: a step that went another way would be judged another way."""
    saw = {step: (s["answered"], s.get("is_error")) for step, s in route.seen.items()}
    assert saw.keys() == route.expected.keys()
    for step in ("success", "verified", "lost_row"):
        assert saw.get(step, (True, False)) == (True, False)
    assert saw["tool_error"] == (True, True)
    assert not saw["timeout"][0] and not saw.get("unauthorized", (False,))[0]


def exported_by(route, trace):
    ids = {span_id.hex() for _, span_id in route.exported}
    return [span for span in trace["spans"] if span["spanID"] in ids]


def has_tool(span, tool):
    tags = tags_of(span)
    named = {tags.get("gen_ai.tool.name"), tags.get("traceloop.entity.name"), span["operationName"].split(" ")[-1]}
    return tool in named


def test_every_step_is_found_in_jaeger_by_its_state(route, backend):
    """The operator's way in: a tag search, no knowledge of trace ids."""
    for step, state in route.expected.items():
        tool = route.seen[step]["tool"]

        def found():
            return [tags_of(span) for trace in jaeger_traces(backend.query, route.service, {"mcp_verdict.state": state})
                    for span in exported_by(route, trace)
                    if tags_of(span).get("mcp_verdict.state") == state and has_tool(span, tool)]
        tags = eventually(found, 25, f"step {step} ({tool}) with mcp_verdict.state={state} in Jaeger")
        assert all(t.get("mcp_verdict.chain.id") for t in tags)


def test_no_step_is_judged_otherwise(route, backend):
    """Each call has the state it should have on both its halves, and no other."""
    wanted = {}
    for step, state in route.expected.items():
        wanted.setdefault(route.seen[step]["tool"], set()).add(state)
    arrived = eventually(lambda: all_arrived(route, backend), 25, "every exported span behind mcp-verdict")
    for key in route.exported:
        span = arrived[key][2]
        state = attributes(span).get("mcp_verdict.state")
        for tool, states in wanted.items():
            if state and tool in (attributes(span).get("gen_ai.tool.name"), span.name.split(" ")[-1], span.name.split(".")[0]):
                assert state in states, f"{span.name}: {state}"


def all_arrived(route, backend):
    arrived = spans_of(backend.traces)
    return arrived if route.exported.keys() <= arrived.keys() else None


def test_spans_arrive_as_they_were(route, backend):
    """Every exported span, MCP or not, arrives with nothing but our attributes added, and those last."""
    arrived = eventually(lambda: all_arrived(route, backend), 25, "every exported span behind mcp-verdict")
    enriched = 0
    for key, (resource, scope, span) in route.exported.items():
        got_resource, got_scope, got = arrived[key]
        assert without_verdict(got) == span, span.name
        assert (got_resource, got_scope) == (resource, scope), span.name
        ours = [pair.key.startswith("mcp_verdict.") for pair in got.attributes]
        assert ours == sorted(ours), f"{span.name}: an attribute of ours stands before one of the program's"
        enriched += any(ours)
        if any(ours):
            assert scope.name in REQUEST_SCOPES, f"{span.name} of {scope.name} is no MCP request"
    assert enriched >= len(route.expected)


def test_verdict_events_follow(route, backend):
    """Each call leaves one verdict event that stands on the request's trace."""
    traces = {trace_id for trace_id, _ in route.exported}

    def events():
        return [r for r in log_records_of(backend.logs)
                if r.trace_id in traces and r.event_name.startswith("mcp_verdict.verdict")]

    def complete():
        found = [attributes(r) for r in events()]
        calls = [a for a in found if a.get("mcp_verdict.method") == "tools/call"]
        return calls if len({a["mcp_verdict.chain.id"] for a in calls}) >= len(route.expected) else None
    calls = eventually(complete, 25, "a verdict event for each call")
    last = {a["mcp_verdict.chain.id"]: a["mcp_verdict.state"] for a in calls}
    assert sorted(last.values()) == sorted(route.expected.values())


def test_replay_of_what_was_exported_says_the_same(route, binary, verdict):
    """The clients' own recordings, judged afterwards."""
    done = subprocess.run([binary, "replay", *route.files, "--config", CONFIGS / "mcp-verdict.yaml", "--format", "json"],
                          capture_output=True, text=True, timeout=60, env={**os.environ, **verdict.env})
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [(r["tool"], r["state"]) for r in records if r["record"] == "verdict" and r["method"] == "tools/call"]
    assert sorted(calls) == sorted((route.seen[step]["tool"], state) for step, state in route.expected.items())


def test_metrics_count_the_verdicts(route, verdict):
    """The Prometheus endpoint has a series for each state that was found."""
    def counted():
        text = http_get(f"http://127.0.0.1:{verdict.metrics}/metrics")
        lines = [line for line in text.splitlines() if line.startswith("mcp_verdict_verdicts_total{")]
        return all(any(f'state="{state}"' in line for line in lines) for state in route.expected.values())
    eventually(counted, 15, "a series of mcp_verdict_verdicts_total for each state")


def test_health_answers(verdict):
    for path in ("/", "/readyz", "/livez"):
        assert http_get(f"http://127.0.0.1:{verdict.health}{path}").startswith("{")
