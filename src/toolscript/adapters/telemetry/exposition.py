"""A page of metrics for Prometheus, and what every process shows on it."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Generic, Literal, NamedTuple, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from toolscript import __version__

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# What several processes of one server show together: the sum over those alive, or what was said last.
Together = Literal["livesum", "livemostrecent", "max"]
M = TypeVar("M", Counter, Gauge, Histogram)

# When a series began is one more series for each, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Series(Generic[M]):
    """The series of one metric. They are kept: looking one up in the library costs more than counting."""

    def __init__(self, metric: M) -> None:
        self._metric: M = metric
        self._known: dict[tuple[str, ...], M] = {}

    def __call__(self, *labels: str) -> M:
        known = self._known.get(labels)
        if known is None:
            known = self._known[labels] = self._metric.labels(*labels) if labels else self._metric
        return known

    def begin(self, *labels: Iterable[str]) -> None:
        """A series that begins with its first event hides that event from every rate."""
        for values in product(*labels):
            self(*map(str, values))


class Described(NamedTuple):
    """A metric as the page of them lists it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    says: str


class Exposition:
    """`folder` is what several processes of one server share: whoever of them is asked answers for all."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._registry = CollectorRegistry()
        self._before_page: list[Callable[[], None]] = []
        self.described: list[Described] = []
        # Of several processes the library shows no memory: it would be that of whoever was asked.
        if not folder:
            ProcessCollector(registry=self._registry)
        build = self.gauge("build_info", "1; the version is in the label.", "version", together="max")
        build(__version__).set(1)

    def before_page(self, refresh: Callable[[], None]) -> None:
        """Called before each page, on the thread that makes it."""
        self._before_page.append(refresh)

    def page(self) -> bytes:
        """As Prometheus reads it. Reads files where processes share metrics: nothing for the event loop."""
        for refresh in self._before_page:
            refresh()
        if not self._folder:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared, path=self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def counter(self, name: str, says: str, *labels: str) -> Series[Counter]:
        self._describe(f"{name}_total", "counter", labels, says)
        return Series(Counter(f"toolscript_{name}", says, labels, registry=self._registry))

    def seconds(self, name: str, says: str, *labels: str) -> Series[Histogram]:
        self._describe(f"{name}_seconds", "histogram", labels, says)
        metric = Histogram(f"toolscript_{name}_seconds", says, labels, registry=self._registry, buckets=SECONDS)
        return Series(metric)

    def gauge(self, name: str, says: str, *labels: str, together: Together) -> Series[Gauge]:
        self._describe(name, "gauge", labels, says)
        metric = Gauge(f"toolscript_{name}", says, labels, registry=self._registry, multiprocess_mode=together)
        return Series(metric)

    def _describe(self, name: str, kind: str, labels: tuple[str, ...], says: str) -> None:
        self.described.append(Described(f"toolscript_{name}", kind, labels, says))
