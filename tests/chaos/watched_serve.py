"""`toolscript serve` that prints, on SIGUSR1, the size of its connection pools and their free connections."""

import json
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from psycopg_pool import AsyncConnectionPool

from toolscript.server import serve as serving

_pools: list[AsyncConnectionPool[Any]] = []
_init = AsyncConnectionPool.__init__


def _remembered(pool: AsyncConnectionPool[Any], *given: Any, **named: Any) -> None:
    _pools.append(pool)
    _init(pool, *given, **named)


def main(port: int, told: Path) -> None:
    patch.object(AsyncConnectionPool, "__init__", _remembered).start()

    def tell(*_: object) -> None:
        lines = (json.dumps({name: pool.get_stats().get(name, 0) for name in NAMES}) for pool in _pools)
        told.write_text("\n".join(lines) + "\n")

    signal.signal(signal.SIGUSR1, tell)
    # Every query is embedded, without a cache.
    patch.object(serving, "CACHED_QUERIES", 1).start()
    serving.serve(host="127.0.0.1", port=port)


NAMES = ("pool_size", "pool_available", "requests_waiting")

if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
