"""Proposals from a large synthetic catalog: minutes, peak memory and balance."""

import resource
import time
from collections.abc import AsyncIterator, Sequence

import numpy as np

from toolscript.core.items import Item, ItemKind
from toolscript.core.values import OnProgress, silent
from toolscript.tools.model.proposals import Observed
from toolscript.tools.skills.proposer import propose

DIMENSIONS = 384
SUBJECTS = 400
NOISE = 0.04
PAGE = 2_000
VERBS = ("get", "list", "create", "delete", "update", "search", "send", "export")
TOOLS_OF_SERVER = 12


async def measure_proposals(items: int, seed: int = 0, on_progress: OnProgress = silent) -> dict[str, object]:
    """Propose skills for a catalog that is made up page by page: it is never in memory as a whole."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(SUBJECTS, DIMENSIONS)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)

    async def pages() -> AsyncIterator[Sequence[Observed]]:
        for start in range(0, items, PAGE):
            yield _page(centres, start, min(PAGE, items - start), seed)

    started = time.monotonic()
    proposals = await propose(pages, (), on_progress=on_progress)
    placed = sum(proposal.evidence.members for proposal in proposals)
    return {
        "items": items,
        "proposals": len(proposals),
        "minutes": round((time.monotonic() - started) / 60, 2),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "largest_share": round(max(proposal.evidence.members for proposal in proposals) / items, 4),
        "memberships_per_item": round(placed / items, 3),
    }


def _page(centres: np.ndarray, start: int, count: int, seed: int) -> list[Observed]:
    random = np.random.default_rng((seed, start))
    servers = (start + np.arange(count)) // TOOLS_OF_SERVER
    subjects = (servers * 7919) % SUBJECTS
    vectors = centres[subjects] + NOISE * random.normal(size=(count, DIMENSIONS)).astype(np.float32)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return [
        Observed(start + row + 1, _item(start + row, int(servers[row]), int(subjects[row])), vectors[row])
        for row in range(count)
    ]


def _item(number: int, server: int, subject: int) -> Item:
    verb, thing = VERBS[number % len(VERBS)], f"thing{subject}"
    description = f"{verb.title()} a {thing} or its part{subject} in the workspace of a team."
    return Item(f"item-{number}", ItemKind.TOOL, f"{thing} service {server}", f"{verb}_{thing}", description)
