"""The live page in a real Chromium: every view, filters, live without jumping, empty, hostile names, an
accessibility checker, the keyboard alone, a phone, both colours.

UPDATE_IMAGES=1 writes the pictures of docs/images anew.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import openapi_spec_validator
import pytest
from playwright.sync_api import expect, sync_playwright

from harness import ROOT, Program, address, eventually, free_ports, http_get
from page_calls import HOSTILE, Calls

VIEWS = {"": "Overview", "?view=chains": "Chains", "?view=contracts": "Contracts", "?view=sessions": "Catalogs",
         "?view=incidents": "Incidents", "?view=coverage": "Coverage",
         "?view=pipeline": "Pipeline"}
AXE = "4.14.1"


class Running:
    """A mcp-verdict of these tests' own."""

    def __init__(self, binary, folder, more=()):
        self.grpc, self.http, metrics, health, self.port = free_ports(5)
        config = folder / "config.yaml"
        config.write_text(f"""
processors: {{ mcp_verdict: {{ settle: 300ms, healthy_requires: [request, effect, outcome] }} }}
storage: {{ directory: data, ack: queued }}
exporters: {{ file: {{ path: verdicts.jsonl }} }}
""")
        at = {"receivers.otlp.protocols.grpc": self.grpc, "receivers.otlp.protocols.http": self.http,
              "service.telemetry.metrics": metrics, "service.telemetry.health": health, "service.telemetry.page": self.port}
        sets = [f"{key}.endpoint={address(port)}" for key, port in at.items()] + list(more)
        command = [binary, "run", "--config", config, *(part for text in sets for part in ("--set", text))]
        self.program = Program("page", command, folder).ready(self.http, self.port)
        self.url = f"http://{address(self.port)}/"
        self.calls = Calls(self.http)

    def chains(self):
        return int(re.search(r'"chains":(\d+)', http_get(self.url + "v1/overview"))[1])


@pytest.fixture(scope="module")
def running(binary, tmp_path_factory):
    """It has judged an hour of calls, and names made to break pages."""
    running = Running(binary, tmp_path_factory.mktemp("page"))
    running.calls.hour()
    running.calls.hostile()
    eventually(lambda: running.chains() > 100 + len(HOSTILE), 30, "the chains of an hour")
    eventually(lambda: '"drifts":[{' in http_get(running.url + "v1/drifts"), 20, "the drift")
    yield running
    assert running.program.stop() == 0, running.program.tail()


@pytest.fixture(scope="module")
def chromium():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "on Debian: apt-get install chromium"
    with sync_playwright() as playwright:
        # Root has no sandbox to put it in; it visits this machine alone.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, running):
    """Opens an address; in the end no page may have said an error or been kept from breaking its policy,
    but for what the test has provoked itself."""
    said, contexts = [], []

    def open_(query="", of=None, width=1200, height=800, **how):
        context = chromium.new_context(viewport={"width": width, "height": height}, **how)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((of or running).url + query)
        expect(page.locator("main h1").first).to_be_visible()
        return page

    open_.provoked = []
    yield open_
    for context in contexts:
        context.close()
    assert [text for text in said if not any(part in text for part in open_.provoked)] == []


def lines(page):
    return page.locator("main tbody tr")


def test_empty_it_says_how_to_send_the_first_span(binary, visit, tmp_path):
    fresh = Running(binary, tmp_path)
    page = visit(of=fresh)
    expect(page.locator("h1")).to_have_text("Nothing has been judged yet")
    expect(page.locator("main")).to_contain_text(f"OTEL_EXPORTER_OTLP_ENDPOINT=http://{address(fresh.grpc)}")
    for query in list(VIEWS)[1:]:
        other = visit(query, of=fresh)
        expect(other.locator("main")).to_contain_text(re.compile(r"[Nn]o |Nothing|Parts"))
    fresh.calls.call("create_ticket")
    expect(page.locator("h1")).to_have_text("Overview", timeout=15000)
    expect(page.locator("main")).to_contain_text("healthy")
    visit.provoked = ["ERR_CONNECTION_REFUSED"]
    assert fresh.program.stop() == 0, fresh.program.tail()


def test_the_api_is_described_in_a_document_that_others_read(running):
    openapi_spec_validator.validate(json.loads(http_get(running.url + "v1/openapi.json")))


def test_every_view_shows_what_there_is(visit):
    overview = visit()
    expect(overview.locator(".number").nth(1)).to_contain_text("answered")
    expect(overview.locator("svg.chart")).to_have_count(2)
    assert overview.locator("svg.chart rect").count() > 40
    expect(overview.locator("main")).to_contain_text("tool owner")
    contracts = visit("?view=contracts")
    expect(contracts.locator("main")).to_contain_text("close_ticket")
    contracts.locator("details.drift summary").first.click()
    expect(contracts.locator("details.drift").first).to_contain_text("/inputSchema/properties/")
    expect(contracts.locator("main")).to_contain_text("changed since first seen")
    expect(visit("?view=sessions").locator("main")).to_contain_text("unverifiable")
    incidents = visit("?view=incidents")
    expect(incidents.locator("main")).to_contain_text("tool owner")
    incidents.get_by_role("link", name="all", exact=True).click()
    expect(incidents).to_have_url(re.compile("status="))
    coverage = visit("?view=coverage")
    row = coverage.locator("main tbody tr").filter(has_text="create_ticket").first
    expect(row).to_contain_text("asking half")
    expect(coverage.locator("main thead")).to_contain_text("outcome")
    pipeline = visit("?view=pipeline")
    expect(pipeline.locator("main")).to_contain_text("otelcol_receiver_accepted_spans_total")
    expect(pipeline.locator("main")).to_contain_text("engine")


def test_one_chain_is_explained(visit):
    page = visit("?view=chains&state=false_success")
    lines(page).first.locator("a.line").click()
    expect(page.locator("h1 .badge")).to_contain_text("false success")
    expect(page.locator(".ladder")).to_have_count(2)
    failed = page.locator(".ladder").nth(1).locator(".r-failed")
    expect(failed).to_have_text(re.compile("outcome.*failed"))
    expect(page.locator(".waterfall rect.w-asking")).to_have_count(1)
    expect(page.locator(".waterfall rect.w-answering")).to_have_count(1)
    expect(page.locator("main")).to_contain_text("row 10 of the state table")
    expect(page.locator("main")).to_contain_text("outcome missing by query")
    trace = page.locator("dt:text-is('trace') + dd").inner_text()
    assert re.fullmatch(r"[0-9a-f]{32}", trace)
    page.go_back()
    expect(page.locator("h1")).to_have_text("Chains")
    visit.provoked = ["404 (Not Found)"]
    gone = visit("?view=chain&id=00")
    expect(gone.locator("h1")).to_have_text("This chain is not remembered")


def test_what_would_change_it_changes_it(visit, running):
    """The change that the page proposes is sent, and the chain becomes what was said."""
    trace = running.calls.call("search", end="answered")
    page = visit(f"?view=chains&text={trace}")
    expect(lines(page)).to_have_count(1, timeout=15000)
    lines(page).first.locator("a.line").click()
    change = page.locator("section", has_text="What would change it").locator("tbody tr").first
    expect(change).to_contain_text("mcp_evidence.outcome.status = verified")
    promised = change.locator(".badge").inner_text().split("\n")[-1]
    span = page.locator("dt:text-is('client span') + dd").inner_text()
    proof = running.calls.request("check", time.time_ns(), {}, of={
        "traceId": trace, "parentSpanId": span, "kind": 1,
        "attributes": [{"key": "mcp_evidence.outcome.status", "value": {"stringValue": "verified"}},
                       {"key": "mcp_evidence.outcome.method", "value": {"stringValue": "query"}}]})
    running.calls.post({"support-agent": [proof]})
    expect(page.locator("h1 .badge")).to_contain_text(promised, timeout=15000)
    expect(page.locator("section", has_text="Revisions").last).to_contain_text("state: unverified →")


def test_filters_stand_in_the_address(visit):
    page = visit("?view=chains")
    page.get_by_label("state").select_option("tool_failed")
    expect(page).to_have_url(re.compile("state=tool_failed"))
    page.get_by_label("server").select_option("tickets.example.com")
    expect(page).to_have_url(re.compile("server=tickets.example.com"))
    expect(lines(page).first).to_contain_text("tool failed")
    shown = lines(page).all_inner_texts()
    assert shown and all("tool failed" in text and "tickets.example.com" in text for text in shown)
    again = visit(page.url.split("/")[-1])
    expect(lines(again)).to_have_count(len(shown))
    assert again.get_by_label("state").input_value() == "tool_failed"
    again.get_by_role("link", name="Clear").click()
    again.get_by_label("text").fill("RESEARCH-agent")
    expect(again).to_have_url(re.compile("text=RESEARCH-agent"))
    expect(lines(again).first).to_contain_text("research-agent")
    assert again.evaluate("document.activeElement.id") == "text", "who types goes on typing"
    again.get_by_label("text").fill("nowhere to be found")
    expect(again.locator("main")).to_contain_text("No remembered chain is like that")
    layers = visit("?view=chains&first_failed_layer=authority")
    assert all("needs auth" in text for text in lines(layers).all_inner_texts())
    old = visit("?view=chains")
    count = lines(old).count()
    old.get_by_role("button", name="Older").click()
    eventually(lambda: lines(old).count() > count, 10, "older chains")


def test_live_without_jumping(visit, running):
    page = visit("?view=chains")
    page.mouse.move(5, 300)
    first = lines(page).first.get_attribute("data-key")
    running.calls.call("fresh_call")
    expect(lines(page).first).to_contain_text("fresh_call", timeout=15000)
    # Somebody reads further down: nothing moves, the new one waits.
    page.mouse.wheel(0, 900)
    page.wait_for_function("scrollY > 300")
    row = page.locator(f"tr[data-key='{first}']")
    before = row.bounding_box()["y"]
    running.calls.call("waiting_call")
    news = page.get_by_role("button", name="1 new")
    expect(news).to_be_visible(timeout=15000)
    assert abs(row.bounding_box()["y"] - before) < 1.5
    expect(page.locator("tbody")).not_to_contain_text("waiting_call")
    news.click()
    expect(lines(page).first).to_contain_text("waiting_call")
    # Stopped, it stands still.
    page.get_by_role("button", name="Live").click()
    running.calls.call("unseen_call")
    eventually(lambda: "unseen_call" in http_get(running.url + "v1/chains?tool=unseen_call"), 10, "its verdict")
    page.wait_for_timeout(3000)
    expect(page.locator("tbody")).not_to_contain_text("unseen_call")


def test_hostile_names_are_inert(visit):
    for query in VIEWS:
        page = visit(query)
        page.wait_for_timeout(300)
        assert page.evaluate("window.hacked") is None, query
        assert page.locator("main script, main img, main iframe, main [onerror], main [onload]").count() == 0
    page = visit("?view=chains&state=tool_failed")
    shown = page.locator("a.line").all_text_contents()
    for name in HOSTILE[:5]:
        assert name in shown, name
        page.get_by_role("link", name=name, exact=True).first.click()
        expect(page.locator("h1")).to_contain_text(name)
        assert page.evaluate("window.hacked") is None
        page.go_back()
        expect(page.locator("h1")).to_have_text("Chains")
    turned = next(text for text in shown if "gnp.exe" in text)
    assert turned == "\\u202egnp.exe\\u202c and \\u2028 lines", "a name does not look like another"
    hrefs = page.evaluate("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
    assert all(href.startswith("?") or href == "#main" for href in hrefs)
    # And what a policy is for: what would run is kept from running.
    visit.provoked = ["TrustedHTML"]
    refused = page.evaluate("""() => { try { document.body.innerHTML = '<b>x</b>'; return 'done'; } catch (e) { return e.name; } }""")
    assert refused == "TypeError"


@pytest.fixture(scope="session")
def axe():
    """The published accessibility checker, in a folder outside the tree."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "mcp-verdict-tests"
    folder = cache / f"axe-{AXE}"
    if not (folder / "node_modules/axe-core/axe.min.js").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", f"axe-core@{AXE}"], cwd=folder, check=True, stdin=subprocess.DEVNULL)
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing_serious(visit, axe, colours):
    chains = "?view=chains&state=false_success"
    listed = visit(chains).locator("a.line").first.get_attribute("href")
    wide = [(chains if query == "?view=chains" else query, 1200) for query in [*VIEWS, listed]]
    # Other colours are but other colours.
    rules, narrow = ("{}", [(chains, 360), (listed, 360)]) if colours == "light" else ("{runOnly: ['color-contrast']}", [])
    for query, width in wide + narrow:
        page = visit(query, color_scheme=colours, width=width, bypass_csp=True)
        page.evaluate(axe)
        found = page.evaluate(f"axe.run({rules}).then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes.map((n) => n.html.slice(0, 200)).slice(0, 3)]))")
        serious = [violation for violation in found if violation[0] in ("serious", "critical")]
        assert not serious, (query, colours, width, serious)
        page.context.close()


def test_the_keyboard_alone_is_enough(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the contents"
    page.keyboard.press("2")
    expect(page.locator("h1")).to_have_text("Chains")
    expect(lines(page).nth(1)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.closest('tr') === document.querySelectorAll('main tbody tr')[1]")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "where the focus is can be seen"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("view=chain&"))
    page.keyboard.press("/")
    eventually(lambda: page.evaluate("document.activeElement.id") == "text", 5, "the search field")
    page.keyboard.type("2j")
    assert page.get_by_label("text").input_value() == "2j", "who writes, writes"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).not_to_be_visible()
    page.keyboard.press("l")
    expect(page.locator("#live")).to_have_attribute("aria-pressed", "false")
    # Everything that reacts can be reached.
    page.keyboard.press("1")
    expect(page.locator("h1")).to_have_text("Overview")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('href') ?? document.activeElement.id"))
    wanted = set(page.evaluate("[...document.querySelectorAll('a, button')].filter((e) => e.checkVisibility()).map((e) => e.getAttribute('href') ?? e.id)"))
    assert wanted - {""} <= reached, wanted - reached


def test_a_phone_shows_all_of_it(visit):
    chain = visit("?view=chains&state=false_success").locator("a.line").first.get_attribute("href")
    for query in [*VIEWS, chain]:
        page = visit(query, width=360, height=740, has_touch=True, is_mobile=True)
        page.wait_for_timeout(300)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, (query, wide)
        for link in page.locator("nav a").all():
            box = link.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= 360 and box["height"] >= 24


def test_colours_follow_the_system_or_the_reader(visit):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = visit(color_scheme="light"), visit(color_scheme="dark")
    white, black = light.evaluate(ground), dark.evaluate(ground)
    assert white != black
    dark.locator("#theme").click()
    assert dark.evaluate(ground) == white
    dark.reload()
    assert dark.evaluate(ground) == white, "as it was left"
    dark.locator("#theme").click()
    assert dark.evaluate(ground) == black


def test_it_asks_for_a_password_and_says_when_nobody_answers(binary, chromium, tmp_path):
    (tmp_path / "users").write_text("ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n")
    running = Running(binary, tmp_path, [f"service.telemetry.page.auth.basic.htpasswd_file={tmp_path / 'users'}"])
    context = chromium.new_context(http_credentials={"username": "ann", "password": "password"})
    page = context.new_page()
    page.goto(running.url)
    expect(page.locator("h1")).to_have_text("Nothing has been judged yet")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(running.url, timeout=10)
    assert running.program.stop() == 0, running.program.tail()
    expect(page.locator("#trouble")).to_have_text("mcp-verdict does not answer. Trying again.", timeout=15000)
    context.close()


def test_pictures(visit):
    """Those of the documentation, where they are asked for; small either way."""
    if not os.environ.get("UPDATE_IMAGES"):
        for picture in (ROOT / "docs/images").glob("*.png"):
            assert picture.stat().st_size < 150_000, picture
        return
    (ROOT / "docs/images").mkdir(exist_ok=True)
    chain = visit("?view=chains&state=false_success&server=tickets.example.com").locator("a.line").first.get_attribute("href")
    for name, query, how in [("overview", "", {"width": 1000, "height": 900}), ("chains", "?view=chains&server=tickets.example.com", {"color_scheme": "dark", "width": 1000, "height": 600}),
                             ("chain", chain, {"width": 1000, "height": 700}), ("phone", chain, {"width": 360, "height": 740})]:
        page = visit(query, **how)
        page.wait_for_timeout(600)
        picture = ROOT / f"docs/images/{name}.png"
        page.screenshot(path=picture)
        assert picture.stat().st_size < 150_000, name
