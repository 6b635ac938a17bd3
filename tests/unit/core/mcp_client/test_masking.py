"""Secrets of a server's entry are masked."""

import pytest

from toolscript.core.mcp_client.model import ServerSpec, Transport, masked, shown, unfilled

pytestmark = pytest.mark.requirement("TS-001")

SPEC = ServerSpec(
    "secret",
    Transport.STDIO,
    args=("--api-key", "from-a-flag", "--token=from-equals", "--folder", "visible-folder"),
    env={"TOKEN": "from-env", "DEBUG": "1"},
    headers={"Authorization": "Bearer from-header"},
    url="https://user:from-userinfo@example.org/mcp?key=from-query",
)


@pytest.mark.parametrize(
    "secret",
    ["from-a-flag", "from-equals", "from-env", "from-header", "Bearer from-header", "from-userinfo", "from-query"],
)
def test_a_secret_is_masked_everywhere(secret: str) -> None:
    assert masked(f"<{secret}> {secret}", SPEC) == "<***> ***"


def test_a_value_that_is_no_secret_stays() -> None:
    assert masked("visible-folder 1 --api-key DEBUG", SPEC) == "visible-folder 1 --api-key DEBUG"


def test_an_invalid_address_is_masked_whole() -> None:
    assert masked("no http://[oops", ServerSpec("bad", Transport.HTTP, url="http://[oops")) == "no ***"


KEY = "-----BEGIN KEY-----\nabc\u00e9def1234567\n-----END KEY-----"
KNOWN = ServerSpec(
    "known",
    Transport.HTTP,
    args=("--positional", "p0s1tional"),
    url="https://example.org/p\u00e4th/s",
    secrets={"A": "p0s1tional", "B": "p\u00e4th/s", "KEY": KEY, "PIN": "4711", "SHORT": "yes"},
)


@pytest.mark.parametrize(
    "form", ["p0s1tional", "p\u00e4th/s", "p%C3%A4th%2Fs", "p\\u00e4th/s", "4711", KEY, *KEY.splitlines()]
)
def test_a_secret_of_the_keyring_is_masked_wherever_it_is_and_however_it_is_written(form: str) -> None:
    assert masked(f"<{form}> '{form}'", KNOWN) == "<***> '***'"


def test_a_secret_that_is_a_word_stays_readable() -> None:
    assert masked("yes", KNOWN) == "yes"


def test_a_message_is_masked_before_it_is_cut() -> None:
    message = shown(f"{'x' * 1_995}p0s1tional and more", KNOWN)
    assert message == f"{'x' * 1_995}*** a"[:2_000]


def test_a_text_of_an_entry_can_be_had_with_names_in_place_of_values() -> None:
    assert unfilled("--key=p0s1tional yes", KNOWN) == "--key=${keyring:A} yes"


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("/s/of-a-path-abc123def456/mcp", "of-a-path-abc123def456"),
        ("/s/of%2Fa%2Fpath%2Fabc123def456/mcp", "of/a/path/abc123def456"),
        ("/mcp?key=with%2Fa%2Fslash", "with%2Fa%2Fslash"),
        ("/mcp?key=with%2Fa%2Fslash", "with/a/slash"),
        ("/mcp?key=with+a+plus", "with a plus"),
        ("/mcp?no-name-for-abc123", "no-name-for-abc123"),
    ],
)
def test_a_secret_of_an_address_is_masked_as_written_and_as_meant(path: str, secret: str) -> None:
    spec = ServerSpec("remote", Transport.HTTP, url=f"https://example.org{path}")
    assert masked(f"<{secret}>", spec) == "<***>"


def test_the_words_of_an_address_stay() -> None:
    spec = ServerSpec(
        "remote", Transport.HTTP, url="https://example.org/organisations/v2/model-context-protocol?readonly"
    )
    words = "organisations v2 model-context-protocol readonly"
    assert masked(words, spec) == words
