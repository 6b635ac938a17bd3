"""Tools as TypeScript for a model to read: the types of their arguments and results, and nothing that runs."""

from collections.abc import Sequence

from toolscript.core.items import Item, tool_id
from toolscript.gateway.typescript.module import TypedTool, typed_tools
from toolscript.gateway.typescript.text import line_comment
from toolscript.gateway.typescript.types import ANY_OBJECT, accepts_empty_object, declaration, expression


def tool_declarations(items: Sequence[Item]) -> str:
    """Return a signature per tool, under the name that calls it, after the types that they refer to."""
    tools = typed_tools(items)
    types = [
        declaration(declared, compact=True).removeprefix("export ")
        for tool in tools
        for declared in tool.needed_by_name
    ]
    return "".join([*types, *map(_signature, tools)]).rstrip()


def _signature(tool: TypedTool) -> str:
    item = tool.tool.item
    params = expression(tool.where_used(tool.tool.params_name), "", compact=True)
    optional = "?" if accepts_empty_object(tool.params, tool.declared) else ""
    result = expression(tool.where_used(tool.tool.result_name), "", compact=True)
    returns = "" if tool.result == ANY_OBJECT else f": {result}"
    called = f"{tool_id(item.server, item.name)}(params{optional}: {params}){returns}"
    return f"{line_comment(item.description, '')}{called}\n"
