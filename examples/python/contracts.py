"""Asks mcp-verdict before each call, and calls nothing that is not what was pinned.

  contracts.py http://127.0.0.1:8000/mcp [http://127.0.0.1:55679]

The first URL is `changing_server.py`, the second the check API of a mcp-verdict that runs with
`contracts.mode: pin` and gets this program's spans. What happened is printed, one JSON object a line.
"""
import asyncio
import contextlib
import json
import sys
import time
import urllib.request
from urllib.parse import urlsplit

from mcp.client import Client
from opentelemetry import trace

import telemetry


class Halted(Exception):
    """The tool is not the one that was pinned; `answer` says where it differs."""

    def __init__(self, answer):
        super().__init__(answer["reason"])
        self.answer = answer


class Guard:
    """A client that lists before it calls, asks whether it may, and says in its spans what it holds."""

    def __init__(self, client, server, api):
        self.client, self.server, self.api = client, server, api
        self.tracer = trace.get_tracer("library-agent")

    @contextlib.contextmanager
    def span(self, method, **attributes):
        host, port = self.server.rsplit(":", 1)
        with self.tracer.start_as_current_span(method, kind=trace.SpanKind.CLIENT) as span:
            span.set_attributes({"mcp.method.name": method, "server.address": host, "server.port": int(port),
                                 "mcp.protocol.version": self.client.protocol_version, **attributes})
            yield span

    async def tools(self):
        """The tools as the server lists them now, by name; the span tells mcp-verdict."""
        with self.span("tools/list") as span:
            found, cursor = [], None
            while True:
                page = await self.client.list_tools(cursor=cursor, cache_mode="bypass")
                found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
            span.set_attribute("mcp_evidence.list.definitions", json.dumps(found))
            span.set_attribute("mcp_evidence.list.last_page", True)
        return {tool["name"]: tool for tool in found}

    def check(self, tool):
        question = {"server": self.server, "tool": tool["name"], "definition": tool}
        request = urllib.request.Request(self.api + "/v1/contracts/check", json.dumps(question).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    async def call(self, name, arguments):
        """Calls the tool if it is what was pinned, or nobody pinned it yet."""
        answer = self.check((await self.tools())[name])
        if answer["answer"] != "proceed":
            raise Halted(answer)
        return answer["reason"], await self.unguarded(name, arguments)

    async def unguarded(self, name, arguments):
        with self.span("tools/call", **{"gen_ai.tool.name": name,
                                        "gen_ai.tool.call.arguments": json.dumps(arguments)}) as span:
            result = await self.client.call_tool(name, arguments)
            span.set_attribute("mcp_evidence.call.is_error", bool(result.is_error))
            return result.content[0].text


def say(step, **seen):
    print(json.dumps({"step": step, **seen}), flush=True)


async def attempt(guard, step, name, arguments):
    try:
        reason, text = await guard.call(name, arguments)
        say(step, halted=False, reason=reason, result=text)
    except Halted as halt:
        pointers = [change["pointer"] for change in halt.answer["changes"]]
        say(step, halted=True, reason=halt.answer["reason"], grade=halt.answer["grade"], pointers=pointers)


async def until_pinned(guard, name, seconds=30):
    """A pin stands when the span of the listing has arrived."""
    end = time.monotonic() + seconds
    while guard.check((await guard.tools())[name])["reason"] != "pinned":
        if time.monotonic() > end:
            raise TimeoutError(f"{name} was not pinned: does {guard.api} get this program's spans?")
        await asyncio.sleep(0.5)


async def run(url, api):
    async with Client(url) as client:
        guard = Guard(client, urlsplit(url).netloc, api)
        query = {"query": "rain"}
        await attempt(guard, "first use", "search", query)
        await until_pinned(guard, "search")
        await attempt(guard, "pinned", "search", query)
        await guard.unguarded("release", {"what": "rename"})
        await attempt(guard, "renamed", "search", query)
        say("renamed, not asked", halted=False, result=await guard.unguarded("search", query))
        await guard.unguarded("release", {"what": "reword"})
        await attempt(guard, "reworded", "search", query)
        await guard.unguarded("release", {"what": "restore"})
        await attempt(guard, "restored", "search", query)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    provider = telemetry.start("library-agent")
    try:
        asyncio.run(run(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:55679"))
    finally:
        provider.shutdown()


if __name__ == "__main__":
    main()
