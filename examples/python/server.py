"""A ticket desk as an MCP server: `server.py stdio`, or `server.py http [PORT]` for /mcp on $HOST, else on loopback.

The SDK makes the MCP spans. The desk adds the spans that such a program has anyway: the insert of a
row and a check that the row is there. mcp-verdict reads both by configured evidence rules.
"""
import asyncio
import os
import sys

from mcp.server.mcpserver import MCPServer
from opentelemetry import trace
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware

import telemetry

desk = MCPServer("ticket-desk", version="1.0.0")
tracer = trace.get_tracer("ticket-desk")
tickets = {}


@desk.tool()
def get_weather(city: str) -> str:
    """Weather in a city."""
    return f"{city}: 18C, clear"


@desk.tool()
def divide(a: float, b: float) -> float:
    """Divides a by b; by zero the tool fails."""
    return a / b


@desk.tool()
async def slow(seconds: float) -> str:
    """Answers after some seconds."""
    await asyncio.sleep(seconds)
    return "done"


@desk.tool()
def payroll() -> str:
    """Wants a bearer token; see `Guard`."""
    return "paid"


@desk.tool()
def create_ticket(title: str, lose: bool = False) -> str:
    """Stores a ticket and answers with its number. With `lose`, the row is rolled back afterwards."""
    number = len(tickets) + 1
    with tracer.start_as_current_span("INSERT tickets", kind=trace.SpanKind.CLIENT):
        tickets[number] = title
    if lose:
        del tickets[number]
    with tracer.start_as_current_span("check ticket") as check:
        check.set_attribute("app.check", "ticket_exists")
        check.set_attribute("app.rows", int(number in tickets))
    return f"ticket {number}"


class Guard:
    """ASGI middleware: a call of `payroll` without a bearer token is answered with 401."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        token = dict(scope["headers"]).get(b"authorization", b"")
        if b'"payroll"' in body and not token.startswith(b"Bearer "):
            headers = [(b"www-authenticate", b'Bearer error="invalid_token"'), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            return await send({"type": "http.response.body", "body": b""})
        replayed = [{"type": "http.request", "body": body, "more_body": False}]
        await self.app(scope, lambda: self.next(replayed, receive), send)

    @staticmethod
    async def next(replayed, receive):
        return replayed.pop() if replayed else await receive()


def serve_http(port):
    import uvicorn

    host = os.environ.get("HOST", "127.0.0.1")
    app = OpenTelemetryMiddleware(Guard(desk.streamable_http_app(host=host)))
    uvicorn.run(app, host=host, port=port, log_level="warning")


def main():
    transport = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    provider = telemetry.start("ticket-desk-server")
    try:
        if transport == "http":
            serve_http(int(sys.argv[2]) if len(sys.argv) > 2 else 8000)
        else:
            desk.run("stdio")
    finally:
        provider.shutdown()


if __name__ == "__main__":
    main()
