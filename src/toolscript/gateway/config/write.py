"""New members for an object in a JSON file. All else stays as it was written, comments and order too."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from toolscript.adapters.config_files.jsonc import is_strict, parse, without_comments
from toolscript.errors import ConfigInvalid

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]:,]', re.DOTALL)
_COLON = re.compile(r"\s*:")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def with_members(text: str, section: str, members: Mapping[str, object], path: Path) -> str:
    """The text with the members at the end of the section, which is made when there is none."""
    text = text if text.strip() else "{}\n"
    before = parse(text, path).value
    if not isinstance(before, dict) or not isinstance(before.get(section, {}), dict):
        raise ConfigInvalid(f"{section} in {path} is not an object", hint=f'write "{section}": {{}} there')
    plain = without_comments(text)
    root = plain.index("{")
    _, values = _scan(plain, root)
    if section in before:
        after = _inserted(text, plain, values[section], members, depth=2)
    else:
        after = _inserted(text, plain, root, {section: members}, depth=1)
    return _checked(text, after, before | {section: {**before.get(section, {}), **members}}, path)


def _checked(text: str, after: str, expected: object, path: Path) -> str:
    """Editing text is trusted only as far as reading it again shows."""
    if parse(after, path).value != expected or (is_strict(text) and not is_strict(after)):
        raise ConfigInvalid(f"cannot add to {path} without harm", hint="add the servers by hand")
    return after


def _inserted(text: str, plain: str, opening: int, members: Mapping[str, object], depth: int) -> str:
    closing, _ = _scan(plain, opening)
    last = len(plain[:closing].rstrip()) - 1
    comma = "" if plain[last] in "{," else ","
    step = found[1] if (found := _INDENT.search(text)) else "  "
    block = json.dumps(members, indent=step, ensure_ascii=False)[1:-1].strip("\n")
    if depth > 1:
        block = "\n".join(step * (depth - 1) + line for line in block.split("\n"))
    kept = text[last + 1 : closing].rstrip()
    whole = f"{text[: last + 1]}{comma}{kept}\n{block}\n{step * (depth - 1)}{text[closing:]}"
    return whole if "\r\n" not in text else re.sub(r"(?<!\r)\n", "\r\n", whole)


def _scan(plain: str, opening: int) -> tuple[int, dict[str, int]]:
    """Where the object that opens here is closed, and where the value of each of its keys begins."""
    depth, key, values = 0, None, {}
    for token in _TOKEN.finditer(plain, opening):
        mark = token[0]
        if depth == 1 and mark[0] == '"' and _COLON.match(plain, token.end()):
            key = json.loads(mark)
        elif depth == 1 and mark in "{[" and key is not None:
            values[key], key = token.start(), None
        depth += (mark in "{[") - (mark in "}]")
        if not depth:
            return token.start(), values
    raise ValueError("the text was parsed before, so it is closed")
