"""The first sentence of a description, and sentences that say nothing about an item.

"No description", or the frame of a page around its name: many tools of different names and servers have these, but
for the names in them.
"""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from toolscript.core.items import Item

MAX_SENTENCE = 240
# "e.g." and "i.e." end no sentence.
SENTENCE_END = re.compile(r"(?<=[.!?。])(?<!\b[eE]\.g\.)(?<!\b[iI]\.e\.)\s|\n")

# So many different names, and so many servers, have a sentence that says nothing about one of them.
MIN_NAMES, MIN_SERVERS = 8, 5
# Names of accounts and packages, and addresses: "@somebody/notes", "https://example.com/a".
_HANDLE = re.compile(r"\S*(?:://|@|/|_)\S*")


def first_sentence(description: str) -> str:
    """Return the first sentence: later ones speak of arguments and limits."""
    return SENTENCE_END.split(description[: MAX_SENTENCE * 2].strip(), 1)[0][:MAX_SENTENCE].replace("’", "'")


def frame_of(item: Item) -> str:
    """Return the first sentence without the names of the item and its server, and without addresses."""
    sentence = first_sentence(item.description)
    for name in (item.server, item.name):
        if name:
            sentence = sentence.replace(name, " ")
    return " ".join(_HANDLE.sub(" ", sentence).split()).casefold()


def boilerplate_of(items: Sequence[Item]) -> frozenset[str]:
    """Return the frames that so many items share that they say nothing about one of them."""
    names: dict[str, set[str]] = {}
    servers: dict[str, set[str]] = {}
    for item in items:
        if " " in (frame := frame_of(item)):
            names.setdefault(frame, set()).add(item.name)
            servers.setdefault(frame, set()).add(item.server)
    return frozenset(
        frame for frame in names if len(names[frame]) >= MIN_NAMES and len(servers[frame]) >= MIN_SERVERS
    )


def without_boilerplate(items: Iterable[Item], boilerplate: Container[str]) -> list[Item]:
    """Return the items, without a description where its first sentence is boilerplate."""
    return [replace(item, description="") if frame_of(item) in boilerplate else item for item in items]
