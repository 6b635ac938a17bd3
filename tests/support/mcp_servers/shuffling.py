"""A server that lists the same tools at each start, written differently.

Keys, whitespace, escapes and the order of tools differ.
"""

import json
import random
import sys
from pathlib import Path

from tests.support.mcp_servers.raw import outcome, requests, tool, tools_only

FILE = Path(sys.argv[1])
SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "where: a \u201cpath\u201d \u2014 or ~"},
        "how": {"enum": ["b", "a", 2, 1.5, None], "default": "b"},
    },
    "required": ["path", "how"],
    "additionalProperties": False,
}
CLAIMS = {"readOnlyHint": True, "idempotentHint": False, "title": "T\u00eft\u0142e"}
TOOLS = [
    tool(f"tool_{number}", f"Does thing {number}", inputSchema=SCHEMA, annotations=CLAIMS) for number in range(9)
]


def mixed(value: object, dice: random.Random) -> object:
    """Return the value with the keys of all objects in another order."""
    if isinstance(value, dict):
        return {key: mixed(value[key], dice) for key in dice.sample([*value], len(value))}
    return [mixed(entry, dice) for entry in value] if isinstance(value, list) else value


def main() -> None:
    with FILE.open("ab") as file:
        file.write(b".")
    dice = random.Random(FILE.stat().st_size)
    handlers = tools_only("shuffling", TOOLS)
    handlers["tools/list"] = lambda _: {"tools": dice.sample(TOOLS, len(TOOLS))}
    for request in requests():
        answer = mixed({"jsonrpc": "2.0", "id": request["id"], **outcome(handlers, request)}, dice)
        comma, colon = dice.choice([",", ", ", " ,  "]), dice.choice([":", ": ", "\t: "])
        text = json.dumps(answer, separators=(comma, colon), ensure_ascii=dice.random() < 0.5)
        sys.stdout.write(f"{' ' * dice.randrange(3)}{text}\n")
        sys.stdout.flush()


main()
