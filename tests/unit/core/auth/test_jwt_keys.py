"""Keys of an issuer over HTTP: when they are fetched, how long they are cached, and what is rejected."""

import asyncio
import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.token_issuer import Issuer, ed_key
from tests.unit.core.auth.key_set_endpoint import KeySetEndpoint
from toolscript.core.auth.keys import MAX_KEY_SET_BYTES, KeyAddress, KeyFile, KeyRing, key_source
from toolscript.core.auth.model import UNLIMITED, Tenant
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.errors import SetupError, TokenRefused, Unauthorized, Unavailable

pytestmark = pytest.mark.requirement("DOC-004")

RULES = TokenRules(Issuer.name, Issuer.audience)
DAY = 24 * 3600.0


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


class Scene:
    """An issuer at an address, a verifier that trusts it, and a clock for the keys only."""

    def __init__(self, endpoint: KeySetEndpoint) -> None:
        self.endpoint = endpoint
        self.issuer = Issuer(ed_key("ed-1"))
        self.clock = Clock()
        self.publish()
        self.ring = KeyRing(KeyAddress(endpoint.url), self.clock)
        self.verifier = JwtVerifier(self.ring, RULES, {}, UNLIMITED)
        self._serial = 0

    def publish(self) -> None:
        self.endpoint.serve(self.issuer.key_set())

    async def settle(self) -> None:
        """Wait for the background read of the keys of a failing issuer; no request waits for it."""
        if self.ring._reading is not None:
            await asyncio.wait([self.ring._reading])

    async def verify(self, kid: str = "ed-1", issuer: Issuer | None = None) -> str:
        """Verify a new token."""
        self._serial += 1
        return (
            await self.verifier.verify((issuer or self.issuer).token(kid=kid, jti=str(self._serial)))
        ).tenant.name


@pytest.fixture
def scene() -> Iterator[Scene]:
    with KeySetEndpoint() as endpoint:
        yield Scene(endpoint)


async def test_keys_are_fetched_once_for_many_requests_at_once_and_again_when_they_are_old(scene: Scene) -> None:
    assert await asyncio.gather(*(scene.verify() for _ in range(20))) == ["acme"] * 20
    assert scene.endpoint.requests == 1
    scene.clock.at += 599
    await scene.verify()
    assert scene.endpoint.requests == 1
    scene.clock.at += 61
    await asyncio.gather(*(scene.verify() for _ in range(20)))
    assert scene.endpoint.requests == 2


async def test_keys_that_are_a_little_old_are_used_while_they_are_fetched_again(scene: Scene) -> None:
    await scene.verify()
    removed = Issuer(scene.issuer.keys.pop("ed-1"))
    scene.issuer.keys["ed-2"] = ed_key("ed-2")
    scene.publish()
    scene.clock.at += 600
    scene.endpoint.held.clear()
    assert await scene.verify("ed-1", removed) == "acme"
    scene.endpoint.held.set()
    await scene.settle()
    assert await scene.verify("ed-2") == "acme"
    assert scene.endpoint.requests == 2
    with pytest.raises(Unauthorized, match="no known key"):
        await scene.verify("ed-1", removed)


async def test_a_key_that_appears_is_used_at_once_and_one_that_is_removed_no_more(scene: Scene) -> None:
    await scene.verify("ed-1")
    scene.issuer.keys["ed-2"] = ed_key("ed-2")
    scene.publish()
    assert await scene.verify("ed-2") == "acme"
    assert await scene.verify("ed-1") == "acme"
    assert scene.endpoint.requests == 2
    removed = Issuer(scene.issuer.keys.pop("ed-1"))
    scene.publish()
    scene.clock.at += 660
    assert await scene.verify("ed-2") == "acme"
    with pytest.raises(Unauthorized, match="no known key"):
        await scene.verify("ed-1", removed)


async def test_a_key_that_was_replaced_under_its_name_stops_to_verify(scene: Scene) -> None:
    await scene.verify()
    before = Issuer(scene.issuer.keys["ed-1"])
    scene.issuer.keys["ed-1"] = ed_key("ed-1")
    scene.publish()
    scene.clock.at += 660
    assert await scene.verify() == "acme"
    with pytest.raises(Unauthorized, match="signature is not valid"):
        await scene.verify(issuer=before)


async def test_a_flood_of_unknown_keys_reads_the_key_set_once_in_thirty_seconds(scene: Scene) -> None:
    await scene.verify()
    unknown = Issuer(*(ed_key(f"no-{number}") for number in range(40)))

    async def flood() -> None:
        refused = await asyncio.gather(
            *(scene.verify(kid, unknown) for kid in unknown.keys), return_exceptions=True
        )
        assert {type(error) for error in refused} == {TokenRefused}

    for _ in range(3):
        await flood()
    assert scene.endpoint.requests == 2
    scene.clock.at += 30
    await flood()
    assert scene.endpoint.requests == 3


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b"{}"), (200, b"<html>"), (200, b"[]"), (200, b'{"keys": 7}'), (200, b"[" * 100_000)],
)
async def test_while_the_issuer_fails_known_keys_stay_in_use_for_a_day(
    scene: Scene, status: int, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.verify()
    scene.endpoint.serve(body, status)
    for waited in (660, 30, DAY - 660 - 60):
        scene.clock.at += waited
        assert await scene.verify() == "acme"
        await scene.settle()
    scene.clock.at += 60
    with pytest.raises(Unavailable, match="key set"):
        await scene.verify()
    assert [line.message for line in caplog.records if line.levelno >= logging.WARNING] == [
        "the key set cannot be read"
    ]
    scene.publish()
    scene.clock.at += 2
    assert await scene.verify() == "acme"


async def test_not_every_request_reads_the_key_set_of_a_failing_issuer(scene: Scene) -> None:
    await scene.verify()
    scene.endpoint.serve(b"", 503)
    scene.clock.at += 660
    for _ in range(10):
        await scene.verify()
    assert scene.endpoint.requests == 2


async def test_without_any_key_it_is_unavailable_and_soon_tried_again(scene: Scene) -> None:
    scene.endpoint.serve(b"", 503)
    for _ in range(3):
        with pytest.raises(Unavailable, match="status 503"):
            await scene.verify()
    assert scene.endpoint.requests == 1
    scene.publish()
    scene.clock.at += 2
    assert await scene.verify() == "acme"


async def test_keys_that_the_issuer_removes_all_at_once_are_gone(scene: Scene) -> None:
    await scene.verify()
    scene.endpoint.serve({"keys": []})
    scene.clock.at += 660
    with pytest.raises(Unavailable, match="no key"):
        await scene.verify()


async def test_a_cancelled_request_does_not_end_the_fetch_of_the_others(scene: Scene) -> None:
    scene.endpoint.held.clear()
    first, second = asyncio.ensure_future(scene.verify()), asyncio.ensure_future(scene.verify())
    assert await asyncio.to_thread(scene.endpoint.reached.wait, 30)
    first.cancel()
    scene.endpoint.held.set()
    assert await second == "acme"
    assert first.cancelled()
    assert scene.endpoint.requests == 1


async def test_the_wait_for_an_issuer_is_bounded(scene: Scene) -> None:
    scene.endpoint.held.clear()
    with pytest.raises(Unavailable, match="no answer in time"):
        await KeyAddress(scene.endpoint.url, timeout_seconds=0.05).read()


async def test_a_redirect_is_not_followed(scene: Scene) -> None:
    scene.endpoint.serve(b"", 302, Location=scene.endpoint.url)
    with pytest.raises(Unavailable, match="moved"):
        await KeyAddress(scene.endpoint.url).read()
    assert scene.endpoint.requests == 1


async def test_a_key_set_may_be_large_and_not_too_large_nor_become_so(scene: Scene) -> None:
    largest = b" " * MAX_KEY_SET_BYTES
    scene.endpoint.serve(largest)
    assert await KeyAddress(scene.endpoint.url).read() == largest
    scene.endpoint.serve(largest + b" ")
    with pytest.raises(Unavailable, match="256 KiB"):
        await KeyAddress(scene.endpoint.url).read()
    bomb = gzip.compress(b" " * 100 * MAX_KEY_SET_BYTES)
    scene.endpoint.serve(bomb, Content_Encoding="gzip")
    assert await KeyAddress(scene.endpoint.url).read() == bomb


async def test_an_unreachable_address_is_unavailable_and_its_password_stays_hidden() -> None:
    with pytest.raises(Unavailable) as refused:
        await KeyAddress("http://ann:s3cret@127.0.0.1:9/jwks.json").read()
    assert "s3cret" not in f"{refused.value.message} {refused.value.hint}"
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "url", ["https://issuer.example/jwks", "http://localhost:1/", "http://[::1]:1/", "HTTPS://a/b"]
)
def test_keys_come_over_https_or_from_this_machine(url: str) -> None:
    assert isinstance(key_source(url), KeyAddress)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://issuer.example/jwks",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil/",
            "http://10.0.0.1/",
        ),
        *(
            "ftp://issuer.example/",
            "file:///etc/keys",
            "https://",
            "http://[::1/",
            "http://localhost@evil.example/",
        ),
    ],
)
def test_keys_come_from_nowhere_else(url: str) -> None:
    with pytest.raises(SetupError, match="TOOLSCRIPT_JWT_KEYS"):
        key_source(url)


async def test_a_file_that_is_broken_or_gone_leaves_the_known_keys_in_use(tmp_path: Path) -> None:
    clock, issuer = Clock(), Issuer(ed_key("ed-1"))
    path = issuer.write(tmp_path / "jwks.json")
    verifier = JwtVerifier(KeyRing(KeyFile(path), clock), RULES, {}, UNLIMITED)
    assert (await verifier.verify(issuer.token())).tenant == Tenant("acme")
    for spoil in (lambda: path.write_text(json.dumps(issuer.key_set())[:-9]), path.unlink):
        spoil()
        clock.at += 100
        assert (await verifier.verify(issuer.token(sub=str(clock.at)))).tenant == Tenant("acme")


async def test_a_file_that_was_never_there_is_unavailable(tmp_path: Path) -> None:
    verifier = JwtVerifier(KeyRing(KeyFile(tmp_path / "none.json")), RULES, {}, UNLIMITED)
    with pytest.raises(Unavailable, match="No such file"):
        await verifier.verify(Issuer(ed_key("ed-1")).token())


async def test_a_file_may_not_be_too_large(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(b" " * (MAX_KEY_SET_BYTES + 1))
    with pytest.raises(Unavailable, match="256 KiB"):
        await KeyFile(path).read()
