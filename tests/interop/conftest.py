"""The pipeline under test, started once: mcp-verdict, a Collector behind it, Jaeger behind that.

Every program reads its configuration from otel-config/; ports and folders come by environment variables.
The binary under test is $MCP_VERDICT_BIN, else target/release/mcp-verdict. Peers are found, and if need
be built, by tests/interop/peers/build.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import types

import pytest

from watching import watched  # noqa: F401, a fixture
from harness import CONFIGS, EXAMPLES, ROOT, Desk, Program, address, free_ports, run_client

# Shorter than the default of 6 s, longer than the half second after which the examples export.
SETTLE = "2s"


@pytest.fixture(scope="session")
def binary():
    path = pathlib.Path(os.environ.get("MCP_VERDICT_BIN", ROOT / "target/release/mcp-verdict"))
    assert path.exists(), f"{path} is not there: cargo build --release"
    return path


@pytest.fixture(scope="session")
def peers():
    """Paths of the programs beside ours."""
    built = subprocess.run([ROOT / "tests/interop/peers/build", "collector", "jaeger"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    return types.SimpleNamespace(collector=built[0], jaeger=built[1])


@pytest.fixture(scope="session")
def backend(peers, tmp_path_factory):
    """A Collector that sends traces on to Jaeger and keeps what it got in files."""
    folder = tmp_path_factory.mktemp("backend")
    grpc, http, prometheus, jaeger, query, query_grpc = free_ports(6)
    env = {
        "BEHIND_GRPC_ENDPOINT": address(grpc), "BEHIND_HTTP_ENDPOINT": address(http),
        "BEHIND_PROMETHEUS_ENDPOINT": address(prometheus), "JAEGER_GRPC_ENDPOINT": address(jaeger),
        "JAEGER_QUERY_HTTP_ENDPOINT": address(query), "JAEGER_QUERY_GRPC_ENDPOINT": address(query_grpc),
        "ARRIVED_TRACES": str(folder / "traces.jsonl"), "ARRIVED_LOGS": str(folder / "logs.jsonl"),
    }
    started = [Program("jaeger", [peers.jaeger, "--config", CONFIGS / "jaeger.yaml"], folder, env).ready(jaeger, query)]
    tee = ROOT / "tests/interop/collector-tee.yaml"
    started.append(Program("collector-behind", [peers.collector, "--config", CONFIGS / "collector-behind.yaml",
                                                "--config", tee], folder, env).ready(grpc, http))
    yield types.SimpleNamespace(grpc=grpc, http=http, prometheus=prometheus, query=query,
                                traces=folder / "traces.jsonl", logs=folder / "logs.jsonl")
    for program in reversed(started):
        program.stop()


@pytest.fixture(scope="session")
def verdict(binary, backend, tmp_path_factory):
    """mcp-verdict with otel-config/mcp-verdict.yaml; at the end it must stop cleanly."""
    folder = tmp_path_factory.mktemp("verdict")
    grpc, http, metrics, health, page = free_ports(5)
    env = {
        "MCP_VERDICT_GRPC_ENDPOINT": address(grpc), "MCP_VERDICT_HTTP_ENDPOINT": address(http),
        "MCP_VERDICT_METRICS_ENDPOINT": address(metrics), "MCP_VERDICT_HEALTH_ENDPOINT": address(health),
        "MCP_VERDICT_DATA": str(folder / "data"),
        "MCP_VERDICT_BACKEND": f"http://{address(backend.grpc)}", "MCP_VERDICT_SETTLE": SETTLE,
    }
    command = [binary, "run", "--config", CONFIGS / "mcp-verdict.yaml", "--set", f"service.telemetry.page.endpoint={address(page)}"]
    program = Program("mcp-verdict", command, folder, env)
    program.ready(grpc, http, metrics, health)
    yield types.SimpleNamespace(program=program, grpc=grpc, http=http, metrics=metrics, health=health, env=env)
    assert program.stop() == 0, program.tail()


@pytest.fixture(scope="session")
def desk_run(verdict, tmp_path_factory):
    """The Python client has called the ticket desk once, and the verdicts have had their time."""
    folder = tmp_path_factory.mktemp("desk")
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{verdict.grpc}"}
    desk = Desk(folder, env)
    run_client([sys.executable, EXAMPLES / "python/client.py", desk.url], folder, env)
    desk.program.stop()


@pytest.fixture(scope="session")
def in_front(peers, verdict, tmp_path_factory):
    """A Collector whose next hop is mcp-verdict."""
    folder = tmp_path_factory.mktemp("front")
    grpc, http = free_ports(2)
    env = {**verdict.env, "FRONT_GRPC_ENDPOINT": address(grpc), "FRONT_HTTP_ENDPOINT": address(http)}
    program = Program("collector-in-front", [peers.collector, "--config", CONFIGS / "collector-in-front.yaml"],
                      folder, env).ready(grpc, http)
    yield types.SimpleNamespace(grpc=grpc, http=http)
    program.stop()


@pytest.fixture(scope="session")
def typescript_client():
    """The compiled TypeScript example; its packages are installed beside a copy of it, outside the tree."""
    source = ROOT / "examples/typescript"
    lock = (source / "package-lock.json").read_bytes()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "mcp-verdict-tests"
    folder = cache / ("typescript-" + hashlib.sha256(lock).hexdigest()[:8])
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "tsconfig.json", "client.ts", "contracts.ts", "telemetry.ts"):
        shutil.copy(source / name, folder / name)
    if not (folder / "node_modules/.package-lock.json").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    subprocess.run(["npm", "run", "--silent", "build"], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return folder / "dist/client.js"
