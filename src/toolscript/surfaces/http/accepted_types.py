"""Which form of an answer a caller wants, by its `Accept` headers."""

from collections.abc import Sequence

ANY = "*/*"


def preferred(accepts: Sequence[str], offered: Sequence[str]) -> str:
    """The one of `offered` that is wanted most, the first where it is all the same.

    Whoever wants none of them gets the first: an answer nobody asked for says more than a refusal.
    """
    wanted = dict(_ranges(accepts)) or {ANY: 1.0}
    best = max(offered, key=lambda kind: (_quality(kind, wanted), -offered.index(kind)))
    return best if _quality(best, wanted) > 0 else offered[0]


def _quality(kind: str, wanted: dict[str, float]) -> float:
    """The most exact name decides."""
    for name in (kind, f"{kind.partition('/')[0]}/*", ANY):
        if name in wanted:
            return wanted[name]
    return 0.0


def _ranges(accepts: Sequence[str]) -> list[tuple[str, float]]:
    found = []
    for one in ",".join(accepts).split(","):
        name, *parameters = (part.strip().lower() for part in one.split(";"))
        if name:
            found.append((name, _weight(parameters)))
    return found


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
