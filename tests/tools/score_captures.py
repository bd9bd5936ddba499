#!/usr/bin/env python3
"""Score the verdicts of `mcp-verdict replay` against what the callers of recorded captures really saw.

  score_captures.py [--bin PATH] [--verbose] [--json OUT] [--strict] CAPTURE_OR_ROOT...
  score_captures.py --baseline span-status CAPTURE_OR_ROOT...    what a tracing backend shows today, no program run

A capture is a directory with outcome.txt and traces.jsonl, or one NAME.jsonl beside NAME.groundtruth.*; a root is searched
for both. `@FILE` stands for the paths in FILE, one a line; --root DIR is what relative paths are relative to.

Each capture goes through:
  1 truth     capture_truth.py: the harness's step list as Steps (method, tool, what the caller saw, time or id if known)
  2 spans     raw spans that stand for a request become Exchanges (both halves, wrappers and children folded in)
  3 evidence  is a failure visible at all in an Exchange, and does anything there name its cause?
  4 align     Exchanges and verdicts to Steps: by span id first, else by method, tool, request id, order and time
  5 judge     every verdict of a step gets one class:
      right      the state the contract gives for what really happened
      vague      another red state which is as much as this evidence can say (the cause is named nowhere)
      invisible  nothing shows the failure, and the program says `unverified` rather than inventing one
      green      WRONG-GREEN: a failure that is visible shown as healthy, unverified or working
      blame      WRONG-BLAME: a failure shown as one of another layer or owner
      alarm      a request that worked shown as failed
`healthy` is false on any tools/call (no capture verifies an outcome) and on any request that failed; other methods need
only session and request (§5), so it is accepted there unless --strict-healthy. `double`: verdicts beyond the real calls
of a tool. `split`: two halves which share neither trace nor request id, so nobody can join them (reported, no fault).
`missed`: a visible failure without any verdict; it fails a capture only under --strict.

A capture passes with no green, blame, alarm, double, false healthy or crash. Captures in which the dialect emitted
nothing are counted as silent only. Exit status 0 when all pass; the last line reads "N passed, M failed".
"""
import argparse, collections, json, os, re, subprocess, sys
from datetime import datetime

from capture_truth import CALL, captures, truth

GREEN = {"healthy", "unverified", "working"}
RED = {"needs_auth", "incompatible_session", "unreachable", "stale_catalog", "protocol_error", "tool_failed", "cancelled",
       "effect_unknown", "false_success"}


# ---------------------------------------------------------------- 2. spans
TOOL = re.compile(r"(?<![A-Za-z0-9])(?:toy_|mine_)?(get_weather|add|divide|lookup|slow_progress|slow|boom|evolve|"
                  r"no_such_tool|no_such|soft_fail|hang|grow|http_503)(?![A-Za-z0-9_])")
TOOL_KEYS = ("gen_ai.tool.name", "mcp.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
BODY_KEYS = ("request", "mcp.request.payload", "mastra.mcp_server_request.input")
METHOD = re.compile(r"(?<![\w/])(initialize|server/discover|ping|tools/list|tools/call|resources/list|resources/read|"
                    r"prompts/get|no/such)(?:\.mcp)?(?![\w/])")
METHOD_OF_NAME = {"ClientSession.initialize": "initialize", "ClientSession.list_tools": "tools/list",
                  "client_tool_call": "tools/call", "server_tool_call": "tools/call", "ai.toolCall": "tools/call"}
RMCP = {"PingRequest": "ping", "ListToolsRequest": "tools/list", "CallToolRequest": "tools/call", "CustomRequest": "no/such",
        "ListResourcesRequest": "resources/list", "ReadResourceRequest": "resources/read", "GetPromptRequest": "prompts/get"}


def value(v):
    kind, x = next(iter(v.items()), (None, None))
    if kind == "arrayValue":
        return [value(y) for y in x.get("values", [])]
    return attributes(x.get("values")) if kind == "kvlistValue" else int(x) if kind == "intValue" else x


def attributes(pairs):
    return {a["key"]: value(a.get("value") or {}) for a in pairs or []}


class Span:
    def __init__(self, raw, service, scope):
        self.id, self.parent, self.trace, self.name, self.scope = raw["spanId"], raw.get("parentSpanId"), raw["traceId"], raw["name"], scope
        self.start, self.end = int(raw["startTimeUnixNano"]) / 1e9, int(raw["endTimeUnixNano"]) / 1e9
        status, self.attrs = raw.get("status") or {}, attributes(raw.get("attributes"))
        self.red, self.message = status.get("code") in (2, "STATUS_CODE_ERROR"), status.get("message", "")
        self.events = [(e["name"], attributes(e.get("attributes")), int(e.get("timeUnixNano", 0)) / 1e9) for e in raw.get("events", [])]
        self.side = ("server" if "server" in service else "client" if re.search("client|agent", service) or raw.get("kind") == 3 else "server")
        self.rid = self.attrs.get("jsonrpc.request.id", self.attrs.get("mcp.request.id"))
        self.method, self.tool = self.classify(), None
        if self.method == "tools/call":
            body = [re.search(r'"(?:name|args)": ?\[?"(\w+)"', str(self.attrs.get(k, ""))) for k in BODY_KEYS]
            hits = [TOOL.search(str(x)) for x in [self.attrs.get(k, "") for k in TOOL_KEYS] + [self.name] + [m[1] for m in body if m]]
            self.tool = next((m[1] for m in hits if m), None)

    def classify(self):
        """The method this span stands for, if it stands for a request."""
        a, name = self.attrs, self.name
        if (name.startswith("app ") or (self.scope == "dd-trace-js" and not str(a.get("component")).startswith("modelcontext"))
                or (self.scope.startswith("openlit") and self.side == "server")):
            return None                                      # hand-made step spans; openlit's spans of handler registration
        method = a.get("mcp.method.name") or a.get("rpc.method") or METHOD_OF_NAME.get(name)
        if not method and (name.endswith(".tool") or name.startswith("execute_tool ") or a.get("openinference.span.kind") == "TOOL"
                           or a.get("component") == "modelcontextprotocol_server_tool"):
            method = "tools/call"
        method = method or (a.get("operation.name") == "mcp.initialize" and "initialize") or (METHOD.search(name) or [None, None])[1]
        return None if method and method.startswith("notifications/") else method


class Exchange:
    """All spans of one request that the trace ties together: `spans` stand for it, `all` adds their other descendants."""

    def __init__(self, spans, extra):
        self.spans, self.all, self.method = spans, spans + extra, spans[0].method
        self.start, self.sides = min(s.start for s in spans), {s.side for s in spans}
        self.tool = next((s.tool for s in spans if s.tool), None)
        self.rids, self.traces = {str(s.rid) for s in self.all if s.rid is not None}, {s.trace for s in spans}
        self.rid, self.ids = next(iter(self.rids), None), {s.id for s in self.all}


def load(paths):
    """Spans; log records and rmcp's per-request events are folded into them."""
    spans, logs = [], collections.defaultdict(list)
    for doc in (json.loads(l) for path in paths for l in open(path, encoding="utf-8") if l.strip()):
        for r in doc.get("resourceSpans", []):
            service = str(attributes(r.get("resource", {}).get("attributes")).get("service.name", ""))
            for ss in r.get("scopeSpans", []):
                spans += [Span(s, service, (ss.get("scope") or {}).get("name", "")) for s in ss.get("spans", [])]
        for rec in (rec for r in doc.get("resourceLogs", []) for sl in r.get("scopeLogs", []) for rec in sl.get("logRecords", [])):
            bag = {**attributes(rec.get("attributes")), "body.response": value(rec.get("body") or {})}
            logs[rec.get("spanId")].append((rec.get("eventName", ""), bag, 0))
    for s in spans:
        s.events += logs.get(s.id, [])
    for s in [s for s in spans if s.name == "serve_inner"]:
        for rid in dict.fromkeys(str(a["id"]) for _, a, _ in s.events if "id" in a):
            mine = [e for e in s.events if str(e[1].get("id")) == rid]
            text = str(mine[0][1].get("request", ""))
            one = Span({"spanId": f"{s.id}/{rid}", "traceId": s.trace, "name": "rmcp", "startTimeUnixNano": 0, "endTimeUnixNano": 0}, s.side, "")
            one.events, one.rid, one.start, one.end = mine, rid, mine[0][2], mine[-1][2]
            one.method = next((m for k, m in RMCP.items() if text.startswith(k)), "?")
            one.tool = (TOOL.search(text) or [None, None])[1] if one.method == "tools/call" else None
            spans.append(one)
    return spans


def exchanges(spans):
    by_id, leader, members, extra = {s.id: s for s in spans}, {}, {}, collections.defaultdict(list)

    def ancestor(s):                                         # nearest ancestor that stands for a request
        seen = {s.id}
        while s.parent in by_id and s.parent not in seen:
            s = by_id[s.parent]
            seen.add(s.id)
            if s.method:
                return s

    for s in sorted((s for s in spans if s.method), key=lambda s: s.start):
        up, top = ancestor(s), s
        while up and up.method == s.method and (not up.tool or not s.tool or up.tool == s.tool):
            top, up = up, ancestor(up)
        leader[s.id] = top.id
        members.setdefault(top.id, []).append(s)
    for s in spans:
        if not s.method and (up := ancestor(s)):
            extra[leader[up.id]].append(s)
    found = sorted((Exchange(group, extra[top]) for top, group in members.items()), key=lambda e: e.start)
    wraps = collections.Counter()                            # a lone wrapper above (e.g. `mcp.server`) may be what a verdict names
    for e in found:
        up = by_id.get(e.spans[0].parent)
        e.wrapper = up and not up.method and up.id
        wraps[e.wrapper] += 1
    for e in found:
        e.names = e.ids | ({e.wrapper} if e.wrapper and wraps[e.wrapper] == 1 else set())
    return found


def catalog_marks(spans):
    """Times at which the catalogue was seen left open (a cursor remained), closed, or announced as changed."""
    for s in spans:
        if "list_changed" in s.name + str(s.attrs.get("mcp.request.payload", "")):
            yield s.start, "changed"
        for text in (str(v) for v in s.attrs.values()):
            if m := re.search(r'nextCursor\\*"\s*:\s*(null|\\*")', text):
                yield s.end, "closed" if m[1] == "null" else "open"


# ---------------------------------------------------------------- 3. evidence
IS_ERROR = re.compile(r"""is_?error\\*["']?\s*[:=]\s*(?:Some\()?true|\\*["']status\\*["']:\s*\\*["']error""", re.I)
CODE_KEYS = re.compile(r"(http\.(response\.)?status_code|rpc\.response\.status_code|error\.(type|code)|exception\.type)$")
REQUEST_KEYS = re.compile(r"^(?!.*response).*(argument|request\.|\.input|input\.value|request$|payload|params|definition|"
                          r"description|prompt|url)", re.I)
SAYS_FAILED = {("gen_ai.tool.status", "error"), ("operation.success", "False"), ("mcp.tool.result.is_error", "True"), ("logfire.level_num", "17")}


class Evidence:
    """What a set of spans says about a failure. Generous: any of these anywhere in the request's own spans, wrappers,
    HTTP children, events or log records makes it visible. Not counted, because they do not say which request failed or
    that one did: the status of a session or agent span above, a notification without a request id, a missing half, a
    missing OK or output, a duration."""

    def __init__(self, spans):
        self.codes, words, self.visible = set(), [], False
        for s in spans:
            self.visible |= s.red or any(n in ("exception", "cancelled") or n.startswith("response error") for n, _, _ in s.events)
            words += [s.message if s.red else ""] + [n for n, _, _ in s.events]
            for key, v in ((k, v) for bag in [s.attrs] + [a for _, a, _ in s.events] for k, v in bag.items()):
                if CODE_KEYS.search(key) and re.fullmatch(r"-?\d+", str(v)):
                    self.codes.add(int(v))
                elif not REQUEST_KEYS.search(key):
                    words.append(str(v))
                    self.visible |= bool(IS_ERROR.search(str(v)))
                self.visible |= key in ("error.type", "error.message") or key.startswith("rpc.response") or (key, str(v)) in SAYS_FAILED
        self.text = "\n".join(words)
        self.visible |= any(400 <= c < 600 for c in self.codes)

    def names(self, kind):
        """Does anything here say what kind of failure it was? 2: in a field made for it (or the usual words, for kinds
        that have no field), 1: only in free text, 0: no."""
        said = lambda phrase: bool(re.search(phrase, self.text, re.I))
        if kind.startswith("http "):
            words = {"401": "401 Unauthorized|HTTP 401|invalid_token", "403": "403 Forbidden|HTTP 403|insufficient_scope",
                     "503": "503 Service|HTTP 503|Service Unavailable"}[kind[5:]]
            return 2 if int(kind[5:]) in self.codes else said(words)
        if kind == "refused":
            return 2 if said("ECONNREFUSED|ConnectError") else said("refused|connection attempts failed|fetch failed")
        return 2 * {"rpc_error": any(c <= 0 for c in self.codes) or said(r"-32\d{3}"), "expired": 404 in self.codes,
                    "timeout": said(r"time ?d? ?out|deadline"), "cancelled": said("cancel|abort")}.get(kind, False)


# Checked by eye. (dialect, step label, kind) -> states also accepted, why.
EXCEPTIONS = [
    (".*", "boom|tools/call throws", "rpc_error", {"tool_failed"},
     "the handler raised and the SDK made a JSON-RPC error of it: the server half carries the tool's own exception"),
    (".*", "unknown|invalid|call stale|.*bad args|.*unknown tool|call no_such_tool", "tool_error", {"protocol_error"},
     "unknown tool or bad arguments: §2 allows both channels, and dialects name the exception, not the channel"),
]
# (dialect, step label, kind) whose only sign of failure is not one, why.
OVERRULED = [
    ("traceloop-fastmcp2", "cancel", "cancelled", "the red child is a progress notification that found its stream closed"),
]
# Failures read by eye that leave nothing in their own spans: (dialect, kind, what is there instead). An invisible failure
# that is not listed is reported at the end, so that a gap in Evidence does not pass for honesty.
HIDDEN = [
    ("(adot|ddtrace|traceloop)-mcp1|adot-mcp1-nosuppress", "http .*|refused|dead",
     "mcp 1.x cancels its task group: the span ends UNSET without output, at most the session span above is red"),
    (r"mcp2\.[01]\.[01]-native|strands", "http .*|expired", "mcp before 2.3 leaves the client span UNSET, the server never saw the request"),
    ("(mcp2|fastmcp4|logfire-mcp2|openinference-mcp2|google-adk|agent-framework|pydantic-ai|openai-agents|strands).*", "refused",
     "mcp 2.x: an UNSET initialize or server/discover without a server half"),
    ("(mcp2|fastmcp4|logfire-mcp2|openinference-mcp2).*", "cancelled",
     "the task is cancelled: UNSET on both halves; notifications/cancelled, where there is one, is a root span without an id"),
    ("cross-mcp2client-(adot1|plain)server", "tool_error", "the mcp 2.x client is UNSET on isError, the server OK or silent"),
    ("openlit-mcp1", "http .*|refused|dead", "the status is on an HTTP span of an unrelated trace"),
    ("traceloop-fastmcp2", "http .*|refused|cancelled", "UNSET and no output"),
    ("openinference-(http|stdio)", "timeout|cancelled", "only the server's tool span, which ended well after the caller had gone"),
    ("shinzo-http", "tool_error", "status OK, results not recorded"),
]


# ---------------------------------------------------------------- 4. align
def fit(item, step):
    """Score of calling this item that step; None where impossible."""
    known = item.method not in (None, "?")
    if known and item.method not in step.methods or item.tool and step.tool and item.tool != step.tool:
        return None
    if step.window and not step.window[0] <= item.start <= step.window[1]:
        return None
    score = 10 + 3 * bool(item.tool and item.tool == step.tool)
    if step.rid is not None and str(item.rid).isdigit():
        score += 4 if int(item.rid) == step.rid else -8
    return score if known or score > 10 else None


def align(items, steps):
    """Best in-order pairing inside each method; then `many` steps take what is left of theirs."""
    pairs = []
    for methods in dict.fromkeys(s.methods for s in steps):
        todo = [s for s in steps if s.methods == methods]
        mine = [i for i in items if any(fit(i, s) is not None for s in todo)]
        best = [[(0, ())] * (len(todo) + 1) for _ in range(len(mine) + 1)]
        for i, item in enumerate(mine):
            for j, step in enumerate(todo):
                options, f = [best[i][j + 1], best[i + 1][j]], fit(item, step)
                if f is not None:
                    options.append((best[i][j][0] + f, best[i][j][1] + ((item, step),)))
                best[i + 1][j + 1] = max(options, key=lambda x: x[0])
        pairs += best[-1][-1][1]
    taken = {id(i) for i, _ in pairs}
    return pairs + [(i, s) for i in items if id(i) not in taken for s in [s for s in steps if s.many and fit(i, s) is not None][:1]]


class Verdict:
    def __init__(self, rec):
        self.state, self.method, self.rid, self.start = rec.get("state"), rec.get("method"), rec.get("request_id"), seconds(rec.get("start_time"))
        self.tool = (TOOL.search(str(rec.get("tool") or "")) or [None, None])[1]
        self.ids = [rec[k] for k in ("client_span_id", "server_span_id") if rec.get(k)]


def seconds(t):
    if isinstance(t, str) and not t.isdigit():
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", t.replace("Z", "+00:00"))).timestamp()
    return int(t or 0) / 1e9


def align_spans(found, steps):
    for e, s in align([e for e in found if "client" in e.sides], steps):
        s.exchanges.append(e)
    halved = [s for s in steps if s.many or not any("server" in e.sides for e in s.exchanges)]
    for e, s in align([e for e in found if "client" not in e.sides], halved):
        s.exchanges.append(e)


def align_verdicts(verdicts, steps):
    """→ those that belong to no step"""
    owner, rest = {i: s for s in steps for e in s.exchanges for i in e.names}, []
    for v in verdicts:
        step = next((owner[i] for i in v.ids if i in owner), None)
        (step.verdicts if step else rest).append(v)
    placed = align(sorted(rest, key=lambda v: v.start), [s for s in steps if s.many or not s.verdicts])
    for v, step in placed:
        step.verdicts.append(v)
    return [v for v in rest if not any(v is p for p, _ in placed)]


def clusters(step):
    """Groups of a step's exchanges that somebody could join: same trace or same request id."""
    groups = []
    for e in step.exchanges:
        joined = [g for g in groups if any(e.traces & o.traces or e.rids & o.rids for o in g)]
        groups = [g for g in groups if g not in joined] + [sum(joined, []) + [e]]
    return groups


# ---------------------------------------------------------------- 5. judge
EXACT = {"ok": {"unverified"}, "tool_error": {"tool_failed"}, "rpc_error": {"protocol_error"}, "timeout": {"effect_unknown"},
         "cancelled": {"effect_unknown", "cancelled"}, "http 401": {"needs_auth"}, "http 403": {"needs_auth"},
         "http 503": {"unreachable"}, "refused": {"unreachable"}, "expired": {"incompatible_session"},
         "dead": RED - {"tool_failed", "stale_catalog", "false_success"}, "local": {"protocol_error"}}
ROWS_1_TO_3 = {"http 401", "http 403", "http 503", "refused", "expired"}
NO_CAUSE = {"protocol_error", "effect_unknown"}   # principle 5: `tool_failed` needs evidence from the tool's side
VAGUE = {"rpc_error": {"tool_failed"}, "timeout": {"tool_failed", "protocol_error"}, "cancelled": {"tool_failed", "protocol_error"},
         "http 401": NO_CAUSE, "http 403": NO_CAUSE, "http 503": NO_CAUSE, "refused": NO_CAUSE, "expired": {"protocol_error"}, "local": RED}


def wanted(step, ev, dialect):
    """→ (right states, vague states)"""
    exact, vague = set(EXACT[step.kind]), set()
    if step.methods != CALL:
        exact |= {"healthy"} if step.kind == "ok" and not OPT.strict_healthy else set()
    elif step.doubt and not (step.kind in ROWS_1_TO_3 and ev.names(step.kind)):
        exact.add("stale_catalog")                           # catalogue visibly open, changed or drifted: row 4 comes first
    if ev.names(step.kind) < 2:
        vague |= VAGUE.get(step.kind, set())
    if step.kind not in ("ok", "tool_error", "local") and ev.names("cancelled"):
        vague = vague - {"tool_failed"} | {"cancelled", "effect_unknown"}   # e.g. a 401 kills the session: CancelledError
    for dialects, labels, kind, states, _why in EXCEPTIONS:
        if kind == step.kind and re.fullmatch(dialects, dialect) and re.fullmatch(labels, step.label):
            vague |= states
    return exact, vague - exact


def seen_failing(step, ev, dialect):
    return ev.visible and not any(re.fullmatch(d, dialect) and re.fullmatch(l, step.label) and k == step.kind for d, l, k, _ in OVERRULED)


def judge(step, state, ev, dialect):
    exact, vague = wanted(step, ev, dialect)
    if step.kind != "ok" and state in GREEN:
        return "green" if seen_failing(step, ev, dialect) else "invisible"
    return "right" if state in exact else "vague" if state in vague else "alarm" if step.kind == "ok" else "blame"


def status_only(step):
    """The baseline: the colour of the client span, else of the server span; or of any span that stands for the request."""
    spans = [s for e in step.exchanges for s in e.spans]
    return any(s.red for s in (OPT.baseline == "span-status" and [s for s in spans if s.side == "client"]) or spans)


UNCHECKED = []
COLUMNS = ["steps", "failed", "visible", "spanned", "seen", "right", "vague", "invisible", "green", "blame", "alarm", "double", "split",
           "healthy", "missed", "crash"]


def score(run):
    """→ (dialect, counts, list of misjudged steps, whether the dialect emitted anything)"""
    dialect, steps, files = truth(run)
    spans, n, wrong = load(files), collections.Counter(), []
    marks, by_id = sorted(catalog_marks(spans)), {s.id: s for s in spans}
    align_spans(exchanges(spans), steps)
    if spans and not OPT.baseline:
        verdicts, why = replay(files)
        for v in align_verdicts(verdicts, steps):
            if v.method == "tools/call":
                n["double"] += 1
                n["healthy"] += v.state == "healthy"
                wrong.append(("double", f"tools/call {v.tool} {v.ids}", v.state, "no such call"))
        if why:
            n["crash"] = 1
            wrong.append(("crash", "-", why, "exit 0"))
    for step in [s for s in steps if s.verdicts or s.kind != "local"]:
        groups, failed, results = clusters(step), step.kind != "ok", []
        whole = [s for e in step.exchanges for s in e.all]
        start, visible = min((e.start for e in step.exchanges), default=0), seen_failing(step, Evidence(whole), dialect)
        if failed and step.exchanges and not visible and not any(re.fullmatch(d, dialect) and re.fullmatch(k, step.kind) for d, k, _ in HIDDEN):
            UNCHECKED.append(f"{run} {step.label} [{step.kind}]")
        step.doubt = ([m for t, m in marks if t <= start] or ["closed"])[-1] != "closed" or marks and step.label in ("call v2", "call stale")
        if OPT.baseline and step.exchanges:
            red = status_only(step)
            results = [("right" if red else "green" if visible else "invisible") if failed else "alarm" if red else "right"]
            if OPT.verbose and results[0] in ("green", "alarm"):
                wrong.append((results[0], f"{step.label} [{step.kind}]", "status " + "not " * (not red) + "ERROR", "the other"))
        for v in step.verdicts:
            mine = [s for g in groups if any(i in e.names for e in g for i in v.ids) for e in g for s in e.all]
            ev = Evidence((mine if len(groups) > 1 and mine else whole) + [by_id[i] for i in v.ids if i in by_id])
            results.append(judge(step, v.state, ev, dialect))
            lie = v.state == "healthy" and (failed or step.methods == CALL or OPT.strict_healthy)
            n["healthy"] += lie
            if lie or results[-1] in ("green", "blame", "alarm"):
                exact, vague = ("/".join(sorted(states)) for states in wanted(step, ev, dialect))
                wrong.append((results[-1], f"{step.label} [{step.kind}]", v.state, exact + (" or vaguely " + vague if vague else "")))
        if step.methods == CALL:
            allowed = max(1, len(groups))
            n["split"] += max(0, min(len(step.verdicts), allowed) - 1)
            n["double"] += max(0, len(step.verdicts) - allowed)
            if len(step.verdicts) > allowed:
                wrong.append(("double", step.label, f"{len(step.verdicts)} verdicts", allowed))
        missed = failed and visible and not results
        if missed and not OPT.baseline:
            wrong.append(("missed", f"{step.label} [{step.kind}]", "no verdict", "one"))
        worst = [c for c in ("green", "blame", "alarm", "vague", "right", "invisible") if c in results][:1]   # a step counts once
        n.update({"steps": 1, "failed": failed, "visible": failed and visible, "spanned": bool(step.exchanges), "seen": bool(results),
                  "missed": missed, **{c: 1 for c in worst}})
    return dialect, n, wrong, bool(spans)


def replay(files):
    """→ (verdicts, why it failed)"""
    try:
        p = subprocess.run([OPT.bin, "replay", "--format", "json"] + files, capture_output=True, timeout=OPT.timeout)
        records = [json.loads(l) for l in p.stdout.decode("utf-8").splitlines() if l.strip()]
    except (OSError, subprocess.TimeoutExpired, ValueError) as e:
        return [], f"{type(e).__name__}: {e}"
    final = {r.get("id") or i: Verdict(r) for i, r in enumerate(records) if r.get("record") == "verdict"}
    return list(final.values()), p.returncode and f"exit {p.returncode}: {p.stderr.decode('utf-8', 'replace')[-200:].strip()}"


# ---------------------------------------------------------------- report
LEAST_SEEN, LEAST_RIGHT = .97, .95      # a program that says nothing, or only vague things, does not pass


def main():
    global OPT
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, fromfile_prefix_chars="@")
    p.add_argument("--bin", default="target/release/mcp-verdict")
    p.add_argument("--baseline", choices=["span-status", "any-status"], help="judge by colour: client span else server span | any of them")
    p.add_argument("--verbose", action="store_true", help="show every misjudged step")
    p.add_argument("--strict", action="store_true", help="a visible failure without a verdict fails the capture")
    p.add_argument("--strict-healthy", action="store_true", help="no `healthy` at all, on any method")
    p.add_argument("--json", metavar="OUT")
    p.add_argument("--timeout", type=float, default=60)
    p.add_argument("--root", default="")
    p.add_argument("paths", nargs="+")
    OPT = p.parse_args()
    table, runs, faults = collections.defaultdict(collections.Counter), [], ["green", "blame", "alarm", "double", "healthy", "crash"]
    for run in dict.fromkeys(captures(os.path.join(OPT.root, p) for p in OPT.paths)):
        dialect, n, wrong, spoke = score(run)
        ok = not any(n[c] for c in faults + ["missed"] * OPT.strict)
        table[dialect].update(n + collections.Counter(runs=1, passed=ok and spoke, silent=not spoke))
        runs.append({"run": run, "silent": not spoke, "passed": ok, **{c: n[c] for c in COLUMNS}, "wrong": wrong})
        if OPT.verbose and wrong:
            print(run, *(f"    {what:8} {step:34} got {got}, wanted {want}" for what, step, got, want in wrong), sep="\n")
    total, head = sum(table.values(), collections.Counter()), ["runs", "passed"] + COLUMNS
    print(f"{'dialect':38}" + "".join(f"{h[:9]:>10}" for h in head))
    for name, n in sorted(table.items()) + [("TOTAL", total)]:
        print(f"{name:38}" + "".join(f"{n[h]:>10}" for h in head))
    print(f"coverage: {total['seen']} steps judged, {total['spanned']} of {total['steps']} left a span; {total['silent']} captures are silent")
    print(f"wrong-green: {total['green']} of {total['visible']} visible failures ({100 * total['green'] / (total['visible'] or 1):.1f} %); "
          f"{total['failed'] - total['visible']} of {total['failed']} failures leave no trace in a span")
    print(*(f"invisible, but not in the table of checked ones: {u}" for u in UNCHECKED), sep="\n", end="\n" * bool(UNCHECKED))
    if OPT.json:
        with open(OPT.json, "w") as f:
            json.dump({"total": total, "dialects": table, "runs": runs}, f, indent=1, sort_keys=True)
    judged, right = total["seen"] / (total["spanned"] or 1), total["right"] / (total["seen"] - total["invisible"] or 1)
    short = not OPT.baseline and (judged < LEAST_SEEN or right < LEAST_RIGHT)
    print(f"judged {judged:.1%} of the steps that left a span (at least {LEAST_SEEN:.0%}), {right:.1%} of the visible ones exactly right (at least {LEAST_RIGHT:.0%})"
          + ": FALLS SHORT" * short)
    failed = total["runs"] - total["silent"] - total["passed"] + short
    print(f"{total['passed']} passed, {failed} failed")
    return 1 if failed or not total["runs"] else 0


if __name__ == "__main__":
    sys.exit(main())
