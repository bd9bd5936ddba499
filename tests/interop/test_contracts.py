"""Contracts against a real server that changes its tool between calls: the examples pin, ask before each
call and halt; what is called all the same is judged; a reload by signal; the lock commands from outside.
"""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

import junitparser
import pytest
import xmlschema

from harness import EXAMPLES, ROOT, Program, address, attributes, eventually, free_ports, log_records_of, run_client


class Verdicts:
    """A mcp-verdict of this test's own, with its logs of verdicts in a file."""

    def __init__(self, binary, folder, mode):
        self.binary, self.folder, self.lockfile = binary, folder, folder / "mcp-tools.lock"
        self.grpc, http, metrics, health, self.page = free_ports(5)
        self.file = folder / "verdicts.jsonl"
        self.config = folder / "config.yaml"
        self.write(mode)
        at = {"receivers.otlp.protocols.grpc": self.grpc, "receivers.otlp.protocols.http": http,
              "service.telemetry.metrics": metrics, "service.telemetry.health": health,
              "service.telemetry.page": self.page}
        sets = [part for key, port in at.items() for part in ("--set", f"{key}.endpoint={address(port)}")]
        self.program = Program("verdicts", [binary, "run", "--config", self.config, *sets], folder)
        self.program.ready(self.grpc, self.page)
        self.api = f"http://{address(self.page)}"
        self.env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address(self.grpc)}"}

    def write(self, mode, more=""):
        self.config.write_text(f"""
processors: {{ mcp_verdict: {{ settle: 1s, contracts: {{ mode: {mode}, lockfile: mcp-tools.lock }}{more} }} }}
storage: {{ directory: data, ack: queued }}
exporters: {{ file: {{ path: {self.file.name} }} }}
service: {{ logs: [file], traces: [], metrics: [] }}
""")

    def reload(self):
        self.program.process.send_signal(signal.SIGHUP)

    def check(self, server, tool):
        question = json.dumps({"server": server, "tool": tool["name"], "definition": tool}).encode()
        request = urllib.request.Request(self.api + "/v1/contracts/check", question, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def lock(self, *words, text=None):
        command = [self.binary, "lock", *words, "--lockfile", self.lockfile]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=30, input=text)
        return done.returncode, done.stdout + done.stderr

    def records(self):
        return [attributes(record) | {"event": record.event_name} for record in log_records_of(self.file)]


@pytest.fixture
def library(tmp_path):
    port, = free_ports(1)
    program = Program("library", [sys.executable, EXAMPLES / "python/changing_server.py", port], tmp_path).ready(port)
    yield address(port), f"http://{address(port)}/mcp"
    program.stop()


@pytest.fixture
def pinning(binary, tmp_path):
    verdicts = Verdicts(binary, tmp_path, "pin")
    yield verdicts
    assert verdicts.program.stop() == 0, verdicts.program.tail()


def halts(seen):
    """What both examples must see."""
    assert seen["first use"]["halted"] is False and seen["first use"]["reason"] in ("unpinned", "pinned")
    assert (seen["pinned"]["halted"], seen["pinned"]["reason"]) == (False, "pinned")
    assert (seen["renamed"]["halted"], seen["renamed"]["grade"]) == (True, "breaking")
    assert any(pointer.startswith("/inputSchema/properties/q") for pointer in seen["renamed"]["pointers"])
    assert (seen["reworded"]["halted"], seen["reworded"]["grade"]) == (True, "semantic")
    assert seen["reworded"]["pointers"] == ["/description"]
    assert (seen["restored"]["halted"], seen["restored"]["reason"]) == (False, "pinned")


def test_the_python_example_halts_and_what_it_calls_all_the_same_is_judged(pinning, library):
    """Discover, pin, rename with open additional properties: the call still succeeds, and is told."""
    server, url = library
    seen, _ = run_client([sys.executable, EXAMPLES / "python/contracts.py", url, pinning.api], pinning.folder, pinning.env)
    halts(seen)
    assert seen["renamed, not asked"]["result"] == "passage about nothing in particular", "it still succeeds"

    def stale():
        found = [r for r in pinning.records() if r.get("mcp_verdict.state") == "stale_catalog"]
        return found if found else None
    record = eventually(stale, 20, "the verdict on the call that was made all the same")[-1]
    assert record["mcp_verdict.contract.status"] == "drifted", record
    assert "contract_drift" in record["mcp_verdict.findings"] and "argument_not_in_contract" in record["mcp_verdict.findings"]
    assert "/inputSchema/properties/q" in record["mcp_verdict.findings.detail"]
    def grades():
        drifts = [r for r in pinning.records() if r["event"] == "mcp_verdict.contract_drift"]
        return {"breaking", "semantic"} <= {r["mcp_verdict.grade"] for r in drifts if r["mcp_verdict.tool"] == "search"}
    eventually(grades, 20, "an event for each of the two drifts")
    lockfile = pinning.lockfile.read_text()
    assert "search" in lockfile and server in lockfile and "best passage" not in lockfile


def test_the_typescript_example_halts(pinning, library, typescript_client):
    seen, _ = run_client(["node", pathlib.Path(typescript_client).with_name("contracts.js"), library[1], pinning.api],
                         pinning.folder, pinning.env)
    halts(seen)


def listing(description="Finds.", parameter="query"):
    return {"name": "search", "description": description, "inputSchema": {
        "type": "object", "properties": {parameter: {"type": "string"}}}}


def test_a_signal_brings_the_lockfile_and_a_bad_one_is_told(binary, tmp_path):
    """`enforce`, nothing pinned; `lock init` and SIGHUP; then a lockfile in the middle of a merge, and a
    configuration that is wrong. Only what can be read is taken, and the log says what was not."""
    verdicts = Verdicts(binary, tmp_path, "enforce")
    reason = lambda tool: verdicts.check("lib", tool)["reason"]
    assert reason(listing()) == "contract_unpinned"
    assert verdicts.lock("init", "--server", "lib", text=json.dumps({"tools": [listing()]}))[0] == 0
    verdicts.reload()
    eventually(lambda: reason(listing()) == "pinned", 10, "the pins after the signal")
    reworded = verdicts.check("lib", listing("Finds, and tells."))
    assert (reworded["answer"], reworded["grade"], reworded["changes"][0]["pointer"]) == ("halt", "semantic", "/description")

    verdicts.lockfile.write_text("version = 1\n<<<<<<< ours\n")
    verdicts.reload()
    eventually(lambda: "line 2" in verdicts.program.tail(8000), 10, "a word on the damaged lockfile")
    assert reason(listing()) == "pinned", "the pins stay"

    verdicts.write("enforce", ", settle_time: 1s")
    verdicts.reload()
    eventually(lambda: "settle_time" in verdicts.program.tail(8000), 10, "a word on the unknown key")
    assert reason(listing()) == "pinned", "the configuration stays"
    verdicts.write("observe")
    verdicts.reload()
    eventually(lambda: reason(listing()) == "unpinned", 10, "the other mode")
    assert verdicts.program.stop() == 0, verdicts.program.tail()


def test_lock_reads_a_running_instance(pinning, library):
    """The pins that a person makes from what the instance saw are those that the instance made itself."""
    server, url = library
    run_client([sys.executable, EXAMPLES / "python/contracts.py", url, pinning.api], pinning.folder, pinning.env)
    eventually(lambda: pinning.lockfile.exists() and "release" in pinning.lockfile.read_text(), 10, "both pins")
    code, said = pinning.lock("check", "--from-instance", pinning.api, "--server", server)
    assert code == 0, said


# The published command line, and the types generated from SARIF's published schema.
NPM = {"@modelcontextprotocol/inspector": "0.15.0", "@types/sarif": "2.1.7", "typescript": "5.9.3"}


@pytest.fixture(scope="session")
def npm():
    """A folder outside the tree with these packages."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "mcp-verdict-tests"
    folder = cache / ("contracts-" + hashlib.sha256(json.dumps(NPM).encode()).hexdigest()[:8])
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": NPM}))
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True, stdin=subprocess.DEVNULL)
        (folder / "ready").touch()
    return folder


def ask(url, npm, *words):
    """What docs/contracts.md pipes into `lock`."""
    command = [npm / "node_modules/.bin/mcp-inspector", "--cli", url, "--transport", "http", *words]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_inspectors_answer_is_checked_and_reported(pinning, library, npm):
    """`tools/list` by the MCP Inspector, pinned, renamed, checked: exit codes, and reports that others read:
    SARIF by the types of its published schema, JUnit by the schema that Jenkins has for it."""
    url = library[1]
    listed = ask(url, npm, "--method", "tools/list")
    assert pinning.lock("init", "--server", "lib", text=listed)[0] == 0
    assert pinning.lock("check", "--server", "lib", text=listed)[0] == 0
    ask(url, npm, "--method", "tools/call", "--tool-name", "release", "--tool-arg", "what=rename")
    moved = ask(url, npm, "--method", "tools/list")
    code, sarif = pinning.lock("check", "--server", "lib", "--format", "sarif", text=moved)
    assert code == 1
    rules = {result["ruleId"] for result in json.loads(sarif)["runs"][0]["results"]}
    assert "contract/breaking" in rules
    checked = npm / "report.ts"
    checked.write_text('import { Log } from "sarif";\nexport const log: Log = ' + sarif + ";\n")
    tsc = [str(npm / "node_modules/.bin/tsc"), "--noEmit", "--strict", "--skipLibCheck", str(checked)]
    types = lambda: subprocess.run(tsc, capture_output=True, text=True, timeout=120, cwd=npm, stdin=subprocess.DEVNULL)
    done = types()
    assert done.returncode == 0, done.stdout
    checked.write_text(checked.read_text().replace('"level": "error"', '"level": "awful"'))
    assert types().returncode != 0, "the types would tell"
    code, junit = pinning.lock("check", "--server", "lib", "--format", "junit", text=moved)
    schema = xmlschema.XMLSchema(str(ROOT / "tests/data/schemas/junit-10.xsd"))
    schema.validate(junit)
    assert not schema.is_valid(junit.replace("<failure", "<fails").replace("</failure", "</fails"))
    suite, = junitparser.JUnitXml.fromstring(junit.encode())
    assert (code, suite.tests, suite.failures, suite.errors) == (1, 2, 1, 0)
    failed, = [case.name for case in suite if case.result]
    assert failed == "search"
