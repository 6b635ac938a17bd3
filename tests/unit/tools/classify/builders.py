"""Skills and items with vectors for tests of classifiers."""

import json
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from toolscript.core.embedding.items import embed_items
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.taxonomy import Classification, Skill, Unclassified

CALENDAR = Skill(
    "calendar", "Calendars", "Events, meetings and appointments", keywords=("calendar", "event", "time zone")
)
FILES = Skill("file_work", "Files & Folders", "Reading and writing files", keywords=("file", "folder", "path"))
MAIL = Skill("mail", "Mail", "Sending and reading messages", keywords=("email", "message", "event"))
SKILLS = (CALENDAR, FILES, MAIL)


def tool(name: str, description: str = "", server: str = "server") -> Item:
    return Item(f"{server}__{name}", ItemKind.TOOL, server, name, description)


async def unclassified(embedder: Embedder, items: Sequence[Item]) -> list[Unclassified]:
    """Embed each item alone, so that its vector does not depend on the others."""
    vectors = [(await embed_items(embedder, [item]))[0] for item in items]
    return [Unclassified(item, vector) for item, vector in zip(items, vectors, strict=True)]


def default_skills() -> list[Skill]:
    rows = json.loads((files("toolscript.core") / "default_taxonomy.json").read_text("utf-8"))
    return [
        Skill(
            row["id"],
            row["name"],
            row["description"],
            keywords=tuple(row["keywords"]),
            examples=tuple(row["examples"]),
        )
        for row in rows
        if row["is_active"]
    ]


def many_skills(count: int) -> list[Skill]:
    return [
        Skill(f"skill_{number}", f"Trade{number}", f"About trade{number}", keywords=(f"trade{number}", "thing"))
        for number in range(count)
    ]


def ids_of(classification: Classification) -> list[str]:
    """Primary first."""
    return [assignment.skill_id for assignment in classification.assignments]


def random_vectors(count: int, dimensions: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    drawn = np.random.default_rng(7).standard_normal((count, dimensions)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), dtype=np.float32)
