"""A whole source leaves the catalog, a batch at a time; the indexes follow as they follow any change."""

from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.ports import CatalogContents
from toolscript.sync.cancelling import go_on_unless_cancelled

BATCH = 1_000


async def remove_source(
    contents: CatalogContents, name: str, *, batch_size: int = BATCH, on_progress: OnProgress = silent
) -> int:
    """How many items left. Interrupted, the same call goes on with the rest; with nothing left it does nothing."""
    known = await contents.source(name)
    removed = 0
    while True:
        left = await contents.remove_source(name, batch_size)
        removed += left
        if left:
            on_progress(Progress("remove", removed, None if known is None else max(removed, known.items)))
        if left < batch_size:
            return removed
        go_on_unless_cancelled()
