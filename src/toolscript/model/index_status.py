"""What an operator is told of one collection."""

from dataclasses import dataclass


@dataclass(frozen=True)
class IndexStatus:
    """`state` is live, building or previous; `under_way` says what is yet to be done in it, if anything."""

    product: str
    collection: str
    state: str
    model: str
    points: int
    shards: int
    under_way: str = ""
