"""The command line over a gateway in memory; what it prints, and how it ends."""

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import pytest

from tests.surfaces.mcp.gateway_double import GatewayDouble
from toolscript.cli import GatewayCommands, ServiceCommands, build_cli
from toolscript.cli.app import run
from toolscript.gateway import asking
from toolscript.model.gateway import LocalQuery
from toolscript.model.items import ItemKind
from toolscript.model.progress import OnProgress


@dataclass
class Commands:
    """Stands for the gateway's wiring; remembers what it was asked with."""

    gateway: GatewayDouble = field(default_factory=GatewayDouble)
    asked: list[tuple[Mapping[str, object], asking.Need]] = field(default_factory=list)
    started: list[Mapping[str, object]] = field(default_factory=list)
    Need = asking.Need

    def ask(
        self,
        action: Callable[[Any], Awaitable[Any]],
        *,
        flags: Mapping[str, object],
        need: asking.Need,
        on_progress: OnProgress,
    ) -> Any:
        self.asked.append((flags, need))

        async def act() -> Any:
            return await action(self.gateway)

        return asyncio.run(act())

    def usual_query(
        self, *, limit: int | None, threshold: float | None, kind: ItemKind | None
    ) -> Callable[[str], LocalQuery]:
        most, least = 3 if limit is None else limit, 0.35 if threshold is None else threshold
        return lambda text: LocalQuery(text, most, least, kind)

    def trust_question(self, *, flags: Mapping[str, object]) -> None:
        """Nothing here waits to be trusted."""

    def start(self, *, flags: Mapping[str, object], on_ready: Callable[[str], None], background: bool) -> None:
        self.started.append(flags)
        on_ready("http://127.0.0.1:7355")


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class CommandLine:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.commands = Commands()
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    @property
    def gateway(self) -> GatewayDouble:
        return self.commands.gateway

    def __call__(self, *arguments: str, stdin: str = "") -> Ended:
        self._monkeypatch.setattr(sys, "argv", ["toolscript", *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        app = build_cli(_no_service, lambda: cast("GatewayCommands", self.commands))
        with pytest.raises(SystemExit) as ended:
            run(app)
        out, err = self._capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)


def _no_service() -> ServiceCommands:
    raise AssertionError("a gateway's command has no business with the service")
