"""Parses a metrics page as Prometheus does."""

from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

Series = tuple[str, tuple[tuple[str, str], ...]]


def shown(page: bytes) -> dict[Series, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def value(page: bytes, name: str, **labels: str) -> float:
    """Return the sum of the series with at least these labels."""
    return sum(
        received
        for (shown_name, shown_labels), received in shown(page).items()
        if shown_name == name and labels.items() <= dict(shown_labels).items()
    )


def gained(page: Callable[[], bytes], name: str, **labels: str) -> Callable[[], float]:
    """Return a function that returns the growth since now."""
    before = value(page(), name, **labels)
    return lambda: value(page(), name, **labels) - before
