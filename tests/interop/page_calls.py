"""Calls for the page to show: spans as programs send them, over OTLP/HTTP as JSON, with nothing but what
the tests of the page need."""
import json
import random
import time
import urllib.request

SECOND = 10**9
# What hostile programs may put into names; the page has to show it, letter by letter.
HOSTILE = [
    "<img src=x onerror=\"window.hacked='img'\">",
    "<script>window.hacked='script'</script>",
    "\"><svg onload=window.hacked='svg'>",
    "javascript:window.hacked='url'",
    "{{constructor.constructor('window.hacked=1')()}}",
    "\u202egnp.exe\u202c and \u2028 lines",
    "x" * 128,
]


def value(of):
    if isinstance(of, bool):
        return {"boolValue": of}
    if isinstance(of, int):
        return {"intValue": str(of)}
    return {"stringValue": str(of)}


def attributes(of):
    return [{"key": key, "value": value(v)} for key, v in of.items()]


class Calls:
    """Sends; every span has ids of its own."""

    def __init__(self, port, seed=7):
        self.url = f"http://127.0.0.1:{port}/v1/traces"
        self.dice = random.Random(seed)
        self.sent = 0

    def id(self, digits):
        return f"{self.dice.getrandbits(digits * 4):0{digits}x}"

    def post(self, services):
        """`services`: spans by service name."""
        body = {"resourceSpans": [{"resource": {"attributes": attributes({"service.name": name})},
                                   "scopeSpans": [{"scope": {"name": "mcp-sdk"}, "spans": spans}]}
                                  for name, spans in services.items()]}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), {"content-type": "application/json"})
        urllib.request.urlopen(request, timeout=10).read()

    def log(self, service, span, says):
        """A log record in the context of a span."""
        record = {"timeUnixNano": str(time.time_ns()), "traceId": span["traceId"], "spanId": span["spanId"], "attributes": attributes(says)}
        body = {"resourceLogs": [{"resource": {"attributes": attributes({"service.name": service})},
                                  "scopeLogs": [{"scope": {"name": "checks"}, "logRecords": [record]}]}]}
        request = urllib.request.Request(self.url.replace("traces", "logs"), json.dumps(body).encode(), {"content-type": "application/json"})
        urllib.request.urlopen(request, timeout=10).read()

    def request(self, method, at, says, lasts=SECOND // 5, error=None, of=None):
        span = {"traceId": self.id(32), "spanId": self.id(16), "name": method, "kind": 3,
                "startTimeUnixNano": str(at), "endTimeUnixNano": str(at + lasts),
                "attributes": attributes({"mcp.method.name": method, "jsonrpc.request.id": str(self.sent),
                                          "mcp.protocol.version": "2025-11-25", **says})}
        self.sent += 1
        if error:
            span["status"] = {"code": 2}
            span["attributes"] += attributes({"error.type": error})
        if of:
            span |= of
        return span

    def call(self, tool="create_ticket", agent="support-agent", server="tickets.example.com", at=None, end="verified", session="desk-1"):
        """One call, seen from both ends. `end`: verified, missing, tool_error, invalid_params, 401, scope, 503,
        expired, timeout or answered."""
        at = at or time.time_ns() - SECOND
        says = {"gen_ai.tool.name": tool, "server.address": server, "mcp.session.id": session}
        ends = {
            "verified": {"mcp_evidence.call.is_error": False, "mcp_evidence.effect.status": "confirmed",
                         "mcp_evidence.outcome.status": "verified", "mcp_evidence.outcome.method": "query"},
            "missing": {"mcp_evidence.call.is_error": False, "mcp_evidence.outcome.status": "missing", "mcp_evidence.outcome.method": "query"},
            "answered": {"mcp_evidence.call.is_error": False},
            "tool_error": {"mcp_evidence.call.is_error": True}, "timeout": {}, "401": {"mcp_evidence.auth.error": "invalid_token"}, "503": {},
            "scope": {"mcp_evidence.auth.error": "insufficient_scope", "mcp_evidence.auth.scope": "tickets:write"},
            "expired": {"http.response.status_code": 404}, "invalid_params": {"rpc.response.status_code": "-32602"},
        }
        error = {"tool_error": "tool_error", "timeout": "timeout", "401": "401", "503": "503",
                 "scope": "403", "expired": "404", "invalid_params": "-32602"}.get(end)
        asking = self.request("tools/call", at, says | ends[end], error=error)
        if end == "503":
            asking["attributes"] += attributes({"http.response.status_code": 503})
        if end in ("401", "scope", "503", "expired", "timeout"):
            self.post({agent: [asking]})
            return asking["traceId"]
        answering = self.request("tools/call", at + 3 * 10**6, {"gen_ai.tool.name": tool, "mcp.session.id": session}, SECOND // 6,
                                 error, {"traceId": asking["traceId"], "parentSpanId": asking["spanId"], "kind": 2})
        for half in (asking, answering):
            half["attributes"] = [a for a in half["attributes"] if a["key"] != "jsonrpc.request.id"] + attributes({"jsonrpc.request.id": str(self.sent)})
        self.post({agent: [asking], server.split(".")[0]: [answering]})
        return asking["traceId"]

    def listing(self, tools, at, agent="support-agent", server="tickets.example.com", session="desk-1"):
        says = {"server.address": server, "mcp.session.id": session, "mcp_evidence.list.definitions": json.dumps(tools),
                "mcp_evidence.list.last_page": True}
        self.post({agent: [self.request("tools/list", at, says)]})

    def hour(self):
        """An hour of an ordinary day, the same each time."""
        ends = ["verified"] * 9 + ["answered"] * 5 + ["tool_error"] * 2 + ["missing", "401", "503", "timeout"]
        tools = [("create_ticket", "tickets.example.com"), ("search", "library.example.com"), ("send_mail", "mail.example.com")]
        now = time.time_ns()
        for minute in range(58, 0, -1):
            for _ in range(self.dice.randint(1, 4)):
                tool, server = self.dice.choice(tools)
                self.call(tool, self.dice.choice(["support-agent", "research-agent"]), server,
                          now - minute * 60 * SECOND - self.dice.randint(0, 59) * SECOND, self.dice.choice(ends), f"{server}-1")
        self.contracts(now)

    def contracts(self, now):
        def tool(name, says, parameter):
            return {"name": name, "description": says, "inputSchema": {"type": "object", "properties": {parameter: {"type": "string"}}}}
        self.listing([tool("create_ticket", "Creates.", "title"), tool("close_ticket", "Closes.", "id")], now - 3000 * SECOND)
        self.listing([tool("create_ticket", "Creates a ticket.", "subject"), tool("close_ticket", "Closes.", "id")], now - 600 * SECOND)

    def hostile(self):
        for number, name in enumerate(HOSTILE):
            self.call(name, name, "mail.example.com", end="tool_error", session=name[:40])
            self.call("search", "support-agent", name, end="answered", session=f"hostile-{number}")
