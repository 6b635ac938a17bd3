"""The tools that an installation has, and which of them a visitor may know of."""

from toolscript.errors import InvalidRequest
from toolscript.model.items import JsonObject
from toolscript.model.servers import CallResult
from toolscript.model.tenancy import Scope, Visitor
from toolscript.surfaces.mcp.answering import answered
from toolscript.surfaces.mcp_service.catalog_tools import catalog_tools
from toolscript.surfaces.mcp_service.document_tools import document_tools
from toolscript.surfaces.mcp_service.knowledge_tools import knowledge_tools
from toolscript.surfaces.mcp_service.parts import ServiceParts, ServiceTool

LIBRARY = "search_knowledge answers questions from the library, get_passage reads on around a hit."
CATALOG = "search_tools finds which tool of which MCP server could do a task, describe_tool shows its arguments."
DOCUMENTS = "search_documents searches your own documents, if your token allows it."


class ServiceTools:
    def __init__(self, parts: ServiceParts) -> None:
        known = [
            *(knowledge_tools(parts.knowledge, parts.search_type) if parts.knowledge is not None else ()),
            *(catalog_tools(parts.catalog) if parts.catalog is not None else ()),
            *(document_tools(parts.documents) if parts.documents is not None else ()),
        ]
        self._tools = {tool.name: tool for tool in known}
        there = ((parts.knowledge, LIBRARY), (parts.catalog, CATALOG), (parts.documents, DOCUMENTS))
        # The same for every visitor: whoever is asked for it does not know who asks.
        self.instructions = " ".join(said for part, said in there if part is not None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Those that a token can be of use with."""
        return tuple(dict.fromkeys(tool.scope for tool in self._tools.values()))

    def all_are_for(self, visitor: Visitor) -> bool:
        return all(tool.is_for(visitor) for tool in self._tools.values())

    def of(self, visitor: Visitor) -> list[ServiceTool]:
        return [tool for tool in self._tools.values() if tool.is_for(visitor)]

    def find(self, name: str, visitor: Visitor) -> ServiceTool | None:
        """One that the visitor may not use is not there for it."""
        tool = self._tools.get(name)
        return tool if tool is not None and tool.is_for(visitor) else None

    def scope_lacking(self, name: object, visitor: Visitor) -> Scope | None:
        """What a token would need to have so that its caller could use this tool."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        return None if tool is None or visitor.may(tool.scope) else tool.scope


async def call(tool: ServiceTool, visitor: Visitor, arguments: JsonObject) -> CallResult:
    """Raises InvalidRequest for arguments that are wrong; any other failure is an answer that says so."""
    return await answered(lambda: tool.call(visitor, arguments), (InvalidRequest,))
