"""Starting and asking the real programs: mcp-verdict, Collectors, Jaeger, Prometheus, example clients."""
import base64
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from google.protobuf import json_format
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "otel-config"
EXAMPLES = ROOT / "examples"
ID_FIELDS = ("traceId", "spanId", "parentSpanId")
OURS = "mcp_verdict."


def free_ports(count):
    """Ports that are free now; all are held until the last is known, so that no two are equal."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def address(port):
    return f"127.0.0.1:{port}"


def eventually(question, timeout, what):
    """The first true answer to `question`; fails with what was waited for."""
    end = time.monotonic() + timeout
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < end, f"waited {timeout} s for {what}"
        time.sleep(0.2)


def is_open(port):
    with socket.socket() as s:
        s.settimeout(0.5)
        return s.connect_ex(("127.0.0.1", port)) == 0


def http_get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


class Program:
    """One process with its log file; ended by signal, by its own id only."""

    def __init__(self, name, command, folder, env=None, cwd=None):
        self.name, self.log = name, folder / f"{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=cwd or folder, env={**os.environ, **(env or {})})

    def ready(self, *ports, timeout=30):
        eventually(lambda: self.alive() and all(map(is_open, ports)), timeout,
                   f"{self.name} to listen on {ports}")
        return self

    def alive(self):
        code = self.process.poll()
        assert code is None, f"{self.name} ended with {code}: {self.tail()}"
        return True

    def tail(self, size=2000):
        return self.log.read_text(errors="replace")[-size:]

    def stop(self, timeout=35):
        """Asks it to end and gives its exit status; past the timeout it is killed, which is None."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def jaeger_traces(query_port, service, tags):
    """Traces that Jaeger's query API finds for a service by exact tag values."""
    now = int(time.time() * 1e6)
    query = urllib.parse.urlencode({
        "service": service, "tags": json.dumps(tags), "limit": 200,
        "start": now - 3600 * 10**6, "end": now + 60 * 10**6})
    try:
        return json.loads(http_get(f"http://127.0.0.1:{query_port}/api/traces?{query}"))["data"] or []
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return []
        raise


def tags_of(span):
    return {tag["key"]: tag["value"] for tag in span["tags"]}


def protobuf_ids(node):
    """OTLP/JSON's hex ids as the base64 that protobuf's JSON reader expects."""
    if isinstance(node, dict):
        return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in ID_FIELDS else protobuf_ids(v)
                for k, v in node.items()}
    return [protobuf_ids(item) for item in node] if isinstance(node, list) else node


def otlp_lines(path, kind):
    """The messages of an OTLP/JSON lines file; a last line that is still being written is left out."""
    path = pathlib.Path(path)
    if not path.exists():
        return
    for line in path.read_text().split("\n")[:-1]:
        yield json_format.ParseDict(protobuf_ids(json.loads(line)), kind())


def spans_of(*paths):
    """Every span in the files: id to (resource, scope, span)."""
    return {(span.trace_id, span.span_id): (group.resource, part.scope, span)
            for path in paths for data in otlp_lines(path, TracesData)
            for group in data.resource_spans for part in group.scope_spans for span in part.spans}


def log_records_of(path):
    return [record for data in otlp_lines(path, LogsData)
            for group in data.resource_logs for part in group.scope_logs for record in part.log_records]


def attributes(item):
    """Attributes as text, first value of a key wins."""
    found = {}
    for pair in item.attributes:
        kind = pair.value.WhichOneof("value")
        found.setdefault(pair.key, str(getattr(pair.value, kind)) if kind else "")
    return found


def without_verdict(span):
    """A copy of the span less what mcp-verdict adds."""
    plain = type(span)()
    plain.CopyFrom(span)
    del plain.attributes[:]
    plain.attributes.extend(pair for pair in span.attributes if not pair.key.startswith(OURS))
    return plain


class Desk:
    """The ticket desk over streamable HTTP, with its spans also in a file."""

    def __init__(self, folder, otlp_env):
        self.port, = free_ports(1)
        self.spans = folder / "server.spans.jsonl"
        env = {**otlp_env, "SPANS_FILE": str(self.spans)}
        self.program = Program("ticket-desk", [sys.executable, EXAMPLES / "python/server.py", "http", self.port],
                               folder, env).ready(self.port)
        self.url = f"http://127.0.0.1:{self.port}/mcp"


def run_client(command, folder, otlp_env):
    """Runs an example client to its end; gives what it saw by step, and the files of its spans."""
    spans = folder / "client.spans.jsonl"
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=90, cwd=folder,
                          stdin=subprocess.DEVNULL, env={**os.environ, **otlp_env, "SPANS_FILE": str(spans)})
    assert done.returncode == 0, done.stderr[-2000:]
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    return {step["step"]: step for step in seen}, [spans, pathlib.Path(str(spans) + ".server")]
