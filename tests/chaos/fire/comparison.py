"""Whether catalog, index and skill vectors are what the model says. Answers what differs, in words."""

from collections.abc import Iterator, Mapping

from tests.chaos.fire.model import Known, Model
from toolscript.core.embedding.items import embed_items
from toolscript.core.items import StoredItem
from toolscript.core.retrieval.model import Ask, Fields
from toolscript.core.taxonomy import Skill, SuggestionState
from toolscript.server.stores import Stores
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.doctor import Doctor
from toolscript.tools.indexing.versions import Opened
from toolscript.tools.model.centroids import Centroid, Counted, SkillState, added_up

MOST = 1_000_000


class Comparison:
    def __init__(self, stores: Stores, opened: Opened, model: Model) -> None:
        self._stores = stores
        self._opened = opened
        self._model = model

    async def differences(self) -> list[str]:
        stored = {one.item.key: one for one in await self._everything()}
        found = [*self._of_catalog(stored)]
        fields = await self._fields([one.id for one in stored.values()])
        found += self._of_index(stored, fields)
        stores = self._stores
        examined = await Doctor(stores.catalog, stores.dirty, stores.skill_vectors, self._opened).examine()
        found += [] if examined.healthy else [f"doctor: {examined}"]
        return found + await self._of_skills(stored) + await self._of_suggestions(stored)

    async def _everything(self) -> list[StoredItem]:
        ids = [seen.id for seen in await self._stores.catalog.scan(0, MOST)]
        return list(await self._stores.catalog.items(ids))

    async def _fields(self, ids: list[int]) -> dict[int, Fields]:
        found: dict[int, Fields] = {}
        for start in range(0, len(ids), 1000):
            found.update(await self._opened.index.fields(ids[start : start + 1000]))
        return found

    def _of_catalog(self, stored: Mapping[str, StoredItem]) -> Iterator[str]:
        for key in sorted(stored.keys() ^ self._model.items.keys()):
            yield f"{key}: {'in the catalog only' if key in stored else 'missing'}"
        for key, one in stored.items():
            if (known := self._model.items.get(key)) is None:
                continue
            if one.item != known.item:
                yield f"{key}: {one.item} is not {known.item}"
            if (assigned := _assigned(one)) != known.assigned:
                yield f"{key}: assigned {assigned}, not {known.assigned} ({known.item.description})"
            if one.needs_skills:
                yield f"{key}: nobody has looked at it"

    def _of_index(self, stored: Mapping[str, StoredItem], fields: Mapping[int, Fields]) -> Iterator[str]:
        for key, one in stored.items():
            point = fields.get(one.id)
            if point is None:
                yield f"{key}: no point"
            elif (tuple(point["skill_ids"]), point["primary_skill_id"]) != (one.skill_ids, one.primary_skill_id):  # type: ignore[arg-type]
                yield f"{key}: the point says {point['skill_ids']}, the catalog {one.skill_ids}"

    async def _of_skills(self, stored: Mapping[str, StoredItem]) -> list[str]:
        expected = await self._sums()
        generation = self._opened.generation.id
        left = [one.skill.id for one in await self._stores.skill_vectors.behind(generation, MOST)]
        found = [f"skills still behind: {left}"] if left else []
        await self._stores.skill_vectors.all_behind(generation)
        states = {one.skill.id: one for one in await self._stores.skill_vectors.behind(generation, MOST)}
        if states.keys() != self._model.active.keys():
            found.append(f"skills {sorted(states)} are not {sorted(self._model.active)}")
        for name, state in states.items():
            found += self._of_skill(state, expected.get(name, Centroid.nothing()))
            found += await self._of_skill_point(state)
        return found

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
        said = fields and (fields["id"], fields["description"], fields["is_active"], fields["tool_count"])
        if said != (skill.id, skill.description, skill.is_active, state.total.members):
            return [f"{skill.id}: the point says {said}, not {skill} with {state.total.members}"]
        vector = state.total.mean()
        if vector is None:
            (vector,) = await HashEmbedder().embed_passages([skill.text])
        nearest = (await self._opened.skills.search(Ask(vector=vector, exact=True, limit=1000))).dense or ()
        score = next((hit.score for hit in nearest if hit.id == skill.point_id), 0.0)
        return [] if score > 1 - 1e-5 else [f"{skill.id}: its point is {score} like its items"]

    async def _sums(self) -> dict[str, Centroid]:
        known: list[Known] = list(self._model.items.values())
        vectors = await embed_items(HashEmbedder(), [one.item for one in known])
        return added_up(
            Counted(0, "", vector, {skill: round(10_000 * sure) for skill, sure, _ in one.assigned})
            for one, vector in zip(known, vectors, strict=True)
        )

    async def _of_suggestions(self, stored: Mapping[str, StoredItem]) -> list[str]:
        keys = {one.id: key for key, one in stored.items()}
        asked, decided = {}, {}
        for one in await self._stores.suggestions.page(0, MOST, None):
            if one.state is not SuggestionState.PENDING:
                decided[one.suggested.key] = (one.state, one.skill_id)
            elif ids := await self._stores.suggestions.asked_by(one.id, 0, MOST):
                asked[one.suggested.key] = {keys[id_] for id_ in ids}
        expected = {name: (one.state, one.skill) for name, one in self._model.decided.items()}
        found = [] if asked == self._model.asked() else [f"asked: {asked} is not {self._model.asked()}"]
        return found + ([] if decided == expected else [f"decided: {decided} is not {expected}"])


def _assigned(stored: StoredItem) -> tuple[tuple[str, float, str], ...]:
    return tuple((one.skill_id, one.confidence, one.source.value) for one in stored.assignments)
