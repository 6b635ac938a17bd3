"""`toolscript review`: new and changed tools, how they differ from what was approved, and a person's decision."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from toolscript.cli.options import Alone, AsJson, ConfigFile, DataDir, flags
from toolscript.cli.output import (
    NOTHING_FOUND,
    colour_wanted,
    harmless,
    printable,
    progress,
    require_person,
    say,
    show,
    table,
)
from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.gateway.approvals import Decision, Review, difference_of, review_shown

if TYPE_CHECKING:
    from toolscript.gateway.model import Gateway

T = TypeVar("T")

NOTHING = "everything that your servers offer is approved"

Names = Annotated[list[str] | None, typer.Argument(help="Tools as server__tool, or digests of reviews.")]
OfServer = Annotated[str, typer.Option("--server", help="All of this server.")]
All = Annotated[bool, typer.Option("--all", help="All of every server.")]
Agreed = Annotated[bool, typer.Option("--yes", "-y", help="Decide without a question, in a terminal.")]


def review_commands() -> typer.Typer:
    group = typer.Typer(
        help="New and changed tools: which are held, how they differ, and your decision.", no_args_is_help=True
    )
    _list(group)
    _show(group)
    for decision in Decision:
        _decide(group, decision)
    return group


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(
        server: OfServer = "",
        config: ConfigFile = None,
        data_dir: DataDir = None,
        alone: Alone = False,
        as_json: AsJson = False,
    ) -> None:
        """Show what is not approved: held, or only shown. Exit code 1: nothing."""
        found = _reviews(flags(config=config, data_dir=data_dir, alone=alone))
        reviews = [review for review in found if server in ("", review.server)]
        rows = [_row(review) for review in reviews]
        text = table(["Tool", "Kind", "Status", "", "Since"], rows, colour=colour_wanted()) if rows else NOTHING
        shown = [review_shown(review, compared=as_json) for review in reviews]
        show({"reviews": shown}, text, as_json=as_json)
        if not reviews:
            raise typer.Exit(NOTHING_FOUND)
        if not as_json:
            say("hint: `toolscript review show NAME` shows how it differs; then approve or reject it")


def _show(group: typer.Typer) -> None:
    @group.command("show")
    def show_(
        name: Annotated[str, typer.Argument(help="The tool, as server__tool, or the digest of a review.")],
        config: ConfigFile = None,
        data_dir: DataDir = None,
        alone: Alone = False,
        as_json: AsJson = False,
    ) -> None:
        """Show how a definition differs from the approved one, with invisible characters spelled out."""
        reviews = _chosen(_reviews(flags(config=config, data_dir=data_dir, alone=alone)), [name], "", all_=False)
        show({"reviews": [*map(review_shown, reviews)]}, "\n\n".join(map(_text, reviews)), as_json=as_json)


def _decide(group: typer.Typer, decision: Decision) -> None:
    def decide(
        names: Names = None,
        server: OfServer = "",
        all_: All = False,
        yes: Agreed = False,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        alone: Alone = False,
        as_json: AsJson = False,
    ) -> None:
        options = flags(config=config, data_dir=data_dir, alone=alone)
        reviews = _chosen(_reviews(options), names or [], server, all_=all_)
        require_person(f"what to {decision} of tools", f"toolscript review {decision}", asks=not yes)
        if not yes:
            say("\n\n".join(map(_text, reviews)))
            typer.confirm(f"{decision.value} {len(reviews)}?", abort=True, err=True)
        digests = [review.digest for review in reviews]

        async def ask(gateway: "Gateway") -> Sequence[Review]:
            return await gateway.decide(decision, digests)

        decided = _ask(ask, options)
        done = "approved" if decision is Decision.APPROVE else "rejected"
        text = "\n".join(f"{done}: {printable(review.tool)}" for review in decided)
        show({"decision": decision.value, "reviews": [*map(review_shown, decided)]}, text, as_json=as_json)

    effect = "release them" if decision is Decision.APPROVE else "keep them out until they change again"
    help_text = f"{decision.capitalize()} exactly the definitions that are shown, and {effect}."
    group.command(decision.value, help=help_text)(decide)


def _reviews(options: Mapping[str, object]) -> Sequence[Review]:
    async def ask(gateway: "Gateway") -> Sequence[Review]:
        return await gateway.reviews()

    return _ask(ask, options)


def _ask(action: "Callable[[Gateway], Coroutine[Any, Any, T]]", options: Mapping[str, object]) -> T:
    from toolscript.gateway.model import Need
    from toolscript.gateway.session import ask

    with progress() as on_progress:
        return ask(action, flags=options, need=Need(model=False), on_progress=on_progress, on_start=say)


def _chosen(reviews: Sequence[Review], names: Sequence[str], server: str, *, all_: bool) -> Sequence[Review]:
    if not (names or server or all_):
        raise InvalidRequest("nothing is named", hint="name tools, or use --server NAME or --all")
    known = {name for review in reviews for name in (review.tool, review.digest)}
    if unknown := [name for name in names if name not in known]:
        raise NotFound(
            f"nothing that is not approved is called {', '.join(unknown)[:200]}",
            hint="`toolscript review list` shows what is not",
        )
    chosen = [
        review for review in reviews if all_ or review.server == server or {review.tool, review.digest} & {*names}
    ]
    if not chosen:
        raise NotFound(
            NOTHING if all_ else f"everything that {server[:100]} offers is approved, or it is not there"
        )
    return chosen


def _row(review: Review) -> list[str]:
    when = datetime.fromtimestamp(review.seen_at).astimezone().strftime("%Y-%m-%d %H:%M")
    return [printable(review.tool), review.kind, review.status.value, _state(review), when]


def _state(review: Review) -> str:
    return "held" if review.held else "shown"


def _text(review: Review) -> str:
    head = f"{printable(review.tool)} ({review.kind}): {review.status}, {_state(review)}"
    return f"{head}\n{harmless(difference_of(review))}"
