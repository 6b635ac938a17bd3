"""What each server has said of its tools, and where it says something else now.

A file for each entry of a config, so that another server beside it changes nothing. A tool that is gone for a
while is remembered: to take it away and bring it back with other words is no way around.
"""

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolscript.adapters.gateway_files.atomic import read_whole, write_whole
from toolscript.model.items import Item, ItemKind

FORMAT = 1
MOST_TOOLS, MOST_CHANGES = 5_000, 100
MOST_KEPT, MOST_SHOWN, BEFORE_THE_DIFFERENCE = 4_000, 300, 60
CHANGES_SECONDS = 7 * 24 * 3600.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ToolChange:
    """A tool whose server says something else of it than before, under the same entry of the config."""

    server: str
    tool: str
    before: str
    now: str
    at: float


class SeenTools:
    def __init__(self, folder: Path, server: str, entry: str) -> None:
        self._server = server
        self._path = folder / f"seen-{entry[:32]}.json"

    def look(self, items: Sequence[Item]) -> None:
        """Compares what a server offers with what it has offered, and keeps it."""
        data = self._data()
        known, changed = dict(data.get("tools", {})), dict(data.get("changed", {}))
        for item in items:
            if item.kind is ItemKind.TOOL:
                said = _said(item)
                was = known.get(item.name)
                if was is not None and was["hash"] != _hash(said):
                    changed[item.name] = {**_difference(str(was["text"]), said), "at": time.time()}
                    logger.warning("a tool is no longer what it was: %s__%s", self._server, item.name)
                known[item.name] = {"hash": _hash(said), "text": said[:MOST_KEPT]}
        recent = sorted(changed.items(), key=lambda one: -float(one[1]["at"]))[:MOST_CHANGES]
        now = {"format": FORMAT, "tools": dict([*known.items()][-MOST_TOOLS:]), "changed": dict(recent)}
        if now != data:
            self._write(now)

    def changes(self) -> list[ToolChange]:
        """Of the last days."""
        found = [
            ToolChange(self._server, name, str(one["before"]), str(one["now"]), float(one["at"]))
            for name, one in dict(self._data().get("changed", {})).items()
        ]
        return [one for one in found if 0 <= time.time() - one.at < CHANGES_SECONDS]

    def _data(self) -> Mapping[str, Any]:
        try:
            data = read_whole(self._path)
            return data if _is_ours(data) else {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            logger.warning(
                "what servers have said before is not known", extra={"file": str(self._path), "reason": str(error)}
            )
            return {}

    def _write(self, data: object) -> None:
        try:
            write_whole(self._path, data)
        except OSError as error:
            logger.warning(
                "what servers say cannot be kept", extra={"file": str(self._path), "reason": str(error)}
            )


def _is_ours(data: object) -> bool:
    """Whether it is as it was written here: it decides only what is warned of."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return False
    parts = {"tools": {"hash", "text"}, "changed": {"before", "now", "at"}}
    return all(
        isinstance(data.get(name), dict)
        and all(isinstance(one, dict) and one.keys() == keys for one in data[name].values())
        for name, keys in parts.items()
    )


def _said(item: Item) -> str:
    """All that decides what an agent makes of a tool."""
    rest = json.dumps([item.input_schema, item.annotations], sort_keys=True, ensure_ascii=False)
    return f"{item.description}\n{rest}"


def _hash(said: str) -> str:
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()


def _difference(before: str, now: str) -> dict[str, str]:
    """Both from a little before the first character that differs."""
    pairs = enumerate(zip(before, now, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(before), len(now)))
    start = max(0, same - BEFORE_THE_DIFFERENCE)
    return {"before": before[start : start + MOST_SHOWN], "now": now[start : start + MOST_SHOWN]}
