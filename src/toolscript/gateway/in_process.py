"""The gateway as a library: `Gateway.open()` joins the running one or opens one here, with the API's answers."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Self

from toolscript.client.answers.tools import CallResult, Server, Tool, ToolSearchAnswer
from toolscript.client.resource import given, values_of
from toolscript.client.resources.tools import Kind, Risk, SearchType
from toolscript.core.items import ItemKind
from toolscript.core.values import silent
from toolscript.gateway.api import find_item, items_of_kind, position_of, search_with
from toolscript.gateway.callers import CallTerms, on_terms
from toolscript.gateway.client import GatewayClient
from toolscript.gateway.following import open_following
from toolscript.gateway.joining import LOOK_SECONDS, join, until_listed
from toolscript.gateway.json import call_shown, server_shown, tool_shown
from toolscript.gateway.model import Gateway as GatewayPort
from toolscript.gateway.openapi import ANY_KIND
from toolscript.gateway.runtime import PATIENCE_SECONDS
from toolscript.gateway.settings import GatewaySettings, load_gateway_settings


class Gateway:
    """Finds and calls the tools of your MCP servers. `Gateway.open()` makes one.

    Its methods and answers are those of `client.tools` of an `AsyncClient`.
    """

    def __init__(self, gateway: GatewayPort, settings: GatewaySettings) -> None:
        self._gateway = gateway
        self._settings = settings

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *,
        config: str | Path | None = None,
        data_dir: str | Path | None = None,
        model: str | None = None,
        alone: bool | None = None,
    ) -> AsyncIterator[Self]:
        """Join the gateway of this user, which is started if none runs, or open one in this process.

        `alone` opens one in this process, whose servers stop when the context ends; so does a `model` that the
        running gateway does not have.
        It reads the config files that the commands read, `~/.toolscript.json` and the project's, or `config`
        alone, and their changes. What they exclude and what you do not trust stays out: an answer's
        `metadata.hint` names it, with the command that decides about trust. `data_dir` holds models and caches;
        `model` is an embedding model, by name or folder.
        """
        paths = {"config": config, "data_dir": data_dir}
        flags = {name: None if path is None else str(path) for name, path in paths.items()}
        settings = load_gateway_settings({**flags, "search_model": model, "gateway_alone": alone})
        joined = await asyncio.to_thread(join, settings)
        if joined is not None:
            await until_listed(joined.client, silent, lambda: asyncio.sleep(LOOK_SECONDS))
            yield cls(joined.client, settings)
            return
        async with open_following(settings) as resources:
            await resources.settled(PATIENCE_SECONDS)
            yield cls(resources.recorded, settings)

    async def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        kind: Kind | Literal["any"] | None = None,
        threshold: float | None = None,
        search_type: SearchType | None = None,
        include_schemas: bool | None = None,
        explain: bool | None = None,
    ) -> ToolSearchAnswer:
        """Search tools by a request in plain words. What is None is left to the settings."""
        body = given(
            {
                "query": query,
                "limit": limit,
                "kind": kind,
                "threshold": threshold,
                "search_type": search_type,
                "include_schemas": include_schemas,
                "explain": explain,
            }
        )
        if isinstance(self._gateway, GatewayClient):
            return ToolSearchAnswer.from_json(await self._gateway.search_shown(body))
        usual = self._settings
        found = await search_with(
            self._gateway,
            body,
            str(uuid.uuid4()),
            limit=usual.search_limit,
            threshold=usual.search_threshold,
        )
        return ToolSearchAnswer.from_json(found)

    async def tools(
        self,
        *,
        kind: Kind | None = None,
        server: str | Sequence[str] | None = None,
        include_schemas: bool = False,
    ) -> AsyncIterator[Tool]:
        """Iterate over tools, prompts and resources, in order of server, name and kind."""
        items = await items_of_kind(self._gateway, kind or ANY_KIND, tuple(values_of(server) or ()))
        for item in sorted(items, key=position_of):
            yield Tool.from_json(tool_shown(item, schemas=include_schemas))

    async def get(self, tool_id: str, *, kind: Kind = ItemKind.TOOL.value) -> Tool:
        """Return a tool with its schemas, by `server__tool`."""
        return Tool.from_json(tool_shown(await find_item(self._gateway, tool_id, kind), schemas=True))

    async def call(
        self,
        tool_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        confirm: bool = False,
        max_risk: Risk | None = None,
    ) -> CallResult:
        """Call a tool. One that fails sets `is_error`; one that cannot be called raises.

        `confirm` says that a person confirms the call, where a rule asks for it; a tool above `max_risk` is not
        called. Both, and what a rule denies, raise `Forbidden`.
        """
        with on_terms(CallTerms(tool_id if confirm else "", max_risk or "")):
            return CallResult.from_json(call_shown(await self._gateway.call(tool_id, dict(arguments or {}))))

    async def types(self, names: Sequence[str] = (), *, compact: bool = False) -> str:
        """Return a TypeScript module for these servers and `server__tool`s, else for all tools."""
        return await self._gateway.typescript(tuple(names), compact=compact)

    async def servers(self) -> list[Server]:
        """Return the MCP servers, with their states."""
        return [Server.from_json(server_shown(server)) for server in await self._gateway.servers()]
