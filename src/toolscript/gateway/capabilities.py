"""General tools do more than their descriptions say: a shell commits to git. A small table knows which."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from toolscript.core.errors import ConfigInvalid
from toolscript.core.retrieval.terms import terms_of_word, words_of
from toolscript.gateway.index import name_parts

# A shell can do nearly everything, so it never beats a tool that says it does just what is asked.
SURE, LIKELY = 0.62, 0.5
MIN_SHARE = 0.5
# Words in a tool's name that do not make it another tool.
SAY_LITTLE = frozenset(
    {
        "a",
        "in",
        "the",
        "run",
        "execute",
        "exec",
        "command",
        "commands",
        "tool",
        "start",
        "process",
        "script",
        "local",
    }
)


@dataclass(frozen=True)
class Capability:
    says: str
    surely: frozenset[int]
    perhaps: frozenset[int]

    def strength(self, stems: frozenset[int]) -> float:
        """How sure it is that a query with these stems asks for it: it has to be most of what is said."""
        sure, likely = len(stems & self.surely), len(stems & self.perhaps)
        if sure + likely < MIN_SHARE * len(stems):
            return 0.0
        if sure and likely:
            return SURE
        return LIKELY if sure or likely > 1 else 0.0


@dataclass(frozen=True)
class General:
    """A kind of general tool: what its names and its servers' look like, and what it can do."""

    kind: str
    names: tuple[frozenset[str], ...]
    servers: tuple[frozenset[str], ...]
    does: tuple[str, ...]

    def includes(self, name: frozenset[str], server: frozenset[str]) -> bool:
        """`run_shell_command` is a shell; `shell_history` is not, whatever it is."""
        named = any(words <= name and name - words <= SAY_LITTLE for words in self.names)
        return named or any(words <= server for words in self.servers)


@dataclass(frozen=True)
class Inferred:
    """A general tool that can do what was asked."""

    confidence: float
    kind: str
    capability: str


@dataclass(frozen=True)
class Capabilities:
    general: tuple[General, ...]
    known: Mapping[str, Capability]

    def asked_by(self, words: Sequence[str]) -> list[tuple[General, Inferred]]:
        """The kinds of general tools that can do what these words ask for, with the best reason of each."""
        stems = frozenset(terms_of_word(word)[0] for word in words)
        strengths = {name: one.strength(stems) for name, one in self.known.items()}
        return [(one, best) for one in self.general if (best := self._best(one, strengths))]

    def _best(self, general: General, strengths: Mapping[str, float]) -> Inferred | None:
        best = max(general.does, key=lambda name: strengths[name], default="")
        if not best or not strengths[best]:
            return None
        return Inferred(strengths[best], general.kind, self.known[best].says)


@cache
def default_capabilities() -> Capabilities:
    return capabilities_of((files(__package__) / "capabilities.toml").read_text("utf-8"))


def capabilities_of(text: str) -> Capabilities:
    """The table as a person may have written it."""
    try:
        table = tomllib.loads(text)
        known = {name: _capability(one) for name, one in table["capability"].items()}
        general = tuple(_generals(table["general"]))
        missing = sorted({name for one in general for name in one.does} - set(known))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigInvalid(f"the table of capabilities cannot be read: {error}") from error
    if missing:
        raise ConfigInvalid(f"the table of capabilities has no [capability.{missing[0]}]")
    return Capabilities(general, known)


def _generals(table: Mapping[str, Mapping[str, object]]) -> Iterator[General]:
    for kind, one in table.items():
        names, servers = _word_sets(kind, one["names"]), _word_sets(kind, one.get("servers", []))
        yield General(kind, names, servers, tuple(_list(one["does"])))


def _word_sets(kind: str, names: object) -> tuple[frozenset[str], ...]:
    sets = tuple(name_parts(name) for name in _list(names))
    if not all(sets):
        # Every tool has all of no words.
        raise ValueError(f"a name of [general.{kind}] has no word in it")
    return sets


def _capability(data: Mapping[str, object]) -> Capability:
    return Capability(str(data["says"]), _stems(data["surely"]), _stems(data["perhaps"]))


def _stems(words: object) -> frozenset[int]:
    return frozenset(terms_of_word(part)[0] for word in _list(words) for part in words_of(word))


def _list(words: object) -> list[str]:
    if not isinstance(words, list):
        raise TypeError(f"{words!r} must be a list")
    return [str(word) for word in words]
