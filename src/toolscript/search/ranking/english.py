"""The table of how English asks for things."""

import tomllib
from importlib.resources import files

_TABLE = tomllib.loads((files(__package__) / "english.toml").read_text("utf-8"))


def _words(name: str) -> tuple[str, ...]:
    return tuple(str(_TABLE[name]).split())


VERBS = _words("verbs")
LEAD_IN = frozenset(_words("lead_in"))
PREPOSITIONS = frozenset(_words("prepositions"))
SAY_LITTLE = frozenset(_words("say_little"))
ACTIONS = {kind: frozenset(str(words).split()) for kind, words in _TABLE["actions"].items()}
PHRASES = {str(phrase): str(word) for phrase, word in _TABLE["phrases"].items()}
