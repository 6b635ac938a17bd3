"""toolscript reindex: an index with another model or layout, beside the live one."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import progress, show
from toolscript.errors import InvalidRequest
from toolscript.model.document_versions import VersionState


class Product(StrEnum):
    TOOLS = "tools"
    DOCUMENTS = "documents"
    KNOWLEDGE = "knowledge"


MOST_OWN_SHARDS = 64

Model = Annotated[str | None, typer.Option(help="Documents: the new model (default: TOOLSCRIPT_EMBEDDING_MODEL).")]
Shards = Annotated[int | None, typer.Option(min=0, max=1024, help="Documents: the new number of shared shards.")]
OwnShards = Annotated[
    list[str] | None,
    typer.Option(
        "--own-shards",
        metavar="TENANT=N",
        help="Documents: a large tenant's own shards, so many; repeatable.",
    ),
]
Share = Annotated[
    float,
    typer.Option(
        min=0.05, max=1.0, help="Documents: share of the time it works at most; less while searches are slow."
    ),
]
Rollback = Annotated[
    bool, typer.Option("--rollback", help="Documents: make the previous index live, with all that was put since.")
]
Cancel = Annotated[bool, typer.Option("--cancel", help="Documents: give up an index that is being built.")]
DropPrevious = Annotated[
    bool,
    typer.Option("--drop-previous", help="Only remove what is no longer live (knowledge: build, then remove it)."),
]


def add_reindex(app: typer.Typer) -> None:
    @app.command()
    def reindex(
        product: Annotated[Product, typer.Argument(help="Whose index.")] = Product.TOOLS,
        model: Model = None,
        shards: Shards = None,
        own_shards: OwnShards = None,
        share: Share = 0.5,
        rollback: Rollback = False,
        cancel: Cancel = False,
        drop_previous: DropPrevious = False,
        as_json: AsJson = False,
    ) -> None:
        """Build an index with the model now configured beside the live one, then make it the live one.

        Searches and writes go on meanwhile. Ended at any moment, it goes on when it is run again.
        """
        if model or shards is not None or own_shards or rollback or cancel:
            _require_documents(product)
        from toolscript.service import document_reindexing, library_reindexing, writing

        with progress() as on_progress:
            if product is Product.TOOLS:
                result = writing.reindex(drop_previous=drop_previous, on_progress=on_progress)
            elif product is Product.KNOWLEDGE:
                result = library_reindexing.reindex_library(drop_previous=drop_previous, on_progress=on_progress)
            elif drop_previous or cancel:
                dropped = VersionState.BUILDING if cancel else VersionState.PREVIOUS
                result = document_reindexing.drop_document_version(dropped)
            elif rollback:
                result = document_reindexing.roll_back_documents(share=share, on_progress=on_progress)
            else:
                result = document_reindexing.reindex_documents(
                    model=model,
                    shards=shards,
                    own_shards=_own_shards(own_shards or []),
                    share=share,
                    on_progress=on_progress,
                )
        show(result, _text(result), as_json=as_json)


def _require_documents(product: Product) -> None:
    if product is not Product.DOCUMENTS:
        raise InvalidRequest(
            f"these options are not for {product}", hint="`toolscript reindex documents` takes them"
        )


def _own_shards(given: Sequence[str]) -> dict[str, int]:
    numbers = dict[str, int]()
    for one in given:
        tenant, _, number = one.rpartition("=")
        if not tenant or not number.isdecimal() or not 1 <= int(number) <= MOST_OWN_SHARDS:
            raise InvalidRequest(
                f"--own-shards {one} is not a tenant and a number from 1 to {MOST_OWN_SHARDS}",
                hint="for example `--own-shards acme=4`",
            )
        numbers[tenant] = int(number)
    return numbers


def _text(result: Mapping[str, object]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in result.items())
