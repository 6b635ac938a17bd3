"""The service in a production-like setup, on the real engines, with its own key set."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

import httpx2

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e.commands import command, environment, run_here
from tests.e2e.tenants.embedding import endpoint
from tests.support.reserved_ports import reserved_port
from tests.support.token_issuer import Issuer, an_issuer
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.settings.service import Settings

SOON = 120.0
LOOK_EVERY_SECONDS = 0.05
DIMENSIONS = 64


@dataclass
class Service:
    """A service that can be killed and restarted at the same address."""

    url: str
    port: int
    environment: Mapping[str, str]
    leak: str = ""
    process: "subprocess.Popen[bytes] | None" = None
    log: IO[bytes] | None = None

    def start(self) -> None:
        serve = ["serve", "--port", str(self.port)]
        leaky = [sys.executable, "-m", "tests.e2e.tenants.leaky_service", self.leak, *serve]
        self.process = subprocess.Popen(
            leaky if self.leak else command(*serve),
            env=environment(self.environment),
            stderr=self.log,
            # Its children end with it: all of the group are killed at once.
            start_new_session=True,
        )
        self._until_listening()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _end(self, sign: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        if sign is signal.SIGKILL:
            os.killpg(process.pid, sign)
        else:
            process.send_signal(sign)
        process.wait(SOON)

    def _until_listening(self) -> None:
        ends_at = time.monotonic() + SOON
        while time.monotonic() < ends_at:
            assert self.process is not None
            assert self.process.poll() is None, f"serve ended with {self.process.returncode}: {self._said()}"
            try:
                httpx2.get(f"{self.url}/livez", trust_env=False, verify=False)
            except httpx2.TransportError:
                time.sleep(LOOK_EVERY_SECONDS)
            else:
                return
        raise AssertionError("serve did not listen in time")

    def _said(self) -> str:
        if self.log is None:
            return ""
        self.log.seek(0)
        return self.log.read()[-4000:].decode("utf-8", "replace")


@contextmanager
def served(
    installation: Installation,
    *,
    leak: str = "",
    dimensions: int = DIMENSIONS,
    settings: Mapping[str, str] = MappingProxyType({}),
    **more: str,
) -> Iterator[tuple[Service, Issuer]]:
    """Yield a service; a local endpoint embeds queries and documents, unless settings override it."""
    issuer = an_issuer()
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as log,
        reserved_port() as port,
        endpoint(dimensions) as embeddings,
    ):
        value = {
            **installation.environment,
            "TOOLSCRIPT_JWT_KEYS": str(issuer.write(Path(folder) / "keys.json")),
            "TOOLSCRIPT_JWT_ISSUER": issuer.name,
            "TOOLSCRIPT_EMBEDDING_URL": embeddings,
            "TOOLSCRIPT_EMBEDDING_MODEL": "words",
            "TOOLSCRIPT_EMBEDDING_DIMENSIONS": str(dimensions),
            "TOOLSCRIPT_CURSOR_SECRET": "of the house",
            "TOOLSCRIPT_LOG_LEVEL": "warning",
            # Isolation is tested, not speed, and the machine may be busy.
            "TOOLSCRIPT_DEADLINE_SECONDS": "120",
            **settings,
            **more,
        }
        # `serve` needs the index of tools, too.
        run_here(value, "worker", "--drain")
        service = Service(f"http://127.0.0.1:{port}", port, value, leak, log=log)
        try:
            service.start()
            yield service, issuer
        finally:
            service.stop()


@contextmanager
def own_installation() -> Iterator[Installation]:
    """In a database and under aliases of its own on the engines of the environment, removed at the end."""
    engines = Settings()
    with fresh_database(engines, "template1") as url:
        upgrade(url)
        with fresh_installation(engines, url, "words") as fresh:
            yield fresh


@asynccontextmanager
async def clients(url: str, maximum: int) -> AsyncIterator[httpx2.AsyncClient]:
    limits = httpx2.Limits(max_connections=maximum, max_keepalive_connections=maximum)
    async with httpx2.AsyncClient(
        base_url=url, limits=limits, timeout=SOON, trust_env=False, verify=False
    ) as client:
        yield client
