"""FastMCP's tool search over the tools on stdin; run with the Python of its own environment.

A server with all tools and `BM25SearchTransform`, searched through an in-memory client, as an agent does it.
"""

import asyncio
import json
import sys

from fastmcp import Client, FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import FunctionTool

NO_ARGUMENTS = {"type": "object", "properties": {}}


def never_called() -> None:
    raise NotImplementedError


async def main(depth: int) -> None:
    rows = [json.loads(line) for line in sys.stdin]
    server = FastMCP("catalog")
    ids = {}
    for tool in (row["tool"] for row in rows if "tool" in row):
        ids[tool["name"]] = tool["id"]
        server.add_tool(
            FunctionTool(
                fn=never_called,
                name=tool["name"],
                description=tool["description"],
                parameters=tool["input_schema"] or NO_ARGUMENTS,
            )
        )
    # The names are enough: whole definitions would have to be sent and parsed for each query.
    server.add_transform(
        BM25SearchTransform(
            max_results=depth,
            search_result_serializer=lambda tools: [{"name": tool.name} for tool in tools],
        )
    )
    async with Client(server) as client:
        for query in (row["query"] for row in rows if "query" in row):
            answer = await client.call_tool("search_tools", {"query": query["text"]})
            found = [ids[tool["name"]] for tool in answer.structured_content["result"]]
            sys.stdout.write(json.dumps({"id": query["id"], "ids": found}) + "\n")
            sys.stdout.flush()


asyncio.run(main(int(sys.argv[1])))
