"""Labelled items: which skill of a taxonomy each belongs to, as decided by reading it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item
from toolscript_eval.dataset import json_rows, located, read_catalog

# The label of an item that no skill fits.
NONE = "none"
FIELDS = frozenset({"dataset", "id", "split", "best", "acceptable", "readings"})


class ClassifierName(StrEnum):
    """Classifiers to compare with labels."""

    RULES = "rules"
    LLM = "llm"


@dataclass(frozen=True)
class Label:
    """`best` is the skill that fits best, `acceptable` are the others that are right, too; either may be NONE.

    `readings` are the best skills that independent readings chose, before a further one resolved differences.
    """

    dataset: str
    item_id: str
    best: str
    acceptable: frozenset[str] = frozenset()
    split: str = ""
    readings: tuple[str, ...] = ()

    def accepts(self, skill_id: str | None) -> bool:
        """Return whether a classification is right; None is an item that was left without a skill."""
        return (skill_id or NONE) in self.acceptable | {self.best}

    def is_best(self, skill_id: str | None) -> bool:
        return (skill_id or NONE) == self.best


@dataclass(frozen=True)
class Agreement:
    """How often two readings chose the same skill, and Cohen's kappa, which subtracts agreement by chance."""

    items: int
    share: float
    kappa: float


def read_labels(path: Path, skill_ids: Collection[str]) -> list[Label]:
    """Read labels, one JSON object per line; refuse a skill that the taxonomy does not have."""
    known = frozenset(skill_ids) | {NONE}
    labels: dict[tuple[str, str], Label] = {}
    for number, row in json_rows(path):
        label = located(path, number, lambda data: _label_from_json(data, known), row)
        key = (label.dataset, label.item_id)
        if key in labels:
            raise InvalidRequest(
                f"{path}, line {number}: {label.item_id!r} of {label.dataset} is labelled already",
                hint="remove one of the two lines",
            )
        labels[key] = label
    if not labels:
        raise InvalidRequest(f"{path} has no labels", hint="docs/skills.md describes the format")
    return list(labels.values())


def _label_from_json(row: Mapping[str, Any], known: frozenset[str]) -> Label:
    if unknown := sorted(row.keys() - FIELDS):
        raise InvalidRequest(f"unknown field {unknown[0]!r}")
    for name in ("dataset", "id", "best"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise InvalidRequest(f"{name} is missing")
    acceptable, readings = _skills(row, "acceptable"), _skills(row, "readings")
    if wrong := [skill for skill in (row["best"], *acceptable, *readings) if skill not in known]:
        raise InvalidRequest(f"the taxonomy has no skill {wrong[0]!r}")
    return Label(
        row["dataset"], row["id"], row["best"], frozenset(acceptable), str(row.get("split") or ""), readings
    )


def _skills(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    skills = row.get(name) or []
    if not isinstance(skills, list) or not all(isinstance(skill, str) for skill in skills):
        raise InvalidRequest(f"{name} must be a list of ids of skills")
    return tuple(skills)


def labelled_items(labels: Sequence[Label], folder: Path) -> list[Item]:
    """Return the item of each label, from the datasets that are folders in `folder`."""
    items: dict[tuple[str, str], Item] = {}
    for dataset in dict.fromkeys(label.dataset for label in labels):
        items |= {(dataset, item.key): item for item in read_catalog(folder / dataset)}
    missing = [label for label in labels if (label.dataset, label.item_id) not in items]
    if missing:
        raise InvalidRequest(
            f"{len(missing)} labelled items are not in the datasets, such as {missing[0].item_id!r} of"
            f" {missing[0].dataset}",
            hint="label the items of the dataset that is there, or get the version that was labelled",
        )
    return [items[label.dataset, label.item_id] for label in labels]


def agreement_of(labels: Sequence[Label]) -> Agreement | None:
    """Return the agreement of the first two readings; None where no item was read twice."""
    pairs = [label.readings[:2] for label in labels if len(label.readings) > 1]
    if not pairs:
        return None
    share = sum(first == second for first, second in pairs) / len(pairs)
    first_counts, second_counts = (Counter(pair[place] for pair in pairs) for place in (0, 1))
    by_chance = sum(first_counts[skill] * second_counts[skill] for skill in first_counts) / len(pairs) ** 2
    kappa = 1.0 if by_chance == 1 else (share - by_chance) / (1 - by_chance)
    return Agreement(len(pairs), share, kappa)
