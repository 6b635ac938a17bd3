"""Traces which files of the package a search runs through: those with a function that it calls."""

import asyncio
import inspect
import json
import os
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from unittest.mock import patch

import httpx2

from toolscript.__main__ import main
from toolscript.core.embedding.download_failures import MODEL_ALIASES, REFUSED_SECONDS, Refusals
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import Offer
from toolscript.core.settings.service import Settings
from toolscript.gateway.config.read import read_config
from toolscript.gateway.settings import GatewaySettings
from toolscript.gateway.store.offers import OfferFile
from toolscript.server.demo import Tour, demo_access, demo_settings, open_demo
from toolscript.server.demo_contents import read_contents
from toolscript.server.wiring import SharedResources

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "toolscript"
# The first one is a warm-up.
QUERIES = ("read a file", "schedule a meeting with Anna")


def request_trace() -> set[Path]:
    """Trace `POST /api/v1/search`, on the in-memory stores of the demo."""

    async def run() -> set[Path]:
        settings = demo_settings(Settings.model_construct(), None, None)
        opening = open_demo(
            settings, SharedResources("", b"secret"), demo_access(settings), read_contents(), Tour("", "", "", {})
        )
        async with opening as app, _client(httpx2.ASGITransport(app)) as client:
            for query in QUERIES:
                with traced() as files:
                    answer = await client.post("/api/v1/search", json={"query": query})
                answer.raise_for_status()
            return files

    return asyncio.run(run())


def _client(transport: httpx2.ASGITransport) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1")


def command_trace(model: str) -> set[Path]:
    """Trace `toolscript search` without a running gateway; its cache holds the tools of the servers."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TOOLSCRIPT_")},
            "HOME": home,
            "TOOLSCRIPT_DATA_DIR": f"{home}/data",
            "TOOLSCRIPT_GATEWAY_ON_DEMAND": "false",
            **({"TOOLSCRIPT_SEARCH_MODEL": model} if model else {}),
        }
        _fill_cache(Path(home))
        for query in QUERIES:
            with patch.dict(os.environ, environment, clear=True), traced() as files:
                _command("search", query, "--config", f"{home}/servers.json")
        return files


def _fill_cache(home: Path) -> None:
    """Write a config of servers that are never started, their cached tools, and a failed model download."""
    by_server = defaultdict[str, list[Item]](list)
    for item in read_contents().items:
        by_server[item.server].append(item)
    config = home / "servers.json"
    config.write_text(json.dumps({"mcpServers": {name: {"command": "never"} for name in by_server}}), "utf-8")
    specs = read_config([config], {}).servers
    OfferFile(home / "data" / "cache" / "tools", specs).remember(
        [Offer(name, tuple(items)) for name, items in by_server.items()]
    )
    default = GatewaySettings().search_model
    Refusals(home / "data" / "models").add(
        MODEL_ALIASES.get(default, default), "not downloaded here", REFUSED_SECONDS
    )


def _command(*arguments: str) -> None:
    output, errors = StringIO(), StringIO()
    with (
        patch.object(sys, "argv", ["toolscript", *arguments]),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{arguments} ended with {end.code}: {errors.getvalue()}") from end


@contextmanager
def traced() -> Iterator[set[Path]]:
    """Yield a set that holds the paths within the package once the context ends."""
    codes, files = set[CodeType](), set[Path]()

    def profile(frame: FrameType, _event: str, _argument: object) -> None:
        codes.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        paths = {Path(code.co_filename) for code in codes if code.co_flags & inspect.CO_OPTIMIZED}
        files |= {path.relative_to(PACKAGE) for path in paths if path.is_relative_to(PACKAGE)}
