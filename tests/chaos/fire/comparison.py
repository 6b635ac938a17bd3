"""Compares catalog, index and skill vectors with the model. Returns the differences as text."""

from collections.abc import Iterator, Mapping

from tests.chaos.fire.model import Known, Model
from toolscript.core.embedding.items import embed_items
from toolscript.core.items import StoredItem
from toolscript.core.retrieval.model import Fields, IndexQuery
from toolscript.core.taxonomy import Skill, SuggestionState
from toolscript.server.stores import Stores
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.doctor import Doctor
from toolscript.tools.indexing.versions import Opened
from toolscript.tools.model.centroids import Centroid, Counted, SkillState, sum_by_skill

MOST = 1_000_000


class Comparison:
    def __init__(self, stores: Stores, opened: Opened, model: Model) -> None:
        self._stores = stores
        self._opened = opened
        self._model = model

    async def differences(self) -> list[str]:
        stored = {item.item.key: item for item in await self._everything()}
        result = [*self._of_catalog(stored)]
        fields = await self._fields([item.id for item in stored.values()])
        result += self._of_index(stored, fields)
        stores = self._stores
        examined = await Doctor(stores.catalog, stores.dirty, stores.skill_vectors, self._opened).examine()
        result += [] if examined.healthy else [f"doctor: {examined}"]
        return result + await self._of_skills(stored) + await self._of_suggestions(stored)

    async def _everything(self) -> list[StoredItem]:
        ids = [seen.id for seen in await self._stores.catalog.scan(0, MOST)]
        return list(await self._stores.catalog.items(ids))

    async def _fields(self, ids: list[int]) -> dict[int, Fields]:
        result: dict[int, Fields] = {}
        for start in range(0, len(ids), 1000):
            result.update(await self._opened.index.fields(ids[start : start + 1000]))
        return result

    def _of_catalog(self, stored: Mapping[str, StoredItem]) -> Iterator[str]:
        for key in sorted(stored.keys() ^ self._model.items.keys()):
            yield f"{key}: {'in the catalog only' if key in stored else 'missing'}"
        for key, item in stored.items():
            if (existing := self._model.items.get(key)) is None:
                continue
            if item.item != existing.item:
                yield f"{key}: {item.item} is not {existing.item}"
            if (assigned := _assigned(item)) != existing.assigned:
                yield f"{key}: assigned {assigned}, not {existing.assigned} ({existing.item.description})"
            if item.needs_skills:
                yield f"{key}: nobody has looked at it"

    def _of_index(self, stored: Mapping[str, StoredItem], fields: Mapping[int, Fields]) -> Iterator[str]:
        for key, item in stored.items():
            point = fields.get(item.id)
            if point is None:
                yield f"{key}: no point"
            elif (tuple(point["skill_ids"]), point["primary_skill_id"]) != (item.skill_ids, item.primary_skill_id):  # type: ignore[arg-type]
                yield f"{key}: the point says {point['skill_ids']}, the catalog {item.skill_ids}"

    async def _of_skills(self, stored: Mapping[str, StoredItem]) -> list[str]:
        expected = await self._sums()
        index_version = self._opened.index_version.id
        left = [item.skill.id for item in await self._stores.skill_vectors.behind(index_version, MOST)]
        result = [f"skills still behind: {left}"] if left else []
        await self._stores.skill_vectors.all_behind(index_version)
        states = {item.skill.id: item for item in await self._stores.skill_vectors.behind(index_version, MOST)}
        if states.keys() != self._model.active.keys():
            result.append(f"skills {sorted(states)} are not {sorted(self._model.active)}")
        for name, state in states.items():
            result += self._of_skill(state, expected.get(name, Centroid.nothing()))
            result += await self._of_skill_point(state)
        return result

    def _of_skill(self, state: SkillState, expected: Centroid) -> Iterator[str]:
        name = state.skill.id
        if state.skill != Skill(name, name, self._model.descriptions[name], is_active=self._model.active[name]):
            yield f"{name}: {state.skill}"
        if (state.total.total != expected.total).any():
            yield f"{name}: the sum differs"
        if (state.total.weight, state.total.members) != (expected.weight, expected.members):
            yield f"{name}: {state.total.members} members, not {expected.members}"

    async def _of_skill_point(self, state: SkillState) -> list[str]:
        skill = state.skill
        fields = (await self._opened.skills.fields([skill.point_id])).get(skill.point_id)
        message = fields and (fields["id"], fields["description"], fields["is_active"], fields["tool_count"])
        if message != (skill.id, skill.description, skill.is_active, state.total.members):
            return [f"{skill.id}: the point says {message}, not {skill} with {state.total.members}"]
        vector = state.total.mean()
        if vector is None:
            (vector,) = await HashEmbedder().embed_texts([skill.text])
        nearest = (await self._opened.skills.search(IndexQuery(vector=vector, exact=True, limit=1000))).dense or ()
        score = next((hit.score for hit in nearest if hit.id == skill.point_id), 0.0)
        return [] if score > 1 - 1e-5 else [f"{skill.id}: its point is {score} like its items"]

    async def _sums(self) -> dict[str, Centroid]:
        existing: list[Known] = list(self._model.items.values())
        vectors = await embed_items(HashEmbedder(), [item.item for item in existing])
        return sum_by_skill(
            Counted(0, "", vector, {skill: round(10_000 * sure) for skill, sure, _ in item.assigned})
            for item, vector in zip(existing, vectors, strict=True)
        )

    async def _of_suggestions(self, stored: Mapping[str, StoredItem]) -> list[str]:
        keys = {item.id: key for key, item in stored.items()}
        requests, decided = {}, {}
        for item in await self._stores.suggestions.page(0, MOST, None):
            if item.state is not SuggestionState.PENDING:
                decided[item.suggested.key] = (item.state, item.skill_id)
            elif ids := await self._stores.suggestions.asked_by(item.id, 0, MOST):
                requests[item.suggested.key] = {keys[id_] for id_ in ids}
        expected = {name: (item.state, item.skill) for name, item in self._model.decided.items()}
        result = [] if requests == self._model.asked() else [f"asked: {requests} is not {self._model.asked()}"]
        return result + ([] if decided == expected else [f"decided: {decided} is not {expected}"])


def _assigned(stored: StoredItem) -> tuple[tuple[str, float, str], ...]:
    return tuple(
        (assignment.skill_id, assignment.confidence, assignment.source.value) for assignment in stored.assignments
    )
