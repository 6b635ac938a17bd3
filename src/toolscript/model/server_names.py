"""Which names of servers mislead: those that look like another, and those that make another's tool name.

The gateway has ASCII names alone. Catalogs of many people have names in every language, so here only what could
pass for something else is refused.
"""

import unicodedata

# Their letters look like Latin ones. A name in one of them alone is a name like any other.
LOOK_ALIKE_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH LATIN", "MATHEMATICAL")
INVISIBLE = frozenset({"Cf", "Co", "Cs"})


def why_misleading(name: str) -> str:
    """Empty for a name that is fine."""
    if "__" in name or name.endswith("_"):
        return "must not have `__` in it or `_` at its end: a tool is called server__tool"
    hidden = [char for char in name if unicodedata.category(char) in INVISIBLE]
    if hidden:
        return f"has a character that nobody sees: U+{ord(hidden[0]):04X}"
    return mixed_scripts(name)


def mixed_scripts(name: str) -> str:
    """Which of its letters looks like a Latin one among Latin ones; empty: none does."""
    letters = [char for char in name if char.isalpha()]
    if not any(char.isascii() for char in letters):
        return ""
    for char in letters:
        if not char.isascii() and unicodedata.name(char, "").startswith(LOOK_ALIKE_SCRIPTS):
            described = unicodedata.name(char).lower()
            return f"mixes Latin letters with one that looks like them: {char!r}, {described} (U+{ord(char):04X})"
    return ""
