"""Ratel's tool catalog over the tools on stdin; run with the Python of its own environment.

Arguments: the depth, the method (bm25 or hybrid), and for hybrid an OpenAI-compatible endpoint of a model.
"""

import asyncio
import json
import sys

from ratel_ai import ExecutableTool, ToolCatalog


def never_called(arguments: dict[str, object]) -> None:
    raise NotImplementedError(arguments)


async def main(depth: int, method: str, endpoint: str) -> None:
    rows = [json.loads(line) for line in sys.stdin]
    embedding = {"url": endpoint, "model": "same"} if endpoint else None
    catalog = ToolCatalog(method=method, embedding=embedding)
    await catalog.register(
        [
            ExecutableTool(
                id=tool["id"],
                name=tool["name"],
                description=tool["description"],
                input_schema=tool["input_schema"] or {},
                execute=never_called,
            )
            for tool in (row["tool"] for row in rows if "tool" in row)
        ]
    )
    for query in (row["query"] for row in rows if "query" in row):
        hits = await catalog.search_async(query["text"], depth)
        sys.stdout.write(json.dumps({"id": query["id"], "ids": [hit.tool_id for hit in hits]}) + "\n")
        sys.stdout.flush()


asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""))
