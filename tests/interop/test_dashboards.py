"""Grafana dashboards without a Grafana: their shape, and every query of every panel against the real Prometheus.

The same mcp-verdict, Prometheus and Alertmanager as in test_alerts.py.
"""
import json
import re
import time
import urllib.parse

import pytest
import yaml

from harness import CONFIGS, ROOT, eventually, http_get
from watching import FAILURES, answer, recorded, registry, send, unknown_in

DASHBOARDS = sorted((CONFIGS / "grafana").glob("*.json"))
# Grafana's own, with values that fit a Prometheus that is a minute old.
GIVEN = {"$__rate_interval": "30s", "$__range": "5m"}
VIEWS = {"overview", "chains", "chain", "contracts", "sessions", "incidents", "pipeline"}


def load(path):
    return json.loads(path.read_text())


def queries(dashboard):
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboard_is_well_formed(path):
    dashboard = load(path)
    assert dashboard["uid"] and dashboard["title"] and dashboard["schemaVersion"] >= 36
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        references = [target["refId"] for target in panel["targets"]]
        assert references and len(set(references)) == len(references), panel["title"]
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard))) - {"__field", "__data", "__all", "__rate_interval", "__range"}
    assert used == variables, used ^ variables


def test_dashboards_are_five_and_apart():
    assert [path.stem for path in DASHBOARDS] == ["client", "contracts", "fleet", "pipeline", "server"]
    assert len({load(path)["uid"] for path in DASHBOARDS}) == 5


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_name_in_a_query_is_in_the_registry(path):
    known = recorded(registry())
    for title, expr in queries(load(path)):
        assert not unknown_in(expr, known), (title, expr)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_links_lead_to_views_and_filters_that_the_page_has(path):
    filters, = re.findall(r"const FILTERS = \[([^\]]*)\]", (ROOT / "src/page/static/chains.js").read_text())
    known = {"chains": set(re.findall(r'"(\w+)"', filters)), "incidents": {"server", "owner", "status"}}
    links = re.findall(r'"url": "(\$\{page\}[^"]*)"', path.read_text())
    assert links
    for link in links:
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(link.replace("${page}", "http://page")).query))
        view = asked.pop("view", "overview")
        assert view in VIEWS and set(asked) <= known.get(view, set()), link


@pytest.fixture(scope="module")
def busy(watched):
    """A little of everything that the dashboards show, twice, so that what counts is seen to grow."""
    eventually(lambda: answer(watched, "mcp_verdict_attempts_total"), 40, "the first scrape")
    for number in range(2):
        for end, owner, _ in FAILURES:
            send(watched, end, owner)
        for end in ("verified", "answered"):
            watched.calls.call(end=end)
        stale(watched)
        watched.calls.contracts(1_700_000_000 * 10**9 + watched.calls.sent * 10**12)
        eventually(lambda: answer(watched, 'mcp_verdict_verdicts_total{state="healthy"}')
                   and answer(watched, f"increase(mcp_verdict_attempts_total[5m]) > {number}"), 40, "the calls to be counted")
    revised(watched)
    eventually(lambda: answer(watched, 'sum(mcp_verdict_contract_drift_total{grade="breaking"})'), 40, "drift")
    eventually(lambda: answer(watched, 'mcp_verdict:incidents_active:sum{layer="catalog"} > 0'), 40, "a stale catalog")
    return watched


def revised(watched):
    """A call that is judged, and then verified by a log record."""
    calls, server = watched.calls, "late.example.com"
    call = calls.request("tools/call", time.time_ns() - 10**9, {
        "server.address": server, "mcp.session.id": "late", "gen_ai.tool.name": "create_ticket", "mcp_evidence.call.is_error": False})
    calls.post({"support-agent": [call]})
    eventually(lambda: answer(watched, f'mcp_verdict_verdicts_total{{server="{server}"}}'), 40, "the first verdict")
    calls.log("support-agent", call, {"mcp_evidence.outcome.status": "verified", "mcp_evidence.outcome.method": "query"})
    eventually(lambda: answer(watched, 'mcp_verdict_revisions_total{to="healthy"}'), 40, "the revision")


def stale(watched):
    """A call by a caller that installed other definitions than it had discovered."""
    calls = watched.calls
    call = {"server.address": "old.example.com", "mcp.session.id": f"old-{calls.sent}"}
    now = time.time_ns()
    calls.post({"support-agent": [calls.request("tools/list", now - 3 * 10**9, call | {
        "mcp_evidence.registry.discovered_digest": "mcp-tool/1:sha256:" + "a" * 64,
        "mcp_evidence.registry.installed_digest": "mcp-tool/1:sha256:" + "b" * 64,
        "mcp_evidence.list.last_page": True})]})
    calls.post({"support-agent": [calls.request("tools/call", now - 10**9, call | {
        "gen_ai.tool.name": "create_ticket", "mcp_evidence.call.is_error": False})]})


def values(watched, definition):
    """What Grafana would offer for `label_values(series, label)`."""
    series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", definition).groups()
    url = f"http://127.0.0.1:{watched.ports.prometheus}/api/v1/label/{label}/values?match[]={urllib.parse.quote(series)}"
    return [value for value in json.loads(http_get(url))["data"] if value]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_query_of_every_panel_has_data(busy, path):
    dashboard = load(path)
    filled = dict(GIVEN)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            definition = variable["query"]["query"]
            for name, value in filled.items():
                definition = definition.replace(name, value)
            offered = values(busy, definition)
            assert offered, definition
            # Several chosen values reach Prometheus as one expression, like this.
            filled["$" + variable["name"]] = "(" + "|".join(re.escape(value) for value in offered).replace("\\", "\\\\") + ")"

    def empty():
        return [(title, expr) for title, expr in asked if not numbers(answer(busy, expr))]
    asked = queries(dashboard)
    for name, value in filled.items():
        asked = [(title, expr.replace(name, value)) for title, expr in asked]
    eventually(lambda: not empty(), 40, f"data for {empty()}")


def numbers(series):
    return [one for one in series if one["value"][1] != "NaN"]


def test_a_dot_on_a_panel_leads_to_its_trace_and_to_its_chain_on_the_page(busy):
    """Exemplars by the real Prometheus: the page knows the chain, and it is of that trace."""
    expr, = [expr for title, expr in queries(load(CONFIGS / "grafana/fleet.json")) if title == "Verdicts by state"]
    query = urllib.parse.urlencode({"query": expr.replace("$__rate_interval", "30s"), "start": 0, "end": 4_000_000_000})
    prometheus, page = (f"http://127.0.0.1:{port}" for port in (busy.ports.prometheus, busy.ports.page))

    def exemplars():
        return json.loads(http_get(f"{prometheus}/api/v1/query_exemplars?{query}"))["data"]
    found = eventually(exemplars, 40, "exemplars")
    states = {series["seriesLabels"]["state"] for series in found}
    assert {"false_success", "tool_failed", "needs_auth", "healthy"} <= states
    for series in found:
        for exemplar in series["exemplars"]:
            chain = json.loads(http_get(f"{page}/v1/chains/{exemplar['labels']['chain_id']}"))
            assert exemplar["labels"]["trace_id"] in json.dumps(chain)
    sources = {source["uid"]: source for source in yaml.safe_load((CONFIGS / "grafana/datasources.yaml").read_text())["datasources"]}
    led = {to["name"]: to for to in sources["mcp-prometheus"]["jsonData"]["exemplarTraceIdDestinations"]}
    assert sources[led["trace_id"]["datasourceUid"]]["type"] == "jaeger"
    assert led["chain_id"]["url"].endswith("/?view=chain&id=$${__value.raw}")
