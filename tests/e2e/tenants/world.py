"""Tenants whose documents are as alike as they can be: the same ids, texts and metadata in all of them.

Each tenant has a secret word. It is in every sentence, in the metadata and in the tenant's name, and in those of
no other tenant: if it appears in a response to another tenant, data has leaked.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.support.token_issuer import Issuer

# Only letters, and no suffix that a stemmer would cut off: one term for every retriever.
MARKER = re.compile(r"zq[a-p]{14}q")

SUBJECTS = ("invoice", "contract", "turbine", "orchard", "harbour", "telescope", "ledger", "vaccine", "bridge")
VERBS = ("describes", "replaces", "requires", "delays", "explains", "measures", "repairs")
PLACES = ("Lisbon", "Osaka", "the northern depot", "the archive", "room seven", "Nairobi", "the old mill")
WORDS = (*SUBJECTS, "payment", "weather", "quality", "inspection", "delivery", "budget", "safety")
# Values that could be misparsed on the way to the engine.
HOSTILE_IDS = (
    'doc "quoted"',
    "a/b/../doc-1",
    '{"tenant": "*"}',
    "tenant:*",
    "doc-1' OR '1'='1",
    "документ 7",
    "%2e%2e%2fdoc-1",
)
# Ids that writers add and remove.
NEW_IDS = tuple(f"new-{number}" for number in range(5))
LONG_EVERY = 7
HOURS_VALID = 12

Json = dict[str, Any]


@dataclass(frozen=True)
class Member:
    """A tenant, with the knowledge of its clients."""

    number: int
    name: str
    marker: str
    token: str
    documents: int

    @property
    def own_id(self) -> str:
        """The only id that no other tenant has."""
        return f"only-{self.marker}"

    @cached_property
    def ids(self) -> list[str]:
        return [*(f"doc-{number}" for number in range(self.documents)), *HOSTILE_IDS, self.own_id]

    @cached_property
    def every_id(self) -> list[str]:
        """Ids that the tenant may have."""
        return [*self.ids, *NEW_IDS]

    def document(self, id_: str, version: int = 0) -> Json:
        """Return a document; only the secret word differs from that of another tenant."""
        number = self.every_id.index(id_)
        return {
            "id": id_,
            "text": self.text(number, version),
            "title": f"{SUBJECTS[number % len(SUBJECTS)].title()} of {PLACES[number % len(PLACES)]}",
            "metadata": self.metadata(number, version),
        }

    def text(self, number: int, version: int) -> str:
        sentences = 60 if number % LONG_EVERY == 0 else 3
        return " ".join(self._sentence(number * 5 + index, version) for index in range(sentences))

    def _sentence(self, at: int, version: int) -> str:
        subject, verb, place = (some[at % len(some)] for some in (SUBJECTS, VERBS, PLACES))
        about = WORDS[(at * 3 + version) % len(WORDS)]
        return f"The {subject} {verb} the {about} in {place}, {self.marker} says."

    def metadata(self, number: int, version: int) -> Json:
        return {
            "tenant": self.name,
            "owner": self.marker,
            "meta": {"tenant": self.name},
            "n": number,
            "version": version,
            "year": 2000 + number % 20,
            "price": number * 1.25,
            "public": number % 2 == 0,
            "tags": ["all", f"tag-{number % 5}"],
            "when": f"2026-01-{1 + number % 28:02}",
        }


def members(count: int, issuer: Issuer, seed: int) -> list[Member]:
    """Return tenants: most are small, every fiftieth has two hundred documents."""
    chance = random.Random(seed)
    kids = list(issuer.keys)
    made = []
    for number in range(count):
        marker = "zq" + "".join(chance.choices("abcdefghijklmnop", k=14)) + "q"
        name = f"org.{marker}"
        expires = issuer.claims()["iat"] + HOURS_VALID * 3600
        token = issuer.token(name, kid=kids[number % len(kids)], exp=expires)
        made.append(Member(number, name, marker, token, 200 if number % 50 == 7 else 3 + number % 9))
    return made


def foreign_words(member: Member, text: str, sent: Sequence[str] = ()) -> set[str]:
    """Return secret words in a text that are neither the tenant's own nor part of its request."""
    existing = {member.marker, *(word for part in sent for word in MARKER.findall(part))}
    return set(MARKER.findall(text)) - existing
