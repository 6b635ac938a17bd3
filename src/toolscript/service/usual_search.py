"""A search that names no search type is what the installation has set, whichever surface it came by."""

from toolscript.model.queries import SearchType, SkillQuery, ToolQuery, settled
from toolscript.model.results import SkillAnswer, ToolAnswer
from toolscript.surfaces.http.tool_search import AsksCatalog


class UsualToolSearch:
    def __init__(self, search: AsksCatalog, usual: SearchType) -> None:
        self._search = search
        self._usual = usual

    async def search(self, query: ToolQuery) -> ToolAnswer:
        return await self._search.search(settled(query, self._usual))

    async def skills(self, query: SkillQuery) -> SkillAnswer:
        return await self._search.skills(settled(query, self._usual))
