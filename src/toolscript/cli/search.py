"""search, list-tools, list-servers, get-types and call: one query of a gateway, or many from a file."""

import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from toolscript.cli.gateway import offer_trust, say_untrusted
from toolscript.cli.gateway_tables import say_if_a_guess, show_answer, show_call, show_items, show_servers
from toolscript.cli.options import Alone, AsJson, ConfigFile, DataDir, Model, Refresh, flags
from toolscript.cli.output import (
    NOTHING_FOUND,
    confirm,
    is_watched,
    json_text,
    printable,
    progress,
    require_person,
    say,
)
from toolscript.core.errors import ERROR_TABLE, Forbidden, InvalidRequest, envelope_of
from toolscript.core.items import SEPARATOR, Item, ItemKind, is_allowed, split_tool_id, tool_id
from toolscript.core.mcp.arguments import require_known
from toolscript.core.retrieval.query import SearchType
from toolscript.gateway.approvals import HELD, PERSON_REVIEWS, Review, review_shown
from toolscript.gateway.json import answer_to_json, call_to_json, item_to_json, states_to_json, without_words
from toolscript.gateway.model import LocalAnswer, LocalQuery

if TYPE_CHECKING:
    from toolscript.gateway.model import Gateway, Need

T = TypeVar("T")


FIELDS = ("query", "limit", "threshold", "kind", "search_type")


@dataclass(frozen=True)
class BadLine:
    """A line that is not a query, and why; the others are answered."""

    number: int
    error: InvalidRequest


def queries_of(lines: Iterable[str], default: LocalQuery) -> Iterator[LocalQuery | BadLine]:
    """Parse one query per line, skipping blank lines. JSON may set limit, threshold, kind and search type, too."""
    for number, line in enumerate(lines, 1):
        if text := line.strip():
            try:
                yield _query(text, number, default)
            except InvalidRequest as error:
                yield BadLine(number, error)


def _query(text: str, number: int, default: LocalQuery) -> LocalQuery:
    try:
        return _from_json(json.loads(text), default) if text.startswith("{") else replace(default, text=text)
    except (ValueError, TypeError, OverflowError, RecursionError, InvalidRequest) as error:
        raise InvalidRequest(
            f"line {number} is not a query: {error}", hint='write a line of text, or {"query": "read a file"}'
        ) from None


def _from_json(data: dict[str, Any], default: LocalQuery) -> LocalQuery:
    require_known("a query", data, FIELDS, word="field")
    if not isinstance(data.get("query"), str):
        raise TypeError("`query` is missing or not a text")
    return replace(
        default,
        text=data["query"],
        limit=int(data.get("limit", default.limit)),
        threshold=float(data.get("threshold", default.threshold)),
        kind=_kind(Kind(data["kind"])) if "kind" in data else default.kind,
        search_type=SearchType(data["search_type"]) if "search_type" in data else default.search_type,
    )


class Output(StrEnum):
    TABLE = "table"
    TYPES = "types"
    JSON = "json"


class Kind(StrEnum):
    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    ANY = "any"


def find_commands(app: typer.Typer) -> None:
    _search(app)
    _lists(app)
    _types(app)
    _call(app)


def _search(app: typer.Typer) -> None:
    @app.command()
    def search(
        query: Annotated[
            str | None, typer.Argument(help="What the tool should do. `-` or none: a query per line of stdin.")
        ] = None,
        limit: Annotated[int | None, typer.Option(help="Number of tools (TOOLSCRIPT_SEARCH_LIMIT, 3).")] = None,
        threshold: Annotated[
            float | None, typer.Option(help="Minimum confidence, 0 to 1 (TOOLSCRIPT_SEARCH_THRESHOLD, 0.35).")
        ] = None,
        model: Model = None,
        data_dir: DataDir = None,
        config: ConfigFile = None,
        kind: Annotated[Kind, typer.Option(help="Only items of this kind.")] = Kind.TOOL,
        search_type: Annotated[
            SearchType | None,
            typer.Option(help="Retrievers to use; semantic is literal mode (TOOLSCRIPT_SEARCH_TYPE, hybrid)."),
        ] = None,
        output: Annotated[Output, typer.Option(help="Output format of the hits.")] = Output.TABLE,
        explain: Annotated[
            bool, typer.Option("--explain", help="Show the components of each confidence and score.")
        ] = False,
        refresh: Refresh = False,
        alone: Alone = False,
        as_json: AsJson = False,
    ) -> None:
        """Find the right tool for a request in plain words. Exit code 1: nothing found."""
        from toolscript.gateway.model import Need
        from toolscript.gateway.session import default_query

        options = flags(config=config, data_dir=data_dir, model=model, alone=alone)
        default = default_query(limit=limit, threshold=threshold, kind=_kind(kind), search_type=search_type)
        queries = _queries(query, default)
        output_format = Output.JSON if as_json else output

        good = [local_query for local_query in queries if isinstance(local_query, LocalQuery)]

        async def ask(gateway: "Gateway") -> list[tuple[LocalAnswer, str]]:
            return [await _search_one(gateway, local_query, output_format) for local_query in good]

        answers = _ask(ask, options, Need(refresh=refresh)) if good else []
        _show_all(queries, answers, output_format, explain=explain)


def _show_all(
    queries: Sequence[LocalQuery | BadLine],
    answers: Sequence[tuple[LocalAnswer, str]],
    output_format: Output,
    *,
    explain: bool,
) -> None:
    """Show the answers in the order of the queries, and what is wrong with bad lines in their places."""
    following = iter(answers)
    for local_query in queries:
        if isinstance(local_query, BadLine):
            _show_bad_line(local_query, output_format)
        else:
            _show(*next(following), output_format, explain=explain)
    if len(answers) < len(queries):
        raise typer.Exit(ERROR_TABLE[InvalidRequest].exit_code)
    if not any(answer.all_hits for answer, _ in answers):
        raise typer.Exit(NOTHING_FOUND)


def _ask(action: "Callable[[Gateway], Coroutine[Any, Any, T]]", data: Mapping[str, object], need: "Need") -> T:
    from toolscript.gateway.session import ask

    offer_trust(data)
    with progress() as on_progress:
        return ask(action, flags=data, need=need, on_progress=on_progress, on_start=say)


def _show_bad_line(bad: BadLine, output_format: Output) -> None:
    """Say what is wrong with a line: in its place, where the output is JSON."""
    if output_format is Output.JSON:
        _print_json({"line": bad.number, **envelope_of(bad.error)})
    else:
        say(f"error: {bad.error.message}")
        say(f"hint: {bad.error.hint}")


def _queries(query: str | None, default: Callable[[str], LocalQuery]) -> Sequence[LocalQuery | BadLine]:
    if query not in (None, "-"):
        return [default(str(query))]
    if sys.stdin.isatty():
        raise InvalidRequest("nothing to search for", hint='write `toolscript search "read a file"`')
    return list(queries_of(sys.stdin, default("-")))


async def _search_one(gateway: "Gateway", query: LocalQuery, output_format: Output) -> tuple[LocalAnswer, str]:
    """Return the answer, and the TypeScript of its tools if the output is `types`."""
    answer = await gateway.search(query)
    tools = [hit.item for hit in answer.all_hits if hit.item.kind is ItemKind.TOOL]
    if output_format is not Output.TYPES or not tools:
        return answer, ""
    return answer, await gateway.typescript(tuple(tool_id(item.server, item.name) for item in tools))


def _show(answer: LocalAnswer, types: str, output_format: Output, *, explain: bool) -> None:
    if output_format is Output.JSON:
        _print_json(answer_to_json(answer, explain=explain))
    elif types:
        _show_types(answer, types)
        say_if_a_guess(answer)
    else:
        show_answer(answer, explain=explain)


def _show_types(answer: LocalAnswer, module: str) -> None:
    from toolscript.gateway.typescript.markdown import client_usage, types_document

    items = [hit.item for hit in answer.all_hits if hit.item.kind is ItemKind.TOOL]
    rows = [(tool_id(hit.item.server, hit.item.name), hit.confidence, hit.reason) for hit in answer.all_hits]
    sys.stdout.write(types_document(rows, module, client_usage(items)))


def _lists(app: typer.Typer) -> None:
    _list_servers(app)
    _list_tools(app)


def _list_servers(app: typer.Typer) -> None:
    @app.command("list-servers")
    def list_servers(
        config: ConfigFile = None, data_dir: DataDir = None, alone: Alone = False, as_json: AsJson = False
    ) -> None:
        """Show every server, its state, and its error. Exit code 1: none is ready or asleep."""
        from toolscript.gateway.model import Need

        async def ask(gateway: "Gateway") -> Any:
            return await gateway.servers()

        need = Need(model=False, uses_cache=False)
        states = _ask(ask, flags(config=config, data_dir=data_dir, alone=alone), need)
        shown = states if is_watched() else without_words(states)
        _print_json({"servers": states_to_json(shown)}) if as_json else show_servers(shown)
        if not any(state.answers for state in states):
            raise typer.Exit(NOTHING_FOUND)


def _list_tools(app: typer.Typer) -> None:
    @app.command("list-tools")
    def list_tools(
        server: Annotated[str | None, typer.Argument(help="Only this server, or this server__tool.")] = None,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        refresh: Refresh = False,
        alone: Alone = False,
        as_json: AsJson = False,
    ) -> None:
        """List the tools, prompts and resources of the servers. Exit code 1: nothing."""
        from toolscript.gateway.model import Need

        async def ask(gateway: "Gateway") -> tuple[Sequence[Item], Sequence[Review]]:
            return await gateway.items((server,) if server else ()), await gateway.reviews()

        need = Need(model=False, refresh=refresh)
        items, reviews = _ask(ask, flags(config=config, data_dir=data_dir, alone=alone), need)
        names = frozenset((server,) if server else ())
        held = [review for review in reviews if review.held and is_allowed(review.server, review.name, names)]
        say_untrusted(flags(config=config, data_dir=data_dir))
        if as_json:
            shown = [item_to_json(item, schemas=True) for item in items]
            _print_json({"tools": shown, "held": [review_shown(review, compared=False) for review in held]})
        elif items or held:
            show_items(items, held)
        elif server:
            say(f"nothing here is called {printable(server)}; `toolscript list-servers` names the servers")
        else:
            say("the servers offer nothing\nhint: `toolscript list-servers` shows their state")
        if not items and not held:
            raise typer.Exit(NOTHING_FOUND)


def _types(app: typer.Typer) -> None:
    @app.command("get-types")
    def get_types(
        names: Annotated[
            list[str] | None, typer.Argument(help="Servers and server__tools; none: all of them.")
        ] = None,
        compact: Annotated[bool, typer.Option("--compact", help="Fewer comments and lines.")] = False,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        refresh: Refresh = False,
        alone: Alone = False,
        as_json: AsJson = False,
    ) -> None:
        """Print a TypeScript module that calls these tools through the gateway."""
        from toolscript.gateway.model import Need

        selected = tuple(part for name in names or () for part in name.split(",") if part)

        async def ask(gateway: "Gateway") -> str:
            return await gateway.typescript(selected, compact=compact)

        need = Need(model=False, refresh=refresh)
        module = _ask(ask, flags(config=config, data_dir=data_dir, alone=alone), need)
        say_untrusted(flags(config=config, data_dir=data_dir))
        _print_json({"module": module}) if as_json else sys.stdout.write(module)


def _call(app: typer.Typer) -> None:
    @app.command()
    def call(
        tool: Annotated[
            str, typer.Argument(help="The tool, as server__tool, or by its own name if no other server has one.")
        ],
        arguments: Annotated[
            str,
            typer.Argument(help='Its arguments as a JSON object, `-` for stdin, or `@FILE`: {"path": "a.txt"}'),
        ] = "{}",
        yes: Annotated[bool, typer.Option("--yes", help="Confirm the call where a rule asks for it.")] = False,
        save_to: Annotated[
            Path | None,
            typer.Option("--save-to", help="Folder for pictures and other files (default: a new temporary one)."),
        ] = None,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        alone: Alone = False,
        as_json: AsJson = False,
    ) -> None:
        """Call a tool and print its result. Exit code 1: the tool reports an error."""
        from toolscript.gateway.model import Need

        call_arguments = _arguments(arguments)
        if yes:
            require_person("a call that a rule asks about", "toolscript call")
        server = split_tool_id(tool)[0] if SEPARATOR in tool else None

        async def ask(gateway: "Gateway") -> Any:
            return await call_confirmed(gateway, tool, call_arguments, yes=yes)

        need = Need(model=False, only_server=server, is_call=True)
        result = _ask(ask, flags(config=config, data_dir=data_dir, alone=alone), need)
        if save_to or not as_json:
            from toolscript.cli.saved_files import with_saved_files

            result = with_saved_files(result, tool, save_to)
        _print_json(call_to_json(result)) if as_json else show_call(result)
        if result.is_error:
            say("the tool reports an error")
            raise typer.Exit(NOTHING_FOUND)


async def call_confirmed(gateway: "Gateway", tool: str, arguments: dict[str, object], *, yes: bool) -> Any:
    """Call a tool. Where a rule asks for a person, ask on a terminal; elsewhere only `--yes` confirms.

    No message names that option: an agent with a shell would be led to answer for its user.
    """
    from toolscript.gateway.callers import CallTerms, on_terms
    from toolscript.gateway.rules import CONFIRMATION

    try:
        with on_terms(CallTerms(tool if yes else "")):
            return await gateway.call(tool, arguments)
    except Forbidden as refusal:
        if HELD in refusal.details:
            raise Forbidden(refusal.message, hint=_how_to_review(tool), details=refusal.details) from refusal
        if CONFIRMATION not in refusal.details or not sys.stdin.isatty():
            raise
        say(printable(refusal.message))
        confirm(f"call {printable(tool)}?", yes=False)
    with on_terms(CallTerms(tool)):
        return await gateway.call(tool, arguments)


def _how_to_review(tool: str) -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return PERSON_REVIEWS
    return f"`toolscript review show {tool}` shows how it differs, `toolscript review approve {tool}` releases it"


def _arguments(text: str) -> dict[str, object]:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
        data = json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"the arguments cannot be read: {error}", hint="give a JSON object, `-` for stdin, or `@FILE`"
        ) from None
    if not isinstance(data, dict):
        raise InvalidRequest("the arguments must be a JSON object", hint='like {"path": "a.txt"}')
    return data


def _kind(kind: Kind) -> ItemKind | None:
    return None if kind is Kind.ANY else ItemKind(kind.value)


def _print_json(data: object) -> None:
    sys.stdout.write(json_text(data) + "\n")
