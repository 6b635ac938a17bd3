"""Each tool with the types of what it takes and gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolscript.model.items import Item

from .crossings import without_wide_crossings
from .names import Names
from .naming import NamedTool, named_tools
from .nodes import ANY_OBJECT, UNKNOWN, Declaration, Named, Node, names_in
from .schema_types import SchemaTypes


@dataclass(frozen=True)
class TypedTool:
    """`declared` has the tool's types by name."""

    tool: NamedTool
    declared: Mapping[str, Node]
    declarations: tuple[Declaration, ...]

    @property
    def params(self) -> Node:
        return self.declared[self.tool.params_name]

    @property
    def result(self) -> Node:
        return self.declared[self.tool.result_name]

    @property
    def needed_by_name(self) -> list[Declaration]:
        """The types that others refer to; the rest can stand where it is used."""
        referred = {name for one in self.declarations for name in names_in(one.type)}
        return [one for one in self.declarations if one.name in referred]

    def where_used(self, name: str) -> Node:
        is_needed = any(one.name == name for one in self.needed_by_name)
        return Named(name) if is_needed else self.declared[name]


def typed_tools(items: Sequence[Item]) -> list[TypedTool]:
    """Types are made in the order of the tools' names, so that the order of the items changes no name."""
    names = Names()
    tools = named_tools(items, names)
    in_order = sorted(tools, key=lambda one: (one.item.server, one.item.name))
    typed = {one.stem: _typed(one, names) for one in in_order}
    return [typed[one.stem] for one in tools]


def _typed(tool: NamedTool, names: Names) -> TypedTool:
    made = [
        *_declarations(tool.item.input_schema, tool.params_name, names),
        *_declarations(tool.item.output_schema, tool.result_name, names),
    ]
    narrowed = without_wide_crossings(made)
    return TypedTool(tool, {one.name: one.type for one in narrowed}, narrowed)


def _declarations(schema: object, name: str, names: Names) -> list[Declaration]:
    """Arguments and structured results are objects, also where a schema does not say so."""
    root, *others = SchemaTypes(schema, name, names).declarations()
    return [replace(root, type=ANY_OBJECT) if root.type == UNKNOWN else root, *others]
