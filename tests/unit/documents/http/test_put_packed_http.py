"""PUT /documents with `Content-Encoding: gzip`."""

import gzip
import json
import zlib
from collections.abc import AsyncIterator

import pytest

from tests.unit.documents.http.builders import Client, document
from tests.unit.documents.http.test_put_lines_http import lines, read

pytestmark = pytest.mark.requirement("DOC-006")


async def test_gzip_is_accepted_whole_in_blocks_and_as_several_members(api: Client) -> None:
    packed = gzip.compress(b"".join(lines(50))) + gzip.compress(b"".join(lines(60)[50:]))

    async def byte_by_byte() -> AsyncIterator[bytes]:
        for start in range(len(packed)):
            yield packed[start : start + 1]

    for content in (packed, byte_by_byte()):
        _, last = read(await api.put_lines(content, packing="gzip"))
        assert sum(last["counts"].values()) == 60
    body = gzip.compress(json.dumps({"documents": [document(99)]}).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert (await api.http.put("/documents", content=body, headers=headers)).json()["counts"]["created"] == 1


async def test_a_gzip_bomb_is_refused_before_it_is_decompressed(api: Client) -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = packer.compress(b"\n" * 50_000_000) + packer.flush()
    taken = [0]

    async def sent() -> AsyncIterator[bytes]:
        for start in range(0, len(bomb), 1000):
            taken[0] = start
            yield bomb[start : start + 1000]

    answer = await api.put_lines(sent(), 422, packing="gzip")
    assert "more than 100 times" in answer.json()["error"]["message"]
    assert taken[0] < len(bomb) // 2


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"plain\n", "is not gzip"), (gzip.compress(b"".join(lines(3)))[:-9], "is truncated")],
    ids=["plain", "cut short"],
)
async def test_invalid_or_truncated_gzip_is_refused(api: Client, content: bytes, message: str) -> None:
    answer = await api.put_lines(content, 422, packing="gzip")
    assert message in answer.json()["error"]["message"]


async def test_another_content_encoding_is_refused(api: Client) -> None:
    await api.put_lines(b"x", 415, packing="br")
