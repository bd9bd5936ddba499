"""The chart by the real Helm, in the long ladder and where it has been built before."""
import os
import pathlib
import re
import subprocess

import pytest
import yaml

from harness import ROOT

BUILD = ROOT / "tests/interop/peers/build"
CHART = ROOT / "charts/mcp-verdict"


@pytest.fixture(scope="module")
def helm(tmp_path_factory):
    version = re.search(r"^HELM=(.+)$", BUILD.read_text(), re.M)[1]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    program = cache / f"mcp-verdict-peers/helm-{version}/helm"
    if not program.exists():
        if not os.environ.get("LONG_FORMS"):
            pytest.skip("Helm is built by tests/run --full, or by tests/interop/peers/build helm")
        subprocess.run([BUILD, "helm"], check=True)
    home = str(tmp_path_factory.mktemp("helm"))
    env = {**os.environ, "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home, "HELM_DATA_HOME": home}

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, env=env, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return run


def rendered(helm, *sets):
    text = helm("template", "verdict", CHART, *(part for one in sets for part in ("--set", one)))
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}


def test_helm_finds_no_fault(helm):
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART)


def test_what_it_renders_fits_together(helm, binary, tmp_path):
    """The configuration is one that the program takes; ports, probes and selectors find each other."""
    objects = rendered(helm, "serviceMonitor.enabled=true")
    config = tmp_path / "config.yaml"
    config.write_text(objects["ConfigMap", "verdict-mcp-verdict"]["data"]["config.yaml"])
    done = subprocess.run([binary, "validate", "--config", config], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    pod = objects["StatefulSet", "verdict-mcp-verdict"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/livez", "port": "health"}
    labels = pod["metadata"]["labels"].items()
    for kind, name in objects:
        if kind == "Service":
            spec = objects[kind, name]["spec"]
            assert spec["selector"].items() <= labels
            assert {port["targetPort"] for port in spec["ports"]} <= ports
    policy = objects["NetworkPolicy", "verdict-mcp-verdict"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == ports
    monitor = objects["ServiceMonitor", "verdict-mcp-verdict"]["spec"]
    service = objects["Service", "verdict-mcp-verdict"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert objects["StatefulSet", "verdict-mcp-verdict"]["spec"]["serviceName"] == "verdict-mcp-verdict-pods"
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    claims = {claim["metadata"]["name"] for claim in objects["StatefulSet", "verdict-mcp-verdict"]["spec"]["volumeClaimTemplates"]}
    assert mounts == {volume["name"] for volume in pod["spec"]["volumes"]} | claims


def test_what_can_be_left_out_is(helm):
    objects = rendered(helm, "persistence.enabled=false", "networkPolicy.enabled=false", "serviceAccount.create=false",
                       "secretMounts[0].name=tokens,secretMounts[0].secretName=t,secretMounts[0].mountPath=/secrets")
    assert {kind for kind, _ in objects} == {"ConfigMap", "Service", "StatefulSet"}
    spec = objects["StatefulSet", "verdict-mcp-verdict"]["spec"]
    assert "volumeClaimTemplates" not in spec
    volumes = {volume["name"]: volume for volume in spec["template"]["spec"]["volumes"]}
    assert volumes["data"] == {"name": "data", "emptyDir": {}}
    assert volumes["tokens"] == {"name": "tokens", "secret": {"secretName": "t"}}
