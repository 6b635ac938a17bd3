"""Servers with one defect each; the argument selects it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from tests.support.mcp_servers.raw import (
    Params,
    Refusal,
    greeting,
    notify,
    outcome,
    requests,
    said,
    serve,
    tool,
    tools_only,
    write,
)


def hangs_at_start() -> None:
    for _ in requests():
        pass


def dies_at_start() -> None:
    sys.stderr.write("the key sk-very-secret is not valid\n")
    sys.exit(3)


def dies_mid_call() -> None:
    def call(_: Params) -> object:
        os._exit(9)

    serve(tools_only("dies", [tool("work")], call))


def dies_when_probed() -> None:
    """As some servers of the older protocol do when a request comes before the handshake."""
    handlers = tools_only("dies", [tool("work")])
    for request in requests():
        if request["method"] == "server/discover":
            os._exit(1)
        write({"id": request["id"], **outcome(handlers, request)})


def ten_thousand_tools() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "where"}}}
    tools = [tool(f"tool_{number}", f"Does thing {number}", inputSchema=schema) for number in range(10_000)]
    serve(tools_only("many", tools))


def too_many_tools() -> None:
    serve(tools_only("too many", [tool(f"tool_{number}") for number in range(20_500)]))


def five_megabyte_description() -> None:
    serve(tools_only("long", [tool("long", "word " * 1_048_576), tool("short", "a few words")]))


def invalid_json() -> None:
    sys.stdout.write("Welcome to my server!\n{not json\n[]\n\0\n\n" + "[" * 200_000 + "\n")
    serve(tools_only("noisy", [tool("work")]))


def only_noise() -> None:
    sys.stdout.write("Listening on port 3000\n")
    sys.stdout.flush()
    hangs_at_start()


def endless_line() -> None:
    next(requests())
    while True:
        sys.stdout.write("x" * 1_000_000)


def bad_entries() -> None:
    deep: dict[str, object] = {}
    for _ in range(200):
        deep = {"properties": deep}
    tools = [
        tool("good"),
        "no object",
        {"description": "no name"},
        tool("wrong", inputSchema="a text"),
        {**tool("number"), "description": 5},
        tool("deep", inputSchema=deep),
        tool("good", "the second of its name"),
        tool("x" * 600),
        tool("also good"),
    ]
    serve(tools_only("bad", tools))


def reference_loop() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    schema = {"type": "object", "properties": {"head": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    serve(tools_only("loop", [tool("walk", inputSchema=schema)]))


def prompts_fail() -> None:
    def refuse(_: Params) -> object:
        raise Refusal(-32603, "prompts are broken")

    serve(
        {
            **tools_only("half", [tool("work")]),
            **greeting("half", "tools", "prompts", "resources"),
            "prompts/list": refuse,
            "resources/list": lambda _: {"resources": "none"},
            "resources/templates/list": lambda _: {"resourceTemplates": []},
        }
    )


def prompts_hang() -> None:
    handlers = {**tools_only("half", [tool("work")]), **greeting("half", "tools", "prompts")}
    for request in requests():
        if request["method"] != "prompts/list":
            write({"id": request["id"], **outcome(handlers, request)})


def silent_when_probed() -> None:
    """Ignores unknown methods, as some servers of the older protocol do."""
    handlers = tools_only("silent", [tool("work")])
    for request in requests():
        if request["method"] in handlers:
            write({"id": request["id"], **outcome(handlers, request)})


def odd_answers() -> None:
    answers = {"text": "no object", "blocks": {"content": "no list"}, "nan": {"structuredContent": float("nan")}}
    serve(tools_only("odd", [tool(name) for name in answers], lambda params: answers[params["name"]]))


def stubborn() -> None:
    """Ignores the end of its input and SIGTERM, and has a child that does the same."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-S", "-c", program], stdout=subprocess.PIPE) as child:
        if child.stdout is not None:
            child.stdout.readline()
        pids = json.dumps([os.getpid(), child.pid])
        serve(tools_only("stubborn", [tool("pids")], lambda _: said(pids)))
        time.sleep(600)


def leaves_a_child() -> None:
    """Ends with its input, but the child it started holds its pipes and stays."""
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])

    def call(params: Params) -> object:
        if params["name"] == "quit":
            os._exit(0)
        return said(json.dumps([os.getpid(), child.pid]))

    serve(tools_only("parent", [tool("pids"), tool("quit")], call))
    os._exit(0)


def floods_stderr() -> None:
    sys.stderr.write("".join(f"line {number} {'x' * 1_000}\n" for number in range(5_000)) + "the last line\n")
    sys.exit(1)


def swarms() -> None:
    """Notifies fifty times, every few milliseconds, that its list changed, and counts the listings."""
    listed, told = 0, 0

    def listing(_: Params) -> object:
        nonlocal listed
        listed += 1
        return {"tools": [tool("swarm"), tool("count"), *([tool("over")] if told == 50 else [])]}

    def tell() -> None:
        nonlocal told
        while told < 50:
            told += 1
            notify("notifications/tools/list_changed")
            time.sleep(0.005)

    def call(params: Params) -> object:
        if params["name"] == "swarm":
            threading.Thread(target=tell).start()
        return said(str(listed))

    serve({**tools_only("swarm", [], call), "tools/list": listing})


def impossible_headers() -> None:
    """Implements the newest protocol by hand, and requires an argument in an invalid header."""
    region = {"type": "string", "x-mcp-header": "no token"}
    tools = [tool("work"), tool("misled", inputSchema={"type": "object", "properties": {"region": region}})]
    discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
    serve({**tools_only("misled", tools), "server/discover": lambda _: discovered | cached})


def names_that_need_care() -> None:
    serve(tools_only("care", [tool(" padded "), tool("nul\0"), tool("dots.and-dashes")], _tell_name))


def _tell_name(params: Params) -> object:
    return said(repr(params["name"]))


FAULTS: dict[str, Callable[[], None]] = {
    name: made
    for name, made in list(globals().items())
    if callable(made) and getattr(made, "__module__", "") == __name__
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
