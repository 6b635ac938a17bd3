"""Every migration declares which programs can use its schema: see CONTRIBUTING.md, a change of the database."""

import re

from toolscript.core.postgres.migrate import FOLDER, known_revisions
from toolscript.core.postgres.schema import BASELINE, REVISION

DECLARED = re.compile(r'^oldest_code = "\d{4}"$', re.MULTILINE)


def test_every_migration_declares_the_oldest_code_that_it_serves() -> None:
    files = sorted((FOLDER / "versions").glob("*.py"))
    assert [file.name for file in files if not DECLARED.search(file.read_text("utf-8"))] == []
    assert len(files) == len(known_revisions())


def test_revisions_are_numbers_of_four_digits_in_order_and_the_last_is_the_programs_own() -> None:
    ids = [known_revision.id for known_revision in known_revisions()]
    assert ids[0] == BASELINE
    assert ids == [f"{number:04}" for number in range(int(BASELINE), int(BASELINE) + len(ids))]
    assert ids[-1] == REVISION


def test_no_migration_serves_later_code_or_code_that_an_earlier_one_dropped() -> None:
    revisions = known_revisions()
    oldest = [revision.oldest_code for revision in revisions]
    assert [revision.id for revision in revisions if revision.oldest_code > revision.id] == []
    assert oldest == sorted(oldest)
