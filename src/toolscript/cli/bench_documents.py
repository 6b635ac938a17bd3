"""`toolscript bench documents`: many tenants in one collection."""

from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.bench_tables import titled_tables
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import progress, show

Passages = Annotated[int, typer.Option(min=1_000, help="Passages of all tenants together.")]
Tenants = Annotated[int, typer.Option(min=10, help="Tenants: one has a fifth of all passages, most have a few.")]
Count = Annotated[int, typer.Option("--count", min=2, help="How many searches of each kind.")]
Texts = Annotated[
    Path | None,
    typer.Option(help="JSON lines with a `text` each that documents are to look like; without it, made-up ones."),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same tenants, documents and questions.")]
Keep = Annotated[bool, typer.Option("--keep", help="Leave the collection there, for --use.")]
Use = Annotated[
    str,
    typer.Option(help="Name of a collection that was kept: of the same passages, tenants, texts and seed."),
]


def add_bench_documents(app: typer.Typer) -> None:
    @app.command()
    def documents(
        passages: Passages = 1_000_000,
        tenants: Tenants = 10_000,
        count: Count = 200,
        texts: Texts = None,
        seed: Seed = 0,
        keep: Keep = False,
        use: Use = "",
        as_json: AsJson = False,
    ) -> None:
        """Tenants of very different sizes in one collection: searches against the bare engine, and recall."""
        from toolscript.service.bench_documents import bench_documents

        with progress() as on_progress:
            tables = bench_documents(
                passages=passages,
                tenants=tenants,
                count=count,
                texts=texts,
                seed=seed,
                keep=keep,
                use=use,
                on_progress=on_progress,
            )
        show(tables, titled_tables(tables), as_json=as_json)
