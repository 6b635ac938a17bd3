"""Fixtures: the real engines, and a fresh catalog and collection name for each test."""

import asyncio
import faulthandler
import gc
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from hypothesis import Phase, settings
from pymongo import MongoClient

from tests.support.pgbouncer import pgbouncer
from tests.support.turns import turn
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import Qdrant, open_qdrant
from toolscript.core.qdrant.layout import Layout
from toolscript.core.settings.service import Settings
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.qdrant.collection import QdrantDocuments, open_documents
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.testing import HashEmbedder

# How long a test waits for a connection: a busy machine is no reason to fail.
PATIENCE = 60.0

ROOT = Path(__file__).parent.parent

# A machine under load is slow, which must not fail a test.
settings.register_profile("house", deadline=None)
# `make test` must be quick, so it runs fewer generated examples.
settings.register_profile(
    "quick", deadline=None, max_examples=5, database=None, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("house")

# What collecting tests makes stays until the end: nothing of it is garbage. See `pytest_collection_finish`.
gc.disable()

# Folders whose tests start engines, other programs or whole installations.
WHOLE = ("tests/e2e/", "tests/chaos/", "tests/engines/", "tests/gates/", "tests/repo/")
# Fixtures and parameter values that need engines or a model, which not every machine has.
REAL_FIXTURES = {"engines", "model_folder"}
REAL_ADAPTERS = {"fastembed", "mongo", "postgres", "qdrant", "secret_service"}


def needs_engines(item: pytest.Item) -> bool:
    """Return whether a test needs more than Python; `make test` leaves those out."""
    if item.nodeid.startswith(WHOLE) or REAL_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(isinstance(value, str) and value in REAL_ADAPTERS for value in parameters)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Nightly tests may take longer than `faulthandler_timeout`.

    Its report of all threads is read while they run, which sometimes ends CPython 3.11 with a segmentation fault.
    """
    if item.get_closest_marker("nightly"):
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Take turns between workers of a parallel run; their folders share a parent. Without workers, do not wait."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    folder = item.config._tmp_path_factory.getbasetemp().parent  # type: ignore[attr-defined]
    with turn(folder, alone=item.get_closest_marker("alone") is not None):
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need an engine, and run long files first, so that no worker is left with one at the end."""
    for item in items:
        if needs_engines(item):
            item.add_marker("engines")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(("tests/e2e/", "tests/chaos/")))


def pytest_collection_finish() -> None:
    """Freeze modules and tests: the garbage collector need not scan them again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def engines() -> Iterator[Settings]:
    """Return the addresses of the engines: from the environment, or started by `scripts/engines`."""
    if "TOOLSCRIPT_QDRANT_URL" not in os.environ:
        command = [str(ROOT / "scripts" / "engines"), "start"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        for line in lines:
            name, _, value = line.removeprefix("export ").partition("=")
            os.environ[name] = value.strip("'\"")
    settings = Settings()
    with ExitStack() as stack:
        if os.environ.get("TOOLSCRIPT_TEST_PGBOUNCER"):
            _bouncers.append(stack.enter_context(pgbouncer(settings.postgres_url.get_secret_value())))
        yield settings
        _bouncers.clear()
    if _libraries:
        _drop_libraries(settings)


@pytest.fixture(scope="session")
def model_folder() -> str:
    """Return the folder of a real model: TOOLSCRIPT_TEST_MODEL, or a download."""
    return os.environ.get("TOOLSCRIPT_TEST_MODEL", "sentence-transformers/all-MiniLM-L6-v2")


def _database(url: str, name: str) -> str:
    return url.rpartition("/")[0] + "/" + name


def _admin(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(statement.encode())


# The bouncer in front of PostgreSQL if TOOLSCRIPT_TEST_PGBOUNCER is set: see CONTRIBUTING.md.
_bouncers: list[str] = []


def _drop(url: str, name: str, tries: int = 2) -> None:
    """Drop a database. A process that was just killed may still be connected; the server waits five seconds."""
    try:
        _admin(url, f"DROP DATABASE {name}" if tries > 1 else f"DROP DATABASE {name} WITH (FORCE)")
    except psycopg.errors.ObjectInUse:
        _drop(url, name, tries - 1)


def _end_sessions(url: str, name: str) -> None:
    """End the sessions that a bouncer keeps open. Only our own: FORCE would fail on an autovacuum."""
    own = f"datname = '{name}' AND usename = current_user"
    _admin(url, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {own}")


@pytest.fixture(scope="session")
def migrated_database(engines: Settings) -> Iterator[str]:
    """Yield an empty database with our schema, as a template."""
    url = engines.postgres_url.get_secret_value()
    name = f"template_{uuid.uuid4().hex[:12]}"
    _admin(url, f"CREATE DATABASE {name}")
    upgrade(_database(url, name))
    yield name
    _admin(url, f"DROP DATABASE {name}")


@contextmanager
def fresh_database(engines: Settings, template: str, bouncer: str = "") -> Iterator[str]:
    """Yield a fresh database, behind `bouncer` or the default bouncer."""
    bouncer = bouncer or next(iter(_bouncers), "")
    url = engines.postgres_url.get_secret_value()
    name = f"test_{uuid.uuid4().hex[:12]}"
    _admin(url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield _database(bouncer or url, name)
    if bouncer:
        _end_sessions(url, name)
    _drop(url, name)


@pytest.fixture
def postgres_url(engines: Settings, migrated_database: str) -> Iterator[str]:
    with fresh_database(engines, migrated_database) as url:
        yield url


@pytest.fixture
async def pool(postgres_url: str) -> AsyncIterator[Pool]:
    async with open_pool(postgres_url, size=4, wait_seconds=PATIENCE) as opened:
        yield opened


@pytest.fixture
async def indexes(engines: Settings) -> AsyncIterator[QdrantIndexes]:
    """Yield indexes under a unique name, dropped afterwards."""
    alias = f"test_{uuid.uuid4().hex[:12]}"
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        yield QdrantIndexes(connected, alias, Layout())
        await drop_collections(connected, alias)


@pytest.fixture
async def qdrant_documents(engines: Settings) -> AsyncIterator[QdrantDocuments]:
    """Yield a separate document index for vectors of the hash embedder."""
    alias = f"test_{uuid.uuid4().hex[:12]}"
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        card = DocumentCard(HashEmbedder().model)
        yield await open_documents(connected, alias, card, DocumentLayout())
        await drop_collections(connected, alias)


async def drop_collections(connected: Qdrant, alias: str) -> None:
    from qdrant_client import grpc as wire

    for result in (await connected.collections.List(wire.ListCollectionsRequest())).collections:
        if result.name.startswith(f"{alias}__"):
            await connected.collections.Delete(wire.DeleteCollection(collection_name=result.name))


@dataclass(frozen=True)
class Installation:
    """The environment of one installation of the service, all its own."""

    environment: dict[str, str]

    @property
    def settings(self) -> Settings:
        names = {name.removeprefix("TOOLSCRIPT_").lower(): value for name, value in self.environment.items()}
        return Settings.model_validate(names)


# Database names of this process; most of them were never written to.
_libraries: list[str] = []


def library_environment(engines: Settings, alias: str) -> dict[str, str]:
    _libraries.append(alias)
    return {
        "TOOLSCRIPT_MONGO_URL": engines.mongo_url.get_secret_value(),
        "TOOLSCRIPT_MONGO_WRITER_URL": engines.mongo_writer_url.get_secret_value(),
        "TOOLSCRIPT_MONGO_DATABASE": alias,
        "TOOLSCRIPT_QDRANT_CHUNKS_ALIAS": f"{alias}__chunks",
        "TOOLSCRIPT_QDRANT_EXTRACTIONS_ALIAS": f"{alias}__extractions",
    }


def _drop_libraries(engines: Settings) -> None:
    url = engines.mongo_writer_url.get_secret_value() or engines.mongo_url.get_secret_value()
    # The writer can neither list nor drop databases, only their collections.
    with MongoClient[dict[str, object]](url) as client:
        for name in _libraries:
            for collection in ("sources", "chunks", "extractions"):
                client[name].drop_collection(collection)


@contextmanager
def fresh_installation(engines: Settings, postgres_url: str, model_folder: str) -> Iterator[Installation]:
    alias = f"test_{uuid.uuid4().hex[:12]}"
    yield Installation(
        {
            "TOOLSCRIPT_POSTGRES_URL": postgres_url,
            "TOOLSCRIPT_QDRANT_URL": engines.qdrant_url,
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(engines.qdrant_grpc_port),
            "TOOLSCRIPT_QDRANT_ALIAS": alias,
            "TOOLSCRIPT_QDRANT_SKILLS_ALIAS": f"{alias}__skills",
            "TOOLSCRIPT_QDRANT_DOCUMENTS_ALIAS": f"{alias}__documents",
            "TOOLSCRIPT_EMBEDDING_MODEL": model_folder,
            # Tests exceed the rate limit of clients; tests of the limit set it again.
            "TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": "0",
            # Tests read the catalog without a token; tests of what is public set it again.
            "TOOLSCRIPT_PUBLIC_SCOPES": "knowledge:read tools:read",
            # Writes are visible to every process at once; tests of the copy set it again.
            "TOOLSCRIPT_SKILL_COPY": "false",
            # Tests say when the index follows; those of the worker inside `serve` set it again.
            "TOOLSCRIPT_SERVE_WORKER": "false",
            # A busy machine must not degrade answers; tests of the deadline set it again.
            "TOOLSCRIPT_DEADLINE_SECONDS": "120",
            **library_environment(engines, alias),
        }
    )

    async def clean_up() -> None:
        async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
            await drop_collections(connected, alias)

    asyncio.run(clean_up())


@pytest.fixture
def other_model(model_folder: str, tmp_path: Path) -> str:
    """Return the same weights with another pooling and query prefix: another model, with other vectors."""
    if not Path(model_folder).is_dir():
        return "BAAI/bge-small-en-v1.5"
    other = tmp_path / "bge-other"
    other.mkdir()
    for file in Path(model_folder).iterdir():
        (other / file.name).symlink_to(file)
    return str(other)


@pytest.fixture
def installation(engines: Settings, postgres_url: str, model_folder: str) -> Iterator[Installation]:
    with fresh_installation(engines, postgres_url, model_folder) as fresh:
        yield fresh
