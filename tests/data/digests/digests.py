"""Reads tools, one JSON text a line; prints each one's mcp-tool/1 digest, and `-` for none.

An implementation of its own: the projection is written again here, RFC 8785 is the package rfc8785.
"""
import hashlib
import json
import sys

import rfc8785

MEMBERS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution")

sys.setrecursionlimit(10_000)
for line in sys.stdin:
    # RFC 8785 knows doubles only; Python would keep integers.
    tool = json.loads(line, parse_int=float)
    projection = {key: tool[key] for key in MEMBERS if tool.get(key) is not None}
    digest = "-"
    if "inputSchema" in projection:
        digest = hashlib.sha256(rfc8785.dumps(projection)).hexdigest()
    print(digest)
