"""Compares catalog and indexes in one pass over both, page by page, and marks differences to be indexed again."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.model import PointVersion
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.indexing.versions import Opened
from toolscript.tools.ports import Catalog, DirtySet, SkillVectors

PAGE = 5_000
MAX_SHOWN = 20

Scan = Callable[[int, int], Awaitable[Sequence[PointVersion]]]

Suspect = tuple[PointVersion | None, PointVersion | None]

# Id and namespace: a point in the wrong namespace is one too many there, and missing where it belongs.
Key = tuple[int, str]


@dataclass(frozen=True)
class DoctorReport:
    """`pending` items are dirty and will be indexed: they count in none of the other numbers."""

    items: int = 0
    points: int = 0
    missing: int = 0
    stale: int = 0
    extra: int = 0
    pending: int = 0
    failing: tuple[tuple[int, str], ...] = ()
    skills: int = 0
    wrong_skills: int = 0
    repaired: bool = False

    @property
    def healthy(self) -> bool:
        return not (self.missing or self.stale or self.extra or self.failing or self.wrong_skills)


class Doctor:
    def __init__(self, catalog: Catalog, dirty: DirtySet, skill_vectors: SkillVectors, opened: Opened) -> None:
        self._catalog = catalog
        self._dirty = dirty
        self._skill_vectors = skill_vectors
        self._index = opened.index
        self._skills = opened.skills
        self._index_version = opened.index_version.id

    async def examine(self, *, repair: bool = False, on_progress: OnProgress = silent) -> DoctorReport:
        total = await self._catalog.count()
        counts: Counter[str] = Counter()
        async for page in _pages(_side_by_side(self._catalog.scan, self._index.scan)):
            counts["items"] += sum(item is not None for item, _ in page)
            counts["points"] += sum(point is not None for _, point in page)
            await self._recheck([pair for pair in page if pair[0] != pair[1]], counts, repair=repair)
            on_progress(Progress("examine", counts["items"], total))
        pending = await self._dirty.pending(self._index_version)
        failing = await self._dirty.failing(self._index_version, MAX_SHOWN)
        await self._examine_skills(counts, repair=repair)
        return DoctorReport(**counts, pending=pending.total, failing=tuple(failing), repaired=repair)

    async def _examine_skills(self, counts: Counter[str], *, repair: bool) -> None:
        """Compare the points with the record, read before and after them: a point may be written meanwhile."""
        minimum = await self._skill_vectors.written(self._index_version)
        points = {seen.id: seen async for seen in _all(self._skills.scan)}
        maximum = await self._skill_vectors.written(self._index_version)
        behind = [id_ for id_, (version, _) in minimum.items() if version and _older(points.get(id_), version)]
        ahead = [seen for seen in points.values() if seen.id not in maximum or seen.version > maximum[seen.id][1]]
        counts["skills"], counts["wrong_skills"] = len(maximum), len(behind) + len(ahead)
        if repair and (behind or ahead):
            # After a restored backup a point can be newer than its skill, and would reject the update.
            await self._skills.remove(ahead)
            await self._skill_vectors.all_behind(self._index_version)

    async def _recheck(self, suspects: Sequence[Suspect], counts: Counter[str], *, repair: bool) -> None:
        """Check the differences again, in this order, since items change while the two sides are read.

        An item that is not dirty has been indexed; so if its version has not changed, its point must match.
        """
        if not suspects:
            return
        keys = [_key(item or point) for item, point in suspects]
        ids = list(dict.fromkeys(id_ for id_, _ in keys))
        dirty = await self._dirty.are_dirty(self._index_version, ids)
        points = await self._points_again(ids)
        now = {(row.id, row.namespace): row.version for row in await self._catalog.items(ids) if row.is_active}
        wrong: dict[Key, PointVersion | None] = {}
        for key, (item, _) in zip(keys, suspects, strict=True):
            verdict = _verdict(points.get(key), now.get(key))
            changed = now.get(key) != (item.version if item else None)
            if verdict and not changed and key[0] not in dirty:
                counts[verdict] += 1
                wrong[key] = points.get(key)
        if repair and wrong:
            await self._repair(wrong, now)

    async def _points_again(self, ids: Sequence[int]) -> dict[Key, PointVersion]:
        """Read the points again, with one scan over the range of ids instead of one request each."""
        points: dict[Key, PointVersion] = {}
        after = ids[0] - 1
        while after < ids[-1] and (page := await self._index.scan(after, PAGE)):
            points.update((_key(point), point) for point in page)
            after = page[-1].id
        return points

    async def _repair(self, wrong: Mapping[Key, PointVersion | None], now: Mapping[Key, int]) -> None:
        """Mark the items dirty. Remove points newer than their item first, as after a restored backup: they would
        reject the update."""
        ahead = [point for key, point in wrong.items() if point and point.version > now.get(key, -1)]
        await self._index.remove(ahead)
        await self._dirty.mark(self._index_version, list(dict.fromkeys(id_ for id_, _ in wrong)))


def _older(point: PointVersion | None, version: int) -> bool:
    return point is None or point.version < version


def _key(seen: PointVersion | None) -> Key:
    return (0, "") if seen is None else (seen.id, seen.namespace or DEFAULT_NAMESPACE)


def _verdict(point: PointVersion | None, item_version: int | None) -> str | None:
    if point is None:
        return None if item_version is None else "missing"
    if item_version is None:
        return "extra"
    return None if point.version == item_version else "stale"


async def _pages(pairs: AsyncIterator[Suspect]) -> AsyncIterator[list[Suspect]]:
    page: list[Suspect] = []
    async for pair in pairs:
        page.append(pair)
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


async def _side_by_side(left: Scan, right: Scan) -> AsyncIterator[Suspect]:
    """Merge both sides in order of id and namespace; yield each once, with None for a side that lacks it."""
    lefts, rights = _all(left), _all(right)
    version, other = await anext(lefts, None), await anext(rights, None)
    while version or other:
        if other is None or (version and _key(version) < _key(other)):
            yield version, None
            version = await anext(lefts, None)
        elif version is None or _key(other) < _key(version):
            yield None, other
            other = await anext(rights, None)
        else:
            yield version, other
            version, other = await anext(lefts, None), await anext(rights, None)


async def _all(scan: Scan) -> AsyncIterator[PointVersion]:
    after = 0
    while page := await scan(after, PAGE):
        for seen in page:
            yield seen
        after = page[-1].id
