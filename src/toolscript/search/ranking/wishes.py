"""A request for several things, taken apart into its wishes by the words that join them."""

import re

from toolscript.model.words import STOP_WORDS
from toolscript.search.ranking.actions import kinds_of, words_in_order
from toolscript.search.ranking.english import LEAD_IN, PREPOSITIONS, SAY_LITTLE, VERBS

MOST_WISHES = 6
FEWEST_WORDS = 2

# Every repetition is bounded, or begins where it cannot begin once more: a hostile text takes linear time.
_LEADING = (
    r"(?:(?:please|also|finally|then|next|lastly|additionally|furthermore|moreover|afterwards?|could you|can you"
    r"|i(?:'d| would| also|'m| am|'ll| will)?(?: also)?(?: like| want| need| have| looking)?(?: to| for)?"
    r"|we(?:'d| need| want| would)?(?: like| also)?(?: to)?|to|help me|help us|be|let me|let us|let's)\s+){0,5}"
)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])\s*|\n+")
_JOINTS = re.compile(
    r"(?:(?<!\s)\s++)?(?:,\s*(?:and\s+then|and\s+also|and|then|plus|as well as|while|before|followed by)"
    r"|\band\s+then\b|\bthen\b|\band also\b|\bas well as\b|\bafter that\b|\bfollowed by\b|\band\b|\bbefore\b|,)\s+"
    rf"(?={_LEADING}(?:{'|'.join(VERBS)})(?:ing|s|ed)?\b)",
    re.IGNORECASE,
)
_LEFT_BEHIND = re.compile(
    r"(?<![\s,.;!?])[\s,.;!?]++"
    r"(?:then|finally|first|next|also|lastly|additionally|secondly|and|thank you|thanks)\s*$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]{2,}")


def wishes_in(text: str) -> list[str]:
    """The single wishes of a request that has several; none of a request that has one."""
    wishes: list[str] = []
    for piece in (part for sentence in _SENTENCES.split(text) for part in _JOINTS.split(sentence)):
        wish = _LEFT_BEHIND.sub("", piece).strip(" ,;")
        if _says_enough(wish):
            wishes.append(wish)
        elif wishes and wish:
            wishes[-1] += f" {wish}"
    return wishes[:MOST_WISHES] if len(wishes) > 1 else []


def subject_of(wish: str) -> list[str]:
    """What the wish is about: the words between its verb and the first preposition, `blobs` of
    `show me the blobs in the container`."""
    words = words_in_order(wish)
    start = next((at for at, word in enumerate(words) if not _leads_in(word)), len(words))
    subject: list[str] = []
    for word in words[start:]:
        if word in PREPOSITIONS and any(one not in SAY_LITTLE for one in subject):
            break
        if word not in PREPOSITIONS and word not in LEAD_IN:
            subject.append(word)
    return [word for word in subject if word not in SAY_LITTLE] or subject


def _leads_in(word: str) -> bool:
    return word in LEAD_IN or bool(kinds_of(word))


def _says_enough(wish: str) -> bool:
    said = [word for word in _WORD.findall(wish.casefold()) if word not in STOP_WORDS]
    return len(said) >= FEWEST_WORDS
