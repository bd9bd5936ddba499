"""The programs of docs/instrumenting, as they stand there, with the real SDKs: their call ends healthy."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from harness import ROOT, Program, address, eventually, free_ports, http_get

GUIDES = ROOT / "docs/instrumenting"


def programs(guide, folder):
    """Writes the programs of a guide by the names in their first lines, and its configuration."""
    text = (GUIDES / guide).read_text()
    for name, program in re.findall(r"^```\w+\n(?:#|//) (\w+\.\w+)\n(.*?)^```$", text, re.M | re.S):
        (folder / name).write_text(program)
    return re.search(r"^```yaml\n(.*?)^```$", text, re.M | re.S)[1]


class Judge:
    """mcp-verdict under the configuration of a guide."""

    def __init__(self, binary, folder, config):
        self.grpc, http, metrics, health, self.page = free_ports(5)
        (folder / "config.yaml").write_text(config)
        at = {"receivers.otlp.protocols.grpc": self.grpc, "receivers.otlp.protocols.http": http,
              "service.telemetry.metrics": metrics, "service.telemetry.health": health, "service.telemetry.page": self.page}
        sets = [f"{key}.endpoint={address(port)}" for key, port in at.items()]
        sets += ["processors.mcp_verdict.settle=1s", "storage.ack=queued", f"exporters.file.path={folder}/out.jsonl"]
        command = [binary, "run", "--config", folder / "config.yaml", *(part for one in sets for part in ("--set", one))]
        self.program = Program("judge", command, folder).ready(self.grpc, self.page)

    def chains(self, tool):
        return json.loads(http_get(f"http://{address(self.page)}/v1/chains?tool={tool}"))["chains"]


@pytest.fixture
def judged(binary, tmp_path):
    """Runs a guide's program; gives what became of the call that it makes."""
    judges = []

    def run(guide, command, folder=tmp_path):
        judge = Judge(binary, tmp_path, programs(guide, folder))
        judges.append(judge)
        env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address(judge.grpc)}"}
        done = subprocess.run([str(part) for part in command], cwd=tmp_path, env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        # The verdict may be revised while spans still come.
        last = []

        def healthy():
            last[:] = judge.chains("create_ticket")
            return [chain for chain in last if chain["state"] == "healthy"]
        try:
            eventually(healthy, 40, "a healthy call")
        except AssertionError:
            pytest.fail(json.dumps(last, indent=1))
        assert len(last) == 1, "one call, one chain"
        return last[0]
    yield run
    for judge in judges:
        judge.program.stop()


def test_python(judged):
    call = judged("python.md", [sys.executable, "agent.py"])
    assert (call["effect"], call["outcome"]) == ("confirmed", {"status": "verified", "method": "query"})
    assert call["client_span_id"] and call["server_span_id"]


def test_typescript(judged, tmp_path, typescript_client):
    """Compiled and run where the packages of the TypeScript example are."""
    programs("python.md", tmp_path)
    packages = pathlib.Path(typescript_client).parents[1]
    programs("typescript.md", tmp_path)
    (tmp_path / "node_modules").symlink_to(packages / "node_modules")
    (tmp_path / "package.json").write_text("{}")
    shutil.copy(packages / "tsconfig.json", tmp_path / "tsconfig.json")
    built = subprocess.run(["npx", "tsc"], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    call = judged("typescript.md", ["node", "dist/agent.js", sys.executable, "desk.py"])
    assert call["outcome"] == {"status": "verified", "method": "query"}
    assert call["client_span_id"] and call["server_span_id"]
