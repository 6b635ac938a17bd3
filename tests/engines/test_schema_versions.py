"""Versions of the program side by side on one database, and the command `toolscript migrate`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.conftest import fresh_database
from tests.e2e.terminals import in_a_terminal
from tests.support.audit_entries import by_me
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.postgres.migrate import FOLDER, downgrade, known_revisions, schema_status, upgrade
from toolscript.core.postgres.pool import Pool
from toolscript.core.postgres.schema import BASELINE, REVISION, require_current_schema
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("SK-002")

NEXT = f"{int(REVISION) + 1:04}"
LATER = '''"""Something that a later version needs."""

from alembic import op

revision = "{revision}"
down_revision = "{before}"
oldest_code = "{oldest}"


def upgrade() -> None:
    op.execute("CREATE TABLE mcp.later (id bigint)")


def downgrade() -> None:
    op.execute("DROP TABLE mcp.later")
'''


def migrated_by_a_later_version(url: str, folder: Path, oldest: str) -> None:
    """Add a migration that supports programs from `oldest` on."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = LATER.format(revision=NEXT, before=REVISION, oldest=oldest)
    (folder / "versions" / f"{NEXT}_later.py").write_text(text, "utf-8")
    upgrade(url, folder=folder)


def toolscript(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolscript", *arguments],
        env={**os.environ, "TOOLSCRIPT_POSTGRES_URL": url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def count_items(url: str) -> int | None:
    """Return the number of items; None without the table."""
    with psycopg.connect(url) as conn:
        if conn.execute("SELECT to_regclass('mcp.items')").fetchone() == (None,):
            return None
        row = conn.execute("SELECT count(*) FROM mcp.items").fetchone()
    return None if row is None else int(row[0])


def fill(url: str, folder: Path) -> None:
    items = [{"server": "fs", "name": name, "description": "Works with files."} for name in ("read", "write")]
    file = folder / "items.jsonl"
    file.write_text("\n".join(map(json.dumps, items)), "utf-8")
    assert toolscript(url, "sync", str(file)).returncode == 0


async def test_a_program_runs_on_a_later_compatible_schema(postgres_url: str, pool: Pool, tmp_path: Path) -> None:
    migrated_by_a_later_version(postgres_url, tmp_path / "later", oldest=REVISION)
    await require_current_schema(pool)
    fill(postgres_url, tmp_path)
    assert count_items(postgres_url) == 2


def test_the_migration_of_an_empty_database_is_one_entry_of_the_audit(engines: Settings) -> None:
    with fresh_database(engines, "template1") as url:
        for _ in range(2):
            assert toolscript(url, "migrate", "--no-skills").returncode == 0
        assert by_me({"TOOLSCRIPT_POSTGRES_URL": url}, "schema.migrate") == [("schema.migrate", 1)]


@pytest.mark.nightly
def test_migrate_leaves_a_later_compatible_schema_unchanged(postgres_url: str, tmp_path: Path) -> None:
    migrated_by_a_later_version(postgres_url, tmp_path / "later", oldest=REVISION)
    done = toolscript(postgres_url, "migrate", "--no-skills")
    assert done.returncode == 0, done.stderr
    assert f"at {NEXT}, newer than {REVISION} and compatible with it" in done.stderr
    assert schema_status(postgres_url).current == NEXT


@pytest.mark.parametrize("command", [["migrate"], ["changes", "list"], ["worker", "--drain"], ["serve"]])
def test_a_later_incompatible_schema_is_rejected_in_one_line_with_a_hint(
    command: list[str], postgres_url: str, tmp_path: Path
) -> None:
    migrated_by_a_later_version(postgres_url, tmp_path / "later", oldest=NEXT)
    refused = toolscript(postgres_url, *command)
    assert refused.returncode == 2
    error, hint = [line for line in refused.stderr.splitlines() if line.startswith(("error", "hint"))]
    assert f"schema is at {NEXT} and serves programs from {NEXT} on" in error
    assert "update toolscript" in hint
    assert "toolscript migrate" not in refused.stderr
    assert "Traceback" not in refused.stderr


async def test_an_older_schema_must_be_migrated(postgres_url: str, pool: Pool) -> None:
    downgrade(postgres_url, BASELINE)
    with pytest.raises(SetupError, match=f"at {BASELINE}") as refused:
        await require_current_schema(pool)
    assert refused.value.hint == "run `toolscript migrate`"


async def test_a_database_without_a_schema_must_be_migrated(postgres_url: str, pool: Pool) -> None:
    downgrade(postgres_url, "base")
    with pytest.raises(SetupError, match="no schema yet"):
        await require_current_schema(pool)


def test_every_migration_records_which_programs_the_schema_supports(postgres_url: str) -> None:
    *_, before, last = known_revisions()
    assert schema_status(postgres_url).oldest_code == last.oldest_code
    assert downgrade(postgres_url, before.id).oldest_code in (before.oldest_code, None)
    assert upgrade(postgres_url).oldest_code == last.oldest_code


def test_an_older_program_does_not_undo_a_later_schema(postgres_url: str, tmp_path: Path) -> None:
    migrated_by_a_later_version(postgres_url, tmp_path / "later", oldest=REVISION)
    with pytest.raises(SetupError, match="cannot undo"):
        downgrade(postgres_url, "base")


def test_the_revisions_are_shown_with_what_is_applied(postgres_url: str) -> None:
    downgrade(postgres_url, BASELINE)
    result = toolscript(postgres_url, "migrate", "--show")
    assert result.returncode == 0
    assert f"database: {BASELINE}" in result.stdout
    assert ["applied" in line for line in result.stdout.splitlines() if line.startswith((BASELINE, "0016"))] == [
        True,
        False,
    ]
    data = json.loads(toolscript(postgres_url, "migrate", "--show", "--json").stdout)
    assert (data["current"], data["needed"], data["is_newer"]) == (BASELINE, REVISION, False)
    assert [row["id"] for row in data["revisions"]] == [revision.id for revision in known_revisions()]


@pytest.mark.nightly
def test_without_a_terminal_nothing_is_deleted_without_confirmation(postgres_url: str, tmp_path: Path) -> None:
    fill(postgres_url, tmp_path)
    refused = toolscript(postgres_url, "migrate", "--down-to", "base")
    assert (refused.returncode, count_items(postgres_url)) == (2, 2)
    assert "add --yes" in refused.stderr
    assert toolscript(postgres_url, "migrate", "--down-to", "base", "--yes").returncode == 0
    assert count_items(postgres_url) is None


@pytest.mark.nightly
@pytest.mark.parametrize(("answer", "left"), [("n", 2), ("y", None)])
def test_at_a_terminal_it_prompts_and_lists_what_is_undone(
    answer: str, left: int | None, postgres_url: str, tmp_path: Path
) -> None:
    fill(postgres_url, tmp_path)
    environment = {**os.environ, "TOOLSCRIPT_POSTGRES_URL": postgres_url}
    with in_a_terminal(environment, tmp_path, "migrate", "--down-to", "base") as terminal:
        terminal.expect(f"undoes {BASELINE}: The schema of catalog, documents and logs")
        terminal.expect("delete the data of these revisions permanently?")
        terminal.type(answer)
        is_done = terminal.ended() == 0
    assert (is_done, count_items(postgres_url)) == (left is None, left)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("revision", "message"),
    [("nonsense", "there is no revision 'nonsense'"), (REVISION, f"which is before {REVISION}")],
)
def test_an_impossible_downgrade_is_rejected_in_one_line_with_a_hint(
    revision: str, message: str, postgres_url: str
) -> None:
    downgrade(postgres_url, BASELINE)
    refused = toolscript(postgres_url, "migrate", "--down-to", revision, "--yes")
    error, hint = refused.stderr.splitlines()
    assert refused.returncode == 2
    assert message in error
    assert "toolscript migrate" in hint
    with pytest.raises(InvalidRequest):
        downgrade(postgres_url, revision)
