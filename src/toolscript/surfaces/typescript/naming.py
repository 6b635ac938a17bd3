"""What each tool is called in the module."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolscript.model.items import Item, ItemKind

from .names import Names, camel_case, not_a_digit_first, pascal_case

PARAMS = "Params"
RESULT = "Result"


@dataclass(frozen=True)
class NamedTool:
    """`server_key` is the group it is in; its types are `stem` with an ending."""

    item: Item
    server_key: str
    stem: str

    @property
    def params_name(self) -> str:
        return self.stem + PARAMS

    @property
    def result_name(self) -> str:
        return self.stem + RESULT


def named_tools(items: Sequence[Item], names: Names) -> list[NamedTool]:
    """The tools in the order given. A tool that is given twice is there once: its route calls one tool.

    Which of two gets the number behind its name depends on the names alone, not on the order they came in.
    """
    tools: dict[tuple[str, str], Item] = {}
    for one in items:
        if one.kind == ItemKind.TOOL:
            tools.setdefault((one.server, one.name), one)
    keys = _server_keys(server for server, _ in tools)
    stems = {place: _stem(tools[place], names) for place in sorted(tools)}
    return [NamedTool(tools[place], keys[place[0]], stems[place]) for place in tools]


def _server_keys(servers: Iterable[str]) -> dict[str, str]:
    """A server whose own name is the key keeps it."""
    wanted = {server: not_a_digit_first(camel_case(server) or "server") for server in servers}
    names = Names()
    return {one: names.unique(wanted[one]) for one in sorted(wanted, key=lambda one: (wanted[one] != one, one))}


def _stem(item: Item, names: Names) -> str:
    stem = (pascal_case(item.server) or "Server") + (pascal_case(item.name) or "Tool")
    return names.unique(not_a_digit_first(stem), (PARAMS, RESULT))
