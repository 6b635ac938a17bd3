"""`toolscript tenants`: list, move, export and erase tenants of documents; keys and tokens."""

from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer

from toolscript.cli.options import AsJson
from toolscript.cli.output import MAX_MESSAGES, colour_wanted, printable, progress, say, show, show_page, table
from toolscript.core.auth.model import Scope
from toolscript.core.errors import InvalidRequest

MAX_LISTED = 1_000
SOME_LEFT_OUT = 2
LEFT_HINT = (
    "its texts remain in files of Qdrant and in backups for a while; docs/operations.md says how long, and how "
    "`toolscript reindex documents --anew` removes it"
)

Name = Annotated[str, typer.Argument(metavar="TENANT", help="Name of the tenant, as in its tokens.")]


def tenant_commands() -> typer.Typer:
    group = typer.Typer(
        help="Tenants of documents: list, move, export and erase them; keys and tokens for trials.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _list(group)
    _move(group)
    _export(group)
    _erase(group)
    _tokens(group)
    return group


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(
        after: Annotated[str, typer.Option(metavar="TENANT", help="Start after this tenant.")] = "",
        limit: Annotated[int, typer.Option(min=1, max=MAX_LISTED, help="Maximum number of tenants.")] = 100,
        as_json: AsJson = False,
    ) -> None:
        """List tenants in order of name: documents, chunks, shard and since when."""
        from toolscript.server.tenants import list_tenants

        listed = list_tenants(after=after, limit=limit + 1)
        rows = listed[:limit]
        following = rows[-1]["name"] if len(listed) > limit else None
        text = _rows(rows) if rows else "there are no tenants" + (" after it" if after else "")
        show_page({"results": rows, "next_cursor": following}, text, following, as_json=as_json)


def _move(group: typer.Typer) -> None:
    @group.command()
    def move(
        tenant: Name,
        anew: Annotated[bool, typer.Option(help="Discard a broken shard of its own, and copy again.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Move a tenant to a shard of its own, while it is searched and written. Resumable.

        Needs a Qdrant cluster, and TOOLSCRIPT_DOCUMENT_SHARDS.
        """
        from toolscript.server.tenants import move_tenant

        with progress() as on_progress:
            moved = move_tenant(tenant, anew=anew, on_progress=on_progress)
        show(moved, f"{moved['chunks']:,} chunks are in a shard of their own", as_json=as_json)


def _export(group: typer.Typer) -> None:
    @group.command()
    def export(
        tenant: Name,
        out: Annotated[
            str, typer.Option(metavar="FILE", help="Output file; a partial file is resumed. `-`: stdout.")
        ] = "-",
        as_json: AsJson = False,
    ) -> None:
        """Write all documents of a tenant as JSON lines, for `toolscript documents put`.

        Exit code 2: some were left out, because they are being written.
        """
        if as_json and out == "-":
            raise InvalidRequest(
                "--json and an export to stdout exclude each other", hint="name a file with --out"
            )
        from toolscript.server.tenants import export_tenant

        with progress() as on_progress:
            written = export_tenant(tenant, out=out, on_progress=on_progress)
        if out == "-":
            say(f"{written['documents']:,} documents exported")
        else:
            show(written, f"{written['documents']:,} documents written to {out}", as_json=as_json)
        if left_out := cast("Sequence[str]", written["left_out"]):
            _say_left_out(left_out)
            raise typer.Exit(SOME_LEFT_OUT)


def _erase(group: typer.Typer) -> None:
    @group.command()
    def erase(
        tenant: Name,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Delete all documents of a tenant, its logged searches, and its name. Cannot be undone."""
        if not yes:
            typer.confirm(f"Delete everything of tenant {tenant} permanently?", abort=True, err=True)
        from toolscript.server.tenants import erase_tenant

        with progress() as on_progress:
            erased = erase_tenant(tenant, on_progress)
        show(erased, _erased_text(erased), as_json=as_json)
        if erased["chunks"]:
            say(f"hint: {LEFT_HINT}")


def _tokens(group: typer.Typer) -> None:
    @group.command()
    def keys(
        folder: Annotated[
            str, typer.Argument(metavar="DIR", help="Output folder; existing files are not replaced.")
        ],
        as_json: AsJson = False,
    ) -> None:
        """Generate a signing key for tokens, and the key set for TOOLSCRIPT_JWT_KEYS."""
        from toolscript.server.tenants import make_tenant_keys

        made = make_tenant_keys(folder)
        lines = [
            f"{made['signing_key']}: signs tokens; keep it secret",
            f"{made['jwt_keys']}: set TOOLSCRIPT_JWT_KEYS to it, and TOOLSCRIPT_JWT_ISSUER to any name",
        ]
        show(made, "\n".join(lines), as_json=as_json)

    @group.command()
    def token(
        tenant: Name,
        key: Annotated[str, typer.Option(metavar="FILE", help="Signing key from `tenants keys`.")],
        issuer: Annotated[str | None, typer.Option(help="Issuer. [TOOLSCRIPT_JWT_ISSUER]")] = None,
        plan: Annotated[str, typer.Option(help="Plan of the tenant.")] = "",
        subject: Annotated[str, typer.Option(help="Subject: the user within the tenant.")] = "",
        scope: Annotated[
            list[Scope] | None,
            typer.Option(help="Scope of the token; repeatable. Default: all but `tools:manage`."),
        ] = None,
        namespace: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME", help="Namespace of the catalog that it sees; repeatable. [default]"),
        ] = None,
        hours: Annotated[float, typer.Option(min=0.01, help="Lifetime in hours.")] = 1.0,
        as_json: AsJson = False,
    ) -> None:
        """Sign a token for a tenant: for trials, or without another token issuer."""
        from toolscript.server.tenants import tenant_token

        signed = tenant_token(
            tenant,
            key=key,
            issuer=issuer,
            plan=plan,
            subject=subject,
            scopes=scope or (),
            namespaces=namespace or (),
            hours=hours,
        )
        show({"token": signed}, signed, as_json=as_json)


def _say_left_out(ids: Sequence[str]) -> None:
    for document_id in ids[:MAX_MESSAGES]:
        say(f"{printable(document_id)} is being written, or its writer was killed")
    more = f", {len(ids) - MAX_MESSAGES:,} of them not named here" if len(ids) > MAX_MESSAGES else ""
    say(f"{len(ids):,} documents left out{more}\nhint: put them again, then export to a new file")


def _erased_text(erased: dict[str, Any]) -> str:
    if not erased["was_known"] and not erased["chunks"]:
        return f"tenant {erased['tenant']} had no data"
    counts = f"{erased['documents']:,} documents with {erased['chunks']:,} chunks"
    return f"{counts} deleted, and all records of tenant {erased['tenant']}"


def _rows(rows: Sequence[dict[str, Any]]) -> str:
    about = {"exact": "", "about": "~", "at_least": ">="}
    cells = [
        [
            str(row["name"]),
            f"{about[str(row['document_count_is'])]}{row['document_count']:,}",
            f"{row['chunk_count']:,}",
            "its own" if row["has_own_shard"] else "shared",
            str(row["created_at"])[:10],
        ]
        for row in rows
    ]
    return table(["Tenant", "Documents", "Chunks", "Shard", "Since"], cells, colour=colour_wanted())
