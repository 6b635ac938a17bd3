"""Detection of secrets, and display of a server without them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.gateway.config.secrets import MASK, count_secrets, looks_secret, secret_words, start_summary

pytestmark = pytest.mark.requirement("TS-001")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "abc"),
        ("api-key", "abc"),
        ("APIKEY", "abc"),
        ("Authorization", "Bearer abc"),
        ("DB_PASSWORD", "abc"),
        ("KEY", "abc"),
        ("X", "sk-abcdef"),
        ("X", "ghp_abcdef"),
        ("X", "eyJhbGciOi"),
        ("X", "d41d8cd98f00b204e9800998ecf8427e"),
        ("TOKEN", "pre${A}post"),
    ],
)
def test_these_look_like_secrets(name: str, value: str) -> None:
    assert looks_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "${GITHUB_TOKEN}"),
        ("Authorization", "Bearer ${T}"),
        ("TOKEN", ""),
        ("AUTH_ENABLED", "true"),
        ("MAX_TOKENS", "4096"),
        ("KEY_FILE", "/etc/key.pem"),
        ("AUTH_URL", "https://login.example/auth"),
        ("LOG_LEVEL", "debug"),
        ("X", "@modelcontextprotocol/server-filesystem"),
        ("X", "some-rather-long-package-name-of-words"),
        ("monkey", "banana"),
    ],
)
def test_these_do_not(name: str, value: str) -> None:
    assert not looks_secret(name, value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-y", "pkg"], [False, False]),
        (["--api-key", "abc", "x"], [False, True, False]),
        (["--token=abc"], [True]),
        (["--token=${T}"], [False]),
        (["-e", "API_KEY=abc"], [False, True]),
        (["--header", "Authorization: Bearer abc"], [False, True]),
        (["--header", "Authorization:${AUTH}"], [False, False]),
        (["postgres://user:abc@host/db"], [True]),
        (["https://host/mcp?api_key=abc"], [True]),
        (["https://host/mcp"], [False]),
        (["--auth", "--verbose"], [False, False]),
        (["sk-abcdef"], [True]),
    ],
)
def test_secrets_among_the_words_of_a_command(words: list[str], expected: list[bool]) -> None:
    assert secret_words(words) == expected


def test_secrets_are_counted_wherever_they_are() -> None:
    entry = {"command": "x", "args": ["--token", "abc"], "env": {"API_KEY": "abc", "B": "${B}", "LEVEL": "info"}}
    assert count_secrets(entry) == 2
    assert count_secrets({"url": "https://u:abc@h/", "headers": {"X-Api-Key": "abc", "Accept": "text"}}) == 2
    assert count_secrets({}) == 0


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "npx", "args": ["-y", "pkg"]}, "npx -y pkg"),
        ({"command": "npx", "args": ["--api-key", "abc"]}, f"npx --api-key {MASK}"),
        ({"command": "x", "args": list("abcdef")}, "x a b c d ..."),
        ({"command": "x" * 99}, "x" * 57 + "..."),
        ({"command": "x\x1b[2J\n"}, "x?[2J?"),
        ({"url": "https://u:abc@h.example:8080/p?key=abc"}, "https://h.example:8080"),
        ({"url": "${BASE}/mcp"}, "a url with variables"),
        ({"url": "https://${HOST}/mcp"}, "a url with variables"),
        ({"url": "http://[oops"}, "a url"),
    ],
)
def test_a_server_is_shown_by_its_command_or_host(entry: dict[str, object], expected: str) -> None:
    assert start_summary(entry) == expected


@given(st.text(), st.lists(st.text(), max_size=6), st.text())
def test_the_summary_is_short_and_has_no_control_characters(command: str, args: list[str], url: str) -> None:
    for entry in ({"command": command, "args": args}, {"url": url}):
        assert start_summary(entry).isprintable()
        assert len(start_summary(entry)) < 400
        assert count_secrets(entry) >= 0
