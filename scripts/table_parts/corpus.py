"""The texts that the built-in table is fitted to: WordNet, and the reference of two public API families.

All three have a clear licence, and none is part of an evaluation set. Every choice is by hash: the same packages
give the same texts in the same order.
"""

import gzip
import hashlib
import html
import json
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_TEXT = 400
MAX_WORDS_OF_REQUEST = 24

# How many texts of each kind: what a catalog says, what a person asks, and what words mean.
SHARES = {
    "definition": 26_000,
    "headed": 8_000,
    "example": 9_000,
    "lemmas": 4_000,
    "operation": 12_000,
    "operation_name": 3_000,
    "operation_request": 8_000,
    "made_request": 6_000,
}

# Left out: as plain words, they equal the description of a tool in an evaluation set or among its distractors.
TOOL_DESCRIPTIONS = frozenset({
    "create a new channel", "delete an attachment", "list pull requests in a repository", "not necessary",
})  # fmt: skip

# How people begin and end a request. The table must learn that these words say nothing about the tool.
OPENINGS = (
    "{}", "Please {}", "Can you {}?", "Could you {} for me?", "I want to {}", "I need to {}", "I'd like to {}",
    "How do I {}?", "Help me {}", "Is there a way to {}?", "What tool can {}?", "{} now", "Let's {}",
    "I am trying to {}, what should I use?", "My team has to {} today", "Would you be able to {}?",
)  # fmt: skip
ABOUT = (
    "Show me the {}", "What is the {}?", "List all {}", "Tell me about the {}", "Where can I find {}?",
    "I'm looking for {}", "Give me information on {}", "Which {} should I use?", "Get the details of the {}",
    "Do you have any {} recommendations?", "Find the best {} near me", "How many {} are there?",
    "What's the latest on {}?", "Check the {} for me",
)  # fmt: skip


@dataclass(frozen=True)
class Sources:
    """The three packages, as files: an npm archive and two wheels."""

    wordnet: Path
    botocore: Path
    google: Path

    def digests(self) -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files}

    @property
    def files(self) -> tuple[Path, Path, Path]:
        return self.wordnet, self.botocore, self.google


@dataclass(frozen=True)
class Synset:
    lemmas: tuple[str, ...]
    definition: str
    examples: tuple[str, ...]
    part: str


@dataclass(frozen=True)
class Operation:
    name: str
    sentences: tuple[str, ...]


def texts_of(sources: Sources) -> list[str]:
    """Return all texts, each once, in the order of their hashes: any part of the list is a fair sample."""
    synsets = list(_synsets(sources.wordnet))
    verbs = frozenset(lemma for synset in synsets if synset.part == "verb" for lemma in synset.lemmas)
    operations = [*_botocore(sources.botocore), *_google(sources.google)]
    kinds = {**_of_synsets(synsets), **_of_operations(operations, verbs)}
    chosen = {text for kind, count in SHARES.items() for text in _sample(kinds[kind], count)}
    return sorted((text for text in chosen if _plain(text) not in TOOL_DESCRIPTIONS), key=_hash)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _sample(texts: Iterable[str], count: int) -> list[str]:
    distinct = {" ".join(text.split())[:MAX_TEXT].strip() for text in texts}
    return sorted((text for text in distinct if len(text) > 2), key=_hash)[:count]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _number(text: str, salt: str) -> int:
    return int.from_bytes(_hash(salt + text)[:8], "big")


def _of_synsets(synsets: list[Synset]) -> dict[str, list[str]]:
    verbs = [synset for synset in synsets if synset.part == "verb"]
    # Without names of species, places and people, which fill a third of WordNet.
    everyday = [synset for synset in synsets if _is_plain(synset.lemmas[0])]
    nouns = sorted(
        {lemma for synset in synsets if synset.part == "noun" for lemma in synset.lemmas if _is_plain(lemma)}
    )
    return {
        "definition": [synset.definition for synset in everyday],
        "headed": [f"{', '.join(synset.lemmas[:3])}: {synset.definition}" for synset in synsets],
        "example": [example for synset in synsets for example in synset.examples],
        "lemmas": [" ".join(synset.lemmas[:3]) for synset in everyday],
        "made_request": [*_made_of_verbs(verbs), *_made_of_nouns(nouns)],
    }


def _made_of_verbs(verbs: list[Synset]) -> Iterator[str]:
    """A verb's definition is an imperative already: "make or cause to be or to become"."""
    for synset in verbs:
        wish = synset.definition.partition(";")[0].partition("(")[0].strip() or synset.lemmas[0]
        yield OPENINGS[_number(wish, "opening") % len(OPENINGS)].format(wish)


def _made_of_nouns(nouns: list[str]) -> Iterator[str]:
    for noun in nouns:
        yield ABOUT[_number(noun, "about") % len(ABOUT)].format(noun)


def _is_plain(lemma: str) -> bool:
    return lemma.islower() and lemma.replace(" ", "").isalpha()


def _synsets(archive: Path) -> Iterator[Synset]:
    with tarfile.open(archive) as files:
        for part in ("adj", "adv", "noun", "verb"):
            file = files.extractfile(f"package/dict/data.{part}")
            assert file is not None
            for line in file.read().decode("utf-8", "replace").splitlines():
                if line[:1].isdigit():
                    yield _synset(line, part)


def _synset(line: str, part: str) -> Synset:
    """Parse a line of WordNet's data file: offset, file, kind, the number of words in base 16, the words, ..."""
    data, _, gloss = line.partition(" | ")
    columns = data.split()
    words = columns[4 : 4 + 2 * int(columns[3], 16) : 2]
    lemmas = tuple(word.partition("(")[0].replace("_", " ") for word in words)
    examples = tuple(re.findall(r'"([^"]{8,})"', gloss))
    return Synset(lemmas, gloss.partition('; "')[0].strip(' ;"'), examples, part)


def _of_operations(operations: list[Operation], verbs: frozenset[str]) -> dict[str, list[str]]:
    described = [operation for operation in operations if operation.sentences]
    return {
        "operation": [f"{operation.name}. {' '.join(operation.sentences[:2])}" for operation in described],
        "operation_name": [operation.name for operation in operations],
        "operation_request": [
            OPENINGS[_number(wish, "wish") % len(OPENINGS)].format(wish)
            for operation in described
            if (wish := _wish(operation.sentences[0], verbs))
        ],
    }


def _wish(sentence: str, verbs: frozenset[str]) -> str:
    """Turn "Creates a bucket." into "create a bucket"; empty if the sentence does not begin with a verb."""
    first, _, rest = sentence.rstrip(".").partition(" ")
    word = first.lower()
    stems = (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y")
    verb = next((stem for stem in stems if stem in verbs), "")
    return " ".join([verb, *rest.split()[:MAX_WORDS_OF_REQUEST]]) if verb and rest else ""


def _botocore(wheel: Path) -> Iterator[Operation]:
    """Read each operation of each service, of its newest version."""
    with zipfile.ZipFile(wheel) as files:
        newest = {
            name.split("/")[2]: name for name in sorted(files.namelist()) if name.endswith("service-2.json.gz")
        }
        for service, name in sorted(newest.items()):
            model = json.loads(gzip.decompress(files.read(name)))
            for operation, data in sorted(model["operations"].items()):
                yield _operation(f"{operation} {service}", str(data.get("documentation", "")))


def _google(wheel: Path) -> Iterator[Operation]:
    with zipfile.ZipFile(wheel) as files:
        for name in sorted(files.namelist()):
            if (
                "/discovery_cache/documents/" in name
                and name.endswith(".json")
                and not name.endswith("index.json")
            ):
                yield from _methods(json.loads(files.read(name)))


def _methods(resource: Mapping[str, object]) -> Iterator[Operation]:
    methods, resources = resource.get("methods"), resource.get("resources")
    for _, method in sorted(methods.items()) if isinstance(methods, dict) else ():
        yield _operation(str(method.get("id", "")), str(method.get("description", "")))
    for _, inner in sorted(resources.items()) if isinstance(resources, dict) else ():
        yield from _methods(inner)


def _operation(name: str, documentation: str) -> Operation:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[._-]+", " ", name)
    plain = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", documentation)).split())
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", plain)
    return Operation(" ".join(spaced.lower().split()), tuple(sentence for sentence in sentences if sentence))
