"""`toolscript eval make`: a judged set drafted from one's own servers."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.gateway_options import AsJson, ConfigFile, DataDir, flags
from toolscript.cli.output import progress, say, show
from toolscript.model.drafts import WrittenDraft

Folder = Annotated[Path, typer.Argument(help="Where tools.jsonl and queries.jsonl are written.")]
PerKind = Annotated[int, typer.Option(min=1, max=1000, help="At most so many queries of each kind.")]
Seed = Annotated[int, typer.Option(help="The same seed drafts the same queries.")]
TextModel = Annotated[
    str | None, typer.Option(help="A language model that words queries too (TOOLSCRIPT_TEXT_MODEL).")
]
TextUrl = Annotated[str | None, typer.Option(help="Its endpoint, OpenAI's protocol (TOOLSCRIPT_TEXT_URL).")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a draft that is there, edited or not.")]
Tools = Annotated[
    Path | None, typer.Option(help="A catalog of JSON lines instead of one's own servers.", show_default=False)
]


def add_make(app: typer.Typer) -> None:
    @app.command()
    def make(
        folder: Folder,
        per_kind: PerKind = 20,
        seed: Seed = 1,
        text_model: TextModel = None,
        text_url: TextUrl = None,
        tools: Tools = None,
        force: Force = False,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        as_json: AsJson = False,
    ) -> None:
        """Draft queries and which tools answer them, from one's own servers, to be corrected by hand."""
        given = {**flags(config=config, data_dir=data_dir), "text_model": text_model, "text_url": text_url}
        from toolscript.gateway.eval_drafts import make_draft

        with progress() as on_progress:
            written = make_draft(
                folder,
                tools=tools,
                flags=given,
                per_kind=per_kind,
                seed=seed,
                force=force,
                on_progress=on_progress,
            )
        show({**asdict(written), "queries": sum(written.counts.values())}, _summary(written), as_json=as_json)
        say(_next_step(written))


def _summary(written: WrittenDraft) -> str:
    lines = [f"{written.tools:,} tools and {sum(written.counts.values()):,} queries are in {written.folder}"]
    lines += [f"  {kind:18} {count:5,}" for kind, count in written.counts.items()]
    if written.refused_lines:
        lines.append(f"{written.refused_lines:,} lines of the catalog are no tools and were left out")
    return "\n".join(lines)


def _next_step(written: WrittenDraft) -> str:
    return (
        "It is a draft: edit queries.jsonl, above all what is unanswerable and which tools will do as well."
        f"\nhint: then run `toolscript eval --dataset {written.folder}`"
    )
