"""Files of what servers offered when they were last asked, and of tools whose definition changed."""

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolscript.core.atomic_files import read_whole, write_whole
from toolscript.core.errors import InvalidRequest
from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item, ItemKind
from toolscript.core.mcp_client.model import Offer, ServerSpec
from toolscript.gateway.store.embeddings import server_list_hash

SEEN_FORMAT = 1
MAX_TOOLS, MAX_CHANGES = 5_000, 100
MAX_KEPT, MAX_SHOWN, BEFORE_THE_DIFFERENCE = 4_000, 300, 60
CHANGES_SECONDS = 7 * 24 * 3600.0
OFFERS_FORMAT = 2
MAX_REASON = 2_000

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
                known[item.name] = {"hash": _hash(said), "text": said[:MAX_KEPT]}
        recent = sorted(changed.items(), key=lambda one: -float(one[1]["at"]))[:MAX_CHANGES]
        now = {"format": SEEN_FORMAT, "tools": dict([*known.items()][-MAX_TOOLS:]), "changed": dict(recent)}
        if now != data:
            self._write(now)

    def changes(self) -> list[ToolChange]:
        """Of the last days."""
        changes = [
            ToolChange(self._server, name, str(one["before"]), str(one["now"]), float(one["at"]))
            for name, one in dict(self._data().get("changed", {})).items()
        ]
        return [one for one in changes if 0 <= time.time() - one.at < CHANGES_SECONDS]

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
    if not isinstance(data, dict) or data.get("format") != SEEN_FORMAT:
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


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _difference(before: str, now: str) -> dict[str, str]:
    """Both from a little before the first character that differs."""
    pairs = enumerate(zip(before, now, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(before), len(now)))
    start = max(0, same - BEFORE_THE_DIFFERENCE)
    return {"before": before[start : start + MAX_SHOWN], "now": now[start : start + MAX_SHOWN]}


@dataclass(frozen=True)
class Failed:
    """Why a server offered nothing when it was last asked, and how many seconds ago that was."""

    reason: str
    age: float


@dataclass(frozen=True)
class CachedOffers:
    """`age` in seconds, of the oldest offer."""

    offers: tuple[Offer, ...] = ()
    age: float = 0.0
    failed: Mapping[str, Failed] = field(default_factory=dict)


class OfferFile:
    """One entry a server, written when it has answered: none waits for the others.

    A failure is remembered for a short time, and only of an entry that is exactly as it was: whoever mends a
    server wants to see it work.
    """

    def __init__(self, folder: Path, specs: Sequence[ServerSpec]) -> None:
        self._path = folder / f"tools-{server_list_hash([spec.name for spec in specs])}.json"
        self._prints = {spec.name: _fingerprint(spec) for spec in specs}
        self._exact = {spec.name: _exact_fingerprint(spec) for spec in specs}
        self._seen = {name: SeenTools(folder.parent / "seen", name, one) for name, one in self._prints.items()}
        self._written: object = None

    def recall(self, max_seconds: float, failed_seconds: float = 0.0) -> CachedOffers:
        """Of servers whose entry has not changed, and nothing older than this."""
        try:
            now, stored = time.time(), self._stored()
            aged = [(_offer(name, one), now - float(one["at"])) for name, one in stored.items() if "items" in one]
            failed = {
                name: Failed(str(one["failed"]), now - float(one["at"]))
                for name, one in stored.items()
                if "failed" in one and one["exact"] == self._exact.get(name)
            }
        except (ValueError, KeyError, TypeError, OverflowError, InvalidRequest) as error:
            self._warn("what the servers offered last is not known", error)
            return CachedOffers()
        fresh = [(offer, age) for offer, age in aged if 0 <= age < max_seconds]
        return CachedOffers(
            tuple(offer for offer, _ in fresh),
            max((age for _, age in fresh), default=0.0),
            {name: one for name, one in failed.items() if 0 <= one.age < failed_seconds},
        )

    def remember(self, offers: Sequence[Offer], failed: Mapping[str, str] | None = None) -> bool:
        """What these servers offer now, and why others do not; what is known of the rest stays.

        What was written last is not written again. Answers whether there was anything new.
        """
        failed = failed or {}
        if not (offers or failed) or (list(offers), failed) == self._written:
            return False
        self._written = list(offers), failed
        ours = [offer for offer in offers if offer.server in self._prints]
        for offer in ours:
            self._seen[offer.server].look(offer.items)
        news = {offer.server: self._entry(offer) for offer in ours}
        news |= {name: self._failure(name, why) for name, why in failed.items() if name in self._prints}
        try:
            write_whole(self._path, {"format": OFFERS_FORMAT, "servers": {**self._stored(), **news}})
        except OSError as error:
            self._warn("what the servers offer cannot be kept", error)
        return True

    def changes(self) -> list[ToolChange]:
        """Of the last days, the newest first."""
        changes = [change for seen in self._seen.values() for change in seen.changes()]
        return sorted(changes, key=lambda tool_change: -tool_change.at)

    def _entry(self, offer: Offer) -> dict[str, object]:
        items = [asdict(item) for item in offer.items]
        return {"print": self._prints[offer.server], "at": time.time(), "items": items}

    def _failure(self, name: str, reason: str) -> dict[str, object]:
        prints = {"print": self._prints[name], "exact": self._exact[name]}
        return {**prints, "at": time.time(), "failed": reason[:MAX_REASON]}

    def _stored(self) -> dict[str, Mapping[str, Any]]:
        """The entries that still belong to a server of ours; nothing when the file is not as we wrote it."""
        try:
            data = read_whole(self._path)
            servers = data["servers"] if data["format"] == OFFERS_FORMAT else {}
            return {name: one for name, one in servers.items() if one["print"] == self._prints.get(name)}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._warn("what the servers offered last is not known", error)
            return {}

    def _warn(self, message: str, error: Exception) -> None:
        logger.warning(message, extra={"file": str(self._path), "reason": str(error)})


def _offer(name: str, data: Mapping[str, object]) -> Offer:
    items = data["items"]
    if not isinstance(items, list):
        raise TypeError("items must be a list")
    return Offer(name, tuple(item_from_json({**item, "server": name, "id": item["key"]}) for item in items))


def _fingerprint(spec: ServerSpec) -> str:
    """What decides which tools a server has; of what may be secret, only the names."""
    parts = (
        spec.transport,
        spec.command,
        spec.args,
        spec.cwd,
        spec.url,
        sorted(spec.env),
        sorted(spec.headers),
        spec.include_tools,
        spec.exclude_tools,
    )
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def _exact_fingerprint(spec: ServerSpec) -> str:
    """Of all that is in an entry: a token that was set is a reason to ask again."""
    parts = (_fingerprint(spec), sorted(spec.env.items()), sorted(spec.headers.items()))
    more = (sorted(spec.inherited.items()), spec.start_seconds)
    return hashlib.sha256(json.dumps([*parts, *more], ensure_ascii=False).encode("utf-8", "replace")).hexdigest()
