"""The project's own files, for the tests that read them."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "toolscript"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def committed_files() -> list[Path]:
    """Return tracked files, and new files that are not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(ROOT / name for name in set(listed) if name and (ROOT / name).is_file())


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """Every module of the package with its syntax tree."""
    return [(name_of(path), ast.parse(path.read_text("utf-8"))) for path in sorted(PACKAGE.rglob("*.py"))]


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def own_lines(function: Function) -> int:
    """The lines of a function without those of the functions defined in it."""
    inner = [item for node in ast.iter_child_nodes(function) for item in _outermost(node)]
    return _lines(function) - sum(_lines(item) for item in inner)


def _outermost(node: ast.AST) -> Iterator[Function]:
    if isinstance(node, Function):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(child)


def _lines(function: Function) -> int:
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    return (function.end_lineno or first) - first + 1
