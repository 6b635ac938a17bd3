"""A draft of a judged set as files: `tools.jsonl` and `queries.jsonl` in a folder, for a person to edit."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolscript.errors import InvalidRequest, SetupError
from toolscript.model.drafts import Draft, DraftedQuery
from toolscript.model.items import Item

TOOLS, QUERIES = "tools.jsonl", "queries.jsonl"
JUDGEMENTS = "qrels.tsv"


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Refuses a folder in which something would be lost, or would judge other queries than those of the draft."""
    if folder.exists() and not folder.is_dir():
        raise InvalidRequest(f"{folder} is not a folder", hint="name a folder, new or empty")
    if (folder / JUDGEMENTS).exists():
        raise InvalidRequest(
            f"{folder} holds a judged set of its own ({JUDGEMENTS})", hint="name a folder, new or empty"
        )
    there = [name for name in (TOOLS, QUERIES) if (folder / name).exists()]
    if there and not overwrite:
        raise InvalidRequest(
            f"{folder} already holds {' and '.join(there)}",
            hint="name another folder, or add --force to lose what was edited there",
        )


def write_draft(draft: Draft, folder: Path, *, overwrite: bool = False) -> None:
    """Both files, each whole or not at all."""
    check_folder(folder, overwrite=overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / TOOLS, map(_tool, draft.items))
        _write(folder / QUERIES, map(_query, draft.queries))
    except OSError as error:
        raise SetupError(
            f"cannot write to {folder}: {error.strerror}", hint="name a folder that you may write to"
        ) from error


def _write(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    unfinished.replace(path)


def _tool(item: Item) -> Mapping[str, object]:
    row: dict[str, object] = {"id": item.key, "server": item.server, "name": item.name}
    row["description"] = item.description
    row["input_schema"] = item.input_schema
    row["output_schema"] = item.output_schema
    row["server_description"] = item.server_description or None
    return {name: value for name, value in row.items() if value is not None}


def _query(drafted: DraftedQuery) -> Mapping[str, object]:
    query = drafted.query
    row: dict[str, object] = {"id": query.id, "text": query.text, "kind": drafted.kind}
    row["gold_groups"] = [sorted(step) for step in query.steps]
    row["check"] = True
    return {**row, "note": drafted.note} if drafted.note else row
