"""Two runs over the same files."""

from dataclasses import dataclass, field

from tests.unit.knowledge.ingest.ingest_builders import FOLDER, FilesInMemory, Place, text_of
from toolscript.knowledge.model.ingest import IngestOutcome, Reading
from toolscript.knowledge.model.library import source_id

BEES = f"{FOLDER}/bees.md"


@dataclass
class ChangedBeforeItsTurn(FilesInMemory):
    """Changes a file right after it is read, and has another run ingest the change."""

    place: Place = field(default_factory=Place)
    newer: str = ""

    async def read(self, path: str) -> Reading:
        reading = await super().read(path)
        if self.newer:
            self.texts[path], self.newer = self.newer, ""
            await self.place.run(FilesInMemory(self.texts), at_once=1)
        return reading


async def test_an_older_reading_does_not_replace_a_newer_state_of_another_run() -> None:
    place = Place()
    newer = text_of("Keeping bees", "Now they are fed honey.")
    files = ChangedBeforeItsTurn(
        {BEES: text_of("Keeping bees", "Feed sugar in autumn.")}, place=place, newer=newer
    )
    await place.run(files, at_once=1)
    chunks = await place.library.passage(source_id(BEES), 0, 99)
    assert ["honey" in chunk.content for chunk in chunks] == [True]
    assert (await place.run(FilesInMemory({BEES: newer}))).outcomes == {IngestOutcome.UNCHANGED: 1}
