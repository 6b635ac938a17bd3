"""What a worker counts and times, for Prometheus."""

from collections.abc import Callable, Sequence

from toolscript.adapters.telemetry.exposition import Described, Exposition
from toolscript.adapters.telemetry.labels import EMBEDDED, ERROR, OK, WORKED
from toolscript.adapters.telemetry.store_figures import StoreFigures


class WorkerFigures:
    def __init__(self) -> None:
        shown = self._shown = Exposition()
        self.stores = StoreFigures(shown)
        self._embedding = shown.seconds("embedding", "Calls of the embedding model.", "kind", "outcome")
        self._batches = shown.counter("worker_batches", "Batches of a worker, by what became of them.", "outcome")
        self._indexed = shown.counter("worker_items_indexed", "Items that a worker has brought into the index.")
        self._failed = shown.counter("worker_items_failed", "Items that failed, to be tried again later.")
        self._embedding.begin(EMBEDDED, WORKED)
        self._batches.begin(WORKED)
        self._indexed.begin()
        self._failed.begin()

    @property
    def page(self) -> Callable[[], bytes]:
        return self._shown.page

    @property
    def described(self) -> Sequence[Described]:
        return self._shown.described

    @property
    def before_page(self) -> Callable[[Callable[[], None]], None]:
        return self._shown.before_page

    def embedded(self, kind: str, seconds: float, *, failed: bool) -> None:
        self._embedding(kind, ERROR if failed else OK).observe(seconds)

    def followed(self, items: int) -> None:
        """A batch has been brought into the index."""
        self._batches(OK).inc()
        self._indexed().inc(items)

    def failed(self, items: int) -> None:
        """A batch could not be taken, or not be brought into the index."""
        self._batches(ERROR).inc()
        self._failed().inc(items)
