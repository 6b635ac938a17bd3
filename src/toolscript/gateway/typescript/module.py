"""The module: an interface for what each tool takes and gives, then the tools, grouped by server."""

from collections.abc import Sequence
from urllib.parse import quote

from toolscript.model.items import Item
from toolscript.model.tool_ids import tool_id

from .comments import block_comment, line_comment
from .literals import property_name, string_literal
from .nodes import ANY_OBJECT, Declaration, Named, Node, accepts_nothing_given
from .printing import declaration, expression
from .runtime import ANY_RESULT, CALL_TOOL, HEADER
from .typed_tools import TypedTool, typed_tools


def typescript_module(items: Sequence[Item], *, compact: bool = False) -> str:
    """A TypeScript client for the tools among the items.

    `compact` is the same client in fewer words: types stand where they are used, and a comment is one line.
    """
    tools = typed_tools(items)
    parts = [HEADER, _types(tools, compact), _tools(tools, compact), CALL_TOOL if tools else ""]
    return "\n".join(part for part in parts if part)


def route(item: Item) -> str:
    return f"/tools/{tool_id(_encoded(item.server), _encoded(item.name))}"


def _encoded(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _types(tools: list[TypedTool], compact: bool) -> str:
    if not compact:
        return "\n".join(declaration(one, compact=False) for tool in tools for one in tool.declarations)
    any_result = [Declaration(ANY_RESULT, ANY_OBJECT)] if any(one.result == ANY_OBJECT for one in tools) else []
    needed = [*any_result, *(one for tool in tools for one in tool.needed_by_name)]
    return "".join(declaration(one, compact=True) for one in needed)


def _tools(tools: list[TypedTool], compact: bool) -> str:
    groups: dict[str, list[str]] = {}
    for one in tools:
        method = _compact_method(one) if compact else _method(one)
        groups.setdefault(one.tool.server_key, []).append(method)
    between = "" if compact else "\n"
    texts = [f"  {key}: {{\n{between.join(methods)}  }},\n" for key, methods in groups.items()]
    return f"export const tools = {{\n{''.join(texts)}}};\n"


def _method(one: TypedTool) -> str:
    comment = block_comment((_said(one.tool.item),), " " * 4)
    head = _head(one, one.tool.params_name, one.tool.result_name)
    return f"{comment}    {head} {{\n      {_body(one.tool.item)}\n    }},\n"


def _compact_method(one: TypedTool) -> str:
    comment = line_comment(_said(one.tool.item), " " * 4)
    result: Node = Named(ANY_RESULT) if one.result == ANY_OBJECT else one.where_used(one.tool.result_name)
    params = one.where_used(one.tool.params_name)
    head = _head(one, expression(params, "", compact=True), expression(result, "", compact=True))
    return f"{comment}    {head} {{ {_body(one.tool.item)} }},\n"


def _head(one: TypedTool, params: str, result: str) -> str:
    given = " = {}" if accepts_nothing_given(one.params, one.declared) else ""
    return f"async {property_name(one.tool.item.name)}(params: {params}{given}): Promise<{result}>"


def _body(item: Item) -> str:
    return f"return callTool({string_literal(route(item))}, params);"


def _said(item: Item) -> str:
    return item.description.strip() or tool_id(item.server, item.name)
