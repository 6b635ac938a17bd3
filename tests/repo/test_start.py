"""Commands that should start fast import little."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.runtime.serving import open_app, serving
from toolscript.core.items import ItemKind
from toolscript.tools.model.answer import Timings, ToolAnswer, ToolHit
from toolscript.tools.schemas.search import ToolSearchAnswer

SLOW_TO_IMPORT = {
    *("fastapi", "fastembed", "grpc", "numpy", "onnxruntime", "openai", "psycopg", "qdrant_client", "sqlalchemy"),
    *("httpx2", "mcp", "pydantic", "rapidfuzz", "rich", "starlette", "structlog", "tokenizers", "uvicorn"),
    *("py_rust_stemmers", "watchfiles"),
}
RUN = """
import sys
from toolscript.__main__ import main
sys.argv = ["toolscript", *sys.argv[1:]]
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
sys.stderr.write("\\n".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_help_imports_no_driver_and_no_model() -> None:
    command = [sys.executable, "-c", RUN, "--help"]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "Usage: toolscript" in output.stdout
    assert (SLOW_TO_IMPORT | {"asyncio"}) & set(output.stderr.splitlines()) == set()


@pytest.mark.requirement("TS-002")
async def test_a_command_that_uses_a_running_gateway_imports_nothing_heavy(tmp_path: Path) -> None:
    async with serving(open_app(GatewayDouble())) as url:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RUN, "search", "read a file"),
            env={**os.environ, "HOME": str(tmp_path), "TOOLSCRIPT_GATEWAY_URL": url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        output, imported = await asyncio.wait_for(child.communicate(), 60)
    assert "files__read_file" in output.decode(), imported.decode()
    assert SLOW_TO_IMPORT & set(imported.decode().splitlines()) == set()


async def test_a_command_that_calls_a_running_service_imports_nothing_heavy() -> None:
    hit = ToolHit(1, ItemKind.TOOL, "files", "read_file", "Read a file", 0.5)
    body = ToolSearchAnswer.of(ToolAnswer("x", (hit,), 1, "hybrid", Timings()), "").model_dump_json()

    async def answer(_: Request) -> Response:
        return Response(body)

    async with serving(Starlette(routes=[Route("/api/v1/tools/search", answer, methods=["POST"])])) as url:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RUN, "tools", "search", "read a file", "--explain"),
            env={**os.environ, "TOOLSCRIPT_SERVICE_URL": url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        output, imported = await asyncio.wait_for(child.communicate(), 60)
    assert "files__read_file" in output.decode(), imported.decode()
    assert (SLOW_TO_IMPORT | {"asyncio"}) & set(imported.decode().splitlines()) == set()
