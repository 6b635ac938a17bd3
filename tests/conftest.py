"""What tests stand on: the real engines, a fresh catalog and a fresh collection name for each test."""

import asyncio
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
from hypothesis import settings
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

# A machine under load is slow, and that is no fault of what is tested.
settings.register_profile("house", deadline=None)
# `make test` is to answer at once: of generated examples it tries fewer.
settings.register_profile("quick", deadline=None, max_examples=15)
settings.load_profile("house")

# Folders whose tests start engines, other programs or whole installations.
WHOLE = ("tests/e2e/", "tests/chaos/", "tests/engines/", "tests/gates/", "tests/repo/")
# What these fixtures hand out is not on every machine, and these values of parameters name engines and a model.
REAL_FIXTURES = {"engines", "model_folder"}
REAL_ADAPTERS = {"fastembed", "mongo", "postgres", "qdrant"}


def needs_engines(item: pytest.Item) -> bool:
    """Whether a test needs more than Python: `make test` leaves it out."""
    if item.nodeid.startswith(WHOLE) or REAL_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(isinstance(value, str) and value in REAL_ADAPTERS for value in parameters)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """All workers of a parallel run have their folders in one; where there are none, nobody is waited for."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    folder = item.config._tmp_path_factory.getbasetemp().parent  # type: ignore[attr-defined]
    with turn(folder, alone=item.get_closest_marker("alone") is not None):
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what needs an engine. Of several workers none is left at the end with a file that takes long."""
    for item in items:
        if needs_engines(item):
            item.add_marker("engines")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(("tests/e2e/", "tests/chaos/")))


def pytest_collection_finish() -> None:
    """Modules and thousands of tests stay to the end: they are not to be looked through again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def engines() -> Iterator[Settings]:
    """Where the real engines are: named by the environment, or started by `scripts/engines`."""
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
    """A real embedding model: the folder that TOOLSCRIPT_TEST_MODEL names, or else a download."""
    return os.environ.get("TOOLSCRIPT_TEST_MODEL", "sentence-transformers/all-MiniLM-L6-v2")


def _database(url: str, name: str) -> str:
    return url.rpartition("/")[0] + "/" + name


def _admin(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(statement.encode())


# What stands before PostgreSQL where TOOLSCRIPT_TEST_PGBOUNCER is set: see CONTRIBUTING.md.
_bouncers: list[str] = []


def _drop(url: str, name: str, tries: int = 2) -> None:
    """A process that was killed a moment ago may still be connected; the server waits five seconds by itself."""
    try:
        _admin(url, f"DROP DATABASE {name}" if tries > 1 else f"DROP DATABASE {name} WITH (FORCE)")
    except psycopg.errors.ObjectInUse:
        _drop(url, name, tries - 1)


def _end_sessions(url: str, name: str) -> None:
    """A bouncer keeps its sessions when nobody asks any more. Only our own: FORCE stumbles over an autovacuum."""
    own = f"datname = '{name}' AND usename = current_user"
    _admin(url, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {own}")


@pytest.fixture(scope="session")
def migrated_database(engines: Settings) -> Iterator[str]:
    """A database with our schema and nothing in it, for others to be copied from."""
    url = engines.postgres_url.get_secret_value()
    name = f"template_{uuid.uuid4().hex[:12]}"
    _admin(url, f"CREATE DATABASE {name}")
    upgrade(_database(url, name))
    yield name
    _admin(url, f"DROP DATABASE {name}")


@contextmanager
def fresh_database(engines: Settings, template: str, bouncer: str = "") -> Iterator[str]:
    """`bouncer` stands before it, or else what stands before all."""
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
    """Collections under a name of the test's own; all of them gone afterwards."""
    alias = f"test_{uuid.uuid4().hex[:12]}"
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        yield QdrantIndexes(connected, alias, Layout())
        await drop_collections(connected, alias)


@pytest.fixture
async def qdrant_documents(engines: Settings) -> AsyncIterator[QdrantDocuments]:
    """An index of documents of the test's own, for vectors of the embedder without a model."""
    alias = f"test_{uuid.uuid4().hex[:12]}"
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        card = DocumentCard(HashEmbedder().model)
        yield await open_documents(connected, alias, card, DocumentLayout())
        await drop_collections(connected, alias)


async def drop_collections(connected: Qdrant, alias: str) -> None:
    from qdrant_client import grpc as wire

    for found in (await connected.collections.List(wire.ListCollectionsRequest())).collections:
        if found.name.startswith(f"{alias}__"):
            await connected.collections.Delete(wire.DeleteCollection(collection_name=found.name))


@dataclass(frozen=True)
class Installation:
    """The environment of one installation of the service, all its own."""

    environment: dict[str, str]

    @property
    def settings(self) -> Settings:
        names = {name.removeprefix("TOOLSCRIPT_").lower(): value for name, value in self.environment.items()}
        return Settings.model_validate(names)


# Databases that this process has named; most of them nobody has ever written to.
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
    # Whoever may write may neither list databases nor drop them, only what is in them.
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
            # Tests ask more often than a client may; those of the budget set it again.
            "TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": "0",
            # What a test writes is searched at once, from whichever process; tests of the copy set it again.
            "TOOLSCRIPT_SKILL_COPY": "false",
            # A busy machine is no reason for a degraded answer; tests of the deadline set it again.
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
    """The same weights read another way (first token, query prefix): another model, with other vectors."""
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
