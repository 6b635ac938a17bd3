"""Runs the command line over an in-memory gateway, and returns its output and exit code."""

import asyncio
import io
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from toolscript.cli.app import build_cli, run
from toolscript.core.values import OnProgress
from toolscript.gateway import daemon, session
from toolscript.gateway.model import Need
from toolscript_eval.cli import evaluate_commands


@dataclass
class Commands:
    """Double of a gateway session; records its requests."""

    gateway: GatewayDouble = field(default_factory=GatewayDouble)
    asked: list[tuple[Mapping[str, object], Need]] = field(default_factory=list)
    started: list[Mapping[str, object]] = field(default_factory=list)

    def ask(
        self,
        action: Callable[[Any], Awaitable[Any]],
        *,
        flags: Mapping[str, object],
        need: Need,
        on_progress: OnProgress,
        on_start: Callable[[str], None],
    ) -> Any:
        del on_progress, on_start
        self.asked.append((flags, need))

        async def act() -> Any:
            return await action(self.gateway)

        return asyncio.run(act())

    def start(
        self,
        *,
        flags: Mapping[str, object],
        on_ready: Callable[[str], None],
        background: bool,
        on_demand: bool,
        private: bool,
    ) -> None:
        del background, on_demand, private
        self.started.append(flags)
        on_ready("http://127.0.0.1:7355")


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class CommandLine:
    """Uses the default settings; `home` is the user's home folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path) -> None:
        self.commands = Commands()
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        for name in [variable for variable in os.environ if variable.startswith("TOOLSCRIPT_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setattr(session, "ask", self.commands.ask)
        monkeypatch.setattr(daemon, "start", self.commands.start)

    @property
    def gateway(self) -> GatewayDouble:
        return self.commands.gateway

    def __call__(self, *arguments: str, stdin: str = "") -> Ended:
        is_eval = arguments[:1] == ("eval",)
        argv = ["toolscript-eval", *arguments[1:]] if is_eval else ["toolscript", *arguments]
        self._monkeypatch.setattr(sys, "argv", argv)
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            run(evaluate_commands() if is_eval else build_cli())
        out, err = self._capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)
