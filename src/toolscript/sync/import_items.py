"""Takes items from a source into the catalog; what did not change costs nothing."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolscript.errors import InvalidRequest
from toolscript.model.batches import in_batches
from toolscript.model.items import Item, RefusedItem, StoreReport
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.ports import Catalog

BATCH = 1_000
# For a process that answers searches meanwhile: what a batch needs of its one thread, they wait for.
GENTLE_BATCH = 100
MOST_REFUSALS_SHOWN = 20


@dataclass(frozen=True)
class ImportReport:
    stored: StoreReport
    removed: int
    refused_count: int
    refused: tuple[RefusedItem, ...]
    pruned: bool


async def import_items(
    catalog: Catalog,
    source: str,
    entries: Iterable[Item | RefusedItem],
    *,
    prune: bool = False,
    may_be_empty: bool = False,
    empty_hint: str = "",
    batch_size: int = BATCH,
    total: int | None = None,
    on_progress: OnProgress = silent,
) -> ImportReport:
    """With `prune`, items of the source that are absent are removed, unless any entry could not be read.

    A source without any item is taken for a mistake when pruning, unless it `may_be_empty`; `empty_hint` tells
    whoever asked what to do instead.
    """
    stored, refused, keys, done = StoreReport(), list[RefusedItem](), list[str](), 0
    for batch in in_batches(entries, batch_size):
        items = {entry.key: entry for entry in batch if isinstance(entry, Item)}
        refused += [entry for entry in batch if isinstance(entry, RefusedItem)]
        stored += await catalog.store(source, list(items.values()))
        keys += items if prune else ()
        done += len(batch)
        on_progress(Progress("sync", done, total))
    if prune and not keys and not may_be_empty:
        raise InvalidRequest(
            f"no item could be read, and nothing of source {source!r} was removed",
            hint=empty_hint,
        )
    pruned = prune and not refused
    removed = await catalog.keep_only(source, keys) if pruned else 0
    return ImportReport(stored, removed, len(refused), tuple(refused[:MOST_REFUSALS_SHOWN]), pruned)
