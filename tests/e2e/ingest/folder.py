"""A folder of synthetic files that keep changing."""

import random
from pathlib import Path

_WORDS = (
    "hive queen honey steel bridge water rust paint spring autumn sugar ledger tax audit river stone engine valve "
    "pressure oxygen mountain weather storm harbour cargo anchor sail compass forest timber saw nail hammer roof"
)
WORDS = _WORDS.split()


class Folder:
    """Its changes depend on the seed only."""

    def __init__(self, path: Path, files: int, seed: int) -> None:
        self.path = path
        self._chance = random.Random(seed)
        self._made = 0
        self._old: dict[Path, list[str]] = {}
        for _ in range(files):
            self._add()

    def count(self) -> int:
        return sum(path.is_file() for path in self.path.rglob("*"))

    def disturb(self, times: int) -> None:
        """Change, add, remove, restore and rename files."""
        for _ in range(times):
            act = self._chance.choice([self._change, self._change, self._change, self._bring_back, self._rename])
            act() if self._chance.random() > 0.3 else self._chance.choice([self._add, self._remove])()

    def _add(self) -> None:
        ending = self._chance.choice([".md", ".md", ".txt", ".html"])
        path = self.path / f"part{self._made % 7}" / f"file{self._made:05}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._made += 1
        self._write(path, self._text())

    def _change(self) -> None:
        """Replace and remove some paragraphs; the others move."""
        path = self._one()
        parts = path.read_text("utf-8").split("\n\n")
        index = self._chance.randrange(len(parts))
        parts[index : index + self._chance.randrange(3)] = [
            self._paragraph() for _ in range(self._chance.randrange(3))
        ]
        self._write(path, "\n\n".join(parts) if any(map(str.strip, parts)) else self._text())

    def _bring_back(self) -> None:
        path = self._chance.choice(sorted(self._old))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write(path, self._chance.choice(self._old[path]))

    def _rename(self) -> None:
        path = self._one()
        path.rename(path.with_name(f"moved{self._made:05}{path.suffix}"))
        self._made += 1

    def _remove(self) -> None:
        self._one().unlink()

    def _one(self) -> Path:
        return self._chance.choice(sorted(path for path in self.path.rglob("*") if path.is_file()))

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, "utf-8")
        self._old[path] = [*self._old.get(path, [])[-3:], text]

    def _text(self) -> str:
        sections = self._chance.randrange(1, 12)
        title = " ".join(self._chance.sample(WORDS, 3))
        return "\n\n".join([f"# {title}", *(self._paragraph() for _ in range(sections))])

    def _paragraph(self) -> str:
        """Return a paragraph; some occur twice in a file."""
        if self._chance.random() < 0.1:
            return "The same words, again and again, that many of these files have somewhere in them."
        body = " ".join(self._chance.choice(WORDS) for _ in range(self._chance.randrange(8, 120)))
        return f"## {self._chance.choice(WORDS)}\n\n{body}."
