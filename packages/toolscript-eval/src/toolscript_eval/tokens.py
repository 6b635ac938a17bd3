"""Token cost of an agent: with every tool in its context, and with meta-tools that find the others."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, JsonObject
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.tokens import Count, as_json, definitions_of, listed_tokens
from toolscript.core.values import OnProgress, Progress, silent

SEARCH, DESCRIBE = "search_tools", "describe_tool"

Ask = Callable[[str, JsonObject], Awaitable[CallResult]]
Read = Callable[[CallResult], str]


@dataclass(frozen=True)
class Spread:
    """Tokens over all queries."""

    mean: float
    p95: float

    @classmethod
    def of(cls, tokens: Sequence[int]) -> "Spread":
        p95 = quantiles(tokens, n=100, method="inclusive")[94] if len(tokens) > 1 else tokens[0]
        return cls(round(fmean(tokens), 1), round(p95, 1))


@dataclass(frozen=True)
class TokenReport:
    """`all_listed` is the cost before the first word; or `three_listed`, plus `search` and `describe` per query.

    A search counts what the model writes and reads. `found` counts the queries with a result; without one,
    nothing is described. `total` is the three definitions, the search and the description.
    """

    tools: int
    queries: int
    found: int
    all_listed: int
    three_listed: int
    search: Spread
    describe: Spread
    total: Spread

    @property
    def saved(self) -> float:
        """Return the share of tokens saved, for a task that needs one tool."""
        return round(1 - self.total.mean / self.all_listed, 4)


def as_text(result: CallResult) -> str:
    """Return what a model reads from a client that passes on the content."""
    return "\n".join(str(block["text"]) for block in result.content if block.get("type") == "text")


def as_data(result: CallResult) -> str:
    """Return what a model reads from a client that passes on the structured content."""
    return as_text(result) if result.structured_content is None else as_json(result.structured_content)


async def measure_tokens(
    items: Sequence[Item],
    queries: Sequence[str],
    definitions: Sequence[JsonObject],
    ask: Ask,
    count: Count,
    *,
    read: Read = as_text,
    on_progress: OnProgress = silent,
) -> TokenReport:
    """Measure the cost per query. `definitions` are those of the meta-tools, `ask` calls one."""
    if not queries:
        raise InvalidRequest("there is no query to measure with")
    every = definitions_of(items)
    three = listed_tokens(definitions, count)
    searches, descriptions, found_count = list[int](), list[int](), 0
    for done, query in enumerate(queries, 1):
        answer, spent = await _turn(ask, count, read, SEARCH, {"query": query})
        searches.append(spent)
        first = _first_tool(answer)
        found_count += first is not None
        described = (await _turn(ask, count, read, DESCRIBE, {"tool": first}))[1] if first else 0
        descriptions.append(described)
        on_progress(Progress("tokens", done, len(queries)))
    return TokenReport(
        tools=len(every),
        queries=len(queries),
        found=found_count,
        all_listed=listed_tokens(every, count),
        three_listed=three,
        search=Spread.of(searches),
        describe=Spread.of(descriptions),
        total=Spread.of(
            [three + search + describe for search, describe in zip(searches, descriptions, strict=True)]
        ),
    )


async def _turn(ask: Ask, count: Count, read: Read, name: str, arguments: JsonObject) -> tuple[CallResult, int]:
    """Call a tool; return its result and the tokens that the model writes and reads."""
    answer = await ask(name, arguments)
    return answer, count(as_json({"name": name, "arguments": arguments})) + count(read(answer))


def _first_tool(answer: CallResult) -> str | None:
    data = answer.structured_content
    results = data.get("results") if isinstance(data, dict) else None
    return str(results[0]["tool"]) if results else None


def answer_tokens(tools: Sequence[JsonObject], count: Count | None) -> int | None:
    """Count the tokens that a model reads of an answer: names and descriptions of the tools."""
    return None if count is None else count(as_json(tools))
