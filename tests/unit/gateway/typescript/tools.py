"""Tools for these tests."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolscript.core.items import Item, ItemKind

CATALOG = Path(__file__).parents[5] / "shared" / "data" / "merged_tools" / "tools.jsonl"


def tool(
    schema: object = None,
    *,
    server: str = "s",
    name: str = "t",
    description: str = "",
    output: object = None,
) -> Item:
    """Return a tool as a server could send it: a schema may be any JSON value."""
    document = schema if isinstance(schema, Mapping) or schema is None else {"allOf": [schema]}
    returned = output if isinstance(output, Mapping) or output is None else {"allOf": [output]}
    return Item(
        key=f"{server} {name}",
        kind=ItemKind.TOOL,
        server=server,
        name=name,
        description=description,
        input_schema=document,
        output_schema=returned,
    )


def catalog_tools(path: Path) -> Iterator[Item]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield tool(row["input_schema"], server=row["server"], name=row["name"], description=row["description"])
