"""Texts of drafted queries: verbs, forms of a request, typos, requests that no tool can answer."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from random import Random

_TABLE: Mapping[str, str] = tomllib.loads((files(__package__) / "drafting.toml").read_text("utf-8"))
# By the first word of a description, verbs that can replace it.
VERBS: Mapping[str, tuple[str, ...]] = {
    verb.strip(): tuple(map(str.strip, synonyms.split(",")))
    for verb, _, synonyms in (entry.partition(":") for entry in _TABLE["verbs"].replace("\n", " ").split(";"))
    if verb.strip()
} | dict.fromkeys(_TABLE["alone"].split(), ())
REQUEST_FORMS, NOUN_REQUEST_FORMS, KEYBOARD, OFF_TOPIC = (
    tuple(_TABLE[name].splitlines()) for name in ("request_forms", "noun_request_forms", "keyboard", "off_topic")
)

MIN_WORDS, MAX_WORDS = 3, 20
MIN_LETTERS = 4
MIN_UNSPACED = 6

# A period ends a sentence only before a capital, unlike in "e.g. in a meeting".
_END = re.compile(r"[.!?](?=\s+[^\Wa-z]|\s*$)|[。！？]|\n\s*\n|\n\s*(?=[A-Z]\w*:)")
# A comma also separates lists: it ends a clause only before words that begin another.
_CLAUSE_END = re.compile(r"[;:(]|\s[-–—]\s|,\s(?=(?:\w+ing|with|to|which|such|as|by|so|if|for)\b)")
_WORD = re.compile(r"[^\W\d_]+")
_LONG_WORD = re.compile(rf"[^\W\d_]{{{MIN_LETTERS},}}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def first_sentence(description: str) -> str:
    """Return the first sentence of words rather than paths and code; empty if there is none."""
    for sentence in _END.split(description.replace("`", "")):
        words = sentence.split()
        if _is_prose(words):
            return " ".join(words[:MAX_WORDS])
    return ""


def _is_prose(words: list[str]) -> bool:
    if len(_UNSPACED.findall("".join(words))) >= MIN_UNSPACED:
        return True
    plain = [word for word in words if _WORD.fullmatch(word.strip(",;:()'\"-"))]
    return len(plain) >= MIN_WORDS and len(plain) * 2 > len(words)


def with_typo(text: str, chance: Random) -> str | None:
    """Return the text with one typo in one of its longer words; None if it has none."""
    words = [match for match in _LONG_WORD.finditer(text) if not _UNSPACED.search(match.group())]
    if not words:
        return None
    word = chance.choice(words)
    typos = [_dropped, _swapped, _doubled, _neighbour]
    chance.shuffle(typos)
    # Typos are rare in the first letter.
    position = chance.randrange(1, len(word.group()) - 1)
    for make_typo in typos:
        changed = make_typo(word.group(), position, chance)
        if changed != word.group():
            return text[: word.start()] + changed + text[word.end() :]
    return None


def _dropped(word: str, position: int, _: Random) -> str:
    return word[:position] + word[position + 1 :]


def _swapped(word: str, position: int, _: Random) -> str:
    return word[:position] + word[position + 1] + word[position] + word[position + 2 :]


def _doubled(word: str, position: int, _: Random) -> str:
    return word[: position + 1] + word[position:]


def _neighbour(word: str, position: int, chance: Random) -> str:
    """Replace a letter by that of a neighbouring key; return the same word if the letter is on no known key."""
    row = next((row for row in KEYBOARD if word[position] in row), "")
    place = row.find(word[position])
    beside = row[max(0, place - 1) : place] + row[place + 1 : place + 2]
    return word[:position] + chance.choice(beside) + word[position + 1 :] if beside else word


def phrase_request(sentence: str, chance: Random) -> str | None:
    """Return the sentence as a request; None if it is empty or not English."""
    if not sentence or not sentence.isascii():
        return None
    first, _, rest = _clause(sentence).partition(" ")
    verb = _infinitive(first)
    if verb is None:
        return chance.choice(NOUN_REQUEST_FORMS).format(f"{_lowered(first)} {rest}".strip())
    synonym = chance.choice([verb, *VERBS[verb]])
    return chance.choice(REQUEST_FORMS).format(f"{synonym} {rest}".strip())


def _clause(sentence: str) -> str:
    """Return the first clause, unless it is too short."""
    for match in _CLAUSE_END.finditer(sentence):
        if len(sentence[: match.start()].split()) >= MIN_WORDS:
            return sentence[: match.start()].strip()
    return sentence


def _infinitive(word: str) -> str | None:
    """Return the infinitive (`create` for `Creates`); None if it is no verb of the table."""
    low = word.casefold()
    forms = (low, low.removesuffix("s"), low.removesuffix("es"), low.removesuffix("ies") + "y")
    return next((form for form in forms if form in VERBS), None)


def _lowered(word: str) -> str:
    return word if word.isupper() else word[:1].lower() + word[1:]
