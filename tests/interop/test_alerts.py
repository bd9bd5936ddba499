"""Alerts, their routes and the dashboards: against the registry, by Prometheus' own tools, and live.

The live part is one course of events: real calls fail, each in the way of another owner; the right alert reaches
the right receiver; it stops when the incident recovers; it is over when a success was verified.
"""
import json
import re
import time

import pytest
import yaml

from harness import CONFIGS, ROOT, address, eventually, http_get
from test_configs import accepts
from watching import FAILURES, NAME, firing, recorded, registry, rules, send, unknown_in

OWNERS = ["credential_owner", "authorization_owner", "availability_owner", "integration_owner", "client_implementer",
          "tool_owner", "outcome_owner", "operator"]

@pytest.mark.parametrize("name", ["recording.yaml", "alerts.yaml"])
def test_every_metric_and_label_in_a_rule_is_in_the_registry(name):
    """A rule over a name that nobody exports would be silent for ever."""
    known = recorded(registry())
    for rule in rules(name):
        assert re.findall(NAME, rule["expr"]) or rule["expr"].startswith("vector("), rule
        assert not unknown_in(rule["expr"], known), rule["expr"]


def test_an_unknown_name_is_found():
    """Guards the test above."""
    known = recorded(registry())
    assert unknown_in("mcp_verdict_verdict_total", known) == {"mcp_verdict_verdict_total"}
    assert unknown_in('sum by (agent) (mcp_verdict_verdicts_total{stat="a"})', known) == {"agent", "mcp_verdict_verdicts_total.stat"}


def test_every_alert_says_what_to_do_and_who_does_it():
    for rule in rules("alerts.yaml"):
        keeps = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"]))))
        labels = keeps | set(rule["labels"]) | ({"instance", "job"} if "by (" not in rule["expr"] else set())
        assert {"summary", "description", "runbook"} <= set(rule["annotations"]), rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning", "ticket"), rule["alert"]
        assert rule["labels"].get("owner", "any") in [*OWNERS, "pipeline", "any"], rule["alert"]
        assert "owner" in labels, rule["alert"]
        for text in rule["annotations"].values():
            assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels, (rule["alert"], text)


COURSES = ["alerts.test.yaml", "alerts-slow.test.yaml", "alerts-from-events.test.yaml"]


@pytest.mark.parametrize("name", COURSES)
def test_alerts_fire_when_they_should_and_not_else(name):
    accepts(["promtool", "test", "rules", ROOT / "tests/interop" / name])


def variant(rule):
    """Rules that share an alert's name differ in one label, which the tests name."""
    told = {key: value for key, value in rule["labels"].items() if key in ("window", "lost")}
    return (rule["alert"], *told.values())


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    fires, silent = set(), set()
    for name in COURSES:
        for test in yaml.safe_load((ROOT / "tests/interop" / name).read_text())["tests"]:
            checks = [{tuple(re.findall(r'(?:alertname|window|lost)="([^"]*)"', sample["labels"])) for sample in check["exp_samples"]}
                      for check in test["promql_expr_test"]]
            here = set().union(*checks)
            fires |= here
            silent |= {alert for alert in here if any(alert not in check for check in checks)}
    wanted = {variant(rule) for name in ("alerts.yaml", "alerts-from-events.yaml") for rule in rules(name)}
    assert wanted <= fires, wanted - fires
    assert wanted <= silent, wanted - silent


def test_alertmanager_accepts():
    accepts(["amtool", "check-config", CONFIGS / "alertmanager.yaml"])


def routed(labels):
    """The receiver that Alertmanager picks."""
    command = ["amtool", "config", "routes", "test", f"--config.file={CONFIGS / 'alertmanager.yaml'}",
               *(f"{key}={value}" for key, value in labels.items())]
    return accepts(command).stdout.strip()


def test_every_alert_has_a_receiver_of_its_owner():
    for rule in rules("alerts.yaml") + rules("alerts-from-events.yaml"):
        for owner in [rule["labels"]["owner"]] if "owner" in rule["labels"] else OWNERS:
            over = "/over" if rule["alert"] == "McpIncidentUnresolved" else ""
            assert routed({"alertname": rule["alert"], **rule["labels"], "owner": owner}) == owner + over
    assert routed({"alertname": "Another"}) == "unowned"


# Live: fixture `watched`.

@pytest.fixture(scope="module")
def failed(watched):
    """One call has failed in the way of each owner, and alerts of it are firing."""
    for end, owner, _ in FAILURES:
        send(watched, end, owner)
    for _, owner, alert in FAILURES:
        eventually(lambda: firing(watched, alertname=alert, owner=owner), 40, f"{alert} of {owner}")
    return watched


def test_each_failure_reaches_its_owner_and_nobody_else(failed):
    got = failed.receiver
    for _, owner, alert in FAILURES:
        server = f"{owner.replace('_', '-')}.example.com"
        eventually(lambda: got.has(owner, alert, "firing", owner=owner, server=server), 40, f"{alert} at {owner}: {dict(got.got)}")
        if owner != "operator":
            eventually(lambda: got.has(f"{owner}/over", "McpIncidentUnresolved", "firing", server=server), 40, f"the incident of {owner}")
    for _, owner, alert in FAILURES:
        assert {told["labels"]["owner"] for told in got.got[owner]} == {owner}
    assert not got.got["unowned"]
    told, = [told for told in got.got["tool_owner"] if told["labels"]["alertname"] == "McpToolFailing"]
    assert told["labels"]["tool"] == "create_ticket" and told["labels"]["contact"] == "#desk-team"
    every = [told for alerts in got.got.values() for told in alerts]
    said = [text for told in every for text in told["annotations"].values()]
    assert said and not [text for text in said if not text or "<error" in text or "<no value>" in text]


def test_it_stops_when_the_incident_recovers_and_is_over_when_a_success_was_verified(failed):
    watched = failed
    owner, server = "tool_owner", "tool-owner.example.com"
    assert firing(watched, alertname="McpToolFailing", server=server)
    send(watched, "answered", owner)
    eventually(lambda: not firing(watched, alertname="McpToolFailing", server=server), 40, "the alert to stop")
    # Nobody has verified anything: the incident goes on, and no receiver is told that it is over.
    time.sleep(3)
    assert firing(watched, alertname="McpIncidentUnresolved", server=server)
    assert not watched.receiver.has(owner, "McpToolFailing", "resolved")
    assert not watched.receiver.has(f"{owner}/over", "McpIncidentUnresolved", "resolved", server=server)
    send(watched, "verified", owner)
    eventually(lambda: watched.receiver.has(f"{owner}/over", "McpIncidentUnresolved", "resolved", server=server), 40,
               "the incident to be over")
    assert not firing(watched, alertname="McpIncidentUnresolved", server=server)
    # Others are not: each incident is its own.
    assert firing(watched, alertname="McpOutcomeWrong", server="outcome-owner.example.com")


def test_a_server_s_own_team_hears_of_it_instead(watched):
    watched.calls.call(server="payroll.example.com", session="payroll", end="tool_error")
    got = watched.receiver
    eventually(lambda: got.has("payroll", "McpToolFailing", "firing", contact="#payroll-oncall"), 40, "the team of the server")
    assert not got.has("tool_owner", "McpToolFailing", "firing", server="payroll.example.com")


def test_a_restart_of_mcp_verdict_is_no_recovery(failed):
    """The new process knows from its first answer on what stands; neither the page nor a receiver is misled."""
    watched = failed
    server = "outcome-owner.example.com"

    def stands():
        text = http_get(f"http://{address(watched.ports.metrics)}/metrics")
        return [line for line in text.splitlines() if line.startswith("mcp_verdict_incidents_active{") and server in line]

    def shown():
        listed = json.loads(http_get(f"http://{address(watched.ports.page)}/v1/incidents?server={server}"))
        return [(incident["reason"], incident["status"], incident["count"]) for incident in listed["incidents"]]
    before = stands(), shown()
    assert before[0][0].endswith(" 1") and before[1] == [("outcome_missing", "open", 1)]
    watched.restart()
    assert (stands(), shown()) == before
    for _ in range(8):
        assert firing(watched, alertname="McpOutcomeWrong", server=server)
        time.sleep(0.5)
    assert not watched.receiver.has("outcome_owner/over", "McpIncidentUnresolved", "resolved", server=server)


def test_what_is_documented_is_what_there_is():
    text = (ROOT / "docs/alerting.md").read_text()
    shipped = {rule["alert"] for name in ("alerts.yaml", "alerts-from-events.yaml") for rule in rules(name)}
    assert set(re.findall(r"`(Mcp\w+)`", text)) == shipped
    for owner, alerts, waits in re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]* \| ([^|]*) \|$", text, re.M):
        for rule in rules("alerts.yaml"):
            if f"`{rule['alert']}`" in alerts:
                assert rule["labels"]["owner"] == owner
                said = re.match(r"(\d+) min|at once", waits)
                assert rule.get("for", "0m") == f"{said[1] or 0}m", (rule["alert"], waits)
