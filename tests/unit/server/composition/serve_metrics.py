"""A server in two processes with metrics. Prints the folder of its metrics."""

import os
import socket
import sys
from collections.abc import Callable
from typing import Any, cast

import uvicorn

from tests.unit.server.composition.observed_app import observed_app, settings_of
from toolscript.core.settings.service import Settings
from toolscript.server.observability import metrics_folder, open_observability
from toolscript.server.processes import bound, run, run_in_processes


async def answer(settings: Settings, shared: socket.socket, folder: str, started: Callable[[], None]) -> None:
    async with open_observability(settings, cast("Any", None), folder) as observability:
        app = observed_app(observability)
        app.add_api_route("/pid", os.getpid)
        config = uvicorn.Config(app, log_config=None)
        started()
        await uvicorn.Server(config).serve(sockets=[shared])


def main(port: int, say: Callable[[str], object]) -> None:
    settings = settings_of({"metrics": True, "processes": 2})
    with metrics_folder(settings) as folder, bound("127.0.0.1", port) as shared:
        say(folder + "\n")
        sys.stdout.flush()
        run_in_processes(
            2, lambda started: run(answer(settings, shared, folder, started)), [shared], end_seconds=20
        )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.stdout.write)
