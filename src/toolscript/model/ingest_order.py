"""What somebody wants ingested, and how."""

from dataclasses import dataclass


@dataclass(frozen=True)
class IngestOrder:
    """`paths` are files and folders. Sources are known by their full path, or from `base` on where that is given.

    `type`, `topics` and `authors` are said of all of them. `extract` None: if a language model is set up; no more
    than `token_budget` tokens go into that. `prune` removes what folders no longer have; `dry` writes nothing.
    """

    paths: tuple[str, ...]
    base: str = ""
    type: str = ""
    topics: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    extract: bool | None = None
    token_budget: int | None = None
    prune: bool = False
    dry: bool = False
