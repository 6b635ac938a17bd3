"""What a person has approved of servers' definitions: which tools are held, and how a definition differs."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from toolscript.core.items import Item, tool_id
from toolscript.gateway.differences import difference

# In the details of an error: the status of a tool that is held.
HELD = "held"
# For whoever meets one, agents too: no command that they would run themselves.
PERSON_REVIEWS = "a person must review it: run `toolscript review` in a terminal"
# Begins the note of an answer about what was not searched, which agents read, too: no command.
HELD_UNTIL = "held until the user reviews them"

# How long a change that is not held is named beside the results.
RECENT_SECONDS = 7 * 24 * 3600.0


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

    One that is `held` is neither found nor called. `seen_at` is when it was first seen. `difference` compares it
    with the approved definition, where another process did; `approved` and `now` are both.
    """

    digest: str
    tool: str
    kind: str
    server: str
    name: str
    status: Status
    held: bool
    seen_at: float
    difference: str = ""
    approved: str = field(default="", repr=False)
    now: str = field(default="", repr=False)

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


def difference_of(review: Review) -> str:
    """Compare the definitions, which takes a while for large ones."""
    return review.difference or difference(review.approved, review.now)


def review_shown(review: Review, *, compared: bool = True) -> dict[str, object]:
    """`compared`: with the difference, which has the server's own words."""
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
        "difference": difference_of(review) if compared else "",
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
        approved=approved,
        now=definition_of(item),
    )
