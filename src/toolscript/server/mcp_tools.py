"""The tools of the service's MCP endpoint: which there are, for whom, and what calls them."""

from dataclasses import dataclass

from toolscript.core.auth.model import Identity, Scope
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import JsonObject
from toolscript.core.mcp.answers import answered
from toolscript.core.mcp.tools import ServiceTool
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.retrieval.query import SearchType
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.mcp import document_tools
from toolscript.knowledge.mcp.tools import knowledge_tools
from toolscript.knowledge.ports import AsksLibrary
from toolscript.tools.mcp.tools import CatalogDependencies, catalog_tools

LIBRARY = "search_knowledge answers questions from the library, get_passage reads on around a hit."
CATALOG = "search_tools finds which tool of which MCP server could do a task, describe_tool shows its arguments."
DOCUMENTS = "search_documents searches your own documents, if your token allows it."


@dataclass(frozen=True)
class ServiceDependencies:
    """`search_type` is for searches that name none."""

    knowledge: AsksLibrary | None = None
    catalog: CatalogDependencies | None = None
    documents: DocumentRoutes | None = None
    search_type: SearchType = SearchType.HYBRID


class ServiceTools:
    def __init__(self, parts: ServiceDependencies) -> None:
        known = [
            *(knowledge_tools(parts.knowledge, parts.search_type) if parts.knowledge is not None else ()),
            *(catalog_tools(parts.catalog, parts.search_type) if parts.catalog is not None else ()),
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

    def all_are_for(self, identity: Identity) -> bool:
        return all(tool.is_for(identity) for tool in self._tools.values())

    def of(self, identity: Identity) -> list[ServiceTool]:
        return [tool for tool in self._tools.values() if tool.is_for(identity)]

    def find(self, name: str, identity: Identity) -> ServiceTool | None:
        """One that the visitor may not use is not there for it."""
        tool = self._tools.get(name)
        return tool if tool is not None and tool.is_for(identity) else None

    def scope_lacking(self, name: object, identity: Identity) -> Scope | None:
        """What a token would need to have so that its caller could use this tool."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        return None if tool is None or identity.may(tool.scope) else tool.scope


async def call(tool: ServiceTool, identity: Identity, arguments: JsonObject) -> CallResult:
    """Raises InvalidRequest for arguments that are wrong; any other failure is an answer that says so."""
    return await answered(lambda: tool.call(identity, arguments), (InvalidRequest,))
