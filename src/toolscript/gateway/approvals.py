"""What a person has approved of servers' definitions: which tools are held, and how a definition differs."""

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import unified_diff
from enum import StrEnum
from itertools import islice

from toolscript.core.items import Item, tool_id
from toolscript.core.text import visible

# In the details of an error: the status of a tool that is held.
HELD = "held"
# Begins the note of an answer about what was not searched, which agents read, too: no command.
HELD_UNTIL = "held until the user reviews them"
# A difference shows at most so many lines, each of so many letters at most, of definitions of so many lines.
MAX_LINES, MAX_LETTERS, MAX_COMPARED = 400, 160, 5_000

# How long a change that is not held is named beside the results.
RECENT_SECONDS = 7 * 24 * 3600.0

# Where a text is split into lines, so that a changed sentence is one changed line.
_SENTENCE_END = re.compile(r"(?<=[.!?;]) ")


class Approvals(StrEnum):
    """Whose new and changed tools are held: those of projects and remote servers, of all servers, or of none."""

    DEFAULT = "default"
    STRICT = "strict"
    OFF = "off"


class Status(StrEnum):
    """How the current definition stands to the approved one."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"
    REJECTED = "rejected"


class Decision(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True)
class Review:
    """A definition that is not approved. `digest` identifies it, for a decision about exactly what was shown.

    One that is `held` is neither found nor called. `seen_at` is when it was first seen; `difference` compares it
    with the approved definition, line by line.
    """

    digest: str
    tool: str
    kind: str
    server: str
    name: str
    status: Status
    held: bool
    seen_at: float
    difference: str

    @property
    def waits(self) -> bool:
        """Whether nothing is decided yet."""
        return self.status is not Status.REJECTED


REASONS: Mapping[Status, str] = {
    Status.NEW: "it is new since its server was trusted",
    Status.CHANGED: "its definition changed since it was approved",
    Status.REJECTED: "its user rejected it",
}


def definition_of(item: Item) -> str:
    """Return the definition that is approved: all that the server sent, or all that an item from elsewhere has."""
    if item.definition:
        return item.definition
    data = {name: value for name, value in asdict(item).items() if name not in ("definition", "key", "server")}
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def digest_of(source: str, item: Item) -> str:
    """Return what identifies this definition of this item of this server."""
    parts = "\0".join((source, item.key, definition_of(item)))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def difference(before: str, now: str) -> str:
    """Return the lines that are gone (`-`) and new (`+`), each with the path of its value.

    Invisible characters are spelled out, so that none hides a change.
    """
    old, new = [*_lines(before)], [*_lines(now)]
    if max(len(old), len(new)) > MAX_COMPARED:
        return f"too long to compare: {len(old):,} lines before, {len(new):,} now"
    changed = [line for line in islice(unified_diff(old, new, n=0, lineterm=""), 2, None) if line[0] in "+-"]
    more = [f"and {len(changed) - MAX_LINES:,} more lines"] if len(changed) > MAX_LINES else []
    return "\n".join([*changed[:MAX_LINES], *more])


def _lines(definition: str) -> Iterator[str]:
    if definition:
        for path, text in _values(json.loads(definition), ""):
            for line in text.split("\n"):
                for sentence in _SENTENCE_END.split(line):
                    for start in range(0, len(sentence) or 1, MAX_LETTERS):
                        yield f"{path}: {sentence[start : start + MAX_LETTERS]}"


def _values(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield each value of a definition with its path, invisible characters spelled out in both."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _values(inner, f"{path}.{visible(str(key))}".removeprefix("."))
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _values(inner, f"{path}[]")
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        yield " ".join(path.split()), visible(text)


def is_recent(review: Review) -> bool:
    """Return whether it was first seen in the last days: the note about it is not repeated for ever."""
    return time.time() - review.seen_at < RECENT_SECONDS


def held_message(review: Review) -> str:
    return f"{review.tool[:200]} is held: {REASONS[review.status]}"


def for_agents(message: str) -> str:
    """Return what an agent should know of a tool that is held: no command, which it would run itself."""
    return f"{message}. Only the user can approve it: tell them, and do without it until they have."


def by_server(reviews: Sequence[Review]) -> str:
    """Return how many there are of each server: a count, and no names, which a server chooses."""
    servers = sorted({review.server for review in reviews})
    return ", ".join(f"{sum(review.server == server for review in reviews)} of {server}" for server in servers)


def review_shown(review: Review) -> dict[str, object]:
    from datetime import UTC, datetime

    seen_at = datetime.fromtimestamp(review.seen_at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "digest": review.digest,
        "id": review.tool,
        "kind": review.kind,
        "server": review.server,
        "name": review.name,
        "status": review.status.value,
        "held": review.held,
        "seen_at": seen_at,
        "difference": review.difference,
    }


def review_from_json(data: Mapping[str, object]) -> Review:
    from datetime import datetime

    return Review(
        digest=str(data["digest"]),
        tool=str(data["id"]),
        kind=str(data["kind"]),
        server=str(data["server"]),
        name=str(data["name"]),
        status=Status(str(data["status"])),
        held=data["held"] is True,
        seen_at=datetime.fromisoformat(str(data["seen_at"])).timestamp(),
        difference=str(data["difference"]),
    )


def review_of(item: Item, source: str, status: Status, *, held: bool, seen_at: float, approved: str) -> Review:
    return Review(
        digest=digest_of(source, item),
        tool=tool_id(item.server, item.name),
        kind=item.kind.value,
        server=item.server,
        name=item.name,
        status=status,
        held=held,
        seen_at=seen_at,
        difference=difference(approved, definition_of(item)),
    )
