"""What a command had changed when it was stopped is on record in the audit, and said to be incomplete."""

import signal
import subprocess
import time
from pathlib import Path

import psycopg

from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import WAIT_SECONDS, command, environment

ROWS = 20_000
STORED = "SELECT count(*) FROM mcp.items"
ENTRIES = "SELECT count, details->>'stopped' FROM mcp.audit WHERE action = 'items.import'"


def test_an_import_that_is_stopped_midway_leaves_its_entry(installation: Installation, tmp_path: Path) -> None:
    variables = environment(installation.environment)
    file = catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(ROWS))
    with (
        psycopg.connect(installation.environment["TOOLSCRIPT_POSTGRES_URL"], autocommit=True) as conn,
        subprocess.Popen(command("sync", str(file)), env=variables, stderr=subprocess.DEVNULL) as importing,
    ):
        try:
            ends_at = time.monotonic() + WAIT_SECONDS
            while conn.execute(STORED).fetchone() == (0,):
                assert time.monotonic() < ends_at
                time.sleep(0.01)
            importing.send_signal(signal.SIGTERM)
            assert importing.wait(WAIT_SECONDS) == 128 + signal.SIGTERM
        finally:
            importing.kill()
        (stored,) = conn.execute(STORED).fetchone() or (0,)
        ((count, stopped),) = conn.execute(ENTRIES).fetchall()
    assert stopped == "true"
    assert 0 < count <= stored < ROWS
