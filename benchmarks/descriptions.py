"""`python -m benchmarks descriptions`: which tool a real model calls first, with the gateway's definitions."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.questions import read_queries
from toolscript.core.errors import Rejected, SetupError, Unavailable
from toolscript.core.items import JsonObject
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.mcp.definitions import definitions_of_tools, instructions

NO_TOOL, OTHER = "(answers without a tool)", "(a tool that does not exist)"
SECONDS = 120.0


@dataclass(frozen=True)
class FirstCalls:
    """How many requests a model begins with each tool; `wrong_arguments` counts calls that are no JSON object."""

    model: str
    requests: int
    first: dict[str, int]
    wrong_arguments: int


def bench_descriptions(
    queries: Path,
    *,
    url: str,
    model: str,
    api_key: str,
    servers: Sequence[str],
    limit: int,
    on_progress: OnProgress,
) -> FirstCalls:
    """Send each request to a chat endpoint that speaks OpenAI's protocol, with the tools and nothing else."""
    texts = read_queries(queries, limit)
    definitions = definitions_of_tools(split=False, servers=servers)
    tools = [as_function(definition) for definition in definitions]
    system = {"role": "system", "content": instructions(split=False, servers=servers)}
    first, wrong = Counter[str](), 0
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    with httpx2.Client(base_url=f"{url.rstrip('/')}/", headers=headers, timeout=SECONDS) as client:
        for done, text in enumerate(texts, 1):
            messages = [system, {"role": "user", "content": text}]
            body = {"model": model, "messages": messages, "tools": tools, "temperature": 0}
            name, arguments = first_call(_answer(client, body))
            known = name in {definition["name"] for definition in definitions}
            first[name if known or not name else OTHER] += 1
            wrong += bool(name) and not isinstance(arguments, dict)
            on_progress(Progress("requests", done, len(texts)))
    shown = {name or NO_TOOL: count for name, count in first.most_common()}
    return FirstCalls(model, len(texts), shown, wrong)


def as_function(definition: JsonObject) -> JsonObject:
    """Return a definition as OpenAI's protocol has it."""
    function = {
        "name": definition["name"],
        "description": definition["description"],
        "parameters": definition["inputSchema"],
    }
    return {"type": "function", "function": function}


def first_call(answer: Any) -> tuple[str, object]:
    """Return the name and the arguments of the first call in an answer; an empty name without one."""
    try:
        calls = answer["choices"][0]["message"].get("tool_calls") or []
        if not calls:
            return "", None
        function = calls[0]["function"]
        name, written = str(function["name"]), function.get("arguments") or "{}"
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise Rejected("the endpoint's answer is not one of a chat", hint="is the address right?") from error
    try:
        return name, json.loads(written)
    except (ValueError, TypeError):
        return name, None


def _answer(client: httpx2.Client, body: JsonObject) -> Any:
    try:
        response = client.post("chat/completions", json=body)
    except httpx2.HTTPError as error:
        raise Unavailable(f"the endpoint cannot be reached: {error}", hint="is --url right?") from error
    if response.status_code != 200:
        raise SetupError(f"the endpoint answered {response.status_code}", hint="are --url and --text-model right?")
    return response.json()
