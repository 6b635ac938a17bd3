"""A database per test on the real server, with its users and permissions."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from pymongo import AsyncMongoClient

from tests.contracts.library_builders import drop_database, writer_url
from toolscript.core.settings.service import Settings
from toolscript.knowledge.mongo.connection import Document


@dataclass(frozen=True)
class Place:
    """`writing` is logged in as a user with write access."""

    database: str
    writing: AsyncMongoClient[Document]
    writer_url: str
    reader_url: str


@pytest.fixture
async def place(engines: Settings) -> AsyncIterator[Place]:
    name, url = f"test_{uuid.uuid4().hex[:12]}", writer_url(engines)
    async with AsyncMongoClient[Document](url) as client:
        yield Place(name, client, url, engines.mongo_url.get_secret_value())
        await drop_database(client, name)
