"""The TypeScript SDK and the MCP Inspector as clients, each a program of Node."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.features.steps import FIELDS, Json, Step, Target
from toolscript.core.errors import SetupError

TYPESCRIPT = Path(__file__).parent / "typescript_client.mjs"
PROGRAM_SECONDS = 600.0
# What the Inspector's command line can do.
INSPECTED = frozenset({*FIELDS, "tools/call", "prompts/get", "resources/read"})


async def observe_in_typescript(folder: Path, target: Target, steps: Sequence[Step]) -> dict[str, Json]:
    """Return what a client of the TypeScript SDK sees; it is installed in `folder`."""
    asked = {"target": target.to_json(), "steps": [step.to_json() for step in steps]}
    output = await _run(["node", str(TYPESCRIPT)], folder, json.dumps(asked))
    try:
        observed: dict[str, Json] = json.loads(output)
    except ValueError:
        raise SetupError(f"the TypeScript client failed: {output[-500:]}") from None
    return observed


async def observe_in_inspector(folder: Path, target: Target, steps: Sequence[Step]) -> dict[str, Json]:
    """Return what the Inspector's command line sees, which is a client of its own for each request."""
    return {step.id: await _inspect(folder, target, step) for step in steps if step.method in INSPECTED}


async def _inspect(folder: Path, target: Target, step: Step) -> Json:
    node, inspector = folder / "node_modules/node/bin/node", folder / "node_modules/.bin/mcp-inspector"
    place = [target.url, "--transport", "http"] if target.url else [*target.command]
    named = [part for name, value in (*_environment(target), *_options(step)) for part in (name, value)]
    output = await _run([str(node), str(inspector), "--cli", *place, "--method", step.method, *named], folder, "")
    try:
        answer = json.loads(output)
        # It prints the error of a request as an object with that alone.
        return answer if isinstance(answer, dict) and answer.keys() == {"error"} else {"result": answer}
    except ValueError:
        return {"error": {"code": "inspector", "message": output.strip()[:300]}}


def _environment(target: Target) -> list[tuple[str, str]]:
    """Return what a server gets beside what the Inspector gives every one."""
    own = {name: value for name, value in target.env.items() if os.environ.get(name) != value}
    return [("-e", f"{name}={value}") for name, value in own.items()]


def _options(step: Step) -> list[tuple[str, str]]:
    params: Mapping[str, Any] = step.params
    names = {"tools/call": "--tool-name", "prompts/get": "--prompt-name", "resources/read": "--uri"}
    arguments = {"tools/call": "--tool-arg", "prompts/get": "--prompt-args"}
    if step.method in FIELDS:
        return []
    given = params.get("arguments") or {}
    pairs = [(arguments[step.method], f"{name}={_text(value)}") for name, value in given.items()]
    return [(names[step.method], str(params.get("name") or params.get("uri"))), *pairs]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


async def _run(command: Sequence[str], folder: Path, given: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=dict(os.environ),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PROGRAM_SECONDS):
            output, errors = await process.communicate(given.encode())
    finally:
        if process.returncode is None:
            process.kill()
    return (output or errors).decode("utf-8", "replace")
