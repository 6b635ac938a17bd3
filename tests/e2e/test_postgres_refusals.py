"""A PostgreSQL that refuses connections: every command reports the reason at once."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run_here


def _with(url: str, *, password: str = "", database: str = "") -> str:
    address = urlsplit(url)
    netloc = f"{address.username}:{password or address.password}@{address.hostname}:{address.port}"
    return address._replace(netloc=netloc, path=f"/{database}" if database else address.path).geturl()


@pytest.mark.skipif(
    bool(os.environ.get("TOOLSCRIPT_TEST_PGBOUNCER")),
    reason="a pooler keeps who asks for a database that is not there waiting until it tries again",
)
@pytest.mark.parametrize("arguments", [("worker", "--drain"), ("serve", "--port", "0"), ("sync",), ("migrate",)])
def test_a_wrong_password_and_a_database_that_is_not_there_are_named(
    installation: Installation, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    mine, url = installation.environment, installation.environment["TOOLSCRIPT_POSTGRES_URL"]
    if arguments == ("sync",):
        arguments = ("sync", str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(1))))
    wrong = {**mine, "TOOLSCRIPT_POSTGRES_URL": _with(url, password="hunter2")}
    message = run_here(wrong, *arguments, code=2).stderr
    assert "authentication failed" in message
    assert "TOOLSCRIPT_POSTGRES_URL" in message
    assert "hunter2" not in message
    elsewhere = {**mine, "TOOLSCRIPT_POSTGRES_URL": _with(url, database="not_there")}
    message = run_here(elsewhere, *arguments, code=2).stderr
    assert 'database "not_there" does not exist' in message
    assert "hint: `createdb not_there` creates it" in message
