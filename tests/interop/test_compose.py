"""docker-compose.yml and the Dockerfiles, without a Docker engine.

The compose file is loaded by the library that docker compose loads it with, which checks it against the
Compose schema. Then every service's own command runs, with its environment, its mounted files and its
configs, as processes of this machine: host names become loopback, ports become free ones.
"""
import json
import os
import re
import shutil
import subprocess
import sys

import dockerfile_parse
import pytest

from harness import ROOT, Program, eventually, free_ports, http_get, jaeger_traces

DOCKERFILES = ["Dockerfile", "examples/python/Dockerfile"]
STATES = ("unverified", "tool_failed", "needs_auth", "effect_unknown", "healthy", "false_success")


def stages(dockerfile):
    """The instructions of each stage, as (instruction, value)."""
    parser = dockerfile_parse.DockerfileParser(fileobj=open(ROOT / dockerfile, "rb"))
    found = []
    for line in parser.structure:
        if line["instruction"] == "FROM":
            found.append([])
        if line["instruction"] != "COMMENT":
            found[-1].append((line["instruction"], line["value"]))
    return found


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_dockerfile_is_well_formed(dockerfile):
    done = subprocess.run(["hadolint", ROOT / dockerfile], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_what_is_copied_is_there_and_nothing_runs_as_root(dockerfile):
    context = (ROOT / dockerfile).parent
    for stage in stages(dockerfile):
        for instruction, value in stage:
            if instruction == "COPY" and not value.startswith("--from"):
                assert all((context / name).exists() for name in value.split()[:-1]), value
    users = [value for instruction, value in stages(dockerfile)[-1] if instruction == "USER"]
    assert users and users[-1] not in ("0", "root")


def test_the_image_is_built_by_the_command_that_the_tests_build_with():
    runs = [value for instruction, value in stages("Dockerfile")[0] if instruction == "RUN"]
    assert runs == ["cargo build --release --locked"]
    assert runs[0] in (ROOT / "tests/run").read_text()


@pytest.fixture(scope="module")
def project():
    checker = subprocess.run([ROOT / "tests/interop/peers/build", "compose-check"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout.strip()
    done = subprocess.run([checker, ROOT / "docker-compose.yml"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Here:
    """The services of a compose project as processes of this machine."""

    def __init__(self, project, programs, folder):
        self.project, self.programs, self.folder = project, programs, folder
        self.names = "|".join([*map(re.escape, project["services"]), r"0\.0\.0\.0"])
        text = json.dumps(project)
        inner = {int(port) for port in re.findall(rf"(?:{self.names}):(\d+)", text)} | {9090}
        self.port = dict(zip(sorted(inner), free_ports(len(inner))))

    def local(self, text):
        """Host names and ports as they are here."""
        text = re.sub(rf"\b(?:{self.names}):(\d+)", lambda m: f"127.0.0.1:{self.port[int(m[1])]}", text)
        if text.isdigit() and int(text) in self.port:
            return str(self.port[int(text)])
        return re.sub(r"^0\.0\.0\.0$", "127.0.0.1", text)

    def files(self, name, service):
        """Lays out what is mounted; gives the places that commands name and where they are here."""
        root, moved = self.folder / name, {}
        for volume in service.get("volumes") or []:
            here = root / volume["target"].lstrip("/")
            here.parent.mkdir(parents=True, exist_ok=True)
            if volume["type"] == "bind":
                shutil.copy(volume["source"], here)
            else:
                here.mkdir(exist_ok=True)
            moved[volume["target"]] = here
        for config in service.get("configs") or []:
            here = root / config["target"].lstrip("/")
            here.parent.mkdir(parents=True, exist_ok=True)
            here.write_text(self.local(self.project["configs"][config["source"]]["content"]))
            moved[config["target"]] = here
        return moved

    def start(self, name):
        service = self.project["services"][name]
        moved = self.files(name, service)

        def local(text):
            for there, here in moved.items():
                text = re.sub(rf"(^|=){re.escape(there)}(?=/|$)", rf"\g<1>{here}", text)
            return self.local(text)
        command = [*self.programs[name], *map(local, service["command"])]
        own = {"prometheus": 9090, "alertmanager": 9093}
        if name in own:
            command += ["--web.listen-address", f"127.0.0.1:{self.port[own[name]]}"]
        context = (service.get("build") or {}).get("context")
        env = {key: local(value) for key, value in (service.get("environment") or {}).items()}
        (self.folder / name).mkdir(exist_ok=True)
        cwd = context if name in ("desk", "agent") else self.folder / name
        return Program(name, command, self.folder, env, cwd=cwd)

    def order(self):
        """Services, each after those that it depends on."""
        done = []
        while len(done) < len(self.project["services"]):
            done += [name for name, service in self.project["services"].items() if name not in done
                     and all(needed in done for needed in service.get("depends_on") or {})]
        return done


@pytest.fixture(scope="module")
def stack(project, binary, peers, tmp_path_factory):
    assert [value for instruction, value in stages("Dockerfile")[-1] if instruction == "ENTRYPOINT"] == ['["mcp-verdict"]']
    programs = {"desk": [], "agent": [], "mcp-verdict": [binary], "collector": [peers.collector],
                "jaeger": [peers.jaeger], "prometheus": ["prometheus"], "alertmanager": ["prometheus-alertmanager"]}
    here = Here(project, programs, tmp_path_factory.mktemp("compose"))
    # `python` of the image is the Python that runs these tests.
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    listens = {"desk": 8000, "mcp-verdict": 4317, "collector": 14317, "jaeger": 16686, "alertmanager": 9093, "prometheus": 9090}
    started = []
    try:
        for name in here.order():
            started.append(here.start(name))
            if name in listens:
                started[-1].ready(here.port[listens[name]])
        yield here
    finally:
        codes = {program.name: program.stop() for program in reversed(started)}
    assert codes["mcp-verdict"] == 0


def test_the_client_s_calls_are_found_in_jaeger(stack):
    for state in STATES:
        eventually(lambda: jaeger_traces(stack.port[16686], "ticket-desk-agent", {"mcp_verdict.state": state}),
                   40, f"a span with mcp_verdict.state={state}")


def test_prometheus_scrapes_and_alerts(stack):
    def firing():
        answer = json.loads(http_get(f"http://127.0.0.1:{stack.port[9090]}/api/v1/alerts"))
        return {alert["labels"]["alertname"] for alert in answer["data"]["alerts"] if alert["state"] == "firing"}
    eventually(lambda: "McpFalseSuccess" in firing(), 60, "McpFalseSuccess")


def test_alertmanager_hears_of_it_and_the_page_shows_it(stack):
    def heard():
        alerts = json.loads(http_get(f"http://127.0.0.1:{stack.port[9093]}/api/v2/alerts"))
        return {(alert["labels"]["alertname"], receiver["name"]) for alert in alerts for receiver in alert["receivers"]}
    eventually(lambda: ("McpOutcomeWrong", "outcome_owner") in heard(), 60, "McpOutcomeWrong for its owner")
    incidents = json.loads(http_get(f"http://127.0.0.1:{stack.port[55679]}/v1/incidents?owner=outcome_owner"))["incidents"]
    assert [incident["status"] for incident in incidents] == ["open"]
