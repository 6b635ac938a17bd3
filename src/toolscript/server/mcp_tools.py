"""The tools of the service's MCP endpoint, filtered by the scopes of the identity."""

import logging
from dataclasses import dataclass

from toolscript.core.auth.model import Identity, Scope
from toolscript.core.errors import InvalidRequest, ToolscriptError, told_to_clients
from toolscript.core.items import JsonObject
from toolscript.core.mcp.answers import answered, failed
from toolscript.core.mcp.tools import ServiceTool
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.retrieval.query import SearchType
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.mcp import document_tools
from toolscript.knowledge.mcp.tools import knowledge_tools
from toolscript.knowledge.ports import LibrarySearch
from toolscript.tools.mcp.tools import CatalogDependencies, catalog_tools

logger = logging.getLogger(__name__)

LIBRARY = "search_knowledge answers questions from the library, get_passage reads the text around a hit."
CATALOG = "search_tools finds which tool of which MCP server could do a task, describe_tool shows its arguments."
DOCUMENTS = "search_documents searches your own documents, if your token allows it."


@dataclass(frozen=True)
class ServiceDependencies:
    """`search_type` is the default for searches."""

    knowledge: LibrarySearch | None = None
    catalog: CatalogDependencies | None = None
    documents: DocumentRoutes | None = None
    search_type: SearchType = SearchType.HYBRID


class ServiceTools:
    def __init__(self, parts: ServiceDependencies) -> None:
        tools = [
            *(knowledge_tools(parts.knowledge, parts.search_type) if parts.knowledge is not None else ()),
            *(catalog_tools(parts.catalog, parts.search_type) if parts.catalog is not None else ()),
            *(document_tools(parts.documents) if parts.documents is not None else ()),
        ]
        self._tools = {tool.name: tool for tool in tools}
        instructions = (
            (parts.knowledge, LIBRARY),
            (parts.catalog, CATALOG),
            (parts.documents, DOCUMENTS),
        )
        # The same for all clients: instructions are sent before the identity is known.
        self.instructions = " ".join(text for part, text in instructions if part is not None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Scopes that at least one tool requires."""
        return tuple(dict.fromkeys(tool.scope for tool in self._tools.values()))

    def all_are_for(self, identity: Identity) -> bool:
        return all(tool.is_allowed_for(identity) for tool in self._tools.values())

    def of(self, identity: Identity) -> list[ServiceTool]:
        return [tool for tool in self._tools.values() if tool.is_allowed_for(identity)]

    def find(self, name: str, identity: Identity) -> ServiceTool | None:
        """Return the tool; None if it does not exist or the identity lacks its scope."""
        tool = self._tools.get(name)
        return tool if tool is not None and tool.is_allowed_for(identity) else None

    def scope_lacking(self, name: object, identity: Identity) -> Scope | None:
        """Return the scope that the identity lacks for this tool, if any."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        return None if tool is None or identity.may(tool.scope) else tool.scope


async def call(tool: ServiceTool, identity: Identity, arguments: JsonObject) -> CallResult:
    """Call the tool. Raise InvalidRequest for invalid arguments; return any other failure as an error result."""
    return await answered(lambda: tool.call(identity, arguments), (InvalidRequest,), _told)


def _told(error: ToolscriptError) -> CallResult:
    told = told_to_clients(error)
    if told is not error:
        logger.warning("an engine failed a request", extra={"reason": error.message})
    return failed(told)
