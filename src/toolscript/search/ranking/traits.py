"""What a second look needs to know of a candidate: little enough to keep beside every vector."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from toolscript.model.index import Fields
from toolscript.model.item_text import unpack_stems
from toolscript.model.words import split_identifier
from toolscript.search.ranking.actions import actions_named

# The fields of a point they are read from.
TRAIT_FIELDS = ("server", "name", "stems")


@dataclass(frozen=True)
class Traits:
    """`name` is blank for a document: its title says nothing about what it does."""

    name: str
    stems: frozenset[int]

    @cached_property
    def trigrams(self) -> frozenset[str]:
        return trigrams(self.name)

    @cached_property
    def actions(self) -> frozenset[str]:
        return actions_named(split_identifier(self.name).casefold().split())


def traits_of_fields(fields: Fields) -> Traits:
    return Traits(str(fields["name"]) if fields.get("server") else "", unpack_stems(str(fields.get("stems", ""))))


def trigrams(text: str) -> frozenset[str]:
    letters = "".join(char for char in text.casefold() if char.isalnum())
    return frozenset(letters[at : at + 3] for at in range(len(letters) - 2)) or frozenset(filter(None, [letters]))


NOTHING_KNOWN = Traits("", frozenset())
TraitsById = Mapping[int, Traits]
