"""Unless the settings say otherwise: a copy of the index of skills in the memory of a process that serves."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from toolscript.errors import SetupError
from toolscript.ports import Index
from toolscript.search.skill_copy import SkillCopy
from toolscript.service.index_contents import generation_of
from toolscript.service.parts import Stores
from toolscript.settings.service import Settings
from toolscript.sync.skill_management import SkillManagement


def skills_searched(settings: Settings, stores: Stores, skills: Index) -> Index:
    async def written() -> Mapping[int, int]:
        generation = await generation_of(stores, skills)
        if generation is None:
            raise SetupError("nobody follows the live index", hint="run `toolscript reindex` to build it anew")
        versions = await stores.skill_vectors.written(generation)
        return {id_: in_index for id_, (in_index, _) in versions.items()}

    return SkillCopy(skills, written) if settings.skill_copy else skills


def seen_at_once(management: SkillManagement, skills: Index) -> SkillManagement:
    """What is changed through this process is what its next search finds, with a copy as without."""
    if not isinstance(skills, SkillCopy):
        return management
    copy, follow = skills, management.follow

    async def follow_and_forget(only: Collection[str]) -> int:
        try:
            return await follow(only)
        finally:
            copy.forget()

    return replace(management, follow=follow_and_forget)
