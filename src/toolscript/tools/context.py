"""What the log says of the stages of a search: in literal mode to everybody, else to developers."""

import logging
from collections.abc import Iterable

from toolscript.model.queries import SearchType, ToolQuery
from toolscript.model.results import MatchedSkill, ToolHit

logger = logging.getLogger(__name__)


def tell_skills(query: ToolQuery, skills: Iterable[MatchedSkill]) -> None:
    _tell(query, "Stage 1 - Matched skills: %s", ((skill.id, skill.score) for skill in skills))


def tell_tools(query: ToolQuery, hits: Iterable[ToolHit]) -> None:
    _tell(query, "Stage 2 - Matched tools: %s", ((hit.name, hit.score) for hit in hits))


def _tell(query: ToolQuery, line: str, scored: Iterable[tuple[str, float | None]]) -> None:
    """At every search of a busy service it would be most of the log."""
    level = logging.INFO if query.search_type is SearchType.SEMANTIC else logging.DEBUG
    if logger.isEnabledFor(level):
        logger.log(level, line, list(scored))
