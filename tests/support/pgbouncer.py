"""A real PgBouncer in transaction mode in front of the PostgreSQL of the tests."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.secured_qdrant import engine_folder, listens

ROOT = Path(__file__).parents[2]


@contextmanager
def pgbouncer(postgres_url: str) -> Iterator[str]:
    """Yield the URL through the bouncer. It serves every database of that PostgreSQL, also later ones."""
    sys.path.append(str(ROOT / "scripts"))
    from engine_parts.pgbouncer import PgBouncer
    from engine_parts.places import places_for
    from engine_parts.ports import choose_port
    from engine_parts.processes import spawn, wait_until

    shared = places_for(ROOT)
    with engine_folder("pgbouncer") as home:
        engine = PgBouncer(type(shared)(shared.root, home), postgres_url)
        with shared.locked(), warnings.catch_warnings():
            # Engines normally outlive the process that starts them; here they do not.
            warnings.simplefilter("ignore", ResourceWarning)
            engine.prepare()
            port = choose_port(None, 1, ())
            launch = engine.launch(port)
            process = spawn(launch)
            assert wait_until(lambda: listens(port), 60), launch.log.read_text()
        try:
            yield behind(postgres_url, port)
        finally:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(process.pid, signal.SIGKILL)
                os.waitpid(process.pid, 0)


def behind(postgres_url: str, port: int) -> str:
    address = urlsplit(postgres_url)
    return address._replace(netloc=f"{address.username}:{address.password}@127.0.0.1:{port}").geturl()
