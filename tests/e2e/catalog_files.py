"""Small catalogs as files, made up word by word."""

import json
from pathlib import Path

VERBS = ("create", "delete", "list", "update", "search", "export", "share", "archive")
THINGS = ("invoice", "meeting", "branch", "photo", "playlist", "contract", "ticket", "recipe", "flight", "server")


def rows(count: int) -> list[dict[str, object]]:
    return [_row(number) for number in range(count)]


def write(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return path


def _row(number: int) -> dict[str, object]:
    verb = VERBS[number % len(VERBS)]
    thing = THINGS[number // len(VERBS) % len(THINGS)]
    serial = number // (len(VERBS) * len(THINGS))
    schema = {"type": "object", "properties": {f"{thing}_id": {"type": "string", "description": f"Which {thing}"}}}
    return {
        "id": f"item-{number}",
        "server": f"{thing}-service-{serial}",
        "name": f"{verb}_{thing}",
        "description": f"Lets you {verb} a {thing} in workspace {serial}.",
        "input_schema": schema,
    }
