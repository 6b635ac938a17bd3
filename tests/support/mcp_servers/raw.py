"""A JSON-RPC loop over stdin and stdout, with nothing but the standard library."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Params = Mapping[str, Any]
Handler = Callable[[Params], object]


class Refusal(Exception):
    """An error of the protocol, as opposed to one that a tool reports."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def write(message: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def notify(method: str) -> None:
    write({"method": method})


def requests() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            yield message


def serve(handlers: Mapping[str, Handler]) -> None:
    for request in requests():
        write({"id": request["id"], **outcome(handlers, request)})


def outcome(handlers: Mapping[str, Handler], request: Params) -> dict[str, object]:
    handler = handlers.get(str(request["method"]))
    if handler is None:
        return {"error": {"code": -32601, "message": f"no method {request['method']}"}}
    try:
        return {"result": handler(request.get("params") or {})}
    except Refusal as refusal:
        return {"error": {"code": refusal.code, "message": str(refusal)}}


def greeting(name: str, *kinds: str, protocol: str = "2025-11-25", instructions: str = "") -> dict[str, Handler]:
    """Answers to `initialize` and `ping`, for a server that offers these kinds."""
    answer: dict[str, object] = {
        "protocolVersion": protocol,
        "capabilities": {kind: {"listChanged": True} for kind in kinds},
        "serverInfo": {"name": name, "version": "1.2.3"},
    }
    if instructions:
        answer["instructions"] = instructions
    return {"initialize": lambda _: answer, "ping": lambda _: {}}


def tool(name: str, description: str = "", **more: object) -> dict[str, object]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def said(text: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], **more}


def tools_only(name: str, tools: list[Any], call: Handler | None = None) -> dict[str, Handler]:
    return {
        **greeting(name, "tools"),
        "tools/list": lambda _: {"tools": tools},
        "tools/call": call or (lambda params: said(json.dumps(params.get("arguments")))),
    }
