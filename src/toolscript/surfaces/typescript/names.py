"""Names that TypeScript accepts, and that no two things share."""

import unicodedata

# Letters of Unicode 3.2 within 16 bits: every compiler and engine knows them, whichever version it follows.
_LETTERS = unicodedata.ucd_3_2_0
MAX_LENGTH = 120


def pascal_case(text: str) -> str:
    """`desktop-commander` becomes `DesktopCommander`; empty when nothing in the text can be part of a name."""
    return "".join(_upper(word) for word in _words(text))[:MAX_LENGTH]


def camel_case(text: str) -> str:
    """`desktop-commander` becomes `desktopCommander`."""
    name = pascal_case(text)
    return _single(name[0].lower(), name[0]) + name[1:] if name else ""


def not_a_digit_first(name: str) -> str:
    return f"_{name}" if name[:1].isdigit() else name


def _words(text: str) -> list[str]:
    return "".join(one if _is_part(one) else " " for one in text).split()


def _is_part(character: str) -> bool:
    if character.isascii():
        return character.isalnum()
    return ord(character) < 0x10000 and _LETTERS.category(character).startswith("L")


def _upper(word: str) -> str:
    return _single(word[0].upper(), word[0]) + word[1:]


def _single(changed: str, original: str) -> str:
    """Some letters become two in the other case, or one that is no old letter; those stay as they are."""
    return changed if len(changed) == 1 and _is_part(changed) else original


class Names:
    """Gives each name once; who asks later for the same gets a number behind it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def unique(self, wanted: str, endings: tuple[str, ...] = ("",)) -> str:
        """The name under which nothing with any of the endings is taken yet."""
        name, number = wanted, self._numbers.get(wanted, 1)
        while any(name + ending in self._taken for ending in endings):
            number += 1
            name = f"{wanted}{number}"
        self._numbers[wanted] = number
        self._taken.update(name + ending for ending in endings)
        return name
