"""Small faults that one line of the source can be given: each is still valid Python, and means something else."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "toolscript"

# What one operator becomes.
COMPARED = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip
CALCULATED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
    ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"),
}  # fmt: skip
WORD = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True)
class Mutation:
    """One fault: in `file`, at `line`, the bytes from `start` to `end` become `text`."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    text: str

    def in_source(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def shown(self, source: bytes) -> str:
        before = source[self.start : self.end].decode()
        return f"{self.file}:{self.line} {self.kind}: {before!r} -> {self.text!r}"


def mutations_of(file: str, source: bytes, line: int) -> list[Mutation]:
    """Return the faults that `line` can be given, without those that are no valid Python."""
    places = Places(source)
    found = []
    for node in ast.walk(ast.parse(source)):
        if getattr(node, "lineno", 0) == line:
            for kind, start, end, text in _faults(node, places):
                mutation = Mutation(file, line, kind, start, end, text)
                if _is_valid(mutation.in_source(source)):
                    found.append(mutation)
    return found


class Places:
    """Where the nodes of a source are, in bytes."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def between(self, left: ast.expr, right: ast.expr, operator: str) -> Iterator[tuple[int, int]]:
        """Yield where an operator is between two operands, which may be in brackets."""
        start, end = self.end(left), self.start(right)
        pattern = r"\s+".join(map(re.escape, operator.split()))
        found = re.search(pattern.encode(), self.source[start:end])
        if found is not None:
            yield start + found.start(), start + found.end()


Fault = tuple[str, int, int, str]


def _faults(node: ast.AST, places: Places) -> Iterator[Fault]:
    if isinstance(node, ast.expr):
        yield from _of_expression(node, places)
    elif isinstance(node, ast.If | ast.While):
        yield _negated(node.test, places)
    elif isinstance(node, ast.Return) and not _is_none(node.value):
        yield "return None", places.start(node), places.end(node), "return None"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        # A docstring, or the three points of a protocol.
        return
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.Continue | ast.Break):
        yield "statement deleted", places.start(node), places.end(node), "pass"


def _of_expression(node: ast.expr, places: Places) -> Iterator[Fault]:
    if isinstance(node, ast.Compare):
        yield from _compared(node, places)
    elif isinstance(node, ast.BoolOp):
        name, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from (("and, or", *place, other) for place in places.between(left, right, name))
    elif isinstance(node, ast.BinOp) and type(node.op) in CALCULATED:
        name, other = CALCULATED[type(node.op)]
        yield from (("operator", *place, other) for place in places.between(node.left, node.right, name))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not dropped", places.start(node), places.start(node.operand), ""
    elif isinstance(node, ast.IfExp):
        yield _negated(node.test, places)
    elif isinstance(node, ast.Constant):
        yield from _constant(node, places)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _negated(test: ast.expr, places: Places) -> Fault:
    start, end = places.start(test), places.end(test)
    return "not added", start, end, f"not ({places.source[start:end].decode()})"


def _compared(node: ast.Compare, places: Places) -> Iterator[Fault]:
    for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
        between = places.source[places.end(left) : places.start(right)].decode()
        operator = " ".join(between.replace("(", " ").replace(")", " ").split())
        if operator in COMPARED:
            yield from (
                ("comparison", *place, COMPARED[operator]) for place in places.between(left, right, operator)
            )


def _constant(node: ast.Constant, places: Places) -> Iterator[Fault]:
    start, end, value = places.start(node), places.end(node), node.value
    if isinstance(value, bool):
        yield "constant", start, end, str(not value)
    elif isinstance(value, int | float):
        yield "constant", start, end, repr(value + 1)
    elif isinstance(value, str) and WORD.fullmatch(value) and places.source[start:end].decode()[1:-1] == value:
        # A name of a field or a key; sentences may change their words.
        yield "constant", start, end, repr(f"{value}x")


def _is_valid(source: bytes) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True
