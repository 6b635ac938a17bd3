"""`toolscript bench knowledge`: a large library."""

from typing import Annotated

import typer

from toolscript.cli.bench_documents import Seed, Texts
from toolscript.cli.bench_tables import titled_tables
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import progress, show

Chunks = Annotated[int, typer.Option(min=1_000, help="Chunks of the library; a tenth of them has an extraction.")]
Count = Annotated[int, typer.Option("--count", min=10, help="How many searches one at a time.")]
Rate = Annotated[float, typer.Option(min=0.1, max=1_000, help="Searches a second over HTTP.")]
Seconds = Annotated[float, typer.Option(min=1, max=3_600, help="For so long.")]
Keep = Annotated[bool, typer.Option("--keep", help="Leave the library there, for --use.")]
Use = Annotated[str, typer.Option(help="Name of a library that was kept: of the same chunks, texts and seed.")]


def add_bench_knowledge(app: typer.Typer) -> None:
    @app.command()
    def knowledge(
        chunks: Chunks = 1_000_000,
        count: Count = 200,
        rate: Rate = 100,
        seconds: Seconds = 60,
        texts: Texts = None,
        seed: Seed = 0,
        keep: Keep = False,
        use: Use = "",
        as_json: AsJson = False,
    ) -> None:
        """A library made for it: searches against the bare engines, recall, and a steady rate over HTTP."""
        from toolscript.service.bench_knowledge import bench_knowledge

        with progress() as on_progress:
            tables = bench_knowledge(
                chunks=chunks,
                count=count,
                rate=rate,
                seconds=seconds,
                texts=texts,
                seed=seed,
                keep=keep,
                use=use,
                on_progress=on_progress,
            )
        show(tables, titled_tables(tables), as_json=as_json)
