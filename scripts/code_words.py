"""Counts words of a private language: in docstrings and comments, and among the names of variables."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator

# Everyday words where search, MCP or databases have a term, and relative clauses without an actor.
DIALECT = re.compile(
    r"\b(?:whoever|whom|nobody|tells?|told|hears?|heard|asks?|asked|says?|said|wish(?:es)?|arms?|first look"
    r"|second look|once more|remember(?:s|ed)?|forgotten|forgets?|rarity|visitors?|strangers?|entrance|passages?"
    r"|pieces?|judged|made texts?|generations?|cards?|figures?|seeing|desks?|shelf|shelves|kin|crowds?|lies?"
    r"|stands?|stood|goes on|go on|gone on|for ever|recipes?|traits?|absences?|begun)\b"
    r"|\A(?:What|Whatever|Who|Whom|Whose|Whether)\b",
    re.IGNORECASE,
)
PRONOUNS = {"asked", "at", "found", "given", "it", "known", "one", "others", "said", "shown", "told", "wanted"}

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def words_of(texts: list[str], trees: list[ast.Module]) -> dict[str, str]:
    prose = [part for text, tree in zip(texts, trees, strict=True) for part in _prose(text, tree)]
    words = sum(len(re.findall(r"[A-Za-z']+", part)) for part in prose)
    dialect = Counter(match.group().lower() for part in prose for match in DIALECT.finditer(part))
    names = [name for tree in trees for name in _names(tree)]
    pronouns = Counter(name for name in names if name in PRONOUNS)
    return {
        "words of docstrings and comments": f"{words:,}",
        "dialect, per 1,000 of them": f"{1000 * dialect.total() / words:.1f}{_most(dialect)}",
        "names that variables get": f"{len(names):,}",
        "pronouns among them": f"{pronouns.total() / len(names):.1%}{_most(pronouns)}",
    }


def _most(counts: Counter[str]) -> str:
    return "".join(f", {word} {count}" for word, count in counts.most_common(5))


def _prose(text: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, Documented) and (docstring := ast.get_docstring(node)):
            yield docstring
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
