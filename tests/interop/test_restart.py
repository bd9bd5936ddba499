"""A killed process loses nothing that it accepted."""
import signal
import sys

from conftest import SETTLE
from harness import CONFIGS, EXAMPLES, Desk, Program, address, attributes, eventually, free_ports, run_client, spans_of


def test_what_was_accepted_survives_a_kill(binary, backend, tmp_path):
    """The backend is away, the client exports, the process is killed; the next one delivers and judges."""
    grpc, http, metrics, health, page, nobody = free_ports(6)
    env = {
        "MCP_VERDICT_GRPC_ENDPOINT": address(grpc), "MCP_VERDICT_HTTP_ENDPOINT": address(http),
        "MCP_VERDICT_METRICS_ENDPOINT": address(metrics), "MCP_VERDICT_HEALTH_ENDPOINT": address(health),
        "MCP_VERDICT_DATA": str(tmp_path / "data"), "MCP_VERDICT_SETTLE": SETTLE,
    }
    command = [binary, "run", "--config", CONFIGS / "mcp-verdict.yaml",
               "--set", f"service.telemetry.page.endpoint={address(page)}"]
    away = {**env, "MCP_VERDICT_BACKEND": f"http://{address(nobody)}"}
    first = Program("first", command, tmp_path, away).ready(grpc, http)
    otlp = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{grpc}"}
    desk = Desk(tmp_path, otlp)
    seen, files = run_client([sys.executable, EXAMPLES / "python/client.py", desk.url], tmp_path, otlp)
    desk.program.stop()
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()

    there = {**env, "MCP_VERDICT_BACKEND": f"http://{address(backend.grpc)}"}
    second = Program("second", command, tmp_path, there).ready(grpc, http)
    exported = spans_of(*files, desk.spans)
    try:
        def arrived():
            found = spans_of(backend.traces)
            return found if exported.keys() <= found.keys() else None
        found = eventually(arrived, 30, "every span that the killed process had accepted")
        states = {attributes(span).get("mcp_verdict.state") for key in exported for span in [found[key][2]]}
        assert {"unverified", "tool_failed", "needs_auth", "effect_unknown", "healthy", "false_success"} <= states
    finally:
        assert second.stop() == 0, second.tail()
