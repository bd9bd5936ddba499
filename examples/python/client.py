"""Calls the ticket desk once in each way that matters, and says what it saw, one JSON object a line.

  client.py http://127.0.0.1:8000/mcp      over streamable HTTP
  client.py stdio                          starts server.py itself
  client.py … --every 5                    again and again, with so many seconds between
  client.py … --mode legacy                the initialize handshake of 2025-11-25 (default: auto)

The spans go out as `telemetry.py` says. Nothing here knows of mcp-verdict.
"""
import argparse
import asyncio
import json
import os
import sys

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from opentelemetry import trace
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor

import telemetry

# name of the step, tool, arguments, the client's own timeout in seconds
STEPS = [
    ("success", "get_weather", {"city": "Oslo"}, None),
    ("tool_error", "divide", {"a": 1, "b": 0}, None),
    ("unauthorized", "payroll", {}, None),
    ("timeout", "slow", {"seconds": 2.5}, 0.7),
    ("verified", "create_ticket", {"title": "printer on fire"}, None),
    ("lost_row", "create_ticket", {"title": "printer off again", "lose": True}, None),
]


def server_of(target):
    if target != "stdio":
        return target
    here = os.path.dirname(os.path.abspath(__file__))
    passed = {k: v for k, v in os.environ.items() if k.startswith("OTEL_")}
    if os.environ.get("SPANS_FILE"):
        passed["SPANS_FILE"] = os.environ["SPANS_FILE"] + ".server"
    return StdioServerParameters(command=sys.executable, args=[os.path.join(here, "server.py"), "stdio"], env=passed)


async def step(client, name, tool, arguments, timeout):
    """One call under a span of the application, as an agent would make it."""
    seen = {"step": name, "tool": tool}
    with trace.get_tracer("ticket-desk-agent").start_as_current_span("agent step " + name) as span:
        seen["trace_id"] = format(span.get_span_context().trace_id, "032x")
        try:
            result = await client.call_tool(tool, arguments, read_timeout_seconds=timeout)
            seen.update(answered=True, is_error=bool(result.is_error))
        except MCPError as error:
            seen.update(answered=False, code=error.error.code)
    print(json.dumps(seen), flush=True)


async def once(target, mode):
    async with Client(server_of(target), mode=mode) as client:
        await client.list_tools()
        for name, tool, arguments, timeout in STEPS:
            if target == "stdio" and name == "unauthorized":
                continue  # there is no HTTP on stdio that could refuse it
            await step(client, name, tool, arguments, timeout)
        await asyncio.sleep(2)  # the slow tool's server ends its span


async def run(target, mode, every):
    await once(target, mode)
    while every:
        await asyncio.sleep(every)
        await once(target, mode)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="URL of an MCP server, or 'stdio'")
    parser.add_argument("--every", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--mode", default="auto")
    args = parser.parse_args()
    provider = telemetry.start("ticket-desk-agent")
    HTTPX2ClientInstrumentor().instrument()
    try:
        asyncio.run(run(args.target, args.mode, args.every))
    finally:
        provider.shutdown()


if __name__ == "__main__":
    main()
