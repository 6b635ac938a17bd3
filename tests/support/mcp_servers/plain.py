"""A server as it should be: tools, prompts, resources and a template. The argument is its protocol version."""

import json
import os
import sys
import time
from pathlib import Path

from tests.support.mcp_servers.raw import Handler, Params, Refusal, greeting, notify, said, serve, tool

ADD = {
    "type": "object",
    "properties": {"a": {"type": "number", "description": "the first"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}
SUM = {"type": "object", "properties": {"sum": {"type": "number"}}}

TOOLS = [
    tool("echo", "Says what it is told", title="Echo", annotations={"readOnlyHint": True}),
    tool("add", "Adds two numbers", inputSchema=ADD, outputSchema=SUM),
    tool("fail", "Always fails"),
    tool("refuse", "Is refused by the server itself"),
    tool("slow", "Takes as many seconds as it is told"),
    tool("surroundings", "Tells the environment, the folder and the arguments"),
    tool("grow", "Adds a tool of the name it is given"),
    tool("quit", "Ends the server without an answer"),
]
PROMPTS = [
    {
        "name": "review",
        "title": "Code review",
        "arguments": [{"name": "code", "description": "what to review", "required": True}, {"name": "style"}],
    }
]
RESOURCES = [
    {"uri": "file:///a.txt", "name": "a.txt", "description": "The letter a", "mimeType": "text/plain"},
    {"uri": "file:///b/a.txt", "name": "a.txt"},
]
TEMPLATES = [{"uriTemplate": "file:///{path}", "name": "any file", "description": "Any file by its path"}]


def call(params: Params) -> object:
    name, value = str(params["name"]), params.get("arguments") or {}
    if name == "grow":
        TOOLS.append(tool(str(value["name"]), "Was added while the server ran"))
        notify("notifications/tools/list_changed")
    if name == "quit":
        sys.stderr.write("I was told to quit\n")
        os._exit(7)
    if name == "refuse":
        raise Refusal(-32602, "not with me")
    if name == "slow":
        time.sleep(float(value["seconds"]))
    return ANSWERS[name](value) if name in ANSWERS else said(json.dumps(value))


ANSWERS: dict[str, Handler] = {
    "add": lambda value: said("the sum", structuredContent={"sum": value["a"] + value["b"]}),
    "fail": lambda _: said("it went wrong", isError=True),
    "surroundings": lambda _: said(
        json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd()), "args": sys.argv[1:]})
    ),
}


def main() -> None:
    protocol = sys.argv[1] if len(sys.argv) > 1 else "2025-11-25"
    serve(
        {
            **greeting(
                "plain", "tools", "prompts", "resources", protocol=protocol, instructions="A server for tests"
            ),
            "tools/list": lambda _: {"tools": TOOLS},
            "tools/call": call,
            "prompts/list": lambda _: {"prompts": PROMPTS},
            "resources/list": lambda _: {"resources": RESOURCES},
            "resources/templates/list": lambda _: {"resourceTemplates": TEMPLATES},
        }
    )


if __name__ == "__main__":
    main()
