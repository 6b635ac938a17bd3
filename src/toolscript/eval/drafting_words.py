"""Changes of wording for drafts: a description's first sentence, slips of the keyboard, other forms of a wish."""

import re
from random import Random

from toolscript.evaluation.drafting_words import KEYBOARD, LONGINGS, VERBS, WISHES

FEWEST_WORDS, MOST_WORDS = 3, 20
FEWEST_LETTERS = 4
FEWEST_UNSPACED = 6

# A point ends a sentence only before a capital: "e.g. in a meeting" goes on.
_END = re.compile(r"[.!?](?=\s+[^\Wa-z]|\s*$)|[。！？]|\n\s*\n|\n\s*(?=[A-Z]\w*:)")
# A comma also parts what is listed: it ends a clause only before words that begin another.
_CLAUSE_END = re.compile(r"[;:(]|\s[-–—]\s|,\s(?=(?:\w+ing|with|to|which|such|as|by|so|if|for)\b)")
_WORD = re.compile(r"[^\W\d_]+")
_LONG_WORD = re.compile(rf"[^\W\d_]{{{FEWEST_LETTERS},}}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def first_sentence(description: str) -> str:
    """The first sentence made of words rather than of paths and code; empty when there is none."""
    for sentence in _END.split(description.replace("`", "")):
        words = sentence.split()
        if _is_prose(words):
            return " ".join(words[:MOST_WORDS])
    return ""


def _is_prose(words: list[str]) -> bool:
    if len(_UNSPACED.findall("".join(words))) >= FEWEST_UNSPACED:
        return True
    plain = [word for word in words if _WORD.fullmatch(word.strip(",;:()'\"-"))]
    return len(plain) >= FEWEST_WORDS and len(plain) * 2 > len(words)


def with_slip(text: str, chance: Random) -> str | None:
    """The text with one slip in one of its longer words; None when it has none."""
    words = [match for match in _LONG_WORD.finditer(text) if not _UNSPACED.search(match.group())]
    if not words:
        return None
    word = chance.choice(words)
    slips = [_dropped, _swapped, _doubled, _neighbour]
    chance.shuffle(slips)
    # Fingers seldom miss the first letter.
    at = chance.randrange(1, len(word.group()) - 1)
    for slip in slips:
        changed = slip(word.group(), at, chance)
        if changed != word.group():
            return text[: word.start()] + changed + text[word.end() :]
    return None


def _dropped(word: str, at: int, _: Random) -> str:
    return word[:at] + word[at + 1 :]


def _swapped(word: str, at: int, _: Random) -> str:
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _doubled(word: str, at: int, _: Random) -> str:
    return word[: at + 1] + word[at:]


def _neighbour(word: str, at: int, chance: Random) -> str:
    """The key beside the right one; the same word when the letter is on no key we know."""
    row = next((row for row in KEYBOARD if word[at] in row), "")
    place = row.find(word[at])
    beside = row[max(0, place - 1) : place] + row[place + 1 : place + 2]
    return word[:at] + chance.choice(beside) + word[at + 1 :] if beside else word


def wish(sentence: str, chance: Random) -> str | None:
    """What a sentence says a tool does, as somebody would ask for it; None when it is empty or not in English."""
    if not sentence or not sentence.isascii():
        return None
    first, _, rest = _clause(sentence).partition(" ")
    verb = _infinitive(first)
    if verb is None:
        return chance.choice(LONGINGS).format(f"{_lowered(first)} {rest}".strip())
    said = chance.choice([verb, *VERBS[verb]])
    return chance.choice(WISHES).format(f"{said} {rest}".strip())


def _clause(sentence: str) -> str:
    """The first clause, unless that leaves too little to go by."""
    for match in _CLAUSE_END.finditer(sentence):
        if len(sentence[: match.start()].split()) >= FEWEST_WORDS:
            return sentence[: match.start()].strip()
    return sentence


def _infinitive(word: str) -> str | None:
    """`Creates` and `Create` are `create`; None for what is no verb of the table."""
    low = word.casefold()
    forms = (low, low.removesuffix("s"), low.removesuffix("es"), low.removesuffix("ies") + "y")
    return next((form for form in forms if form in VERBS), None)


def _lowered(word: str) -> str:
    return word if word.isupper() else word[:1].lower() + word[1:]
