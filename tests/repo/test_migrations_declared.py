"""Every migration says which programs can run on its schema: see CONTRIBUTING.md, a change of the database."""

import re

from toolscript.core.postgres.migrate import FOLDER, known_revisions
from toolscript.core.postgres.schema import REVISION

DECLARED = re.compile(r'^oldest_code = "\d{4}"$', re.MULTILINE)


def test_every_migration_declares_the_oldest_code_that_it_serves() -> None:
    files = sorted((FOLDER / "versions").glob("*.py"))
    assert [file.name for file in files if not DECLARED.search(file.read_text("utf-8"))] == []
    assert len(files) == len(known_revisions())


def test_revisions_are_numbers_of_four_digits_in_order_and_the_last_is_the_programs_own() -> None:
    ids = [one.id for one in known_revisions()]
    assert ids == [f"{number:04}" for number in range(1, len(ids) + 1)]
    assert ids[-1] == REVISION


def test_no_migration_serves_code_that_is_later_than_itself_or_that_one_before_it_gave_up() -> None:
    revisions = known_revisions()
    oldest = [one.oldest_code for one in revisions]
    assert [one.id for one in revisions if one.oldest_code > one.id] == []
    assert oldest == sorted(oldest)
