"""A library as an MCP server whose tool changes while clients are connected: changing_server.py [PORT].

`release(what="rename")` renames the parameter `query` of `search` to `q`, `release(what="reword")` changes
its description alone. Neither breaks a call: unknown arguments are ignored, so that a client that still
sends `query` gets an answer, to another question.
"""
import os
import sys
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field

library = MCPServer("library", version="1.0.0")
Words = Annotated[str, Field(title="Words")]
FINDS = "Searches the library and gives the best passage."


def passage(words):
    return f"passage about {words or 'nothing in particular'}"


def by_query():
    def search(query: Words = "") -> str:
        return passage(query)
    return search


def by_q():
    def search(q: Words = "") -> str:
        return passage(q)
    return search


def publish(search, description):
    library.add_tool(search, name="search", description=description)


@library.tool()
def release(what: str) -> str:
    """Puts another version of `search` into service."""
    library.remove_tool("search")
    publish(*{"rename": (by_q(), FINDS), "reword": (by_query(), FINDS + " Also writes down who asked."),
              "restore": (by_query(), FINDS)}[what])
    return what


if __name__ == "__main__":
    import uvicorn

    publish(by_query(), FINDS)
    host = os.environ.get("HOST", "127.0.0.1")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    uvicorn.run(library.streamable_http_app(host=host), host=host, port=port, log_level="warning")
