"""`toolscript backup` and `toolscript restore`: all data of the service, or one tenant, to a folder and back."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import typer

from toolscript.cli.options import AsJson
from toolscript.cli.output import confirm, printable, progress, say, show
from toolscript.core.errors import InvalidRequest

SOME_LEFT_OUT = 2

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="Folder of the backup.")]
OneTenant = Annotated[
    str | None, typer.Option("--tenant", metavar="NAME", help="Only the documents of this tenant.")
]


def backup_commands(app: typer.Typer) -> None:
    _backup(app)
    _restore(app)


def _backup(app: typer.Typer) -> None:
    @app.command()
    def backup(folder: Folder, tenant: OneTenant = None, as_json: AsJson = False) -> None:
        """Save PostgreSQL, Qdrant and MongoDB to a new folder, while the service runs.

        Whatever was acknowledged before the start is in it. Exit code 2: documents were left out, whose write was
        interrupted.
        """
        from toolscript.server.backup import back_up

        with progress() as on_progress:
            saved = back_up(folder, tenant=tenant, on_progress=on_progress)
        lines = [*_contents(saved), f"check it: `toolscript restore {folder} --check`"]
        show(saved, "\n".join(lines), as_json=as_json)
        if left_out := cast("Sequence[str]", saved["left_out"]):
            for document in left_out:
                say(f"left out: {printable(document)} was not written to the end")
            raise typer.Exit(SOME_LEFT_OUT)


def _restore(app: typer.Typer) -> None:
    @app.command()
    def restore(
        folder: Folder,
        tenant: OneTenant = None,
        documents: Annotated[
            bool,
            typer.Option("--documents", help="Only the documents of all tenants, as after the loss of Qdrant."),
        ] = False,
        check: Annotated[
            bool, typer.Option("--check", help="Only verify the folder; no engine is needed.")
        ] = False,
        replace: Annotated[
            bool, typer.Option("--replace", help="Delete the data that is there first (with --tenant: its data).")
        ] = False,
        yes: Annotated[bool, typer.Option("--yes", help="With --replace: do not ask for confirmation.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Restore a backup into engines without data; with --tenant, one tenant into a running service.

        The folder is verified before anything is changed. Stop `serve` and `worker` to restore everything.
        """
        if check and (replace or tenant or documents):
            raise InvalidRequest("--check changes nothing", hint="leave the other options out")
        if documents and tenant:
            raise InvalidRequest("--documents and --tenant: one or the other", hint="leave one of them out")
        from toolscript.server import restore as service

        if replace:
            whose = f"everything of tenant {tenant}" if tenant else "all documents" if documents else "all data"
            confirm(f"Delete {whose} that is there, and restore the backup in its place?", yes=yes)
        with progress() as on_progress:
            if check:
                done = service.check_backup(folder, on_progress)
            else:
                done = service.restore(
                    folder, tenant=tenant, documents=documents, replace=replace, on_progress=on_progress
                )
        text = [*_contents(done), "the folder is whole"] if check else _restored(done)
        show(done, "\n".join(text), as_json=as_json)


def _contents(saved: Mapping[str, Any]) -> list[str]:
    size = f"{saved['bytes'] / 1e6:,.1f} MB in {saved['folder']}, the state of {saved['moment']}"
    if saved["tenant"]:
        return [f"tenant {saved['tenant']}: {saved['chunks']:,} chunks of documents", size]
    return [
        (
            f"{saved['items']:,} items, {saved['tenants']:,} tenants with {saved['chunks']:,} chunks, "
            f"{saved['sources']:,} sources; {saved['indexes']:,} indexes"
        ),
        size,
    ]


def _restored(done: Mapping[str, Any]) -> list[str]:
    if done["tenant"]:
        anew = ", embedded anew with the model of the live index" if done["embedded_anew"] else ""
        return [
            f"tenant {done['tenant']} restored: {done['documents']:,} documents, {done['chunks']:,} chunks{anew}",
            f"check it: `toolscript tenants list` and a search with a token of {done['tenant']}",
        ]
    if done.get("documents_alone"):
        return _restored_documents(done)
    lines = [
        (
            f"restored the state of {done['moment']}: {done['items']:,} items, {done['tenants']:,} tenants with "
            f"{done['chunks']:,} chunks of documents, {done['sources']:,} sources"
        ),
    ]
    if done["half_written_dropped"]:
        lines.append(f"{done['half_written_dropped']:,} documents dropped whose write had begun later")
    return [*lines, *_next_steps(done), "check it: start `toolscript serve`, then `toolscript doctor --index`"]


def _restored_documents(done: Mapping[str, Any]) -> list[str]:
    return [
        f"restored: {done['tenants']:,} tenants with {done['chunks']:,} chunks, the state of {done['moment']}",
        *(
            f"none of tenant {tenant}: `toolscript tenants erase {tenant}` lets it begin anew"
            for tenant in done["tenants_without"]
        ),
        "check it: `toolscript tenants list`",
        "the other indexes, if they are lost: `toolscript worker --drain`, `toolscript reindex knowledge`",
    ]


def _next_steps(done: Mapping[str, Any]) -> list[str]:
    steps: list[str] = []
    report, library = done["doctor"], done["library"]
    if report is None and done["items"]:
        steps.append("next: `toolscript worker --drain` builds the index of tools")
    elif report is not None:
        steps.append(
            f"index of tools: {report['missing']} missing, {report['stale']} stale, {report['extra']} extra; "
            f"{report['pending']:,} items wait for `toolscript worker`"
        )
    if library is None and done["sources"]:
        steps.append("next: `toolscript reindex knowledge` builds the index of the library")
    elif library is not None and library["to_index"]:
        steps.append(f"next: `toolscript reindex knowledge` indexes {library['to_index']:,} chunks")
    if done["unfinished_sources"]:
        steps.append(
            f"next: `toolscript ingest` of their files finishes {done['unfinished_sources']:,} sources "
            "that were being ingested"
        )
    return steps
