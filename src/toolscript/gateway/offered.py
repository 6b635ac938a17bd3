"""What a gateway offers, as one digest for each list of MCP: whoever has seen a digest can wait for another."""

import hashlib
from collections.abc import Iterable, Mapping

from toolscript.core.items import Item, ItemKind

TOOLS, PROMPTS, RESOURCES = "tools", "prompts", "resources"
OFFERED = (TOOLS, PROMPTS, RESOURCES)
# How long a change is waited for; then the same digests are the answer.
WAIT_SECONDS = 20.0
_LISTS = {ItemKind.TOOL: TOOLS, ItemKind.PROMPT: PROMPTS, ItemKind.RESOURCE: RESOURCES}


def digests_of(items: Iterable[Item]) -> Mapping[str, str]:
    hashes = {name: hashlib.sha256() for name in OFFERED}
    for item in sorted(items, key=lambda item: (item.server, item.kind, item.key)):
        parts = "\0".join((item.server, item.key, item.definition or item.fingerprint))
        hashes[_LISTS[item.kind]].update(parts.encode("utf-8", "surrogatepass") + b"\0")
    return {name: digest.hexdigest()[:32] for name, digest in hashes.items()}
