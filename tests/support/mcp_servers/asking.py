"""A server of the handshake era that asks its client while it works, on a thread for each request.

`ask KIND` asks and tells what it was answered. `hold` waits until it is cancelled, and notes that in the file that
the argument names. `late` answers at once, and asks afterwards. `talk` reports progress and logs.
"""

import json
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.support.mcp_servers.raw import said, tool

QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "elicit": ("elicitation/create", {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}),
    "sample": ("sampling/createMessage", {"messages": [], "maxTokens": 9}),
    "roots": ("roots/list", {}),
}
TOOLS = [tool(name, name) for name in ("ask", "hold", "late", "talk", "told")]
_WRITING = threading.Lock()
_answers: dict[str, "queue.Queue[dict[str, Any]]"] = {}
_cancelled: dict[object, threading.Event] = {}
_told: list[str] = []


def write(**message: object) -> None:
    with _WRITING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(kind: str) -> dict[str, Any]:
    """Ask the client, and return its answer or error."""
    name = f"question-{len(_answers)}"
    answer = _answers[name] = queue.Queue()
    method, params = QUESTIONS[kind]
    write(id=name, method=method, params=params)
    return answer.get(timeout=60)


def call(request_id: object, params: dict[str, Any]) -> object:
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "ask":
        time.sleep(float(arguments.get("after", 0)))
        return said(json.dumps(ask(arguments["kind"])))
    if name == "hold":
        _cancelled[request_id].wait(60)
        Path(sys.argv[1]).write_text("cancelled", "utf-8")
    if name == "late":
        threading.Timer(
            float(arguments.get("after", 0.2)), lambda: _told.append(json.dumps(ask("elicit")))
        ).start()
    if name == "talk":
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            write(method="notifications/progress", params={"progressToken": token, "progress": 1, "total": 2})
        write(method="notifications/message", params={"level": "info", "data": "half", "logger": "work"})
        write(method="notifications/message", params={"level": "debug", "data": "detail"})
    return said(json.dumps(_told))


def answer(message: dict[str, Any]) -> None:
    method, params = message["method"], message.get("params") or {}
    result: object = {}
    if method == "initialize":
        capabilities: dict[str, object] = {"tools": {}, "logging": {}}
        about = {"name": "asking", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = call(message["id"], params)
    elif method == "logging/setLevel":
        _told.append(f"level {params['level']}")
    elif method != "ping":
        write(id=message["id"], error={"code": -32601, "message": "Method not found"})
        return
    write(id=message["id"], result=result)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            _answers[message["id"]].put(message)
        elif "id" in message:
            _cancelled[message["id"]] = threading.Event()
            threading.Thread(target=answer, args=(message,), daemon=True).start()
        elif message["method"] == "notifications/cancelled":
            _cancelled[message["params"]["requestId"]].set()


if __name__ == "__main__":
    main()
