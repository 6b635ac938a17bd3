"""Items and skills of the catalog as points of their indexes."""

from toolscript.model.index import Point, type_skills
from toolscript.model.item_text import item_words, pack_stems, stems_of_words, terms_of_fields, terms_of_words
from toolscript.model.items import StoredItem
from toolscript.model.models import Vector
from toolscript.model.skill_vectors import SkillState
from toolscript.model.words import words_of

MAX_DESCRIPTION = 4_000


def point_of(stored: StoredItem, vector: Vector) -> Point:
    item = stored.item
    words = item_words(item)
    fields = {
        "db_id": stored.id,
        "type": item.kind.value,
        "server": item.server,
        "name": item.name,
        "description": item.description[:MAX_DESCRIPTION],
        "skill_ids": list(stored.skill_ids),
        "primary_skill_id": stored.primary_skill_id,
        "is_active": stored.is_active,
        "type_skill": type_skills(item.kind, stored.skill_ids),
        "stems": pack_stems(stems_of_words(words)),
    }
    return Point(stored.id, stored.version, vector, terms_of_words(item, words), fields)


def skill_point_of(state: SkillState, vector: Vector) -> Point:
    skill = state.skill
    words = {
        "name": words_of(skill.name),
        "description": words_of(" ".join((skill.description, *skill.keywords, *skill.examples))),
    }
    fields = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tool_count": state.total.members,
        "is_active": skill.is_active,
    }
    return Point(skill.point_id, state.version, vector, terms_of_fields(words), fields)
