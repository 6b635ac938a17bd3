"""What of an item's text describes it. Text that talks to the classifier instead is left out.

Nothing that is left out can be told from an honest description with certainty, and need not be: what is wrongly
left out costs a sentence, and name, server and the other sentences are still there.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolscript.model.item_text import MAX_PARAMETERS
from toolscript.model.items import Item, JsonObject
from toolscript.model.text import readable
from toolscript.model.words import split_identifier, terms_of_word, without_stop_words, words_of
from toolscript.sync.classify.skill_names import SkillNames
from toolscript.sync.classify.steering_signs import FEWEST_WORDS, is_list, is_odd, speaks_of_sorting, steers
from toolscript.sync.classify.text_pieces import pieces_of, runs_of

MAX_READ = 6_000
MAX_DESCRIBED, MAX_NAME = 1_000, 200
# Nobody says a sentence so often to describe something.
TOO_OFTEN = 3

NO_NAMES = SkillNames()

# Letters nobody sees. What is written with the second kind is meant for a machine alone.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe00-\ufe0f]")
_SECRET = re.compile("[\U000e0000-\U000e007f]+")


def described(item: Item, skills: SkillNames = NO_NAMES) -> tuple[Item, bool]:
    """The item with what describes it, cut to what a classifier needs, and whether anything had to be left out."""
    own = _Own.of(item, skills)
    description, one = _cleaned(item.description, own)
    server_description, two = _cleaned(item.server_description, own)
    name, three = _cleaned_name(item.name)
    server, four = _cleaned_name(item.server)
    schema, five = _cleaned_schema(item.input_schema)
    read = replace(
        item,
        name=name,
        server=server,
        description=description[:MAX_DESCRIBED],
        server_description=server_description[:MAX_DESCRIBED],
        input_schema=schema,
    )
    return read, one or two or three or four or five


@dataclass(frozen=True)
class _Own:
    """What an item is called by, its parameters among it: what describes it speaks of that."""

    stems: frozenset[int]
    words: frozenset[str]
    skills: SkillNames

    @staticmethod
    def of(item: Item, skills: SkillNames) -> "_Own":
        called = " ".join([item.name, item.server, *_parameters(item.input_schema)])
        return _Own(_stems(called), frozenset(words_of(called)), skills)

    def is_in(self, text: str) -> bool:
        return not self.stems.isdisjoint(_stems(text))

    def names_a_skill(self, text: str) -> bool:
        if self.skills.are_in(text, self.words):
            return True
        return self.skills.may_be_in(text) and speaks_of_sorting(text)


def _cleaned(text: str, own: _Own) -> tuple[str, bool]:
    text = readable(text[:MAX_READ])
    seen = _SECRET.sub("", _INVISIBLE.sub("", text))
    spans = pieces_of(seen)
    pieces = [seen[start:end] for start, end in spans]
    steering = _steering(seen, pieces, own)
    left_out = [one or other for one, other in zip(steering, _empty_words(pieces), strict=True)]
    if not any(left_out):
        return (seen, True) if _SECRET.search(text) else (text, False)
    if any(steering):
        left_out = [
            out or (is_odd(piece) and not own.is_in(piece)) for out, piece in zip(left_out, pieces, strict=True)
        ]
    runs = [seen[start:end].strip() for start, end in runs_of(spans, left_out)]
    return "\n".join(_of_the_item(runs, own) if any(steering) else runs), True


def _steering(text: str, pieces: Sequence[str], own: _Own) -> list[bool]:
    names_skills = own.names_a_skill(text)
    return [steers(piece) or (names_skills and own.names_a_skill(piece)) for piece in pieces]


def _empty_words(pieces: Sequence[str]) -> list[bool]:
    """Lists and repetitions: no cause for suspicion, and no description."""
    times = Counter(pieces)
    return [is_list(piece) or (times[piece] >= TOO_OFTEN and len(piece.split()) > 1) for piece in pieces]


def _of_the_item(runs: Sequence[str], own: _Own) -> list[str]:
    """What stands beside steering and shares no word with the item's name and parameters may be part of it."""
    about = [run for run in runs if own.is_in(run)]
    long_enough = [run for run in runs if len(words_of(run)) >= FEWEST_WORDS]
    return about or long_enough[:1]


def _cleaned_name(name: str) -> tuple[str, bool]:
    return ("", True) if _is_steering_name(name) else (name[:MAX_NAME], False)


def _is_steering_name(name: str) -> bool:
    """A name of a word or two orders nothing."""
    spoken = split_identifier(name[:MAX_READ])
    return len(spoken.split()) >= FEWEST_WORDS and (steers(spoken) or is_list(spoken))


def _cleaned_schema(schema: JsonObject | None) -> tuple[JsonObject | None, bool]:
    hostile = {name for name in _parameters(schema) if _is_steering_name(name)}
    properties = (schema or {}).get("properties")
    if not hostile or not isinstance(properties, Mapping):
        return schema, False
    kept = {name: value for name, value in properties.items() if name not in hostile}
    return {**(schema or {}), "properties": kept}, True


def _parameters(schema: JsonObject | None) -> list[str]:
    """As many as an item is known by."""
    properties = (schema or {}).get("properties")
    return [str(name) for name in list(properties)[:MAX_PARAMETERS]] if isinstance(properties, Mapping) else []


def _stems(text: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in without_stop_words(words_of(text)))
