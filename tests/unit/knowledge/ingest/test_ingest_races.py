"""Two runs over the same files."""

from dataclasses import dataclass, field

from tests.unit.knowledge.ingest.ingest_builders import FOLDER, FilesInMemory, Place, text_of
from toolscript.knowledge.model.ingest import IngestOutcome, Reading
from toolscript.knowledge.model.library import source_id

BEES = f"{FOLDER}/bees.md"


@dataclass
class ChangedBeforeItsTurn(FilesInMemory):
    """As soon as it was read, it is changed, and another run ingests the change."""

    place: Place = field(default_factory=Place)
    newer: str = ""

    async def read(self, path: str) -> Reading:
        reading = await super().read(path)
        if self.newer:
            self.texts[path], self.newer = self.newer, ""
            await self.place.run(FilesInMemory(self.texts), at_once=1)
        return reading


async def test_what_was_read_before_another_run_ingested_a_newer_state_is_not_put_in_its_place() -> None:
    place = Place()
    newer = text_of("Keeping bees", "Now they are fed honey.")
    files = ChangedBeforeItsTurn(
        {BEES: text_of("Keeping bees", "Feed sugar in autumn.")}, place=place, newer=newer
    )
    await place.run(files, at_once=1)
    chunks = await place.library.passage(source_id(BEES), 0, 99)
    assert ["honey" in chunk.content for chunk in chunks] == [True]
    assert (await place.run(FilesInMemory({BEES: newer}))).outcomes == {IngestOutcome.UNCHANGED: 1}
