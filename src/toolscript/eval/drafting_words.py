"""Texts of drafted queries: verbs, forms of a request, typos, requests that no tool can answer."""

import re
from random import Random

# By the first word of a description, verbs that can replace it: "list open issues", "show open issues".
VERBS: dict[str, tuple[str, ...]] = {
    "add": ("put in", "attach"),
    "analyze": ("examine", "look into"),
    "append": ("add",),
    "apply": ("use",),
    "assign": ("hand over",),
    "book": ("reserve",),
    "build": ("make",),
    "calculate": ("work out",),
    "call": ("invoke",),
    "cancel": ("call off",),
    "change": ("modify", "alter"),
    "check": ("verify", "test"),
    "close": ("finish",),
    "combine": ("join",),
    "compare": ("contrast",),
    "compute": ("work out",),
    "convert": ("change",),
    "copy": ("duplicate",),
    "create": ("make", "set up"),
    "define": ("set up",),
    "delete": ("remove", "get rid of"),
    "describe": ("explain",),
    "disable": ("switch off",),
    "download": ("save", "get hold of"),
    "edit": ("change",),
    "enable": ("switch on",),
    "evaluate": ("work out",),
    "execute": ("run",),
    "explain": ("describe",),
    "export": ("save",),
    "extract": ("pull out",),
    "fetch": ("get", "load"),
    "find": ("locate", "look up"),
    "generate": ("make", "produce"),
    "get": ("fetch", "look up"),
    "import": ("bring in",),
    "insert": ("put in",),
    "install": ("set up",),
    "list": ("show", "see"),
    "load": ("read in",),
    "make": ("create",),
    "merge": ("combine",),
    "modify": ("change",),
    "move": ("shift",),
    "open": ("bring up",),
    "post": ("publish",),
    "provide": ("get",),
    "publish": ("put out",),
    "query": ("look into",),
    "read": ("view", "open"),
    "remove": ("delete", "take away"),
    "rename": ("give another name to",),
    "replace": ("exchange",),
    "reserve": ("book",),
    "restart": ("start again",),
    "retrieve": ("get", "fetch"),
    "return": ("get", "show"),
    "run": ("execute", "start"),
    "save": ("store",),
    "schedule": ("plan",),
    "search": ("look through",),
    "send": ("dispatch",),
    "set": ("adjust",),
    "share": ("give others access to",),
    "show": ("display", "see"),
    "split": ("divide",),
    "start": ("begin",),
    "stop": ("end", "halt"),
    "store": ("keep", "save"),
    "summarize": ("sum up",),
    "take": (),
    "tell": ("say",),
    "translate": (),
    "trigger": ("set off",),
    "turn": ("change",),
    "update": ("change", "modify"),
    "upload": ("put online",),
    "validate": ("check",),
    "verify": ("check",),
    "view": ("look at",),
    "write": ("save",),
}
# Verbs without a synonym that fits every sentence.
VERBS |= dict.fromkeys(
    (
        "answer",
        "approve",
        "archive",
        "ask",
        "browse",
        "buy",
        "capture",
        "click",
        "compress",
        "connect",
        "crop",
        "cut",
        "decode",
        "deploy",
        "draw",
        "encode",
        "fill",
        "filter",
        "format",
        "give",
        "grant",
        "identify",
        "invite",
        "join",
        "lock",
        "look",
        "mark",
        "monitor",
        "navigate",
        "notify",
        "parse",
        "pause",
        "perform",
        "pin",
        "plan",
        "plot",
        "print",
        "protect",
        "pull",
        "push",
        "put",
        "record",
        "reply",
        "report",
        "request",
        "resize",
        "resolve",
        "restore",
        "resume",
        "review",
        "roll",
        "rotate",
        "scale",
        "scan",
        "select",
        "sign",
        "sort",
        "submit",
        "subscribe",
        "sync",
        "tag",
        "test",
        "track",
        "transform",
        "trim",
        "type",
        "undo",
        "unlock",
        "watch",
    ),
    (),
)

REQUEST_FORMS = (
    "can you {}?",
    "could you {} for me",
    "I need to {}",
    "how do I {}?",
    "I would like to {}",
    "is there a way to {}?",
    "what is the best way to {}?",
    "help me {}",
)
# For a description that does not begin with a verb of the table.
NOUN_REQUEST_FORMS = (
    "I need something for this: {}",
    "is there anything for this: {}?",
    "what do I use here: {}",
)

KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")

# A request is drafted only for a catalog in which hardly any of its words occurs.
OFF_TOPIC = (
    "order a large pizza with mushrooms",
    "call a taxi to the airport",
    "send a fax to the notary",
    "wire the rent to my landlord",
    "sell my Tesla shares",
    "reserve a table at the sushi restaurant",
    "play some jazz in the living room",
    "unlock the car from my phone",
    "vacuum the hallway",
    "dim the bedroom lamp",
    "renew my driving licence",
    "file my income tax return",
    "rent a van for the weekend",
    "print a spare gear on the 3D printer",
    "record a podcast episode with two guests",
    "compose a lullaby for piano",
    "book a dentist for a root canal",
    "refill my asthma prescription",
    "count the steps I walked today",
    "measure my blood pressure",
    "find me a flatmate near the campus",
    "track the parcel from my aunt",
    "dictate a letter to my lawyer",
    "book tickets for the opera",
    "buy a bouquet for our anniversary",
    "solve this sudoku",
    "identify the bird that sings in this recording",
    "sequence a DNA sample",
    "simulate the orbit of a comet",
    "fly the drone over the stadium",
    "scan my passport at the border",
    "hire a plumber for the leaking tap",
    "choose a wine that goes with grilled salmon",
    "predict my horoscope for a Leo",
    "choreograph a tango for beginners",
    "water the tomatoes in the greenhouse",
    "feed the goldfish while we travel",
    "walk the dog at noon",
    "mow the lawn on Saturday",
    "charge the scooter overnight",
    "bake a sourdough loaf with walnuts",
    "brew an espresso with oat milk",
    "cook lentil soup for nine hikers",
    "knit a woollen jumper for a toddler",
    "tune the guitar before the concert",
    "prune the apple trees in the orchard",
    "iron twelve shirts for the wedding",
    "teach my parrot to whistle",
    "repair the puncture of my bicycle",
    "adopt a kitten from the shelter",
    "diagnose the rash on my elbow",
    "buy a lottery ticket",
    "referee the hockey final",
    "carve a pumpkin for Halloween",
    "sew a button onto my coat",
    "shovel the snow off the driveway",
    "vaccinate the calves",
    "hire a clown for a birthday party",
    "dye my hair copper red",
    "navigate the sailboat through the strait",
    "polish the silver cutlery",
    "wrap the presents with a ribbon",
    "sweep the chimney before Christmas",
    "vote in the mayoral election",
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
